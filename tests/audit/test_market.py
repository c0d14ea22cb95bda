"""Rules on markets: offers, choices, promises, posted prices and charges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests import offers
from tests.audit.test_lying_world import found
from tests.builders import (
    SLOT,
    Scripted,
    Stage,
    decision,
    job,
    node,
    plan,
    play,
    run_at,
    scenario,
    setup,
    spec_of,
)
from tradewind.audit.capacity import CapacityLedger
from tradewind.audit.dropped import is_served, note_idle
from tradewind.audit.record import Record
from tradewind.model.decision import Charge, Decision, Flow, Offer, Plan, Posted, Quote, Step, Verdict
from tradewind.model.errors import PolicyError, Refused
from tradewind.model.job import Customer, Dataset, Fixed, Job
from tradewind.model.pool import Pool
from tradewind.model.result import Violation
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility
from tradewind.model.view import Change, Event
from tradewind.worlds.simulate import simulate

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
        ("market.promise", offer(finish=251)),
        ("market.promise", offer(finish=0)),
        ("market.promise", offer(steps=(run_at(0, until=200),))),
        ("form.node", offer(steps=(run_at(0, (9,)),))),
        ("capacity.node", offer(steps=(run_at(0, (0,), (5,)),))),
    ],
)
def test_an_offer_that_breaks_a_rule_is_named_before_the_customer_is_asked(rule: str, bad: Offer) -> None:
    wide = rule == "capacity.node"
    stage, violations = market(bad, one=job(0, workers_max=9) if wide else None)
    assert [violation.rule for violation in violations] == [rule]
    assert violations[0].job == "j0"
    assert stage.audit.check_quote(0, Quote(0, (offer(45.0 if wide else 5.0, unit_usd=((0, 5.0),)),))) == ()


def test_a_quote_for_an_unknown_job_is_a_violation() -> None:
    assert [violation.rule for violation in market(quoted=3)[1]] == ["market.job"]


WORTH = Utility(of="delay_slots", shape="linear", args=(9.0, -1.0))


@pytest.mark.parametrize(
    ("customer", "taken"),
    [
        (Customer(budget_usd=9.0), 0),  # the dearer one
        (Customer(budget_usd=9.0), -1),  # none, though both are within budget
        (Customer(budget_usd=4.0), 0),  # above its budget
        (Customer(valuation=WORTH, budget_usd=9.0), 0),
        (Customer(budget_usd=9.0), 7),  # an offer that does not exist
    ],
)
def test_a_choice_that_the_customer_would_not_make_is_caught(customer: Customer, taken: int) -> None:
    stage, violations = market(offer(5.0), offer(3.0), customer=customer)
    assert violations == ()
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


def test_a_customer_who_paid_cannot_be_refused() -> None:
    script = {100: decision(plan(0)), 200: Decision(verdicts=(Verdict(0, "sorry"),))}
    assert [v.rule for v in sold(250, script=script)] == ["plan.verdict"]


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
    violations = bidders().audit.check_quote(0, bid(wrong, **more))
    assert [(v.rule, v.job, round(v.amount, 9)) for v in violations] == [
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
def test_an_invalid_price_list_is_a_violation(posted: Posted) -> None:
    assert [v.rule for v in bidders().audit.check_quote(0, bid(6.8, posted=posted))] == ["market.posted"]


def test_where_sales_bind_a_plan_that_was_bought_changes_only_after_a_failure() -> None:
    def rules(script: Any, changes: Sequence[Change] = ()) -> list[str]:
        given = scenario([job(0)], customers=[Customer(budget_usd=9.0)], changes=changes)
        policy = Scripted(script, {0: Quote(0, (offer(finish=250),))})
        try:
            simulate(given, replace(spec_of(policy, pricer=True), binding=True))
        except Refused as refused:
            return [v.rule for v in refused.violations]
        return []

    elsewhere = {100: decision(plan(0, run_at(100, (1,))))}
    assert rules({}) == []
    assert rules(elsewhere) == ["market.binding"]
    assert rules({100: decision(plan(0))}) == ["market.binding"]
    assert rules({150: decision(plan(0, run_at(150, (1,))))}, [Change(150, "node_down", 0, 0, 0)]) == []


# ---------------------------------------------------------------------- charges when the run is over


def charged(
    *charges: Charge, worth: Utility | None = WORTH, quotes: Mapping[int, Quote] | None = None
) -> list[str]:
    """Two jobs of which the first is complete after three slots, at 7 USD; the rules that the charges break."""
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


def test_only_complete_jobs_are_charged_once_and_at_most_their_bid() -> None:
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


def test_a_job_that_bought_an_offer_is_not_charged_again() -> None:
    sold = {0: Quote(0, (offer(finish=250),)), 1: Quote(1, refused="capacity")}
    assert charged(quotes=sold) == []
    assert charged(Charge(0, 1.0), quotes=sold) == ["market.charge"]


def test_a_policy_that_fails_to_charge_is_named() -> None:
    with pytest.raises(PolicyError, match="scripted returned charges that cannot be read"):
        charged(None)  # type: ignore[arg-type] # a policy's mistake, on purpose
    broken = Scripted({}, {}, lambda: (Charge(0, 1.0 / 0),))
    with pytest.raises(PolicyError, match=r"scripted failed at .* ZeroDivisionError"):
        simulate(scenario([job(0)]), replace(spec_of(broken), charges=True))


# ---------------------------------------------------------------------- promises that are dropped


CHUNKS = Dataset(chunks=((0, 6), (1, 2)), chunk_bytes=1, epochs=1, chunk_epochs_per_worker_slot_milli=1000)


def interrupted(**more: Any) -> tuple[CapacityLedger, Record]:
    """A job that paid for 8 chunks and whose plan was cancelled; one site at a time has 4 gpus for it and its server."""
    asked = {"workers_max": 9, "servers": 1, "server": ((0, 1000),), **more}
    one = job(0, work=CHUNKS, architecture="ps", **asked)
    record = Record(one, Customer(), CHUNKS.total, ())
    record.paid, record.cancelled_slot = 5.0, 0
    return CapacityLedger(setup(horizon_us=10 * SLOT)), record


def dropped(capacity: CapacityLedger, record: Record, slots: Sequence[int]) -> list[str]:
    for slot in slots:
        note_idle(capacity, record, slot * SLOT)
    violation = is_served(record)
    return [] if violation is None else [violation.rule]


def test_a_paid_job_without_a_plan_three_slots_in_a_row_is_dropped_if_it_could_be_finished() -> None:
    assert dropped(*interrupted(), range(1, 3)) == []
    assert dropped(*interrupted(), range(1, 4)) == ["market.dropped"]
    assert dropped(*interrupted(), range(1, 10)) == [
        "market.dropped"
    ]  # later it is too late; that is no excuse


def test_a_plan_sets_the_count_of_a_dropped_job_back() -> None:
    capacity, record = interrupted()
    assert dropped(capacity, record, range(1, 3)) == []
    record.steps = (run_at(3 * SLOT, until=4 * SLOT),)
    assert dropped(capacity, record, (3,)) == []
    record.steps = ()
    assert dropped(capacity, record, (4, 5)) == []
    assert dropped(capacity, record, (6,)) == ["market.dropped"]


@pytest.mark.parametrize(
    "more",
    [
        {"nodes": frozenset((0,))},  # two chunks are elsewhere
        {"data_nodes": frozenset((1,))},
        {"server": ((0, 5000),)},  # its server fits nowhere
        {"workers_min": 4},  # three fit beside the server
        {"workers_max": 1, "work": replace(CHUNKS, chunks=((0, 9), (1, 2)))},  # eleven slots are needed
        {"restart_us": 1},  # not counted, so nobody is blamed
    ],
)
def test_nobody_is_blamed_for_a_job_that_may_not_fit(more: dict[str, Any]) -> None:
    capacity, record = interrupted()
    record.job = replace(record.job, **more)
    assert dropped(capacity, record, range(1, 10)) == []


def test_nobody_is_blamed_while_sites_are_down_or_full() -> None:
    capacity, record = interrupted()
    capacity.down_nodes.add(1)
    assert dropped(capacity, record, range(1, 10)) == []
    capacity, record = interrupted()
    region = node("region", None)
    sites = (node("a", parent=0), node("b", parent=0))
    capacity = CapacityLedger(setup((region, *sites), horizon_us=10 * SLOT))
    record.job = replace(record.job, work=replace(CHUNKS, chunks=((1, 6), (2, 2))))
    capacity.down_nodes.add(0)  # it has no capacity of its own, but what is below it is down
    assert dropped(capacity, record, range(1, 10)) == []
    capacity.down_nodes.clear()
    assert dropped(capacity, record, range(1, 10)) == ["market.dropped"]
    capacity, record = interrupted()
    taken = job(1, work=CHUNKS, workers_max=9)
    for slot in range(10):
        capacity.add(capacity.claims(taken, run_at(slot * SLOT, workers=(3,), until=(slot + 1) * SLOT)))
    assert dropped(capacity, record, range(1, 10)) == []


def test_a_job_that_spends_more_than_its_cap_at_list_price_is_named() -> None:
    """Two hours at 8 USD, 1 GB at 0.2 USD; that half of the rent is paid by a discount does not count."""
    hour = offers.HOUR
    one = offers.training(compute_us=16 * hour, rounds=1, parts=((offers.WEST, 10**9),))
    move = offers.on(offers.EAST_8A, 3 * hour, 6 * hour, moved=[(offers.WEST, 10**9)])
    pool = Pool(name="p", rent=((offers.EAST_8A, 0),), period_us=hour, tariff=Tariff(usd=(0.5,)))

    def played(cap: float) -> Any:
        given = offers.market([replace(one, spend_cap_usd=cap)], slot_us=hour, pools=(pool,))
        return play(given, {0: decision(plan(0, move))})

    assert played(16.2).metrics["cost_usd"] == pytest.approx(8.2)
    with pytest.raises(Refused) as refused:
        played(16.19)
    (violation,) = refused.value.violations
    assert (violation.rule, violation.slot) == ("spend.job", 4)
    assert violation.amount == pytest.approx(0.01)
