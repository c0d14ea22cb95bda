"""Limits: what conflicts for a single job, and a decision that respects the capacity of sites.

Without binding capacity the search of `kernels.search` is final. With it, jobs are inserted one
by one into what is left and then re-planned in turn, each exactly at the marginal prices the others leave it.
"""

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.mlbroker.kernels.job import solve
from tradewind.systems.mlbroker.kernels.pool import Terms, own_cost, priced_job, terms, workers_that_fit
from tradewind.systems.mlbroker.kernels.prices import bill, marginal
from tradewind.systems.mlbroker.kernels.search import SearchEffort, SlotDecision, search
from tradewind.systems.mlbroker.kernels.slot import Slot

SWEEPS = 3  # rounds of re-planning each job within the capacity that the others leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A job that no decision can satisfy, and the limits that clash, in words."""

    job: int
    limits: str


def conflicts(slot: Slot) -> list[Conflict]:
    """Jobs that cannot be placed even if they were alone."""
    data = terms(slot, 1.0)
    out = []
    enough = np.minimum(data.most, data.need[:, None]).sum(axis=1) >= data.need
    fine = slot.server_ok.any(axis=1) & enough & (data.need <= data.total)
    doubtful = range(slot.shape[0]) if np.isfinite(slot.capacity).any() else np.flatnonzero(~fine).tolist()
    for i in doubtful:
        limits = _conflict(slot, data, i)
        if limits:
            out.append(Conflict(job=i, limits=limits))
    return out


def _conflict(slot: Slot, data: Terms, i: int) -> str:
    """Which limits leave job i alone without a plan; empty when there is one."""
    need = int(data.need[i])
    if not slot.server_ok[i].any():
        return "its parameter server may go to no site"
    if not data.server_ok[i].any():
        return "no site that its parameter server may go to is up and has the capacity for it"
    if need == 0:
        return ""
    if need > data.total[i]:
        return f"its data needs {need} workers, at most {int(data.total[i])} are allowed"
    if not slot.worker_ok[i].any():
        return f"its data needs {need} workers, and they may go to no site"
    limited = bool(np.isfinite(slot.capacity).any())
    if limited and _room_with_server(slot, data, i) < need:
        sites = int(slot.worker_ok[i].sum())
        where = f"the {sites} sites where they may go" if sites > 1 else "the only site where they may go"
        return f"its data needs {need} workers; the capacity of {where} is less"
    return ""


def _room_with_server(slot: Slot, data: Terms, i: int) -> int:
    """The most workers that fit for job i alone beside its server, over the best site of the server."""
    least = int(data.need[i])
    alone = np.minimum(data.most[i], least)
    total = int(alone.sum())
    beside = workers_that_fit(slot.worker[i : i + 1], slot.capacity - slot.server[i])[0]
    beside = np.minimum(np.where(slot.worker_ok[i], beside, 0), least)
    sites = np.flatnonzero(data.server_ok[i])
    return max(int(total - alone[p] + beside[p]) for p in sites)


def usage_of(slot: Slot, workers: Ints, server: Ints) -> Floats:
    """(R, K): what a decision uses; a server of -1 is none."""
    usage: Floats = np.einsum("ir,ik->rk", workers.astype(np.float64), slot.worker)
    placed = server >= 0
    np.add.at(usage, server[placed], slot.server[placed])
    return usage


@dataclass(slots=True)
class _Placement:
    """A decision in the making: workers (I, R), server (I,) or -1, usage (R, K)."""

    slot: Slot
    data: Terms
    servers: int
    workers: Ints
    server: Ints
    usage: Floats

    def take(self, i: int, sign: float) -> None:
        """Add (1) or remove (-1) what job i uses."""
        self.usage += sign * self.workers[i][:, None] * self.slot.worker[i][None, :]
        if self.server[i] >= 0:
            self.usage[self.server[i]] += sign * self.slot.server[i]

    def cost_of(self, i: int) -> float:
        """Own cost of job i's plan plus the rise of the pooled rent when it joins the others; infinite if none."""
        if self.server[i] < 0:
            return float("inf")
        own = _own(self.data, i, int(self.server[i]), self.workers[i])
        before = bill(self.usage, self.data.usd, self.data.intercept)
        self.take(i, 1.0)
        after = bill(self.usage, self.data.usd, self.data.intercept)
        self.take(i, -1.0)
        return float(own + after - before)

    def best(self, i: int) -> tuple[int, Ints]:
        """Cheapest plan of job i at marginal prices within the room that is left; server -1 when none fits."""
        room = self.slot.capacity - self.usage
        price = np.empty(self.usage.shape)
        marginal(self.usage, self.data.usd, self.data.intercept, price)
        server_ok = self.data.server_ok[i] & (self.slot.server[i] <= room + 1e-9).all(axis=1)
        # Workers are counted beside a server wherever it could stand: a little strict, never too loose.
        beside = workers_that_fit(
            self.slot.worker[i : i + 1], room - np.where(server_ok[:, None], self.slot.server[i], 0.0)
        )
        most = np.minimum(self.data.most[i], beside[0])
        job = priced_job(self.data, i, price)._replace(most=most, server_ok=server_ok)
        _, p, y = solve(job, self.servers)
        return (int(p), y) if p >= 0 else self._beside(i, price, room)

    def _beside(self, i: int, price: Floats, room: Floats) -> tuple[int, Ints]:
        """The strict count left no plan: try each site of the server with the exact room of all sites."""
        best, site = float("inf"), -1
        plan = np.zeros(self.usage.shape[0], dtype=np.int64)
        fits = self.data.server_ok[i] & (self.slot.server[i] <= room + 1e-9).all(axis=1)
        for p in np.flatnonzero(fits):
            left = room.copy()
            left[p] -= self.slot.server[i]
            most = np.minimum(self.data.most[i], workers_that_fit(self.slot.worker[i : i + 1], left)[0])
            only = np.zeros(len(fits), dtype=np.bool_)
            only[p] = True
            cost, q, y = solve(
                priced_job(self.data, i, price)._replace(most=most, server_ok=only), self.servers
            )
            if q >= 0 and cost < best:
                best, site, plan = cost, int(q), y
        return site, plan


