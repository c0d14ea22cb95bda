"""Dominant resource fairness (Ghodsi et al., NSDI 2011), without preemption.

A tenant's dominant share is its largest share of any resource: max over r of used_r / total_r. Progressive filling:
among the tenants whose next job fits, the one with the smallest dominant share is served, until none is left. A job
without a tenant counts as a tenant of its own.
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
from tradewind.systems.cluster.shared.scheduler import Scheduler, start
from tradewind.systems.cluster.shared.shape import Shape


class Drf(Scheduler):
    """Queues of waiting jobs: one per tenant, and one per shape for jobs without a tenant (whose share is 0)."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._queues: dict[str | int, deque[tuple[int, Shape]]] = {}
        self._owner: dict[int, str] = {}
        self._used: dict[str, list[int]] = {}

    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        if facts.tenant:
            self._owner[job] = facts.tenant
        self._queues.setdefault(facts.tenant or shape.number, deque()).append((job, shape))

    def finish(self, job: int) -> None:
        tenant = self._owner.pop(job, None)
        if tenant is not None:
            self._charge(tenant, self.cluster.places[job][1], -1)

    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        tenant = self._owner.get(job)
        if tenant is not None:
            self._charge(tenant, shape, -1)
        queue = self._queues.get(tenant or shape.number, ())
        self._queues[tenant or shape.number] = deque(
            sorted([*queue, (job, shape)], key=lambda entry: entry[0])
        )

    def drop(self, job: int) -> None:
        self._owner.pop(job, None)
        for queue, waiting in self._queues.items():
            left = deque(entry for entry in waiting if entry[0] != job)
            if len(left) < len(waiting):
                self._queues[queue] = left
                if not left:
                    del self._queues[queue]
                return

    def _charge(self, tenant: str, shape: Shape, sign: int) -> None:
        used = self._used.setdefault(tenant, [0] * len(self.setup.resources))
        for resource, milli in shape.amounts:
            used[resource] += sign * milli

    def _share(self, queue: str | int, totals: list[int]) -> float:
        """Dominant share; unlimited resources do not count."""
        used = self._used.get(queue) if isinstance(queue, str) else None
        if used is None:
            return 0.0
        return max((u / t for u, t in zip(used, totals, strict=True) if u and 0 < t < UNLIMITED), default=0.0)

    def decide(self, view: View) -> Decision:
        verdicts = self.observe(view)
        cluster, queues, now, plans = self.cluster, self._queues, view.now_us, []
        if not queues:
            return Decision((), tuple(verdicts)) if verdicts else NOTHING
        totals = cluster.totals()
        # (dominant share, job, queue): on equal shares the job that arrived first
        heads = [(self._share(queue, totals), waiting[0][0], queue) for queue, waiting in queues.items()]
        heapify(heads)
        while heads:
            _, job, queue = heads[0]
            shape = queues[queue][0][1]
            place = cluster.take(job, shape)
            if place is None:  # room only shrinks within a decision, so this queue is done for now
                heappop(heads)
                continue
            plans.append(start(now, job, place))
            queues[queue].popleft()
            if isinstance(queue, str):
                self._charge(queue, shape, 1)
            if queues[queue]:
                heapreplace(heads, (self._share(queue, totals), queues[queue][0][0], queue))
            else:
                del queues[queue]
                heappop(heads)
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_queues(self) -> Any:
        queues = [[queue, [(job, s.number) for job, s in entries]] for queue, entries in self._queues.items()]
        return {"lines": queues, "owner": list(self._owner.items()), "used": self._used}

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._queues = {
            queue: deque((job, shapes[number]) for job, number in entries) for queue, entries in data["lines"]
        }
        self._owner = dict(data["owner"])
        self._used = data["used"]


def _drf(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Drf:
    return Drf(setup)


DRF = Spec(
    name="drf",
    summary="Dominant resource fairness among tenants (among jobs without tenants), without preemption",
    factory=_drf,
    works=WORKS,
    system="cluster",
)
