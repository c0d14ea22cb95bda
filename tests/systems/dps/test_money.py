"""DPS in real money: the scale of prices, prices by the hour, floors and contracts in USD, past offers, and remarks."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.systems.dps.test_policy import column, log, market
from tradewind import api
from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.scenario import Scenario
from tradewind.report.summary import group
from tradewind.systems.dps.shared.order import ABOVE, PER_HOUR, PER_JOB

HEADER = "worker,workers,server,servers,hours,price_usd,accepted"


def dearer(given: Scenario, factor: float, **forecast: float) -> Scenario:
    """The market with all budgets multiplied; `forecast`: what the seller knows about it."""
    customers = tuple(replace(each, budget_usd=(each.budget_usd or 0.0) * factor) for each in given.customers)
    setup = replace(given.setup, forecast={**given.setup.forecast, **forecast})
    return replace(given, setup=setup, customers=customers)


def lasting(job: Job, slots: int, slot_us: int) -> Job:
    """The job with a runtime of so many slots wherever it runs."""
    return replace(job, work=Rounds(count=slots, compute_us=slot_us, comm="none", whole_slots=True))


def profit(given: Scenario, policy: str = "dps", **params: Any) -> float:
    return api.run(given, policy, seed=1, params=params).metrics["profit_usd"]


@pytest.mark.parametrize("policy", ["dps", "dps-paper", "dps-simple", "top", "random", "eris-units", "bfp"])
def test_a_stated_scale_changes_money_and_nothing_else(policy: str) -> None:
    small = market(jobs=120)
    large = dearer(small, 64.0, **{PER_JOB: 64.0 / ABOVE})
    before, after = (log(api.run(given, policy, seed=1)) for given in (small, large))
    assert {job: kind for job, (_, kind) in before.items()} == {job: kind for job, (_, kind) in after.items()}
    for job, (asked, _) in before.items():
        assert after[job][0] == pytest.approx(asked * 64.0 if asked >= 0 else -1.0, rel=1e-6)


@pytest.mark.parametrize("factor", [0.01, 2000.0])
def test_a_scale_that_nobody_states_is_learned(factor: float) -> None:
    small = market(jobs=1000, slots=1300)
    large = dearer(small, factor)
    known = profit(small)
    assert profit(large, scale="learned") / factor > 0.9 * known
    assert profit(large) / factor < 0.6 * known


def test_prices_by_the_hour_grow_with_the_runtime() -> None:
    given = market(jobs=60)
    slots = {job.index: 1 + job.index % 7 for job in given.jobs}
    jobs = tuple(lasting(job, slots[job.index], given.setup.slot_us) for job in given.jobs)
    hourly = dearer(replace(given, jobs=jobs), 1.0, **{PER_HOUR: 12.0 / ABOVE})
    run = api.run(hourly, "bfp", params={"prices": "6"})
    paid = dict(zip(column(run, "offers", "job"), column(run, "offers", "payment_usd"), strict=True))
    assert len(paid) > 30
    for index, usd in paid.items():
        items = jobs[index].workers_max + jobs[index].servers
        assert usd == pytest.approx(6.0 * items * slots[index] / 12)  # slots of five minutes
    with pytest.raises(InputError, match="found prices by the hour"):
        api.run(hourly, "bfp")


def test_a_learner_with_prices_by_the_hour_earns_what_long_jobs_are_worth() -> None:
    given = market("sat-runtime", jobs=400, slots=500)
    hours = {job.index: 1.0 + job.index % 10 for job in given.jobs}
    customers = tuple(
        replace(each, budget_usd=4.0 * hours[job.index] * (job.workers_max + job.servers))
        for job, each in zip(given.jobs, given.customers, strict=True)
    )
    jobs = tuple(lasting(job, int(12 * hours[job.index]), given.setup.slot_us) for job in given.jobs)
    made = replace(given, jobs=jobs, customers=customers)
    by_job, by_hour = (dearer(made, 1.0, **{key: 4.0}) for key in (PER_JOB, PER_HOUR))
    assert profit(by_hour) > 1.1 * profit(by_job)


def test_floors_caps_and_contracts_are_in_usd() -> None:
    given = dearer(market(jobs=80), 100.0, **{PER_JOB: 40.0})
    tenant = given.jobs[0].tenant
    run = api.run(given, "dps", params={"floor": 20.0, "cap": 30.0})
    items = [given.jobs[j].workers_max + given.jobs[j].servers for j in column(run, "offers", "job")]
    for usd, count in zip(column(run, "offers", "payment_usd"), items, strict=True):
        assert 20.0 * count <= usd * (1 + 1e-9)
        assert usd <= 30.0 * count * (1 + 1e-9)
    fixed = api.run(given, "dps", params={"contracts": f"{tenant}=25"})
    first = column(fixed, "offers", "payment_usd")[0]
    assert first == pytest.approx(25.0 * items[0])
    with pytest.raises(InputError, match=r"must lie between 0 and 108\.731 USD per item"):
        api.run(given, "dps", params={"cap": 200.0})


def test_a_contract_with_nobody_is_an_error() -> None:
    with pytest.raises(InputError, match=r"No tenant \(named in dps.contracts\) is called 'acne'"):
        api.run(market(jobs=5), "dps", params={"contracts": "acne=0.3"})
    with pytest.raises(InputError, match="is called 'acne'"):
        api.compare(market(jobs=5), ["dps", "top"], params={"dps": {"contracts": "acne=0.3"}})
    tenant = market(jobs=5).jobs[0].tenant
    with pytest.raises(InputError, match=r"found '5'; write tenant=0\.3"):
        api.run(market(jobs=5), "dps", params={"contracts": f"{tenant}=0,5"})


@pytest.mark.parametrize(
    ("forecast", "message"),
    [
        ({PER_JOB: 0.0}, r"forecast.usd_per_item: found 0.0; it must be positive"),
        ({PER_JOB: 1.0, PER_HOUR: 1.0}, "both usd_per_item and usd_per_item_hour are stated"),
        ({"usd_per_item_hours": 1.0}, "is called 'usd_per_item_hours'. Did you mean 'usd_per_item_hour'"),
        ({"jobs.a100": 1.0}, "No forecast for sellers is called 'jobs.a100'"),
    ],
)
def test_a_scale_that_makes_no_sense_is_refused(forecast: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        api.run(dearer(market(jobs=5), 1.0, **forecast), "dps")


def test_past_offers_save_the_price_of_learning(tmp_path: Path) -> None:
    given = dearer(market(jobs=40, slots=80), 100.0, **{PER_JOB: 10.0})  # the seller expects a quarter
    past = dearer(market(seed=2, jobs=400, slots=800), 100.0, **{PER_JOB: 10.0})
    run = api.run(past, "dps", seed=3)
    names, lines = past.setup.resources, [HEADER]
    for job, usd in zip(column(run, "offers", "job"), column(run, "offers", "payment_usd"), strict=True):
        asked, answer = past.jobs[job], log(run)[job][1]
        lines.append(
            f"{names[asked.worker[0][0]]},{asked.workers_max},{names[asked.server[0][0]]},{asked.servers},2.5,{usd},"
            + ("yes" if answer == "accepted" else "no")
        )
    path = tmp_path / "past.csv"
    path.write_text("# past.csv\n" + "\n".join(lines) + "\n")
    cold = sum(api.run(given, "dps", seed=seed).metrics["profit_usd"] for seed in range(4))
    warm = [api.run(given, "dps", seed=seed, params={"history": str(path)}) for seed in range(4)]
    assert sum(each.metrics["profit_usd"] for each in warm) > 1.05 * cold
    assert warm[0].params["history"] == path.read_text()  # the run file needs no other file
    labels = [each.label for each in group([api.run(given, "dps"), warm[0]])]
    assert labels[0] == "dps"
    assert re.fullmatch(r"dps \(history=file [0-9a-f]{6}\)", labels[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "past.csv is empty; leave the parameter out"),
        ("a,b\n1,2\n", "the first line has a, b; worker is missing"),
        (f"{HEADER}\ngpu,1,ps-01,1,2,3,yes\n", "row 1: worker is 'gpu'; the scenario has worker-01"),
        (f"{HEADER}\nworker-01,1.5,ps-01,1,2,3,yes\n", "workers is '1.5'; it must be a whole number above 0"),
        (f"{HEADER}\nworker-01,1,ps-01,1,2,-3,yes\n", "price_usd is '-3'; it must be a number above 0"),
        (f"{HEADER}\nworker-01,1,ps-01,1,2,3,perhaps\n", "accepted is 'perhaps'; it must be yes or no"),
        (f"{HEADER}\nps-01,1,worker-01,1,2,3,yes\n", "names of servers begin with ps"),
    ],
)
def test_past_offers_that_cannot_be_read_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "past.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        api.run(market(jobs=5), "dps", params={"history": str(path)})
    with pytest.raises(InputError, match="cannot read"):
        api.run(market(jobs=5), "dps", params={"history": str(tmp_path / "missing.csv")})


def test_the_run_says_why_nothing_was_sold_and_when_prices_are_too_low() -> None:
    given = market(jobs=20)

    def said(changed: Scenario, **params: Any) -> str:
        return " ".join(api.remarks(changed, api.run(changed, "dps", seed=1, params=params)))

    huge = replace(given, jobs=tuple(replace(j, workers_min=9999, workers_max=9999) for j in given.jobs))
    assert "No job was made an offer; 20 of 20 because of this: asks for more items" in said(huge)
    assert "accepted it: all prices were above their budgets" in said(dearer(given, 1e-6), floor=0.5)
    assert "Unit prices end at 1 USD per item." in said(dearer(given, 100.0))
    assert said(given) == ""
    assert math.isfinite(profit(given))
