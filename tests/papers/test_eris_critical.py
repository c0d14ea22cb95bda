"""Claims about `eris-preemptive` with payments=critical: no scale of a bid pays better than the true one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.contract import contracts
from tradewind.app import api, run_file
from tradewind.control.intervals import floats, ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Customer
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param
from tradewind.policies import find
from tradewind.policies.eris_critical import STEP
from tradewind.studies.eris_lies import CHARGED, NARROW, SCARCE, market, payoffs, tell, tiny
from tradewind.studies.menu import Invoice

SPEC = replace(find("eris-preemptive"), params={"payments": Param(default="critical", doc="")})
PLACES: tuple[dict[str, float], ...] = ({}, NARROW, SCARCE)


def scaled(scenario: Scenario, number: int, scale: float) -> Scenario:
    """The scenario in which one bid is a multiple of what completing is worth to its customer."""
    jobs, customers = list(scenario.jobs), list(scenario.customers)
    truth = jobs[number].utility
    assert truth is not None
    height, *shape = truth.args
    jobs[number] = replace(jobs[number], utility=replace(truth, args=(height * scale, *shape)))
    customers[number] = Customer(valuation=truth)
    return replace(scenario, jobs=tuple(jobs), customers=tuple(customers))


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
    told = [tell(seed, "scale", CHARGED, **changes) for seed in range(100)]
    assert max(each.gain for each in told) <= 1e-6
    assert min(each.least_payoff for each in told) >= 0.0
    assert min(each.gain for each in told) < -1.0  # the lies do matter


@pytest.mark.parametrize("changes", PLACES)
def test_a_payment_is_the_worth_minus_the_area_under_it_over_smaller_bids(changes: dict[str, float]) -> None:
    """The area is found by holding the whole market again at every scale, a tenth of a level apart."""
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
        # a change of service lies anywhere between two scales that were tried, the first of which is 1
        between = -np.diff(np.append(1.0, middles))
        steps = np.abs(np.diff(np.append(served, values))) @ between
        assert paid[costly] == pytest.approx(served - area, abs=float(steps) + 1e-6)
        compared += 1
    assert compared >= 3


def test_who_has_no_rival_pays_nothing_and_who_is_not_complete_is_not_charged() -> None:
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


def test_without_payments_a_larger_bid_gains() -> None:
    """What the payments are for: the same lies told where nobody pays."""
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
    for seed in range(60):
        scenario = market(seed)
        run = CHARGED.run(scenario)
        assert min(payoffs(scenario, run).values(), default=0.0) >= -1e-9


def test_it_keeps_the_contract_of_a_policy() -> None:
    scenario = market(3)  # with a failure
    run = contracts.passes_the_audit(SPEC, scenario)
    assert run.metrics["payments_usd"] > 0
    contracts.is_the_same_each_time(SPEC, scenario, run)
    for share in (0.0, 0.4, 0.8):
        contracts.continues_after_restore(SPEC, scenario, run, share)
        contracts.does_not_peek_ahead(SPEC, scenario, run, share)
    contracts.does_not_see_budgets(SPEC, scenario, run)


def test_charges_are_in_the_run_file_and_a_charge_that_was_touched_is_found(tmp_path: Path) -> None:
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
    assert {v.rule for v in api.check(scenario, lowered)} == {"books.metric"}


def test_who_was_charged_can_read_why() -> None:
    scenario = tiny(2, **SCARCE)
    run = CHARGED.run(scenario)
    paid = paid_in(run)
    invoices = {
        index: found
        for index in paid
        if isinstance(found := api.explain(scenario, run, scenario.jobs[index].id), Invoice)
    }
    assert invoices.keys() == paid.keys()
    for index, invoice in invoices.items():
        assert invoice.charged_usd == paid[index] <= invoice.worth_usd
        assert invoice.delay_slots == delay_of(scenario, run, index)
        assert ("below" in invoice.why) == (paid[index] > 0)
        assert f"charged {paid[index]:.2f} USD: complete in slot" in invoice.lines[1]
    assert max(paid.values()) > 0
    unserved = next(job.id for job in scenario.jobs if job.index not in paid)
    with pytest.raises(InputError, match="was not charged: it is not complete"):
        api.explain(scenario, run, unserved)
    with pytest.raises(LookupFailed, match="No job is called"):
        api.explain(scenario, run, "nobody")
