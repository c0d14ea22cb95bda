"""The policy that all schedulers of ring jobs are: progress, the slot as arrays, rings as plans with a route for every hop.

They decide at the start of every slot; between slots nothing changes. A ring that a failure stops waits for the next slot
and loses only the work of its slot. Steps are open-ended, so a job whose ring stays needs no new plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import NOTHING, Decision, Plan, Route, Step, Verdict
from tradewind.model.estimate import believed
from tradewind.model.job import Job
from tradewind.model.progress import rate
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import View
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.fabric import (
    Router,
    allowed_sizes,
    capacities,
    read_fabric,
    slot_of,
    whole_capacity,
)
from tradewind.systems.gadget.kernels.pool import inside_racks
from tradewind.systems.gadget.kernels.slot import Rings, Slot
from tradewind.systems.gadget.shared.choice import Chooser, Ring, RingChoice, RingRecord
from tradewind.systems.gadget.shared.gains import JobGains

AGAIN = 2
"""Further choices of rings in a slot where ring time counts."""


class RingScheduler:
    """Policy that decides every slot for all ring jobs."""

    def __init__(self, setup: Setup, chooser: Chooser, *, measured: bool = False) -> None:
        self._setup, self._chooser, self._measured = setup, chooser, measured
        self._factors: dict[int, float] = {}  # job -> factor on its declared times, if estimates are used
        self._fabric = read_fabric(setup)
        self._whole = whole_capacity(setup, self._fabric)
        self._records: dict[int, RingRecord] = {}
        self._gains = self._new_gains()

    def _new_gains(self) -> JobGains:
        return JobGains(self._chooser.sight, self._setup, self._whole.room.astype(np.float64).sum(axis=0))

    # ------------------------------------------------------------------ deciding
    def decide(self, view: View) -> Decision:
        """Rings of all active jobs at the start of a slot; at other instants only verdicts on arrivals."""
        verdicts = self._observe(view) + self._given_up(view)
        if view.now_us != view.slot * view.setup.slot_us:
            return Decision(verdicts=tuple(verdicts)) if verdicts else NOTHING
        out = {verdict.job for verdict in verdicts}
        jobs = [job for job in view.active.values() if job.index in self._records and job.index not in out]
        for job in jobs:
            self._credit(self._believed(job), view.now_us)
        if self._measured:
            self._estimate(view, jobs)
            jobs = [self._believed(job) for job in jobs]
        if not jobs:
            return Decision(verdicts=tuple(verdicts)) if verdicts else NOTHING
        records = [self._records[job.index] for job in jobs]
        left = view.setup.slots_ahead(view.slot)
        gain = self._gains.gains(jobs, [r.done for r in records], left)
        capacity = capacities(view.setup, self._fabric, _room(view), view.link_capacity)
        slot = slot_of(self._fabric, capacity, jobs, gain)
        choice = self._chooser.choose(slot, jobs, records, view.slot)
        if not all(self._gains.pace(job).even for job in jobs):
            choice = self._with_ring_time(slot, jobs, left, view.slot, choice)
        plans = self._plans(view, jobs, slot, choice.rings)
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts), certificate=choice.certificate)

    def _with_ring_time(
        self, slot: Slot, jobs: Sequence[Job], left: int, number: int, choice: RingChoice
    ) -> RingChoice:
        """A choice of rings where gains depend on whether a ring lies on one server; its bound does not hold.

        The first choice takes all rings as being between servers. Those that turn out to lie on one may earn more with other
        sizes: they are chosen again with their gains there, and the best choice counts.
        """
        records = [self._records[job.index] for job in jobs]
        if self._chooser.sight == "slot":  # as printed, and the rivals
            return RingChoice(rings=choice.rings)
        inside = self._gains.gains(jobs, [r.done for r in records], left, inside=True)

        def actual(rings: Rings) -> Floats:
            alone = (rings.server >= 0).sum(1) == 1
            return np.where(alone[:, None], inside, slot.gain)

        best = rings = choice.rings
        for _ in range(AGAIN):
            rings = self._chooser.choose(slot._replace(gain=actual(rings)), jobs, records, number).rings
            if _earned(actual(rings), rings) > _earned(actual(best), best):
                best = rings
        return RingChoice(rings=best)

    def _observe(self, view: View) -> list[Verdict]:
        """Update the records from the events; returns verdicts on jobs that can never run."""
        verdicts = []
        for event in view.events:
            if event.kind == "arrived":
                job = view.job(event.job)
                if reason := self._unservable_reason(job):
                    verdicts.append(Verdict(job.index, reason))
                else:
                    self._records[job.index] = RingRecord(since_us=event.at_us)
            elif event.kind in ("finished", "refused", "cancelled", "ended"):
                self._records.pop(event.job, None)
                self._factors.pop(event.job, None)
                self._gains.forget(event.job)
            elif event.kind == "measured" and self._measured and event.job in self._records:
                record = self._records[event.job]
                if record.servers and record.since_us <= event.at_us:
                    record.done, record.since_us = event.value, event.at_us
            elif event.kind == "voided" and event.job in self._records:
                record = self._records[event.job]
                record.done, record.servers, record.workers = event.value, (), ()
        return verdicts

    def _given_up(self, view: View) -> list[Verdict]:
        """With a window: verdicts on jobs that have not run for that long, so that the queue cannot grow for ever."""
        window = view.setup.window_slots
        if window is None:
            return []
        late = view.now_us - window * view.setup.slot_us
        return [
            Verdict(index, f"has not run for {window} slots, the window of this cluster")
            for index, record in self._records.items()
            if not record.servers and record.since_us <= late and index in view.active
        ]

    def _unservable_reason(self, job: Job) -> str:
        """Reason why a job can never run here, or ""."""
        slot = possible(slot_of(self._fabric, self._whole, [job], allowed_sizes([job])))
        if (slot.gain[0, 1:] > 0).any():
            return ""
        return (
            f"never fits: the empty cluster has no room or bandwidth for a ring of {job.workers_min} workers"
        )

    def _credit(self, job: Job, now_us: int) -> None:
        """Count the work of a running job up to now, as the world does."""
        record, slot_us = self._records[job.index], self._setup.slot_us
        if record.servers and now_us > record.since_us:
            span = now_us - record.since_us
            work, time_us = rate(self._setup, job, Step(0, OPEN, record.servers, record.workers))
            record.done += span * work // time_us
            record.attained += span * sum(record.workers) / slot_us
            record.since_us = now_us

    def _believed(self, job: Job) -> Job:
        """A job as it would declare itself after what was measured."""
        return believed(job, self._factors.get(job.index, 1.0))

    def _estimate(self, view: View, jobs: Sequence[Job]) -> None:
        """Take in what was measured so far."""
        for job in jobs:
            factor = view.estimate(job).factor
            if factor != self._factors.get(job.index, 1.0):
                self._factors[job.index] = factor
                self._gains.forget(job.index)

    # ------------------------------------------------------------------ plans
    def _plans(self, view: View, jobs: Sequence[Job], slot: Slot, rings: Rings) -> list[Plan]:
        """Plans of the jobs whose ring changed; rings whose hops find no spine move into one rack, or wait."""
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
            ring = _ring(rings, i)
            if ring == (record.servers, record.workers) and not (several and ring[0]):
                continue
            plans.append(self._plan(view, job, ring, paths or []))
            self._update(job, ring, view.now_us)
        return plans

    def _plan(self, view: View, job: Job, ring: Ring, paths: list[tuple[int, ...]]) -> Plan:
        """The plan of a job: its ring from now on, or nothing."""
        servers, workers = ring
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

    def _update(self, job: Job, ring: Ring, now_us: int) -> None:
        """Record a new ring; a job that moved loses the time of a restart."""
        record = self._records[job.index]
        servers, workers = ring
        moved = bool(record.last) and bool(servers) and set(servers) != set(record.last)
        record.since_us = now_us + (job.restart_us if moved else 0)
        record.servers, record.workers = servers, workers
        record.last = servers or record.last

    # ------------------------------------------------------------------ saving
    def save(self) -> bytes:
        """The whole state as JSON; jobs and times count from the first, so that it does not grow with their numbers."""
        records = self._records
        first, begin = min(records, default=0), min((r.since_us for r in records.values()), default=0)
        rows = [
            [job - first, r.done, r.since_us - begin, r.servers, r.workers, r.last, r.attained]
            for job, r in records.items()
        ]
        factors = [[job - first, factor] for job, factor in self._factors.items()]
        return json.dumps([first, begin, rows, *([factors] if factors else [])]).encode()

    def restore(self, state: bytes) -> None:
        """Continue from a state that `save` returned."""
        self._gains = self._new_gains()
        first, begin, rows, *more = json.loads(state)
        self._factors = {first + job: factor for job, factor in (more[0] if more else ())}
        self._records = {
            first + job: RingRecord(
                done, begin + since, tuple(servers), tuple(workers), tuple(last), attained
            )
            for job, done, since, servers, workers, last, attained in rows
        }


def _room(view: View) -> Callable[[int, int], int]:
    """(node, resource) -> milli-units that a host has now, within the limits of its rack and site."""
    lineage = view.setup.lineage
    return lambda node, r: min(view.capacity(at, r) for at in lineage[node])


def _ring(rings: Rings, i: int) -> Ring:
    """The ring of job i."""
    here = rings.server[i] >= 0
    return tuple(rings.server[i][here].tolist()), tuple(rings.workers[i][here].tolist())


def _earned(gain: Floats, rings: Rings) -> float:
    """Gains (I, N + 1) of the rings' sizes."""
    return float(gain[np.arange(len(gain)), rings.size].sum())
