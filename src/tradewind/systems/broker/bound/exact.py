"""The exact optimum of tiny scenarios: one mixed-integer program over options and starts, with true tiers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tradewind.model.errors import Unsupported
from tradewind.model.scenario import Scenario
from tradewind.solvers.highs import Program, quiet_solver
from tradewind.systems.broker.bound.problem import whole
from tradewind.systems.broker.kernels.problem import PLAN, Problem, post

MOST_COLUMNS = 60_000
FAR = 1e17
Entries = dict[tuple[int, int], list[tuple[int, float]]]
"""(account, 0) or (offer, slot) -> columns and what they add to it."""


def exact(scenario: Scenario, nodes: int = 100_000) -> tuple[float, float]:
    """(cost of the best plan found, proven bound); raises Unsupported where it does not apply or is too large.

    Jobs run without a pause, starts lie on the slots; pools are graduated.
    """
    found = whole(scenario)
    p = found.problem
    if p.retroactive.any() or p.free.any() or p.segments.max(initial=1) > 1:
        raise Unsupported("the exact program covers graduated pools and jobs that do not pause")
    program = Program()
    spends: Entries = {}
    uses: Entries = {}
    for j in range(len(p.unserved)):
        chosen = []
        for i in range(p.first[j], p.first[j + 1]):
            for at in range(p.earliest[i], p.latest[i] - p.need[i, 0] + 2):
                chosen.append((_column(program, p, (j, i, at), spends, uses), 1.0))
                if len(program.cost) > MOST_COLUMNS:
                    raise Unsupported(f"the exact program has more than {MOST_COLUMNS:,} columns")
        program.row(0.0, 1.0, chosen)
    for (o, t), entries in uses.items():
        if p.room[o, t] < FAR:
            program.row(0.0, float(p.room[o, t]), entries)
    for (a, _), entries in spends.items():
        _tiers(program, p, a, entries)
    model = quiet_solver(mip_rel_gap=1e-9, mip_max_nodes=nodes)
    solution = program.solve(model)
    constant = float(p.unserved.sum())
    return solution.value + constant, (solution.value if solution.optimal else solution.bound) + constant


def _column(
    program: Program, p: Problem, job_option_start: tuple[int, int, int], spends: Entries, uses: Entries
) -> int:
    """The column of a job on an option from a slot on; its cost is what serving it adds."""
    (j, i, at), plan = job_option_start, np.zeros(PLAN, dtype=np.int64)
    plan[:4] = i, 1, at, p.need[i, 0]
    spent, use = np.zeros(p.width.shape[0]), np.zeros_like(p.price)
    usd = float(post(p, j, plan, spent, use, 1.0)) - float(p.unserved[j])
    column = program.column(usd, 1.0, whole=True)
    for a in np.flatnonzero(spent).tolist():
        spends.setdefault((a, 0), []).append((column, float(spent[a])))
    for o, t in np.argwhere(use).tolist():
        uses.setdefault((o, t), []).append((column, float(use[o, t])))
    return column


def _tiers(program: Program, p: Problem, a: int, entries: list[tuple[int, float]]) -> None:
    """Spend of an account in tiers that fill one after the other."""
    q, most = p.tariff[a], sum(usd for _, usd in entries)
    edges = [0.0, *(float(w) for w in p.width[a] if 0.0 < w < most), most]
    rates = [_rate(p, q, a, (low + high) / 2) for low, high in pairwise(edges)]
    parts, before, width = [], -1, 0.0
    for (low, high), rate in zip(pairwise(edges), rates, strict=True):
        part = program.column(rate, high - low)
        if before >= 0:
            opened = program.column(0.0, 1.0, whole=True)
            program.row(0.0, np.inf, [(before, 1.0), (opened, -width)])
            program.row(-np.inf, 0.0, [(part, 1.0), (opened, low - high)])
        parts.append((part, -1.0))
        before, width = part, high - low
    program.row(0.0, 0.0, [*entries, *parts])


def _rate(p: Problem, q: int, a: int, spend: float) -> float:
    """What a USD costs after a spend on account a."""
    k = int((p.width[a] <= spend).sum())
    return float(p.rate[q, k])
