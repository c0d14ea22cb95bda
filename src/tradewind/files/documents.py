"""Reads and writes JSON and YAML files: plain values, or one clear error."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, Final, NoReturn

from tradewind.files import yaml_text
from tradewind.files.atomic import write_text
from tradewind.files.messages import shown
from tradewind.model.errors import InputError

JSON: Final = (".json",)
YAML: Final = (".yaml", ".yml")
LARGEST_FILE: Final = 2 * 10**9
LARGEST_YAML: Final = 20 * 10**6
EMPTY: Final = "the file is empty; docs/formats.md describes its contents"
FREE_ROWS: Final = 1_000_000
ROWS_PER_BYTE: Final = 8
"""Rows of a Parquet file that are read whatever its size, and further ones per byte of it."""


def read(path: Path) -> Any:
    """The value of a .json, .yaml or .yml file; raises an InputError with line and column."""
    check_suffix(path)
    text = read_text(path, LARGEST_YAML if path.suffix.lower() in YAML else LARGEST_FILE)
    if not text.strip():
        raise InputError(EMPTY, where=str(path))
    try:
        found = yaml_text.parse(text) if path.suffix.lower() in YAML else parse_json(text)
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None
    if found is None and path.suffix.lower() in YAML:
        raise InputError(EMPTY, where=str(path))
    return found


def write(path: Path, text: str) -> None:
    """Write the text of a document atomically."""
    check_suffix(path)
    write_text(path, text)


def stem(path: Path) -> str:
    """The name that a file gives to a scenario or plan without one."""
    name = "".join(c for c in path.stem if c.isprintable()).strip()
    return name[:200] or "scenario"


def check_suffix(path: Path) -> None:
    """Reject a folder, or a file name without a known suffix."""
    if path.is_dir():
        raise InputError("is a folder; give a file inside it", where=str(path))
    if path.suffix.lower() not in JSON + YAML:
        raise InputError(
            f"the file name ends in {path.suffix!r}; a file of this kind is JSON or YAML and ends in .json, .yaml or .yml",
            where=str(path),
        )


def check_file(path: Path, largest: int = LARGEST_FILE) -> None:
    """Reject anything but a regular, readable file of at most `largest` bytes."""
    try:
        info = path.stat()
    except FileNotFoundError:
        raise InputError("no such file; check the name and the folder", where=str(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be opened ({getattr(error, 'strerror', None) or error})", where=repr(str(path))
        ) from None
    if stat.S_ISDIR(info.st_mode):
        raise InputError("is a folder; give a file inside it", where=str(path))
    if not stat.S_ISREG(info.st_mode):
        raise InputError("is not a regular file; save the contents to a file first", where=str(path))
    if info.st_size > largest:
        raise InputError(
            f"has {info.st_size:,} bytes; the limit is {largest:,}. "
            "Use JSON, and move large tables to Parquet files in the same folder.",
            where=str(path),
        )


def most_rows(path: Path) -> int:
    """Most rows of a Parquet file of this size: one that claims far more does not hold them in earnest."""
    return FREE_ROWS + ROWS_PER_BYTE * path.stat().st_size


def read_text(path: Path, largest: int = LARGEST_FILE) -> str:
    """The UTF-8 text of a regular file."""
    check_file(path, largest)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"line {line}: invalid UTF-8 at byte {error.start}; save the file as UTF-8", where=str(path)
        ) from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"an object has the field {key!r:.60} twice; keep one")
            seen.add(key)
    return result


def _no_constant(name: str) -> NoReturn:
    raise InputError(f"found {name}, which is not valid JSON; numbers must be finite")


def parse_json(text: str) -> Any:
    """The value of JSON text; duplicate fields, NaN and Infinity are rejected."""
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno}, column {error.colno}: invalid JSON ({error.msg})") from None
    except ValueError:
        raise InputError("a number has thousands of digits; the limit is 2^53") from None
    except RecursionError:
        raise InputError("values are nested too deeply; a scenario needs about ten levels") from None


def json_text(document: dict[str, Any]) -> str:
    """JSON with one line per field and one per entry of nested objects; ends in a newline."""
    lines = []
    for key, value in document.items():
        lines.append(f" {_compact(key)}: {_spread(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _spread(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(map(_compact, value)) + "\n ]"
    if isinstance(value, dict) and any(isinstance(v, dict | list) for v in value.values()):
        return "{\n  " + ",\n  ".join(f"{_compact(k)}: {_compact(v)}" for k, v in value.items()) + "\n }"
    return _compact(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
_compact = _ENCODER.encode


def text_for(path: Path, document: dict[str, Any]) -> str:
    """The document as JSON or YAML, depending on the file suffix."""
    return yaml_text.dump(document) if path.suffix.lower() in YAML else json_text(document)


KINDS: Final = {
    "tradewind_scenario": "a scenario, for `tradewind run` and `compare`",
    "tradewind_run": "a run file, for `tradewind show`, `explain` and `report`",
    "tradewind_jobs": "jobs for `tradewind plan`",
    "tradewind_service": "the configuration of `tradewind serve`",
    "tradewind_contract": "a contract, for `--contract`",
    "tradewind_profile": "a profile, which jobs for `tradewind plan` name",
}
"""Files by the field that says their version."""


def check_version(raw: dict[str, Any], field: str, version: int) -> None:
    """Reject files of another kind or version before anything else is checked."""
    if field not in raw:
        other = next((kind for kind in KINDS if kind in raw), "")
        if other:
            raise InputError(f"the file is {KINDS[other]}; needed is {KINDS[field]}")
        raise InputError(f'{field} is missing; a file of this kind must contain "{field}": {version}')
    if type(raw[field]) is not int or raw[field] != version:
        raise InputError(f"{field} is {shown(raw[field])}; this program supports version {version}")


def read_version(path: Path, field: str, version: int) -> Any:
    """The value of a file of one kind; a file of another kind is called by its name."""
    raw = read(path)
    if isinstance(raw, dict):
        try:
            check_version(raw, field, version)
        except InputError as error:
            raise InputError(str(error), where=str(path)) from None
    return raw
