"""Claims about sessions that drop what is over: same commands, same metrics, and nothing kept per job."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from math import fsum, isclose
from typing import Any

import pytest

from tests.builders import decision, job, plan, run_at, scenario
from tradewind.audit import Audit
from tradewind.audit.results import Totals, exact, quantiles
from tradewind.engine.instants import Instant, instants
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.session import Command, Session
from tradewind.engine.state import RunState
from tradewind.model.result import Outcome
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change, Event
from tradewind.registry import policies
from tradewind.testing import fitting_scenarios
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.simulated import SimulatedWorld

ONLINE = [name for name in policies.names() if policies.find(name).online]


def merged(parts: Iterable[Instant]) -> list[Instant]:
    """Instants with one entry per time, without price lists, which a kept journal holds only when they change."""
    found: dict[int, Instant] = {}
    for part in parts:
        trades = tuple(
            each._replace(quote=each.quote._replace(posted=None) if each.quote else None)
            for each in part.trades
        )
        old = found.get(part.at_us, Instant(part.at_us, (), (), None, ()))
        found[part.at_us] = Instant(
            part.at_us,
            old.events + part.events,
            old.trades + trades,
            old.decision if part.decision is None else part.decision,
            old.after + part.after,
        )
    return list(found.values())


def run(
    spec: Spec, given: Scenario, forget: Callable[[Outcome], None] | None
) -> tuple[list[Command], Session, list[Any]]:
    """All commands of an audited run; where it forgets, its journal is drained after every instant."""
    world = SimulatedWorld(given, slots="slot" in spec.triggers)
    audit = Audit(given.setup, given, binding=spec.binding)
    state = RunState(Ledger(given.setup), audit, Journal(), forget=forget)
    session = Session(state, make_policy(given, spec, {}, 3)[0], spec, world.ask)
    commands, drained = list[Command](), list[Any]()
    while events := world.wait():
        made = session.handle(events[0].at_us, events)
        commands += made
        for command in made:
            after = world.apply(command.number, command.decision)
            if after and not command.answered:
                session.handle(events[0].at_us, after)
        if forget is not None:
            drained.append(session.journal.drain()[0])
    return commands, session, drained


@pytest.mark.parametrize("name", ONLINE)
def test_a_run_that_forgets_has_the_same_commands_metrics_and_instants(name: str) -> None:
    spec = policies.find(name)
    given = next(fitting_scenarios(spec, 2))
    rows: list[Outcome] = []
    kept_commands, kept, _ = run(spec, given, None)
    commands, session, drained = run(spec, given, rows.append)
    assert commands == kept_commands
    whole, report = kept.audit.close(), session.audit.close()
    assert whole.violations == report.violations == ()
    assert {row.job for row in rows} == set(range(len(given.jobs)))
    metrics = {**report.metrics, **quantiles(rows)}
    assert metrics.keys() == whole.metrics.keys()
    for key, value in metrics.items():
        assert isclose(value, whole.metrics[key], rel_tol=1e-12, abs_tol=1e-12), key
    streamed = merged(one for tables in drained for one in instants(given, tables))
    assert streamed == merged(instants(given, kept.journal.tables))


@pytest.mark.parametrize("name", ["fifo-backfill", "dps", "gadget", "mlbroker"])
def test_at_the_end_nothing_is_kept_of_jobs_and_slots(name: str) -> None:
    spec = policies.find(name)
    given = next(fitting_scenarios(spec, 2))
    _, session, _ = run(spec, given, lambda row: None)
    ledger, audit = session.ledger, session.audit
    for _ in range(2):
        ledger.clear_events()
    kept = (ledger._jobs, ledger._plans, ledger._data, ledger._reserved, ledger._changes)
    assert not any(kept)
    assert not audit._records
    for booked in (ledger._booked, audit._capacity.booked):
        assert all(slot >= ledger.slot for slots in booked.values() for slot in slots)
    assert all(key[0] >= ledger.slot for key in (*audit._costs._rent, *audit._costs._data))
    assert not any(column for table in session.journal.tables.values() for column in table.values())


def test_a_policy_is_told_of_an_ended_job_and_then_it_is_gone() -> None:
    given = scenario([job(0)])
    ledger = Ledger(given.setup)
    ledger.forgets = True
    ledger.take((Event(0, "arrived", 0, 0, given.jobs[0]),))
    ledger.clear_events()
    ledger.commit(decision(plan(0, run_at(0))))
    ledger.take((Event(5, "changed", -1, 0, Change(5, "capacity", 1, 0, 3000)), Event(250, "finished", 0)))
    assert ledger.job(0).id == "j0"
    window = tuple(ledger.events)
    ledger.clear_events()
    ledger.return_events(window)  # the decision was rejected: the policy is told again
    assert (ledger.job(0).id, ledger.change(0).kind) == ("j0", "capacity")
    for _ in range(2):
        ledger.clear_events()
    with pytest.raises(LookupError, match=r"view.job\(0\): this job is over and was dropped"):
        ledger.job(0)
    with pytest.raises(KeyError):
        ledger.change(0)


def test_an_event_or_plan_for_a_forgotten_job_is_a_violation() -> None:
    given, rows = scenario([job(0)]), list[Outcome]()
    audit = Audit(given.setup)
    audit.forget = rows.append
    assert audit.take((Event(0, "arrived", 0, 0, given.jobs[0]),)) == ()
    assert audit.check(0, decision(plan(0, run_at(0)))) == ()
    assert audit.take((Event(250, "finished", 0),)) == ()
    assert [(row.id, row.state, row.start_us, row.finish_us) for row in rows] == [("j0", "finished", 0, 250)]
    assert [v.rule for v in audit.take((Event(250, "finished", 0),))] == ["time.finish"]
    assert [v.rule for v in audit.check(250, decision(plan(0, run_at(250))))] == ["plan.job"]
    assert audit.close().metrics["jobs_completed"] == 1
    assert len(rows) == 1


def test_exact_sums_do_not_depend_on_grouping() -> None:
    draw = random.Random(4)
    values = [draw.choice((1e-9, 1.0, 1e12)) * (draw.random() - 0.5) for _ in range(2000)]
    parts: tuple[float, ...] = ()
    for at in range(0, len(values), 7):
        parts = exact([*parts, *values[at : at + 7]])
    assert fsum(parts) == fsum(values) == fsum(exact(values))
    assert len(parts) < 10
    assert exact(parts) == exact(values) == parts


def test_totals_do_not_depend_on_grouping() -> None:
    draw = random.Random(5)
    rows = [
        Outcome(i, f"j{i}", "", draw.choice(("finished", "left", "refused")), i, i + draw.randrange(9), i + 100,
                3, draw.randrange(3), draw.random(), draw.random(), draw.random() < 0.5, 7, 9)
        for i in range(300)
    ]  # fmt: skip
    one = Totals()
    for row in rows:
        one = one.plus([row])
    costs = {"cost_usd": 1.0}
    assert one.metrics(costs) == Totals().plus(rows).metrics(costs)
