"""Claims about held quotes: many are open, they hold capacity, expire, are withdrawn, and late answers are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import ALL, Scripted, job, run_at, scenario, setup, spec_of
from tests.builders import node as site
from tradewind.api import replay
from tradewind.audit import Audit
from tradewind.engine.accounts import settle
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.engine.stimuli import from_json, to_json
from tradewind.model.decision import Offer, Plan, Quote
from tradewind.model.errors import Refused
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change, Event, View
from tradewind.worlds.assembled import unsettled
from tradewind.worlds.simulated import SimulatedWorld

HOLD = 60


class Market:
    """Sells one gpu at 1 USD per job to whoever finds one free."""

    def __init__(self) -> None:
        self.observed: list[Event] = []

    def quote(self, view: View, job: Job) -> Quote:
        free = [n for n in view.setup.hosts if view.free(n, 0) >= 1000]
        if not free:
            return Quote(job.index, refused="capacity")
        offers = tuple(
            Offer(usd, view.now_us + 250, Plan(job.index, (run_at(view.now_us, (n,)),)))
            for usd, n in zip((1.0, 2.0), free, strict=False)
        )
        return Quote(job.index, offers)

    def decide(self, view: View) -> Any:
        self.observed += view.events
        return Scripted({}, {}).decide(view)

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None: ...


class Held:
    """A session of a market on `gpus` hosts with one gpu each, whose customers may think for HOLD microseconds."""

    def __init__(self, jobs: list[Job], gpus: int = 2, **more: Any) -> None:
        self.given = scenario(jobs, where=setup([site(f"n{i}", 1) for i in range(gpus)]))
        self.world = SimulatedWorld(self.given, slots=True, unscripted=True)
        self.market = Market()
        spec = replace(spec_of(self.market, pricer=True), **more.pop("spec", {}))
        self.state = RunState(Ledger(self.given.setup), Audit(self.given.setup, binding=True), Journal())
        terms = QuoteTerms(more.pop("hold_us", lambda job: HOLD), **more)
        self.session = Session(self.state, self.market, spec, lambda quote: 0, terms)
        self.loop = Loop(self.world, self.session)

    def until(self, at_us: int) -> list[tuple[str, int, int]]:
        """(kind, job, value) of everything recorded up to an instant."""
        while (now := self.world._timeline.next_us()) is not None and now <= at_us:
            self.loop.cycle(self.world.wait())
        return self.recorded()

    def recorded(self) -> list[tuple[str, int, int]]:
        events = self.state.journal.tables["events"]
        rows = zip(events["kind"], events["job"], events["value"], strict=True)
        return [row for row in rows if row[0] not in ("slot", "arrived")]

    def end(self) -> None:
        while events := self.world.wait():
            self.loop.cycle(events)
        assert self.state.audit.close().violations == ()


def test_a_quote_holds_what_its_offers_need_until_it_is_answered() -> None:
    held = Held([job(0), job(1), job(2, arrive_us=10)])
    assert held.until(10) == [("quoted", 0, HOLD), ("refused", 1, 0), ("refused", 2, 0)]
    assert [held.state.ledger.free(n, 0) for n in (0, 1)] == [0, 0]  # it may take either
    first = held.session.quotes.open[0]
    held.world.answer(20, first, 1)
    assert held.until(20)[-2:] == [("answered", 0, 1), ("accepted", 0, 1)]
    assert [held.state.ledger.free(n, 0) for n in (0, 1)] == [1000, 0]
    assert held.until(300)[-1] == ("finished", 0, 0)
    assert held.state.journal.tables["events"]["at_us"][-1] == 270  # it began when it was bought
    held.end()


def test_many_quotes_are_open_at_once_and_each_is_sold_on_its_own() -> None:
    jobs = [job(i, tenant=f"t{i}") for i in range(3)]
    held = Held(jobs, gpus=4)
    assert held.until(0) == [("quoted", 0, HOLD), ("quoted", 1, HOLD), ("refused", 2, 0)]
    assert list(held.session.quotes.open) == [0, 1]
    held.world.answer(5, held.session.quotes.open[1], 0)
    held.world.answer(6, held.session.quotes.open[0], -1)
    assert held.until(6)[-4:] == [
        ("answered", 1, 0),
        ("accepted", 1, 0),
        ("answered", 0, -1),
        ("declined", 0, 0),
    ]
    held.end()


@pytest.mark.parametrize(
    ("at_us", "taken", "quote", "word"),
    [
        (HOLD + 1, 0, 0, "not open"),
        (10, 7, 0, "offers 0 to 1"),
        (10, -2, 0, "offers 0 to 1"),
        (10, 0, 5, "not open"),
    ],
    ids=["too late", "no such offer", "nonsense", "another quote"],
)
def test_an_answer_that_cannot_be_taken_is_refused_and_changes_nothing(
    at_us: int, taken: int, quote: int, word: str
) -> None:
    held = Held([job(0)])
    held.until(0)
    wrong = held.session.quotes.open[0]._replace(id=quote)
    event = Event(at_us, "answered", 0, taken, wrong.id)
    held.until(at_us - 1)
    assert word in held.session.cannot_answer(event)
    held.world.answer(at_us, wrong, taken)
    assert "accepted" not in [kind for kind, *_ in held.until(at_us + HOLD)]
    assert held.recorded()[-1][0] == "declined"  # it expired
    assert held.session.cannot_answer(event)
    held.end()


def test_an_expired_quote_frees_what_it_held_and_the_next_customer_gets_it() -> None:
    held = Held([job(0), job(1, arrive_us=HOLD + 5)])
    assert held.until(HOLD + 5) == [
        ("quoted", 0, HOLD),
        ("expired", 0, 0),
        ("declined", 0, 0),
        ("quoted", 1, HOLD + 5 + HOLD),
    ]
    held.end()


def test_an_answer_at_the_instant_of_the_expiry_is_in_time() -> None:
    held = Held([job(0)])
    held.until(0)
    held.world._agenda._added.clear()
    held.world.answer(HOLD, held.session.quotes.open[0], 0)
    assert held.until(HOLD)[-1] == ("accepted", 0, 0)
    held.end()


def test_a_change_of_limits_withdraws_open_quotes_and_quotes_their_jobs_again() -> None:
    held = Held([job(0)])
    held.until(0)
    held.world.change(Change(10, "node_down", 0, 0, 0))
    found = held.until(10)
    assert found[-2:] == [("withdrawn", 0, 0), ("quoted", 0, 10 + HOLD)]
    assert len(held.session.quotes.open[1].quote.offers) == 1
    assert held.session.cannot_answer(Event(11, "answered", 0, 0, 0))
    held.world.answer(11, held.session.quotes.open[1], 0)
    assert held.until(11)[-1] == ("accepted", 0, 0)
    held.end()


@pytest.mark.parametrize("late", [False, True], ids=["answered", "expires"])
def test_a_failure_comes_before_an_answer_at_the_same_instant(late: bool) -> None:
    held = Held([job(0)], gpus=1)
    held.until(0)
    at = HOLD if late else 10
    held.world.change(Change(at, "node_down", 0, 0, 0))
    if not late:
        held.world.answer(at, held.session.quotes.open[0], 0)
    found = [kind for kind, *_ in held.until(at)]
    assert found[-2:] == ["withdrawn", "refused"]  # quoted again, but nothing is left
    held.end()


def test_cancelling_a_job_closes_its_quote() -> None:
    held = Held([job(0)])
    held.until(0)
    held.world.cancel(10, 0)
    held.until(10)
    assert held.session.quotes.idle
    assert [held.state.ledger.free(n, 0) for n in (0, 1)] == [1000, 1000]
    held.end()


def test_a_tenant_at_its_cap_waits_and_keeps_nobody_else_waiting() -> None:
    jobs = [job(0, tenant="a"), job(1, tenant="a"), job(2, tenant="b")]
    held = Held(jobs, gpus=6, per_tenant=1)
    assert held.until(0) == [("quoted", 0, HOLD), ("quoted", 2, HOLD)]
    assert held.session.quotes.waiting == [1]
    assert held.until(HOLD)[-1] == ("quoted", 1, 2 * HOLD)
    held.end()


def test_serial_quotes_wait_in_order_of_arrival_where_an_open_quote_makes_a_difference() -> None:
    jobs = [job(0), job(1, arrive_us=5), job(2, arrive_us=6), job(3, arrive_us=HOLD + 1)]
    held = Held(jobs, spec={"serial_quotes": True}, hold_us=lambda job: 0 if job.index else HOLD)
    assert held.until(6) == [("quoted", 0, 50)]  # half a slot
    assert held.session.quotes.waiting == [1, 2]
    assert held.until(50)[1:] == [
        ("expired", 0, 0),
        ("declined", 0, 0),
        ("accepted", 1, 0),
        ("accepted", 2, 0),
    ]
    held.end()


def test_serial_quotes_do_not_wait_for_a_quote_that_makes_no_difference() -> None:
    class Same(Market):
        def quote(self, view: View, job: Job) -> Quote:
            plan = Plan(job.index, (run_at(view.now_us, (job.index,)),))
            return Quote(job.index, (Offer(1.0, view.now_us + 250, plan),))

    held = Held([job(0), job(1, arrive_us=5)], spec={"serial_quotes": True})
    held.market = held.session.policy = Same()
    assert held.until(5) == [("quoted", 0, 50), ("quoted", 1, 55)]
    held.end()


def test_a_serial_quote_that_would_outlast_its_slot_is_made_in_the_next_and_holds_up_nobody() -> None:
    jobs = [job(0, arrive_us=70), job(1, arrive_us=75)]
    held = Held(jobs, spec={"serial_quotes": True}, hold_us=lambda job: 0 if job.index else HOLD)
    assert held.until(75) == [("accepted", 1, 0)]
    assert held.until(100)[-1] == ("quoted", 0, 150)
    held.end()


def test_a_run_with_held_quotes_is_audited_replayed_and_settled_from_its_tables() -> None:
    held = Held([job(0, tenant="a"), job(1, arrive_us=30, tenant="b")], gpus=4)
    held.until(0)
    held.world.answer(20, held.session.quotes.open[0], 1)
    held.world.change(Change(40, "node_down", 3, 0, 0))
    held.until(40)
    held.world.answer(55, held.session.quotes.open[2], 0)
    while events := held.world.wait():
        held.loop.cycle(events)
    report = held.state.audit.close()
    assert report.violations == ()
    spec: Spec = held.session.spec
    happened: Scenario = replace(held.given, changes=(Change(40, "node_down", 3, 0, 0),))
    run = settle(happened, unsettled(happened, spec, {}, 0, held.state.journal))
    assert run.tables["payments"] == {"job": [0, 1], "usd": [2.0, 1.0]}
    assert run.tables["outcomes"]["start_us"] == [20, 55]
    assert run.tables["outcomes"]["finish_us"] == [270, 305]
    assert {name: run.metrics[name] for name in report.metrics} == pytest.approx(dict(report.metrics))
    ledger, again = replay(happened, replace(run, metrics={}))
    assert dict(ledger.held) == {}
    assert again.metrics == run.metrics


@pytest.mark.parametrize(
    "event",
    [
        Event(5, "answered", 2, -1, 7),
        Event(5, "expired", 2, 7),
        Event(5, "quoted", 2, 90),
        Event(5, "withdrawn", 2, 7),
    ],
    ids=lambda event: event.kind,
)
def test_events_of_quotes_round_trip_through_json(event: Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_a_policy_without_slots_works_too() -> None:
    held = Held([job(0)], spec={"triggers": ALL - {"slot"}})
    held.until(0)
    held.world.answer(10, held.session.quotes.open[0], 0)
    held.until(10)
    held.end()


def test_a_world_that_answers_for_the_session_is_refused() -> None:
    held = Held([job(0)])
    held.until(0)
    with pytest.raises(Refused, match=r"time\.answer"):
        held.session.handle(5, (Event(5, "accepted", 0, 0),))
