"""The audit's own arithmetic of work: duration of a round, work done, time of completion."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from tradewind.audit.record import Record
from tradewind.model.decision import Step
from tradewind.model.job import DECLARED, Dataset, Fixed, Job, Rounds
from tradewind.model.machine import Machine
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
    if not isinstance(work, Rounds) or work.comm in ("none", "machines"):
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


def true_speed(setup: Setup, record: Record, step: Step) -> Fraction | int:
    """Work per microsecond of a job whose declaration may be wrong (Customer.pace_milli)."""
    pace = record.customer.pace_milli
    declared = speed(setup, record.job, step)
    return declared if pace == DECLARED else Fraction(declared) * DECLARED / pace


def true_chunks(setup: Setup, record: Record, step: Step) -> list[int]:
    """Chunks of each flow that a step's workers process: in the order of the flows, as many as each site is able to."""
    work, pace = record.job.work, record.customer.pace_milli
    assert isinstance(work, Dataset)
    found = [flow.bytes // work.chunk_bytes for flow in step.flows]
    if pace <= DECLARED:
        return found
    slots = Fraction(step.until_us - step.from_us, setup.slot_us)
    left = {
        node: floor(workers * slots * work.chunk_epochs_per_worker_slot_milli / (pace * work.epochs))
        for node, workers in zip(step.nodes, step.workers, strict=True)
    }
    for row, flow in enumerate(step.flows):
        found[row] = min(found[row], left.get(flow.dst, 0))
        left[flow.dst] = left.get(flow.dst, 0) - found[row]
    return found


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
        if work.comm == "machines":
            return _machine_speed(setup, job, step)
        rounds = sum(step.workers) if work.unit == "worker-round" else 1
        return Fraction(rounds * 10**6, max(1, work.compute_us + comm_time_us(setup, job, step)))
    return 0


def _machine_speed(setup: Setup, job: Job, step: Step) -> Fraction | int:
    """Millionths of a round per microsecond on the machines of a step, less a checkpoint per slot on spot."""
    times = step_times_us(setup, job, step)
    if not times:
        return 0
    spot = any(setup.nodes[node].interruptions_per_hour > 0 for node in step.nodes)
    return Fraction(10**6 * setup.slot_us, min(times) * (setup.slot_us + (job.checkpoint_us if spot else 0)))


def machine_times_us(job: Job, machine: Machine, machines: int) -> list[int]:
    """Microseconds of a round for every number of GPUs that fills so many machines; empty: the job cannot run on them."""
    work, speeds = job.work, dict(job.gpu_speeds)
    assert isinstance(work, Rounds)
    if machine.gpu not in speeds:
        return []
    found = []
    for n in job.gpus:
        if (machines - 1) * machine.gpus < n <= machines * machine.gpus:
            compute = ceil(Fraction(work.compute_us * 1000, n * speeds[machine.gpu]))
            found.append(compute + _allreduce_us(job, machine, machines, n))
    return found


def step_times_us(setup: Setup, job: Job, step: Step) -> list[int]:
    """The same for a step, at one site or at two that hold parts of the data."""
    if len(step.nodes) == 2:
        return _across_times_us(setup, job, step)
    if len(step.nodes) != 1 or (machine := setup.nodes[step.nodes[0]].machine) is None:
        return []
    return machine_times_us(job, machine, step.workers[0])


def _across_times_us(setup: Setup, job: Job, step: Step) -> list[int]:
    """n GPUs, n_2 of them by the second site's share of the data: max over both sites + (16 D / bps + rtt) / sync_every."""
    (a, b), work, speeds, parts = step.nodes, job.work, dict(job.gpu_speeds), dict(job.parts)
    one, two = setup.nodes[a].machine, setup.nodes[b].machine
    here, there = setup.site_of[a], setup.site_of[b]
    assert isinstance(work, Rounds)
    if one is None or two is None or here == there or not job.sync_every:
        return []
    if one.gpu not in speeds or two.gpu not in speeds or not (parts.get(here) and parts.get(there)):
        return []
    ways = [setup.direct_bps.get(pair, 0) for pair in ((here, there), (there, here))]
    if not all(ways):
        return []
    trip = setup.direct_latency_us[here, there] + setup.direct_latency_us[there, here]
    exchange = ceil(Fraction(ceil(Fraction(16 * job.model_bytes * 10**6, min(ways))) + trip, job.sync_every))
    share, found = Fraction(parts[there], sum(parts.values())), []
    for n in job.gpus:
        if n < 2:
            continue
        second = min(n - 1, max(1, floor(n * share + Fraction(1, 2))))
        sides = []
        for machine, count, gpus in ((one, step.workers[0], n - second), (two, step.workers[1], second)):
            if ceil(Fraction(gpus, machine.gpus)) == count:
                compute = ceil(Fraction(work.compute_us * 1000, n * speeds[machine.gpu]))
                sides.append(compute + _allreduce_us(job, machine, count, gpus))
        if len(sides) == 2:
            found.append(max(sides) + exchange)
    return found


def _allreduce_us(job: Job, machine: Machine, machines: int, gpus: int) -> int:
    """One machine: 2 (n-1)/n 8D / bus; several: 2 (m-1)/m 8D / network + 2 8D / bus."""
    bits = Fraction(8 * job.model_bytes * 10**6)
    if machines == 1:
        return ceil(2 * bits * (gpus - 1) / gpus / machine.bus_bps)
    across = ceil(2 * bits * (machines - 1) / machines / machine.network_bps)
    return across + ceil(2 * bits / machine.bus_bps)


class WorkLedger:
    """Work done by records, and resources used. Work is rounded down when a step ends or a plan is replaced."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.used = [0] * len(setup.resources)  # milli-unit-microseconds of each resource

    def mark(self, record: Record, now_us: int) -> None:
        """Record the work done when the current slot began; after a failure the job continues from it."""
        boundary = now_us - now_us % self._setup.slot_us
        if record.mark_us < boundary:
            record.mark_us, record.mark_done = boundary, self.done_by(record, boundary)

    def done_by(self, record: Record, until_us: int) -> int:
        """Work done by an instant, which is not counted yet."""
        kept = (record.done, record.since_us, record.start_us, record.last_places)
        sums = (record.comm_us, record.comm_span_us, record.steps_run, dict(record.chunks_done))
        ran = (record.ran, record.starts, record.staged)
        used, caps = self.used[:], dict(record.cap_used)
        if until_us > record.since_us:
            self.accrue(record, until_us)
        done = record.done
        record.done, record.since_us, record.start_us, record.last_places = kept
        record.comm_us, record.comm_span_us, record.steps_run, record.chunks_done = sums
        self.used, record.cap_used = used, caps
        record.ran, record.starts, record.staged = ran
        return done

    def accrue(self, record: Record, until_us: int) -> None:
        """Add the work of the committed steps from record.since_us to until_us."""
        if record.plain and len(record.steps) == 1:
            self._accrue_plain(record, record.steps[0], until_us)
            return
        job, work = record.job, record.job.work
        for step in record.steps:
            if step.until_us <= record.since_us or step.from_us >= until_us:
                continue
            begin, end = max(step.from_us, record.since_us), min(step.until_us, until_us)
            if record.start_us < 0:
                record.start_us = begin
            if isinstance(work, Dataset):
                if step.until_us <= until_us:
                    for flow, n in zip(step.flows, true_chunks(self._setup, record, step), strict=True):
                        record.chunks_done[flow.src] = record.chunks_done.get(flow.src, 0) + n
                        record.done += n
            else:
                ready = begin + self._restart_us(record, step)
                if job.gpus:
                    record.staged |= {(flow.src, flow.dst) for flow in step.flows}
                if job.gpus or job.restarts is not None:
                    ready = max(ready, self._run(record, step, begin, end))
                if ready < end:
                    done = record.done + floor((end - ready) * true_speed(self._setup, record, step))
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

    def _accrue_plain(self, record: Record, step: Step, until_us: int) -> None:
        """The same for the common case: a plain job with one step."""
        begin, end, since = step[0], step[1], record.since_us
        if begin < since:
            begin = since
        if end > until_us:
            end = until_us
        if begin < end:
            if record.start_us < 0:
                record.start_us = begin
            workers, job = sum(step[3]), record.job
            if workers >= job.workers_min:
                record.done += end - begin
            record.steps_run += 1
            for resource, milli in job.worker:
                self.used[resource] += milli * workers * (end - begin)
        if since < until_us:
            record.since_us = until_us

    def finish_us(self, record: Record) -> int | None:
        """When the committed steps finish the job, from record.done at record.since_us; None if they do not."""
        if record.total is None:
            return None
        job, done = record.job, record.done
        if record.plain and len(record.steps) == 1:
            begin, until, _, workers, _, _, _, _ = record.steps[0]
            ready = max(begin, record.since_us) + max(1, record.total - done)
            return ready if sum(workers) >= job.workers_min and ready <= until else None
        if isinstance(job.work, Dataset):
            for step in record.steps:
                if step.until_us > record.since_us:
                    done += sum(true_chunks(self._setup, record, step))
                    if done >= record.total:
                        return step.until_us
            return None
        places, start_us, ran = record.last_places, record.start_us, (record.ran, record.starts)
        found = self._first_finish(record, done, start_us)
        record.last_places, (record.ran, record.starts) = places, ran
        return found

    def _first_finish(self, record: Record, done: int, start_us: int) -> int | None:
        """When the steps do the work that is left; changes what the record says of the last run."""
        job, total = record.job, record.total
        assert total is not None
        for step in record.steps:
            if step.until_us <= record.since_us:
                continue
            begin = max(step.from_us, record.since_us)
            start_us = begin if start_us < 0 else start_us
            if job.gpus:
                begin = self._run(record, step, begin, step.until_us)
            begin += self._restart_us(record, step)
            pace = true_speed(self._setup, record, step)
            if pace:
                ready = begin + max(1, ceil((total - done) / pace))
                if isinstance(job.work, Rounds) and job.work.whole_slots:
                    ready = (
                        start_us + ceil(Fraction(ready - start_us, self._setup.slot_us)) * self._setup.slot_us
                    )
                if ready <= step.until_us:
                    return ready
                done = min(total, done + floor(max(0, step.until_us - begin) * pace))
        return None

    @staticmethod
    def _run(record: Record, step: Step, begin: int, end: int) -> int:
        """Enter a run from begin to end; return when it does work: after the warm-up, unless it continues the last one."""
        until, places, warm_us = record.ran
        here = tuple(zip(step.nodes, step.workers, strict=True))
        if until != begin or places != here:
            warm_us = begin + record.job.warmup_us
            record.starts += 1
        record.ran = (end, here, warm_us)
        return max(begin, warm_us)

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
