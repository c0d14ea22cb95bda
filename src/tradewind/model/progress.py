"""How fast jobs progress: the performance model of the simulated world."""

from __future__ import annotations

from itertools import permutations

from tradewind.model.decision import Route, Step
from tradewind.model.job import DECLARED, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.machine import Machine, allreduce_us
from tradewind.model.setup import Setup, transport_fraction
from tradewind.model.units import MICRO, MILLI, US_PER_S


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _round_div(a: int, b: int) -> int:
    """a / b rounded to the nearest integer, halves to even; exact for integers of any size."""
    whole, rest = divmod(a, b)
    return whole + (2 * rest > b or (2 * rest == b and whole % 2 == 1))


def route_us(setup: Setup, job: Job, route: Route) -> int:
    """Microseconds to push and pull a site's parameters over a route: 2 * (w(hops) * 8 D / bps + latency)."""
    hops = len(route.path)
    latency = sum(setup.links[link].latency_us for link in route.path)
    weight, whole = transport_fraction(setup.transport, hops)
    return 2 * (_round_div(weight * 8 * job.bytes_of(route.src) * US_PER_S, whole * route.bps) + latency)


def iteration_us(setup: Setup, job: Job | None, step: Step) -> int:
    """Predicted time of an iteration; 0 for fixed, stream and dataset work."""
    if job is None or not isinstance(job.work, Rounds):
        return 0
    if job.work.comm == "machines":
        return machines_us(setup, job, step)
    return job.work.compute_us + comm_us(setup, job, step)


def comm_us(setup: Setup, job: Job, step: Step) -> int:
    """Communication time of a round, by the work's `comm` rule (see model.job.Rounds)."""
    work = job.work
    assert isinstance(work, Rounds)
    bits, workers = 8 * job.model_bytes, sum(step.workers)
    match work.comm:
        case "none" | "machines":
            return 0
        case "colocated":
            if len(step.nodes) == 1 or bits == 0 or workers == 0:
                return 0
            # bandwidth is min(worker_bps, server_bps / workers), kept as a fraction so that rounding is exact
            return _ceil_div(2 * bits * US_PER_S * workers, min(job.worker_bps * workers, job.server_bps))
        case "flows":
            return max((route_us(setup, job, route) for route in step.routes if route.path), default=0)
        case "ring":
            n = max(workers, 1)
            moved = 2 * bits * (n - 1) * US_PER_S
            send = _ceil_div(moved, n * job.ring_bps) if len(step.nodes) > 1 and moved else 0
            add = _ceil_div(bits * (n - 1) * US_PER_S, n * job.reduce_bps) if job.reduce_bps and moved else 0
            return send + add


def machine_round_us(job: Job, machine: Machine | None, machines: int) -> int:
    """Microseconds of a round on so many machines, with as many GPUs as make it shortest; 0: it cannot run there."""
    work, speed = job.work, 0 if machine is None else dict(job.gpu_speeds).get(machine.gpu, 0)
    if machine is None or not speed or not isinstance(work, Rounds):
        return 0
    return min(
        (
            _ceil_div(work.compute_us * MILLI, gpus * speed)
            + allreduce_us(machine, machines, gpus, job.model_bytes)
            for gpus in machine.counts(machines, job.gpus)
        ),
        default=0,
    )


