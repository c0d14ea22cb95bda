"""What failures do to jobs that were sold: work is kept, the rest is served, what is late is paid back."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.builders import rows
from tests.systems.eris.test_rivals import SLOT, bid, finish_slots, market
from tradewind.api import check, explain
from tradewind.model.scenario import Scenario
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
    assert run.tables["events"]["kind"].count("voided") == 2
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
