"""Limits of jobs and sites: conflicts that rule a job out, and decisions within the capacity of sites.

Without binding capacity the search of `kernels.search` is final. Otherwise jobs are inserted one by one into the
remaining capacity and then re-planned in turn, each at the marginal prices that the others leave it.
"""

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.systems.mlbroker.kernels.pool import Terms, own_cost, priced_job, terms, workers_that_fit
from tradewind.systems.mlbroker.kernels.prices import bill, marginal
from tradewind.systems.mlbroker.kernels.search import SearchEffort, SlotDecision, search
from tradewind.systems.mlbroker.kernels.slot import NO_LIMIT, NO_SITE, Slot
from tradewind.systems.mlbroker.kernels.tree import cheapest

SWEEPS = 3
"""Rounds of re-planning each job within the capacity that the others leave."""
SLACK = 1e-9
"""Units by which use may exceed capacity through rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A job that no decision can place, and the limits that rule it out, as a sentence."""

    job: int
    limits: str


def conflicts(slot: Slot) -> list[Conflict]:
    """Jobs that could not be placed even alone."""
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
    """The limits that leave job i without a plan even alone, or ""."""
    need = int(data.need[i])
    if not slot.server_ok[i].any():
        return "no site is allowed for its parameter server and is up"
    if not data.server_ok[i].any():
        return "no site allowed for its parameter server has the capacity for it"
    if need == 0:
        return ""
    if need > data.total[i]:
        return f"its data needs {need} workers, but at most {int(data.total[i])} are allowed"
    if not slot.worker_ok[i].any():
        return f"its data needs {need} workers, but no site is allowed for them and is up"
    limited = bool(np.isfinite(slot.capacity).any())
    if limited and _most_beside_server(slot, data, i) < need:
        sites = int(slot.worker_ok[i].sum())
        where = f"the {sites} sites" if sites > 1 else "the only site"
        return f"its data needs {need} workers, more than the capacity of {where} allowed for them"
    return ""


def _most_beside_server(slot: Slot, data: Terms, i: int) -> int:
    """The most workers that job i can have alone together with its server, over all sites of the server."""
    least = int(data.need[i])
    alone = np.minimum(data.most[i], least)
    total = int(alone.sum())
    beside = workers_that_fit(slot.worker[i : i + 1], slot.capacity - slot.server[i])[0]
    beside = np.minimum(np.where(slot.worker_ok[i], beside, 0), least)
    sites = np.flatnonzero(data.server_ok[i])
    return max(int(total - alone[p] + beside[p]) for p in sites)


def usage_of(slot: Slot, workers: Ints, server: Ints) -> Floats:
    """(R, K): what a decision uses."""
    usage: Floats = np.einsum("ir,ik->rk", workers.astype(np.float64), slot.worker)
    placed = server >= 0
    np.add.at(usage, server[placed], slot.server[placed])
    return usage


def fits(slot: Slot, workers: Ints, server: Ints) -> bool:
    """Whether a decision stays within the capacity of every site."""
    return bool((usage_of(slot, workers, server) <= slot.capacity + SLACK).all())


