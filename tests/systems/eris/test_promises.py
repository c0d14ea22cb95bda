"""What failures do to jobs that were sold: work is kept, the rest is served."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.systems.eris.test_rivals import SLOT, bid, finish_slots, market
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
