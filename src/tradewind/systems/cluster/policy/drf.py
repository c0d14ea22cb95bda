"""Dominant resource fairness (Ghodsi et al., NSDI 2011), without preemption.

A tenant's dominant share is its largest share of any resource: max over r of used_r / total_r. Progressive filling:
the tenant with the smallest dominant share among those whose next job fits is served first, again and again. A job
without a tenant is a tenant of its own, so without tenants the shares that count are those of jobs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np

from tradewind.model.decision import NOTHING, Decision
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.units import UNLIMITED
from tradewind.model.view import View
from tradewind.systems.cluster.policy.fifo import WORKS
from tradewind.systems.cluster.shared.placement import Shape
from tradewind.systems.cluster.shared.scheduler import Desk, start


class Drf(Desk):
    """Lines of waiting jobs: one per tenant, and one per shape for jobs without a tenant (whose share is 0)."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._lines: dict[str | int, deque[tuple[int, Shape]]] = {}
        self._owner: dict[int, str] = {}
        self._used: dict[str, list[int]] = {}

    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        if facts.tenant:
            self._owner[job] = facts.tenant
        self._lines.setdefault(facts.tenant or shape.number, deque()).append((job, shape))

    def leave(self, job: int) -> None:
        tenant = self._owner.pop(job, None)
        if tenant is not None:
            self._book(tenant, self.cluster.places[job][1], -1)

    def back(self, job: int, shape: Shape, kept: int) -> None:
        tenant = self._owner.get(job)
        if tenant is not None:
            self._book(tenant, shape, -1)
        line = self._lines.get(tenant or shape.number, ())
        self._lines[tenant or shape.number] = deque(sorted([*line, (job, shape)], key=lambda entry: entry[0]))

    def _book(self, tenant: str, shape: Shape, sign: int) -> None:
        used = self._used.setdefault(tenant, [0] * len(self.setup.resources))
        for resource, milli in shape.amounts:
            used[resource] += sign * milli

    def _share(self, line: str | int, totals: list[int]) -> float:
        """Dominant share; resources without a limit do not count."""
        used = self._used.get(line) if isinstance(line, str) else None
        if used is None:
            return 0.0
        return max((u / t for u, t in zip(used, totals, strict=True) if u and 0 < t < UNLIMITED), default=0.0)

    def decide(self, view: View) -> Decision:
        verdicts = self.hear(view)
        cluster, lines, now, plans = self.cluster, self._lines, view.now_us, []
        if not lines:
            return Decision((), tuple(verdicts)) if verdicts else NOTHING
        totals = cluster.totals()
        # (dominant share, job, line): on equal shares the job that came first
        heads = [(self._share(line, totals), waiting[0][0], line) for line, waiting in lines.items()]
        heapify(heads)
        while heads:
            _, job, line = heads[0]
            shape = lines[line][0][1]
            place = cluster.take(job, shape)
            if place is None:  # room only shrinks within a decision, so this line is done for now
                heappop(heads)
                continue
            plans.append(start(now, job, place))
            lines[line].popleft()
            if isinstance(line, str):
                self._book(line, shape, 1)
            if lines[line]:
                heapreplace(heads, (self._share(line, totals), lines[line][0][0], line))
            else:
                del lines[line]
                heappop(heads)
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_queues(self) -> Any:
        lines = [[line, [(job, s.number) for job, s in entries]] for line, entries in self._lines.items()]
        return {"lines": lines, "owner": list(self._owner.items()), "used": self._used}

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._lines = {
            line: deque((job, shapes[number]) for job, number in entries) for line, entries in data["lines"]
        }
        self._owner = dict(data["owner"])
        self._used = data["used"]


def _drf(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Drf:
    return Drf(setup)


DRF = Spec(
    name="drf",
    summary="Dominant resource fairness over tenants (over jobs where there are none), without preemption",
    factory=_drf,
    works=WORKS,
)
