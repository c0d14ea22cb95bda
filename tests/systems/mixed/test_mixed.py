"""mixed: answers of jobs, prices, plans, the bound and the policies."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradewind import api
from tradewind.model.job import Fixed, Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.registry import policies, workloads
from tradewind.systems.mixed.bound.certified import bound
from tradewind.systems.mixed.bound.whole import Whole, uncovered, whole
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.offline import offline
from tradewind.systems.mixed.policy import certificate_of
from tradewind.systems.mixed.rivals import in_line
from tradewind.systems.mixed.shared import oracles
from tradewind.systems.mixed.shared.books import Books
from tradewind.systems.mixed.shared.exchange import Effort, exchange
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.prices import find_prices
from tradewind.worlds.planned import planned
from tradewind.worlds.simulate import simulate

SMALL = {"jobs": 12, "slots": 10, "sites": 3}
LITTLE = Effort(rounds=60, replies=20)


@cache
def given(seed: int = 1, load: str = "tight", kind: str = "all") -> Scenario:
    return workloads.generate("mixed", {**SMALL, "load": load, "kind": kind}, seed)


def at_prices(found: Whole, scale: float, seed: int = 0) -> Market:
    """The market at random prices of scarcity on top of rent at its chords."""
    mu = np.random.default_rng(seed).uniform(0.0, scale, size=found.market.free.shape)
    mu[:, -1] *= 0.05
    return found.market._replace(
        linear=found.frame.chords(found.market) + found.frame.scarce(found.market, mu),
        byte_usd=mu[:, -1].copy(),
        tiers=False,
    )


def paid(found: Whole, ask: Ask, answer: Answer, market: Market) -> float:
    """USD of a schedule at linear prices."""
    units, _ = found.frame.use(answer.workers, answer.servers, answer.gb, (ask.worker, ask.server))
    return float((units * market.linear).sum() + answer.gb @ market.byte_usd)


# ---------------------------------------------------------------------- answers
@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_an_answer_adds_up_fits_and_is_not_above_its_bound(scale: float) -> None:
    found = whole(given())
    market = at_prices(found, scale)
    answered = 0
    for ask in found.asks:
        answer = ask.reply(market)
        if answer is None:
            continue
        answered += 1
        _, rows = found.frame.use(answer.workers, answer.servers, answer.gb, (ask.worker, ask.server))
        assert (rows <= market.free + 1e-9).all()
        assert answer.profit == pytest.approx(answer.gain - paid(found, ask, answer, market))
        assert ask.bound(market, answer) >= answer.profit - 1e-9
        assert answer.workers.sum(axis=1).max() <= ask.job.workers_max
    assert answered >= 4


def test_a_raised_price_raises_no_profit() -> None:
    found = whole(given())
    low = at_prices(found, 1.0)
    high = low._replace(linear=low.linear * 1.3, byte_usd=low.byte_usd * 1.3)
    for ask in found.asks:
        cheap, dear = ask.reply(low), ask.reply(high)
        assert (0.0 if dear is None else dear.profit) <= (0.0 if cheap is None else cheap.profit) + 1e-9


def by_hand(found: Whole, ask: Ask, market: Market) -> float:
    """The best profit of a ring or gang by trying every number of workers in every slot, at the cheapest places."""
    slots, job = ask.slots, ask.job
    most = job.workers_max
    usd = np.full((slots, most + 1), np.inf)
    for t, split in product(range(slots), product(range(most + 1), repeat=ask.hosts)):
        n = sum(split)
        if n <= most and all(ask.places[t, h] for h in range(ask.hosts) if split[h]):
            units = np.array(split)[:, None] * ask.worker
            if (units <= market.free[t, :-1].reshape(ask.hosts, -1) + 1e-9).all():
                usd[t, n] = min(usd[t, n], float((units * market.linear[t]).sum()))
    best = 0.0
    counts = [0, *range(job.workers_min, most + 1)]
    for way in product(counts, repeat=slots):
        cost = sum(usd[t, n] for t, n in enumerate(way))
        worth = job.utility
        assert worth is not None
        if worth.of == "progress" and sum(way) <= (job.work.total or 0) / 1e6:
            best = max(best, worth.value(float(sum(way))) - cost)
        elif worth.of == "delay_slots" and sum(n > 0 for n in way) * 3_600_000_000 == job.work.total:
            last = max(t for t in range(slots) if way[t])
            if job.restarts is None:
                best = max(best, worth.value(float(last - job.arrive_us // 3_600_000_000)) - cost)
    return best


@pytest.mark.parametrize("kind", ["ring", "fixed"])
def test_an_answer_is_the_best_of_all_schedules(kind: str) -> None:
    tried = 0
    for seed in range(14):
        made = workloads.generate(
            "mixed", {"jobs": 3, "slots": 4, "sites": 2, "kind": kind, "load": "slack"}, seed
        )
        small = tuple(
            replace(job, workers_max=2)
            if kind == "ring"
            else replace(job, workers_min=1, workers_max=1, restarts=None)
            for job in made.jobs
        )
        found = whole(replace(made, jobs=small))
        market = at_prices(found, 2.0, seed)
        for ask in found.asks:
            answer = ask.reply(market)
            tried += answer is not None
            assert (0.0 if answer is None else answer.profit) == pytest.approx(
                by_hand(found, ask, market), abs=1e-9
            )
    assert tried >= 4


# ---------------------------------------------------------------------- prices, plans, bound
@pytest.mark.parametrize("load", ["slack", "tight", "very"])
def test_the_plan_of_the_whole_scenario_is_audited_and_below_the_bound(load: str) -> None:
    scenario = given(2, load)
    plan = offline(scenario, 1)
    assert plan is not None
    assert plan.bound is not None
    run = simulate(scenario, planned("whole", plan))
    assert not api.check(scenario, run)
    limit = bound(scenario)
    assert limit is not None
    assert run.metrics["welfare_usd"] <= limit.value
    assert run.metrics["welfare_usd"] >= 0.8 * limit.value
    found = whole(scenario)
    again = exchange(found.frame, found.asks, found.market, Effort(rounds=120, replies=150), (1,))
    assert run.metrics["welfare_usd"] == pytest.approx(again.books.welfare)


def test_the_exchange_is_never_below_the_orders_of_its_rivals() -> None:
    for seed in range(3):
        found = whole(given(seed))
        ours = exchange(found.frame, found.asks, found.market, LITTLE, (1,)).books.welfare
        for first in (True, False):
            books = Books(found.frame, found.asks, found.market)
            for j, answer in enumerate(
                in_line(found.frame, found.asks, found.market, streams_first=first).plan
            ):
                books.put(j, answer)
            assert ours >= books.welfare - 1e-6


def test_the_certificate_adds_up_and_is_not_below_the_plan() -> None:
    found = whole(given())
    made = exchange(found.frame, found.asks, found.market, LITTLE, (1,))
    certificate = certificate_of(made, found.market)
    assert certificate is not None
    parts = certificate.data
    assert certificate.value == pytest.approx(sum(parts["jobs"].values()) + parts["room"])
    assert parts["planned"] <= certificate.value


def limit_of(scenario: Scenario) -> float:
    found = bound(scenario)
    assert found is not None
    return found.value


def test_a_worthless_job_raises_no_bound_and_the_order_of_jobs_changes_none() -> None:
    scenario = given()
    worthless = replace(
        scenario.jobs[-1], index=len(scenario.jobs), id="nothing",
        utility=Utility(of=scenario.jobs[-1].utility.of, shape="linear", args=(0.0, 0.0)),  # type: ignore[union-attr]
    )  # fmt: skip
    more = replace(
        scenario, jobs=(*scenario.jobs, worthless), customers=(*scenario.customers, scenario.customers[-1])
    )
    assert limit_of(more) == pytest.approx(limit_of(scenario), rel=2e-3)


def test_with_room_for_all_the_bound_is_what_everybody_gains_alone() -> None:
    found = whole(given(3))
    wide = found.market._replace(free=found.market.free * 1000.0)
    chords = wide._replace(linear=found.frame.chords(wide), tiers=False)
    alone = [
        0.0 if (answer := ask.reply(chords)) is None else ask.bound(chords, answer) for ask in found.asks
    ]
    assert find_prices(found.frame, found.asks, wide).bound == pytest.approx(sum(alone))


def test_what_the_bound_does_not_cover_has_none() -> None:
    scenario = given()
    late = replace(scenario.jobs[-1], arrive_us=scenario.jobs[-1].arrive_us + 1)
    moved = replace(scenario, jobs=(*scenario.jobs[:-1], late))
    assert "begin and end with slots" in uncovered(moved)
    assert bound(moved) is None


# ---------------------------------------------------------------------- policies
def welfare(scenario: Scenario, name: str, **params: Any) -> float:
    run = simulate(scenario, policies.find(name), params)
    assert not api.check(scenario, run)
    return run.metrics["welfare_usd"]


def test_online_plans_are_below_the_bound_and_above_the_rivals_in_the_mean() -> None:
    sums: dict[str, float] = {}
    for seed in (1, 2, 3):
        scenario = given(seed)
        for name in ("mixed", "mixed-line", "mixed-priority", "mixed-shares"):
            reached = welfare(scenario, name)
            assert reached <= limit_of(scenario)
            sums[name] = sums.get(name, 0.0) + reached
    assert max(sums, key=lambda name: sums[name]) == "mixed"


def test_failures_of_sites_break_no_rule() -> None:
    for seed in range(4):
        scenario = workloads.generate("mixed", {**SMALL, "failures": 2}, seed)
        for name in ("mixed", "mixed-line"):
            assert welfare(scenario, name, **({"replies": 5} if name == "mixed" else {})) <= limit_of(
                scenario
            )


@pytest.mark.parametrize("part", range(4))
def test_two_hundred_scenarios_with_failures_are_audited(part: int) -> None:
    loads, quick = ("slack", "tight", "very"), {"rounds": 4, "replies": 2, "most_replies": 12}
    for seed in range(50 * part, 50 * (part + 1)):
        shape = {"jobs": 6, "slots": 5, "sites": 2, "failures": 1 + seed % 2, "load": loads[seed % 3]}
        scenario = workloads.generate("mixed", shape, seed)
        run = simulate(scenario, policies.find("mixed"), quick, seed=seed)
        assert not api.check(scenario, run)


def test_a_job_that_is_priced_out_is_told_the_price() -> None:
    """Of two equal gangs on a site with room for one, the one that is worth less hears what it would have cost."""
    scenario = workloads.generate("mixed", {"jobs": 2, "slots": 4, "sites": 1, "kind": "fixed"}, 1)
    whole_site = int(scenario.setup.nodes[0].capacity_milli[0]) // 1000
    jobs = tuple(
        replace(
            job, arrive_us=0, nodes=None, worker=((0, 1000),), workers_min=whole_site, workers_max=whole_site,
            work=Fixed(runtime_us=3 * scenario.setup.slot_us), restarts=0,
            utility=Utility(of="delay_slots", shape="budget", args=(worth * whole_site, 2.0)),
        )
        for job, worth in zip(scenario.jobs, (40.0, 30.0), strict=True)
    )  # fmt: skip
    run = simulate(replace(scenario, jobs=jobs), policies.find("mixed"))
    assert not api.check(replace(scenario, jobs=jobs), run)
    reasons = dict(zip(run.tables["verdicts"]["job"], run.tables["verdicts"]["reason"], strict=True))
    assert list(reasons) == [1]
    said = re.search(
        r"in slot 0 it was outbid: .* worth ([\d.]+) USD, would have cost ([\d.]+) USD", str(reasons[1])
    )
    assert said is not None
    worth, price = float(said[1]), float(said[2])
    assert worth == pytest.approx(30.0 * whole_site)
    assert 30.0 * whole_site - 0.01 <= price <= 40.0 * whole_site + 0.01


def test_a_gang_that_fits_nowhere_is_refused_with_the_nearest_miss() -> None:
    scenario = workloads.generate("mixed", {**SMALL, "kind": "fixed"}, 1)
    huge = replace(scenario.jobs[0], workers_min=500, workers_max=500)
    run = simulate(replace(scenario, jobs=(huge, *scenario.jobs[1:])), policies.find("mixed-line"))
    reasons = dict(zip(run.tables["verdicts"]["job"], run.tables["verdicts"]["reason"], strict=True))
    assert "needs 500 workers; everything that it may use holds" in str(reasons[0])


def test_a_stream_that_must_be_served_is_served_or_refused() -> None:
    scenario = given(kind="stream")
    must = tuple(replace(job, utility=None) for job in scenario.jobs)
    run = simulate(replace(scenario, jobs=must), policies.find("mixed-line"))
    assert run.metrics["jobs_completed"] + run.metrics["jobs_unfinished"] > 0
    assert run.metrics["value_usd"] == 0.0


def dearer(worth: Utility | None) -> Utility | None:
    """A utility of the generator in another unit of money."""
    assert worth is not None
    args = worth.args
    if worth.shape == "piecewise":
        return replace(worth, args=tuple(a * 64.0 if i % 2 else a for i, a in enumerate(args)))
    scaled = (args[0] * 64.0, args[1] * 64.0) if worth.shape == "linear" else (args[0] * 64.0, *args[1:])
    return replace(worth, args=scaled)


@pytest.mark.parametrize("name", ["mixed", "mixed-line"])
def test_money_in_another_unit_changes_no_decision(name: str) -> None:
    scenario = given()
    setup = scenario.setup
    rent = {key: replace(t, usd=tuple(u * 64.0 for u in t.usd)) for key, t in setup.rent.items()}
    egress = {key: replace(t, usd=tuple(u * 64.0 for u in t.usd)) for key, t in setup.egress.items()}
    jobs = tuple(
        replace(job, utility=dearer(job.utility), deploy_usd=job.deploy_usd * 64.0) for job in scenario.jobs
    )
    dear = replace(scenario, setup=replace(setup, rent=rent, egress=egress), jobs=jobs)
    params = {"rounds": 8, "replies": 3} if name == "mixed" else {}
    plain, scaled = (simulate(each, policies.find(name), params) for each in (scenario, dear))
    assert plain.tables["steps"] == scaled.tables["steps"]


def test_the_same_seed_gives_the_same_decisions_and_prices() -> None:
    scenario = given(2)
    runs = [simulate(scenario, policies.find("mixed"), {"rounds": 8, "replies": 3}) for _ in range(2)]
    assert runs[0].tables == runs[1].tables


def test_the_order_of_jobs_changes_no_bound() -> None:
    found = whole(given(2))
    bounds = [find_prices(found.frame, asks, found.market).bound for asks in (found.asks, found.asks[::-1])]
    assert bounds[0] == pytest.approx(bounds[1], rel=2e-3)


def test_many_jobs_get_fewer_replies_each() -> None:
    assert Effort(30, 40).within(4_000, 40) == Effort(30, 40)
    assert Effort(30, 40).within(4_000, 1_000) == Effort(4, 4, dives=False)
    assert Effort(30, 40).within(4_000, 100_000) == Effort(3, 0, dives=False)


TOY = """
from tradewind.model.job import Fixed, Rounds
from tradewind.systems.mixed.shared.oracles.gang import Gang

