"""Lies in markets with failures: what is promised is no better for a liar who comes in time; what fails later is luck."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tradewind as tw
from tests.effort import tries
from tradewind.model.job import Dataset
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change
from tradewind.systems.eris.study.lies import SOLD, market, payoffs, tiny, try_lie_with_failures


@pytest.mark.parametrize("kind", ["utility", "data", "epochs"])
def test_no_lie_about_worth_data_or_epochs_is_promised_more(kind: str) -> None:
    assert max(try_lie_with_failures(seed, kind)[0] for seed in range(tries(15, 40))) <= 1e-6


def test_a_narrow_network_sells_to_whoever_states_the_true_epochs() -> None:
    """Three times the epochs made a worker's data fit into a slot, so that only a liar could buy."""
    given = replace(market(114), changes=())
    run = SOLD.run(given)
    assert "job-1" in payoffs(given, run)
    honest = given.jobs[1]
    assert isinstance(honest.work, Dataset)
    slow = replace(honest, work=replace(honest.work, epochs=3 * honest.work.epochs))
    lied = replace(given, jobs=tuple(slow if job.id == honest.id else job for job in given.jobs))
    assert payoffs(lied, SOLD.run(lied)).get("job-1", 0.0) <= payoffs(given, run)["job-1"]


@pytest.mark.parametrize("seed", [867, 960, 1620])
def test_what_was_sold_in_a_narrow_network_is_planned_again_after_a_failure(seed: int) -> None:
    assert SOLD.run(market(seed)).violations == ()


def alone(arrive_slot: int) -> Scenario:
    """One job, and sites that are all down until slot 2."""
    given = tiny(0, jobs=1)
    slot = given.setup.slot_us
    sites = given.setup.hosts
    down = [Change(0, "node_down", site, 0, 0) for site in sites]
    up = [Change(2 * slot, "node_up", site, 0, 0) for site in sites]
    job = replace(given.jobs[0], arrive_us=arrive_slot * slot)
    return replace(given, jobs=(job,), changes=(*down, *up))


def test_who_arrives_while_all_is_down_gains_by_coming_later() -> None:
    """The smallest example: nobody who answers at once can promise anything before it is known when the sites come back."""
    early, late = (tw.run(alone(slot), "eris") for slot in (0, 2))
    assert early.metrics["jobs_completed"] == 0
    assert late.metrics["jobs_completed"] == 1
