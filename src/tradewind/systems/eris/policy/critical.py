"""`eris-preemptive` with payments=critical: slots are reallocated in an order that follows from bids alone, and jobs pay
Myerson's payment at the end of the run.

A bid's level is the logarithm of its worth per dominant share, rounded down so that a slightly better bid does not
interrupt a running job; within a level, earlier arrivals are served first. A bidder reports a scale of its worth, and
service never falls as that scale rises (kernels/turns.py). The payment is the worth of completing minus the area under
the service at all smaller scales, given the rivals of the run. So no other scale pays better, no payment exceeds the
worth of completing, and a job that does not complete pays nothing. What a failure cancels depends on sites, which the
payments ignore: after one the last two still hold, the first need not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import Charge, Decision
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.view import View
from tradewind.systems.eris.kernels.spot import Spot, train, unit
from tradewind.systems.eris.kernels.task import TrainingTask
from tradewind.systems.eris.kernels.turns import BidTable, delays, is_alive, reserved, serve, workers_of
from tradewind.systems.eris.shared.edge import EdgeRules, EdgeScheduler, Turn
from tradewind.systems.eris.shared.market import CapacityLedger, task_of, worth_of

STEP = math.log(1.7)
"""Width of a level in the logarithm of worth per share. Chosen, like the next two, on seeds from 101 on."""
FADE = 0.07
"""Bonus of later arrivals (logarithm, per slot): a waiting job has lost some of its worth."""
WORTHLESS = 0.1
"""Share of its initial worth below which a job is given up."""


class Bid(NamedTuple):
    """The fixed data of a bid; fields as in BidTable, worth by slots of delay."""

    worker: tuple[int, ...]
    server: tuple[int, ...]
    sites: tuple[int, ...]
    size: int
    per_unit: int
    chunks: int
    chunk_bytes: int
    rate: int
    need: int
    traffic_bytes: int
    top: int
    first: int
    last: int
    share: float
    density: float
    worth: tuple[float, ...]

    @property
    def level(self) -> int:
        """Logarithm of worth per share in steps of STEP, rounded down."""
        return math.floor(self.density / STEP)

    def worth_in(self, slot: int) -> float:
        """USD of completing in a slot; 0 for -1 (never) and after the last."""
        return self.worth[slot - (self.last + 1 - len(self.worth))] if 0 <= slot <= self.last else 0.0

    def scale_at(self, level: int) -> float:
        """The smallest scale of the bid (1: as reported) at which it has a level."""
        return math.exp(level * STEP - self.density)


def read_bid(ledger: CapacityLedger, whole: Floats, job: Job, slot: int) -> Bid | None:
    """The bid of a job that may run from `slot` on; None if it fits nowhere or is worth nothing.

    whole (K + 1,): milli-units and bytes of a slot
    """
    setup, task = ledger.setup, task_of(ledger, job)
    arrived = job.arrive_us // setup.slot_us
    worth = worth_of(setup, job, arrived, setup.slots - arrived)
    sites = tuple(np.flatnonzero(ledger.may_use(job)).tolist())
    size = _unit_size(ledger, task, sites)
    if not size:
        return None
    per_unit, chunks = size * task.rate // task.need, int(task.data.sum())
    use = np.append(task.worker, task.traffic_bytes) * (size * -(-chunks // per_unit))
    have = whole + np.append(np.zeros(len(task.worker)), _beside(ledger, task, sites) * task.traffic_bytes)
    share = max(1e-9, float((use / np.maximum(have, 1.0)).max()))
    alone = math.ceil(share) - 1
    if alone >= len(worth) or worth[alone] <= 0:
        return None
    # Rounded, because the last bit of a worth depends on the scale of the bid.
    kept = alone + int(np.flatnonzero(np.round(worth[alone:] / worth[alone], 9) > WORTHLESS)[-1])
    return Bid(
        worker=tuple((task.worker * size).tolist()),
        server=tuple(task.server.tolist()),
        sites=sites,
        size=size,
        per_unit=per_unit,
        chunks=chunks,
        chunk_bytes=task.chunk_bytes,
        rate=task.rate,
        need=task.need,
        traffic_bytes=task.traffic_bytes,
        top=task.most // size,
        first=slot,
        last=arrived + kept,
        share=share,
        density=math.log(worth[alone]) - math.log(share) + FADE * arrived,
        worth=tuple(worth[: kept + 1].tolist()),
    )


def _beside(ledger: CapacityLedger, task: TrainingTask, sites: Sequence[int]) -> int:
    """Workers that fit beside their server, whose parameters use no bandwidth."""
    return int(_fit(ledger.full[list(sites)] - task.server, task).max(initial=0))


def _fit(free: Ints, task: TrainingTask) -> Ints:
    """Useful workers (R,) that fit in free capacity (R, K)."""
    needs, useful = task.worker > 0, -(-int(task.data.sum()) * task.need // task.rate)
    found: Ints = (np.maximum(free[:, needs], 0) // task.worker[needs]).min(
        axis=1, initial=min(task.most, useful)
    )
    return np.where((free >= 0).all(axis=1), found, 0)


def _unit_size(ledger: CapacityLedger, task: TrainingTask, sites: Sequence[int]) -> int:
    """Workers per unit with which the empty network trains most; 0 if the job cannot be served.

    1 if a worker trains whole chunks; otherwise larger units waste less time but fit less well.
    """
    fit = _fit(ledger.full[list(sites)], task)
    sizes = range(unit(task), int(fit.max(initial=0)) + 1) if not task.per_worker else (1,)
    trained = {s: int((fit // s).sum()) * (s * task.rate // task.need) for s in sizes}
    best = max(trained, key=lambda s: (trained[s], -s), default=0)
    return best if best and trained[best] else 0


def bid_table(bids: Sequence[Bid], sites: int) -> BidTable:
    """Bids in order of arrival, as arrays."""
    allowed = np.zeros((len(bids), sites), dtype=np.bool_)
    for row, bid in enumerate(bids):
        allowed[row, list(bid.sites)] = True
    columns = {
        name: np.array([getattr(bid, name) for bid in bids]) for name in BidTable._fields if name != "allowed"
    }
    return BidTable(allowed=allowed, **columns)


class _Rivals(NamedTuple):
    """Rows in order of service (N,), chunks left of each when the bid arrived (N,), and capacity (T, R, K)."""

    order: Ints
    left: Ints
    capacity: Ints


class Critical(EdgeScheduler):
    """Serves jobs by the level of their bids; charges them at the end of the run."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, EdgeRules(workers=0, gamma=1.0))
        self._bids: dict[int, Bid | None] = {}
        self._found: dict[int, dict[int, int]] = {}
        """Slot with an arrival -> chunks left of the active jobs."""
        self._finished: dict[int, int] = {}
        """Slot in which each job completed."""
        self._present: dict[int, int] = {}
        """Row of each job in this slot's table."""
        self._table = bid_table([], len(setup.hosts))
        self._room = 0
        band = setup.transfer_bytes_per_slot
        limit = float("inf") if band is None else float(band)
        self._whole = np.append(self.ledger.full.sum(axis=0), limit)
        self._capacity = [(0, self.ledger.full)]
        """Slot from which on the sites had a capacity (R, K), in order of time."""

    def decide(self, view: View) -> Decision:
        self._observe(view)
        decision = super().decide(view)
        if (self.ledger.capacity != self._capacity[-1][1]).any():
            self._capacity.append((view.slot, self.ledger.capacity.copy()))
        return decision

    def turns(self, view: View) -> Iterable[Turn]:
        came = [index for index in self.left if index not in self._bids]
        for index in came:
            self._bids[index] = read_bid(self.ledger, self._whole, view.job(index), view.slot)
        left = {index: sum(chunks) for index, chunks in self.left.items()}
        if came:
            self._found[view.slot] = left
        known = {index: bid for index in sorted(left) if (bid := self._bids[index]) is not None}
        self._table = bid_table(list(known.values()), len(self.ledger.hosts))
        self._present = {index: row for row, index in enumerate(known)}
        self._room = self.ledger.band
        alive = [i for i, row in self._present.items() if is_alive(self._table, row, view.slot, left[i])]
        alive.sort(key=lambda i: (-known[i].level, i))
        return [Turn(index, False, False) for index in alive]

    def spot(self, view: View, job: Job, task: TrainingTask, turn: Turn) -> Spot | None:
        """As many chunks as possible, with bandwidth kept for each of them; local chunks first."""
        row, chunks = self._present[job.index], np.zeros(len(self.ledger.hosts), dtype=np.int64)
        free, left = self.ledger.free(view.slot), int(task.data.sum())
        server, trained = serve(self._table, row, left, free, self._room, chunks)
        if server < 0:
            return None
        self._room -= reserved(self._table, row, server, chunks)
        flows, _ = train(chunks, task.data, trained)
        workers = workers_of(self._table, row, chunks)
        return Spot(server=server, workers=workers, flows=flows, trained=trained, usd=0.0)

    # ------------------------------------------------------------------ payments
    def charges(self, view: View) -> tuple[Charge, ...]:
        """Payments of all completed jobs, now that all rivals are known."""
        self._observe(view)
        known = {index: bid for index in sorted(self._bids) if (bid := self._bids[index]) is not None}
        bids = bid_table(list(known.values()), len(self.ledger.hosts))
        rows = {index: row for row, index in enumerate(known)}
        order = np.argsort(-bids.level, kind="stable")
        capacity, found = self._capacity_by_slot(), []
        for index, bid in known.items():
            if index in self._finished:
                row, left = rows[index], np.where(bids.first > bid.first, bids.chunks, 0)
                for other, chunks in self._found[bid.first].items():
                    if other in rows:
                        left[rows[other]] = chunks
                owed, why = self._owed(bids, row, bid, _Rivals(order, left, capacity))
                found.append(Charge(index, min(owed, bid.worth_in(self._finished[index])), why))
        return tuple(found)

    def _capacity_by_slot(self) -> Ints:
        """Capacity (T, R, K) of every slot of the run."""
        found = np.empty((self.ledger.setup.slots, *self.ledger.full.shape), dtype=np.int64)
        for slot, capacity in self._capacity:
            found[slot:] = capacity
        return found

    def _owed(self, bids: BidTable, row: int, bid: Bid, given: _Rivals) -> tuple[float, str]:
        """Worth minus the area under it over all smaller scales of the bid (Myerson 1981), in USD, and its explanation.

        Computed as the sum of each drop in worth times the scale at which it happens.
        """
        order, left, capacity = given
        meets = (bids.first <= bid.last) & (bids.last >= bid.first) & (left > 0)
        rivals = order[meets[order] & (order != row)]
        behind = bids.level[rivals] - (rivals > row)
        levels = sorted({bid.level, *behind[behind < bid.level].tolist()}, reverse=True)
        band = np.full(len(capacity), self.ledger.band)
        done = delays(bids, row, rivals, left, np.array(levels), capacity, band)
        owed, drops = 0.0, []
        for level, (sooner, later) in zip(levels[1:], pairwise(done.tolist()), strict=True):
            if later != sooner:
                scale = bid.scale_at(level + 1)
                owed += (bid.worth_in(sooner) - bid.worth_in(later)) * scale
                drops.append(f"below {scale:.3g} of it " + (f"in slot {later}" if later >= 0 else "never"))
        if done[0] < 0:
            return owed, "would not complete without the failures, which changed the order of service"
        return (
            owed,
            f"completes in slot {done[0]} with this bid, " + (", ".join(drops) or "and with any smaller one"),
        )

    def _observe(self, view: View) -> None:
        for event in view.events:
            if event.kind == "finished":
                self._finished[event.job] = (event.at_us - 1) // view.setup.slot_us

    # ------------------------------------------------------------------ state
    def save(self) -> bytes:
        state = {
            "edge": super().save().decode(),
            "bids": list(self._bids.items()),
            "found": [[slot, list(left.items())] for slot, left in self._found.items()],
            "finished": list(self._finished.items()),
            "capacity": [[slot, capacity.tolist()] for slot, capacity in self._capacity],
        }
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        super().restore(data["edge"].encode())
        self._bids = {index: row and Bid(*row) for index, row in data["bids"]}
        self._found = {slot: dict(left) for slot, left in data["found"]}
        self._finished = dict(data["finished"])
        self._capacity = [(slot, np.array(capacity, dtype=np.int64)) for slot, capacity in data["capacity"]]