class Notebook(Gang):
    kind = "notebook"
    takes_the_rest = False

    @classmethod
    def answers(cls, job):
        return isinstance(job.work, Rounds) and job.work.unit == "round"

    def reply(self, market):
        self.places[:, 1:] = 0  # notebooks run at the first place
        return super().reply(market)
"""


def test_a_new_kind_of_job_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notebook.py").write_text(TOY)
    monkeypatch.setattr(oracles, "__path__", [*oracles.__path__, str(tmp_path)])
    found = oracles.found_oracles()
    assert list(found) == ["dataset", "notebook", "ring", "stream", "gang"]
    monkeypatch.setattr(oracles, "ORACLES", found)
    scenario = given(kind="fixed", load="slack")
    slot_us = scenario.setup.slot_us
    rounds = tuple(
        replace(job, work=Rounds(count=(job.work.total or 0) // slot_us, compute_us=slot_us), restarts=None)
        for job in scenario.jobs
    )  # fmt: skip
    noted = replace(scenario, jobs=rounds)
    run = simulate(noted, policies.find("mixed-line"))
    assert not api.check(noted, run)
    assert run.metrics["jobs_completed"] > 0
    assert set(run.tables["places"]["node"]) == {0}


def test_a_job_without_a_bid_runs_too() -> None:
    scenario = given(kind="fixed", load="slack")
    free = replace(scenario, jobs=tuple(replace(job, utility=None) for job in scenario.jobs))
    assert simulate(free, policies.find("mixed-line")).metrics["jobs_completed"] > 0
