"""What the schedulers of ring jobs share: progress, the slot as arrays, rings as plans with a route for every hop.

Every slot they say who runs where; between slots nothing changes. A ring lost to a failure waits for the next slot,
and with it only the work of its slot is lost. Steps are open-ended, so jobs that stay cost no plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import NOTHING, Certificate, Decision, Plan, Route, Step, Verdict
from tradewind.model.job import Job, Rounds
from tradewind.model.setup import Setup
from tradewind.model.spec import EVERY_SLOT, Trigger
from tradewind.model.units import MICRO, OPEN
from tradewind.model.view import View
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.fabric import Router, capacities, read_fabric, slot_of, whole_capacity
from tradewind.systems.gadget.kernels.gains import Climb, climbs, gains, gains_now, price_of_waiting
from tradewind.systems.gadget.kernels.pool import inside_racks
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings

WORKS = frozenset(("rounds/ring",))
ARCHITECTURES = frozenset(("ring",))
TRIGGERS: frozenset[Trigger] = EVERY_SLOT
Sight = Literal["slot", "envelope", "ahead"]
"""How far gains look: the slot alone, the concave envelope of the utility, or that less what could as well be done later."""
KEPT = 0.05
"""Part of the envelope's gain that stays where a job could wait: who comes later is not known, and nothing stands idle."""


