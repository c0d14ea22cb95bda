"""What all policies of Eris share: a capacity ledger, posted prices, and conversions from jobs and to plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.decision import Flow, Plan, Posted, Quote, Step
from tradewind.model.job import Dataset, Demand, Job
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MILLI, UNLIMITED
from tradewind.model.view import View
from tradewind.systems.eris.kernels.task import Market, Schedule, TrainingTask

LARGE = 10**12
"""Milli-units that stand for unlimited capacity in the arrays."""
TIE = 1e-6
"""USD per unit and slot of an idle resource, so that of equally good schedules the one that uses least wins."""
TIE_GB = 1e-3
"""USD per GB of idle bandwidth: more than a server's TIE, so that a server is placed beside its own workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedPrices:
    """Posted prices: max(floor, gamma^(share in use) - 1) per unit and slot, per GB for bandwidth (paper (6)).

    floor (K + 1,): USD per unit of each resource, the last per GB; the paper has none.
    """

    gamma: float
    floor: Floats

    @property
    def least(self) -> Floats:
        """Prices of idle resources (K + 1,): the floor, or next to nothing."""
        ties = np.append(np.full(len(self.floor) - 1, TIE), TIE_GB)
        least: Floats = np.maximum(self.floor, ties)
        return least

    def posted(self, *, flat: bool) -> Posted:
        """The price list for bidders and the audit; flat: data pays the floor price of its bytes, moved or not."""
        floor = self.least
        return Posted(self.gamma, tuple(floor.tolist()), float(floor[-1]) if flat else -1.0)


class Reservation(NamedTuple):
    """A plan in the ledger, with the demands of its workers and servers."""

    worker: Demand
    server: Demand
    traffic_bytes: int
    plan: Plan


class Kept(NamedTuple):
    """Prices (rows, R, K) in USD per milli-unit and free milli-units (rows, R, K) at these prices of idle resources (K,)."""

    gamma: float
    least: Floats
    usd: Floats
    free: Ints


