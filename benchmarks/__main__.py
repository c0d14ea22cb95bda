"""`make bench [ONLY=name]`: one table of all benchmark figures and their targets.

Every `bench_*.py` has `rows() -> list[dict]` with the keys name, measured, unit, target, better ("lower" or "higher") and
optionally spread (of its own repeats), goal and note. Targets are the project's own. `budgets.toml` holds the target and the
last measurement of every figure; `known` gives the reason why a figure may miss its target for now. Nothing is skipped
silently: crashed benchmarks, figures that cannot run here and figures that disappeared get a row, too.

A benchmark that takes less than `--again` CPU seconds runs three times; the table shows median and range.
They run one after the other. With `--jobs`, or several workers of `--on` on one machine, they disturb each other: figures of
time need machines of their own.
Exit code 1: a figure misses its target without a known reason, has disappeared, or crashed.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
import tomllib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks.measure import Row, measure
from tradewind.report.progress import bar
from tradewind.tasks.pool import PoolTask, TaskResult, Where, run_tasks

Budgets = dict[str, dict[str, Row]]
"""Benchmark -> figure -> target, better, unit, measured, spread, known."""
FILE = Path(benchmarks.__file__).parent / "budgets.toml"
FIELDS = ("target", "better", "unit", "measured", "spread", "known")
STYLES = {"SHORT": "red", "CRASHED": "red", "MISSING": "red", "known short": "yellow", "not run": "yellow"}


@dataclass(slots=True)
class Outcome:
    """All rows with their verdicts, crashed benchmarks included."""

    rows: list[tuple[str, Row, str]] = field(default_factory=list)

    def count(self, *words: str) -> int:
        return sum(word in words for _, _, word in self.rows)


def verdict(row: Row, budget: Row) -> str:
    """ok, SHORT, known short, not run, or – if there is no target."""
    measured, target = row.get("measured"), row.get("target", budget.get("target"))
    if measured is None:
        return "not run"
    if target is None:
        return "–"
    better = row.get("better", budget.get("better", "lower"))
    if measured <= target if better == "lower" else measured >= target:
        return "ok"
    return "known short" if budget.get("known") else "SHORT"


def run(names: Sequence[str], budgets: Budgets, again_s: float, where: Where) -> Outcome:
    """Run the benchmarks with these names; each is a task of its own."""
    outcome = Outcome()
    tasks = [PoolTask(name=name, group=name, call=measure, args=(name, again_s)) for name in names]
    print(
        f"running {', '.join(name.removeprefix('bench_') for name in names)} …", file=sys.stderr, flush=True
    )
    with bar("benchmarks", len(tasks), unit="benchmarks") as tell:
        found: dict[str, TaskResult] = {}
        for done in run_tasks(tasks, where):
            found[done.task.name] = done
            if tell is not None:
                tell(0, len(found))
    for name in names:
        short, done = name.removeprefix("bench_"), found[name]
        known = budgets.get(short, {})
        if done.error:
            if done.cause is not None:
                traceback.print_exception(done.cause)
            outcome.rows.append((short, {"name": "crashed", "measured": None, "note": done.error}, "CRASHED"))
            continue
        rows: list[Row] = done.value
        for row in rows:
            outcome.rows.append((short, row, verdict(row, known.get(row["name"], {}))))
        measured = {row["name"] for row in rows}
        for gone in (figure for figure in known if figure not in measured):
            note = "is in budgets.toml, but the benchmark has no such figure"
            outcome.rows.append((short, {"name": gone, "measured": None, "note": note}, "MISSING"))
    return outcome


def number(value: Any) -> str:
    """A number with a readable number of digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _table(outcome: Outcome, budgets: Budgets) -> Table:
    heads = ("benchmark", "figure", "measured", "spread", "target", "goal", "last", "unit", "verdict")
    table = Table(*heads)
    for name, row, word in outcome.rows:
        budget = budgets.get(name, {}).get(row["name"], {})
        target = row.get("target", budget.get("target"))
        sign = "≤" if row.get("better", budget.get("better", "lower")) == "lower" else "≥"
        limit = "–" if target is None else f"{sign} {number(target)}"
        notes = [n for n in (budget.get("known") if word == "known short" else "", row.get("note")) if n]
        text = f"{word}: {'; '.join(notes)}" if notes else word
        numbers = (number(row.get("measured")), number(row.get("spread")), limit, number(row.get("goal")))
        last = number(budget.get("measured"))
        table.add_row(name, row["name"], *numbers, last, row.get("unit", ""), text, style=STYLES.get(word))
    return table


