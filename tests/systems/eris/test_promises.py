"""What failures do to jobs that were sold: work is kept, the rest is served, what is late is paid back."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import rows
from tests.systems.eris.test_rivals import SLOT, bid, finish_slots, market
from tradewind.api import check, explain
from tradewind.model.decision import Decision, Verdict
from tradewind.model.errors import Refused
from tradewind.model.job import Dataset, Job
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate

SELLERS = ("eris", "fcfs", "eris-paper")


def failing(given: Scenario, *changes: tuple[float, str, int]) -> Scenario:
    """With sites that go down or up: (slot, kind, site)."""
    return replace(
        given, changes=tuple(Change(int(at * SLOT), kind, site, 0, 0) for at, kind, site in changes)
    )


@pytest.mark.parametrize("name", SELLERS)
def test_work_done_before_the_first_failure_is_kept_at_the_second(name: str) -> None:
    given = market([bid(0, {0: 6, 1: 6, 2: 6})], gpus=(2, 2, 2), slots=30)
    run = simulate(failing(given, (1.5, "node_down", 0), (2.5, "node_down", 1)), policies.find(name))
    assert rows(run, "events", "kind").count(("voided",)) == 2
    assert run.metrics["jobs_completed"] == 1


@pytest.mark.parametrize("name", SELLERS)
def test_a_sold_job_is_planned_again_once_its_only_site_is_back(name: str) -> None:
    given = market([bid(0, {0: 12})], gpus=(2,), slots=30)
    run = simulate(failing(given, (1.5, "node_down", 0), (5, "node_up", 0)), policies.find(name))
    assert finish_slots(run) == [10]  # 2 of 12 chunks before the failure, the rest from slot 5 on


# ---------------------------------------------------------------------- refunds
PRICED = {"floor": "1,1"}
OUTAGE = ((1.5, "node_down", 0), (5, "node_up", 0))


def test_a_job_that_finishes_later_than_promised_after_a_failure_pays_nothing() -> None:
    given = market([bid(0, {0: 12})], gpus=(2,), slots=30)
    calm, late = (simulate(s, policies.find("eris"), PRICED) for s in (given, failing(given, *OUTAGE)))
    assert calm.metrics["payments_usd"] > 0
    assert late.metrics["jobs_completed"] == 1
    assert rows(late, "payments", "job", "usd") == [(0, 0.0)]
    assert late.metrics["profit_usd"] == late.metrics["payments_usd"] == 0
    assert check(failing(given, *OUTAGE), late) == ()
    menu = explain(failing(given, *OUTAGE), late, "j0")
    assert "refunded" in menu.lines[-1]


def test_a_job_that_never_finishes_after_a_failure_pays_nothing_and_another_pays_in_full() -> None:
    given = market([bid(0, {0: 12}, nodes=frozenset((0,))), bid(1, {1: 3})], gpus=(2, 2), slots=30)
    given = failing(given, (1.5, "node_down", 0))
    run = simulate(given, policies.find("eris"), PRICED)
    assert [job for job, _ in rows(run, "payments", "job", "usd")] == [1]
    assert run.metrics["payments_usd"] == pytest.approx(rows(run, "payments", "usd")[0][0])
    assert run.metrics["payments_usd"] > 0


def test_a_run_that_keeps_the_payment_of_a_broken_promise_is_caught() -> None:
    given = failing(market([bid(0, {0: 12})], gpus=(2,), slots=30), *OUTAGE)
    run = simulate(given, policies.find("eris"), PRICED)
    kept = replace(
        run,
        tables={**run.tables, "payments": {"job": [0], "usd": [12.0]}},
        metrics={**run.metrics, "payments_usd": 12.0, "profit_usd": 12.0},
    )
    assert "ledger.metric" in {found.rule for found in check(given, kept)}


@pytest.mark.parametrize("name", SELLERS)
def test_no_buyer_pays_more_than_its_job_was_worth_whatever_fails(name: str) -> None:
    refunds = 0
    for seed in range(15):
        draw = random.Random(seed)
        jobs = [bid(i, {s: draw.randrange(1, 9) for s in range(3)}, at=i) for i in range(4)]
        given = market(jobs, gpus=(2, 3, 2), slots=24)
        outages = sorted((draw.uniform(0.5, 9), draw.randrange(3)) for _ in range(2))
        given = failing(given, *((at, "node_down", site) for at, site in outages))
        run = simulate(given, policies.find(name), PRICED if name == "eris" else {})
        value = dict(rows(run, "outcomes", "job", "value_usd"))
        paid = dict(rows(run, "payments", "job", "usd"))
        assert all(usd <= value[job] + 1e-9 for job, usd in paid.items())
        bought = {job for job, taken in rows(run, "answers", "job", "taken") if taken >= 0}
        refunds += sum(not paid.get(job, 0.0) for job in bought)
    assert name == "fcfs" or refunds > 0


# ---------------------------------------------------------------------- dropped promises
class Forgetful:
    """Sells as `eris` does; what it does about interrupted jobs is up to `answer`."""

    def __init__(self, seller: Any, answer: Callable[[Any], Decision]) -> None:
        self._seller, self._answer = seller, answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seller, name)

    def decide(self, view: Any) -> Decision:
        self._seller.decide(view)
        return self._answer(view)


def forgetful(answer: Callable[[Any], Decision]) -> Spec:
    spec = policies.find("eris")
    return replace(spec, factory=lambda *given: Forgetful(spec.factory(*given), answer))


def drop(view: Any) -> Decision:
    """Whatever was interrupted is forgotten."""
    return Decision()


def refuse(view: Any) -> Decision:
    """Whatever was interrupted is turned away."""
    idle = (job for job in view.active if view.plan(job) is None)
    return Decision(verdicts=tuple(Verdict(job, "a failure") for job in idle))


def test_a_paid_job_that_is_dropped_although_it_could_be_finished_is_caught() -> None:
    given = failing(market([bid(0, {0: 12})], gpus=(2,), slots=30), *OUTAGE)
    with pytest.raises(Refused, match=r"market\.dropped.*j0"):
        simulate(given, forgetful(drop))
    assert simulate(given, policies.find("eris")).metrics["jobs_completed"] == 1


def test_a_paid_job_may_be_refused_after_a_failure() -> None:
    given = failing(market([bid(0, {0: 12})], gpus=(2,), slots=30), *OUTAGE)
    run = simulate(given, forgetful(refuse))
    assert run.metrics["jobs_refused"] == 1
    assert run.metrics["payments_usd"] == 0


@pytest.mark.parametrize(
    ("slots", "changes"),
    [
        (30, ((1.5, "node_down", 0),)),  # its only site stays down
        (9, OUTAGE),  # five slots are needed from slot 5 on, and four are left
        (11, OUTAGE),  # it can be finished when the site is back, but not three slots later
    ],
)
def test_nobody_is_blamed_for_a_promise_that_could_not_be_kept(
    slots: int, changes: tuple[tuple[float, str, int], ...]
) -> None:
    given = market([bid(0, {0: 12}, nodes=frozenset((0,)))], gpus=(2,), slots=slots)
    assert simulate(failing(given, *changes), forgetful(drop)).metrics["jobs_completed"] == 0


def test_nobody_is_blamed_where_others_have_bought_what_the_job_would_need() -> None:
    others = [bid(n, {0: 40}, at=2, nodes=frozenset((0,))) for n in (1,)]
    given = market([bid(0, {1: 12}, nodes=frozenset((0,))), *others], gpus=(2, 2), slots=26)
    simulate(failing(given, (1.5, "node_down", 0), (2, "node_up", 0)), forgetful(drop))


@pytest.mark.parametrize("name", SELLERS)
def test_no_seller_drops_a_promise_whatever_fails(name: str) -> None:
    voided = 0
    for seed in range(40):
        draw = random.Random(seed)
        rate = draw.choice((1000, 500, 1500))
        jobs = [_with_rate(bid(i, {s: draw.randrange(1, 9) for s in range(3)}, at=i), rate) for i in range(4)]
        given = market(jobs, gpus=(2, 3, 2), transfer=draw.choice((0, 50, 300, 10_000)), slots=30)
        changes = []
        for _ in range(3):
            begin, site = draw.uniform(0.5, 9), draw.randrange(3)
            changes += [(begin, "node_down", site), (begin + draw.uniform(0.5, 6), "node_up", site)]
        run = simulate(failing(given, *sorted(changes)), policies.find(name))
        voided += rows(run, "events", "kind").count(("voided",))
    assert voided > 10


def _with_rate(job: Job, milli: int) -> Job:
    assert isinstance(job.work, Dataset)
    return replace(job, work=replace(job.work, chunk_epochs_per_worker_slot_milli=milli))
