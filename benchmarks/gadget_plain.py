"""The linear programs of the GADGET paper as a user would write them for HiGHS: every variable of every job at once.

arc-flow    the relaxation of (12)-(19): for every job and ring size, where each worker is and one flow per ring edge
augmented   the program of Rost and Schmid that Algorithm 2 solves once ring sizes are chosen: for every job a copy of the
            arc-flow block for each server on which its first worker may be, so that the cycle closes where it began
mappings    a column for every possible ring: the full configuration LP; only for small clusters
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.gadget.kernels.slot import Slot

Triples = tuple[Ints, Ints, Floats]
"""Rows, columns and values of a sparse matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """Value and number of columns of a program."""

    value: float
    columns: int


@dataclass(slots=True)
class Sparse:
    """A maximisation with columns >= 0, gathered in blocks of arrays."""

    cost: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    low: list[Floats] = field(default_factory=list)
    high: list[Floats] = field(default_factory=list)
    parts: list[Triples] = field(default_factory=list)
    columns: int = 0
    rows: int = 0

    def add_columns(self, cost: Floats, upper: Floats) -> int:
        """New columns; the number of the first."""
        self.cost.append(cost)
        self.upper.append(upper)
        self.columns += len(cost)
        return self.columns - len(cost)

    def add_rows(self, low: Floats, high: Floats) -> int:
        """New rows; the number of the first."""
        self.low.append(low)
        self.high.append(high)
        self.rows += len(low)
        return self.rows - len(low)

    def put(self, row: Ints, column: Ints, value: Floats) -> None:
        """Factors."""
        self.parts.append((row, column, value))

    def solve(self) -> Solved:
        """The optimum by HiGHS with its own choice of method."""
        row, column, value = (np.concatenate([part[k] for part in self.parts]) for k in range(3))
        matrix = coo_array((value, (row, column)), shape=(self.rows, self.columns)).tocsc()
        h = quiet_solver(seed=7)
        lp = h.getLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.col_cost_ = -np.concatenate(self.cost)
        lp.col_lower_, lp.col_upper_ = np.zeros(self.columns), np.concatenate(self.upper)
        lp.row_lower_, lp.row_upper_ = np.concatenate(self.low), np.concatenate(self.high)
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        h.passModel(lp)
        h.run()
        return Solved(value=-float(h.getInfo().objective_function_value), columns=self.columns)


class Tree:
    """Arcs of servers, ToR switches and the core, in both directions, and the block of one ring of k workers."""

    def __init__(self, slot: Slot) -> None:
        self.slot, spots, racks = slot, slot.servers, len(slot.trunk)
        up = np.concatenate([spots + slot.rack, np.full(racks, spots + racks)])
        low = np.arange(spots + racks)
        self.tail, self.head = np.concatenate([low, up]), np.concatenate([up, low])
        carry = np.concatenate([slot.link, slot.trunk])
        self.carry = np.maximum(1.0, np.concatenate([carry, carry]).astype(float))
        self.arcs, self.points = len(self.tail), spots + racks + 1
        self._blocks: dict[int, Triples] = {}

    def block(self, k: int) -> Triples:
        """Equations of one ring; columns: chosen, k x S places, k x A flows; rows: k places, k x V balances."""
        if k not in self._blocks:
            self._blocks[k] = self._block(k)
        return self._blocks[k]

    def _block(self, k: int) -> Triples:
        spots, arcs, points = self.slot.servers, self.arcs, self.points
        worker, place = np.divmod(np.arange(k * spots), spots)
        edge, arc = np.divmod(np.arange(k * arcs if k > 1 else 0), arcs)
        here, flow = 1 + worker * spots + place, 1 + k * spots + edge * arcs + arc
        # sum of places = chosen; out - in = place of this worker - place of the next one
        balance = k + np.arange(k * points).reshape(k, points)
        several = worker if k > 1 else worker[:0]
        return (
            np.concatenate(
                [
                    np.arange(k), worker, balance[edge, self.tail[arc]], balance[edge, self.head[arc]],
                    balance[several, place[: len(several)]], balance[several - 1, place[: len(several)]],
                ]
            ),
            np.concatenate([np.zeros(k, np.int64), here, flow, flow, here[: len(several)], here[: len(several)]]),
            np.concatenate(
                [
                    -np.ones(k), np.ones(k * spots), np.ones(len(flow)), -np.ones(len(flow)), -np.ones(len(several)),
                    np.ones(len(several)),
                ]
            ),
        )  # fmt: skip

    def width(self, k: int) -> int:
        """Columns of a block."""
        return 1 + k * self.slot.servers + (k * self.arcs if k > 1 else 0)


def _capacities(program: Sparse, tree: Tree) -> tuple[Ints, int]:
    """Rows of rooms (S, R) and the first of the arcs."""
    slot = tree.slot
    count = slot.room.size
    room = program.add_rows(np.full(count, -INFINITY), np.ones(count)) + np.arange(count)
    links = program.add_rows(np.full(tree.arcs, -INFINITY), np.ones(tree.arcs))
    return room.reshape(slot.room.shape), links


