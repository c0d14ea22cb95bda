"""Claims about Eris: truthful, individually rational, lawful, and never above what is possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tradewind.control.intervals import taken_offers
from tradewind.model.job import Customer, Dataset, Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.optimum.eris import bound, exact
from tradewind.policies import find
from tradewind.studies.simulate import simulate
from tradewind.workloads import generate

TINY = {
    "sites": 4, "jobs": 7, "slots": 14, "last_arrival": 5, "chunks_per_worker": 12.0, "gpu": 2.0, "forecast": False,
    "bandwidth_gb": 1.5,
}  # fmt: skip
FLOOR = {"floor": "0,6,0,10"}
MARKETS = ("eris", "fcfs")


def tiny(seed: int, **changes: object) -> Scenario:
    """Few sites, scarce GPUs and bandwidth."""
    return generate("eris", {**TINY, **changes}, seed)


def payoffs(scenario: Scenario, run: Run) -> dict[str, float]:
    """True worth minus payment of every job that bought."""
    taken, slot, found = np.flatnonzero(taken_offers(run)), scenario.setup.slot_us, {}
    offers = run.tables["offers"]
    for row in taken.tolist():
        index = int(offers["job"][row])
        job, customer = scenario.jobs[index], scenario.customers[index]
        worth = customer.valuation or job.utility
        assert worth is not None
        delay = (int(offers["finish_us"][row]) - 1) // slot - job.arrive_us // slot
        found[job.id] = worth.value(delay) - float(offers["payment_usd"][row])
    return found


def swap(scenario: Scenario, lie: Job, truth: Utility) -> Scenario:
    """The scenario in which one job reports `lie` while its customer values completion by `truth`."""
    jobs = [lie if job.id == lie.id else job for job in scenario.jobs]
    jobs.sort(key=lambda job: (job.arrive_us, job.index))
    customers = [Customer(valuation=truth) if job.id == lie.id else Customer() for job in jobs]
    numbered = tuple(replace(job, index=i) for i, job in enumerate(jobs))
    return replace(scenario, jobs=numbered, customers=tuple(customers))


def gain(seed: int, kind: str) -> float:
    """What a job gains by a lie, in USD."""
    scenario = tiny(seed)
    rng = np.random.default_rng(seed)
    job = scenario.jobs[int(rng.integers(len(scenario.jobs)))]
    truth, work = job.utility, job.work
    assert truth is not None
    assert isinstance(work, Dataset)
    honest = payoffs(scenario, simulate(scenario, find("eris"), FLOOR)).get(job.id, 0.0)
    height, steep, middle = truth.args
    if kind == "utility":
        args = (
            height * float(rng.uniform(0.2, 4)),
            steep * float(rng.uniform(0.2, 3)),
            float(rng.uniform(-2, 4)),
        )
        lie = replace(job, utility=replace(truth, args=args))
    elif kind == "late":
        late = int(rng.integers(1, 4))
        truth = replace(truth, args=(height, steep, middle - late))
        lie = replace(job, arrive_us=job.arrive_us + late * scenario.setup.slot_us, utility=truth)
    elif kind == "data":
        chunks = tuple((node, n + int(rng.integers(0, 5))) for node, n in work.chunks)
        lie = replace(job, work=replace(work, chunks=chunks))
    else:
        lie = replace(job, work=replace(work, epochs=work.epochs * int(rng.integers(2, 4))))
    other = swap(scenario, lie, truth)
    return payoffs(other, simulate(other, find("eris"), FLOOR)).get(job.id, 0.0) - honest


@pytest.mark.parametrize("kind", ["utility", "late", "data", "epochs"])
def test_a_lie_never_pays(kind: str) -> None:
    gains = [gain(seed, kind) for seed in range(60)]
    assert max(gains) <= 1e-6
    assert min(gains) < -1.0  # the lies do matter


def test_nobody_pays_more_than_completion_is_worth() -> None:
    for seed in range(15):
        scenario = tiny(seed)
        for name in MARKETS:
            assert all(p > 0 for p in payoffs(scenario, simulate(scenario, find(name))).values())


def test_every_accepted_job_finishes_when_it_was_promised() -> None:
    for seed in range(10):
        scenario = tiny(seed, chunks_per_worker=(1.9, 0.5, 8.0)[seed % 3], gpu=4.0)
        run = simulate(scenario, find("eris"), FLOOR)
        taken = np.flatnonzero(taken_offers(run)).tolist()
        promised = {run.tables["offers"]["job"][row]: run.tables["offers"]["finish_us"][row] for row in taken}
        events = run.tables["events"]
        rows = zip(events["kind"], events["job"], events["at_us"], strict=True)
        assert {job: at for kind, job, at in rows if kind == "finished"} == promised


def test_bound_is_above_the_optimum_and_the_optimum_above_every_policy() -> None:
    for seed in range(4):
        scenario = tiny(seed, sites=2, jobs=3, slots=4, last_arrival=1, chunks_per_worker=40.0, gpu=1.0)
        best, limit = exact(scenario), bound(scenario)
        assert best.optimal
        assert limit is not None
        assert limit.value >= best.value - 1e-6
        for name in (*MARKETS, "eris-preemptive"):
            assert simulate(scenario, find(name)).value <= best.value + 1e-6


def test_gamma_of_one_without_floor_is_first_come_first_served() -> None:
    for seed in range(5):
        scenario = tiny(seed)
        same = simulate(scenario, find("eris"), {"gamma": 1.0, "floor": "none"})
        assert same.tables["offers"] == simulate(scenario, find("fcfs")).tables["offers"]


@pytest.mark.parametrize(
    "utility",
    [
        Utility(of="delay_slots", shape="linear", args=(100.0, 5.0)),
        Utility(of="delay_slots", shape="linear", args=(-100.0, 0.0)),
    ],
)
def test_a_rising_or_negative_bid_is_refused_and_the_market_goes_on(utility: Utility) -> None:
    scenario = tiny(3)
    odd = replace(scenario.jobs[2], utility=utility)
    jobs = tuple(odd if job.index == 2 else job for job in scenario.jobs)
    for name in (*MARKETS, "eris-preemptive"):
        run = simulate(replace(scenario, jobs=jobs), find(name))
        assert run.metrics["jobs_refused"] >= 1
        assert run.metrics["jobs_completed"] >= 1


def test_a_bid_too_large_for_the_network_is_refused_for_capacity() -> None:
    scenario = tiny(3)
    work = scenario.jobs[2].work
    assert isinstance(work, Dataset)
    large = replace(scenario.jobs[2], work=replace(work, chunks=((0, 10**6),)))
    jobs = tuple(large if job.index == 2 else job for job in scenario.jobs)
    run = simulate(replace(scenario, jobs=jobs), find("eris"))
    assert run.metrics["jobs_refused"] >= 1
    assert run.metrics["jobs_completed"] >= 1


@pytest.mark.parametrize("name", [*MARKETS, "eris-preemptive"])
def test_random_markets_keep_every_rule(name: str) -> None:
    for seed in range(12):
        rate = (0.5, 1.0, 1.9, 3.0)[seed % 4]
        scenario = tiny(
            seed, chunks_per_worker=rate, gpu=4.0, uneven=0.4, bandwidth_gb=(0.02, 0.2, 5.0)[seed % 3]
        )
        simulate(scenario, find(name))
