"""The exact mixed-integer program of Eris, for tiny instances: problem (2), or (7) for one bidder at posted prices.

With our corrections: data is conserved per source site, there is one parameter server exactly in slots with workers, only
chunks that change site and workers away from their server use bandwidth, and workers are rounded up per site. Moves need
no pairs of sites: chunks that leave and enter are balanced per slot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.eris.kernels.task import Market, Schedule, TrainingTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Bidder:
    """A task, its first possible slot, and its utility (T,) of completing in each slot of the market."""

    task: TrainingTask
    start: int
    worth: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether the program was solved to optimality, the best value found and its upper bound, in USD.

    schedules  of the best solution, by bidder; None: not served
    """

    optimal: bool
    value: float
    bound: float
    schedules: tuple[Schedule | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a bidder: completion by slot, and by slot and site workers, server, chunks that stay, enter and leave."""

    done: dict[int, int]
    sites: dict[int, list[tuple[int, int, int, int, int]]]

    def schedule(self, x: Floats) -> Schedule | None:
        """What a solution does for the bidder."""
        last = next((t for t, c in self.done.items() if x[c] > 0.5), None)
        if last is None:
            return None
        slots, servers, workers, flows = [], [], [], []
        for t, columns in self.sites.items():
            g, z, stay, into, out = np.rint(x[np.array(columns)]).astype(np.int64).T
            if t <= last and g.any():
                slots.append(t)
                servers.append(int(np.argmax(z)))
                workers.append(g)
                flows.append([(r, r, int(n)) for r, n in enumerate(stay) if n] + _moves(out, into))
        return Schedule(
            slots=tuple(slots), servers=tuple(servers), workers=np.array(workers), flows=flows, usd=0.0
        )


def _moves(out: Ints, into: Ints) -> list[tuple[int, int, int]]:
    """Chunks that leave and enter sites as (source, destination, chunks)."""
    found = []
    left, wanted = out.tolist(), into.tolist()
    for a in range(len(left)):
        for b in range(len(wanted)):
            if n := min(left[a], wanted[b]):
                found.append((a, b, n))
                left[a] -= n
                wanted[b] -= n
    return found


def solve(market: Market, bidders: Sequence[Bidder], nodes: int = 200_000) -> Proof:
    """Largest total worth minus cost of all bidders; prices of 0 give problem (2)."""
    rows = Program()
    slots, sites, kinds = market.usd.shape
    use: list[list[Entry]] = [[] for _ in range(slots * sites * kinds)]
    band: list[list[Entry]] = [[] for _ in range(slots)]
    columns = [_write(rows, market, bidder, use, band) for bidder in bidders]
    for at, entries in enumerate(use):
        if entries:
            rows.row(-INFINITY, float(market.free.reshape(-1)[at]) / 1e3, entries)
    for t, entries in enumerate(band):
        if entries:
            rows.row(-INFINITY, market.room[t] / 1e6, entries)
    # Presolve of HiGHS 1.14 returns 0 for some of these programs whose optimum is positive.
    model = quiet_solver(mip_rel_gap=1e-9, mip_max_nodes=nodes, presolve="off")
    answer = rows.solve(model, maximise=True)
    schedules = tuple(each.schedule(answer.columns) for each in columns) if answer.columns.size else ()
    return Proof(optimal=answer.optimal, value=answer.value, bound=answer.bound, schedules=schedules)


def _write(
    rows: Program,
    market: Market,
    bidder: Bidder,
    use: list[list[Entry]],
    band: list[list[Entry]],
) -> _Columns:
    """Writes one bidder's columns and rows; appends its use of sites (units) and bandwidth (MB)."""
    task, (slots, sites, kinds) = bidder.task, market.usd.shape
    total = int(task.data.sum())
    common = math.gcd(task.rate, task.need)
    rate, need = task.rate // common, task.need // common
    most = min(task.most, -(-total * task.need // task.rate) + sites)
    done = {t: rows.column(float(bidder.worth[t]), 1.0, whole=True) for t in range(bidder.start, slots)}
    rows.row(0.0, 1.0, [(c, 1.0) for c in done.values()])
    leaves: list[list[Entry]] = [[] for _ in range(sites)]
    columns: dict[int, list[tuple[int, int, int, int, int]]] = {}
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
            columns.setdefault(t, []).append((g, z, stay, into, out))
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
    return _Columns(done, columns)
