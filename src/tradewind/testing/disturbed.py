"""Runs with events that no script has: jobs cancelled at any time, nodes and links that fail and come back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tradewind.audit import Audit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.errors import Refused
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change
from tradewind.worlds.simulated import SimulatedWorld

CANCELLED = 0.4
"""Share of the jobs that are cancelled."""
Tables = dict[str, dict[str, list[Any]]]


def disturbed_run(
    spec: Spec, given: Scenario, policy: Callable[[], Any], seed: int, restore_after: int = -1
) -> Tables:
    """The journal of a run under random cancellations and failures; raises where the audit finds a violation.

    The audit has no script: it checks every rule that holds for a run whose events nobody knows beforehand.
    restore_after: number of the instant after which a new session with a new policy continues from a snapshot; -1: never.
    """
    world = SimulatedWorld(given, slots="slot" in spec.triggers, unscripted=True)
    _disturb(world, given, random.Random(seed))
    journal, number = Journal(), 0

    def fresh() -> Session:
        state = RunState(Ledger(given.setup), Audit(given.setup, binding=spec.binding), journal)
        return Session(state, policy(), spec, world.ask)

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
