"""How much is exchanged: a model's size, and per site a line (`Oslo=120,Bergen=1.5 GB`) or a file; plain numbers are MB."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.units import parse_bytes
from tradewind.systems.apsp.workload.draw import MODEL_BYTES
from tradewind.systems.apsp.workload.topology import Topology

MB = 1_000_000


def model_bytes(model: str) -> int:
    """The size of a model of Table II by its name, or a size such as "300 MB"."""
    if model in MODEL_BYTES:
        return MODEL_BYTES[model]
    try:
        return parse_bytes(model)
    except ValueError:
        if model[:1].isdigit():
            raise InputError(f"model {model!r} is not a size; write for example '300 MB'") from None
        raise LookupFailed("model", model, MODEL_BYTES) from None


def read_sizes(text: str, topology: Topology, sites: Iterable[int]) -> dict[int, int]:
    """Bytes of every site that is named; a text that ends in .csv (columns site, mb) or .json (site -> MB) is a file."""
    if not text.strip():
        return {}
    found: dict[int, int] = {}
    allowed = set(sites)
    for name, amount in _file(text) if text.endswith((".csv", ".json")) else _line(text):
        node = topology.index(name)
        if node not in allowed:
            raise InputError(f"{name!r} is not a worker site; add it to the workers or drop it", where="data")
        if node in found:
            raise InputError(f"{name!r} is named twice; keep one", where="data")
        found[node] = _bytes(name, amount)
    return found


def _line(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, sign, amount = part.rpartition("=")
        if not sign:
            raise InputError(
                f"found {part!r}; write SITE=MB, several with commas, or name a file", where="data"
            )
        pairs.append((name.strip(), amount.strip()))
    return pairs


def _file(name: str) -> list[tuple[str, str]]:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}", where="data") from None
    if name.endswith(".json"):
        try:
            read = json.loads(text)
        except ValueError as error:
            raise InputError(f"{name} is not JSON: {error}", where="data") from None
        if not isinstance(read, dict):
            raise InputError(f"{name} is not a JSON object; write site -> MB", where="data")
        return [(str(site), str(amount)) for site, amount in read.items()]
    rows = csv.DictReader(text.splitlines())
    if not {"site", "mb"} <= set(rows.fieldnames or ()):
        raise InputError(f"{name} has the columns {rows.fieldnames}; it needs site and mb", where="data")
    return [(str(row["site"]).strip(), str(row["mb"]).strip()) for row in rows]


def _bytes(name: str, amount: str) -> int:
    try:
        size = round(float(amount) * MB)
    except (ValueError, OverflowError):
        try:
            size = parse_bytes(amount)
        except ValueError:
            size = 0
    if size <= 0:
        raise InputError(
            f"{name}: found {amount!r}; allowed is a positive number of MB, or a size such as '1.5 GB'",
            where="data",
        )
    return size
