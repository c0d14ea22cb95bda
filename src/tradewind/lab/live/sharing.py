"""Rounds of several jobs whose transfers meet on links: a fluid model.

A job pushes from all its sites to its server, and when all has arrived pulls the same way back. At every moment transfers
in progress share links max-min fairly; one with a reserved rate gets that at most, and where links are short, shares in
proportion to it. How long rounds take depends on when those of other jobs begin, which nobody knows. So the prediction is a
range: that of many random beginnings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from tradewind.worlds.testbed.wan import GOODPUT, Path, Wan

Hop = tuple[int, int]
DRAWS, ROUNDS = 100, 12
INSTANT_S = 1e-9


class Flow(NamedTuple):
    """A transfer of every round: its path, and the rate that is reserved for it (0: none, an even share)."""

    path: Path
    bps: float = 0.0

    @property
    def back(self) -> Flow:
        """The same the other way."""
        return Flow(self.path[::-1], self.bps)


class Exchanger(NamedTuple):
    """A job: what its sites push to the server and pull back, bytes of the model, and the pause between rounds."""

    push: Sequence[Flow]
    size: int
    pause_s: float = 0.0


def fair_rates(flows: Sequence[Flow], rates: dict[Hop, float]) -> list[float]:
    """Max-min fair rates of flows: what is scarcest is given away first, a link among its flows or a flow's own rate."""
    found, room = [0.0] * len(flows), dict(rates)
    open_ = {i: list(pairwise(flow.path)) for i, flow in enumerate(flows)}
    weight = [flow.bps or 1.0 for flow in flows]  # the level of a flow with a reserved rate is 1 at most
    while open_:
        wanted: dict[Hop, float] = {}
        for i, hops in open_.items():
            for hop in hops:
                wanted[hop] = wanted.get(hop, 0.0) + weight[i]
        scarce = min(wanted, key=lambda hop: room[hop] / wanted[hop])
        level = room[scarce] / wanted[scarce]
        full = [i for i in open_ if flows[i].bps and level > 1]
        if full:
            level = 1.0
        for i in full or [i for i, hops in open_.items() if scarce in hops]:
            found[i] = weight[i] * level
            for hop in open_.pop(i):
                room[hop] = max(0.0, room[hop] - found[i])
    return found


class Traffic:
    """A job that does rounds: what it pushes and pulls, what is left of the present phase, and when that begins."""

    def __init__(self, job: Exchanger) -> None:
        self.phases = (job.push, [flow.back for flow in job.push])
        self.bits, self.phase = 8 * job.size / GOODPUT, 0
        self.left = [self.bits] * len(job.push)
        self.pause_s, self.began, self.rounds = job.pause_s, 0.0, list[float]()

    def waits_s(self, now: float) -> float:
        """Seconds until the round begins; 0 if it has begun."""
        left = self.began - now
        return left if left > INSTANT_S else 0.0

    def transfers(self, now: float) -> list[tuple[int, Flow]]:
        """Number and flow of what is in progress."""
        if self.waits_s(now):
            return []
        return [(i, flow) for i, flow in enumerate(self.phases[self.phase]) if self.left[i] > 0]

    def turn(self, now: float) -> None:
        """Go on to the next phase if this one is over."""
        if any(left > 0 for left in self.left):
            return
        self.phase = 1 - self.phase
        self.left = [self.bits] * len(self.phases[self.phase])
        if self.phase == 0:
            self.rounds.append(now - self.began)
            self.began = now + self.pause_s


def shared_s(wan: Wan, jobs: Sequence[Exchanger]) -> list[tuple[float, float, float]]:
    """Median seconds of a round of each job: least, middle and most over beginnings."""
    rng, rates = np.random.default_rng(22), {hop: float(bps) for hop, bps in wan.rates().items()}
    draws = [[median(rounds) for rounds in _simulated(rates, jobs, rng)] for _ in range(DRAWS)]
    return [(min(own), median(own), max(own)) for own in zip(*draws, strict=True)]


def _simulated(
    rates: dict[Hop, float], jobs: Sequence[Exchanger], rng: np.random.Generator
) -> list[list[float]]:
    """Rounds of each job after its first, from random beginnings, until each has done some."""
    made = [Traffic(job) for job in jobs]
    for each in made:  # somewhere in a phase
        each.phase = int(rng.integers(2))
        each.left = [each.bits * float(rng.uniform(0.05, 1.0))] * len(each.phases[each.phase])
    now = 0.0
    while min(len(each.rounds) for each in made) < ROUNDS:
        going = [(each, i, flow) for each in made for i, flow in each.transfers(now)]
        speeds = fair_rates([flow for _, _, flow in going], rates)
        ends = [each.left[i] / bps for (each, i, _), bps in zip(going, speeds, strict=True)]
        step = min(ends + [wait for each in made if (wait := each.waits_s(now))])
        now += step
        for (each, i, _), bps in zip(going, speeds, strict=True):
            rest = each.left[i] - bps * step
            each.left[i] = rest if rest > 1e-9 * each.bits else 0.0
        for each in made:
            each.turn(now)
    return [each.rounds[1:] for each in made]
