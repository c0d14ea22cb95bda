"""Down is not the same as full: nothing runs at a site that is down, not even a server that needs no resource."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.systems.eris.test_rivals import SLOT, bid, market
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.testing.scenarios import fitting_scenarios
from tradewind.worlds.simulate import simulate

ERIS = [
    spec.name for spec in policies.all() if spec.system == "eris" and spec.online and "dataset" in spec.works
]
PAYMENTS: dict[str, list[dict[str, Any]]] = {"eris-preemptive": [{}, {"payments": "critical"}]}


def _any_bid(index: int, draw: random.Random) -> Job:
    """Without parameter traffic a server may be anywhere, also where no worker is."""
    chunks = {site: draw.randrange(1, 9) for site in range(3)}
    traffic, most = draw.choice((0, 0, 100)), draw.choice((2, 1000))
    return bid(index, chunks, at=index, traffic_bytes_per_worker_slot=traffic, workers_max=most)


def outages(given: Scenario, draw: random.Random) -> Scenario:
    """Some servers need nothing, and most hosts fail in the middle of a slot, some for good."""
    jobs = tuple(replace(job, server=() if draw.random() < 0.7 else job.server) for job in given.jobs)
    slot, last = given.setup.slot_us, max(job.arrive_us for job in given.jobs)
    changes = []
    for node in draw.sample(given.setup.hosts, (len(given.setup.hosts) + 1) // 2):
        begin = draw.randrange(1, min(given.setup.horizon_us - 1, last + 4 * slot))
        until = begin + 1 + int(draw.expovariate(1 / (4 * slot)))
        changes.append(Change(begin, "node_down", node, 0, 0))
        if until < given.setup.horizon_us:
            changes.append(Change(until, "node_up", node, 0, 0))
    return replace(given, jobs=jobs, changes=tuple(sorted(changes)))


@pytest.mark.parametrize("name", ERIS)
def test_no_policy_of_eris_puts_a_server_without_demand_on_a_site_that_is_down(name: str) -> None:
    ran = 0
    for seed in range(12):
        draw = random.Random(seed)
        jobs = [_any_bid(i, draw) for i in range(4)]
        given = outages(market(jobs, gpus=(2, 4, 3), slots=30), draw)
        for params in PAYMENTS.get(name, [{}]):
            run = simulate(given, policies.find(name), params)  # the audit refuses a plan where nothing is up
            ran += sum(
                int(at) >= given.changes[0].at_us // SLOT * SLOT for at in run.tables["steps"]["from_us"]
            )
    assert ran > 20


@pytest.mark.parametrize("name", ["mlbroker", "local", "oasis", "selfish", "central", "mlbroker-paper"])
def test_no_policy_of_mlbroker_puts_a_server_without_demand_on_a_site_that_is_down(name: str) -> None:
    spec = policies.find(name)
    for seed in (1, 2, 3):
        given = outages(next(fitting_scenarios(spec, seed)), random.Random(seed))
        assert simulate(given, spec).tables["steps"]["plan"]
