"""Expected duration of figures: CPU seconds of earlier runs, by figure, in `lab/times.json`.

`python -m tradewind.lab.reproduce_times DIR` adds the times of the results saved in DIR. A full run that was never measured
is estimated from the quick one by the ratio of full to quick of the other figures of its system.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from tradewind.lab.study import Effort

Times = dict[str, dict[str, float]]
"""quick or full -> "system/figure" -> CPU seconds."""
FILE = "times.json"
SAVED = "kept"
"""Folder of saved results in the output of `tradewind reproduce`."""
UNKNOWN_S = 20.0
USUAL_RATIO = 15.0
"""Full / quick if no figure of a system was measured both ways."""


@cache
def measured() -> Times:
    """The table that ships with the project."""
    text = resources.files("tradewind.lab").joinpath(FILE).read_text(encoding="utf-8")
    found: Times = json.loads(text)
    return found


def expected(system: str, figure: str, effort: Effort, times: Times | None = None) -> tuple[float, bool]:
    """(CPU seconds of a figure, whether they were measured)."""
    known = measured() if times is None else times
    name, kind = f"{system}/{figure}", "quick" if effort.quick else "full"
    if name in known[kind]:
        return known[kind][name], True
    quick = known["quick"].get(name, UNKNOWN_S)
    return (quick, False) if effort.quick else (quick * _ratio(system, known), False)


def _ratio(system: str, known: Times) -> float:
    both = [n for n in known["full"] if n.startswith(f"{system}/") and n in known["quick"]]
    quick, full = (sum(known[kind][n] for n in both) for kind in ("quick", "full"))
    return full / quick if quick else USUAL_RATIO


def total(figures: Iterable[tuple[str, str]], effort: Effort) -> tuple[float, float]:
    """(total CPU seconds, the share of them that was measured)."""
    found = [expected(system, figure, effort) for system, figure in figures]
    seconds = sum(s for s, _ in found)
    return seconds, sum(s for s, known in found if known) / seconds if seconds else 1.0


def words(seconds: float) -> str:
    """A rough duration: 40 s, 7 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def collect(folder: Path, known: Times) -> Times:
    """The table updated with the results saved by `tradewind reproduce`; parts of a figure are summed."""
    found: dict[str, dict[str, float]] = {"quick": {}, "full": {}}
    for path in sorted((folder / SAVED).glob("*.json")):
        saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kind = found["quick" if saved["quick"] else "full"]
        name = f"{saved['system']}/{saved['figure']}"
        kind[name] = kind.get(name, 0.0) + saved["cpu_s"]
    return {
        kind: dict(sorted({**known[kind], **{n: round(s, 1) for n, s in found[kind].items()}}.items()))
        for kind in ("quick", "full")
    }


def main() -> None:
    """Update the table from the folder given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m tradewind.lab.reproduce_times", description=__doc__)
    parser.add_argument(
        "folder",
        type=Path,
        help="output folder (-o DIR) of `tradewind reproduce`",
    )
    times = collect(parser.parse_args().folder, measured())
    path = Path(str(resources.files("tradewind.lab").joinpath(FILE)))
    path.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(times['quick'])} quick, {len(times['full'])} full")


if __name__ == "__main__":
    main()
