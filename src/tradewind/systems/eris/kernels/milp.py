"""The exact mixed-integer program of Eris, for tiny instances: problem (2), or (7) for one bidder at posted prices.

With our corrections: data is conserved per source site, there is one parameter server exactly in slots with workers, only
chunks that change site and workers away from their server use bandwidth, and workers are rounded up per site. Moves need
no pairs of sites: chunks that leave and enter are balanced per slot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.model.arrays import Floats
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.eris.kernels.task import Market, TrainingTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Bidder:
    """A task, its first possible slot, and its utility (T,) of completing in each slot of the market."""

    task: TrainingTask
    start: int
    worth: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether the program was solved to optimality, the best value found and its upper bound, in USD."""

    optimal: bool
    value: float
    bound: float


def solve(market: Market, bidders: Sequence[Bidder], nodes: int = 200_000) -> Proof:
    """Largest total worth minus cost of all bidders; prices of 0 give problem (2)."""
    rows = Program()
    slots, sites, kinds = market.usd.shape
    use: list[list[Entry]] = [[] for _ in range(slots * sites * kinds)]
    band: list[list[Entry]] = [[] for _ in range(slots)]
    for bidder in bidders:
        _write(rows, market, bidder, use, band)
    for at, entries in enumerate(use):
        if entries:
            rows.row(-INFINITY, float(market.free.reshape(-1)[at]) / 1e3, entries)
    for t, entries in enumerate(band):
        if entries:
            rows.row(-INFINITY, market.room[t] / 1e6, entries)
    # Presolve of HiGHS 1.14 returns 0 for some of these programs whose optimum is positive.
    model = quiet_solver(mip_rel_gap=1e-9, mip_max_nodes=nodes, presolve="off")
    answer = rows.solve(model, maximise=True)
    return Proof(optimal=answer.optimal, value=answer.value, bound=answer.bound)


def _write(
    rows: Program,
    market: Market,
    bidder: Bidder,
    use: list[list[Entry]],
    band: list[list[Entry]],
) -> None:
    """Writes one bidder's columns and rows; appends its use of sites (units) and bandwidth (MB)."""
    task, (slots, sites, kinds) = bidder.task, market.usd.shape
    total = int(task.data.sum())
    common = math.gcd(task.rate, task.need)
    rate, need = task.rate // common, task.need // common
    most = min(task.most, -(-total * task.need // task.rate) + sites)
    done = {t: rows.column(float(bidder.worth[t]), 1.0, whole=True) for t in range(bidder.start, slots)}
    rows.row(0.0, 1.0, [(c, 1.0) for c in done.values()])
    leaves: list[list[Entry]] = [[] for _ in range(sites)]
    for t in range(bidder.start, slots):
        servers, moves_in, moves_out, all_workers = [], [], [], []
        for r in range(sites):
            usd = market.usd[t, r]
            g = rows.column(-float(task.worker @ usd), float(most), whole=True)
            z = rows.column(-float(task.server @ usd), 1.0, whole=True)
            away = rows.column(-float(task.traffic_bytes * market.byte_usd[t]), float(most))
            stay = rows.column(0.0, float(task.data[r]), whole=True)
            into = rows.column(-float(task.chunk_bytes * market.byte_usd[t]), float(total), whole=True)
            out = rows.column(0.0, float(task.data[r]), whole=True)
            rows.row(0.0, INFINITY, [(away, 1.0), (g, -1.0), (z, float(most))])
            rows.row(0.0, INFINITY, [(g, float(rate)), (stay, -float(need)), (into, -float(need))])
            band[t] += [(away, task.traffic_bytes / 1e6), (into, task.chunk_bytes / 1e6)]
            for k in range(kinds):
                if task.worker[k] or task.server[k]:
                    at = (t * sites + r) * kinds + k
                    use[at] += [(g, task.worker[k] / 1e3), (z, task.server[k] / 1e3)]
            leaves[r] += [(stay, 1.0), (out, 1.0)]
            servers.append(z)
            moves_in.append(into)
            moves_out.append(out)
            all_workers.append(g)
        rows.row(0.0, 0.0, [(c, 1.0) for c in moves_in] + [(c, -1.0) for c in moves_out])
        later = [(done[q], -1.0) for q in range(t, slots)]
        rows.row(-INFINITY, 0.0, [(z, 1.0) for z in servers] + later)
        rows.row(-INFINITY, 0.0, [(g, 1.0) for g in all_workers] + [(z, -float(most)) for z in servers])
    for r in range(sites):
        rows.row(0.0, 0.0, leaves[r] + [(c, -float(task.data[r])) for c in done.values()])
