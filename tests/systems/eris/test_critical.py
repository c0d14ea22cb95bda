"""Claims about `eris-preemptive` with payments=critical: no scale of a bid pays better than the true one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.effort import tries
from tradewind import api
from tradewind.engine.intervals import floats, ints
from tradewind.engine.menu import Invoice
from tradewind.files import run_file
from tradewind.model.arrays import Ints
from tradewind.model.errors import LookupFailed
from tradewind.model.job import Customer
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param
from tradewind.model.units import UNLIMITED
from tradewind.model.utility import Shape, Utility
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.report.life import life_of
from tradewind.systems.eris.kernels.turns import delays
from tradewind.systems.eris.policy import critical as eris_critical
from tradewind.systems.eris.policy.critical import STEP, read_bid
from tradewind.systems.eris.study.lies import CHARGED, NARROW, SCARCE, market, payoffs, tiny, try_lie
from tradewind.testing import contract as contracts

SPEC = replace(policies.find("eris-preemptive"), params={"payments": Param(default="critical", doc="")})
PLACES: tuple[dict[str, float], ...] = ({}, NARROW, SCARCE)


def scaled(scenario: Scenario, number: int, scale: float) -> Scenario:
    """The scenario in which one bid is a multiple of what completing is worth to its customer."""
    jobs, customers = list(scenario.jobs), list(scenario.customers)
    truth = jobs[number].utility
    assert truth is not None
    heights = {"linear": (0, 1), "piecewise": range(1, 20, 2)}.get(truth.shape, (0,))
    reported = tuple(x * (scale if n in heights else 1.0) for n, x in enumerate(truth.args))
    jobs[number] = replace(jobs[number], utility=replace(truth, args=reported))
    customers[number] = Customer(valuation=truth)
    return replace(scenario, jobs=tuple(jobs), customers=tuple(customers))


def unusual(seed: int) -> Scenario:
    """A market that `tiny` cannot make.

    Bids of other shapes that arrive within slots, at some sites only, with few workers at a time; a horizon that cuts the
    last slot.
    """
    rng = np.random.default_rng((seed, 8))
    scenario = tiny(
        seed, slots=int(rng.integers(5, 12)), last_arrival=3, gpu=float(rng.choice([1.0, 2.0])),
        chunks_per_worker=float(rng.choice([4.7, 12.0, 20.0])),
    )  # fmt: skip
    setup = scenario.setup
    shapes: tuple[tuple[Shape, tuple[float, ...]], ...] = (
        ("linear", (900.0, -150.0)),
        ("linear", (300.0, 0.0)),
        ("budget", (500.0, 6.0)),
        ("piecewise", (0.0, 1000.0, 2.0, 1000.0, 4.0, 100.0, 9.0, 50.0)),
        ("sigmoid", (2000.0, -1.0, 2.0)),
    )
    jobs = []
    for job in scenario.jobs:
        shape, args = shapes[int(rng.integers(len(shapes)))]
        job = replace(
            job,
            arrive_us=job.arrive_us + int(rng.integers(0, setup.slot_us // 2)) * int(rng.integers(2)),
            utility=Utility(of="delay_slots", shape=shape, args=args),
            nodes=frozenset({0, int(rng.integers(4))}) if rng.random() < 0.3 else None,
            data_nodes=frozenset({0, 1, 2}) if rng.random() < 0.3 else None,
            workers_max=int(rng.choice([5, 10**6])),
        )
        jobs.append(job)
    jobs.sort(key=lambda job: job.arrive_us)
    numbered = tuple(replace(job, index=i) for i, job in enumerate(jobs))
    return replace(
        scenario, setup=replace(setup, horizon_us=setup.horizon_us - setup.slot_us // 3), jobs=numbered
    )


def paid_in(run: Run, table: str = "payments") -> dict[int, float]:
    """Job -> USD."""
    return dict(zip(ints(run, table, "job").tolist(), floats(run, table, "usd").tolist(), strict=True))


def delay_of(scenario: Scenario, run: Run, number: int) -> int:
    """Slots from arrival to completion; -1: not complete."""
    finish = int(ints(run, "outcomes", "finish_us")[number])
    slot = scenario.setup.slot_us
    return -1 if finish < 0 else (finish - 1) // slot - scenario.jobs[number].arrive_us // slot


@pytest.mark.parametrize("changes", PLACES)
def test_no_lie_about_the_scale_of_a_bid_pays(changes: dict[str, float]) -> None:
    tried = [try_lie(seed, "scale", CHARGED, **changes) for seed in range(tries(25, 100))]
    assert max(each.gain for each in tried) <= 1e-6
    assert min(each.least_payoff for each in tried) >= 0.0
    assert min(each.gain for each in tried) < -1.0  # the lies do matter


@pytest.mark.parametrize("changes", PLACES)
def test_a_payment_is_the_worth_minus_the_area_under_it_over_smaller_bids(changes: dict[str, float]) -> None:
    """The area is computed by rerunning the whole market at every scale, a tenth of a level apart."""
    fine, compared = 10, 0
    for seed in range(6):
        scenario = tiny(seed, **changes)
        run = CHARGED.run(scenario)
        paid = paid_in(run)
        costly = max(paid, key=lambda index: paid[index], default=-1)
        if costly < 0 or not paid[costly]:
            continue
        worth = scenario.jobs[costly].utility
        assert worth is not None
        edges = np.exp(-STEP / fine * np.arange(8 * fine + 1))
        middles = (edges[1:] + edges[:-1]) / 2
        delays = [delay_of(scenario, CHARGED.run(scaled(scenario, costly, s)), costly) for s in middles]
        found = [d for d in delays if d >= 0]
        assert found == sorted(found)  # a smaller bid is never served sooner
        assert -1 not in delays[: len(found)]
        values = np.array([worth.value(d) if d >= 0 else 0.0 for d in delays])
        area = float((values * (edges[:-1] - edges[1:])).sum()) + values[-1] * edges[-1]
        served = worth.value(delay_of(scenario, run, costly))
        # service may change anywhere between two tried scales, the first of which is 1
        between = -np.diff(np.append(1.0, middles))
        steps = np.abs(np.diff(np.append(served, values))) @ between
        assert paid[costly] == pytest.approx(served - area, abs=float(steps) + 1e-6)
        compared += 1
    assert compared >= 3


def test_a_job_without_rivals_pays_nothing_and_an_incomplete_job_is_not_charged() -> None:
    scenario = tiny(1)
    lonely = replace(scenario, jobs=scenario.jobs[:1], customers=scenario.customers[:1])
    assert CHARGED.run(lonely).tables["payments"] == {"job": [0], "usd": [0.0]}
    for seed in range(20):
        given = tiny(seed, **SCARCE)
        run = CHARGED.run(given)
        states = dict(zip(run.tables["outcomes"]["job"], run.tables["outcomes"]["state"], strict=True))
        charged = set(run.tables["payments"]["job"])
        assert charged == {job for job, state in states.items() if state == "finished"}
        assert min(payoffs(given, run).values(), default=0.0) >= 0.0


def test_no_scale_pays_in_markets_of_unusual_bids_and_every_replay_agrees_with_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the true level the replay of a bid ends when the job did, and never sooner at a lower level."""
    replays: list[Ints] = []

    def recorded(*args: Any) -> Ints:
        replays.append(delays(*args))
        return replays[-1]

    monkeypatch.setattr(eris_critical, "delays", recorded)
    rng, gains, served = np.random.default_rng(1), [], 0
    for seed in range(50):
        scenario = unusual(seed)
        replays.clear()
        run = CHARGED.run(scenario)
        slot_us, finish = scenario.setup.slot_us, ints(run, "outcomes", "finish_us").tolist()
        assert [int(r[0]) for r in replays] == [t // slot_us - 1 for t in finish if t >= 0]
        for replay in replays:
            ends = np.where(replay < 0, 10**6, replay)
            assert (np.diff(ends) >= 0).all()
        served += len(replays)
        honest = payoffs(scenario, run)
        for job in scenario.jobs:
            other = scaled(scenario, job.index, float(np.exp(rng.uniform(-8, 8))))
            gains.append(payoffs(other, CHARGED.run(other)).get(job.id, 0.0) - honest.get(job.id, 0.0))
    assert served > 100
    assert max(gains) <= 1e-6
    assert min(gains) < -1.0


def test_the_slot_in_which_a_bid_is_given_up_does_not_depend_on_its_scale() -> None:
    """From some slot on the worth is a tenth, the threshold; scaling may round it either way."""
    scenario = tiny(1)
    worth = Utility(
        of="delay_slots", shape="piecewise", args=(0.0, 1000.0, 2.0, 1000.0, 4.0, 100.0, 9.0, 100.0)
    )
    given = replace(scenario, jobs=(replace(scenario.jobs[0], utility=worth), *scenario.jobs[1:]))
    policy, found = eris_critical.Critical(given.setup), set()
    for scale in np.exp(np.linspace(-2, 2, 200)):
        bid = read_bid(policy.ledger, policy._whole, scaled(given, 0, float(scale)).jobs[0], 0)
        assert bid is not None
        found.add(bid.last)
    assert len(found) == 1


def test_a_job_that_displaces_no_other_pays_exactly_nothing() -> None:
    scenario = tiny(4, gpu=4.0, chunks_per_worker=30.0)
    calm = Utility(of="delay_slots", shape="linear", args=(1000.0 / 3.0, 0.0))
    given = replace(scenario, jobs=tuple(replace(job, utility=calm) for job in scenario.jobs))
    assert list(paid_in(CHARGED.run(given)).values()) == [0.0] * 7


def test_capacity_that_failed_in_the_first_slot_is_used_again_once_it_is_back() -> None:
    scenario = tiny(3)
    slot_us, sites = scenario.setup.slot_us, range(len(scenario.setup.hosts))
    changes = [
        Change(at, kind, node, 0, 0)
        for at, kind in ((0, "node_down"), (slot_us, "node_up"))
        for node in sites
    ]
    run = CHARGED.run(replace(scenario, changes=tuple(changes)))
    assert run.metrics["jobs_completed"] >= 5


def test_a_unit_never_has_more_workers_than_its_data_can_use() -> None:
    """Large units waste less of a fractional rate; even at sites without limits the unit stays small."""
    scenario = tiny(3, chunks_per_worker=1.9)
    wide = tuple(replace(node, capacity_milli=(UNLIMITED,) * 3) for node in scenario.setup.nodes)
    policy = eris_critical.Critical(replace(scenario.setup, nodes=wide))
    for job in scenario.jobs:
        bid = read_bid(policy.ledger, np.full(4, np.inf), job, 0)
        assert bid is not None
        assert bid.size * 1.9 < bid.chunks + 2


def test_without_payments_a_larger_bid_gains() -> None:
    """Shows why payments are needed: the same lies without payments."""
    free = CHARGED._replace(params={"samples": 0})
    gains = []
    for seed in range(12):
        scenario = tiny(seed, **SCARCE)
        worth = scenario.jobs[3].utility
        assert worth is not None
        runs = [free.run(each) for each in (scenario, scaled(scenario, 3, 20.0))]
        delays = [delay_of(scenario, run, 3) for run in runs]
        values = [worth.value(d) if d >= 0 else 0.0 for d in delays]
        gains.append(values[1] - values[0])
    assert max(gains) > 100.0


def test_random_markets_with_failures_keep_every_rule_and_every_payoff() -> None:
    for seed in range(tries(20, 60)):
        scenario = market(seed)
        run = CHARGED.run(scenario)
        assert min(payoffs(scenario, run).values(), default=0.0) >= -1e-9


def test_it_satisfies_the_contract_of_a_policy() -> None:
    scenario = market(3)  # with a failure
    run = contracts.passes_the_audit(SPEC, scenario)
    assert run.metrics["payments_usd"] > 0
    contracts.is_the_same_each_time(SPEC, scenario, run)
    for share in (0.0, 0.4, 0.8):
        contracts.continues_after_restore(SPEC, scenario, run, share)
        contracts.does_not_peek_ahead(SPEC, scenario, run, share)
    contracts.does_not_see_budgets(SPEC, scenario, run)


def test_charges_are_in_the_run_file_and_a_modified_charge_is_found(tmp_path: Path) -> None:
    scenario = tiny(2, **SCARCE)
    run = CHARGED.run(scenario)
    run_file.save(run, tmp_path / "run.json")
    again = run_file.load_run(tmp_path / "run.json")
    assert again.tables["charges"] == run.tables["charges"]
    assert api.check(scenario, again) == ()
    charges = run.tables["charges"]
    usd = [9e9, *charges["usd"][1:]]
    touched = replace(run, tables={**run.tables, "charges": {**charges, "usd": usd}})
    assert [v.rule for v in api.check(scenario, touched)] == ["market.charge"]
    twice = {name: [*column, column[0]] for name, column in charges.items()}
    touched = replace(run, tables={**run.tables, "charges": twice})
    assert [v.rule for v in api.check(scenario, touched)] == ["market.charge"]
    half = [x / 2 for x in paid_in(run, "charges").values()]
    lowered = replace(run, tables={**run.tables, "charges": {**charges, "usd": half}})
    assert {v.rule for v in api.check(scenario, lowered)} == {"ledger.metric"}


def test_a_charge_is_explained() -> None:
    scenario = tiny(2, **SCARCE)
    run = CHARGED.run(scenario)
    paid = paid_in(run)
    invoices = {
        index: found
        for index in paid
        if isinstance(found := life_of(scenario, run, scenario.jobs[index].id).market, Invoice)
    }
    assert invoices.keys() == paid.keys()
    for index, invoice in invoices.items():
        assert invoice.charged_usd == paid[index] <= invoice.worth_usd
        assert invoice.delay_slots == delay_of(scenario, run, index)
        assert ("below" in invoice.why) == (paid[index] > 0)
        assert f"charged {paid[index]:.2f} USD: completes in slot" in invoice.lines[1]
    assert max(paid.values()) > 0
    unserved = next(job.id for job in scenario.jobs if job.index not in paid)
    assert life_of(scenario, run, unserved).market is None
    with pytest.raises(LookupFailed, match="No job is called"):
        api.explain(scenario, run, "nobody")


def test_a_job_whose_workers_fit_beside_its_server_is_served_where_bandwidth_carries_no_parameters() -> None:
    scenario = tiny(4, gpu=4.0, bandwidth_gb=0.2, scale_slots=20.0)
    heavy = tuple(replace(job, traffic_bytes_per_worker_slot=10**9) for job in scenario.jobs)
    run = CHARGED.run(replace(scenario, jobs=heavy))
    assert run.metrics["jobs_completed"] >= 3
