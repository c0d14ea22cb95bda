"""Changes single cells and header fields of run files, swaps, doubles or removes rows of tables, all rows of a table or
the table itself, makes the checksums right again, and audits the file.

    python -m tests.audit.edits 10000 [--seed N] [--only SYSTEM]

prints, for every column and header field, how many edits were noticed, how many only when everything is computed again
(`tradewind audit --rerun --bound --bills`), which pass in runs that cannot be repeated (`once`: live ones, held quotes), and
which are free, with the reason that the audit itself gives for not checking them. An edit that passes without the audit
naming its field is a gap, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import tradewind as tw
from tests.audit.edit_cases import Case, cases
from tradewind import api
from tradewind.files.run_tables import checksum, normal
from tradewind.model.errors import InputError
from tradewind.report.audited import same

WORDS = {
    "world": ("simulated", "processes"),
    "sense": ("min", "max"),
    "kind": ("certified", "in-expectation"),
}


class Edit(NamedTuple):
    """One changed value: where (`steps.usd`, `header.seed`), its row, the value before and after."""

    where: str
    row: int
    before: Any
    after: Any


def draw(case: Case, random_: random.Random) -> tuple[Edit, dict[str, Any]]:
    """A random edit and the edited document: a cell seven times of ten, else a field of the header or rows."""
    document = deepcopy(case.document)
    what = random_.random()
    if what < 0.1:
        return _edit_header(document, random_), document
    if what < 0.15:
        return _edit_events(document, random_), document
    tables = {name: table for name, table in document["tables"].items() if table["rows"]}
    name = random_.choice(list(tables))
    if what < 0.3:
        return _edit_rows(document, name, random_), document
    column = random_.choice(list(tables[name]["columns"]))
    return _edit_cell(document, name, column, random_), document


def _edit_cell(document: dict[str, Any], name: str, column: str, random_: random.Random) -> Edit:
    table = document["tables"][name]
    values = table["data"][column]
    row = random_.randrange(len(values))
    before = values[row]
    values[row] = other(before, values, random_)
    table["sha256"] = checksum(name, normal(name, table["data"]))
    return Edit(f"{name}.{column}", row, before, values[row])


def _edit_events(document: dict[str, Any], random_: random.Random) -> Edit:
    rows = document["tables"]["events"]["rows"]
    if random_.random() < 0.5:
        return remove_row(document, random_.randrange(rows))
    return swap_rows(document, random_.randrange(rows - 1))


def _edit_rows(document: dict[str, Any], name: str, random_: random.Random) -> Edit:
    rows = document["tables"][name]["rows"]
    row = random_.randrange(rows)
    match random_.randrange(5):
        case 0 if row + 1 < rows:
            return swap_rows(document, row, name)
        case 1:
            return double_row(document, row, name)
        case 2:
            return empty_table(document, name)
        case 3:
            del document["tables"][name]
            return Edit(f"{name}.rows", 0, "the table", None)
        case _:
            return remove_row(document, row, name)


def swap_rows(document: dict[str, Any], row: int, name: str = "events") -> Edit:
    """Swap a row of a table with the next one."""
    data = document["tables"][name]["data"]
    before = [column[row] for column in data.values()]
    for column in data.values():
        column[row], column[row + 1] = column[row + 1], column[row]
    _close(document, name)
    return Edit(f"{name}.order", row, before, [column[row] for column in data.values()])


def remove_row(document: dict[str, Any], row: int, name: str = "events") -> Edit:
    """Remove a row of a table."""
    before = [column.pop(row) for column in document["tables"][name]["data"].values()]
    _close(document, name)
    return Edit(f"{name}.rows", row, before, None)


def double_row(document: dict[str, Any], row: int, name: str = "events") -> Edit:
    """Insert a row of a table once more."""
    data = document["tables"][name]["data"]
    before = [column[row] for column in data.values()]
    for column in data.values():
        column.insert(row, column[row])
    _close(document, name)
    return Edit(f"{name}.rows", row, before, [before, before])


def empty_table(document: dict[str, Any], name: str) -> Edit:
    """Remove all rows of a table."""
    before = document["tables"][name]["rows"]
    for column in document["tables"][name]["data"].values():
        column.clear()
    _close(document, name)
    return Edit(f"{name}.rows", 0, before, 0)


def _close(document: dict[str, Any], name: str) -> None:
    """Make number of rows and checksum of a table right again."""
    table = document["tables"][name]
    table["rows"] = len(next(iter(table["data"].values())))
    table["sha256"] = checksum(name, normal(name, table["data"]))


def other(value: Any, values: list[Any], random_: random.Random) -> Any:
    """Another value of the same type: one from the same column, or a little more or less."""
    known = [each for each in set(values) if each != value]
    if known and random_.random() < 0.5:
        return random_.choice(sorted(known))
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, float):
        return value * random_.choice((0.5, 0.999, 1.001, 2.0)) if value else random_.choice((1.0, -1.0))
    return value + random_.choice((-1000, -1, 1, 1000))


def _edit_header(document: dict[str, Any], random_: random.Random) -> Edit:
    fields = [
        "scenario_hash",
        "scenario_name",
        "policy",
        "params",
        "seed",
        "version",
        "world",
        "fleet",
        "objective",
        "metrics",
        "audit",
        "bound",
        "certificates",
    ]
    field = random_.choice(fields)
    before = deepcopy(document.get(field))
    match field:
        case "policy":
            document[field] = random_.choice(["fifo", "las", "eris", "random", "top", "unheard-of"])
        case "seed":
            document[field] += 1
        case "params":
            name = random_.choice([*document[field], "unheard_of"])
            document[field][name] = _another_param(document[field].get(name))
        case "world":
            document[field] = "simulated" if before == "processes" else "processes"
        case "fleet":
            document[field] = f"{before or ''}x"
        case "objective":
            document[field]["value"] = (document[field]["value"] or 0.0) + 1.0
        case "metrics":
            name = random_.choice([*document[field], "invented_usd"])
            document[field][name] = (document[field].get(name) or 0.0) + 1.0
            document["objective"]["value"] = document[field][document["objective"]["name"]]
        case "audit":
            document[field] = {"ok": False, "violations": [{"rule": "invented"}]}
        case "bound":
            document[field] = _another_bound(document[field], random_)
        case "certificates":
            document[field] = _another_certificate(document[field], random_)
        case _:
            document[field] = f"{document[field]}x"
    return Edit(f"header.{field}", 0, before, document[field])


def _another_param(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


def _another_bound(bound: dict[str, Any] | None, random_: random.Random) -> dict[str, Any]:
    if bound is None:
        return {"value": 1.0, "sense": "min", "kind": "certified", "ratio": 1.5}
    name = random_.choice(list(bound))
    after: Any = next((w for w in WORDS.get(name, ()) if w != bound[name]), None)
    return bound | {
        name: after or (0.0 if isinstance(bound[name], str) else (bound[name] or 0.0)) * 0.99 + 0.01
    }


def _another_certificate(certificates: list[Any], random_: random.Random) -> list[Any]:
    if not certificates:
        return [{"name": "invented", "value": 1.0, "sense": "min", "at_us": 0, "data": {}}]
    row = random_.randrange(len(certificates))
    certificates[row]["value"] = certificates[row]["value"] * 0.9 + 0.1
    return certificates


def outcome(case: Case, edit: Edit, document: dict[str, Any], path: Path) -> str:
    """`noticed`; `rerun: WHY` if only a second run notices it; `free: WHY` if nothing does; `once: WHY` if nothing does and
    the run cannot be repeated; else `GAP`.

    WHY is what the audit says of the field that it did not check. Without that, an edit that passes is a gap.
    """
    path.write_text(json.dumps(document))
    try:
        run = tw.load_run(path)
        found = api.audit(case.scenario, run)
    except InputError:
        return "noticed"
    if found.violations:
        return "noticed"
    if not (why := unchecked_why(edit, found.unchecked)):
        return "GAP"
    try:
        again = api.audit(case.scenario, run, rerun=True, bound=True, bills=True)
    except InputError:  # it cannot be repeated, and the error says so
        return f"once: {why}"
    if again.violations:
        return f"rerun: {why}"
    return f"free: {left}" if (left := unchecked_why(edit, again.unchecked)) else "GAP"


def unchecked_why(edit: Edit, unchecked: Mapping[str, str]) -> str:
    """What the audit says of what it did not check there; empty if nothing. Rows of a table, other than of the events, may
    also be named by a column."""
    where = edit.where.removeprefix("header.")
    table, _, what = where.partition(".")
    names = [where]
    if what in ("rows", "order") and table != "events":
        names += [name for name in unchecked if name.startswith(f"{table}.")]
    return next((unchecked[name] for name in names if name in unchecked), "")


def tally(count: int, seed: int, *, only: str = "") -> dict[str, Counter[str]]:
    """Where -> how often each outcome came of `count` edits; gaps are printed."""
    result: dict[str, Counter[str]] = {}
    known = list(cases(only))
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            case = known[number % len(known)]
            edit, document = draw(case, random_)
            if same(edit.before, edit.after):  # less than the ninth digit
                continue
            what = outcome(case, edit, document, Path(folder) / "run.json")
            result.setdefault(edit.where, Counter())[what] += 1
            if what == "GAP":
                print(f"GAP {case.name}: {str(edit)[:300]}", file=sys.stderr)
    return result


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="runs whose name begins so")
    args = parser.parse_args()
    found = tally(args.count, args.seed, only=args.only)
    total: Counter[str] = Counter()
    for where, outcomes in sorted(found.items()):
        total.update({what.split(":")[0]: n for what, n in outcomes.items()})
        print(f"{where:24} " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())))
    print(", ".join(f"{n} {what}" for what, n in sorted(total.items())))
    return 1 if total["GAP"] else 0


if __name__ == "__main__":
    sys.exit(main())
