"""Changes single cells and header fields of run files, swaps or removes rows of events, makes the checksums right again, and
audits the file.

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
    """A random edit and the edited document: a cell eight times of ten, else a field of the header or a row of events."""
    document = deepcopy(case.document)
    what = random_.random()
    if what < 0.1:
        return _edit_header(document, random_), document
    if what < 0.2:
        return _edit_rows(document, random_), document
    tables = {name: table for name, table in document["tables"].items() if table["rows"]}
    name = random_.choice(list(tables))
    column = random_.choice(list(tables[name]["columns"]))
    return _edit_cell(document, name, column, random_), document


def _edit_cell(document: dict[str, Any], name: str, column: str, random_: random.Random) -> Edit:
    table = document["tables"][name]
    values = table["data"][column]
    row = random_.randrange(len(values))
    before = values[row]
    values[row] = _other(before, values, random_)
    table["sha256"] = checksum(name, normal(name, table["data"]))
    return Edit(f"{name}.{column}", row, before, values[row])


def _edit_rows(document: dict[str, Any], random_: random.Random) -> Edit:
    rows = document["tables"]["events"]["rows"]
    if random_.random() < 0.5:
        return remove_event(document, random_.randrange(rows))
    return swap_events(document, random_.randrange(rows - 1))


def swap_events(document: dict[str, Any], row: int) -> Edit:
    """Swap a row of the events with the next one."""
    table = document["tables"]["events"]
    before = [column[row] for column in table["data"].values()]
    for column in table["data"].values():
        column[row], column[row + 1] = column[row + 1], column[row]
    table["sha256"] = checksum("events", normal("events", table["data"]))
    return Edit("events.order", row, before, [column[row] for column in table["data"].values()])


def remove_event(document: dict[str, Any], row: int) -> Edit:
    """Remove a row of the events."""
    table = document["tables"]["events"]
    before = [column.pop(row) for column in table["data"].values()]
    table["rows"] -= 1
    table["sha256"] = checksum("events", normal("events", table["data"]))
    return Edit("events.rows", row, before, None)


def _other(value: Any, values: list[Any], random_: random.Random) -> Any:
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
    where = edit.where.removeprefix("header.")
    if where not in found.unchecked:
        return "GAP"
    try:
        again = api.audit(case.scenario, run, rerun=True, bound=True, bills=True)
    except InputError:  # it cannot be repeated, and the error says so
        return f"once: {found.unchecked[where]}"
    if again.violations:
        return f"rerun: {found.unchecked[where]}"
    return f"free: {again.unchecked[where]}" if where in again.unchecked else "GAP"


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
