"""Lower bounds for fixed jobs on a cluster: mean completion time and makespan.

A job of g GPUs and runtime p is relaxed to divisible, preemptible work g * p on one machine of speed G (for each resource
with a limit). On one machine, shortest remaining work first is optimal for the sum of completion times (Schrage 1968), so

    mean JCT >= max( mean p, mean over the relaxation of (C_j - r_j) )

for every schedule that the audit accepts, preemptive or not, with or without knowledge of the future.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import fsum

from tradewind.model.job import Fixed
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import UNLIMITED, US_PER_S


def _jobs(scenario: Scenario) -> list[tuple[int, int, tuple[tuple[int, int], ...]]] | None:
    """(arrival, runtime, total demand) of every job; None where a job is not fixed work."""
    rows = []
    for job, customer in zip(scenario.jobs, scenario.customers, strict=True):
        if not isinstance(job.work, Fixed):
            return None
        runtime = job.work.runtime_us if job.work.runtime_us is not None else customer.runtime_us
        assert runtime is not None
        rows.append((job.arrive_us, runtime, tuple((r, m * job.workers_min) for r, m in job.worker)))
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
    """The certified bound; None unless all jobs are fixed work that fits the cluster and nothing changes."""
    rows = _jobs(scenario)
    if not rows or scenario.changes:
        return None
    setup = scenario.setup
    scarce = {r: _capacity(scenario, r) for r in range(len(setup.resources))}
    if any(scarce[r] and m > scarce[r] for _, _, demand in rows for r, m in demand):
        return None  # a job that never fits is refused, and the mean is then over fewer jobs
    longest = max(arrive + runtime for arrive, runtime, _ in rows) - min(arrive for arrive, _, _ in rows)
    best = fsum(runtime for _, runtime, _ in rows) / len(rows)
    spread = float(longest)
    for r, capacity in scarce.items():
        if capacity:
            work = [(arrive, runtime * dict(demand).get(r, 0)) for arrive, runtime, demand in rows]
            best = max(best, shortest_remaining_sum(work, capacity) / len(rows))
            spread = max(spread, sum(w for _, w in work) / capacity)
    value = best if setup.objective == "jct_mean_s" else spread
    return Bound(value=value / US_PER_S, sense="min", kind="certified")
