"""Forgeries of whole runs: the journal is changed in several places, and all that follows from it is computed again.

    python -m tests.audit.forged 1000 [--seed N] [--only SYSTEM]

prints how many were noticed by the plain audit, and how many it names as not checked. All others are gaps, and the exit
code is 1. Not even tables that are derived give these away: payments are scaled, instants moved in every table, jobs
removed, cells changed in several tables at once.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import tradewind as tw
from tests.audit.edit_cases import Case, cases
from tests.audit.edits import Edit, other, unchecked_why
from tradewind import api
from tradewind.engine.accounts import settle
from tradewind.model.errors import InputError
from tradewind.report.audited import DERIVED, same

Tables = dict[str, dict[str, list[Any]]]
Forge = Callable[[Case, Tables, random.Random], list[Edit]]
MONEY = (
    ("offers", "payment_usd"),
    ("prices", "usd"),
    ("posted", "floor_usd"),
    ("posted", "data_usd"),
    ("charges", "usd"),
)


def payments(case: Case, tables: Tables, random_: random.Random) -> list[Edit]:
    """All prices and payments are a little lower or higher."""
    del case
    factor, found = random_.choice((0.5, 0.9, 0.999, 1.1)), []
    for table, column in MONEY:
        values = tables[table][column]
        tables[table][column] = [usd * factor for usd in values]
        if any(values):
            found.append(Edit(f"{table}.{column}", 0, 1.0, factor))
    return found


def instant(case: Case, tables: Tables, random_: random.Random) -> list[Edit]:
    """An instant is earlier or later, in all tables."""
    at_us = random_.choice(tables["events"]["at_us"])
    to_us = at_us + random_.choice((-1000, -1, 1, 1000, case.scenario.setup.slot_us))
    found = []
    for table, columns in tables.items():
        for column in {"at_us", "from_us"} & set(columns):
            if at_us in columns[column]:
                columns[column] = [to_us if value == at_us else value for value in columns[column]]
                found.append(Edit(f"{table}.{column}", 0, at_us, to_us))
    return found


def without_a_job(case: Case, tables: Tables, random_: random.Random) -> list[Edit]:
    """Nothing that happened to a job is mentioned."""
    del case
    job = random_.choice([job for job in tables["events"]["job"] if job >= 0])
    for name in ("events", "answers", "verdicts", "charges", "estimates", "alarms"):
        columns = tables.get(name, {})
        rows = [row for row, each in enumerate(columns.get("job", ())) if each != job]
        for column, values in columns.items():
            columns[column] = [values[row] for row in rows]
    return [Edit("events.rows", 0, job, None)]


def cells(case: Case, tables: Tables, random_: random.Random) -> list[Edit]:
    """Two or three cells are different."""
    del case
    found = []
    for _ in range(random_.randint(2, 3)):
        name = random_.choice(
            [n for n, t in tables.items() if n not in (*DERIVED, "bills") and any(t.values())]
        )
        column = random_.choice(list(tables[name]))
        values = tables[name][column]
        row = random_.randrange(len(values))
        before, values[row] = values[row], other(values[row], values, random_)
        found.append(Edit(f"{name}.{column}", row, before, values[row]))
    return found


FORGE: tuple[Forge, ...] = (payments, instant, without_a_job, cells, cells)


def outcome(case: Case, random_: random.Random, path: Path) -> str:
    """`noticed`, `named` by the audit as not checked, `nothing` where it cannot be told from the run, or `GAP: WHERE`."""
    path.write_text(json.dumps(case.document))
    run = tw.load_run(path)
    tables: Tables = {
        name: {column: list(values) for column, values in table.items()} for name, table in run.tables.items()
    }
    edits = random_.choice(FORGE)(case, tables, random_)
    if all(same(edit.before, edit.after) for edit in edits):
        return "nothing"
    false = replace(run, tables=tables)
    with suppress(LookupError, ValueError):  # what not even a forger can add up stays as it was
        false = settle(case.scenario, false)
    if (bound := false.bound) is not None and bound.value:
        false = replace(false, bound=replace(bound, ratio=false.value / bound.value))
    try:
        tw.save(false, path)
        found = api.audit(case.scenario, tw.load_run(path))
    except InputError:
        return "noticed"
    if found.violations:
        return "noticed"
    gaps = [edit.where for edit in edits if not unchecked_why(edit, found.unchecked)]
    return f"GAP: {case.name} {', '.join(gaps)}" if gaps else "named"


def tally(count: int, seed: int, *, only: str = "") -> Counter[str]:
    """How often each outcome came of so many forgeries."""
    known, random_ = list(cases(only)), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        return Counter(outcome(known[number % len(known)], random_, path) for number in range(count))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="runs whose name begins so")
    args = parser.parse_args()
    found = tally(args.count, args.seed, only=args.only)
    print(", ".join(f"{n} {what}" for what, n in sorted(found.items())))
    return int(any(what.startswith("GAP") for what in found))


if __name__ == "__main__":
    sys.exit(main())