@dataclass(slots=True)
class Record:
    """A job: work done (millionths of a worker-slot), and since when and with what it runs (hosts by number).

    attained  worker-slots it has had, whatever became of them
    last      servers where it last ran
    """

    done: int = 0
    since_us: int = 0
    servers: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    attained: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Rings for a slot, and a bound on their worth where there is one."""

    rings: Rings
    certificate: Certificate | None = None


class Chooser(Protocol):
    """What differs between the schedulers: who runs where in a slot."""

    sight: Sight

    def choose(self, slot: Slot, jobs: Sequence[Job], records: Sequence[Record], number: int) -> Choice:
        """Rings for jobs in order of arrival; the records say what they had before."""


class RingDesk:
    """Decides every slot for all ring jobs."""

    def __init__(self, setup: Setup, chooser: Chooser) -> None:
        self._setup, self._chooser = setup, chooser
        self._fabric = read_fabric(setup)
        self._whole = whole_capacity(setup, self._fabric)
        self._records: dict[int, Record] = {}
        self._tables: dict[int, Floats] = {}
        self._climbs: dict[int, bool] = {}

    # ------------------------------------------------------------------ deciding
    def decide(self, view: View) -> Decision:
        verdicts = self._hear(view)
        if view.now_us != view.slot * view.setup.slot_us:
            return Decision(verdicts=tuple(verdicts)) if verdicts else NOTHING
        out = {verdict.job for verdict in verdicts}
        jobs = [job for job in view.active.values() if job.index in self._records and job.index not in out]
        for job in jobs:
            self._credit(job, view.now_us)
        if not jobs:
            return Decision(verdicts=tuple(verdicts)) if verdicts else NOTHING
        left = view.setup.slots - view.slot
        gain = self.gains(jobs, left)
        there = capacities(view.setup, self._fabric, _room(view), view.link_capacity)
        slot = slot_of(self._fabric, there, jobs, gain, len(view.setup.resources))
        records = [self._records[job.index] for job in jobs]
        choice = self._chooser.choose(slot, jobs, records, view.slot)
        plans = self._plans(view, jobs, slot, choice.rings)
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts), certificate=choice.certificate)

    def _hear(self, view: View) -> list[Verdict]:
        verdicts = []
        for event in view.events:
            if event.kind == "arrived":
                job = view.job(event.job)
                if why := self._never(job):
                    verdicts.append(Verdict(job.index, why))
                else:
                    self._records[job.index] = Record()
            elif event.kind in ("finished", "refused", "ended"):
                self._records.pop(event.job, None)
                self._tables.pop(event.job, None)
            elif event.kind == "voided" and event.job in self._records:
                record = self._records[event.job]
                record.done, record.servers, record.workers = event.value, (), ()
        return verdicts

    def _never(self, job: Job) -> str:
        """Why a job can never run here; empty where it can."""
        gain = np.full((1, job.workers_max + 1), -np.inf)
        gain[0, 0], gain[0, job.workers_min :] = 0.0, 1.0
        slot = possible(slot_of(self._fabric, self._whole, [job], gain, len(self._setup.resources)))
        if (slot.gain[0, 1:] > 0).any():
            return ""
        return (
            f"never fits: no ring of {job.workers_min} workers finds room and bandwidth in the empty cluster"
        )

    def _credit(self, job: Job, now_us: int) -> None:
        """Books the work of a running job up to now, as the world does."""
        record, slot_us = self._records[job.index], self._setup.slot_us
        if record.servers and now_us > record.since_us:
            span = now_us - record.since_us
            record.done += span * sum(record.workers) * MICRO // slot_us
            record.attained += span * sum(record.workers) / slot_us
            record.since_us = now_us

    def gains(self, jobs: Sequence[Job], left: int) -> Floats:
        """(I, N + 1) worth of k workers in this slot; left: slots until the horizon, this one included."""
        widest = max(job.workers_max for job in jobs)
        result = np.full((len(jobs), widest + 1), -np.inf)
        rows = [self._gain(job, left) for job in jobs]
        if self._chooser.sight == "ahead" and left > 1:
            self._wait(jobs, rows, left)
        for i, (job, row) in enumerate(zip(jobs, rows, strict=True)):
            row[1 : job.workers_min] = -np.inf
            result[i, : job.workers_max + 1] = row
            result[i, 0] = 0.0
        return result

    def _wait(self, jobs: Sequence[Job], rows: list[Floats], left: int) -> None:
        """Where not all can run, lowers the gains of climbs by what they could still earn in later slots.

        Utilities that bend downwards throughout earn at once and are left as they are.
        """
        whole = self._whole[0].astype(np.float64).sum(axis=0)
        needs = [max((amount / whole[r] for r, amount in job.worker), default=0.0) for job in jobs]
        if sum(need * job.workers_max for need, job in zip(needs, jobs, strict=True)) <= 1.0:
            return
        found: dict[int, Climb] = {}
        for i, job in enumerate(jobs):
            if (values := self._values(job)) is not None and needs[i] > 0.0:
                reach = min(len(values) - 1, job.workers_max * left)
                found[i] = Climb(values=values[: reach + 1], need=needs[i], widest=job.workers_max)
        price = price_of_waiting(list(found.values()), left - 1)
        for i, climb in found.items():
            if self._climbs[jobs[i].index]:
                now = gains_now(climb, price, left - 1)
                finite = np.isfinite(rows[i])
                rows[i][finite] = KEPT * rows[i][finite] + (1.0 - KEPT) * now[finite]

    def _gain(self, job: Job, left: int) -> Floats:
        assert isinstance(job.work, Rounds)
        most, values = job.workers_max, self._values(job)
        if values is None:
            # no worth of progress: the more of what is left gets done, the better
            rest = max(1, -(-(job.work.total - self._records[job.index].done) // MICRO))
            return np.minimum(np.arange(most + 1), rest) / rest
        reach = min(len(values) - 1, most * left)
        if self._chooser.sight == "slot":
            k = np.minimum(np.arange(most + 1), reach)
            row: Floats = values[k] - values[0]
            return row
        row = gains(values[: reach + 1], most)
        # more workers than work is left for are allowed, and worth no more
        if most > reach:
            row[reach + 1 :] = row[reach] if job.workers_min > reach else -np.inf
        return row

    def _values(self, job: Job) -> Floats | None:
        """Utility after 0, 1, … more worker-slots; None where progress has no worth of its own."""
        assert isinstance(job.work, Rounds)
        if job.utility is None or job.utility.of != "progress":
            return None
        if job.index not in self._tables:
            worth = [job.utility.value(job.work.rate * x) for x in range(job.work.count + 1)]
            self._tables[job.index] = np.array(worth)
            self._climbs[job.index] = climbs(self._tables[job.index])
        done = self._records[job.index].done
        whole, part = divmod(done, MICRO)
        values = self._tables[job.index][whole:]
        if part:  # a restart or a failure left a fraction
            ahead = [done / MICRO + x for x in range(len(values) - 1)] + [float(job.work.count)]
            values = np.array([job.utility.value(job.work.rate * x) for x in ahead])
        return values

    # ------------------------------------------------------------------ plans
    def _plans(self, view: View, jobs: Sequence[Job], slot: Slot, rings: Rings) -> list[Plan]:
        """Plans of the jobs whose ring changed; rings whose hops find no spine go into one rack, or wait."""
        router = Router(view.setup, self._fabric, view.link_capacity)
        routed = [router.ring(_ring(rings, i)[0], job.ring_bps) for i, job in enumerate(jobs)]
        if lost := [i for i, paths in enumerate(routed) if paths is None]:
            rings = inside_racks(slot, rings, lost)
            for i in lost:
                routed[i] = router.ring(_ring(rings, i)[0], jobs[i].ring_bps)
        several = len(self._fabric.spines) > 1 and len(self._fabric.spines[0]) > 1
        plans = []
        for i, (job, paths) in enumerate(zip(jobs, routed, strict=True)):
            record = self._records[job.index]
            servers, workers = _ring(rings, i)
            same = servers == record.servers and workers == record.workers
            if same and not (several and servers):
                continue
            plans.append(self._plan(view, job, servers, workers, paths or []))
            self._settle(job, record, servers, workers, view.now_us)
        return plans

    def _plan(
        self,
        view: View,
        job: Job,
        servers: tuple[int, ...],
        workers: tuple[int, ...],
        paths: list[tuple[int, ...]],
    ) -> Plan:
        if not servers:
            return Plan(job.index, ())
        nodes = tuple(self._fabric.hosts[s] for s in servers)
        ends = [*nodes[1:], nodes[0]]
        routes = tuple(
            Route(a, b, job.ring_bps, path)
            for a, b, path in zip(nodes, ends, paths, strict=bool(paths))
            if paths
        )
        return Plan(job.index, (Step(view.now_us, OPEN, nodes, workers, routes=routes),))

    def _settle(
        self, job: Job, record: Record, servers: tuple[int, ...], workers: tuple[int, ...], now_us: int
    ) -> None:
        """Keeps what was decided; a job that moved loses the time of a restart."""
        moved = bool(record.last) and bool(servers) and set(servers) != set(record.last)
        record.since_us = now_us + (job.restart_us if moved else 0)
        record.servers, record.workers = servers, workers
        record.last = servers or record.last

    # ------------------------------------------------------------------ saving
    def save(self) -> bytes:
        """The whole state as JSON."""
        rows = [
            [job, r.done, r.since_us, r.servers, r.workers, r.last, r.attained]
            for job, r in self._records.items()
        ]
        return json.dumps(rows).encode()

    def restore(self, state: bytes) -> None:
        """Continues where `save` stood."""
        self._tables = {}
        self._records = {
            job: Record(done, since, tuple(servers), tuple(workers), tuple(last), attained)
            for job, done, since, servers, workers, last, attained in json.loads(state)
        }


def _room(view: View) -> Any:
    """node, resource -> milli-units of a host now, with the limits of what holds it."""
    lineage = view.setup.lineage
    return lambda node, r: min(view.capacity(at, r) for at in lineage[node])


def _ring(rings: Rings, i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Servers of job i and the workers on each, in ring order."""
    here = rings.server[i] >= 0
    return tuple(rings.server[i][here].tolist()), tuple(rings.workers[i][here].tolist())


def rings_before(slot: Slot, records: Sequence[Record]) -> Rings:
    """The rings that the jobs have now."""
    rings = no_rings(slot)
    for i, record in enumerate(records):
        count = len(record.servers)
        if count and count <= rings.server.shape[1]:
            rings.server[i, :count], rings.workers[i, :count] = record.servers, record.workers
            rings.size[i] = sum(record.workers)
    return rings
