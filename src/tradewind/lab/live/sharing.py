"""Rounds of several jobs that share links evenly, without reserved rates: a fluid model.

A job pushes from all its sites to its server, and when all has arrived pulls the same way back. At every moment transfers
in progress share links max-min fairly. How long rounds take depends on when those of other jobs begin, which nobody knows.
So the prediction is a range: that of many random beginnings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from tradewind.worlds.testbed.wan import GOODPUT, Path, Wan

Hop = tuple[int, int]
DRAWS, ROUNDS = 20, 12


def fair_rates(paths: Sequence[Path], rates: dict[Hop, float]) -> list[float]:
    """Max-min fair rates of transfers along paths: links are filled one after another, the scarcest first."""
    found, room = [0.0] * len(paths), dict(rates)
    open_ = {i: list(pairwise(path)) for i, path in enumerate(paths)}
    while open_:
        users: dict[Hop, int] = {}
        for hops in open_.values():
            for hop in hops:
                users[hop] = users.get(hop, 0) + 1
        scarce = min(users, key=lambda hop: room[hop] / users[hop])
        share = room[scarce] / users[scarce]
        for i in [i for i, hops in open_.items() if scarce in hops]:
            found[i] = share
            for hop in open_.pop(i):
                room[hop] -= share
    return found


class Traffic:
    """A job that does rounds: the paths of what it pushes and pulls, and what is left of the present phase."""

    def __init__(self, push: Sequence[Path], pull: Sequence[Path], size: int) -> None:
        self.phases, self.bits, self.phase = (push, pull), 8 * size / GOODPUT, 0
        self.left = [self.bits] * len(push)
        self.began, self.rounds = 0.0, list[float]()

    def transfers(self) -> list[tuple[int, Path]]:
        """Number and path of what is in progress."""
        return [(i, path) for i, path in enumerate(self.phases[self.phase]) if self.left[i] > 0]

    def turn(self, now: float) -> None:
        """Go on to the next phase if this one is over."""
        if any(left > 0 for left in self.left):
            return
        self.phase = 1 - self.phase
        self.left = [self.bits] * len(self.phases[self.phase])
        if self.phase == 0:
            self.rounds.append(now - self.began)
            self.began = now


def shared_s(
    wan: Wan, jobs: Sequence[tuple[Sequence[Path], Sequence[Path], int]]
) -> list[tuple[float, float, float]]:
    """Median seconds of a round of each job: least, middle and most over beginnings.

    jobs: paths pushed and pulled, and bytes of the model
    """
    rng, rates = np.random.default_rng(22), {hop: float(bps) for hop, bps in wan.rates().items()}
    draws = [[median(rounds) for rounds in _simulated(rates, jobs, rng)] for _ in range(DRAWS)]
    return [(min(own), median(own), max(own)) for own in zip(*draws, strict=True)]


def _simulated(
    rates: dict[Hop, float],
    jobs: Sequence[tuple[Sequence[Path], Sequence[Path], int]],
    rng: np.random.Generator,
) -> list[list[float]]:
    """Rounds of each job after its first, from random beginnings, until each has done some."""
    made = [Traffic(*job) for job in jobs]
    for each in made:  # somewhere in a phase
        each.phase = int(rng.integers(2))
        each.left = [each.bits * float(rng.uniform(0.05, 1.0))] * len(each.phases[each.phase])
    now = 0.0
    while min(len(each.rounds) for each in made) < ROUNDS:
        going = [(each, i, path) for each in made for i, path in each.transfers()]
        speeds = fair_rates([path for _, _, path in going], rates)
        step = min(each.left[i] / bps for (each, i, _), bps in zip(going, speeds, strict=True))
        now += step
        for (each, i, _), bps in zip(going, speeds, strict=True):
            rest = each.left[i] - bps * step
            each.left[i] = rest if rest > 1e-9 * each.bits else 0.0
        for each in made:
            each.turn(now)
    return [each.rounds[1:] for each in made]
