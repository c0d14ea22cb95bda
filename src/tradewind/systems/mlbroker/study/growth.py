"""How the time of a slot's decision grows with the number of jobs. Not in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import numpy as np

from tradewind.lab.study import Effort, Judged, Row, spread
from tradewind.systems.mlbroker.kernels.search import search
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.workload.draw import DrawSettings
from tradewind.systems.mlbroker.workload.slot import drawn_slot

SIZES = (100, 300, 1000, 3000)
SITES = 15
SEEDS = (3, 4, 5)
MOST_GROWTH = 1.3
"""Time per job with the most jobs over that with the fewest; above this, growth counts as worse than linear."""


def cpu_seconds(cases: dict[int, Slot], repeats: int) -> dict[int, float]:
    """CPU seconds of deciding each slot, best of `repeats`, without compilation.

    Sizes take turns, so that other load on the machine affects all of them.
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
    """CPU seconds of one slot of the narrow family, one row per size and seed."""
    rows: list[Row] = []
    for seed in seeds:
        cases = {jobs: drawn_slot(DrawSettings(family="narrow", sites=SITES), seed, jobs) for jobs in sizes}
        rows += [{"jobs": n, "seconds": s} for n, s in cpu_seconds(cases, repeats).items()]
    return rows


def exponents(rows: Sequence[Row]) -> tuple[float, float]:
    """Time per job with the most jobs over that with the fewest, and the slope of log time over log jobs; means of seeds."""
    sizes = sorted({float(row["jobs"]) for row in rows})
    mean = [np.mean([float(row["seconds"]) for row in rows if row["jobs"] == n]) for n in sizes]
    ratio = float(mean[-1] / sizes[-1] * sizes[0] / mean[0])
    return ratio, float(np.polyfit(np.log(sizes), np.log(mean), 1)[0])


def growth_figure(effort: Effort) -> list[Row]:
    """Measured seconds over jobs, and linear growth from the smallest size."""
    sizes = effort.pick(SIZES[:2], SIZES)
    measured = spread(growth(sizes, SEEDS[: effort.pick(1, 3)], effort.pick(2, 3)), ("jobs",), "seconds")
    first = float(measured[0]["seconds"]) / float(measured[0]["jobs"])
    rows: list[Row] = [{"line": "measured", **row} for row in measured]
    for row in measured:
        value = first * float(row["jobs"])
        rows.append({"line": "linear", **row, "seconds": value, "low": value, "high": value})
    return rows


def linear(rows: Sequence[Row], _policy: str) -> Judged:
    """Linear or better, within the accuracy of a busy machine."""
    measured = [row for row in rows if row["line"] == "measured"]
    ratio, slope = exponents(measured)
    low, high = (f"{f(float(row['jobs']) for row in measured):g}" for f in (min, max))
    return Judged(
        ratio <= MOST_GROWTH,
        f"time per job with {high} jobs is {ratio:.2f} times that with {low} (limit {MOST_GROWTH:g}); "
        f"time grows as jobs^{slope:.2f}",
    )