def read(path: Path = FILE) -> Budgets:
    """The budgets; empty if there is no file."""
    if not path.exists():
        return {}
    found: Budgets = tomllib.loads(path.read_text(encoding="utf-8"))
    return found


def updated(budgets: Budgets, outcome: Outcome) -> Budgets:
    """The budgets with the new measurements; figures that disappeared are removed, crashed benchmarks keep theirs."""
    crashed = {name for name, _, word in outcome.rows if word == "CRASHED"}
    found = {name: dict(rows) for name, rows in budgets.items()}
    for name in {n for n, _, _ in outcome.rows} - crashed:
        before, found[name] = budgets.get(name, {}), {}
        for _, row, word in (r for r in outcome.rows if r[0] == name and r[2] != "MISSING"):
            old = before.get(row["name"], {})
            if word == "not run":  # keep what another machine measured
                found[name][row["name"]] = old or {"known": row.get("note", "cannot run here")}
                continue
            entry = {**old, **{k: v for k, v in row.items() if k in FIELDS and v is not None}}
            if word == "ok":
                entry.pop("known", None)
            found[name][row["name"]] = entry
    return found


def write(budgets: Budgets, path: Path = FILE) -> None:
    """Write the budgets as TOML: benchmarks by name, figures in their own order."""
    lines = [
        "# Targets and last measurements (`python -m benchmarks --update`); known: why a figure may miss its target."
    ]
    for name in sorted(budgets):
        for figure, row in budgets[name].items():
            lines += ["", f"[{name}.{json.dumps(figure, ensure_ascii=False)}]"]
            lines += [f"{key} = {_toml(row[key])}" for key in FIELDS if key in row]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(float(f"{float(value):.6g}")) if not float(value).is_integer() else repr(float(value))


def main(given: Sequence[str] | None = None) -> int:
    """Run the benchmarks and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("only", nargs="*", help="names of benchmarks, for example: files cluster")
    parser.add_argument("--update", action="store_true", help="write the measurements to budgets.toml")
    parser.add_argument(
        "--again", type=float, default=15.0, metavar="S", help="repeat benchmarks that take less CPU time"
    )
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="run N beside each other, or N workers of --on"
    )
    parser.add_argument("--on", default="", metavar="ray://HOST:PORT", help="run on a Ray cluster")
    options = parser.parse_args(given)
    every = sorted(m.name for m in pkgutil.iter_modules([str(Path(benchmarks.__file__).parent)]))
    names = [n for n in every if n.startswith("bench_") and (not options.only or n[6:] in options.only)]
    if unknown := sorted(set(options.only) - {n[6:] for n in names}):
        known = ", ".join(n[6:] for n in every if n.startswith("bench_"))
        print(f"Unknown benchmark: {', '.join(unknown)}. Known: {known}.", file=sys.stderr)
        return 2
    budgets = read()
    outcome = run(names, budgets, options.again, Where(options.jobs, options.on))
    console = Console()
    (console if console.is_terminal else Console(width=190)).print(_table(outcome, budgets))
    if options.update:
        write(updated(budgets, outcome))
        print(f"wrote {FILE.name}")
    words = ("ok", "SHORT", "known short", "not run", "MISSING", "CRASHED")
    print(", ".join(f"{outcome.count(word)} {word}" for word in words))
    return int(outcome.count("SHORT", "MISSING", "CRASHED") > 0)


if __name__ == "__main__":
    sys.exit(main())
