"""How the time of a slot grows with the jobs in it: beyond the paper, which plots no running time of its own."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import numpy as np

from tradewind.lab.study import Effort, Finding, Row, spread
from tradewind.systems.mlbroker.kernels.search import search
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.workload.draw import DrawSettings
from tradewind.systems.mlbroker.workload.slot import drawn_slot

SIZES = (100, 300, 1000, 3000)
SITES = 15
SEEDS = (3, 4, 5)
MOST = 1.3
"""Time per job with the most jobs over time per job with the fewest: above that, growth counts as worse than linear."""


def cpu_seconds(cases: dict[int, Slot], repeats: int) -> dict[int, float]:
    """CPU seconds of deciding each slot, best of some rounds over all of them; compiled beforehand.

    All sizes take turns, so that whatever else the machine does falls on all of them.
    """
    search(next(iter(cases.values())))
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(repeats):
        for jobs, case in cases.items():
            begin = process_time()
            search(case)
            best[jobs] = min(best[jobs], process_time() - begin)
    return best


def growth(sizes: Sequence[int], seeds: Sequence[int], repeats: int) -> list[Row]:
    """One row per size and seed: seconds of one slot of the narrow family."""
    rows: list[Row] = []
    for seed in seeds:
        cases = {jobs: drawn_slot(DrawSettings(family="narrow", sites=SITES), seed, jobs) for jobs in sizes}
        rows += [{"jobs": n, "seconds": s} for n, s in cpu_seconds(cases, repeats).items()]
    return rows


def exponents(rows: Sequence[Row]) -> tuple[float, float]:
    """(time per job at most jobs over at fewest, slope of log time over log jobs) of the means over the seeds."""
    sizes = sorted({float(row["jobs"]) for row in rows})
    mean = [np.mean([float(row["seconds"]) for row in rows if row["jobs"] == n]) for n in sizes]
    ratio = float(mean[-1] / sizes[-1] * sizes[0] / mean[0])
    return ratio, float(np.polyfit(np.log(sizes), np.log(mean), 1)[0])


def growth_figure(effort: Effort) -> list[Row]:
    """Seconds over jobs, and the straight line through the smallest size."""
    sizes = effort.pick(SIZES[:2], SIZES)
    measured = spread(growth(sizes, SEEDS[: effort.pick(1, 3)], effort.pick(2, 3)), ("jobs",), "seconds")
    first = float(measured[0]["seconds"]) / float(measured[0]["jobs"])
    rows: list[Row] = [{"line": "measured", **row} for row in measured]
    for row in measured:
        value = first * float(row["jobs"])
        rows.append({"line": "linear", **row, "seconds": value, "low": value, "high": value})
    return rows


def judge_growth(rows: Sequence[Row]) -> Finding:
    """Linear or better, within what a busy machine lets one measure."""
    measured = [row for row in rows if row["line"] == "measured"]
    ratio, slope = exponents(measured)
    low, high = (f"{f(float(row['jobs']) for row in measured):g}" for f in (min, max))
    return Finding(
        word="reproduced" if ratio <= MOST else "not reproduced",
        reason=f"a job costs {ratio:.2f} times as much time with {high} jobs as with {low} (limit {MOST:g}); time grows as "
        f"jobs^{slope:.2f}",
    )