def _own(data: Terms, i: int, p: int, y: Ints) -> float:
    """What a plan costs beside rent, USD."""
    return float(own_cost(data, i, p, y))


def decide(
    slot: Slot, deploy_weight: float = 1.0, effort: SearchEffort | None = None, before: Floats | None = None
) -> tuple[SlotDecision, Ints]:
    """Decide a slot within its capacity. Returns the answer and the jobs (indices) that found no room.

    Jobs earlier in the slot are placed first when room is short. A job without any plan must be left out beforehand
    (:func:`conflicts`). A job without room has server -1 and no workers.
    """
    effort = effort or SearchEffort()
    answer = search(slot, deploy_weight, effort, before)
    usage = usage_of(slot, answer.workers, answer.server)
    if (usage <= slot.capacity + 1e-9).all():
        return answer, np.zeros(0, dtype=np.int64)
    jobs, sites, kinds = slot.shape
    data = terms(slot, deploy_weight)
    placement = _empty(slot, data, effort.servers)
    _insert(placement, answer.workers, answer.server)
    for _ in range(SWEEPS):
        if not _replan(placement):
            break
    price = np.empty((sites, kinds))
    marginal(placement.usage, data.usd, data.intercept, price)
    own = sum(
        _own(data, i, int(placement.server[i]), placement.workers[i])
        for i in range(jobs)
        if placement.server[i] >= 0
    )
    cost = own + bill(placement.usage, data.usd, data.intercept)
    found = SlotDecision(workers=placement.workers, server=placement.server, cost=float(cost), price=price)
    return found, np.flatnonzero(placement.server < 0).astype(np.int64)


def fitted(slot: Slot, workers: Ints, server: Ints) -> tuple[Ints, Ints]:
    """A decision made to fit: jobs without a server (-1), or beyond the capacity, are planned in what is left."""
    if (server >= 0).all() and (usage_of(slot, workers, server) <= slot.capacity + 1e-9).all():
        return workers, server
    placement = _empty(slot, terms(slot, 1.0), SearchEffort().servers)
    _insert(placement, workers, server)
    return placement.workers, placement.server


def _empty(slot: Slot, data: Terms, servers: int) -> _Placement:
    """No job placed yet."""
    jobs, sites, kinds = slot.shape
    workers, server = np.zeros((jobs, sites), dtype=np.int64), np.full(jobs, -1, dtype=np.int64)
    return _Placement(slot, data, servers, workers, server, np.zeros((sites, kinds)))


def _insert(placement: _Placement, workers: Ints, server: Ints) -> None:
    """In order: each job gets what was wished for where that still fits, else its best in the rest."""
    slot = placement.slot
    for i in range(slot.shape[0]):
        if server[i] < 0:
            continue
        placement.workers[i], placement.server[i] = workers[i], server[i]
        placement.take(i, 1.0)
        if (placement.usage > slot.capacity + 1e-9).any():
            placement.take(i, -1.0)
            placement.workers[i], placement.server[i] = 0, -1
    for i in np.flatnonzero(placement.server < 0).tolist():
        placement.server[i], placement.workers[i] = placement.best(i)
        placement.take(i, 1.0)


def _replan(placement: _Placement) -> bool:
    """Every job in turn leaves and takes its best plan in what the others leave, if that is cheaper."""
    moved = False
    for i in range(placement.slot.shape[0]):
        had_server, had_workers = int(placement.server[i]), placement.workers[i].copy()
        placement.take(i, -1.0)
        old = placement.cost_of(i)
        server, workers = placement.best(i)
        if server >= 0:
            placement.server[i], placement.workers[i] = server, workers
            if placement.cost_of(i) < old * (1.0 - 1e-9):
                moved = True
            else:
                placement.server[i], placement.workers[i] = had_server, had_workers
        placement.take(i, 1.0)
    return moved