def _ring(program: Sparse, tree: Tree, rows: tuple[Ints, int], i: int, k: int, root: int = -1) -> int:
    """Writes a ring of k workers of job i, its first worker on server `root` if given; the column that chooses it."""
    slot, spots = tree.slot, tree.slot.servers
    cost, upper = np.zeros(tree.width(k)), np.full(tree.width(k), INFINITY)
    cost[0] = slot.gain[i, k]
    if root >= 0:
        upper[1 : 1 + spots] = 0.0
        upper[1 + root] = INFINITY
    first = program.add_columns(cost, upper)
    own, columns, values = tree.block(k)
    height = k + (k * tree.points if k > 1 else 0)
    top = program.add_rows(np.zeros(height), np.zeros(height))
    program.put(top + own, first + columns, values)
    place = np.tile(np.arange(spots), k)
    for r in np.flatnonzero(slot.need[i]):
        share = slot.need[i, r] / np.maximum(1.0, slot.room[place, r])
        program.put(rows[0][place, r], first + 1 + np.arange(k * spots), share)
    if k > 1:
        arc = np.tile(np.arange(tree.arcs), k)
        flows = first + 1 + k * spots + np.arange(k * tree.arcs)
        program.put(rows[1] + arc, flows, slot.band[i] / tree.carry[arc])
    return first


def _at_most_one(program: Sparse, columns: list[int]) -> None:
    row = program.add_rows(np.array([-INFINITY]), np.ones(1))
    program.put(np.full(len(columns), row), np.array(columns), np.ones(len(columns)))


def arc_flow(slot: Slot) -> Solved:
    """The relaxation of (12)-(19)."""
    program, tree = Sparse(), Tree(slot)
    rows = _capacities(program, tree)
    for i in range(slot.jobs):
        sizes = np.flatnonzero(slot.gain[i] > 0).tolist()
        if sizes:
            _at_most_one(program, [_ring(program, tree, rows, i, k) for k in sizes])
    return program.solve()


def augmented(slot: Slot, sizes: Ints) -> Solved:
    """The augmented LP for ring sizes (I,) that are chosen already (0: none)."""
    program, tree = Sparse(), Tree(slot)
    rows = _capacities(program, tree)
    for i, k in enumerate(sizes.tolist()):
        if k:
            _at_most_one(program, [_ring(program, tree, rows, i, k, root) for root in range(slot.servers)])
    return program.solve()


def rings_of_job(slot: Slot, i: int) -> list[tuple[int, ...]]:
    """Every ring of job i in the empty cluster as workers by server."""
    found: list[tuple[int, ...]] = []
    most = [min(int(c), slot.widest) for c in (slot.room // slot.need[i]).min(1)]

    def extend(y: list[int], left: int) -> None:
        if len(y) == slot.servers:
            if sum(y) > 0 and slot.gain[i, sum(y)] > 0 and _embeds(slot, i, y):
                found.append(tuple(y))
            return
        for k in range(min(most[len(y)], left) + 1):
            extend([*y, k], left - k)

    extend([], slot.widest)
    return found


def _embeds(slot: Slot, i: int, y: list[int]) -> bool:
    here = [s for s, k in enumerate(y) if k]
    racks = {int(slot.rack[s]) for s in here}
    links = len(here) < 2 or all(slot.link[s] >= slot.band[i] for s in here)
    return links and (len(racks) < 2 or all(slot.trunk[g] >= slot.band[i] for g in racks))


def mappings(slot: Slot) -> Solved:
    """The configuration LP with a column for every ring."""
    program = Sparse()
    spots, racks, resources = slot.servers, len(slot.trunk), slot.need.shape[1]
    carry = np.concatenate([slot.link, slot.trunk])
    height = slot.jobs + spots * resources + spots + racks
    limit = np.concatenate([np.ones(slot.jobs), slot.room.ravel(), carry]).astype(float)
    program.add_rows(np.full(height, -INFINITY), limit)
    for i in range(slot.jobs):
        rings = np.array(rings_of_job(slot, i)).reshape(-1, spots)
        if not len(rings):
            continue
        first = program.add_columns(slot.gain[i, rings.sum(1)], np.full(len(rings), INFINITY))
        ring, server = np.nonzero(rings)
        program.put(np.full(len(rings), i), first + np.arange(len(rings)), np.ones(len(rings)))
        for r in np.flatnonzero(slot.need[i]):
            amount = rings[ring, server] * slot.need[i, r]
            program.put(slot.jobs + server * resources + r, first + ring, amount.astype(float))
        visits = (rings > 0).sum(1)[ring] > 1
        crossed = np.stack([(rings[:, slot.rack == g] > 0).any(1) for g in range(racks)], 1)
        over, rack = np.nonzero(crossed & (crossed.sum(1) > 1)[:, None])
        base = slot.jobs + spots * resources
        for row, column in ((base + server[visits], ring[visits]), (base + spots + rack, over)):
            program.put(row, first + column, np.full(len(row), float(slot.band[i])))
    return program.solve()
