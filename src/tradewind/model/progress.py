"""How fast jobs progress: the performance model of the simulated world."""

from __future__ import annotations

from tradewind.model.decision import Route, Step
from tradewind.model.job import Dataset, Fixed, Job, Rounds, Stream
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


def machine_rate(setup: Setup, job: Job, step: Step) -> tuple[int, int]:
    """Millionths of a round per microsecond on the machines of a node; checkpoints are taken where it can be interrupted."""
    if len(step.nodes) != 1:
        return 0, 1
    node = setup.nodes[step.nodes[0]]
    round_us = machine_round_us(job, node.machine, step.workers[0])
    if not round_us:
        return 0, 1
    if not node.interruptions_per_hour or not job.checkpoint_us:
        return MICRO, round_us
    return MICRO * setup.slot_us, round_us * (setup.slot_us + job.checkpoint_us)


def rate(setup: Setup, job: Job, step: Step) -> tuple[int, int]:
    """Work per microsecond as (numerator, denominator); (0, 1) for data, whose progress does not depend on time alone."""
    work = job.work
    match work:
        case Fixed():
            return (1, 1) if sum(step.workers) >= job.workers_min else (0, 1)
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
