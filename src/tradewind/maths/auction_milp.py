"""The exact mixed-integer program of Eris, for tiny instances: problem (2), or (7) for one bidder at posted prices.

Corrected as the conventions say: data is conserved per source site, there is one parameter server exactly where there
are workers, only chunks that change site and workers away from their server use bandwidth, workers are a ceiling per
site. Moves need no pairs: what leaves and what enters is balanced per slot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from tradewind.maths.auction_oracle import Market, Task
from tradewind.maths.auction_slot import Floats

INFINITY = highspy.kHighsInf


@dataclass(frozen=True, slots=True, kw_only=True)
class Bidder:
    """A task, the slot it may begin in, and its utility (T,) of completing in each slot of the market."""

    task: Task
    start: int
    worth: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether the program was solved to the end, the best value found and what it can never exceed, in USD."""

    optimal: bool
    value: float
    bound: float


@dataclass(slots=True)
class _Rows:
    """A program as it is written down: columns with cost, bounds, integrality; rows with entries."""

    cost: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def new(self, cost: float, high: float, whole: bool = True) -> int:
        self.cost.append(cost)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, low: float, high: float, entries: Sequence[tuple[int, float]]) -> None:
        self.row_low.append(low)
        self.row_high.append(high)
        self.index += [column for column, _ in entries]
        self.value += [value for _, value in entries]
        self.starts.append(len(self.index))


def solve(market: Market, bidders: Sequence[Bidder], nodes: int = 200_000) -> Proof:
    """Most worth minus cost that all bidders together can have; prices of 0 give problem (2)."""
    rows = _Rows()
    slots, sites, kinds = market.usd.shape
    use: list[list[tuple[int, float]]] = [[] for _ in range(slots * sites * kinds)]
    band: list[list[tuple[int, float]]] = [[] for _ in range(slots)]
    for bidder in bidders:
        _write(rows, market, bidder, use, band)
    for at, entries in enumerate(use):
        if entries:
            rows.row(-INFINITY, float(market.free.reshape(-1)[at]) / 1e3, entries)
    for t, entries in enumerate(band):
        if entries:
            rows.row(-INFINITY, market.room[t] / 1e6, entries)
    return _solve(rows, nodes)


def _write(
    rows: _Rows,
    market: Market,
    bidder: Bidder,
    use: list[list[tuple[int, float]]],
    band: list[list[tuple[int, float]]],
) -> None:
    """One bidder's columns and own rows; adds to what it uses of sites (units) and bandwidth (MB)."""
    task, (slots, sites, kinds) = bidder.task, market.usd.shape
    total = int(task.data.sum())
    common = math.gcd(task.rate, task.need)
    rate, need = task.rate // common, task.need // common
    most = min(task.most, -(-total * task.need // task.rate) + sites)
    done = {t: rows.new(float(bidder.worth[t]), 1.0) for t in range(bidder.start, slots)}
    rows.row(0.0, 1.0, [(c, 1.0) for c in done.values()])
    leaves: list[list[tuple[int, float]]] = [[] for _ in range(sites)]
    for t in range(bidder.start, slots):
        servers, moves_in, moves_out, all_workers = [], [], [], []
        for r in range(sites):
            usd = market.usd[t, r]
            g = rows.new(-float(task.worker @ usd), float(most))
            z = rows.new(-float(task.server @ usd), 1.0)
            away = rows.new(-float(task.traffic_bytes * market.byte_usd[t]), float(most), False)
            stay = rows.new(0.0, float(task.data[r]))
            into = rows.new(-float(task.chunk_bytes * market.byte_usd[t]), float(total))
            out = rows.new(0.0, float(task.data[r]))
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


def _solve(rows: _Rows, nodes: int) -> Proof:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(rows.cost), len(rows.row_low)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array(rows.cost)
    lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.array(rows.high)
    lp.row_lower_, lp.row_upper_ = np.array(rows.row_low), np.array(rows.row_high)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(rows.starts)
    lp.a_matrix_.index_ = np.array(rows.index)
    lp.a_matrix_.value_ = np.array(rows.value)
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[w] for w in rows.whole]
    model = highspy.Highs()
    # Presolve of HiGHS 1.14 calls some of these programs worthless whose optimum is positive; they are small without it.
    for key, value in (
        ("output_flag", False), ("threads", 1), ("random_seed", 1), ("mip_rel_gap", 1e-9), ("mip_max_nodes", nodes),
        ("presolve", "off"),
    ):  # fmt: skip
        model.setOptionValue(key, value)
    model.passModel(lp)
    model.run()
    info = model.getInfo()
    optimal = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Proof(
        optimal=optimal, value=float(info.objective_function_value), bound=float(info.mip_dual_bound)
    )
