"""DPS's sellers in the audited market: no peeking, exact saves, orderly refusals, and the numbers of the compiled loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tradewind.model.decision import Decision, Offer, Quote
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Fixed, Job, Rounds
from tradewind.model.params import resolve_params
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.view import Change, Policy, View
from tradewind.systems.dps.bound import arrays_of, best_prices
from tradewind.systems.dps.kernels.arms import UCB, BanditSettings, new_arms, price_grids, simulate_arms
from tradewind.systems.dps.kernels.demand import Prior
from tradewind.systems.dps.kernels.fixed import simulate_payments
from tradewind.systems.dps.kernels.learner_sales import simulate_learner
from tradewind.systems.dps.kernels.place import BEST_FIT, WORST_FIT
from tradewind.systems.dps.kernels.sales import new_sales
from tradewind.systems.dps.kernels.state import Market, Settings, Tuning, new_learner
from tradewind.systems.dps.paper import DPS_PAPER, DPS_RS, DPS_SIMPLE
from tradewind.systems.dps.policy import DPS
from tradewind.systems.dps.rivals.bandits import RANDOM_PRICE, TOP
from tradewind.systems.dps.rivals.fixed_price import BFP, BFP_TAU
from tradewind.systems.dps.shared.seller import Seller
from tradewind.systems.dps.workload.generator import DPS as WORKLOAD
from tradewind.worlds.simulate import simulate

ONLINE = [DPS, DPS_PAPER, DPS_SIMPLE, TOP, RANDOM_PRICE, DPS_RS]
IDS = [spec.name for spec in ONLINE]
TINY = {"jobs": 220, "slots": 300, "servers": 6, "worker_types": 2, "server_types": 2}


def market(name: str = "balanced", seed: int = 1, **sizes: int) -> Scenario:
    given = {"market": name, **TINY, **sizes}
    return WORKLOAD.generate(resolve_params("dps", WORKLOAD.params, given), seed)


def column(run: Run, table: str, name: str) -> list[Any]:
    return list(run.tables[table][name])


def log(run: Run) -> dict[int, tuple[float, str]]:
    """What each job was asked and answered."""
    asked = dict(zip(column(run, "offers", "job"), column(run, "offers", "payment_usd"), strict=True))
    return {
        job: (asked.get(job, -1.0), kind)
        for job, kind in zip(column(run, "events", "job"), column(run, "events", "kind"), strict=True)
        if kind in ("accepted", "declined", "refused")
    }


def other_budgets(made: Scenario, run: Run, seed: int) -> Scenario:
    """Every budget drawn anew, but so that no answer changes; who was not asked may have any."""
    rng, answers = np.random.default_rng(seed), log(run)
    fresh = []
    for job in made.jobs:
        asked, kind = answers[job.index]
        budget = asked + rng.exponential(20.0) if kind == "accepted" else asked * rng.uniform(0.0, 0.999)
        fresh.append(Customer(budget_usd=rng.exponential(50.0) if kind == "refused" else float(budget)))
    return replace(made, customers=tuple(fresh))


class Cheater(Seller):
    """Asks exactly what the customer would pay: it reads the scenario, which no policy can."""

    def __init__(self, setup: Setup, made: Scenario) -> None:
        super().__init__(setup, "pa", 0)
        self._made = made

    def price(self, order: Any) -> tuple[float, str]:
        budget = self._made.customers[order.job].budget_usd
        assert budget is not None
        return min(budget, float(order.d_k + order.d_m)), "peeked"


def cheating(made: Scenario) -> Spec:
    return replace(DPS_SIMPLE, name="cheater", factory=lambda setup, params, rng: Cheater(setup, made))


@pytest.mark.parametrize("spec", ONLINE, ids=IDS)
def test_budgets_with_the_same_answers_give_the_same_log(spec: Spec) -> None:
    made = market()
    first = simulate(made, spec, seed=3)
    again = simulate(other_budgets(made, first, 5), spec, seed=3)
    assert log(again) == log(first)


def test_the_invariance_test_catches_a_planted_cheater() -> None:
    made = market()
    first = simulate(made, cheating(made), seed=3)
    other = other_budgets(made, first, 5)
    assert log(simulate(other, cheating(other), seed=3)) != log(first)


@pytest.mark.parametrize("spec", ONLINE, ids=IDS)
def test_what_comes_after_a_job_changes_nothing_before_it(spec: Spec) -> None:
    made, cut = market("saturated"), 120
    first = log(simulate(made, spec, seed=3))
    late = tuple(
        Customer(budget_usd=(c.budget_usd or 0.0) * 9.0) if i >= cut else c
        for i, c in enumerate(made.customers)
    )
    fewer = replace(made, jobs=made.jobs[: cut + 40], customers=late[: cut + 40])
    second = log(simulate(fewer, spec, seed=3))
    assert {i: first[i] for i in range(cut)} == {i: second[i] for i in range(cut)}


def test_the_prefix_test_catches_a_planted_cheater() -> None:
    made = market()
    late = replace(made, customers=tuple(reversed(made.customers)))
    assert log(simulate(made, cheating(made))) != log(simulate(made, cheating(late)))


class Restarting:
    """A seller that is saved, thrown away and restored before every call."""

    def __init__(self, spec: Spec, setup: Setup, params: Mapping[str, Any]) -> None:
        self._spec, self._setup, self._params = spec, setup, params
        self._kept = spec.factory(setup, params, np.random.default_rng(0)).save()

    def _fresh(self) -> Any:
        seller = self._spec.factory(self._setup, self._params, np.random.default_rng(0))
        seller.restore(self._kept)
        return seller

    def quote(self, view: View, job: Job) -> Quote:
        seller = self._fresh()
        answer: Quote = seller.quote(view, job)
        self._kept = seller.save()
        return answer

    def decide(self, view: View) -> Decision:
        seller = self._fresh()
        answer: Decision = seller.decide(view)
        self._kept = seller.save()
        return answer

    def save(self) -> bytes:
        return self._kept

    def restore(self, state: bytes) -> None:
        self._kept = state


@pytest.mark.parametrize("spec", ONLINE, ids=IDS)
def test_a_seller_saved_and_restored_in_the_middle_continues_identically(spec: Spec) -> None:
    made = market(jobs=110, slots=200)

    def fixed(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Policy:
        return spec.factory(setup, params, np.random.default_rng(0))

    def restarting(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Policy:
        return Restarting(spec, setup, params)

    plain = simulate(made, replace(spec, factory=fixed))
    assert simulate(made, replace(spec, factory=restarting)).tables == plain.tables


def test_the_audited_market_earns_what_the_compiled_loops_say() -> None:
    made = market("saturated", jobs=400, slots=600)
    it = arrays_of(made)
    items = np.concatenate([it.cluster.idle_k.sum(axis=1), it.cluster.idle_m.sum(axis=1)]).astype(float)
    flat = np.asarray(0.4 * (it.stream.d_k + it.stream.d_m), dtype=np.float64)
    sales = [new_sales(it.stream, it.cluster, it.budget, rule) for rule in (WORST_FIT, WORST_FIT, BEST_FIT)]
    fixed = simulate_payments(sales[0], flat)
    assert simulate(made, BFP, {"prices": "0.4"}).value == pytest.approx(fixed.profit, rel=1e-9)

    expected = np.array([made.setup.forecast[f"jobs.{name}"] for name in made.setup.resources])
    settings = BanditSettings(expected, items, 0.11 * expected, float(made.setup.slots), UCB)
    arms = simulate_arms(sales[1], new_arms(price_grids(np.full(4, 0.2)), 0), settings)
    assert simulate(made, DPS_PAPER).value == pytest.approx(arms.profit, rel=1e-9)

    rng = np.random.default_rng(np.random.SeedSequence(entropy=8, spawn_key=(1,)))
    public = Market(items[:2], items[2:], float(made.setup.slots), made.setup.forecast["jobs"])
    known = Settings(Tuning(), public, Prior())
    ours = simulate_learner(sales[2], new_learner(known, int(rng.integers(2**62))), known)
    assert simulate(made, DPS, seed=8).value == pytest.approx(ours.profit, rel=1e-9)


def test_hindsight_prices_run_in_the_audited_market_and_more_freedom_earns_more() -> None:
    made = market("sat-runtime")
    plain, with_tau = best_prices(made), best_prices(made, with_runtime=True)
    earned = simulate(made, BFP, plain).value
    assert earned > max(simulate(made, BFP, {"prices": str(p)}).value for p in (0.2, 0.4, 0.6))
    assert simulate(made, BFP_TAU, with_tau).value >= 0.98 * earned
    assert not BFP.online
    assert not BFP_TAU.online


def offers(run: Run) -> list[tuple[int, float]]:
    return list(zip(column(run, "offers", "job"), column(run, "offers", "payment_usd"), strict=True))


def test_floor_cap_and_contract_hold_for_every_offer() -> None:
    made = market()
    jobs = tuple(replace(job, tenant="acme" if job.index % 3 == 0 else "") for job in made.jobs)
    made = replace(made, jobs=jobs)
    run = simulate(made, DPS, {"floor": 0.3, "cap": 0.5, "contracts": "acme=0.35"})
    assert len(offers(run)) > 100
    for index, paid in offers(run):
        job = made.jobs[index]
        unit = paid / (job.workers_max + job.servers)
        assert 0.3 - 1e-9 <= unit <= 0.5 + 1e-9
        if job.tenant == "acme":
            assert unit == pytest.approx(0.35)
    each = column(run, "prices", "usd")
    assert len(each) == 2 * len(offers(run))
    assert all(0.3 - 1e-9 <= usd <= 0.5 + 1e-9 for usd in each)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"floor": 1.5}, "between 0 and 1"),
        ({"cap": -0.1}, "must be 0 or more"),
        ({"floor": 0.6, "cap": 0.5}, "above the cap"),
        ({"contracts": "acme"}, "tenant=0.3"),
        ({"contracts": "acme=2"}, "between 0 and 1"),
    ],
)
def test_prices_outside_the_unit_interval_are_refused_with_a_reason(
    params: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        simulate(market(jobs=3), DPS, params)


def test_other_bad_parameters_are_refused_with_a_reason() -> None:
    for spec, params, says in (
        (DPS_PAPER, {"theta": "-1"}, "negative"),
        (DPS_PAPER, {"delta": "1.5"}, "between 0 and 1"),
        (DPS_PAPER, {"delta": "x"}, "a number"),
        (BFP, {"prices": "worker-01=0.3"}, "no price for"),
        (BFP, {"prices": "worker-99=0.3"}, "worker-99"),
    ):
        with pytest.raises(InputError, match=says):
            simulate(market(jobs=3), spec, params)
    with pytest.raises(InputError, match="jobs"):
        market(jobs=-1)


@pytest.mark.parametrize("spec", [*ONLINE, BFP], ids=[*IDS, "bfp"])
def test_odd_requests_are_turned_away_in_order_and_nothing_is_lost(spec: Spec) -> None:
    made = market(jobs=40)
    nodes = tuple(replace(n, capacity_milli=(*n.capacity_milli[:3], 0)) for n in made.setup.nodes)
    made = replace(made, setup=replace(made.setup, nodes=nodes))
    jobs = list(made.jobs)
    jobs[3] = replace(jobs[3], workers_min=10_000, workers_max=10_000)
    jobs[4] = replace(jobs[4], servers=0)
    jobs[5] = replace(jobs[5], worker=((0, 1000), (1, 1000)))
    jobs[6] = replace(jobs[6], workers_min=1, workers_max=4)
    jobs[7] = replace(jobs[7], work=Rounds(count=1, compute_us=1, comm="none"))
    made = replace(made, jobs=tuple(jobs))
    run = simulate(made, spec, {"prices": "0.3"} if spec is BFP else None)
    kinds = {index: kind for index, (_, kind) in log(run).items()}
    assert all(kinds[i] == "refused" for i in (3, 4, 5, 6))
    nobody_offers = [j.index for j in made.jobs if j.server and j.server[0][0] == 3]
    assert all(kinds[i] == "refused" for i in nobody_offers)
    assert run.metrics["profit_usd"] >= 0.0
    empty = replace(made, jobs=(), customers=())
    assert simulate(empty, spec, {"prices": "0.3"} if spec is BFP else None).metrics["profit_usd"] == 0.0


def test_a_quote_explains_itself() -> None:
    made = market(jobs=60)
    seen: list[Quote] = []

    def listening(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Policy:
        seller: Any = DPS.factory(setup, params, rng)
        inner = seller.quote

        def quote(view: View, job: Job) -> Quote:
            answer: Quote = inner(view, job)
            seen.append(answer)
            return answer

        seller.quote = quote
        policy: Policy = seller
        return policy

    simulate(made, replace(DPS, factory=listening))
    offered = [quote for quote in seen if quote.offers]
    assert offered
    for quote in offered:
        assert all(word in quote.why for word in ("acceptance", "capacity cost", "mark-up"))
        (offer,) = quote.offers
        assert isinstance(offer, Offer)
        assert all(0.0 <= price <= 1.0 + 1e-9 for _, price in offer.unit_usd)
    assert all(quote.why for quote in seen)


def test_a_job_stopped_by_a_failure_is_started_again() -> None:
    made = market("saturated")
    slot = made.setup.slot_us
    changes = (Change(100 * slot, "node_down", 0, 0, 0), Change(160 * slot, "node_up", 0, 0, 0))
    run = simulate(replace(made, changes=changes), DPS)
    kinds = run.tables["events"]["kind"]
    assert "voided" in kinds
    stopped = {j for j, k in zip(run.tables["events"]["job"], kinds, strict=True) if k == "voided"}
    started = [j for j in run.tables["plans"]["job"] if j in stopped]
    assert len(started) > len(stopped)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    made = market()
    assert simulate(made, DPS, seed=1).tables == simulate(made, DPS, seed=1).tables
    assert simulate(made, DPS, seed=1).value != simulate(made, DPS, seed=2).value


def test_a_job_that_is_no_bundle_has_no_hindsight_price() -> None:
    made = market(jobs=5)
    odd = replace(made.jobs[2], work=Fixed(runtime_us=5))
    with pytest.raises(InputError, match="job-00002"):
        best_prices(replace(made, jobs=(*made.jobs[:2], odd, *made.jobs[3:])))
