"""The cross-table: every policy on every scenario family that it can run, as a share of the family's bound.

The share is value / bound if higher is better and bound / value if lower is, so that 1 is the bound and less is worse,
whatever the objective.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

from tradewind.engine import bounds
from tradewind.engine.fit import mismatch
from tradewind.lab import contention, joint, knowledge, loss_curves
from tradewind.lab.cross_families import FAMILIES, Family, Make
from tradewind.lab.drawing import heat_table
from tradewind.lab.study import Chart, Effort, PaperFigure, Part, Pieces, Row, Study
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.registry import policies
from tradewind.report.figures.theme import Theme
from tradewind.report.summary import estimate
from tradewind.worlds.simulate import simulate

SLOW = ("mixed", "mixed-shares")
"""Policies that take minutes for a run with a hundred jobs and hours with a thousand: one seed, and no run with many."""
MOST_JOBS = (100, 200)
"""Jobs up to which a quick and a full table have SLOW policies."""


def _seeds(effort: Effort) -> range:
    return range(1, 1 + min(effort.seeds, effort.pick(2, 10)))


@lru_cache(maxsize=64)
def _scenario(make: Make, effort: Effort, seed: int) -> Scenario:
    """A scenario, cached for the next policies."""
    return make(effort, seed)


def why_not(family: Family, policy: str, effort: Effort) -> str:
    """Why a policy cannot run a family; empty if it can."""
    return mismatch(policies.find(policy), _scenario(family.make, effort, 1))


def left_out(family: Family, policy: str, effort: Effort) -> bool:
    """Whether a pair would take too long for the table."""
    return policy in SLOW and len(_scenario(family.make, effort, 1).jobs) > effort.pick(*MOST_JOBS)


def cell(effort: Effort, make: Make, policy: str) -> list[Row]:
    """For each seed the objective and the number of jobs that were not served."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        given = _scenario(make, effort, seed)
        run = simulate(given, policies.find(policy), _quick_params(effort, given, policy), seed=seed)
        away = sum(run.metrics[f"jobs_{word}"] for word in ("refused", "declined", "unfinished"))
        rows.append({"seed": float(seed), "value": run.value, "away": away})
    return rows


def one_seed(effort: Effort, make: Make, policy: str) -> list[Row]:
    """The cell of a policy that is slow."""
    return cell(replace(effort, seeds=1), make, policy)


def _quick_params(effort: Effort, given: Scenario, policy: str) -> Mapping[str, Any]:
    """Parameters for a quick table: prices in hindsight from a short search instead of the policy's own."""
    if not effort.quick or policy not in ("bfp", "bfp-tau"):
        return {}
    from tradewind.systems.dps.bound import best_prices
    from tradewind.systems.dps.kernels.fixed import QUICK

    return best_prices(given, with_runtime=policy == "bfp-tau", search=QUICK)


