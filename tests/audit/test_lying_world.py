"""A world that lies is caught: about time, work, data, changes, voids, answers and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from tradewind.model.decision import Charge, Decision, Flow, Offer, Plan, Posted, Quote, Step, Verdict
from tradewind.model.errors import PolicyError, Refused
from tradewind.model.job import Customer, Dataset, Fixed, Job, Stream
from tradewind.model.result import Run, Violation
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility
from tradewind.model.view import Change, Event
from tradewind.worlds.simulate import simulate

Lie = Callable[[Sequence[Event]], Sequence[Event]]
RENT = {(place, 0): Tariff(usd=(10.0**6 * (place + 1),)) for place in (0, 1, 2)}
LONG = Fixed(runtime_us=450)
STREAM = Stream(bytes_per_worker_slot=10)


class Liar:
    """A world whose reports pass through a lie; its own books stay true."""

    def __init__(self, world: Any, lie: Lie) -> None:
        self._world, self._lie = world, lie

    def wait(self) -> Sequence[Event]:
        while events := self._world.wait():
            if told := self._lie(list(events)):
                return told
        return ()

    def ask(self, quote: Quote) -> int:
        return int(self._world.ask(quote))

    def apply(self, number: int, chosen: Decision) -> Sequence[Event]:
        return self._lie(list(self._world.apply(number, chosen)))


def found(
    given: Scenario, script: Any, lie: Lie, quotes: dict[int, Quote] | None = None
) -> tuple[Violation, ...]:
    """What the audit says of a run through a lying world."""
    policy = Scripted(script, quotes or {})
    loop = loop_of(given, spec_of(policy, pricer=quotes is not None), policy)
    loop.world = Liar(loop.world, lie)
    try:
        loop.run()
    except Refused as refused:
        return refused.violations
    return loop.audit.close().violations


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
    ("time.finish", "of nobody", on("finished", 0, job=99)),
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
    ("time.end", "no word", hide("left")),
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
    ("time.event", "of nobody", on("voided", 0, job=77)),
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
    told = found(given, {0: decision(plan(0, run_at(0)))}, each(lambda e: e if e.at_us < 700 else None))
    assert [(v.rule, v.amount) for v in told] == [("time.arrival", 1)]


def test_a_stream_that_nobody_serves_is_a_violation_with_its_bytes() -> None:
    given = scenario([job(0, work=STREAM)], customers=[Customer(runtime_us=400)], volumes=[(0, 1, 0, 20)])
    told = found(given, {}, lambda events: events)
    assert [(v.rule, v.job, v.slot, v.amount) for v in told] == [("data.stream_served", "j0", 1, 20)]


def test_a_stream_whose_plan_a_failure_cancelled_is_excused_for_that_slot_only() -> None:
    given = scenario(
        [job(0, work=STREAM, workers_max=2)],
        customers=[Customer(runtime_us=400)],
        changes=[Change(150, "node_down", 0, 0, 0)],
        volumes=[(0, 1, 0, 20), (0, 2, 0, 10)],
    )
    served = decision(plan(0, Step(100, 200, (0,), (2,), flows=(Flow(0, 0, 20),))))
    told = found(given, {100: served}, lambda events: events)
    assert [(v.rule, v.slot, v.amount) for v in told] == [("data.stream_served", 2, 10)]


# ---------------------------------------------------------------------- the market


def offer(usd: float = 5.0, finish: int = 250, steps: tuple[Step, ...] | None = None, **more: Any) -> Offer:
    return Offer(usd, finish, Plan(more.pop("whose", 0), (run_at(0),) if steps is None else steps), **more)


def market(*offers: Offer, customer: Customer | None = None, one: Job | None = None, quoted: int = 0) -> Any:
    stage = Stage(scenario([one or job(0)], customers=[customer or Customer(budget_usd=9.0)]))
    stage.wait()
    return stage, stage.audit.check_quote(0, Quote(quoted, offers))


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        ("market.payment", offer(-1.0)),
        ("market.payment", offer(float("nan"))),
        ("market.plan", offer(steps=())),
        ("market.plan", offer(whose=1)),
        ("market.unit_prices", offer(5.0, unit_usd=((0, 4.0),))),
        ("market.unit_prices", offer(-0.0, unit_usd=((0, -0.0001),))),
        ("market.promise", offer(finish=249)),
        ("market.promise", offer(finish=0)),
        ("market.promise", offer(steps=(run_at(0, until=200),))),
        ("form.node", offer(steps=(run_at(0, (9,)),))),
        ("capacity.node", offer(steps=(run_at(0, (0,), (5,)),))),
    ],
)
def test_an_offer_that_breaks_a_rule_is_named_before_the_customer_is_asked(rule: str, bad: Offer) -> None:
    wide = rule == "capacity.node"
    stage, told = market(bad, one=job(0, workers_max=9) if wide else None)
    assert [violation.rule for violation in told] == [rule]
    assert told[0].job == "j0"
    assert stage.audit.check_quote(0, Quote(0, (offer(45.0 if wide else 5.0, unit_usd=((0, 5.0),)),))) == ()


def test_a_quote_for_a_job_that_is_not_there_is_refused() -> None:
    assert [violation.rule for violation in market(quoted=3)[1]] == ["market.job"]


WORTH = Utility(of="delay_slots", shape="linear", args=(9.0, -1.0))


@pytest.mark.parametrize(
    ("customer", "taken"),
    [
        (Customer(budget_usd=9.0), 0),  # the dearer one
        (Customer(budget_usd=9.0), -1),  # none, though both are within budget
        (Customer(budget_usd=4.0), 0),  # beyond its means
        (Customer(valuation=WORTH, budget_usd=9.0), 0),
        (Customer(budget_usd=9.0), 7),  # which nobody made
    ],
)
def test_a_choice_that_the_customer_would_not_make_is_caught(customer: Customer, taken: int) -> None:
    stage, told = market(offer(5.0), offer(3.0), customer=customer)
    assert told == ()
    if taken >= 0:
        assert [v.rule for v in stage.audit.accept(0, Quote(0, (offer(5.0), offer(3.0))), taken)] == [
            "market.choice"
        ]
    else:
        assert [v.rule for v in stage.audit.take([Event(0, "declined", 0)])] == ["market.choice"]


def test_the_announced_offer_is_the_one_that_was_taken() -> None:
    stage, _ = market(offer(5.0), offer(3.0))
    assert stage.audit.accept(0, Quote(0, (offer(5.0), offer(3.0))), 1) == ()
    assert [v.rule for v in stage.audit.take([Event(0, "accepted", 0, 0)])] == ["time.answer"]


def sold(finish: int, *, changes: Sequence[Change] = (), script: Any = None) -> tuple[Violation, ...]:
    given = scenario([job(0)], customers=[Customer(budget_usd=9.0)], changes=changes)
    return found(given, script or {}, lambda events: events, {0: Quote(0, (offer(finish=finish),))})


def test_a_promise_that_is_broken_later_is_caught_at_the_finish_or_the_end() -> None:
    assert sold(250) == ()
    late = {100: decision(plan(0, run_at(200, until=400)))}
    assert [v.rule for v in sold(250, script=late)] == ["market.promise"]
    assert [v.rule for v in sold(250, script={100: decision(plan(0))})] == ["market.promise"]


def test_a_promise_that_a_failure_broke_is_excused() -> None:
    failure = [Change(150, "node_down", 0, 0, 0)]
    assert sold(250, changes=failure, script={150: decision(plan(0, run_at(150, (1,))))}) == ()


def test_a_customer_who_paid_cannot_be_turned_away() -> None:
    script = {100: decision(plan(0)), 200: Decision(verdicts=(Verdict(0, "sorry"),))}
    assert [v.rule for v in sold(250, script=script)] == ["plan.verdict"]


# ---------------------------------------------------------------------- books


def test_books_that_were_cooked_are_found_by_the_recount() -> None:
    for cook in ("open", "booked"):
        stage = Stage(scenario([job(0), job(1)]))
        stage.wait()
        stage.act(plan(0, run_at(0)), plan(1, run_at(100, until=200)))
        assert stage.audit.recount() == ()
        if cook == "open":
            stage.audit._books.open[0] -= 1
        else:
            stage.audit._books.booked[0][1] -= 1
        assert [v.rule for v in stage.audit.recount()] == ["books.recount"]


def a_run() -> tuple[Run, Scenario]:
    given, script = world()
    policy = Scripted(script, {})
    return simulate(given, spec_of(policy)), given


def test_every_metric_is_recomputed_and_a_wrong_one_is_named() -> None:
    run, given = a_run()
    ours = settle(given, run).metrics
    assert set(ours) == set(run.metrics)
    for name, value in run.metrics.items():
        told = compare(ours, {**run.metrics, name: value + 1e-6 * max(1.0, abs(value))})
        assert [v.rule for v in told] == ["books.metric"]
        assert name in told[0].detail


def test_the_audit_counts_every_metric_that_a_run_reports() -> None:
    given, script = world()
    policy = Scripted(script, {})
    loop = loop_of(given, spec_of(policy), policy)
    loop.run()
    assert set(loop.audit.close().metrics) == set(a_run()[0].metrics)


def test_a_missing_metric_is_a_violation() -> None:
    assert [v.rule for v in compare({"cost_usd": 1.0}, {})] == ["books.metric"]


# ---------------------------------------------------------------------- posted prices

CHUNK = 10**8
SET = Dataset(chunks=((0, 2), (1, 2)), chunk_bytes=CHUNK, epochs=3, chunk_epochs_per_worker_slot_milli=3000)
LIST = Posted(16.0, (1.0, 2.0))


def bidders() -> Stage:
    """Two bidders at once: a worker and the server at a, a worker at b, for two slots; 0.2 GB of parameters each."""
    given: dict[str, Any] = {
        "work": SET, "server": ((0, 1000),), "servers": 1, "architecture": "ps", "workers_max": 4,
        "traffic_bytes_per_worker_slot": 2 * CHUNK,
    }  # fmt: skip
    stage = Stage(
        scenario(
            [job(0, **given), job(1, **given)],
            where=setup(transfer_bytes_per_slot=10 * CHUNK),
            customers=[Customer(budget_usd=99.0)] * 2,
        )
    )
    stage.wait()
    return stage


def bid(
    usd: float, whose: int = 0, flows: Sequence[tuple[int, int]] = ((0, 0), (1, 1)), **more: Any
) -> Quote:
    moves = tuple(Flow(a, b, CHUNK) for a, b in flows)
    steps = [Step(at, at + SLOT, (0, 1), (1, 1), (1, 0), moves) for at in (0, SLOT)]
    posted = more.get("posted", LIST)
    return Quote(whose, (Offer(usd, 2 * SLOT, Plan(whose, tuple(steps))),), posted=posted)


CROSSED = ((0, 1), (1, 0))
FLAT = LIST._replace(data_usd=5.0)


@pytest.mark.parametrize(
    ("right", "wrong", "more"),
    [
        (6.8, 6.0, {}),  # 3 gpus at the floor and 0.2 GB at 2 USD, twice; without parameters
        (7.6, 6.8, {"flows": CROSSED}),  # two chunks change site in each slot
        (8.8, 6.8, {"posted": FLAT}),  # the whole set of 0.4 GB pays 5 USD per GB
        (8.8, 7.6, {"posted": FLAT, "flows": CROSSED}),  # however it is carried
    ],
)
def test_a_payment_other_than_the_posted_prices_add_up_to_is_caught(
    right: float, wrong: float, more: dict[str, Any]
) -> None:
    told = bidders().audit.check_quote(0, bid(wrong, **more))
    assert [(v.rule, v.job, round(v.amount, 9)) for v in told] == [
        ("market.posted", "j0", round(wrong - right, 9))
    ]
    assert bidders().audit.check_quote(0, bid(right, **more)) == ()


def test_the_second_bidder_pays_prices_that_the_first_has_raised() -> None:
    stage = bidders()
    first = bid(6.8)
    assert stage.audit.check_quote(0, first) == ()
    assert stage.audit.accept(0, first, 0) == ()
    assert stage.audit.take([Event(0, "accepted", 0, 0)]) == ()
    assert [v.rule for v in stage.audit.check_quote(0, bid(6.8, whose=1))] == ["market.posted"]
    # half of a and a quarter of b are in use: 16^(1/2) - 1 = 3 and 16^(1/4) - 1 = 1 USD per gpu
    assert stage.audit.check_quote(0, bid(2 * (2 * 3 + 1 + 0.4), whose=1)) == ()


@pytest.mark.parametrize(
    "posted",
    [
        LIST._replace(gamma=0.5),
        LIST._replace(gamma=float("nan")),
        LIST._replace(floor_usd=(1.0,)),
        LIST._replace(floor_usd=(1.0, -2.0)),
        LIST._replace(data_usd=-3.0),
    ],
)
def test_a_price_list_that_is_none_is_refused(posted: Posted) -> None:
    assert [v.rule for v in bidders().audit.check_quote(0, bid(6.8, posted=posted))] == ["market.posted"]


def test_where_sales_bind_a_plan_that_was_bought_changes_only_after_a_failure() -> None:
    def told(script: Any, changes: Sequence[Change] = ()) -> list[str]:
        given = scenario([job(0)], customers=[Customer(budget_usd=9.0)], changes=changes)
        policy = Scripted(script, {0: Quote(0, (offer(finish=1000),))})
        try:
            simulate(given, replace(spec_of(policy, pricer=True), binding=True))
        except Refused as refused:
            return [v.rule for v in refused.violations]
        return []

    elsewhere = {100: decision(plan(0, run_at(100, (1,))))}
    assert told({}) == []
    assert told(elsewhere) == ["market.binding"]
    assert told({100: decision(plan(0))}) == ["market.binding"]
    assert told({150: decision(plan(0, run_at(150, (1,))))}, [Change(150, "node_down", 0, 0, 0)]) == []


# ---------------------------------------------------------------------- charges when the run is over


WORTH = Utility(of="delay_slots", shape="linear", args=(9.0, -1.0))


def charged(
    *charges: Charge, worth: Utility | None = WORTH, quotes: Mapping[int, Quote] | None = None
) -> list[str]:
    """Two jobs of which the first is complete after three slots, at 7 USD; what the audit says of the charges."""
    given = scenario(
        [job(0, utility=worth), job(1, work=Fixed(runtime_us=99_999), utility=worth)],
        customers=[Customer(budget_usd=9.0)] * 2,
    )
    plans = () if quotes else (plan(0, run_at(0)), plan(1, run_at(0)))
    policy = Scripted({0: decision(*plans)}, quotes or {}, lambda: charges)
    try:
        simulate(given, replace(spec_of(policy, pricer=quotes is not None), charges=True))
    except Refused as refused:
        return [v.rule for v in refused.violations]
    return []


def test_charges_are_for_what_is_complete_once_and_no_more_than_the_bid_says() -> None:
    assert charged() == charged(Charge(0, 0.0)) == charged(Charge(0, 7.0)) == []
    assert charged(Charge(0, 7.01)) == ["market.charge"]
    assert charged(Charge(0, -0.01)) == charged(Charge(0, float("nan"))) == ["market.charge"]
    assert charged(Charge(0, 1.0), Charge(0, 1.0)) == ["market.charge"]
    assert charged(Charge(1, 1.0)) == ["market.charge"]  # still running
    assert charged(Charge(2, 1.0)) == ["market.charge"]
    assert charged(Charge("j0", 1.0)) == ["market.charge"]  # type: ignore[arg-type] # on purpose
    assert charged(Charge(0, 1.0), worth=None) == ["market.charge"]
    late = Utility(of="delay_slots", shape="linear", args=(1.0, -1.0))  # worth -1 USD when it is complete
    assert charged(Charge(0, 0.0), worth=late) == []
    assert charged(Charge(0, 0.01), worth=late) == ["market.charge"]


def test_who_took_an_offer_is_not_charged_again() -> None:
    sold = {0: Quote(0, (offer(finish=250),)), 1: Quote(1, refused="capacity")}
    assert charged(quotes=sold) == []
    assert charged(Charge(0, 1.0), quotes=sold) == ["market.charge"]


def test_a_policy_that_fails_to_charge_is_named() -> None:
    with pytest.raises(PolicyError, match="scripted answered something that is no charge"):
        charged(None)  # type: ignore[arg-type] # a policy's mistake, on purpose
    broken = Scripted({}, {}, lambda: (Charge(0, 1.0 / 0),))
    with pytest.raises(PolicyError, match=r"scripted failed at .* ZeroDivisionError"):
        simulate(scenario([job(0)]), replace(spec_of(broken), charges=True))
