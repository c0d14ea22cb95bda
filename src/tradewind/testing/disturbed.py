"""Runs with events that no script has: jobs cancelled at any time, nodes and links that fail and come back, and customers
who take their time to answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tradewind.audit import Audit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.decision import HeldQuote
from tradewind.model.errors import Refused
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change
from tradewind.worlds.simulated import SimulatedWorld

CANCELLED = 0.4
"""Share of the jobs that are cancelled."""
Tables = dict[str, dict[str, list[Any]]]


def disturbed_run(
    spec: Spec,
    given: Scenario,
    policy: Callable[[], Any],
    seed: int,
    *,
    restore_after: int = -1,
    journal: Journal | None = None,
) -> Tables:
    """The journal of a run under random cancellations, failures and late answers; raises where the audit finds a violation.

    The audit has no script: it checks every rule that holds for a run whose events nobody knows beforehand.
    restore_after: number of the instant after which a new session with a new policy continues from a snapshot; -1: never.
    journal: where the run is written down.
    """
    world = _SlowCustomers(given, slots="slot" in spec.triggers, draw=random.Random(seed))
    _disturb(world, given, random.Random(seed))
    journal, number = journal or Journal(), 0

    def fresh() -> Session:
        state = RunState(Ledger(given.setup), Audit(given.setup, binding=spec.binding), journal)
        return Session(state, policy(), spec, world.ask, QuoteTerms(world.hold_us, per_tenant=3))

    loop = Loop(world, fresh())
    while events := world.wait():
        loop.cycle(events)
        if number == restore_after:
            snapshot = loop.session.snapshot()
            loop.session = fresh()
            loop.session.restore(snapshot)
        number += 1
    loop.session.charge()
    if found := loop.session.audit.close().violations:
        raise Refused(found)
    return journal.tables


class _SlowCustomers(SimulatedWorld):
    """Half of the customers think about their quote, and answer anything: any offer, none, too late, twice, or nonsense."""

    def __init__(self, given: Scenario, *, slots: bool, draw: random.Random) -> None:
        super().__init__(given, slots=slots, unscripted=True)
        self._draw, self._hold_us = draw, given.setup.slot_us * 3 // 10
        self._think = {job.index: draw.random() < 0.5 for job in given.jobs}

    def hold_us(self, job: Job) -> int:
        """How long a customer may think."""
        return self._hold_us if self._think[job.index] else 0

    def hold(self, held: HeldQuote) -> None:
        super().hold(held)
        draw = self._draw
        for _ in range(draw.randrange(3)):
            at_us = draw.randrange(held.at_us + 1, held.expires_us + held.expires_us - held.at_us)
            self.answer(at_us, held, draw.randrange(-2, len(held.quote.offers) + 1))


def _disturb(world: SimulatedWorld, given: Scenario, draw: random.Random) -> None:
    """Add cancellations soon and late after arrival, and failures of hosts and links that are mended later."""
    slot, end = given.setup.slot_us, given.setup.horizon_us
    last = max((job.arrive_us for job in given.jobs), default=0)
    for job in given.jobs:
        if draw.random() < CANCELLED:
            world.cancel(job.arrive_us + 1 + int(draw.expovariate(1 / (2 * slot))), job.index)
    for _ in range(3):
        begin = draw.randrange(1, max(2, min(end - 1, last + 4 * slot)))
        until = begin + 1 + int(draw.expovariate(1 / slot))
        link = bool(given.setup.links) and draw.random() < 0.5
        what = draw.randrange(len(given.setup.links)) if link else draw.choice(given.setup.hosts)
        kind = "link" if link else "node"
        world.change(Change(begin, f"{kind}_down", what, 0, 0))
        world.change(Change(until, f"{kind}_up", what, 0, 0))
