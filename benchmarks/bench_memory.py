"""Memory of a session that drops what is over: a million jobs, made on the fly, every instant audited.

Each policy runs in a process of its own. Memory (resident, from /proc) is read every 10,000 jobs; the figure is the largest
reading after the first tenth of the jobs over the reading at that point. MEMORY_JOBS sets another number of jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

from tradewind import api
from tradewind.engine.session import Session
from tradewind.registry import policies
from tradewind.testing.endless import endless_run

JOBS = int(os.environ.get("MEMORY_JOBS", "1000000"))
FLAT = 1.1
WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo-backfill": ("cluster", {"jobs": 2000, "servers": 20, "load": 0.8}),
    "dps": ("dps", {"jobs": 5000, "slots": 5000}),
}
STATM = Path("/proc/self/statm")


def resident_mb() -> float:
    """Memory of this process."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(name: str, jobs: int) -> dict[str, float]:
    """Growth after warm-up, jobs per CPU second and the size of a last snapshot."""
    workload, params = WORKLOADS[name]
    over, due, readings, snapshot = 0, 0, list[float](), 0

    def count(_: object) -> None:
        nonlocal over
        over += 1

    begin = process_time()
    for state in endless_run(policies.find(name), api.generate(workload, **params), jobs, count):
        if over >= due and isinstance(state, Session):
            readings.append(resident_mb())
            due += max(1, jobs // 100)
            if due > 0.9 * jobs:
                snapshot = len(state.snapshot())
    pace = jobs / (process_time() - begin)
    warm = readings[10]
    return {"growth": max(readings[10:]) / warm, "warm_mb": warm, "pace": pace, "snapshot_kb": snapshot / 1e3}


def rows() -> list[dict[str, Any]]:
    """One row per policy for growth, and its pace."""
    found: list[dict[str, Any]] = []
    for name in WORKLOADS:
        figure = f"{name}: memory after all jobs / after a tenth"
        if not STATM.exists():
            found.append({"name": figure, "measured": None, "note": "needs /proc"})
            continue
        command = [sys.executable, "-m", "benchmarks.bench_memory", name, str(JOBS)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        got = json.loads(done.stdout)
        note = (
            f"{JOBS:,} jobs; {got['warm_mb']:.0f} MB after a tenth; last snapshot {got['snapshot_kb']:.0f} kB"
        )
        found.append(
            {
                "name": figure,
                "measured": got["growth"],
                "unit": "",
                "target": FLAT,
                "better": "lower",
                "note": note,
            }
        )
        pace = {"name": f"{name}, dropping what is over", "measured": got["pace"], "better": "higher"}
        found.append({**pace, "unit": "jobs per CPU second", "target": 1_000})
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
