"""Check placement proofs over lists of paths: whole prices leave few paths, and a tree leaves some flow without any.

Under prices y a routing within the room costs at most Σ room * y. The slack is what that leaves above
the sum of all flows' cheapest paths; a path that exceeds its flow's cheapest by more cannot be part of such a routing. The
remaining paths are listed here independently of the solver. Below them, a node of the tree may

- drop paths that do not fit beside what the other flows load on any of their paths,
- drop paths by prices of load and of the number of flows on a resource (where a branch has limited that number),
- branch: a flow uses a resource or not; at most k flows use it or at least k + 1.

The proof holds if every branch ends with a flow that has no path. All numbers are whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind.model.arrays import Bools, Ints

UNLIMITED = 1 << 40
"""Number of flows on a resource that no branch has limited."""
FAR = 1 << 60
"""Cost of a node that no walk reaches."""
SAFE = 1 << 61
"""Sums below this cannot overflow 64 bits."""
MOST_PATHS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A sender: node, data, cheapest cost of all its data, arcs (by number) it must avoid."""

    node: int
    size: int
    cheapest: int
    avoid: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListProblem:
    """arcs (tail, head, resource); room (R,); weight by hops; prices paid (R,); slack of a path above its cheapest."""

    arcs: Sequence[tuple[int, int, int]]
    room: Sequence[int]
    weight: Sequence[int]
    sink: int
    paid: Sequence[int]
    slack: int


@dataclass(frozen=True, slots=True)
class _Paths:
    """owner (C,): position of the flow, ascending; amount (C,): load on each resource used; uses (C, R)."""

    owner: Ints
    amount: Ints
    uses: Bools

    def keep(self, mask: Bools) -> _Paths:
        return _Paths(self.owner[mask], self.amount[mask], self.uses[mask])


@dataclass(frozen=True, slots=True)
class _Limits:
    """How many flows must and may use each resource, (R,)."""

    least: Ints
    most: Ints


