"""Slots of runs of the printed algorithm, each solved as printed, by ours, and to its optimum: Figure 7 and the theorems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.exact import solve_exactly
from tradewind.systems.gadget.kernels.paper import Rounded, fitting, most_workers, paper
from tradewind.systems.gadget.kernels.slot import Slot, worth
from tradewind.systems.gadget.kernels.solve import SlotEffort, solve
from tradewind.systems.gadget.paper import PAPER, Rounding
from tradewind.systems.gadget.shared.choice import RingChoice, RingRecord
from tradewind.systems.gadget.shared.gains import fine_gains
from tradewind.systems.gadget.shared.scheduler import RingScheduler
from tradewind.worlds.simulate import simulate

CERTIFIED = 0.999
"""Share of its bound from which on our answer counts as the optimum of a slot."""
EXACT_SERVERS = 12
"""Servers up to which a slot that is not certified is solved exactly; larger ones are left out."""
LEAST_WORTH = 1e-5
"""Slots worth less are left out: an LP does not tell their gains, the foot of sigmoids of height 1 to 100, from 0."""
TRIES = 10
"""u_b; the paper does not print it."""


class SlotFound(NamedTuple):
    """One slot of a run.

    optimum    the largest worth that rings can have in it
    printed    what Algorithm 2 finds
    discarded  worth of its rounding where rings that do not fit are dropped and nothing else is tried
    ours       worth of our rings
    """

    optimum: float
    printed: Rounded
    discarded: float
    ours: float


class Watched(Rounding):
    """The printed chooser, which also keeps every slot it was asked about, with ⌈q_i⌉ of its jobs."""

    def __init__(self, setup: Setup, seed: int, seen: list[tuple[Slot, Ints]]) -> None:
        super().__init__(setup, seed, TRIES)
        self._seen = seen

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        """As printed."""
        real = possible(slot)
        if (real.gain > 0).any():
            done = [record.done for record in records]
            self._seen.append((real, most_workers(real, fine_gains(self._setup, real, jobs, done))))
        return super().choose(slot, jobs, records, number)


def slots_of(scenario: Scenario, seed: int) -> list[tuple[Slot, Ints]]:
    """The slots in which the printed algorithm had something to gain, with the gains of the slot alone."""
    seen: list[tuple[Slot, Ints]] = []

    def factory(setup: Setup, params: Any, rng: np.random.Generator) -> RingScheduler:
        del params
        return RingScheduler(setup, Watched(setup, int(rng.integers(1 << 30)), seen))

    simulate(scenario, replace(PAPER, factory=factory), seed=seed)
    return seen


def solved_slots(scenario: Scenario, seed: int, most: int) -> list[SlotFound]:
    """At most `most` slots of a run, evenly spaced, whose optimum is known."""
    seen = slots_of(scenario, seed)
    found: list[SlotFound] = []
    for n in np.unique(np.linspace(0, len(seen) - 1, min(most, len(seen))).astype(int)).tolist():
        slot, workers = seen[n]
        ours = solve(slot, SlotEffort(rounds=2000), seed=seed)
        optimum, value = ours.value, ours.value
        if value < CERTIFIED * ours.bound:
            if slot.servers > EXACT_SERVERS:
                continue
            exact = solve_exactly(slot, 5_000)
            if not exact.optimal:
                continue
            optimum = max(value, exact.value)
        if optimum < LEAST_WORTH:
            continue
        printed = paper(slot, np.random.default_rng([seed, n]), TRIES, workers)
        discarded = worth(slot, fitting(slot, printed.raw))
        found.append(SlotFound(optimum, printed, discarded, value))
    return found
