"""Branch and bound over listed paths: a routing that fits the room, or a tree of drops that leaves some flow without a path.

Every node solves one LP over the paths that are left (minimise λ, loads <= λ room). Its duals drop paths; the rest
branches on the number of flows on a resource, or on whether one flow uses it. After a few nodes the branch is chosen
by trying the most promising ones (strong branching).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import highspy
import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.highs import INFINITY
from tradewind.systems.apsp.kernels.columns import simplex_solver
from tradewind.systems.apsp.kernels.lists import Lists
from tradewind.systems.apsp.kernels.problem import Gather, Routing, loads_of
from tradewind.systems.apsp.kernels.proof import Branch, Drop, Pruned, pairs_of
from tradewind.systems.apsp.kernels.prune import UNLIMITED, cheapest_columns, drop, propagate, usage

WHOLE = 1 << 40
"""Scale of whole prices: all loads within the room cost at most this."""
AGAINST = 5.0
"""Cost in the LP, in units of λ, of missing a limit on the number of flows by one."""
QUICK = 12
"""Nodes whose branch is taken without trying it."""
CANDIDATES = 8
"""Branches of each kind that are considered."""
TRIED = 6
"""Most of these that are tried by their two LPs."""
RELIABLE = 2
"""Trials of a branch after which their mean replaces further ones."""
FRACTION = 1e-4
DUAL, PRIMAL = 1, 4


class _Solved(NamedTuple):
    """λ (above 1: refuted), share of every column (C,), prices of load and of number (R,) with Σ room * load <= 1."""

    value: float
    x: Floats
    load: Floats
    number: Floats


class _Left(NamedTuple):
    """What a node may still use: columns (C,), and how many flows must and may use a resource, (R,) each."""

    alive: Bools
    least: Ints
    most: Ints


class _Choice(NamedTuple):
    """A branch: on the number of flows on a resource (most is not None), or on one flow; which side to search first."""

    resource: int
    flow: int
    most: int | None
    begin: int = 0

    @property
    def key(self) -> tuple[int, int]:
        return self.resource, self.flow if self.most is None else -1


class _Master:
    """The LP, kept in HiGHS from node to node, with the listed columns that were ever cheap enough.

    Columns that a node has dropped get an upper bound of 0.
    """

    def __init__(self, lists: Lists, room: Ints) -> None:
        self.lists, self.room = lists, room
        self.flows = lists.flows.size
        self.tight = _can_overflow(lists, room)
        self.row = np.full(room.size, -1, dtype=np.int64)
        self.row[self.tight] = np.arange(self.flows, self.flows + self.tight.size)
        self.number_row: dict[int, int] = {}
        self.column = np.full(lists.size, -1, dtype=np.int32)
        self.solver = h = simplex_solver()
        f, r = self.flows, self.tight.size
        lower = np.concatenate([np.ones(f), np.full(r, -INFINITY)])
        upper = np.concatenate([np.ones(f), np.zeros(r)])
        h.addRows(f + r, lower, upper, 0, np.zeros(f + r, dtype=np.int32), np.empty(0, np.int32), np.empty(0))
        rows = np.arange(f, f + r, dtype=np.int32)
        h.addCol(float(f), 0.0, INFINITY, r, rows, -room[self.tight].astype(np.float64))

    def _add(self, chosen: Ints) -> None:
        """Add listed columns to the model."""
        columns, h = self.lists.columns, self.solver
        starts: list[int] = []
        index: list[int] = []
        value: list[float] = []
        rows = self.row.tolist()
        for c in chosen.tolist():
            starts.append(len(index))
            index.append(int(columns.flow[c]))
            value.append(1.0)
            used = columns.used[columns.start[c] : columns.start[c + 1]].tolist()
            for row, load in ((rows[r], float(columns.amount[c])) for r in used):
                if row >= 0:
                    index.append(row)
                    value.append(load)
            for row in (self.number_row[r] for r in used if r in self.number_row):
                index.append(row)
                value.append(1.0)
        first = h.getNumCol()
        self.column[chosen] = np.arange(first, first + chosen.size)
        zeros = np.zeros(chosen.size)
        h.addCols(
            chosen.size,
            zeros,
            zeros,
            np.full(chosen.size, INFINITY),
            len(index),
            np.array(starts, dtype=np.int32),
            np.array(index, dtype=np.int32),
            np.array(value),
        )

    def _row_of_number(self, resource: int) -> int:
        """The row that counts the flows on a resource; added on first use."""
        if resource not in self.number_row:
            h, columns = self.solver, self.lists.columns
            using = np.repeat(self.column, np.diff(columns.start))[columns.used == resource]
            using = using[using >= 0]
            row = self.number_row[resource] = h.getNumRow()
            h.addRow(-INFINITY, INFINITY, using.size, using, np.ones(using.size))
            for sign in (
                1.0,
                -1.0,
            ):  # a slack at a price, so that the LP always has a solution
                cost = AGAINST * self.flows
                h.addCol(cost, 0.0, INFINITY, 1, np.array([row], dtype=np.int32), np.array([sign]))
        return self.number_row[resource]

    def _limit(self, left: _Left) -> dict[int, int]:
        """Set the columns and limits of a node; returns the rows of active limits with their resources."""
        h = self.solver
        limited = np.flatnonzero((left.least > 0) | (left.most < UNLIMITED)).tolist()
        wanted = {self._row_of_number(r): r for r in limited}
        for row in self.number_row.values():
            r = wanted.get(row, -1)
            low = float(left.least[r]) if r >= 0 and left.least[r] > 0 else -INFINITY
            high = float(left.most[r]) if r >= 0 and left.most[r] < UNLIMITED else INFINITY
            h.changeRowBounds(row, low, high)
        there = np.flatnonzero(self.column >= 0)
        upper = np.where(left.alive[there], INFINITY, 0.0)
        h.changeColsBounds(there.size, self.column[there], np.zeros(there.size), upper)
        some = np.zeros(self.flows, dtype=np.bool_)
        flow = self.lists.columns.flow
        some[flow[there[left.alive[there]]]] = True
        if not some.all():
            alive = np.flatnonzero(left.alive & ~some[flow])
            self._add(alive[np.unique(flow[alive], return_index=True)[1]])
        return wanted

    def solve(self, left: _Left) -> _Solved:
        """Minimise λ over all columns that are alive; those outside the model are priced and added where cheap."""
        h, lists, f = self.solver, self.lists, self.flows
        wanted = self._limit(left)
        h.setOptionValue("simplex_strategy", DUAL)
        while True:
            h.run()
            if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise RuntimeError(f"the LP over listed paths ended as {h.getModelStatus()}")
            dual = np.array(h.getSolution().row_dual) / f
            load, number = np.zeros(self.room.size), np.zeros(self.room.size)
            load[self.tight] = np.maximum(-dual[f : f + self.tight.size], 0.0)
            for row, r in wanted.items():
                number[r] = -dual[row]
            cheap = cheapest_columns(left.alive, lists.columns, load, number, dual[:f])
            fresh = cheap[self.column[cheap] < 0]
            if not fresh.size:
                break
            self._add(fresh)
            h.setOptionValue("simplex_strategy", PRIMAL)
        value = np.array(h.getSolution().col_value)
        x = np.where(self.column >= 0, value[self.column], 0.0)
        return _Solved(float(h.getInfo().objective_function_value) / f, x, load, number)


def _can_overflow(lists: Lists, room: Ints) -> Ints:
    """Resources that would overflow if every flow took its heaviest path over them."""
    columns = lists.columns
    column = np.repeat(np.arange(lists.size), np.diff(columns.start))
    heaviest = np.zeros((lists.flows.size, room.size), dtype=np.int64)
    np.maximum.at(heaviest, (columns.flow[column], columns.used), columns.amount[column])
    return np.flatnonzero(heaviest.sum(axis=0) > room)


@dataclass(slots=True)
class ListTree:
    """The search; left: LPs it may still solve; past: per branch how often it was tried, and the mean rises of λ."""

    problem: Gather
    room: Ints
    lists: Lists
    left: int
    master: _Master | None = None
    nodes: int = 0
    tries: bool = False
    past: dict[tuple[int, int], tuple[int, float, float]] = field(default_factory=dict)

    def decide(self) -> tuple[Routing | None, Pruned | None]:
        """A routing that fits, or the proof that none does; neither if the LPs are spent."""
        resources = self.room.size
        begin = _Left(
            np.ones(self.lists.size, dtype=np.bool_),
            np.zeros(resources, dtype=np.int64),
            np.full(resources, UNLIMITED, dtype=np.int64),
        )
        for self.tries in (False, True):
            self.nodes = 0
            routing, proof = self._node(begin)
            if routing is not None or proof is not None or self.left <= 0:
                return routing, proof
        return None, None

    def _node(self, given: _Left) -> tuple[Routing | None, Pruned | None]:
        lists = self.lists
        self.nodes += 1
        if self.left <= 0 or (not self.tries and self.nodes > QUICK):
            return None, None
        left = given._replace(alive=given.alive.copy())
        drops: list[Drop] = []
        if not self._propagate(left):
            return None, Pruned((), None)
        while True:
            solved = self._solve(left)
            before = int(left.alive.sum())
            made, dropped = self._drop(left, solved)
            if dropped != 0:
                drops.append(made)
            if dropped < 0 or (dropped > 0 and not self._propagate(left)):
                return None, Pruned(tuple(drops), None)
            if dropped <= before // 10:
                break
        pick = np.array([_largest(lists, left.alive, solved.x, f) for f in range(lists.flows.size)])
        routing = lists.routing(self.problem.graph.nodes, pick)
        if (loads_of(self.problem, routing) <= self.room).all():
            return routing, None
        return self._branch(left, solved, tuple(drops))

    def _branch(
        self, left: _Left, solved: _Solved, drops: tuple[Drop, ...]
    ) -> tuple[Routing | None, Pruned | None]:
        choice = self._choose(left, solved)
        if choice is None:
            return None, None
        proofs: dict[int, Pruned] = {}
        children = self._children(left, choice)
        for side in (choice.begin, 1 - choice.begin):
            routing, proof = self._node(children[side])
            if routing is not None or proof is None:
                return routing, None
            proofs[side] = proof
        flow = int(self.lists.flows[choice.flow])
        return None, Pruned(drops, Branch(choice.resource, flow, choice.most, proofs[0], proofs[1]))

    def _propagate(self, left: _Left) -> bool:
        return bool(propagate(left.alive, self.lists.columns, self.room, left.least, left.most))

    def _solve(self, left: _Left) -> _Solved:
        if self.master is None:
            self.master = _Master(self.lists, self.room)
        self.left -= 1
        return self.master.solve(left)

    def _drop(self, left: _Left, solved: _Solved) -> tuple[Drop, int]:
        """Drop columns by the LP's prices in whole numbers: (prices, how many), -1 if a flow is left without any."""
        load = np.floor(solved.load * WHOLE).astype(np.int64)
        number = np.rint(solved.number * WHOLE).astype(np.int64)
        number[((number > 0) & (left.most >= UNLIMITED)) | ((number < 0) & (left.least <= 0))] = 0
        budget = int((load * self.room).sum())
        for r in np.flatnonzero(number).tolist():
            budget += int(number[r]) * int(left.most[r] if number[r] > 0 else left.least[r])
        dropped = drop(left.alive, self.lists.columns, load, number, budget)
        return Drop(pairs_of(load), pairs_of(number)), int(dropped)

    def _choose(self, left: _Left, solved: _Solved) -> _Choice | None:
        """The most promising branch; later in the tree the one whose two LPs rise most."""
        ranked = self._ranked(solved)
        if not ranked:
            return self._any(solved)
        if not self.tries:
            return ranked[0]
        best, gain, tried = ranked[0], -1.0, 0
        enough = 1.0 - solved.value + 1e-6
        for choice in ranked:
            trials, *means = self.past.get(choice.key, (0, 0.0, 0.0))
            if trials < RELIABLE:
                if tried == TRIED or self.left <= 0:
                    continue
                tried += 1
                means = self._try(left, choice, solved.value, enough)
            first, second = min(means[0], enough), min(means[1], enough)
            if first * second > gain:
                best, gain = choice._replace(begin=int(second < first)), first * second
            if min(first, second) >= enough:
                break
        return best

    def _try(self, left: _Left, choice: _Choice, value: float, enough: float) -> list[float]:
        """By how much λ rises on both sides of a branch, at most `enough`; remembered as a mean."""
        rises = []
        for child in self._children(left, choice):
            some = np.unique(self.lists.columns.flow[child.alive]).size == self.lists.flows.size
            rise = self._solve(child).value - value if some else enough
            rises.append(max(1e-6, min(rise, enough)))
        trials, first, second = self.past.get(choice.key, (0, 0.0, 0.0))
        self.past[choice.key] = (
            trials + 1,
            (first * trials + rises[0]) / (trials + 1),
            (second * trials + rises[1]) / (trials + 1),
        )
        return rises

    def _ranked(self, solved: _Solved) -> list[_Choice]:
        """Fractional numbers of flows and fractional shares, the most promising first."""
        share, heaviest = usage(solved.x, self.lists.columns, self.room.size)
        count = share.sum(axis=0)
        apart = np.abs(count - np.rint(count))
        by_number = np.where(apart > FRACTION, 3.0 * apart * (solved.load * self.room + 1e-3), 0.0)
        apart = np.minimum(share, 1.0 - share)
        by_flow = np.where(apart > FRACTION, apart * (solved.load + 1e-4) * heaviest, 0.0)
        found = [
            (-float(by_number[r]), _Choice(r, 0, int(count[r])))
            for r in np.argsort(-by_number, kind="stable")[:CANDIDATES].tolist()
            if by_number[r] > 0.0
        ]
        for at in np.argsort(-by_flow, axis=None, kind="stable")[:CANDIDATES].tolist():
            f, r = divmod(at, self.room.size)
            if by_flow[f, r] > 0.0:
                found.append((-float(by_flow[f, r]), _Choice(r, f, None)))
        return [choice for _, choice in sorted(found, key=lambda item: item[0])]

    def _any(self, solved: _Solved) -> _Choice | None:
        """A resource on which the paths of some split flow differ."""
        share, _ = usage(solved.x, self.lists.columns, self.room.size)
        apart = np.minimum(share, 1.0 - share)
        f, r = divmod(int(np.argmax(apart)), self.room.size)
        return _Choice(r, f, None) if apart[f, r] > 1e-8 else None

    def _children(self, left: _Left, choice: _Choice) -> tuple[_Left, _Left]:
        columns, r = self.lists.columns, choice.resource
        if choice.most is not None:
            most, least = left.most.copy(), left.least.copy()
            most[r], least[r] = choice.most, choice.most + 1
            return left._replace(most=most), left._replace(least=least)
        size = self.lists.size
        uses = np.zeros(size, dtype=np.bool_)
        uses[np.repeat(np.arange(size), np.diff(columns.start))[columns.used == r]] = True
        others = columns.flow != choice.flow
        return left._replace(alive=left.alive & (others | uses)), left._replace(
            alive=left.alive & (others | ~uses)
        )


def _largest(lists: Lists, alive: Bools, x: Floats, flow: int) -> int:
    mine = np.flatnonzero(alive & (lists.columns.flow == flow))
    return int(mine[np.argmax(x[mine])])