class ListChecker:
    """Checks one proof over lists."""

    def __init__(self, scene: ListProblem, flows: Sequence[Sender]) -> None:
        self.room = np.array(scene.room, dtype=np.int64)
        self.nodes = [flow.node for flow in flows]
        listers: dict[tuple[int, frozenset[int]], _Lister] = {}
        found: list[tuple[int, int, list[int]]] = []
        for k, flow in enumerate(flows):
            group = (flow.size, flow.avoid)
            lister = listers.setdefault(group, listers.get(group) or _Lister(scene, *group))
            found += [(k, amount, arcs) for amount, arcs in lister.paths(flow)]
        uses = np.zeros((len(found), self.room.size), dtype=np.bool_)
        for c, (_, _, arcs) in enumerate(found):
            uses[c, [scene.arcs[a][2] for a in arcs]] = True
        self.paths = _Paths(
            np.array([k for k, _, _ in found], dtype=np.int64),
            np.array([amount for _, amount, _ in found], dtype=np.int64),
            uses,
        )

    def wrong(self, proof: Mapping[str, Any]) -> str:
        """Why the tree does not refute every routing over the listed paths; empty if it does."""
        free = _Limits(np.zeros_like(self.room), np.full_like(self.room, UNLIMITED))
        return self._walk(proof, self.paths, free)

    def _walk(self, node: Mapping[str, Any], given: _Paths, limits: _Limits) -> str:
        paths = self._fitting(given, limits)
        for load, number in node["drops"]:
            if paths is None:
                return ""
            prices = self._prices(load, limits, number)
            if isinstance(prices, str):
                return prices
            left = self._within(paths, limits, *prices)
            paths = None if left is None else self._fitting(left, limits)
        if paths is None:
            return ""
        if "branch" not in node:
            return "a branch of the proof ends with a path for every flow"
        r = int(node["branch"]["resource"])
        if not 0 <= r < self.room.size:
            return f"the proof branches on resource {r}, which does not exist"
        halves = self._halves(node["branch"], r, paths, limits)
        if isinstance(halves, str):
            return halves
        for side, (rest, under) in zip(("first", "second"), halves, strict=True):
            if why := self._walk(node[side], rest, under):
                return why
        return ""

    def _halves(
        self, branch: Mapping[str, Any], r: int, paths: _Paths, limits: _Limits
    ) -> list[tuple[_Paths, _Limits]] | str:
        """The two cases of a branch, one of which every routing is in."""
        if "most" in branch:
            most, least = limits.most.copy(), limits.least.copy()
            most[r] = min(most[r], int(branch["most"]))
            least[r] = max(least[r], int(branch["most"]) + 1)
            return [(paths, _Limits(limits.least, most)), (paths, _Limits(least, limits.most))]
        if branch["flow"] not in self.nodes:
            return f"the proof branches on node {branch['flow']}, which sends nothing"
        others = paths.owner != self.nodes.index(branch["flow"])
        on = paths.uses[:, r]
        return [(paths.keep(others | on), limits), (paths.keep(others | ~on), limits)]

    def _prices(
        self, load: Sequence[Sequence[int]], limits: _Limits, number: Sequence[Sequence[int]]
    ) -> tuple[Ints, Ints] | str:
        """Prices (R,) of load and of number, or what is wrong with them."""
        prices = np.zeros(self.room.size, dtype=np.int64), np.zeros(self.room.size, dtype=np.int64)
        for kind, entries in zip(prices, (load, number), strict=True):
            for r, price in entries:
                if type(price) is not int or abs(price) >= SAFE or not 0 <= r < self.room.size:
                    return "prices must be whole numbers of existing resources"
                kind[r] = price
        if (prices[0] < 0).any():
            return "prices of load must not be negative"
        if ((prices[1] > 0) & (limits.most >= UNLIMITED)).any() or (
            (prices[1] < 0) & (limits.least <= 0)
        ).any():
            return "a number of flows has a price where no branch has limited it"
        return prices

    def _within(self, paths: _Paths, limits: _Limits, load: Ints, number: Ints) -> _Paths | None:
        """The paths that prices leave; None if they leave no routing."""
        limit = np.where(number > 0, limits.most, limits.least)
        largest = int(paths.amount.max()) * int(load.max()) + int(np.abs(number).max())
        worth = int(self.room.max()) * int(load.max()) + len(self.nodes) * int(np.abs(number).max())
        if max(largest * len(self.nodes), worth) * self.room.size >= SAFE:
            raise ValueError("the prices are too large to be checked in 64 bits; scale them down")
        cost = paths.amount * (paths.uses @ load) + paths.uses @ number
        cheapest = np.full(len(self.nodes), SAFE, dtype=np.int64)
        np.minimum.at(cheapest, paths.owner, cost)
        budget = sum(
            int(a) * int(b) for a, b in zip(np.maximum(self.room, 0).tolist(), load.tolist(), strict=True)
        )
        budget += sum(int(a) * int(b) for a, b in zip(limit.tolist(), number.tolist(), strict=True) if b)
        slack = budget - sum(cheapest.tolist())
        return None if slack < 0 else paths.keep(cost - cheapest[paths.owner] <= slack)

    def _fitting(self, paths: _Paths, limits: _Limits) -> _Paths | None:
        """Drop paths that do not fit beside certain loads until none does not; None if no routing is left."""
        flows = len(self.nodes)
        while True:
            first = np.searchsorted(paths.owner, np.arange(flows))
            if np.unique(paths.owner).size < flows:
                return None
            always = np.logical_and.reduceat(paths.uses, first, axis=0)
            ever = np.logical_or.reduceat(paths.uses, first, axis=0)
            certain = always * np.minimum.reduceat(paths.amount, first)[:, None]
            load, must, may = certain.sum(axis=0), always.sum(axis=0), ever.sum(axis=0)
            if (load > self.room).any() or (must > limits.most).any() or (may < limits.least).any():
                return None
            beside = (load - certain)[paths.owner] + paths.amount[:, None]
            bad = (paths.uses & (beside > self.room)).any(axis=1)
            bad |= (paths.uses & ~always[paths.owner] & (must == limits.most)).any(axis=1)
            bad |= (~paths.uses & ever[paths.owner] & (may == limits.least) & (limits.least > 0)).any(axis=1)
            if not bad.any():
                return paths
            paths = paths.keep(~bad)