@dataclass(slots=True)
class _Placement:
    """A partial decision: workers (I, R), server (I,) or NO_SITE, usage (R, K)."""

    slot: Slot
    data: Terms
    servers: int
    workers: Ints
    server: Ints
    usage: Floats

    @classmethod
    def empty(cls, slot: Slot, data: Terms, servers: int) -> "_Placement":
        """No job placed; `servers`: server sites to search per job."""
        jobs, sites, kinds = slot.shape
        workers, server = np.zeros((jobs, sites), dtype=np.int64), np.full(jobs, NO_SITE, dtype=np.int64)
        return cls(slot, data, servers, workers, server, np.zeros((sites, kinds)))

    def take(self, i: int, sign: float) -> None:
        """Add (1) or remove (-1) what job i uses."""
        self.usage += sign * self.workers[i][:, None] * self.slot.worker[i][None, :]
        if self.server[i] >= 0:
            self.usage[self.server[i]] += sign * self.slot.server[i]

    def cost_of(self, i: int) -> float:
        """Own cost of job i's plan plus the rise of the pooled rent when it joins the others; infinite without a plan."""
        if self.server[i] < 0:
            return float("inf")
        own = float(own_cost(self.data, i, int(self.server[i]), self.workers[i]))
        before = bill(self.usage, self.data.usd, self.data.intercept)
        self.take(i, 1.0)
        after = bill(self.usage, self.data.usd, self.data.intercept)
        self.take(i, -1.0)
        return float(own + after - before)

    def best(self, i: int) -> tuple[int, Ints]:
        """Server and workers of job i's cheapest plan in the remaining capacity; NO_SITE when none fits."""
        room = self.slot.capacity - self.usage
        price = np.empty(self.usage.shape)
        marginal(self.usage, self.data.usd, self.data.intercept, price)
        server_ok = self._server_fits(i, room)
        # Reserve room for the server wherever it could go: slightly too strict, never too loose.
        beside = workers_that_fit(
            self.slot.worker[i : i + 1], room - np.where(server_ok[:, None], self.slot.server[i], 0.0)
        )
        most = np.minimum(self.data.most[i], beside[0])
        job = priced_job(self.data, i, price)._replace(most=most, server_ok=server_ok)
        _, p, y = cheapest(job, self.servers)
        return (int(p), y) if p >= 0 else self._best_by_server(i, price, room)

    def _best_by_server(self, i: int, price: Floats, room: Floats) -> tuple[int, Ints]:
        """As :meth:`best`, but with the exact room for workers at each site of the server in turn."""
        best, site = float("inf"), NO_SITE
        plan = np.zeros(self.usage.shape[0], dtype=np.int64)
        server_ok = self._server_fits(i, room)
        for p in np.flatnonzero(server_ok):
            left = room.copy()
            left[p] -= self.slot.server[i]
            most = np.minimum(self.data.most[i], workers_that_fit(self.slot.worker[i : i + 1], left)[0])
            only = np.zeros(len(server_ok), dtype=np.bool_)
            only[p] = True
            job = priced_job(self.data, i, price)._replace(most=most, server_ok=only)
            cost, q, y = cheapest(job, self.servers)
            if q >= 0 and cost < best:
                best, site, plan = cost, int(q), y
        return site, plan

    def _server_fits(self, i: int, room: Floats) -> Bools:
        """(R,): where job i's server is allowed and fits."""
        here: Bools = self.data.server_ok[i] & (self.slot.server[i] <= room + SLACK).all(axis=1)
        return here

    def insert(self, workers: Ints, server: Ints) -> None:
        """Give each job, in order, the wanted plan where that still fits, then the rest their best in what is left."""
        slot = self.slot
        for i in range(slot.shape[0]):
            if server[i] < 0:
                continue
            self.workers[i], self.server[i] = workers[i], server[i]
            self.take(i, 1.0)
            if (self.usage > slot.capacity + SLACK).any():
                self.take(i, -1.0)
                self.workers[i], self.server[i] = 0, NO_SITE
        for i in np.flatnonzero(self.server < 0).tolist():
            self.server[i], self.workers[i] = self.best(i)
            self.take(i, 1.0)

    def replan(self) -> bool:
        """Move each job in turn to its best plan in what the others leave, if that is cheaper; whether one moved."""
        moved = False
        for i in range(self.slot.shape[0]):
            had_server, had_workers = int(self.server[i]), self.workers[i].copy()
            self.take(i, -1.0)
            old = self.cost_of(i)
            server, workers = self.best(i)
            if server >= 0:
                self.server[i], self.workers[i] = server, workers
                if self.cost_of(i) < old * (1.0 - 1e-9):
                    moved = True
                else:
                    self.server[i], self.workers[i] = had_server, had_workers
            self.take(i, 1.0)
        return moved

    def decision(self) -> SlotDecision:
        """The finished decision with its cost and marginal prices."""
        data = self.data
        price = np.empty(self.usage.shape)
        marginal(self.usage, data.usd, data.intercept, price)
        placed = np.flatnonzero(self.server >= 0).tolist()
        own = sum(float(own_cost(data, i, int(self.server[i]), self.workers[i])) for i in placed)
        cost = own + bill(self.usage, data.usd, data.intercept)
        return SlotDecision(workers=self.workers, server=self.server, cost=float(cost), price=price)


def decide(
    slot: Slot, deploy_weight: float = 1.0, effort: SearchEffort | None = None, before: Floats | None = None
) -> tuple[SlotDecision, Ints]:
    """Decide a slot within its capacity: the decision, and the jobs (indices) that did not fit.

    Earlier jobs are placed first when capacity is short. A job that did not fit has server NO_SITE and no workers.
    Remove jobs without any plan beforehand (:func:`conflicts`). `before` as in `kernels.search.search`.
    """
    effort = effort or SearchEffort()
    free = search(slot, deploy_weight, effort, before)
    if fits(slot, free.workers, free.server):
        return free, np.zeros(0, dtype=np.int64)
    placement = _Placement.empty(slot, terms(slot, deploy_weight), effort.servers)
    placement.insert(free.workers, free.server)
    for _ in range(SWEEPS):
        if not placement.replan():
            break
    return placement.decision(), np.flatnonzero(placement.server < 0).astype(np.int64)


def within_limits(slot: Slot, workers: Ints, server: Ints) -> tuple[Ints, Ints]:
    """A decision made without regard to limits, with the jobs that break one re-planned in the remaining capacity."""
    jobs = np.arange(len(server))
    too_many = (slot.most_workers != NO_LIMIT) & (workers.sum(axis=1) > slot.most_workers)
    misplaced = ((workers > 0) & ~slot.worker_ok).any(axis=1) | (server < 0)
    misplaced |= ~slot.server_ok[jobs, np.maximum(server, 0)]
    server = np.where(too_many | misplaced, NO_SITE, server)
    if (server >= 0).all() and fits(slot, workers, server):
        return workers, server
    placement = _Placement.empty(slot, terms(slot, 1.0), SearchEffort().servers)
    placement.insert(workers, server)
    return placement.workers, placement.server
