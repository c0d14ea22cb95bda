"""The certified bound under limits: at most the exact optimum with them, which is at most what the policy pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import tradewind as tw
from tests.systems.mlbroker.test_policy import made, reasons, with_capacity
from tradewind.model.job import Stream
from tradewind.model.pool import Pool
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.tenant import SpendCap
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.exact import exact
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.worlds.simulate import simulate


def tiny(seed: int) -> Scenario:
    return made(seed, family="narrow", sites=3, slots=2, jobs_per_slot=2, data_gb=100)


def resident(scenario: Scenario) -> Scenario:
    """Every job may not use one site, and its data may not be at another."""
    jobs = (
        replace(job, nodes=frozenset({0, 1, 2} - {job.index % 3}), data_nodes=frozenset({0, 1, 2} - {(job.index + 1) % 3}))
        for job in scenario.jobs
    )  # fmt: skip
    return replace(scenario, jobs=tuple(jobs))


def few_workers(scenario: Scenario) -> Scenario:
    """As many workers as the data needs in the slot with the most, and no more."""
    most: dict[int, int] = {}
    size: dict[tuple[int, int], int] = {}
    v = scenario.volumes
    for job, slot, amount in zip(v.job.tolist(), v.slot.tolist(), v.bytes.tolist(), strict=True):
        size[job, slot] = size.get((job, slot), 0) + amount
    for (job, _), amount in size.items():
        work = scenario.jobs[job].work
        assert isinstance(work, Stream)
        chunk = work.bytes_per_worker_slot
        most[job] = max(most.get(job, 1), -(-amount // chunk))
    return replace(scenario, jobs=tuple(replace(job, workers_max=most[job.index]) for job in scenario.jobs))


def short(scenario: Scenario) -> Scenario:
    return with_capacity(scenario, 45_000)


def frugal(scenario: Scenario) -> Scenario:
    """Caps just above what the cheapest plans of the first tenant need."""
    from tests.systems.mlbroker.test_caps import spend
    from tradewind.registry import policies

    least = spend(scenario, simulate(scenario, policies.find("selfish")))
    caps = {name: SpendCap(slot_usd=1.02 * max(used)) for name, used in least.items()}
    return replace(scenario, setup=replace(scenario.setup, spend_caps=caps))


@pytest.mark.parametrize("seed", [2, 5, 6])
@pytest.mark.parametrize("limit", [resident, few_workers, short, frugal], ids=lambda f: f.__name__)
def test_the_bound_stays_below_the_exact_optimum_under_every_limit(
    limit: Callable[[Scenario], Scenario], seed: int
) -> None:
    given = limit(tiny(seed))
    run, best, certified = simulate(given, MLBROKER), exact(given, nodes=20_000), bound(given)
    assert certified is not None
    assert certified.value <= best.bound * (1 + 1e-6)
    assert best.optimal
    assert reasons(run) == []
    assert best.cost * (1 - 1e-6) <= run.value <= 1.02 * best.cost
    assert exact(tiny(seed), nodes=20_000).cost <= best.cost * (1 + 1e-6)


def test_limits_that_bind_raise_the_exact_optimum() -> None:
    """Otherwise the comparison above would show nothing."""
    free = exact(tiny(5), nodes=20_000).cost
    for limit in (resident, short):
        assert exact(limit(tiny(5)), nodes=20_000).cost > free * 1.001
    v = tiny(5)
    caps = {"*": SpendCap(slot_usd=1.0)}
    assert exact(replace(v, setup=replace(v.setup, spend_caps=caps)), nodes=2000).cost == float("inf")


def test_no_bound_is_given_where_a_job_cannot_be_served_at_all() -> None:
    given = tiny(5)
    jobs = (replace(given.jobs[0], workers_max=1), *given.jobs[1:])
    assert bound(replace(given, jobs=jobs)) is None


def test_a_monthly_pool_of_egress_is_billed_and_the_bound_stays_below() -> None:
    """Nine tenths of the egress beyond 5 USD of the month are free; without the pool the bound would be above the bill."""
    given = tw.generate("mlbroker", sites=4, slots=6, jobs_per_slot=2, seed=1)
    setup = given.setup
    tiers = Tariff(starts=(0.0, 5.0), usd=(1.0, 0.1))
    pool = Pool(name="egress", egress=tuple(setup.egress), period_us=720 * setup.slot_us, tariff=tiers)
    month = replace(given, setup=replace(setup, pools=(pool,)))
    for policy in ("mlbroker", "central"):
        plain, pooled = (tw.run(each, policy=policy, seed=1, bound=True) for each in (given, month))
        assert plain.bound is not None
        assert pooled.bound is not None
        assert pooled.metrics["cost_discount_usd"] < 0
        assert pooled.bound.value <= pooled.metrics["cost_usd"] < plain.bound.value
        assert not tw.check(month, pooled)
