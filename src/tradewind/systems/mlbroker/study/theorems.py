"""Theorems 3-5 of the mlBroker paper: their constants on studied instances beside measured ratios."""

from __future__ import annotations

import math

import numpy as np

from tradewind.lab.study import Effort, Instance, Theorem
from tradewind.model.scenario import Scenario
from tradewind.model.units import GB
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.slots import slots_of
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.paper import MLBROKER_PAPER
from tradewind.systems.mlbroker.study.rows import fractional_run, rounding_ratios, scenario
from tradewind.systems.mlbroker.workload.real import real_experiment
from tradewind.worlds.simulate import simulate

EPSILON = 0.01
"""Epsilon of `mlbroker-paper`."""


def r1(eps: float) -> float:
    """Theorem 3: 2 + (1 + eps) ln(1 + 1 / eps)."""
    return 2.0 + (1.0 + eps) * math.log(1.0 + 1.0 / eps)


def r2(made: Scenario, *, with_data: bool = False) -> float:
    """Theorem 4: the sum of four maxima, in USD, GB and slots; it carries these units.

    `with_data` takes the smallest volume in lambda over the sites that have data, not over all.
    """
    slots = [slot for slot, _, _ in slots_of(made, first_only=False)]
    one = 1.0 + max(_lambda(slot, with_data) for slot in slots)
    if not math.isfinite(one):
        return math.inf
    found = np.zeros((len(slots), 5))
    for t, slot in enumerate(slots):
        chunk, need = slot.chunk / GB, np.maximum(slot.needed, 1)
        units = (one * slot.worker + slot.server / need[:, None]) / chunk[:, None]  # (I, K)
        first, last = slot.tiers.usd[:, :, 0], slot.tiers.usd[:, :, -1] + slot.tiers.intercept[:, :, -1]
        found[t] = (
            one * slot.move_usd.max() * GB,
            (units[:, None, :] * first).max(),
            (units[:, None, :] * last).max(),
            ((1.0 + one) * slot.deploy_usd / (chunk * need)).max(),
            one * (slot.traffic / slot.chunk).max(),
        )
    transfer, list_price, discounted, deploy, traffic = found.max(axis=0)
    return float(transfer + min(list_price, discounted) + deploy + traffic)


def _lambda(slot: Slot, with_data: bool) -> float:
    """lambda of a slot: the largest P (R + 1) / min over sites of D."""
    least = np.where(slot.data > 0, slot.data, np.inf if with_data else 0.0).min(axis=1)
    busy = slot.data.sum(axis=1) > 0
    with np.errstate(divide="ignore"):
        found = slot.chunk * (slot.shape[1] + 1) / least
    return float(found[busy].max(initial=0.0))


def _simulated(effort: Effort, seed: int, sites: int) -> Scenario:
    return scenario(seed, sites=sites, slots=effort.pick(4, 12), jobs_per_slot=effort.pick(6.0, 8.0))


def theorem3(effort: Effort) -> list[Instance]:
    """r1 beside the cost of A_fractional over the optimum of P_f (chord), by epsilon and number of sites."""
    rows = []
    for sites in effort.pick((5,), (5, 15)):
        made = [_simulated(effort, seed, sites) for seed in range(min(effort.seeds, 3))]
        kinds, jobs = len(made[0].setup.resources) * sites, min(len(m.jobs) for m in made)
        note = f"the proof assumes K R <= I; here {kinds} and {jobs}"
        for eps in (0.001, 0.01, 0.1, 1.0):
            worst = max(cost / best for cost, best in (fractional_run(m, eps) for m in made))
            name = f"{sites} sites, epsilon {eps:g}, worst of {len(made)} seeds"
            rows.append(Instance(name, r1(eps), worst, worst <= r1(eps), note if kinds > jobs else ""))
    return rows


def _instances(effort: Effort) -> list[tuple[str, Scenario, int]]:
    seeds = range(min(effort.seeds, effort.pick(1, 3)))
    simulated = [(f"15 sites, seed {seed}", _simulated(effort, seed, 15), seed) for seed in seeds]
    return simulated + [(f"real experiment, seed {seed}", real_experiment(seed), seed) for seed in seeds]


def _readings(made: Scenario) -> list[tuple[str, float]]:
    """(note, r2) as printed, and with lambda over the sites that have data where these are fewer."""
    printed = r2(made)
    if math.isfinite(printed):
        return [("all sites have data", printed)]
    kinder = r2(made, with_data=True)
    return [("a site has no data: lambda is infinite", printed), ("lambda over the sites with data", kinder)]


def theorem4(effort: Effort) -> list[Instance]:
    """r2 beside the cost of A_round over that of A_fractional."""
    rows = []
    for name, made, seed in _instances(effort):
        ratio = rounding_ratios(made, ("A_round",), seed)["A_round"]
        rows += [Instance(name, found, ratio, ratio <= found, note) for note, found in _readings(made)]
    return rows


def theorem5(effort: Effort) -> list[Instance]:
    """r1 r2 beside the cost of the pipeline over the certified bound, which is at most the optimum."""
    rows = []
    for name, made, seed in _instances(effort):
        certified = bound(made)
        assert certified is not None
        ratio = simulate(made, MLBROKER_PAPER, seed=seed).value / certified.value
        for note, found in _readings(made):
            rows.append(Instance(name, r1(EPSILON) * found, ratio, ratio <= r1(EPSILON) * found, note))
    return rows


THEOREMS = (
    Theorem(
        name="Theorem 3",
        words="A_fractional costs at most r1 = 2 + (1 + epsilon) ln(1 + 1 / epsilon) times the optimum of P_f, here with "
        "the chord relaxation.",
        instances=theorem3,
    ),
    Theorem(
        name="Theorem 4",
        words="A_round costs at most r2 times A_fractional, with r2 the sum of four maxima over prices, demands and data. "
        "r2 adds USD per GB to a number without unit, so it depends on the units (here USD, GB, slots).",
        instances=theorem4,
    ),
    Theorem(
        name="Theorem 5",
        words="mlBroker costs at most r1 r2 times the optimum, here over the certified bound, which is at most the "
        "optimum.",
        instances=theorem5,
    ),
)
