"""Sweeps over 2 workers: local processes and Ray workers of this machine, against one process; overhead per task."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.fleets.ray_cluster import RayCluster, missing

import tradewind as tw
from tradewind.tasks.pool import PoolTask, Where, run_tasks

EMPTY = 400
"""Tasks that do nothing."""
JOBS, SEEDS = 20_000, 6
LIMIT_S = 900
ON = f"ray://{RayCluster.address}"
KINDS = (("processes", Where(2)), ("Ray", Where(2, ON)))
REPEAT = "from benchmarks.bench_sweeps import main; main()"


def nothing() -> None:
    """A task."""


def per_task_s(where: Where) -> float:
    """Seconds per task that does nothing, once workers are there."""
    results = run_tasks([PoolTask(name="", group="", call=nothing, args=())] * EMPTY, where)
    for _ in range(2):
        next(results)
    begin = perf_counter()
    for _ in results:
        pass
    return (perf_counter() - begin) / (EMPTY - 2)


def compare_s(where: Where) -> float:
    """Seconds of a comparison, workers and all."""
    scenarios = [tw.generate("cluster", jobs=JOBS, seed=seed) for seed in range(SEEDS)]
    begin = perf_counter()
    tw.compare(scenarios, ["srsf", "las", "fifo"], seeds=range(SEEDS), where=where)
    return perf_counter() - begin


def rows() -> list[dict[str, Any]]:
    """The figures, measured where the cluster can be reached."""
    if missing():
        return [{"name": "overhead of a task, Ray", "measured": None, "note": missing()}]
    cluster = RayCluster(("a1",))
    try:
        cluster.start()
        argv = [*cluster.command, sys.executable, "-c", REPEAT]
        folder = Path(__file__).parents[1]
        said = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=folder, timeout=LIMIT_S)
    finally:
        cluster.stop()
    serial, *measured = (float(word) for word in said.stdout.split())
    found = []
    for (kind, _), each_s, whole_s in zip(KINDS, measured[::2], measured[1::2], strict=True):
        found += [
            {"name": f"overhead of a task, {kind}", "measured": each_s * 1e3, "unit": "ms", "target": 10.0,
             "better": "lower"},
            {"name": f"speed-up of 2 workers, {kind}", "measured": serial / whole_s, "unit": "times", "better": "higher",
             "note": f"{whole_s:.1f} s, start of the workers included, against {serial:.1f} s in one process"},
        ]  # fmt: skip
    return found


def main() -> None:
    """Print all seconds; runs in the network of the cluster."""
    compare_s(Where())  # compiles
    print(compare_s(Where()), *(second(where) for _, where in KINDS for second in (per_task_s, compare_s)))
