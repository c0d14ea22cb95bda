"""What it wins to decide by measured instead of declared times, where declarations are wrong by factors from 0.5 to 2.

Simulated: every tenant's jobs really take a factor of the declared time that is usual for the tenant, times a random one of
each job. Policies decide by what is declared, by estimates (`estimates=measured`), or by the truth, as if it were declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tradewind.lab.study import Effort, Judged, Row
from tradewind.model.estimate import believed
from tradewind.model.job import DECLARED
from tradewind.model.params import resolve_params
from tradewind.model.scenario import Scenario
from tradewind.model.spec import DECLARATION, MEASUREMENT
from tradewind.registry import policies, workloads
from tradewind.worlds.simulate import simulate

TENANTS, OWN = 4, 0.15
"""Tenants, and the standard deviation of the logarithm of a job's own factor."""
TRUTH = "truth"
WAYS = (DECLARATION, MEASUREMENT, TRUTH)
HIGHER = ("utility", "profit_usd", "welfare_usd")
"""Objectives of which more is better."""


class Case(NamedTuple):
    """A workload with its parameters in a quick and in a full study."""

    workload: str
    quick: Mapping[str, Any]
    full: Mapping[str, Any]


CASES: Mapping[str, Case] = {
    "srtf": Case("cluster", {"jobs": 150, "servers": 2, "load": 1.5}, {"jobs": 1000, "servers": 8, "load": 1.5}),
    "srsf": Case("cluster", {"jobs": 150, "servers": 2, "load": 1.5}, {"jobs": 1000, "servers": 8, "load": 1.5}),
    "gadget": Case(
        "gadget", {"jobs": 20, "slots": 16, "servers": 6, "ring_time": True},
        {"jobs": 60, "slots": 60, "servers": 15, "ring_time": True},
    ),
    "dps": Case("dps", {"jobs": 150, "slots": 150, "servers": 3}, {"jobs": 2000, "slots": 2000, "servers": 10}),
    "eris": Case("eris", {"jobs": 25, "slots": 30, "sites": 4}, {"jobs": 100, "slots": 60, "sites": 8}),
}  # fmt: skip
"""Policy -> where it is tried."""


def wrong(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with tenants whose jobs take another time than they declare."""
    rng = np.random.default_rng((seed, 22))
    factors = np.exp(rng.permutation(np.linspace(math.log(0.5), math.log(2.0), TENANTS)))
    tenant = rng.integers(TENANTS, size=len(scenario.jobs))
    paces = np.clip(factors[tenant] * np.exp(OWN * rng.standard_normal(len(tenant))), 0.5, 2.0)
    return replace(
        scenario,
        jobs=tuple(replace(job, tenant=f"tenant-{k}") for job, k in zip(scenario.jobs, tenant, strict=True)),
        customers=tuple(
            replace(customer, pace_milli=round(DECLARED * pace))
            for customer, pace in zip(scenario.customers, paces.tolist(), strict=True)
        ),
    )


def honest(scenario: Scenario) -> Scenario:
    """The same scenario with jobs that declare what is true."""
    pairs = list(zip(scenario.jobs, scenario.customers, strict=True))
    return replace(
        scenario,
        jobs=tuple(believed(job, customer.pace_milli / DECLARED) for job, customer in pairs),
        customers=tuple(replace(customer, pace_milli=DECLARED) for _, customer in pairs),
    )


def compared(policy: str, seed: int, *, quick: bool) -> dict[str, float]:
    """Way of knowing times -> value of the objective."""
    case, spec = CASES[policy], policies.find(policy)
    workload = workloads.find(case.workload)
    given = resolve_params(case.workload, workload.params, case.quick if quick else case.full)
    scenario = wrong(workload.generate(given, seed), seed)
    return {
        way: simulate(honest(scenario), spec, seed=seed).value
        if way == TRUTH
        else simulate(scenario, spec, {"estimates": way}, seed=seed).value
        for way in WAYS
    }


def rows(effort: Effort) -> list[Row]:
    """A row per policy, seed and way; of_truth: the better the larger, whatever the objective."""
    found: list[Row] = []
    for policy in CASES:
        for seed in range(effort.pick(2, 10)):
            values = compared(policy, seed, quick=effort.quick)
            objective = objective_of(policy)
            for way, value in values.items():
                share = value / values[TRUTH] if objective in HIGHER else values[TRUTH] / value
                found.append(
                    {
                        "policy": policy, "seed": seed, "times": way, "objective": objective, "value": value,
                        "of_truth": share,
                    }
                )  # fmt: skip
    return found


def objective_of(policy: str) -> str:
    """The objective of the scenarios in which a policy is tried."""
    case = CASES[policy]
    workload = workloads.find(case.workload)
    made = workload.generate(resolve_params(case.workload, workload.params, case.quick), 0)
    return made.setup.objective


def judge(policy: str) -> Callable[[Sequence[Row], str], Judged]:
    """Whether estimates are better than declarations on average over seeds."""

    def holds(found: Sequence[Row], _: str) -> Judged:
        mine = [r for r in found if r["policy"] == policy]
        shares = {
            way: [float(r["of_truth"]) for r in mine if r["times"] == way]
            for way in (DECLARATION, MEASUREMENT)
        }
        gains = [b / a - 1 for a, b in zip(*shares.values(), strict=True)]
        text = ", ".join(f"{way} {np.mean(values):.3f}" for way, values in shares.items())
        return Judged(
            float(np.mean(gains)) > 0,
            f"{mine[0]['objective']} relative to true times: {text}; gain {100 * min(gains):+.1f}% to "
            f"{100 * max(gains):+.1f}%, mean {100 * float(np.mean(gains)):+.1f}%",
        )

    return holds
