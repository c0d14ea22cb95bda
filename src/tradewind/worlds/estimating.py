"""What the ranks of a live job measured so far, as the event `measured` tells it: online, with uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tradewind.model.estimate import ALL, Measured
from tradewind.model.job import Fixed
from tradewind.model.progress import iteration_us
from tradewind.model.setup import Setup
from tradewind.worlds.gang import Gang
from tradewind.worlds.measured import UNKNOWN, RankMeasure

LEAST = 4
"""Iterations of a rank before it counts."""
Part = tuple[RankMeasure, float]
"""What a rank measured, and what is declared for its iterations."""


def measured_of(setup: Setup, gang: Gang, pace: float, now_us: int) -> tuple[Measured, ...]:
    """The job as a whole and each of its nodes; empty: nothing yet. pace: scenario microseconds per second.

    How far a fixed job is shows at its end only.
    """
    work = gang.job.work
    if isinstance(work, Fixed):
        if not gang.complete or not work.runtime_us:
            return ()
        ran = max(1, gang.running_us(now_us))
        return (Measured(ALL, 0, ran / pace, UNKNOWN, work.runtime_us / pace),)
    nodes: dict[int, list[list[Part]]] = {}
    for attempt in gang.attempts:
        declared_us = iteration_us(setup, gang.job, attempt.step)
        attempt.tally.settle()
        here: dict[int, list[Part]] = {}
        for raw in attempt.tally.ranks if declared_us > 0 else ():
            measure = RankMeasure(*raw)
            rank = attempt.launch.ranks[measure.rank]
            if rank.role == "worker" and measure.iterations >= LEAST and measure.seconds > 0:
                expected_s = measure.expected_us(declared_us) / pace
                here.setdefault(rank.node, []).append((measure, expected_s))
        for node, parts in here.items():
            nodes.setdefault(node, []).append(parts)
    if not nodes:
        return ()
    each = [_joined(node, attempts) for node, attempts in sorted(nodes.items())]
    return (_whole(each), *each)


def _joined(node: int, attempts: Sequence[Sequence[Part]]) -> Measured:
    """Means over attempts, weighted by iterations. The first worker speaks for the time, all for samples and bytes."""
    firsts = [parts[0] for parts in attempts]
    count = sum(first.iterations for first, _ in firsts)
    seconds = sum(first.iterations * first.seconds for first, _ in firsts)
    errors = [first.iterations * first.error_s for first, _ in firsts]
    waits = sum(first.iterations * first.communication_s for first, _ in firsts)

    def per_second(name: str) -> float:
        known = [(m.iterations, getattr(m, name)) for parts in attempts for m, _ in parts]
        return sum(n * value for n, value in known) / seconds if min(v for _, v in known) >= 0 else UNKNOWN

    return Measured(
        node, count, seconds / count, UNKNOWN if min(errors) < 0 else math.hypot(*errors) / count,
        sum(first.iterations * declared for first, declared in firsts) / count,
        waits / seconds if waits else UNKNOWN, per_second("samples"), per_second("bytes_sent"),
    )  # fmt: skip


def _whole(each: Sequence[Measured]) -> Measured:
    """The job as a whole: sites step together, so the one with the most iterations speaks for the time."""
    slowest = max(each, key=lambda m: (m.iterations, m.seconds))

    def total(name: str) -> float:
        values = [getattr(m, name) for m in each]
        return sum(values) if min(values) >= 0 else UNKNOWN

    shares = [m.communication_share for m in each]
    return slowest._replace(
        node=ALL,
        communication_share=min(shares) if min(shares) >= 0 else UNKNOWN,
        samples_per_s=total("samples_per_s"),
        bytes_per_s=total("bytes_per_s"),
    )
