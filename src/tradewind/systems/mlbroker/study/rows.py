"""Rows of the mlBroker figures, as functions of the effort."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tradewind.lab.study import Effort, Row, spread
from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.params import resolve_params
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.slots import slots_of
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.fractional import FractionalDecision, fractional_step
from tradewind.systems.mlbroker.kernels.milp import relaxed_horizon
from tradewind.systems.mlbroker.kernels.rounding import dependent, dependent_light, greedy, independent
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.paper import MLBROKER_PAPER
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.systems.mlbroker.rivals.alone import CENTRAL, SELFISH
from tradewind.systems.mlbroker.rivals.local import LOCAL
from tradewind.systems.mlbroker.rivals.oasis import OASIS
from tradewind.systems.mlbroker.workload.draw import DrawSettings, draw
from tradewind.systems.mlbroker.workload.generator import MLBROKER as WORKLOAD
from tradewind.systems.mlbroker.workload.generator import scenario_of
from tradewind.worlds.simulate import simulate

POLICIES: tuple[Spec, ...] = (MLBROKER, MLBROKER_PAPER, OASIS, LOCAL, CENTRAL, SELFISH)
ROUNDINGS = {
    "A_round": dependent,
    "Round2 alone": dependent_light,
    "independent": independent,
    "greedy": greedy,
}
PARTS = ("transfer", "rent", "deploy", "traffic")
OPT = "opt"
"""The certified bound of the integer problem, in place of the paper's Opt, the optimum of its relaxation P_f."""


def scenario(seed: int, **params: Any) -> Scenario:
    """A scenario of the workload."""
    return WORKLOAD.generate(resolve_params("mlbroker", WORKLOAD.params, params), seed)


def size(effort: Effort) -> dict[str, Any]:
    """Slots and jobs per slot: the paper's numbers, fewer slots when quick."""
    return {"slots": effort.pick(8, 50), "jobs_per_slot": 20.0}


def fractional_run(made: Scenario, eps: float) -> tuple[float, float]:
    """Cost of A_fractional in P_f and the offline optimum of P_f, USD.

    Both in the relaxation of :func:`relaxed_horizon`: rent at the chord, C3 as c (v - v')+.
    """
    last: dict[int, int] = {}
    follows = []
    for _, jobs, _ in slots_of(made, first_only=False):
        follows.append(np.array([last.get(job.index, -1) for job in jobs], dtype=np.int64))
        last = {job.index: i for i, job in enumerate(jobs)}
    steps, cost = fractional_steps(made, eps)
    return cost, relaxed_horizon([slot for slot, _ in steps], follows)


def fractional_steps(
    made: Scenario, eps: float = 0.01
) -> tuple[list[tuple[Slot, FractionalDecision]], float]:
    """Every slot with its fractional decision, and their total cost in P_f, USD."""
    presence: dict[int, Floats] = {}
    steps, cost = [], 0.0
    for slot, jobs, _ in slots_of(made, first_only=False):
        before = np.array([presence.get(job.index, np.zeros(slot.shape[1])) for job in jobs])
        step = fractional_step(slot, before, eps)
        deployed = slot.deploy_usd[:, None] * np.maximum(step.presence - before, 0.0)
        cost += float(step.parts[:, [0, 1, 3]].sum() + deployed.sum())
        presence = {job.index: step.presence[i] for i, job in enumerate(jobs)}
        steps.append((slot, step))
    return steps, cost


def fig5(effort: Effort) -> list[Row]:
    """Fig. 5: ratio of A_fractional to the offline optimum of P_f over sites and epsilon."""
    rows: list[Row] = []
    for sites in effort.pick((5, 10), (5, 10, 15, 20)):
        for eps in effort.pick((0.01, 1.0), (0.001, 0.01, 0.1, 1.0)):
            for seed in range(effort.seeds):
                made = scenario(
                    seed, sites=sites, slots=effort.pick(5, 12), jobs_per_slot=effort.pick(4.0, 8.0)
                )
                if made.jobs:
                    cost, best = fractional_run(made, eps)
                    rows.append({"sites": sites, "eps": f"ε = {eps:g}", "seed": seed, "ratio": cost / best})
    return spread(rows, ("sites", "eps"), "ratio")


