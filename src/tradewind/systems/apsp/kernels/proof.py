"""Proofs that no routing to a sink is faster than a level: found by the solver, checked by audit.placement.

Three kinds. Leaf: prices alone. Split: some flow must avoid one or the other half of the arcs that leave a node. Listed:
prices leave few paths to every flow, and a tree over these lists drops them until a flow has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.paths import Graph

Pairs = tuple[tuple[int, int], ...]
"""(resource, whole number) pairs."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Prices per resource, (resource, price) pairs, that refute every routing still allowed here."""

    price: Pairs


@dataclass(frozen=True, slots=True)
class Split:
    """Flow `flow` leaves `node` at most once: it avoids `first` (left) or `second` (right), or both."""

    flow: int
    node: int
    first: tuple[int, ...]
    second: tuple[int, ...]
    left: Proof
    right: Proof


@dataclass(frozen=True, slots=True)
class Drop:
    """Prices of load (>= 0) and of the number of flows (> 0: at most so many, < 0: at least) per resource.

    With c(p) = Σ over p of load price * load + number price, a routing needs Σ_f c(p_f) <= Σ room * load price + Σ limit *
    number price; a path that exceeds its flow's cheapest by more than the slack is dropped.
    """

    load: Pairs
    number: Pairs = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """Either `first` or `second` must hold.

    most = None: flow `flow` uses the resource (first) or does not; else at most `most` flows use it (first) or more do.
    """

    resource: int
    flow: int
    most: int | None
    first: Pruned
    second: Pruned


@dataclass(frozen=True, slots=True)
class Pruned:
    """Lists of paths after some drops: a flow is left without any path (branch = None), or the proof branches."""

    drops: tuple[Drop, ...]
    branch: Branch | None


@dataclass(frozen=True, slots=True)
class Listed:
    """`price` leaves to every flow the paths that are close enough to its cheapest; `below` refutes these."""

    price: Pairs
    below: Pruned


Proof = Leaf | Split | Listed


@dataclass(frozen=True, slots=True)
class SinkBound:
    """No routing to `sink` takes less than `level`."""

    sink: int
    level: Fraction
    proof: Proof


def pairs_of(price: Floats | Ints) -> Pairs:
    """The entries (R,) that are not 0."""
    used = np.flatnonzero(price)
    return tuple((int(r), int(price[r])) for r in used)


def leaf_of(price: Floats) -> Leaf:
    return Leaf(pairs_of(price))


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """Names in a certificate: public (R,) is the number of each resource; arcs are (tail, head) pairs of the graph."""

    graph: Graph
    public: Ints

    def pairs(self, pairs: Pairs) -> list[list[int]]:
        return [[int(self.public[r]), y] for r, y in pairs]


def proof_as_data(names: CertificateNames, proof: Proof) -> dict[str, Any]:
    """A proof as plain lists and numbers."""
    if isinstance(proof, Leaf):
        return {"price": names.pairs(proof.price)}
    if isinstance(proof, Listed):
        return {"list": names.pairs(proof.price), **_pruned_as_data(names, proof.below)}
    tail, head = names.graph.tail, names.graph.head
    halves = {
        side: [[int(tail[a]), int(head[a])] for a in arcs]
        for side, arcs in (("first", proof.first), ("second", proof.second))
    }
    return {
        "flow": proof.flow,
        "node": proof.node,
        **halves,
        "left": proof_as_data(names, proof.left),
        "right": proof_as_data(names, proof.right),
    }


def _pruned_as_data(names: CertificateNames, node: Pruned) -> dict[str, Any]:
    data: dict[str, Any] = {
        "drops": [[names.pairs(drop.load), names.pairs(drop.number)] for drop in node.drops]
    }
    if (branch := node.branch) is not None:
        how = {"flow": branch.flow} if branch.most is None else {"most": branch.most}
        data["branch"] = {"resource": int(names.public[branch.resource]), **how}
        data["first"] = _pruned_as_data(names, branch.first)
        data["second"] = _pruned_as_data(names, branch.second)
    return data
