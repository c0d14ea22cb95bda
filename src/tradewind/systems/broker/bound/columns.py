"""Prices of scarce machines by column generation: a linear program over the jobs' best replies, at fixed shares.

Its duals are prices of capacity, at which every job replies anew; a reply is a new column. The replies at any prices give a
valid bound, and the best choice among the columns is a plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import Program, ProgramSolution, quiet_solver
from tradewind.systems.broker.kernels.bound import UNLIMITED_ROOM, Dual, evaluate
from tradewind.systems.broker.kernels.problem import PLAN, Problem

KEPT = (0.8, 0.4, 0.0)
"""Part of the best prices in those that are tried; the next where one brings nothing new."""
ENOUGH = 1e-6


class Column(NamedTuple):
    """A plan of a job, its cost without prices of capacity, and (offer, slot) -> machines where they are scarce."""

    job: int
    plan: tuple[int, ...]
    usd: float
    use: tuple[tuple[int, int, float], ...]


class Columns:
    """The columns found so far, and the bound."""

    def __init__(self, p: Problem, d: Dual) -> None:
        self.p, self.dual = p, d
        jobs, accounts = len(p.unserved), p.width.shape[0]
        self.replies, self.usd = np.zeros((jobs, PLAN), dtype=np.int64), np.zeros(jobs)
        self.spend, self.use = np.zeros((jobs, accounts)), np.zeros_like(p.price)
        self.known: dict[tuple[int, tuple[int, ...]], Column] = {}
        self.bound = self.reply(d.toll)

    def reply(self, toll: Floats) -> float:
        """The bound at these prices; new replies become columns."""
        value = float(
            evaluate(self.p, Dual(self.dual.shares, toll), self.replies, self.usd, self.spend, self.use)
        )
        for j in np.flatnonzero(self.replies[:, 0] >= 0).tolist():
            plan = tuple(self.replies[j].tolist())
            if (j, plan) not in self.known:
                use = _use(self.p, plan)
                usd = float(self.usd[j]) - sum(toll[o, t] * machines for o, t, machines in use)
                self.known[j, plan] = Column(j, plan, usd, use)
        return value

    def solve(self, *, whole: bool = False, nodes: int = 0) -> tuple[ProgramSolution, list[tuple[int, int]]]:
        """The best mix of the columns (whole: the best choice), and the (offer, slot) of its rows after those of jobs."""
        p, program = self.p, Program()
        serve: list[list[tuple[int, float]]] = [[] for _ in p.unserved]
        uses: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for each in self.known.values():
            number = program.column(each.usd - float(p.unserved[each.job]), 1.0, whole=whole)
            serve[each.job].append((number, 1.0))
            for o, t, machines in each.use:
                uses.setdefault((o, t), []).append((number, machines))
        for entries in serve:
            program.row(0.0, 1.0, entries)
        for (o, t), entries in uses.items():
            program.row(0.0, float(p.room[o, t]), entries)
        return program.solve(quiet_solver(mip_max_nodes=nodes, mip_rel_gap=ENOUGH)), list(uses)

    def raise_bound(self, turns: int) -> float:
        """So many turns of pricing and replying; the best prices are left in the dual."""
        constant, kept = float(self.p.unserved.sum()), 0
        for _ in range(turns):
            found, rows = self.solve()
            if found.value + constant <= self.bound * (1.0 + ENOUGH):
                break
            toll = np.zeros_like(self.dual.toll)
            for (o, t), price in zip(rows, found.duals[len(self.p.unserved) :], strict=True):
                toll[o, t] = max(0.0, -float(price))
            count = len(self.known)
            mixed = KEPT[kept] * self.dual.toll + (1.0 - KEPT[kept]) * toll
            value = self.reply(mixed)
            if value > self.bound:
                self.bound = value
                self.dual.toll[:] = mixed
            kept = 0 if len(self.known) > count else kept + 1
            if kept == len(KEPT):
                break
        return self.bound

    def plan(self, nodes: int) -> Ints:
        """The best choice of a column per job (J, PLAN)."""
        found, _ = self.solve(whole=True, nodes=nodes)
        plan = np.zeros((len(self.p.unserved), PLAN), dtype=np.int64)
        plan[:, 0] = -1
        for each, share in zip(self.known.values(), found.columns.tolist(), strict=False):
            if share > 0.5:
                plan[each.job] = each.plan
        return plan


def _use(p: Problem, plan: tuple[int, ...]) -> tuple[tuple[int, int, float], ...]:
    i = plan[0]
    legs = ((int(p.offer[i]), float(p.machines[i])), (int(p.other[i]), float(p.others[i])))
    return tuple(
        (o, t, machines)
        for o, machines in legs
        if o >= 0
        for run in range(plan[1])
        for t in range(plan[2 + 2 * run], plan[2 + 2 * run] + plan[3 + 2 * run])
        if p.room[o, t] < UNLIMITED_ROOM
    )
