"""A slot as one mixed-integer program: the exact optimum of small ones.

Variables of job i: size χ_ik; workers y_is; alone e_is (all of it on server s); visit f_is (server s in a ring of
several); own r_ig (the ring stays in rack g); cross t_ig (rack g in a ring over several racks).

    Σ_k χ_ik <= 1,  Σ_s y_is = Σ_k k χ_ik,  y_is <= c_is (e_is + f_is)
    Σ_s e_is + Σ_g r_ig + over_i <= 1,  f_is <= r_ig + t_ig,  t_ig <= over_i
    Σ_i need_ir y_is <= room_sr,  Σ_i b_i f_is <= link_s,  Σ_i b_i t_ig <= trunk_g
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.gadget.kernels.price import most_workers
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSlot:
    """Rings, their value and a bound on any; the two are equal where `optimal`."""

    rings: Rings
    value: float
    bound: float
    optimal: bool


def solve_exactly(slot: Slot, nodes: int = 100_000) -> ExactSlot:
    """The best rings of a slot, with at most `nodes` of branch and bound."""
    if not slot.jobs:
        return ExactSlot(rings=no_rings(slot), value=0.0, bound=0.0, optimal=True)
    program = Program()
    room: dict[tuple[int, int], list[Entry]] = {}
    link: dict[int, list[Entry]] = {}
    trunk: dict[int, list[Entry]] = {}
    where = [_job(program, slot, i, room, link, trunk) for i in range(slot.jobs)]
    for (s, r), terms in room.items():
        program.row(-INFINITY, 1.0, [(c, v / max(1, int(slot.room[s, r]))) for c, v in terms])
    for s, terms in link.items():
        program.row(-INFINITY, 1.0, [(c, v / int(slot.link[s])) for c, v in terms])
    for g, terms in trunk.items():
        program.row(-INFINITY, 1.0, [(c, v / int(slot.trunk[g])) for c, v in terms])
    model = quiet_solver(seed=7, mip_max_nodes=nodes, mip_rel_gap=1e-9, mip_feasibility_tolerance=1e-9)
    answer = program.solve(model, maximise=True)
    x = answer.columns
    rings = no_rings(slot)
    for i, columns in enumerate(where if x.size else []):
        here = [(s, round(x[c])) for s, c in columns.items() if round(x[c])]
        for j, (s, k) in enumerate(here):
            rings.server[i, j], rings.workers[i, j] = s, k
        rings.size[i] = sum(k for _, k in here)
    value = float(slot.gain[np.arange(slot.jobs), rings.size].sum())
    return ExactSlot(rings=rings, value=value, bound=answer.bound, optimal=answer.optimal)


def _job(
    program: Program, slot: Slot, i: int, room: dict[tuple[int, int], list[Entry]],
    link: dict[int, list[Entry]], trunk: dict[int, list[Entry]],
) -> dict[int, int]:  # fmt: skip
    """Add the columns and rows of one job; returns server -> column of its workers."""
    rack, band = slot.rack, float(slot.band[i])
    sizes = [k for k in range(1, slot.widest + 1) if slot.gain[i, k] > 0]
    if not sizes:
        return {}
    size = {k: program.column(float(slot.gain[i, k]), 1.0, whole=True) for k in sizes}
    most = _most(slot, i, max(sizes))
    over = program.column(0.0, 1.0, whole=True)
    own = {g: program.column(0.0, 1.0, whole=True) for g in range(len(slot.trunk))}
    cross = {g: program.column(0.0, 1.0, whole=True) for g in own if slot.trunk[g] >= band}
    mode = [(over, 1.0), *((c, 1.0) for c in own.values())]
    workers: dict[int, int] = {}
    for s in range(slot.servers):
        if not most[s]:
            continue
        y = workers[s] = program.column(0.0, float(most[s]), whole=True)
        alone = program.column(0.0, 1.0, whole=True)
        mode.append((alone, 1.0))
        visit = program.column(0.0, 1.0 if slot.link[s] >= band else 0.0, whole=True)
        program.row(-INFINITY, 0.0, [(y, 1.0), (alone, -float(most[s])), (visit, -float(most[s]))])
        g = int(rack[s])
        program.row(
            -INFINITY, 0.0, [(visit, 1.0), (own[g], -1.0), *([(cross[g], -1.0)] if g in cross else [])]
        )
        for r in np.flatnonzero(slot.need[i]).tolist():
            room.setdefault((s, r), []).append((y, float(slot.need[i, r])))
        if slot.link[s] >= band:
            link.setdefault(s, []).append((visit, band))
    for g, column in cross.items():
        program.row(-INFINITY, 0.0, [(column, 1.0), (over, -1.0)])
        trunk.setdefault(g, []).append((column, band))
    program.row(-INFINITY, 1.0, mode)
    program.row(-INFINITY, 1.0, [(c, 1.0) for c in size.values()])
    program.row(0.0, 0.0, [(c, 1.0) for c in workers.values()] + [(c, -float(k)) for k, c in size.items()])
    return workers


def _most(slot: Slot, i: int, widest: int) -> Ints:
    """(S,) workers of job i that each server could hold."""
    most = np.array([most_workers(slot.room[s], slot.need[i], widest) for s in range(slot.servers)], np.int64)
    return most * slot.open[i] if slot.open.size else most
