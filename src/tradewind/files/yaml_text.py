"""Reads and writes YAML with plain values only; built from parser events, without recursion.

Scalars follow the core schema of YAML 1.2, so that `no` is a name and not false. Duplicate fields, tags and cycles are
rejected; aliases and merge keys (`<<`) work up to a limit on what they expand to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from tradewind.model.errors import InputError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
DEEPEST: Final = 100
LARGEST_EXPANSION: Final = 2_000_000
"""Most values that aliases may expand to."""

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Any]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def scalar(text: str) -> Any:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "+-.0123456789":
        if _INT.fullmatch(text):
            return int(text) if len(text) < 400 else float("inf")
        if _FLOAT.fullmatch(text):
            return float(text)
        if _NOT_FINITE.fullmatch(text):
            return float(text.replace(".", ""))
    return text


@dataclass(slots=True)
class _Open:
    """A list or object being read; size counts its values with aliases expanded."""

    value: Any
    anchor: str | None
    key: Any = None
    has_key: bool = False
    merges: list[Any] = field(default_factory=list)
    size: int = 1


class _Builder:
    """Builds values from events with an explicit stack."""

    def __init__(self) -> None:
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.aliased = 0
        self.root: Any = None
        self.documents = 0

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._tagless(event)
                value = scalar(event.value) if event.implicit[0] and not event.style else event.value
                if event.anchor:
                    self.anchors[event.anchor] = (value, 1)
                self._add(value, 1, event, quoted=bool(event.style))
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._tagless(event)
                if len(self.stack) >= DEEPEST:
                    raise _at(event, f"values are nested more than {DEEPEST} levels deep")
                self.stack.append(
                    _Open([] if isinstance(event, yaml.SequenceStartEvent) else {}, event.anchor)
                )
                if event.anchor:  # registered only when complete, which rejects cycles
                    self.anchors.pop(event.anchor, None)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise _at(event, "a second document starts here; a file must contain one document")

    def _tagless(self, event: Any) -> None:
        if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:str"):
            raise _at(event, f"the tag {event.tag!r:.60} is not allowed; use plain values")

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise _at(event, f"*{event.anchor:.60} refers to an anchor that is not defined before it")
        value, size = self.anchors[event.anchor]
        self.aliased += size
        if self.aliased > LARGEST_EXPANSION:
            raise _at(event, f"aliases expand to more than {LARGEST_EXPANSION:,} values; use fewer")
        self._add(value, size, event, quoted=False)

    def _add(self, value: Any, size: int, event: Any, *, quoted: bool) -> None:
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.size += size
        if isinstance(top.value, list):
            top.value.append(value)
        elif not top.has_key:
            self._key(top, value, event, quoted)
        else:
            if top.key is _MERGE:
                self._merge(top, value, event)
            else:
                top.value[top.key] = value
            top.has_key = False

    def _key(self, top: _Open, value: Any, event: Any, quoted: bool) -> None:
        if isinstance(value, list | dict):
            raise _at(event, "a field name must be text, not a list or an object")
        if value == "<<" and not quoted:
            top.key, top.has_key = _MERGE, True
            return
        name = event.value if isinstance(event, yaml.ScalarEvent) else str(value)
        if name in top.value:
            raise _at(event, f"an object has the field {name!r:.60} twice; keep one")
        top.key, top.has_key = name, True
        top.value[name] = None

    def _merge(self, top: _Open, value: Any, event: Any) -> None:
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _at(event, "<< must be followed by an object or a list of objects")
        top.merges.extend(parts)

    def _close(self, event: Any) -> None:
        top = self.stack.pop()
        for part in top.merges:
            for key, value in part.items():
                top.value.setdefault(key, value)
        if top.anchor:
            self.anchors[top.anchor] = (top.value, top.size)
        self._add(top.value, top.size, event, quoted=False)


class _Merge:
    pass


_MERGE: Final = _Merge()


def _at(event: Any, message: str) -> InputError:
    mark = event.start_mark
    return InputError(f"line {mark.line + 1}, column {mark.column + 1}: {message}")


def parse(text: str) -> Any:
    """The value of YAML text."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_Loader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        line = text.splitlines()[mark.line] if mark and "token" in (error.problem or "") else ""
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise InputError(f"{where}indented with a tab; YAML is indented with spaces") from None
        raise InputError(f"{where}invalid YAML ({error.problem or error.context})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"invalid YAML ({str(error)[:200]})") from None
    return builder.root


class _Dumper(_Base):  # type: ignore[misc]  # the base is chosen at run time, C where it was built
    """Safe dumper that quotes text which the reader would parse as a number."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values in full instead of using aliases."""
        return True


def _represent_text(dumper: Any, data: str) -> Any:
    plain = isinstance(scalar(data), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if plain else "'")


_Dumper.add_representer(str, _represent_text)


def dump(document: dict[str, Any]) -> str:
    """YAML text with the fields in the given order."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None
    )
    return text
