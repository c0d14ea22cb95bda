"""A slot as one mixed-integer program: the exact optimum of small ones.

Variables of job i: size χ_ik; workers y_is; alone e_is (all of it on server s); visit f_is (server s in a ring of
several); own r_ig (the ring stays in rack g); pass t_ig (rack g in a ring over several racks).

    Σ_k χ_ik <= 1,  Σ_s y_is = Σ_k k χ_ik,  y_is <= c_is (e_is + f_is)
    Σ_s e_is + Σ_g r_ig + over_i <= 1,  f_is <= r_ig + t_ig,  t_ig <= over_i
    Σ_i need_ir y_is <= room_sr,  Σ_i b_i f_is <= link_s,  Σ_i b_i t_ig <= trunk_g
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from tradewind.maths.ring_price import most_workers
from tradewind.maths.ring_slot import Ints, Rings, Slot, no_rings

INFINITY = highspy.kHighsInf


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """value of the rings found, bound on any; equal where `optimal`."""

    rings: Rings
    value: float
    bound: float
    optimal: bool


class _Program:
    """Rows and columns of the program, gathered before HiGHS sees them."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.limit: list[float] = []
        self.equal: list[bool] = []
        self.entries: list[tuple[int, int, float]] = []

    def column(self, cost: float, upper: float) -> int:
        self.cost.append(cost)
        self.upper.append(upper)
        return len(self.cost) - 1

    def row(self, limit: float, terms: list[tuple[int, float]], *, equal: bool = False) -> None:
        for column, value in terms:
            self.entries.append((len(self.limit), column, value))
        self.limit.append(limit)
        self.equal.append(equal)

    def solve(self, nodes: int) -> tuple[list[float], float, bool]:
        """(solution, dual bound, whether it is optimal)."""
        h = highspy.Highs()
        for option, value in (
            ("output_flag", False), ("threads", 1), ("random_seed", 7), ("mip_max_nodes", nodes),
            ("mip_rel_gap", 1e-9), ("mip_feasibility_tolerance", 1e-9),
        ):  # fmt: skip
            h.setOptionValue(option, value)
        count = len(self.cost)
        h.addCols(
            count, np.array(self.cost), np.zeros(count), np.array(self.upper), 0, np.zeros(count, np.int32),
            np.empty(0, np.int32), np.empty(0),
        )  # fmt: skip
        h.changeColsIntegrality(
            count, np.arange(count, dtype=np.int32), np.array([highspy.HighsVarType.kInteger] * count)
        )
        self.entries.sort()
        rows = np.array([e[0] for e in self.entries])
        starts = np.searchsorted(rows, np.arange(len(self.limit))).astype(np.int32)
        upper = np.array(self.limit)
        h.addRows(
            len(upper), np.where(self.equal, upper, -INFINITY), upper, len(rows), starts,
            np.array([e[1] for e in self.entries], np.int32), np.array([e[2] for e in self.entries]),
        )  # fmt: skip
        h.changeObjectiveSense(highspy.ObjSense.kMaximize)
        h.run()
        done = h.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return list(h.getSolution().col_value), float(h.getInfo().mip_dual_bound), done


def solve_exactly(slot: Slot, nodes: int = 100_000) -> Proof:
    """The best rings of a slot; `nodes` of branch and bound at most."""
    if not slot.jobs:
        return Proof(rings=no_rings(slot), value=0.0, bound=0.0, optimal=True)
    program = _Program()
    room: dict[tuple[int, int], list[tuple[int, float]]] = {}
    link: dict[int, list[tuple[int, float]]] = {}
    trunk: dict[int, list[tuple[int, float]]] = {}
    where = [_job(program, slot, i, room, link, trunk) for i in range(slot.jobs)]
    for (s, r), terms in room.items():
        program.row(1.0, [(c, v / max(1, int(slot.room[s, r]))) for c, v in terms])
    for s, terms in link.items():
        program.row(1.0, [(c, v / int(slot.link[s])) for c, v in terms])
    for g, terms in trunk.items():
        program.row(1.0, [(c, v / int(slot.trunk[g])) for c, v in terms])
    x, bound, done = program.solve(nodes)
    rings = no_rings(slot)
    for i, columns in enumerate(where if x else []):
        here = [(s, round(x[c])) for s, c in columns.items() if round(x[c])]
        for j, (s, k) in enumerate(here):
            rings.server[i, j], rings.workers[i, j] = s, k
        rings.size[i] = sum(k for _, k in here)
    value = float(slot.gain[np.arange(slot.jobs), rings.size].sum())
    return Proof(rings=rings, value=value, bound=bound, optimal=done)


def _job(
    program: _Program, slot: Slot, i: int, room: dict[tuple[int, int], list[tuple[int, float]]],
    link: dict[int, list[tuple[int, float]]], trunk: dict[int, list[tuple[int, float]]],
) -> dict[int, int]:  # fmt: skip
    """Adds the columns and rows of one job; returns server -> column of its workers."""
    rack, band = slot.rack, float(slot.band[i])
    sizes = [k for k in range(1, slot.widest + 1) if slot.gain[i, k] > 0]
    if not sizes:
        return {}
    size = {k: program.column(float(slot.gain[i, k]), 1.0) for k in sizes}
    most = _most(slot, i, max(sizes))
    over = program.column(0.0, 1.0)
    own = {g: program.column(0.0, 1.0) for g in range(len(slot.trunk))}
    cross = {g: program.column(0.0, 1.0) for g in own if slot.trunk[g] >= band}
    mode = [(over, 1.0), *((c, 1.0) for c in own.values())]
    workers: dict[int, int] = {}
    for s in range(slot.servers):
        if not most[s]:
            continue
        y = workers[s] = program.column(0.0, float(most[s]))
        alone = program.column(0.0, 1.0)
        mode.append((alone, 1.0))
        visit = program.column(0.0, 1.0 if slot.link[s] >= band else 0.0)
        program.row(0.0, [(y, 1.0), (alone, -float(most[s])), (visit, -float(most[s]))])
        g = int(rack[s])
        program.row(0.0, [(visit, 1.0), (own[g], -1.0), *([(cross[g], -1.0)] if g in cross else [])])
        for r in np.flatnonzero(slot.need[i]).tolist():
            room.setdefault((s, r), []).append((y, float(slot.need[i, r])))
        if slot.link[s] >= band:
            link.setdefault(s, []).append((visit, band))
    for g, column in cross.items():
        program.row(0.0, [(column, 1.0), (over, -1.0)])
        trunk.setdefault(g, []).append((column, band))
    program.row(1.0, mode)
    program.row(1.0, [(c, 1.0) for c in size.values()])
    program.row(
        0.0, [(c, 1.0) for c in workers.values()] + [(c, -float(k)) for k, c in size.items()], equal=True
    )
    return workers


def _most(slot: Slot, i: int, widest: int) -> Ints:
    """(S,) workers of job i that each server could hold."""
    most = np.array([most_workers(slot.room[s], slot.need[i], widest) for s in range(slot.servers)], np.int64)
    return most * slot.open[i] if slot.open.size else most
