"""Plans of all jobs together: the starts, best responses, luring, ruin and recreate."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.broker.kernels.problem import PLAN, TINY, Problem
from tradewind.systems.broker.kernels.search import Books, load, respond, ruin_and_recreate, total_usd

PASSES = 20
"""Most rounds of best responses."""


def books(p: Problem, before: Floats) -> Books:
    """Nobody is served yet."""
    jobs = len(p.unserved)
    plan = np.zeros((jobs, PLAN), dtype=np.int64)
    plan[:, 0] = -1
    return Books(
        plan, p.unserved.copy(), before.copy(), np.zeros_like(p.price), before, np.zeros(jobs, dtype=np.bool_)
    )


def no_toll(p: Problem) -> Floats:
    """No price of capacity."""
    return np.zeros((p.price.shape[0], p.price.shape[1] + 1))


def cost(p: Problem, b: Books) -> float:
    """What the plans cost, lost value included."""
    return float(total_usd(p, b))


def settle(p: Problem, found: Books, order: Ints) -> None:
    """Best responses until nobody moves or nothing is gained."""
    usd = cost(p, found)
    for _ in range(PASSES):
        moved, before = respond(p, found, order, no_toll(p), found.spent), usd
        usd = cost(p, found)
        if not moved or usd > before - TINY * (1.0 + before):
            return


def selfish(p: Problem, before: Floats) -> Books:
    """Every job by itself, in order of arrival, with all choices and its own deadline."""
    found = books(p, before)
    respond(p, found, np.arange(len(p.unserved)), no_toll(p), np.zeros_like(before))
    return found


def central(p: Problem, before: Floats, site: Ints) -> Books:
    """All jobs in the one site where they cost least together; site: per offer."""
    best: Books | None = None
    least = _least(p, site)
    for each in sorted(least, key=lambda at: least[at]):
        if best is not None and least[each] > cost(p, best):
            break
        latest = np.where((site[p.offer] == each) & (p.other < 0), p.latest, -1)
        found = books(p, before)
        respond(p._replace(latest=latest), found, np.arange(len(p.unserved)), no_toll(p), found.spent)
        if best is None or cost(p, found) < cost(p, best):
            best = found
    return books(p, before) if best is None else best


def _least(p: Problem, site: Ints) -> dict[int, float]:
    """Site -> what all jobs cost there at least."""
    sites, jobs = np.unique(site), len(p.unserved)
    floor = np.tile(p.unserved, (len(sites), 1))
    rows = np.flatnonzero(p.other < 0)
    job = np.repeat(np.arange(jobs), np.diff(p.first))
    np.minimum.at(floor, (np.searchsorted(sites, site[p.offer[rows]]), job[rows]), p.floor[rows])
    return dict(zip(sites.tolist(), floor.sum(axis=1).tolist(), strict=True))


def _orders(p: Problem) -> Iterable[Ints]:
    """Jobs by what they would cost unserved (size), by end, by slack."""
    jobs = len(p.unserved)
    end, slack = np.full(jobs, 10**6), np.full(jobs, 10**6)
    for j in range(jobs):
        rows = slice(p.first[j], p.first[j + 1])
        if p.first[j] < p.first[j + 1]:
            end[j] = p.latest[rows].max()
            slack[j] = (p.latest[rows] - p.earliest[rows] - p.need[rows, 0]).max()
    yield np.argsort(-p.unserved, kind="stable")
    yield np.argsort(end, kind="stable")
    yield np.argsort(slack, kind="stable")


def lures(p: Problem) -> Floats:
    """Per tariff: what raises its spend beyond the last tier."""
    if not len(p.free):
        return np.zeros(0)
    found: Floats = np.where(p.start < 1e17, p.start, 0.0).max(axis=1) + p.free
    return found


def first_plans(p: Problem, before: Floats, toll: Floats, *, lured: bool = True) -> Books:
    """The best of several starts at these prices of capacity, each settled by best responses without them."""
    best, best_usd, lure, nothing = books(p, before), np.inf, lures(p), np.zeros(len(before))
    starts: list[tuple[Ints, Floats]] = [(order, nothing) for order in _orders(p)]
    if lured and len(lure) and len(starts):
        starts.append((starts[0][0], lure[p.tariff]))
        if len(lure) <= 12:
            starts += [(starts[0][0], np.where(p.tariff == q, lure[q], 0.0)) for q in range(len(lure))]
    for order, raised in starts:
        found = books(p, before)
        found.spent[:] += raised
        respond(p, found, order, toll, found.spent)
        found.spent[:] -= raised
        settle(p, found, order)
        if (usd := cost(p, found)) < best_usd:
            best, best_usd = found, usd
    return best


def improve(p: Problem, found: Books, toll: Floats, rounds: int, seed: int = 1) -> Books:
    """Ruin and recreate, then best responses."""
    ruin_and_recreate(p, found, toll, lures(p), rounds, seed)
    settle(p, found, np.arange(len(p.unserved)))
    return found


def better(p: Problem, found: Books, rivals: Iterable[Books]) -> Books:
    """The cheapest of these plans."""
    return min([found, *rivals], key=lambda each: cost(p, each))


def with_plans(p: Problem, before: Floats, plan: Ints) -> Books:
    """Given plans, counted."""
    found = books(p, before)
    load(p, found, plan)
    return found
