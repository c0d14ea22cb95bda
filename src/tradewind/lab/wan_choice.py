"""Several jobs over one WAN, each with a parameter server somewhere or as a ring: the choice that makes the round shortest.

Every job has workers at some sites and exchanges its model once per round. A server gets the model from each site over one
path and sends it back over the same; a ring passes (n - 1) / n of it twice over each of its n legs. All rounds take the same
time T: the largest bits / bandwidth over links and directions, while servers are pushed to and while they are pulled from.
Paths are cut-through: all links of a path work at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, Program, quiet_solver

SERVER, RING = "server", "ring"
TURNS = 60
"""Most turns of column generation; the bound is valid after any of them."""
NODES = 400
"""Most nodes of branch and bound."""
LEAST = 1e-7
"""Least price of a direction relative to an equal share, so that no path is longer than needed."""


class Wan(NamedTuple):
    """Directed arcs: tail, head, link and reverse (A,), bit/s (A,)."""

    nodes: int
    tail: Ints
    head: Ints
    link: Ints
    reverse: Ints
    bps: Floats


class Member(NamedTuple):
    """A job: its sites, and the bytes of its model."""

    sites: tuple[int, ...]
    bytes: int


class Choice(NamedTuple):
    """How a job communicates.

    kind   server or ring
    nodes  of a ring: its sites in order; of a server: its site
    paths  arcs per site (server) or leg (ring)
    bits   (2A,) per round over every arc while servers are pushed to, and while they are pulled from
    """

    job: int
    kind: str
    nodes: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]
    bits: Floats


class Pool(NamedTuple):
    """Choices that column generation found, and a certified lower bound on T of any choice of the same kinds."""

    choices: list[Choice]
    bound: float


def wan_of(nodes: int, links: Sequence[tuple[int, int, float, float]]) -> Wan:
    """From links (a, b, bit/s from a to b, and back)."""
    ends = [(a, b) for a, b, _, _ in links] + [(b, a) for a, b, _, _ in links]
    bps = [there for _, _, there, _ in links] + [back for _, _, _, back in links]
    tail, head = np.array(ends, dtype=np.int64).T
    count = len(links)
    turn = np.concatenate([np.arange(count, 2 * count), np.arange(count)])
    return Wan(nodes, tail, head, np.arange(2 * count) % count, turn, np.array(bps, dtype=np.float64))


def seconds(wan: Wan, bits: Floats) -> float:
    """T of the bits of all jobs."""
    return float((bits / np.tile(wan.bps, 2)).max())


def total(choices: Sequence[Choice]) -> Floats:
    """(2A,) bits of several choices."""
    return np.asarray(np.sum([c.bits for c in choices], axis=0))


# ------------------------------------------------------------------ the cheapest choice of a job at given prices
def _paths(wan: Wan, price: Floats) -> tuple[Floats, Ints]:
    """(n, n) price of the cheapest path, and its first arc (Floyd and Warshall)."""
    cost = np.full((wan.nodes, wan.nodes), np.inf)
    first = np.full((wan.nodes, wan.nodes), -1, dtype=np.int64)
    for a in np.argsort(-price, kind="stable").tolist():
        cost[wan.tail[a], wan.head[a]] = price[a]
        first[wan.tail[a], wan.head[a]] = a
    np.fill_diagonal(cost, 0.0)
    for k in range(wan.nodes):
        over = cost[:, k, None] + cost[k]
        shorter = over < cost
        cost = np.where(shorter, over, cost)
        first = np.where(shorter, first[:, k, None], first)
    return cost, first


def _walk(wan: Wan, first: Ints, u: int, v: int) -> tuple[int, ...]:
    arcs: list[int] = []
    while u != v:
        arcs.append(int(first[u, v]))
        u = int(wan.head[arcs[-1]])
    return tuple(arcs)


def _tour(cost: Floats, sites: Sequence[int]) -> tuple[float, tuple[int, ...]]:
    """The cheapest ring over the sites, exactly (Held and Karp)."""
    first, rest = sites[0], tuple(sites[1:])
    best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
    best |= {(1 << i, i): (float(cost[first, v]), (first, v)) for i, v in enumerate(rest)}
    for _ in range(len(rest) - 1):
        longer: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
        for (seen, i), (paid, order) in best.items():
            for j, v in enumerate(rest):
                if not seen >> j & 1:
                    found = (paid + float(cost[rest[i], v]), (*order, v))
                    key = (seen | 1 << j, j)
                    longer[key] = min(longer.get(key, found), found)
        best = longer
    return min((paid + float(cost[order[-1], first]), order) for paid, order in best.values())


def _cheapest(wan: Wan, job: int, member: Member, kind: str, prices: Floats) -> tuple[float, Choice]:
    """(Price, choice) of the cheapest server or ring of a job; prices (2A,) per bit pushed and pulled over each arc."""
    arcs = len(wan.bps)
    push, pull = prices[:arcs], prices[arcs:]
    bits, n = 16.0 * member.bytes, len(member.sites)
    used = np.zeros(2 * arcs)
    if kind == SERVER:
        cost, first = _paths(wan, push + pull[wan.reverse])
        site = int(cost[list(member.sites)].sum(axis=0).argmin())
        paid = bits * float(cost[list(member.sites), site].sum())
        paths = tuple(_walk(wan, first, u, site) for u in member.sites)
        for path in paths:
            np.add.at(used, list(path), bits)
            np.add.at(used, [arcs + int(wan.reverse[a]) for a in path], bits)
        return paid, Choice(job, kind, (site,), paths, used)
    bits *= (n - 1) / n
    cost, first = _paths(wan, push + pull)
    paid, order = _tour(cost, member.sites)
    paths = tuple(_walk(wan, first, u, v) for u, v in zip(order, order[1:] + order[:1], strict=True))
    for path in paths:
        np.add.at(used, list(path), bits)
        np.add.at(used, [arcs + a for a in path], bits)
    return bits * paid, Choice(job, kind, order, paths, used)


# ------------------------------------------------------------------ column generation and the choice itself
def priced(wan: Wan, members: Sequence[Member], kinds: Collection[str]) -> Pool:
    """Column generation over all servers, paths and rings of these kinds.

    Any prices p >= 0 with sum of p * bandwidth = 1 prove T >= the sum over jobs of the cheapest choice at p.
    """
    capacity = np.tile(wan.bps, 2)
    prices = 1.0 / (capacity * len(capacity))
    pool: dict[tuple[int, str, tuple[int, ...], tuple[tuple[int, ...], ...]], Choice] = {}
    bound = 0.0
    for _ in range(TURNS):
        least, before = 0.0, len(pool)
        for job, member in enumerate(members):
            found = [_cheapest(wan, job, member, kind, prices) for kind in sorted(kinds)]
            least += min(paid for paid, _ in found)
            pool.update({(c.job, c.kind, c.nodes, c.paths): c for _, c in found})
        bound = max(bound, least)
        if len(pool) == before:
            break
        prices = _prices(wan, list(pool.values()), len(members))
    return Pool(list(pool.values()), bound * (1 - 1e-9))


def _program(wan: Wan, choices: Sequence[Choice], jobs: int, *, whole: bool) -> Program:
    """min T: one choice per job, bits <= bandwidth * T on every arc, pushed and pulled; T is the first column."""
    program = Program()
    program.column(1.0, INFINITY)
    for _ in choices:
        program.column(0.0, 1.0, whole=whole)
    capacity, bits = np.tile(wan.bps, 2), np.array([c.bits for c in choices])
    for row in range(len(capacity)):
        users = np.flatnonzero(bits[:, row])
        entries = [(1 + int(c), -float(bits[c, row] / capacity[row])) for c in users]
        program.row(0.0, INFINITY, [(0, 1.0), *entries])
    for job in range(jobs):
        program.row(1.0, 1.0, [(1 + k, 1.0) for k, c in enumerate(choices) if c.job == job])
    return program


def _prices(wan: Wan, choices: Sequence[Choice], jobs: int) -> Floats:
    """(2A,) prices of the linear program, none zero, worth 1 in all."""
    model = quiet_solver()
    _program(wan, choices, jobs, whole=False).solve(model)
    capacity = np.tile(wan.bps, 2)
    dual = np.maximum(0.0, np.array(model.getSolution().row_dual[: len(capacity)])) + LEAST / len(capacity)
    return np.asarray(dual / dual.sum() / capacity)


def together(wan: Wan, choices: Sequence[Choice], jobs: int) -> list[Choice]:
    """One choice per job with the least T, by branch and bound over the given choices."""
    model = quiet_solver(mip_max_nodes=NODES)
    found = _program(wan, choices, jobs, whole=True).solve(model).columns[1:]
    return sorted((choices[k] for k in np.flatnonzero(found > 0.5).tolist()), key=lambda c: c.job)


def one_by_one(wan: Wan, choices: Sequence[Choice], jobs: int, *, others: bool) -> list[Choice]:
    """Each job in turn takes the choice with the least T, beside the jobs before it or (others=False) as if alone."""
    taken: list[Choice] = []
    for job in range(jobs):
        beside = total(taken) if taken and others else np.zeros(2 * len(wan.bps))
        mine = [c for c in choices if c.job == job]
        taken.append(min(mine, key=lambda c: (seconds(wan, beside + c.bits), float(c.bits.sum()))))
    return taken