def rounded(steps: list[tuple[Slot, FractionalDecision]], name: str, seed: int, present: list[Ints]) -> float:
    """True cost in USD of rounding every slot's fractional decision; `present`: indices of the jobs of each slot."""
    rng = np.random.default_rng(seed)
    here: dict[int, Bools] = {}
    total = 0.0
    for (slot, step), jobs in zip(steps, present, strict=True):
        workers, server = ROUNDINGS[name](slot, step.workers, step.server, rng)
        data, rent, _, traffic = cost_parts(slot, workers, server)
        now = {}
        for i, job in enumerate(jobs.tolist()):
            used = workers[i] > 0
            used[server[i]] = True
            before = here.get(job, np.zeros(len(used), dtype=np.bool_))
            total += float(slot.deploy_usd[i]) * int((used & ~before).sum())
            now[job] = used
        here = now
        total += data + rent + traffic
    return total


def rounding_ratios(made: Scenario, names: tuple[str, ...], seed: int) -> dict[str, float]:
    """Cost of each rounding divided by the cost of A_fractional in P_f (chord)."""
    steps, cost = fractional_steps(made)
    present = [np.array([job.index for job in jobs]) for _, jobs, _ in slots_of(made, first_only=False)]
    return {name: rounded(steps, name, seed, present) / cost for name in names}


def fig6(effort: Effort) -> list[Row]:
    """Fig. 6: ratio of A_round over data size and worker speed."""
    rows: list[Row] = []
    for low, high in ((16.0, 32.0), (33.0, 49.0), (50.0, 66.0)):
        for data in effort.pick((100.0, 700.0), (100.0, 300.0, 500.0, 700.0)):
            for seed in range(effort.seeds):
                made = drawn(seed, data_gb=data, chunk_gb=(low, high), effort=effort)
                ratio = rounding_ratios(made, ("A_round",), seed)["A_round"]
                rows.append({"data_gb": data, "P": f"P {low:g}-{high:g} GB", "seed": seed, "ratio": ratio})
    found = with_change(spread(rows, ("data_gb", "P"), "ratio"), rows, "data_gb", "P", "ratio")
    by_speed = changes(rows, "P", "data_gb", "ratio")
    return [{**row, **_columns("over P", by_speed[row["data_gb"]])} for row in found]


def drawn(seed: int, *, data_gb: float, chunk_gb: tuple[float, float], effort: Effort) -> Scenario:
    """A scenario with a given range of worker speeds."""
    slots, active = effort.pick(5, 20), effort.pick(8.0, 20.0)
    settings = DrawSettings(slots=slots, active=active, data_gb=data_gb, chunk_gb=chunk_gb)
    return scenario_of("mlbroker-speed", draw(settings, seed), slots=slots, tenants=1, origin={"seed": seed})


def fig7(effort: Effort) -> list[Row]:
    """Fig. 7: ratio of the roundings over the number of sites, for the paper's family and CPU jobs."""
    rows: list[Row] = []
    for family in ("paper", "cpu"):
        for sites in effort.pick((5, 15), (5, 10, 15, 20)):
            for seed in range(effort.seeds):
                made = scenario(
                    seed, family=family, sites=sites, **{**size(effort), "slots": effort.pick(5, 20)}
                )
                if made.jobs:
                    for name, ratio in rounding_ratios(made, tuple(ROUNDINGS), seed).items():
                        rows.append(
                            {"sites": sites, "family": family, "policy": name, "seed": seed, "ratio": ratio}
                        )
    found = compared(rows, ("sites", "family"), "ratio", ("A_round", "Round2 alone"))
    return [{**row, "rounding": f"{row['policy']}, {row['family']}"} for row in found]


@lru_cache(maxsize=2)
def by_data_size(effort: Effort) -> tuple[Row, ...]:
    """Figures 8 and 11-14: one row per data size, policy and seed with all costs; `opt` is the certified bound."""
    rows: list[Row] = []
    for data in effort.pick((100.0, 700.0), (100.0, 300.0, 500.0, 700.0)):
        for seed in range(effort.seeds):
            made = scenario(seed, data_gb=data, **size(effort))
            for spec in POLICIES:
                run = simulate(made, spec, seed=seed)
                parts = {part: run.metrics[f"cost_{part}_usd"] for part in PARTS}
                rows.append({"data_gb": data, "seed": seed, "policy": spec.name, "cost": run.value, **parts})
            certified = bound(made)
            assert certified is not None
            rows.append({"data_gb": data, "seed": seed, "policy": OPT, "cost": certified.value})
    return tuple(rows)


