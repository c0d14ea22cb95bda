"""The audit's own arithmetic of work: duration of a round, work done, time of completion."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from tradewind.audit.record import Record
from tradewind.model.decision import Step
from tradewind.model.job import Dataset, Fixed, Job, Rounds
from tradewind.model.setup import Setup


def hop_weight(transport: str, hops: int) -> Fraction:
    """w(h): h for store-and-forward, 1 for cut-through, 1 + (h-1)/K for chunks:K."""
    if transport.startswith("chunks:"):
        return 1 + Fraction(hops - 1, int(transport[7:]))
    return Fraction(hops if transport == "store-and-forward" else 1)


def exchanged(job: Job, site: int) -> int:
    """Bytes that a worker site sends and receives in a round: site_bytes if given, else model_bytes."""
    return next((size for node, size in job.site_bytes if node == site), job.model_bytes)


def comm_time_us(setup: Setup, job: Job, step: Step) -> int:
    """Communication of one round in microseconds (docs/formats.md, "Work")."""
    work = job.work
    if not isinstance(work, Rounds) or work.comm == "none":
        return 0
    bits, n = Fraction(8 * job.model_bytes), sum(step.workers)
    if work.comm == "flows":
        worst = 0
        for route in step.routes:
            if route.path:
                push = (
                    hop_weight(setup.transport, len(route.path)) * 8 * exchanged(job, route.src) / route.bps
                )
                worst = max(
                    worst, 2 * (round(push * 10**6) + sum(setup.links[k].latency_us for k in route.path))
                )
        return worst
    if work.comm == "colocated":
        if len(step.nodes) <= 1 or not bits or not n:
            return 0
        return ceil(2 * bits * 10**6 / min(Fraction(job.worker_bps), Fraction(job.server_bps, n)))
    if n <= 1 or not bits:
        return 0
    share = bits * Fraction(n - 1, n) * 10**6
    send = ceil(2 * share / job.ring_bps) if len(step.nodes) > 1 else 0
    return send + (ceil(share / job.reduce_bps) if job.reduce_bps else 0)


def speed(setup: Setup, job: Job, step: Step) -> Fraction | int:
    """Work per microsecond: microseconds (fixed), millionths of a round or worker-slot (rounds), 0 for data."""
    work = job.work
    if isinstance(work, Fixed):
        return int(sum(step.workers) >= job.workers_min)
    if isinstance(work, Rounds):
        if work.unit == "worker-slot":
            return Fraction(sum(step.workers) * 10**6, setup.slot_us)
        if not any(step.workers):
            return 0
        rounds = sum(step.workers) if work.unit == "worker-round" else 1
        return Fraction(rounds * 10**6, max(1, work.compute_us + comm_time_us(setup, job, step)))
    return 0


class WorkLedger:
    """Work done by records, and resources used. Work is rounded down when a step ends or a plan is replaced."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.used = [0] * len(setup.resources)  # milli-unit-microseconds of each resource

    def mark(self, record: Record, now_us: int) -> None:
        """Record the work done when the current slot began; after a failure the job continues from it."""
        boundary = now_us - now_us % self._setup.slot_us
        if record.mark_us >= boundary:
            return
        record.mark_us = boundary
        kept = (record.done, record.since_us, record.start_us, record.last_places)
        sums = (record.comm_us, record.comm_span_us, record.steps_run, dict(record.chunks_done))
        used, caps = self.used[:], dict(record.cap_used)
        if boundary > record.since_us:
            self.accrue(record, boundary)
        record.mark_done = record.done
        record.done, record.since_us, record.start_us, record.last_places = kept
        record.comm_us, record.comm_span_us, record.steps_run, record.chunks_done = sums
        self.used, record.cap_used = used, caps

    def accrue(self, record: Record, until_us: int) -> None:
        """Add the work of the committed steps from record.since_us to until_us."""
        job, work = record.job, record.job.work
        if type(work) is Fixed and len(record.steps) == 1 and not (job.restart_us or job.caps or job.servers):
            self._accrue_fixed(record, record.steps[0], until_us)
            return
        for step in record.steps:
            if step.until_us <= record.since_us or step.from_us >= until_us:
                continue
            begin, end = max(step.from_us, record.since_us), min(step.until_us, until_us)
            if record.start_us < 0:
                record.start_us = begin
            if isinstance(work, Dataset):
                if step.until_us <= until_us:
                    for flow in step.flows:
                        n = flow.bytes // work.chunk_bytes
                        record.chunks_done[flow.src] = record.chunks_done.get(flow.src, 0) + n
                        record.done += n
            else:
                ready = begin + self._restart_us(record, step)
                if ready < end:
                    done = record.done + floor((end - ready) * speed(self._setup, job, step))
                    record.done = done if record.total is None else min(done, record.total)
            if isinstance(work, Rounds) and work.comm != "none" and work.unit != "worker-slot":
                record.comm_us += (end - begin) * comm_time_us(self._setup, job, step)
                record.comm_span_us += end - begin
            self._count(record, step, end - begin)
        record.since_us = max(record.since_us, until_us)

    def _count(self, record: Record, step: Step, span_us: int) -> None:
        """Count the resources a step used, for utilisation and the job's caps."""
        job = record.job
        record.steps_run += 1
        workers = sum(step.workers)
        for resource, milli in job.worker:
            self.used[resource] += milli * workers * span_us
            if job.caps:
                record.cap_used[resource] = record.cap_used.get(resource, 0) + milli * workers * span_us
        if step.servers:
            for resource, milli in job.server:
                self.used[resource] += milli * sum(step.servers) * span_us

    def _accrue_fixed(self, record: Record, step: Step, until_us: int) -> None:
        """The same for the common case: a fixed job with one step."""
        begin, end = max(step.from_us, record.since_us), min(step.until_us, until_us)
        if begin < end:
            if record.start_us < 0:
                record.start_us = begin
            workers, job = sum(step.workers), record.job
            if workers >= job.workers_min:
                record.done += end - begin
            record.steps_run += 1
            for resource, milli in job.worker:
                self.used[resource] += milli * workers * (end - begin)
        record.since_us = max(record.since_us, until_us)

    def finish_us(self, record: Record) -> int | None:
        """When the committed steps finish the job, from record.done at record.since_us; None if they do not."""
        if record.total is None:
            return None
        job, done = record.job, record.done
        if type(job.work) is Fixed and len(record.steps) == 1 and not job.restart_us:
            step = record.steps[0]
            ready = max(step.from_us, record.since_us) + max(1, record.total - done)
            return ready if sum(step.workers) >= job.workers_min and ready <= step.until_us else None
        if isinstance(job.work, Dataset):
            for step in record.steps:
                if step.until_us > record.since_us:
                    done += sum(flow.bytes for flow in step.flows) // job.work.chunk_bytes
                    if done >= record.total:
                        return step.until_us
            return None
        places, start_us = record.last_places, record.start_us
        for step in record.steps:
            if step.until_us <= record.since_us:
                continue
            begin = max(step.from_us, record.since_us)
            start_us = begin if start_us < 0 else start_us
            begin += self._restart_us(record, step)
            pace = speed(self._setup, job, step)
            if pace:
                ready = begin + max(1, ceil((record.total - done) / pace))
                if isinstance(job.work, Rounds) and job.work.whole_slots:
                    ready = (
                        start_us + ceil(Fraction(ready - start_us, self._setup.slot_us)) * self._setup.slot_us
                    )
                if ready <= step.until_us:
                    record.last_places = places
                    return ready
                done = min(record.total, done + floor(max(0, step.until_us - begin) * pace))
        record.last_places = places
        return None

    @staticmethod
    def _restart_us(record: Record, step: Step) -> int:
        """Time lost because workers or servers moved; updates record.last_places."""
        if not record.job.restart_us:
            return 0
        servers = step.servers or (0,) * len(step.nodes)
        places = frozenset(zip(step.nodes, servers, strict=True))
        moved = bool(record.last_places) and places != record.last_places
        record.last_places = places
        return record.job.restart_us if moved else 0