class _Lister:
    """Lists the paths of flows that send the same amount and avoid the same arcs."""

    def __init__(self, scene: ListProblem, size: int, avoid: frozenset[int]) -> None:
        self.scene, self.size = scene, size
        self.arcs = [(a, *scene.arcs[a]) for a in range(len(scene.arcs)) if a not in avoid]
        self.leaving: dict[int, list[tuple[int, int, int]]] = {}
        for a, tail, head, resource in self.arcs:
            self.leaving.setdefault(tail, []).append((a, head, resource))
        self.tables: dict[int, list[list[int]]] = {}
        dist = self._start()
        for _ in scene.weight:
            dist = np.minimum(dist, self._step(dist, 0))
        self.nearest = dist.tolist()

    def _start(self) -> Ints:
        dist = np.full(len(self.scene.weight), FAR, dtype=np.int64)
        dist[self.scene.sink] = 0
        return dist

    def _step(self, dist: Ints, load: int) -> Ints:
        """Cheapest walks of exactly one arc more, over arcs with room for the load."""
        further = np.full(dist.size, FAR, dtype=np.int64)
        wide = [
            (tail, head, self.scene.paid[r]) for _, tail, head, r in self.arcs if self.scene.room[r] >= load
        ]
        if wide:
            tail, head, paid = np.array(wide, dtype=np.int64).T
            np.minimum.at(further, tail, np.minimum(dist[head] + paid, FAR))
        return further

    def _rest(self, hops: int) -> list[list[int]]:
        """Entry j: per node the cheapest walk of j arcs to the sink, over arcs that admit paths of `hops` hops."""
        if hops not in self.tables:
            table = [self._start()]
            for _ in range(hops):
                table.append(self._step(table[-1], self.size * self.scene.weight[hops]))
            self.tables[hops] = [dist.tolist() for dist in table]
        return self.tables[hops]

    def paths(self, flow: Sender) -> list[tuple[int, list[int]]]:
        """(load, arcs) of every simple path whose cost is at most the flow's cheapest plus the slack."""
        found: list[tuple[int, list[int]]] = []
        most = flow.cheapest + self.scene.slack
        for hops in range(1, len(self.scene.weight)):
            load = self.size * self.scene.weight[hops]
            if load * self.nearest[flow.node] > most:
                break
            self._walk(flow.node, hops, load, most // load, found)
        return found

    def _walk(self, node: int, hops: int, load: int, most: int, found: list[tuple[int, list[int]]]) -> None:
        """Add the simple paths of exactly `hops` arcs whose prices add up to at most `most`."""
        scene, rest = self.scene, self._rest(hops)
        if rest[hops][node] > most:
            return
        stack: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = [(node, 0, (node,), ())]
        while stack:
            at, spent, seen, arcs = stack.pop()
            left = hops - len(arcs) - 1
            for a, head, r in self.leaving.get(at, ()):
                price = spent + scene.paid[r]
                if scene.room[r] < load or head in seen or price + rest[left][head] > most:
                    continue
                if left == 0:
                    found.append((load, [*arcs, a]))
                    if len(found) > MOST_PATHS:
                        raise ValueError(f"the proof lists more than {MOST_PATHS} paths of node {seen[0]}")
                elif head != scene.sink:
                    stack.append((head, price, (*seen, head), (*arcs, a)))
