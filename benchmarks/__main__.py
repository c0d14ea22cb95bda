"""`make bench [ONLY=name]`: one table of all figures against their targets; says plainly what falls short.

Every `bench_*.py` has `rows() -> list[dict]` with the keys name, measured, unit, target, better ("lower" or "higher") and,
where there is one, spread (of repeats) and goal. Targets are the project's own; nothing here is ever skipped silently:
a benchmark that cannot run (a data file that is not there) says so in its row.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import benchmarks

Row = dict[str, Any]


def verdict(row: Row) -> str:
    """ok, SHORT or not run."""
    measured, target = row.get("measured"), row.get("target")
    if measured is None:
        return "not run"
    if target is None:
        return "–"
    good = measured <= target if row["better"] == "lower" else measured >= target
    return "ok" if good else "SHORT"


def number(value: Any) -> str:
    """A figure for people."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def main() -> int:
    """Runs the benchmarks; exit code 1 where one crashed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help="names of benchmarks, for example: files cluster")
    wanted = set(parser.parse_args().only)
    names = sorted(m.name for m in pkgutil.iter_modules([str(Path(benchmarks.__file__).parent)]))
    crashed = short = 0
    table = Table("benchmark", "figure", "measured", "spread", "target", "goal", "unit", "verdict")
    for name in (n for n in names if n.startswith("bench_") and (not wanted or n[6:] in wanted)):
        print(f"running {name[6:]} …", file=sys.stderr, flush=True)
        try:
            rows: list[Row] = importlib.import_module(f"benchmarks.{name}").rows()
        except Exception:
            traceback.print_exc()
            crashed += 1
            table.add_row(name[6:], "crashed", "–", "–", "–", "–", "", "CRASHED", style="red")
            continue
        for row in rows:
            word = verdict(row)
            short += word == "SHORT"
            target = (
                "–"
                if row.get("target") is None
                else f"{'≤' if row['better'] == 'lower' else '≥'} {number(row['target'])}"
            )
            cells = (number(row.get("measured")), number(row.get("spread")), target, number(row.get("goal")))
            note = f"{word}: {row['note']}" if row.get("note") else word
            style = "red" if word == "SHORT" else "yellow" if word == "not run" else None
            table.add_row(name[6:], row["name"], *cells, row.get("unit", ""), note, style=style)
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(table)
    print(f"{short} fall short, {crashed} crashed")
    return int(crashed > 0)


if __name__ == "__main__":
    sys.exit(main())
