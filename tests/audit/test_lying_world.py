"""A world that lies is caught: about time, work, data, changes, cancelled plans, answers and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.builders import (
    HORIZON,
    SLOT,
    Scripted,
    Stage,
    decision,
    job,
    loop_of,
    node,
    plan,
    run_at,
    scenario,
    setup,
    spec_of,
)
from tradewind.audit import compare
from tradewind.engine.accounts import settle
from tradewind.model.decision import Decision, Flow, HeldQuote, Quote, Step, Verdict
from tradewind.model.errors import Refused
from tradewind.model.job import Customer, Fixed, Stream
from tradewind.model.result import Run, Violation
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.view import Change, Event
from tradewind.worlds.simulate import simulate

Lie = Callable[[Sequence[Event]], Sequence[Event]]
RENT = {(place, 0): Tariff(usd=(10.0**6 * (place + 1),)) for place in (0, 1, 2)}
LONG = Fixed(runtime_us=450)
STREAM = Stream(bytes_per_worker_slot=10)


class Liar:
    """A world whose reports pass through a lie; its own state stays true."""

    def __init__(self, world: Any, lie: Lie) -> None:
        self._world, self._lie = world, lie

    def wait(self) -> Sequence[Event]:
        while events := self._world.wait():
            if reported := self._lie(list(events)):
                return reported
        return ()

    def ask(self, quote: Quote) -> int:
        return int(self._world.ask(quote))

    def hold(self, held: HeldQuote) -> None:
        self._world.hold(held)

    def apply(self, number: int, chosen: Decision) -> Sequence[Event]:
        return self._lie(list(self._world.apply(number, chosen)))


def found(
    given: Scenario, script: Any, lie: Lie, quotes: dict[int, Quote] | None = None
) -> tuple[Violation, ...]:
    """Violations found in a run through a lying world."""
    policy = Scripted(script, quotes or {})
    loop = loop_of(given, spec_of(policy, pricer=quotes is not None), policy)
    loop.world = Liar(loop.world, lie)
    try:
        loop.run()
    except Refused as refused:
        return refused.violations
    return loop.session.audit.close().violations


def each(change: Callable[[Event], Event | None]) -> Lie:
    return lambda events: [new for event in events if (new := change(event)) is not None]


def on(kind: str, index: int = -2, **new: Any) -> Lie:
    """Changes fields of the events of a kind (of one job)."""
    return each(lambda e: e._replace(**new) if e.kind == kind and index in (-2, e.job) else e)


def hide(kind: str, index: int = -2) -> Lie:
    return each(lambda e: None if e.kind == kind and index in (-2, e.job) else e)


def shift(kind: str, by_us: int) -> Lie:
    return each(lambda e: e._replace(at_us=e.at_us + by_us) if e.kind == kind else e)


def add(after: str, event: Event) -> Lie:
    """Reports something that did not happen, right after something that did."""

    def lie(events: Sequence[Event]) -> list[Event]:
        return [*events, *[event._replace(at_us=e.at_us) for e in events if e.kind == after][:1]]

    return lie


def world() -> tuple[Scenario, dict[int, Decision]]:
    """Four jobs and everything that can happen to them."""
    jobs = [
        job(0, work=LONG),
        job(1, work=LONG, hold="through"),
        job(2, arrive_us=30, work=STREAM, workers_max=3),
        job(3, arrive_us=260, work=Fixed(runtime_us=HORIZON)),
        job(4, arrive_us=260),
    ]
    given = scenario(
        jobs,
        where=setup([node("a"), node("b"), node("c")], rent=RENT),
        customers=[Customer(), Customer(), Customer(runtime_us=400), Customer(), Customer()],
        changes=[
            Change(100, "price", 0, 0, 500),
            Change(230, "node_down", 0, 0, 0),
            Change(350, "capacity", 2, 0, 0),
        ],
        volumes=[(2, 1, 0, 20)],
    )
    stream = Step(100, 200, (2,), (2,), flows=(Flow(0, 2, 20),))
    script = {
        0: decision(plan(0, run_at(0)), plan(1, run_at(0, (1,)))),
        100: decision(plan(2, stream), wake_us=150),
        230: decision(plan(0, run_at(230, (1,)))),
        260: Decision(plans=(plan(3, run_at(260, (2,))),), verdicts=(Verdict(4, "no"),)),
    }
    return given, script


def test_the_truth_passes() -> None:
    given, script = world()
    assert found(given, script, lambda events: events) == ()


GONE, STAYS = hide("left"), add("ended", Event(0, "ended", 2))
OTHER = job(0, work=Fixed(runtime_us=7))
CHANGE = Change(100, "price", 0, 0, 400)
LIES: list[tuple[str, str, Lie]] = [
    ("work.finish", "too early", shift("finished", -1)),
    ("work.finish", "too late", shift("finished", 1)),
    ("work.finish", "of another job", on("finished", 0, job=3)),
    ("work.finish", "for nothing", add("timer", Event(0, "finished", 2))),
    ("time.finish", "of an unknown job", on("finished", 0, job=99)),
    ("time.finish", "twice", add("finished", Event(0, "finished", 1))),
    ("time.arrival", "late", shift("arrived", 1)),
    ("time.arrival", "out of order", on("arrived", 0, job=1)),
    ("time.arrival", "never", hide("arrived", 0)),
    ("time.arrival", "with other facts", on("arrived", 0, fact=OTHER)),
    ("time.forward", "back", on("timer", at_us=149 - SLOT)),
    ("time.timer", "late", shift("timer", 3)),
    ("time.timer", "never", hide("timer")),
    ("time.timer", "unasked", add("voided", Event(0, "timer"))),
    ("time.slot", "late", shift("slot", 1)),
    ("time.slot", "misnumbered", on("slot", value=5)),
    ("time.slot", "never", hide("slot")),
    ("time.change", "late", shift("changed", 2)),
    ("time.change", "never", each(lambda e: None if e.kind == "changed" and e.value == 0 else e)),
    ("time.change", "another", each(lambda e: e._replace(fact=CHANGE) if e.kind == "changed" and e.value == 0 else e)),
    ("time.change", "out of order", each(lambda e: e._replace(value=1) if e.kind == "changed" and e.value == 0 else e)),
    ("time.data", "other volumes", on("data", fact=((0, 19),))),
    ("time.data", "another slot", on("data", value=0)),
    ("time.data", "never", hide("data")),
    ("time.data", "invented", add("arrived", Event(0, "data", 0, 0, ((0, 5),)))),
    ("time.left", "early", shift("left", -1)),
    ("time.end", "no event", hide("left")),
    ("time.left", "never", lambda events: STAYS(GONE(events))),
    ("time.release", "late", shift("released", 1)),
    ("time.release", "never", hide("released")),
    ("time.release", "too soon", add("finished", Event(0, "released", 1))),
    ("work.kept", "more", each(lambda e: e._replace(value=e.value + 1) if e.kind == "voided" else e)),
    ("work.kept", "less", each(lambda e: e._replace(value=e.value - 1) if e.kind == "voided" else e)),
    ("time.void", "without reason", add("timer", Event(0, "voided", 1, 150))),
    ("places.up", "never", hide("voided", 0)),
    ("capacity.node", "never", hide("voided", 3)),
    ("work.done", "more at the end", each(lambda e: e._replace(value=e.value + 1) if e.kind == "ended" else e)),
    ("time.end", "early", shift("ended", -1)),
    ("time.end", "never", hide("ended")),
    ("time.event", "of an unknown job", on("voided", 0, job=77)),
    ("time.event", "after the end", add("finished", Event(0, "voided", 1))),
    ("time.answer", "nobody turned away", add("timer", Event(0, "refused", 0, 150))),
    ("time.answer", "never", hide("refused")),
    ("work.done", "of one turned away", on("refused", value=3)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "lie"), [(r, lie) for r, _, lie in LIES], ids=[f"{r} {n}" for r, n, _ in LIES]
)
def test_a_lie_of_the_world_is_caught(rule: str, lie: Lie) -> None:
    given, script = world()
    assert rule in {violation.rule for violation in found(given, script, lie)}


def test_a_world_that_stops_early_is_caught() -> None:
    given = scenario([job(0), job(1, arrive_us=700)])
    violations = found(given, {0: decision(plan(0, run_at(0)))}, each(lambda e: e if e.at_us < 700 else None))
    assert [(v.rule, v.amount) for v in violations] == [("time.arrival", 1)]


def test_a_stream_that_is_not_served_is_a_violation_with_its_bytes() -> None:
    given = scenario([job(0, work=STREAM)], customers=[Customer(runtime_us=400)], volumes=[(0, 1, 0, 20)])
    violations = found(given, {}, lambda events: events)
    assert [(v.rule, v.job, v.slot, v.amount) for v in violations] == [("data.stream_served", "j0", 1, 20)]


def test_a_stream_whose_plan_a_failure_cancelled_is_excused_for_that_slot_only() -> None:
    given = scenario(
        [job(0, work=STREAM, workers_max=2)],
        customers=[Customer(runtime_us=400)],
        changes=[Change(150, "node_down", 0, 0, 0)],
        volumes=[(0, 1, 0, 20), (0, 2, 0, 10)],
    )
    served = decision(plan(0, Step(100, 200, (0,), (2,), flows=(Flow(0, 0, 20),))))
    violations = found(given, {100: served}, lambda events: events)
    assert [(v.rule, v.slot, v.amount) for v in violations] == [("data.stream_served", 2, 10)]


# ---------------------------------------------------------------------- ledgers


def test_a_falsified_ledger_is_found_by_the_recount() -> None:
    for part in ("open", "booked"):
        stage = Stage(scenario([job(0), job(1)]))
        stage.wait()
        stage.act(plan(0, run_at(0)), plan(1, run_at(100, until=200)))
        assert stage.audit.recount() == ()
        if part == "open":
            stage.audit._capacity.open[0] -= 1
        else:
            stage.audit._capacity.booked[0][1] -= 1
        assert [v.rule for v in stage.audit.recount()] == ["ledger.recount"]


def a_run() -> tuple[Run, Scenario]:
    given, script = world()
    policy = Scripted(script, {})
    return simulate(given, spec_of(policy)), given


def test_every_metric_is_recomputed_and_a_wrong_one_is_named() -> None:
    run, given = a_run()
    ours = settle(given, run).metrics
    assert set(ours) == set(run.metrics)
    for name, value in run.metrics.items():
        violations = compare(ours, {**run.metrics, name: value + 1e-6 * max(1.0, abs(value))})
        assert [v.rule for v in violations] == ["ledger.metric"]
        assert name in violations[0].detail


def test_the_audit_counts_every_metric_that_a_run_reports() -> None:
    given, script = world()
    policy = Scripted(script, {})
    loop = loop_of(given, spec_of(policy), policy)
    loop.run()
    assert set(loop.session.audit.close().metrics) == set(a_run()[0].metrics)


def test_a_missing_metric_is_a_violation() -> None:
    assert [v.rule for v in compare({"cost_usd": 1.0}, {})] == ["ledger.metric"]