def family_bounds(effort: Effort, make: Make) -> list[Row]:
    """The bound of each seed."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        found = bounds.bound(_scenario(make, effort, seed))
        assert found is not None, make.__name__
        rows.append({"seed": float(seed), "bound": found.value, "kind": found.kind})
    return rows


@cache
def parts(effort: Effort) -> tuple[Part, ...]:
    """The bounds of all families, and all cells that can run."""
    found = [
        Part(name=f"{f.name}: bound", rows=partial(family_bounds, make=f.bound_from or f.make))
        for f in FAMILIES
    ]
    for family in FAMILIES:
        able = [policy for policy in policies.names() if not why_not(family, policy, effort)]
        found += [_part(family, policy) for policy in able if not left_out(family, policy, effort)]
    return tuple(found)


def _part(family: Family, policy: str) -> Part:
    rows = partial(one_seed if policy in SLOW else cell, make=family.make, policy=policy)
    return Part(name=f"{family.name}: {policy}", rows=rows)


def join(effort: Effort, rows: Sequence[Sequence[Row]]) -> list[Row]:
    """One row per family and policy: the share of the bound with a 95% interval, or why there is none."""
    known = {part.name: found for part, found in zip(parts(effort), rows, strict=True)}
    table: list[Row] = []
    for family in FAMILIES:
        limits = known[f"{family.name}: bound"]
        for policy in policies.names():
            own = known.get(f"{family.name}: {policy}")
            table.append(_row(family, policy, effort, (own, limits)))
    return table


def _row(
    family: Family, policy: str, effort: Effort, found: tuple[Sequence[Row] | None, Sequence[Row]]
) -> Row:
    own, limits = found
    setup = _scenario(family.make, effort, 1).setup
    row: dict[str, str | float] = {
        "policy": policy, "family": family.name, "share": "", "low": "", "high": "", "n": 0.0,
        "objective": setup.objective, "value": "", "bound": estimate([float(r["bound"]) for r in limits]).mean,
        "kind of bound": str(limits[0]["kind"]), "why not": "",
    }  # fmt: skip
    if own is None:
        reason = why_not(family, policy, effort)
        told = (
            f"cannot run: {reason}"
            if reason
            else f"left out: slow, and more than {effort.pick(*MOST_JOBS)} jobs"
        )
        return {**row, "why not": told}
    row |= {"value": estimate([float(r["value"]) for r in own]).mean, "n": float(len(own))}
    away = sum(float(r["away"]) for r in own)
    if away and SENSE[setup.objective] == "min":
        reason = f"no ratio: {away / len(own):.0f} jobs per run were rejected or not finished; the bound is for all jobs"
        return {**row, "why not": reason}
    share = estimate([_share(setup.objective, o, b) for o, b in zip(own, limits[: len(own)], strict=True)])
    half = share.half if share.half == share.half else 0.0
    return {**row, "share": share.mean, "low": share.mean - half, "high": share.mean + half}


def _share(objective: Any, own: Row, limit: Row) -> float:
    value, bound = float(own["value"]), float(limit["bound"])
    above, below = (value, bound) if SENSE[objective] == "max" else (bound, value)
    return above / below if below else 1.0


def rows(effort: Effort) -> list[Row]:
    """The whole table."""
    return join(effort, [part.rows(effort) for part in parts(effort)])


def summary(table: Sequence[Row]) -> str:
    """The best policy of each family."""
    best = []
    for family in dict.fromkeys(str(r["family"]) for r in table):
        mine = [
            (float(r["share"]), str(r["policy"])) for r in table if r["family"] == family and r["share"] != ""
        ]
        best.append(f"{family}: {max(mine)[1]} {max(mine)[0]:.3f}")
    ran = sum(r["share"] != "" for r in table)
    none = sum(str(r["why not"]).startswith("no ratio") for r in table)
    return (
        f"{ran} of {len(table)} pairs have a share of the bound, {none} ran without serving all jobs, "
        f"{len(table) - ran - none} cannot run or are left out (each with its reason). Best policy of each family: "
        f"{', '.join(best)}."
    )


def paint(table: Sequence[Row], theme: Theme, width: float) -> Any:
    """Heat map of policies by families: policies that run the same families together, the best first."""
    families = list(dict.fromkeys(str(r["family"]) for r in table))
    shares = {(str(r["policy"]), str(r["family"])): float(r["share"]) for r in table if r["share"] != ""}

    def rank(policy: str) -> tuple[list[bool], float, str]:
        mine = [shares[policy, f] for f in families if (policy, f) in shares]
        return [(policy, f) not in shares for f in families], -sum(mine) / len(mine), policy

    order = sorted({policy for policy, _ in shares}, key=rank)
    cells = [(policy, f, shares.get((policy, f), float("nan"))) for policy in order for f in families]
    return heat_table(cells, theme, width)


STUDY = Study(
    system="cross",
    title="Cross-table: every policy on every scenario family",
    figures=(
        PaperFigure(
            name="table",
            title="Share of the bound by scenario family and policy",
            rows=rows,
            summary=summary,
            chart=Chart(x="family", y="share", series="policy", low="low", high="high", kind="bar"),
            pieces=Pieces(parts=parts, join=join),
            paint=paint,
        ),
        knowledge.FIGURE,
        joint.FIGURE,
        contention.FIGURE,
        loss_curves.FIGURE,
    ),
    remarks=(
        "The share is value / bound if higher is better and bound / value if lower is; 1 is the bound. The bound of DPS "
        "knows the distribution of the budgets but not the budgets, so that prices chosen in hindsight can exceed it.",
        "mlbroker finite: the narrow family on sites with 30% of the peak demand of all jobs, compared with the bound "
        "without capacity limits. dps queue: the jobs of DPS without prices, compared with the bound of the same jobs "
        "without communication. cluster rings: the jobs of the cluster as rings, compared with the bound of its fixed jobs.",
        "A dot in the map means that the policy cannot run the family, or that it takes too long; the table and the CSV "
        "give the reasons. Slow policies (mixed, mixed-shares) have one seed, and run families of at most 100 jobs in the "
        "quick table and 200 in the full one.",
    ),
)
