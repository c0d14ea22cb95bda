"""Throughput of the whole audited loop on traces (one process, CPU seconds), beside a bare loop without audit or records.

The Philly trace is read from TRADEWIND_TRACES (a folder with philly.csv) or ../shared/data/traces; without it, a generated
trace of the same size is used and the row says so.
"""

from __future__ import annotations

import os
import resource
from heapq import heappop, heappush
from pathlib import Path
from time import process_time
from typing import Any

from tradewind import api
from tradewind.model.job import Fixed
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate

JOBS = 82_247
TARGETS = {"fifo": (30_000, 40_000), "las": (12_000, 16_000), "srtf": (1_000, 3_000)}


def folder() -> Path:
    """Where recorded traces are, if anywhere."""
    return Path(os.environ.get("TRADEWIND_TRACES", "../shared/data/traces"))


def scenario(servers: int) -> tuple[Scenario, str]:
    """The Philly trace on a cluster, or a generated trace of the same size."""
    file = folder() / "philly.csv"
    if file.exists():
        made = api.generate("trace", file=str(file), format="philly", servers=servers, gpus_per_server=8)
        return made, ""
    load = 0.5 if servers > 100 else 1.1
    return api.generate(
        "cluster", jobs=JOBS, servers=servers, load=load
    ), "generated trace; the Philly trace was not found"


def bare_fifo(data: Scenario) -> float:
    """Mean completion time of fifo in seconds by counting GPUs: a plain loop without any check."""
    free = sum(data.setup.nodes[h].capacity_milli[0] for h in data.setup.hosts) // 1000
    running: list[tuple[int, int]] = []
    now, total = 0, 0
    for job in data.jobs:
        now = max(now, job.arrive_us)
        while running and running[0][0] <= now:
            free += heappop(running)[1]
        while free < job.workers_max:
            now, gpus = heappop(running)
            free += gpus
        assert isinstance(job.work, Fixed)
        assert job.work.runtime_us is not None
        free -= job.workers_max
        heappush(running, (now + job.work.runtime_us, job.workers_max))
        total += now + job.work.runtime_us - job.arrive_us
    return total / len(data.jobs) / 1e6


def rows() -> list[dict[str, Any]]:
    """Jobs per second and memory, idle (312 servers) and crowded (52)."""
    found: list[dict[str, Any]] = []
    for servers in (312, 52):
        data, note = scenario(servers)
        begin = process_time()
        bare = bare_fifo(data)
        bare_pace = len(data.jobs) / (process_time() - begin)
        for name, (target, goal) in TARGETS.items():
            spec = policies.find(name)
            simulate(api.generate("cluster", jobs=30), spec, fast=False)
            begin = process_time()
            run = simulate(data, spec, fast=False)
            pace = len(data.jobs) / (process_time() - begin)
            row = {
                "name": f"{name}, {servers} servers",
                "measured": pace,
                "unit": "jobs per CPU second",
                "better": "higher",
                "note": note,
            }
            found.append(row | {"target": target, "goal": goal})
            if name == "fifo":
                same = abs(run.metrics["jct_mean_s"] - bare) < 5e-4
                extra = f"a bare loop without audit does {bare_pace:,.0f}/s; mean JCT {'equal' if same else 'DIFFERENT'}"
                found[-1]["note"] = "; ".join(filter(None, (note, extra)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found.append({"name": "peak memory", "measured": memory, "unit": "GB", "target": 1.0, "better": "lower"})
    return found