class CapacityLedger:
    """Capacity and reservations of the slots that may still be planned.

    capacity (R, K) milli-units (-1 where a site is down: it has no room for what needs nothing either) and band in bytes, of
    every slot from the current one on; used (rows, R, K) and moved (rows,)
    of the slots from `begin` on. With a window the rows are two windows long and move on with time, so the ledger does not
    grow with the horizon.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup, self.hosts = setup, setup.hosts
        self.row = {node: r for r, node in enumerate(setup.hosts)}
        top = np.array([setup.nodes[h].capacity_milli for h in setup.hosts], dtype=np.int64)
        self.full = np.minimum(top, LARGE)
        """Capacity (R, K) without failures."""
        self.capacity = self.full.copy()
        band = setup.transfer_bytes_per_slot
        self.band = LARGE * MILLI if band is None else band
        rows = setup.slots if setup.window_slots is None else min(setup.slots, 2 * setup.window_slots)
        self.used = np.zeros((rows, *top.shape), dtype=np.int64)
        self.moved = np.zeros(rows, dtype=np.int64)
        self.begin, self.slot = 0, 0
        """Slot of the first row, and the current slot."""
        self.plans: dict[int, Reservation] = {}
        self.observed = 0
        self._kept: Kept | None = None
        self._touched: set[tuple[int, int]] = set()
        """Rows and sites that changed since `_kept` was right."""

    @property
    def end(self) -> int:
        """First slot that may not be planned now: the horizon, or the end of the window."""
        return self.slot + self.setup.slots_ahead(self.slot)

    # ------------------------------------------------------------------ events
    def observe(self, view: View) -> list[int]:
        """Applies the events since the last call; returns the jobs whose plan was cancelled."""
        voided = []
        self._advance(view.slot)
        events = view.events
        for event in events[self.observed :]:
            if event.kind in ("voided", "finished", "refused", "cancelled", "ended"):
                self.release(event.job, view)
                if event.kind == "voided":
                    voided.append(event.job)
            elif event.kind == "changed":
                self._change(view)
        self.observed = len(events)
        return voided

    def clear_window(self) -> None:
        """Starts a new window of events, as after every `decide`."""
        self.observed = 0

    def _advance(self, slot: int) -> None:
        """Moves on to a slot; drops past rows if the window no longer fits."""
        self.slot = slot
        if self.end > self.begin + len(self.moved):
            kept = max(0, len(self.moved) - (slot - self.begin))
            for rows in (self.used, self.moved):
                rows[:kept] = rows[len(rows) - kept :]
                rows[kept:] = 0
            self.begin = slot
            self._kept = None

    def _change(self, view: View) -> None:
        """Updates the capacity from the current slot on."""
        for r, node in enumerate(self.hosts):
            down = view.is_down(node)
            for k in range(self.capacity.shape[1]):
                self.capacity[r, k] = -1 if down else min(view.capacity(node, k), LARGE)
        self._kept = None

    @property
    def whole(self) -> Ints:
        """Milli-units (K,) of all sites that are up."""
        whole: Ints = np.maximum(self.capacity, 0).sum(axis=0)
        return whole

    def reserve(self, job: Job, plan: Plan) -> None:
        """Reserves what a plan uses."""
        entry = Reservation(job.worker, job.server, job.traffic_bytes_per_worker_slot, plan)
        self.plans[job.index] = entry
        for step in plan.steps:
            self._add(entry, step, 1)

    def release(self, index: int, view: View) -> None:
        """Frees the part of a plan that has not run yet."""
        entry = self.plans.pop(index, None)
        if entry is not None:
            for step in entry.plan.steps:
                if step.from_us >= view.now_us:
                    self._add(entry, step, -1)

    def _add(self, entry: Reservation, step: Step, sign: int) -> None:
        for (slot, r, k), amount in self._use(entry, step).items():
            self._count(slot, r, k, sign * amount)

    def _count(self, slot: int, r: int, k: int, amount: int) -> None:
        """Adds to what is used of a slot, or moved in it (k = -1)."""
        if k < 0:
            self.moved[slot - self.begin] += amount
        else:
            self.used[slot - self.begin, r, k] += amount
            self._touched.add((slot - self.begin, r))

    def _use(self, entry: Reservation, step: Step) -> dict[tuple[int, int, int], int]:
        """(slot, row of the site, resource) -> milli-units that a step uses; (slot, 0, -1) -> bytes that it moves."""
        slot, away = step.from_us // self.setup.slot_us, 0
        found: dict[tuple[int, int, int], int] = {}
        for node, workers, servers in zip(step.nodes, step.workers, step.servers, strict=True):
            r = self.row[node]
            for demand, count in ((entry.worker, workers), (entry.server, servers)):
                for k, milli in demand:
                    found[slot, r, k] = found.get((slot, r, k), 0) + milli * count
            away += 0 if servers else workers
        data = sum(flow.bytes for flow in step.flows if flow.src != flow.dst)
        found[slot, 0, -1] = data + away * entry.traffic_bytes
        return found

    @contextmanager
    def with_holds(self, view: View) -> Iterator[None]:
        """Counts as used what open quotes hold: in every slot, the most that one of their offers uses."""
        holds = [self._most(view.job(held.quote.job), held.quote) for held in view.held.values()]
        for sign in (1, -1):
            for hold in holds:
                for (slot, r, k), amount in hold.items():
                    self._count(slot, r, k, sign * amount)
            if sign > 0:
                yield

    def _most(self, job: Job, quote: Quote) -> dict[tuple[int, int, int], int]:
        most: dict[tuple[int, int, int], int] = {}
        for offer in quote.offers:
            entry = Reservation(job.worker, job.server, job.traffic_bytes_per_worker_slot, offer.plan)
            for step in offer.plan.steps:
                for key, amount in self._use(entry, step).items():
                    most[key] = max(most.get(key, 0), amount)
        return most

    def may_use(self, job: Job) -> Bools:
        """Sites (R,) where workers and servers of a job may run and its data may be processed."""
        allowed = job.nodes if job.data_nodes is None else (job.nodes or job.data_nodes) & job.data_nodes
        return np.array([allowed is None or node in allowed for node in self.hosts])

    # ------------------------------------------------------------------ prices
    def free(self, slot: int) -> Ints:
        """Free milli-units (R, K) of a slot; negative where a site is down."""
        free: Ints = self.capacity - self.used[slot - self.begin]
        return free

    def market(self, job: Job, first: int, prices: PostedPrices, until: int | None = None) -> Market:
        """Posted prices and free capacity where the job may run, from slot `first` on (before `until`, or `end`).

        Free capacity is negative where it may not run or the site is down. The arrays are good until the next call.
        """
        rows = slice(first - self.begin, (self.end if until is None else until) - self.begin)
        moved, least = self.moved[rows], prices.least
        kept = self._current(prices.gamma, least[:-1])
        band = moved / max(self.band, 1)
        byte_usd = np.maximum(prices.gamma**band - 1.0, least[-1]) / GB
        free = kept.free[rows]
        if job.nodes is not None or job.data_nodes is not None:
            free = free.copy()
            free[:, ~self.may_use(job)] = -1
        return Market(usd=kept.usd[rows], byte_usd=byte_usd, free=free, room=self.band - moved)

    def _current(self, gamma: float, least: Floats) -> Kept:
        """Prices and free capacity of every row, from the last call but for what changed: of many sites a bid uses few."""
        kept = self._kept
        if kept is None or kept.gamma != gamma or not np.array_equal(kept.least, least):
            usd = np.empty(self.used.shape)
            usd[:] = self._usd(gamma, least, self.used, self.capacity)
            kept = self._kept = Kept(gamma, least, usd, self.capacity - self.used)
        elif self._touched:
            rows, sites = np.array(list(self._touched)).T
            used, capacity = self.used[rows, sites], self.capacity[sites]
            kept.free[rows, sites] = capacity - used
            if gamma != 1.0:
                kept.usd[rows, sites] = self._usd(gamma, least, used, capacity)
        self._touched.clear()
        return kept

    @staticmethod
    def _usd(gamma: float, least: Floats, used: Ints, capacity: Ints) -> Floats:
        """USD per milli-unit and slot (…, K); without growth the same everywhere (K,)."""
        with np.errstate(over="ignore"):  # a site that is down and in use has an endless price
            grown = 0.0 if gamma == 1.0 else gamma ** (used / np.maximum(capacity, 1)) - 1.0
        usd: Floats = np.maximum(grown, least) / MILLI
        return usd

    # ------------------------------------------------------------------ state
    def save(self) -> dict[str, Any]:
        """State as plain data; what is in use follows from the plans."""
        return {
            "slot": self.slot,
            "capacity": self.capacity.tolist(),
            "plans": list(self.plans.items()),
            "observed": self.observed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.capacity = np.array(state["capacity"], dtype=np.int64)
        self.slot = state["slot"]
        self.begin = 0 if self.setup.window_slots is None else self.slot
        self.used[:], self.moved[:], self._kept = 0, 0, None
        self.plans = {index: _reservation(*row) for index, row in state["plans"]}
        for entry in self.plans.values():
            for step in entry.plan.steps:
                if step.from_us >= self.slot * self.setup.slot_us:
                    self._add(entry, step, 1)
        self.observed = state["observed"]


def read_plan(row: list[Any]) -> Plan:
    """A plan from saved state."""
    steps = []
    for begin, until, nodes, workers, servers, flows, _, usd in row[1]:
        moves = tuple(Flow(*flow) for flow in flows)
        steps.append(Step(begin, until, tuple(nodes), tuple(workers), tuple(servers), moves, (), usd))
    return Plan(row[0], tuple(steps))


def _reservation(worker: list[Any], server: list[Any], traffic: int, plan: list[Any]) -> Reservation:
    demands = tuple(tuple((k, milli) for k, milli in demand) for demand in (worker, server))
    return Reservation(demands[0], demands[1], traffic, read_plan(plan))


def task_of(ledger: CapacityLedger, job: Job, left: Ints | None = None) -> TrainingTask:
    """A job as the kernels read it; `left` (R,): chunks still to train."""
    work = job.work
    assert isinstance(work, Dataset)
    kinds = ledger.capacity.shape[1]
    data = np.zeros(len(ledger.hosts), dtype=np.int64)
    for node, chunks in work.chunks:
        data[ledger.row[node]] = chunks
    worker, server = np.zeros(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
    for k, milli in job.worker:
        worker[k] = milli
    for k, milli in job.server:
        server[k] = milli
    return TrainingTask(
        worker=worker,
        server=server,
        data=data if left is None else left,
        rate=work.chunk_epochs_per_worker_slot_milli,
        need=1000 * work.epochs,
        chunk_bytes=work.chunk_bytes,
        traffic_bytes=job.traffic_bytes_per_worker_slot,
        most=min(job.workers_max, UNLIMITED),
    )


_counted: list[tuple[Setup, Counter[tuple[int, ...]]]] = []


def _kinds_of_sites(setup: Setup) -> Counter[tuple[int, ...]]:
    """How many sites have the same capacity; of the last setup asked for it is kept, since every bid asks."""
    if not _counted or _counted[0][0] is not setup:
        _counted[:] = [(setup, Counter(tuple(setup.nodes[host].capacity_milli) for host in setup.hosts))]
    return _counted[0][1]


def most_chunks(setup: Setup, job: Job) -> int:
    """Chunks of a job that the whole network could train by the horizon, or in a window, if it ran nothing else."""
    work, fit = job.work, 0
    assert isinstance(work, Dataset)
    for have, sites in _kinds_of_sites(setup).items():
        fit += sites * min([job.workers_max, *(have[k] // milli for k, milli in job.worker if milli > 0)])
    slots = setup.slots_ahead(job.arrive_us // setup.slot_us)
    workers = slots * min(fit, job.workers_max)
    return workers * work.chunk_epochs_per_worker_slot_milli // (1000 * work.epochs)


def worth_of(setup: Setup, job: Job, first: int, slots: int) -> Floats:
    """The bid (slots,): reported utility of completing in each slot from `first` on, never rising and never negative.

    A slot that the horizon cuts off completes nothing.
    """
    assert job.utility is not None
    arrived, whole = job.arrive_us // setup.slot_us, setup.horizon_us // setup.slot_us
    values = [job.utility.value(t - arrived) if t < whole else 0.0 for t in range(first, first + slots)]
    return np.maximum(np.minimum.accumulate(np.array(values, dtype=np.float64)), 0.0)


def plan_of(ledger: CapacityLedger, job: Job, found: Schedule, first: int) -> Plan:
    """A schedule as a plan with one step per used slot."""
    slot_us, steps = ledger.setup.slot_us, []
    work = job.work
    assert isinstance(work, Dataset)
    for s, at in enumerate(found.slots):
        rows = found.workers[s].copy()
        server = found.servers[s]
        sites = np.flatnonzero(rows).tolist()
        if server not in sites:
            sites = sorted([*sites, server])
        begin = (first + at) * slot_us
        steps.append(
            Step(
                begin,
                begin + slot_us,
                tuple(ledger.hosts[r] for r in sites),
                tuple(int(rows[r]) for r in sites),
                tuple(int(r == server) for r in sites),
                tuple(
                    Flow(ledger.hosts[a], ledger.hosts[b], n * work.chunk_bytes) for a, b, n in found.flows[s]
                ),
            )
        )
    return Plan(job.index, tuple(steps))


def left_after(
    ledger: CapacityLedger, job: Job, plan: Plan | None, now_us: int, before: Sequence[int] | None = None
) -> Ints:
    """Chunks (R,) left when a plan ends at `now_us`, of those that were left `before` it (all of them by default)."""
    data = task_of(ledger, job).data.copy() if before is None else np.array(before, dtype=np.int64)
    work = job.work
    assert isinstance(work, Dataset)
    for step in plan.steps if plan is not None else ():
        if step.until_us <= now_us:
            for flow in step.flows:
                data[ledger.row[flow.src]] -= flow.bytes // work.chunk_bytes
    return data
