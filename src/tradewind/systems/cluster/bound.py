"""Lower bounds for fixed jobs and for rings of worker-slots on a cluster: mean completion time and makespan.

A job of g GPUs and runtime p is relaxed to divisible, preemptible work g * p on one machine of speed G (for each resource
with a limit). A job of n worker-slots runs at least n / (its most workers) slots. On one machine, shortest remaining work
first is optimal for the sum of completion times (Schrage 1968), so

    mean JCT >= max( mean p, mean over the relaxation of (C_j - r_j) )

for every schedule that the audit accepts, preemptive or not, with or without knowledge of the future.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import fsum
from typing import NamedTuple

from tradewind.model.job import Demand, Fixed, Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import UNLIMITED, US_PER_S


class _Work(NamedTuple):
    """Arrival, least runtime, least milli-units at once, and resource -> milli-units times microseconds in all."""

    arrive_us: int
    runtime_us: int
    least: Demand
    used: dict[int, int]


def _jobs(scenario: Scenario) -> list[_Work] | None:
    """The work of every job; None where a job is of another kind."""
    rows = []
    for job, customer in zip(scenario.jobs, scenario.customers, strict=True):
        work = job.work
        least = tuple((r, m * job.workers_min) for r, m in job.worker)
        if isinstance(work, Fixed):
            runtime = work.runtime_us if work.runtime_us is not None else customer.runtime_us
            assert runtime is not None
            rows.append(_Work(job.arrive_us, runtime, least, {r: m * runtime for r, m in least}))
        elif isinstance(work, Rounds) and work.unit == "worker-slot" and job.utility is None and not job.caps:
            span = work.count * scenario.setup.slot_us
            used = {r: m * span for r, m in job.worker}
            rows.append(_Work(job.arrive_us, span // job.workers_max, least, used))
        else:
            return None
    return rows


def _capacity(scenario: Scenario, resource: int) -> int:
    """Total milli-units of a resource; 0 where it is unlimited."""
    nodes = scenario.setup.nodes
    total = sum(nodes[h].capacity_milli[resource] for h in scenario.setup.hosts)
    return total if total < UNLIMITED else 0


def shortest_remaining_sum(rows: list[tuple[int, int]], capacity: int) -> float:
    """Sum of flow times of (arrival, work) rows on one machine of speed `capacity`, shortest remaining work first."""
    heap: list[tuple[float, int]] = []
    now, total, i, n = 0.0, [], 0, len(rows)
    while i < n or heap:
        if not heap:
            now = max(now, float(rows[i][0]))
        while i < n and rows[i][0] <= now:
            heappush(heap, (rows[i][1] / capacity, rows[i][0]))
            i += 1
        left, arrived = heappop(heap)
        until = float(rows[i][0]) if i < n else float("inf")
        if now + left <= until:
            now += left
            total.append(now - arrived)
        else:
            heappush(heap, (left - (until - now), arrived))
            now = until
    return fsum(total)


def bound(scenario: Scenario) -> Bound | None:
    """The certified bound; None unless all jobs are such work that fits the cluster and nothing changes."""
    rows = _jobs(scenario)
    if not rows or scenario.changes:
        return None
    setup = scenario.setup
    scarce = {r: _capacity(scenario, r) for r in range(len(setup.resources))}
    if any(scarce[r] and m > scarce[r] for row in rows for r, m in row.least):
        return None  # a job that never fits is refused, and the mean is then over fewer jobs
    longest = max(row.arrive_us + row.runtime_us for row in rows) - min(row.arrive_us for row in rows)
    best = fsum(row.runtime_us for row in rows) / len(rows)
    spread = float(longest)
    for r, capacity in scarce.items():
        if capacity:
            work = [(row.arrive_us, row.used.get(r, 0)) for row in rows]
            best = max(best, shortest_remaining_sum(work, capacity) / len(rows))
            spread = max(spread, sum(w for _, w in work) / capacity)
    value = best if setup.objective == "jct_mean_s" else spread
    return Bound(value=value / US_PER_S, sense="min", kind="certified")
