"""Runs without end: a small scenario repeated for any number of jobs, in a session that drops what is over.

Jobs are made when they are asked for, and nothing keeps them; whatever memory grows by is kept by policy or session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar, cast, overload

import numpy as np

from tradewind.audit import Audit, AuditReport
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.errors import Refused
from tradewind.model.job import Job
from tradewind.model.result import Outcome
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.spec import Spec
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.simulated import SimulatedWorld

T = TypeVar("T")


class _Made(Sequence[T]):
    """A sequence whose items are made when they are asked for; only the last one is kept."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make
        self._last: tuple[int, T] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(self._count))]
        if not 0 <= at < self._count:
            raise IndexError(at)
        if self._last is None or self._last[0] != at:
            self._last = (at, self._make(at))
        return self._last[1]


def repeated(template: Scenario, jobs: int, period_slots: int | None = None) -> Scenario:
    """A scenario of so many jobs: those of the template again and again, each time later. It has no changes.

    period_slots: how much later; by default as if arrivals went on. Data of stream jobs is repeated with them; their
    template needs whole slots.
    """
    first = template.jobs
    period = first[-1].arrive_us + max(1, first[-1].arrive_us // len(first))
    if period_slots is not None:
        period = period_slots * template.setup.slot_us
    rounds = -(-jobs // len(first))

    def job(index: int) -> Job:
        number, row = divmod(index, len(first))
        return replace(
            first[row], index=index, id=f"job-{index}", arrive_us=first[row].arrive_us + number * period
        )

    forecast = {
        key: value * rounds for key, value in template.setup.forecast.items() if key.startswith("jobs")
    }
    where = replace(
        template.setup,
        horizon_us=rounds * period + template.setup.horizon_us,
        forecast={**template.setup.forecast, **forecast},
    )
    made: Any = SimpleNamespace(
        setup=where,
        jobs=_Made(jobs, job),
        customers=_Made(jobs, lambda index: template.customers[index % len(first)]),
        changes=(),
        volumes=_volumes(template, rounds, period // template.setup.slot_us),
    )
    return cast(Scenario, made)


def _volumes(template: Scenario, rounds: int, slots: int) -> Volumes:
    """Data of stream jobs in every round, each `slots` later."""
    rows = template.volumes
    number = np.repeat(np.arange(rounds), len(rows))
    return Volumes(
        job=np.tile(rows.job, rounds) + number * len(template.jobs),
        slot=np.tile(rows.slot, rounds) + number * slots,
        node=np.tile(rows.node, rounds),
        bytes=np.tile(rows.bytes, rounds),
    )


def endless_run(
    spec: Spec,
    template: Scenario,
    jobs: int,
    forget: Callable[[Outcome], None],
    period_slots: int | None = None,
) -> Iterator[Session | AuditReport]:
    """Run a policy on the repeated template; yields the session after every instant, at last the audit's report.

    Every instant is audited, without a script; a violation raises Refused. The journal is drained after each.
    """
    given = repeated(template, jobs, period_slots)
    world = SimulatedWorld(given, slots="slot" in spec.triggers)
    audit = Audit(given.setup, binding=spec.binding)
    state = RunState(Ledger(given.setup), audit, Journal(), forget=forget)
    session = Session(state, make_policy(given, spec, {}, 0)[0], spec, world.ask)
    loop = Loop(world, session)
    while events := world.wait():
        loop.cycle(events)
        session.journal.drain()
        yield session
    report = audit.close()
    if report.violations:
        raise Refused(report.violations)
    yield report