def split_gpus(gpus: int, second_bytes: int, all_bytes: int) -> tuple[int, int]:
    """GPUs at two sites in proportion to the data there, at least one each; gpus >= 2."""
    second = min(gpus - 1, max(1, (2 * gpus * second_bytes + all_bytes) // (2 * all_bytes)))
    return gpus - second, second


def site_pairs(job: Job) -> list[tuple[int, int]]:
    """Ordered pairs of sites that hold parts. With two parts the order does not matter, unless rounding splits a number of
    GPUs in halves."""
    parts = {site: size for site, size in job.parts if size}
    total, found = sum(parts.values()), list(permutations(sorted(parts), 2))
    if len(parts) == 2 and all((2 * gpus * parts[found[0][1]] + total) % (2 * total) for gpus in job.gpus):
        return found[:1]
    return found


def exchange_us(setup: Setup, job: Job, sites: tuple[int, int]) -> int:
    """Microseconds per round of a job that exchanges its parameters between two sites every sync_every rounds.

    (16 D / least bit/s of both directions + round trip) / sync_every
    """
    there, back = sites, (sites[1], sites[0])
    bps = min(setup.direct_bps.get(there, 0), setup.direct_bps.get(back, 0))
    if not bps or not job.sync_every:
        return 0
    trip_us = setup.direct_latency_us[there] + setup.direct_latency_us[back]
    return _ceil_div(_ceil_div(16 * job.model_bytes * US_PER_S, bps) + trip_us, job.sync_every)


def across_round_us(setup: Setup, job: Job, nodes: tuple[int, int], machines: tuple[int, int]) -> int:
    """Microseconds of a round at two sites that hold parts, with the number of GPUs that makes it shortest; 0: not possible.

    GPUs are split by data: the second site has its own, the first all the rest. A round takes as long as at the slower
    site, and its part of the exchange.
    """
    work, speeds = job.work, dict(job.gpu_speeds)
    kinds = [setup.nodes[node].machine for node in nodes]
    sites, parts = (setup.site_of[nodes[0]], setup.site_of[nodes[1]]), dict(job.parts)
    if sites[0] == sites[1] or not all(parts.get(site) for site in sites) or not isinstance(work, Rounds):
        return 0
    if not (exchange := exchange_us(setup, job, sites)) and job.model_bytes:
        return 0
    total, found = sum(parts.values()), 0
    for gpus in job.gpus if job.sync_every else ():
        round_us = 0
        for machine, count, share in zip(
            kinds, machines, split_gpus(gpus, parts[sites[1]], total) if gpus > 1 else (), strict=False
        ):
            if machine is None or machine.gpu not in speeds or -(-share // machine.gpus) != count:
                round_us = 0
                break
            side = _ceil_div(work.compute_us * MILLI, gpus * speeds[machine.gpu])
            round_us = max(round_us, side + allreduce_us(machine, count, share, job.model_bytes))
        if round_us and (not found or round_us + exchange < found):
            found = round_us + exchange
    return found


def machines_us(setup: Setup, job: Job, step: Step) -> int:
    """Microseconds of a round on the machines of a node, or of two at sites that exchange parameters; 0: not possible."""
    if len(step.nodes) == 1:
        return machine_round_us(job, setup.nodes[step.nodes[0]].machine, step.workers[0])
    if len(step.nodes) == 2:
        (a, b), (m, n) = step.nodes, step.workers
        return across_round_us(setup, job, (a, b), (m, n))
    return 0


def machine_rate(setup: Setup, job: Job, step: Step) -> tuple[int, int]:
    """Millionths of a round per microsecond. Checkpoints are taken where a machine can be interrupted."""
    round_us = machines_us(setup, job, step)
    if not round_us:
        return 0, 1
    if not job.checkpoint_us or not any(setup.nodes[node].interruptions_per_hour for node in step.nodes):
        return MICRO, round_us
    return MICRO * setup.slot_us, round_us * (setup.slot_us + job.checkpoint_us)


def chunks_done(setup: Setup, work: Dataset, step: Step, pace_milli: int) -> int:
    """Chunks of a step's flows that its workers really process, site by site; all of them if the declaration is right."""
    if pace_milli <= DECLARED:
        return sum(flow.bytes for flow in step.flows) // work.chunk_bytes
    wanted: dict[int, int] = {}
    for flow in step.flows:
        wanted[flow.dst] = wanted.get(flow.dst, 0) + flow.bytes // work.chunk_bytes
    span = step.until_us - step.from_us
    able = {
        node: workers
        * work.chunk_epochs_per_worker_slot_milli
        * span
        // (pace_milli * work.epochs * setup.slot_us)
        for node, workers in zip(step.nodes, step.workers, strict=True)
    }
    return sum(min(chunks, able.get(node, 0)) for node, chunks in wanted.items())


def rate(setup: Setup, job: Job, step: Step) -> tuple[int, int]:
    """Work per microsecond as (numerator, denominator); (0, 1) for data, whose progress does not depend on time alone."""
    work = job.work
    if isinstance(work, Fixed):
        return (1, 1) if sum(step.workers) >= job.workers_min else (0, 1)
    match work:
        case Rounds() if work.unit == "worker-slot":
            return sum(step.workers) * MICRO, setup.slot_us
        case Rounds() if sum(step.workers) == 0:  # a parameter server alone trains nothing
            return 0, 1
        case Rounds() if work.comm == "machines":
            return machine_rate(setup, job, step)
        case Rounds():
            each = sum(step.workers) if work.unit == "worker-round" else 1
            return each * MICRO, max(1, work.compute_us + comm_us(setup, job, step))
        case Stream() | Dataset():
            return 0, 1
