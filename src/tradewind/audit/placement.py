"""Check the bound of a parameter-server placement from its prices, in whole numbers, sink by sink.

The claim: with integer capacities B_r, data d_f and path weights w(h), no choice of one path per flow to the sink has
max_r load_r / B_r below the level. The check, for every sink that the certificate names:

    room_r = largest integer below level * B_r           (a load is an integer)
    Σ_f d_f * min over admitted paths p of w(|p|) * Σ_{r on p} y_r   >   Σ_r room_r * y_r

where a path is admitted if room_r >= d_f * w(|p|) on all of it, and a resource that cannot hold two flows counts as full
with one (as if d_f * w(|p|) were room_r there). If a routing were faster than the level, the left
side could not exceed the right one. A proof may branch: a path leaves a node at most once, so a flow avoids the first
or the second set of arcs. Or it continues over lists of the paths that prices leave (audit.placement_lists).
Both files share nothing with the solver but the format of the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tradewind.audit.placement_lists import ListChecker, ListProblem, Sender
from tradewind.audit.work import exchanged
from tradewind.model.arrays import Ints
from tradewind.model.job import Rounds
from tradewind.model.network import Link
from tradewind.model.result import Violation
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup

BOUNDED = "epoch_s"
"""Last word in the name of a placement certificate: the metric that it bounds."""
FAR = 1 << 60
"""Cost of a node that no admitted path reaches."""
SAFE = 1 << 61
"""Sums below this cannot overflow 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The problem a certificate is about.

    arcs      (tail, head, resource) triples;  capacity (R,) integers in one unit
    data      per node, 0 = sends nothing;  weight per number of hops from 0 on, one entry per node
    sinks     sites allowed for the server
    """

    arcs: Sequence[tuple[int, int, int]]
    capacity: Sequence[int]
    data: Sequence[int]
    weight: Sequence[int]
    sinks: Sequence[int]


class Checker:
    """Checks proofs for one claim."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.tail = np.array([a[0] for a in claim.arcs], dtype=np.int64)
        self.head = np.array([a[1] for a in claim.arcs], dtype=np.int64)
        self.resource = np.array([a[2] for a in claim.arcs], dtype=np.int64)
        self.place = {(a[0], a[1]): k for k, a in enumerate(claim.arcs)}

    def bound(self, sinks: Mapping[str, Any]) -> tuple[Fraction | None, str]:
        """(least level over all sinks, "") if every sink has a valid proof, else (None, what is wrong)."""
        least: Fraction | None = None
        for sink in self.claim.sinks:
            entry = sinks.get(str(sink))
            if entry is None:
                return None, f"sink {sink} has no proof"
            level = Fraction(int(entry["level"][0]), int(entry["level"][1]))
            if why := self.wrong(sink, level, entry["proof"]):
                return None, f"sink {sink}: {why}"
            least = level if least is None else min(least, level)
        return least, ""

    def wrong(self, sink: int, level: Fraction, proof: Mapping[str, Any]) -> str:
        """What is wrong with a proof that no routing to the sink is faster than the level; empty if it holds."""
        if level <= 0:
            return "" if level == 0 else "the level is negative"
        room = [(level.numerator * int(b) - 1) // level.denominator for b in self.claim.capacity]
        return self._walk(sink, room, proof, {})

    def _walk(
        self, sink: int, room: list[int], proof: Mapping[str, Any], banned: dict[int, frozenset[int]]
    ) -> str:
        if "price" in proof:
            return self._leaf(sink, room, proof["price"], banned)
        if "list" in proof:
            return self._lists(sink, room, proof, banned)
        try:
            flow, node = int(proof["flow"]), int(proof["node"])
            halves = [frozenset(self.place[int(u), int(v)] for u, v in proof[s]) for s in ("first", "second")]
        except (KeyError, TypeError, ValueError):
            return "a branch of the proof is malformed"
        leaving = {k for k, arc in enumerate(self.claim.arcs) if arc[0] == node}
        if not leaving <= halves[0] | halves[1] or not halves[0] | halves[1] <= leaving:
            return f"a branch at node {node} does not cover the arcs that leave it"
        for half, below in zip(halves, ("left", "right"), strict=True):
            child = dict(banned)
            child[flow] = banned.get(flow, frozenset()) | half
            if why := self._walk(sink, room, proof[below], child):
                return why
        return ""

    def _leaf(
        self, sink: int, room: list[int], price: Sequence[Sequence[int]], banned: dict[int, frozenset[int]]
    ) -> str:
        paid = self._paid(price)
        if paid is None:
            return "prices must be whole numbers >= 0 of existing resources"
        flows = self._flows(sink, room, paid, banned)
        if flows is None:
            return ""  # some flow has no admitted path at all: nothing is faster than the level
        budget = sum(max(n, 0) * y for n, y in zip(room, paid, strict=True))
        spent = sum(flow.cheapest for flow in flows)
        return "" if spent > budget else f"the prices show {spent} of {budget + 1} needed"

    def _lists(
        self, sink: int, room: list[int], proof: Mapping[str, Any], banned: dict[int, frozenset[int]]
    ) -> str:
        """A proof over the lists of paths that its prices leave."""
        paid = self._paid(proof["list"])
        if paid is None:
            return "prices must be whole numbers >= 0 of existing resources"
        flows = self._flows(sink, room, paid, banned)
        if flows is None:
            return ""
        budget = sum(max(n, 0) * y for n, y in zip(room, paid, strict=True))
        slack = budget - sum(flow.cheapest for flow in flows)
        if slack < 0:
            return ""
        claim = self.claim
        lists = ListProblem(
            arcs=claim.arcs,
            room=room,
            weight=[int(w) for w in claim.weight],
            sink=sink,
            paid=paid,
            slack=slack,
        )
        return ListChecker(lists, flows).wrong(proof)

    def _paid(self, price: Sequence[Sequence[int]]) -> list[int] | None:
        """Price of every resource; None if some are not whole numbers >= 0 of existing resources."""
        paid = [0] * len(self.claim.capacity)
        for resource, amount in price:
            if type(amount) is not int or amount < 0 or not 0 <= resource < len(paid):
                return None
            paid[resource] = amount
        return paid

    def _flows(
        self, sink: int, room: list[int], paid: list[int], banned: dict[int, frozenset[int]]
    ) -> list[Sender] | None:
        """Every sender with the cost of its cheapest admitted path; None if one has none."""
        groups: dict[tuple[int, frozenset[int]], list[int]] = {}
        for u, size in enumerate(self.claim.data):
            if size > 0 and u != sink:
                groups.setdefault((int(size), banned.get(u, frozenset())), []).append(u)
        flows: list[Sender] = []
        for (size, avoid), members in groups.items():
            cost = self._cheapest(sink, room, paid, size, avoid)
            for u in members:
                if cost[u] >= FAR:
                    return None
                flows.append(Sender(node=u, size=size, cheapest=int(cost[u]), avoid=avoid))
        return flows

    def _cheapest(
        self, sink: int, room: list[int], paid: list[int], size: int, avoid: frozenset[int]
    ) -> Ints:
        """min over h of the cheapest walk of at most h arcs, all with room >= size * w(h), per node (n,).

        An arc costs its price times size * w(h), or times its room where that is too small for two flows.
        """
        weight, n = self.claim.weight, len(self.claim.data)
        smallest = min(int(d) for d in self.claim.data if d > 0) * int(weight[1])
        alone = [r if smallest < r < 2 * smallest else 0 for r in room]
        largest = max(size * int(weight[-1]), max(alone, default=0), 1)
        if max(paid, default=0) * n * largest >= SAFE:
            raise ValueError("the prices are too large to be checked in 64 bits; scale them down")
        free = np.array([room[r] for r in self.resource], dtype=np.int64)
        free[list(avoid)] = -1
        toll = np.array(paid, dtype=np.int64)[self.resource]
        fill = np.array(alone, dtype=np.int64)[self.resource]
        plain = not fill.any()
        best = np.full(n, FAR, dtype=np.int64)
        dist, open_arcs = best, np.zeros(self.tail.size, dtype=np.bool_)
        for h in range(1, n):
            load = size * int(weight[h])
            now = free >= load
            if not now.any():
                break
            layers = 1
            if h == 1 or not plain or not np.array_equal(now, open_arcs):
                dist, open_arcs, layers = np.full(n, FAR, dtype=np.int64), now, h
                dist[sink] = 0
            tail, head = self.tail[now], self.head[now]
            cost = toll[now] if plain else (toll * np.maximum(load, fill))[now]
            still = False
            for _ in range(layers):
                further = dist.copy()
                np.minimum.at(further, tail, np.minimum(dist[head] + cost, FAR))
                still = np.array_equal(further, dist)
                dist = further
                if still:
                    break
            reached = dist < FAR
            best[reached] = np.minimum(best[reached], dist[reached] * (load if plain else 1))
            if still:
                break  # more hops open no arc and make none cheaper
        return best


def claim_of(data: Mapping[str, Any], links: Sequence[Link], transport: str, nodes: int) -> Claim:
    """The problem that a certificate is about, rebuilt from the scenario's own links.

    data: what the certificate carries: sources, unit_bps, bps (per link what could be pushed each way and pulled back),
    sinks; amounts where sources send different numbers of units of model_bytes.
    Resource 2k is link k from a to b, 2k + 1 the way back; a shared link has 2k alone.
    """
    unit = int(data["unit_bps"])
    capacity, arcs = [1] * (2 * len(links)), []
    joined: set[frozenset[int]] = set()
    for k, (link, (there, back)) in enumerate(zip(links, data["bps"], strict=True)):
        ends = frozenset((link.a, link.b))
        if max(int(there), int(back)) > 0 and ends in joined:
            raise ValueError(
                f"link {k} is parallel to another one; a placement proof knows one link between two nodes"
            )
        for tail, head, resource, width in (
            (link.a, link.b, 2 * k, int(there)),
            (link.b, link.a, 2 * k + (not link.shared), int(back)),
        ):
            if width > 0:
                joined.add(ends)
                arcs.append((tail, head, resource))
                capacity[resource] = width // unit
            if width % unit:
                raise ValueError(f"link {k} has {width} bit/s, which is not a multiple of the unit {unit}")
    pieces = int(transport.partition(":")[2] or 1)
    weight = [0] + [
        h if transport == "store-and-forward" else 1 if transport == "cut-through" else pieces + h - 1
        for h in range(1, nodes)
    ]
    amounts = data.get("amounts") or [1] * len(data["sources"])
    sent = {int(u): int(n) for u, n in zip(data["sources"], amounts, strict=True)}
    return Claim(
        arcs=arcs,
        capacity=capacity,
        data=[sent.get(u, 0) for u in range(nodes)],
        weight=weight,
        sinks=[int(v) for v in data["allowed"]],
    )


def recheck(setup: Setup, data: Mapping[str, Any], value_s: float) -> str:
    """What is wrong with a certificate's bound in seconds; empty if it holds.

    The free bandwidth that the certificate assumed must not be less than what the job could use: `check_certificate`
    compares it with the audit's ledger. A larger one only weakens the bound.
    """
    try:
        claim = claim_of(data, setup.links, setup.transport, len(setup.nodes))
        level, why = Checker(claim).bound(data["sinks"])
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        return f"the certificate is malformed: {problem!r}"
    if level is None:
        return why
    pieces = int(setup.transport.partition(":")[2] or 1)
    one_way = 8 * 10**6 * int(data["model_bytes"]) * level / (pieces * int(data["unit_bps"]))
    bound_s = 2 * round(one_way) / 10**6  # whole microseconds each way, as the world rounds a round
    if not value_s <= bound_s:
        return f"the prices show {bound_s:.9g} s, the certificate claims {value_s:.9g} s"
    return ""


def is_placement(certificate: Mapping[str, Any]) -> bool:
    """Whether a certificate of a run is about a placement."""
    return str(certificate["name"]).split()[-1:] == [BOUNDED]


def check_certificate(
    scenario: Scenario, certificate: Mapping[str, Any], free: Callable[[int], list[list[int]]]
) -> tuple[Violation, ...]:
    """Check a placement certificate: its problem is the scenario's at that time, and its prices show the bound.

    free: job -> bit/s of every link, there and back, that the other jobs leave to it, by the audit's own ledger. The
    certificate must be about exactly these: a bound on a narrower network would claim too much.
    """
    if not is_placement(certificate):
        return ()
    data, at_us = certificate["data"], int(certificate["at_us"])
    why = _foreign(scenario, data, free) or recheck(scenario.setup, data, float(certificate["value"]))
    if not why:
        return ()
    return (Violation(rule="certificate.placement", slot=at_us // scenario.setup.slot_us, detail=why),)


def _foreign(scenario: Scenario, data: Mapping[str, Any], free: Callable[[int], list[list[int]]]) -> str:
    """Why a certificate is not about this job on this network; empty if it is."""
    try:
        job = scenario.jobs[int(data["job"])]
        pinned = sorted(node for node, _ in job.work.pinned) if isinstance(job.work, Rounds) else []
        amounts = data.get("amounts") or [1] * len(data["sources"])
        sent = {
            int(u): int(n) * int(data["model_bytes"]) for u, n in zip(data["sources"], amounts, strict=True)
        }
        if sent != {u: exchanged(job, u) for u in pinned}:
            return "the certificate is about another model size or other worker sites"
        hosts = {v for v in scenario.setup.hosts if job.nodes is None or v in job.nodes}
        if not set(data["allowed"]) <= hosts:
            return "the certificate allows sites where the job may not run"
        for k, (now, claimed) in enumerate(zip(free(job.index), data["bps"], strict=True)):
            if [int(c) for c in claimed] != now:
                return f"link {k} has {now} bit/s for the job, the certificate assumes {list(claimed)}"
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        return f"the certificate is malformed: {problem!r}"
    return ""