def cost_by_data(effort: Effort, column: str) -> list[Row]:
    """Figures 8 and 11-14: one cost over the data size, and what each of the paper's policies saves."""
    raw = [row for row in by_data_size(effort) if column in row]
    names = (MLBROKER.name, MLBROKER_PAPER.name, LOCAL.name, CENTRAL.name, OASIS.name)
    found = with_change(compared(raw, ("data_gb",), column, names), raw, "data_gb", "policy", column)
    total = {(r["data_gb"], r["policy"]): r["cost"] for r in spread(raw, ("data_gb", "policy"), "cost")}
    return [{**row, "total": total[row["data_gb"], row["policy"]]} for row in found]


def ratios(effort: Effort, key: str, values: tuple[float, ...]) -> list[Row]:
    """Figures 9 and 10: cost divided by the certified bound as slots or jobs per slot grow.

    Five seeds at most: the bound takes most of the study's time, and the ratios hardly differ between seeds.
    """
    rows: list[Row] = []
    for value in values:
        params = {**size(effort), key: value}
        params["slots"] = int(params["slots"])
        for seed in range(min(effort.seeds, 5)):
            made = scenario(seed, data_gb=700.0, **params)
            certified = bound(made)
            assert certified is not None
            for spec in (MLBROKER, MLBROKER_PAPER, OASIS, LOCAL, CENTRAL):
                ratio = simulate(made, spec, seed=seed).value / certified.value
                rows.append({key: value, "seed": seed, "policy": spec.name, "ratio": ratio})
    found = compared(rows, (key,), "ratio", (MLBROKER.name, MLBROKER_PAPER.name))
    return with_change(found, rows, key, "policy", "ratio")


def compared(raw: Sequence[Row], at: Sequence[str], value: str, names: Sequence[str]) -> list[Row]:
    """Mean and interval of `value` by `at` and policy, and what the named policies save against each on the same seeds.

    `saved by NAME` is 1 - value of NAME / value of the row's policy; against a policy that pays nothing it is 0 if NAME pays
    nothing either, else -1.
    """
    keys = (*at, "policy")
    value_of = {(*(row[k] for k in (*at, "seed")), row["policy"]): float(row[value]) for row in raw}
    found = spread(raw, keys, value)
    for name in names:
        saved: list[Row] = [
            {
                **{k: row[k] for k in keys},
                "saved": _saved(value_of[(*(row[k] for k in (*at, "seed")), name)], row, value),
            }
            for row in raw
        ]
        means = {tuple(r[k] for k in keys): r for r in spread(saved, keys, "saved")}
        found = [
            {**row, **_columns(f"saved by {name}", _interval(means[tuple(row[k] for k in keys)], "saved"))}
            for row in found
        ]
    return found


def _saved(mine: float, row: Row, value: str) -> float:
    theirs = float(row[value])
    return 1.0 - mine / theirs if theirs else -float(mine > 0)


def changes(raw: Sequence[Row], x: str, by: str, value: str) -> dict[str | float, tuple[float, float, float]]:
    """Relative change of `value` from the smallest to the largest x on the same seeds: by -> mean, low, high."""
    ends = min(row[x] for row in raw), max(row[x] for row in raw)
    at = {(row[by], row["seed"], row[x]): float(row[value]) for row in raw}
    rows: list[Row] = [
        {
            by: key,
            "change": at[key, seed, ends[1]] / at[key, seed, ends[0]] - 1.0
            if at[key, seed, ends[0]]
            else 0.0,
        }
        for key, seed in dict.fromkeys((row[by], row["seed"]) for row in raw)
    ]
    return {row[by]: _interval(row, "change") for row in spread(rows, (by,), "change")}


def with_change(found: Sequence[Row], raw: Sequence[Row], x: str, by: str, value: str) -> list[Row]:
    """The rows with columns `change`, `change low`, `change high` of :func:`changes`."""
    by_key = changes(raw, x, by, value)
    return [{**row, **_columns("change", by_key[row[by]])} for row in found]


def _interval(row: Row, column: str) -> tuple[float, float, float]:
    return float(row[column]), float(row["low"]), float(row["high"])


def _columns(name: str, interval: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, f"{name} low", f"{name} high"), interval, strict=True))
