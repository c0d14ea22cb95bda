"""The mlBroker policies in audited simulations: costs, baselines, limits, bills and explanations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tradewind.model.job import Job
from tradewind.model.node import Node
from tradewind.model.params import resolve_params
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.units import UNLIMITED
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.exact import exact, look_ahead
from tradewind.systems.mlbroker.explain.bills import tenant_bills
from tradewind.systems.mlbroker.explain.placement import explain
from tradewind.systems.mlbroker.explain.slots import decided_slots
from tradewind.systems.mlbroker.paper import MLBROKER_PAPER
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.systems.mlbroker.rivals.alone import CENTRAL, SELFISH
from tradewind.systems.mlbroker.rivals.local import LOCAL
from tradewind.systems.mlbroker.rivals.oasis import OASIS
from tradewind.systems.mlbroker.workload.generator import MLBROKER as WORKLOAD
from tradewind.worlds.simulate import simulate

ALL = (MLBROKER, MLBROKER_PAPER, OASIS, LOCAL, CENTRAL, SELFISH)


def made(seed: int = 0, **params: Any) -> Scenario:
    small = {"sites": 4, "slots": 5, "jobs_per_slot": 3, "threshold_scale": 0.1, "data_gb": 200, "tenants": 2}
    return WORKLOAD.generate(resolve_params("mlbroker", WORKLOAD.params, {**small, **params}), seed)


def with_jobs(scenario: Scenario, **changes: Any) -> Scenario:
    return replace(scenario, jobs=tuple(replace(job, **changes) for job in scenario.jobs))


def with_capacity(scenario: Scenario, milli: int) -> Scenario:
    nodes = tuple(
        Node(name=n.name, capacity_milli=(UNLIMITED, milli, UNLIMITED, UNLIMITED))
        for n in scenario.setup.nodes
    )
    return replace(scenario, setup=replace(scenario.setup, nodes=nodes))


def reasons(run: Run) -> list[str]:
    return [str(reason) for reason in run.tables["verdicts"]["reason"]]


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_every_policy_passes_the_audit_and_costs_at_least_the_bound(spec: Spec) -> None:
    scenario = made(family="narrow")
    run = simulate(scenario, spec)
    certified = bound(scenario)
    assert certified is not None
    assert run.violations == ()
    assert run.value >= certified.value * (1 - 1e-9)
    parts = [run.metrics[f"cost_{part}_usd"] for part in ("transfer", "rent", "deploy", "traffic")]
    assert sum(parts) == pytest.approx(run.value, rel=1e-9)


def test_the_costs_of_the_kernels_are_those_of_ledger_and_audit() -> None:
    """The four costs computed from workers and servers equal the metrics of the run."""
    from tradewind.systems.mlbroker.kernels.costs import cost_parts

    scenario = made(family="cpu", seed=3)
    run = simulate(scenario, MLBROKER)
    total = np.zeros(4)
    for decided in decided_slots(scenario, run):
        total += cost_parts(decided.slot, decided.workers, decided.server)
    names = ("transfer", "rent", "deploy", "traffic")
    assert total == pytest.approx([run.metrics[f"cost_{name}_usd"] for name in names], rel=1e-9)


@pytest.mark.parametrize("family", ["paper", "cpu", "narrow", "trap", "deploy"])
def test_tiny_horizons_are_close_to_the_exact_optimum(family: str) -> None:
    scenario = made(family=family, slots=4)
    proof = exact(scenario, nodes=20_000)
    run = simulate(scenario, MLBROKER)
    assert proof.bound <= run.value * (1 + 1e-6)
    assert run.value <= proof.cost * (1.06 if family == "deploy" else 1.02)


def test_looking_ahead_over_the_whole_horizon_gives_the_optimum() -> None:
    scenario = made(family="cpu", slots=3, deploy_scale=5.0, rotating=True)
    best = exact(scenario, nodes=20_000).cost
    assert look_ahead(scenario, 3) == pytest.approx(best, rel=1e-5)
    assert look_ahead(scenario, 0) >= best * (1 - 1e-6)


def test_no_slot_costs_more_than_central_or_selfish_from_the_same_state() -> None:
    from tradewind.systems.mlbroker.kernels.costs import cost_parts
    from tradewind.systems.mlbroker.kernels.rivals import central, selfish

    scenario = made(family="deploy", seed=2, slots=8, jobs_per_slot=6)
    for decided in decided_slots(scenario, simulate(scenario, MLBROKER)):
        cost = sum(cost_parts(decided.slot, decided.workers, decided.server))
        for rival in (central, selfish):
            assert cost <= sum(cost_parts(decided.slot, *rival(decided.slot))) * (1 + 1e-9)


def test_a_job_without_data_in_a_slot_keeps_its_server_only() -> None:
    scenario = made(seed=0)
    volumes = scenario.volumes
    first = (volumes.slot == 1) & (volumes.job == int(volumes.job[volumes.slot == 1][0]))
    size = np.where(first, 0, volumes.bytes)
    dry = replace(scenario, volumes=replace(volumes, bytes=size))
    for decided in decided_slots(dry, simulate(dry, MLBROKER)):
        for i in range(len(decided.jobs)):
            assert decided.server[i] >= 0
            assert (decided.workers[i].sum() == 0) == (decided.slot.data[i].sum() == 0)


def test_residency_is_kept_and_a_job_with_no_site_left_is_refused_alone() -> None:
    scenario = made(seed=0)
    barred = [replace(job, nodes=frozenset((0, 1))) for job in scenario.jobs]
    barred[0] = replace(barred[0], nodes=frozenset((0,)), data_nodes=frozenset((1,)))
    run = simulate(replace(scenario, jobs=tuple(barred)), MLBROKER)
    assert set(run.tables["places"]["node"]) <= {0, 1}
    assert len(reasons(run)) == 1
    assert "no site is allowed for them" in reasons(run)[0]
    assert run.metrics["jobs_refused"] == 1


def test_too_few_workers_allowed_names_both_numbers() -> None:
    run = simulate(with_jobs(made(), workers_max=1), MLBROKER)
    assert all("but at most 1 are allowed" in reason for reason in reasons(run))
    assert reasons(run)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_finite_capacity_is_respected_by_every_policy(spec: Spec) -> None:
    """The audit checks capacity.node at every decision; a job that does not fit is refused with the reason."""
    run = simulate(with_capacity(made(family="narrow", jobs_per_slot=6), 60_000), spec)
    assert run.metrics["jobs"] > run.metrics["jobs_refused"]
    assert all("capacity" in reason for reason in reasons(run))


def test_three_tiers_run_and_are_bounded() -> None:
    scenario = made(family="narrow", tiers=3)
    certified = bound(scenario)
    assert certified is not None
    assert certified.value <= simulate(scenario, MLBROKER).value <= certified.value * 1.05


def test_the_same_seed_gives_the_same_run() -> None:
    scenario = made(family="narrow")
    for spec in (MLBROKER, MLBROKER_PAPER, LOCAL):
        assert simulate(scenario, spec, seed=3) == simulate(scenario, spec, seed=3)


@pytest.mark.parametrize("rule", ["proportional", "shapley"])
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_nobody_pays_more_than_alone_and_the_shares_add_up(rule: str, margin: float) -> None:
    scenario = made(family="narrow", jobs_per_slot=8, tenants=3)
    run = simulate(scenario, MLBROKER)
    bills = tenant_bills(scenario, run, rule, margin)
    alone = sum(each.alone_usd for each in bills)
    assert {each.tenant for each in bills} == {job.tenant for job in scenario.jobs}
    for each in bills:
        assert each.pooled_usd <= each.alone_usd * (1 + 1e-9)
    charged = sum(each.pooled_usd for each in bills)
    assert charged == pytest.approx(run.value + margin * (alone - run.value), rel=1e-9)


def test_an_explanation_names_sites_next_best_and_tiers() -> None:
    scenario = made(family="narrow")
    run = simulate(scenario, MLBROKER)
    job: Job = scenario.jobs[0]
    why = explain(scenario, run, job.id, 0)
    assert why.added_usd <= why.next_usd * (1 + 1e-9)
    assert why.tiers
    assert job.id in why.lines[0]
    assert any("next best" in line for line in why.lines)
    assert any("reach tier" in line for line in why.lines)


def test_leaving_a_site_and_coming_back_is_paid_twice() -> None:
    """`local` follows the data: two sources that alternate make it leave and return."""
    scenario = made(seed=4, slots=4, jobs_per_slot=2, rotating=True, sites=2)
    run = simulate(scenario, LOCAL)
    job_cost = {job.index: job.deploy_usd for job in scenario.jobs}
    before: dict[int, set[int]] = {}
    due = 0.0
    for decided in decided_slots(scenario, run):
        now = {}
        for i, job in enumerate(decided.jobs):
            here = {int(decided.server[i]), *np.flatnonzero(decided.workers[i] > 0).tolist()}
            due += job_cost[job.index] * len(here - before.get(job.index, set()))
            now[job.index] = here
        before = now
    assert run.metrics["cost_deploy_usd"] == pytest.approx(due)
