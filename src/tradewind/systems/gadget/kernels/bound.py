"""Upper bounds on the worth of a slot: a knapsack of all servers together, and pooled prices for large clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.columns import lagrangian, relax
from tradewind.systems.gadget.kernels.gains import envelope
from tradewind.systems.gadget.kernels.price import Request, cheapest, make_scratch, most_workers, open_row
from tradewind.systems.gadget.kernels.slot import Capacity, Rings, Slot, SlotPrices, no_prices

BUCKETS = 8
"""Groups of link speeds, of equal size."""
SAMPLE = 60
"""Servers in the sample that gives the first prices."""
SAMPLE_SEED = 2022
QUICK_RACKS = 4
"""Racks that are tried one by one before the cheapest rings of all racks are computed."""


@kernel
def embeddable(slot: Slot) -> Bools:
    """(I, N + 1) whether a ring of that size fits into the empty cluster at all."""
    free = Capacity(slot.room, slot.link, slot.first, slot.trunk)
    count, widest, racks = slot.need.shape[0], slot.gain.shape[1] - 1, slot.trunk.size
    window, scratch = np.arange(racks), make_scratch(slot.room.shape[0], racks, widest)
    scratch.per_worker[:] = 0.0
    scratch.per_server[:] = 0.0
    scratch.per_rack[:] = 0.0
    result = np.zeros((count, widest + 1), np.bool_)
    for i in range(count):
        request = Request(slot.need[i], slot.band[i], widest, open_row(slot.open, i))
        if _fits_one_rack(free, request):
            result[i] = True
            continue
        cheapest(free, window, request, scratch)
        for k in range(widest + 1):
            result[i, k] = scratch.cost[k] < np.inf
    return result


@kernel
def _fits_one_rack(free: Capacity, request: Request) -> bool:
    """Whether one of the first racks holds a ring of `widest`, and with it rings of all sizes."""
    for g in range(min(QUICK_RACKS, free.trunk.size)):
        reach = 0
        for s in range(free.first[g], free.first[g + 1]):
            if free.link[s] >= request.band and (request.open.size == 0 or request.open[s] != 0):
                reach += most_workers(free.room[s], request.need, request.widest)
                if reach >= request.widest:
                    return True
    return False


def possible(slot: Slot) -> Slot:
    """The slot without ring sizes that the empty cluster cannot hold."""
    if not slot.jobs or not slot.servers:
        nothing = np.where(np.arange(slot.widest + 1) == 0, 0.0, np.full_like(slot.gain, -np.inf))
        return slot._replace(gain=nothing)
    return slot._replace(gain=np.where(embeddable(slot), slot.gain, -np.inf))


def knapsack(slot: Slot) -> float:
    """Fractional knapsack of the scarcest resource with concave gains: valid and quick, ignores placement."""
    return _knapsack(slot)[0]


def knapsack_prices(slot: Slot) -> tuple[SlotPrices, Floats]:
    """Prices of the knapsack, the same on every server: the gain of its last worker; and (I,) the best reduced values."""
    _, scarce, price = _knapsack(slot)
    prices = no_prices(slot)
    if scarce >= 0:
        prices.room[:, scarce] = price
    paid = np.arange(slot.widest + 1) * (slot.need[:, scarce, None] * price if scarce >= 0 else 0.0)
    reduced: Floats = np.maximum(slot.gain - paid, 0.0).max(1)
    return prices, reduced


def _knapsack(slot: Slot) -> tuple[float, int, float]:
    """(value, resource that limits it or -1, gain per amount of the last worker)."""
    steps = np.zeros((slot.jobs, slot.widest))
    for i in range(slot.jobs):
        line = envelope(np.maximum.accumulate(np.maximum(slot.gain[i], 0.0)))
        steps[i] = np.diff(line)
    best, scarce, price = float(steps.sum()), -1, 0.0
    for r in range(slot.need.shape[1]):
        need = slot.need[:, r].astype(np.float64)
        free = need == 0
        density = steps[~free] / need[~free, None]
        amount = np.broadcast_to(need[~free, None], density.shape).ravel()
        order = np.argsort(-density.ravel(), kind="stable")
        filled = np.cumsum(amount[order])
        room = float(slot.room[:, r].sum())
        share = np.clip((room - (filled - amount[order])) / amount[order], 0.0, 1.0)
        value = float((steps[~free].ravel()[order] * share).sum()) + float(steps[free].sum())
        if value < best:
            last = int(np.searchsorted(filled, room))
            best, scarce, price = value, r, float(density.ravel()[order][min(last, len(order) - 1)])
    return best, scarce, price


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A bound, and the prices and reduced values (I,) that gave it."""

    bound: float
    prices: SlotPrices
    reduced: Floats


class _ByGroup(NamedTuple):
    """Prices or use by group of servers: room (Q, R), link (Q,)."""

    room: Floats
    link: Floats


def _classes(slot: Slot) -> tuple[Ints, Ints]:
    """(S,) price class of every server by its first resource and link speed, and (S,) class of equal rooms as well."""
    rank = np.argsort(np.argsort(slot.link, kind="stable"), kind="stable")
    bucket = rank * BUCKETS // max(1, slot.servers)
    price = np.unique(np.stack([slot.room[:, 0], bucket], 1), axis=0, return_inverse=True)[1].ravel()
    exact = np.unique(np.column_stack([slot.room, bucket]), axis=0, return_inverse=True)[1].ravel()
    return price.astype(np.int64), exact.astype(np.int64)


def _representative(slot: Slot, exact: Ints) -> tuple[Slot, Ints]:
    """One rack with as many servers of each class as a ring could visit, each with the class's best link.

    Every ring of the slot costs as much or less here (trunks are free), so its Lagrangian bounds the slot's.
    """
    chosen: list[int] = []
    best = np.zeros(int(exact.max()) + 1, np.int64)
    np.maximum.at(best, exact, slot.link)
    order = np.argsort(exact, kind="stable")
    begins = np.searchsorted(exact[order], np.arange(len(best) + 1))
    for c in range(len(best)):
        chosen.extend(order[begins[c] : begins[c + 1]][: max(1, slot.widest)].tolist())
    pick = np.array(chosen, np.int64)
    made = slot._replace(
        room=slot.room[pick],
        link=best[exact[pick]],
        first=np.array([0, len(pick)]),
        trunk=np.zeros(1, np.int64),
    )
    return made, pick


def _sample(slot: Slot, rng: np.random.Generator) -> tuple[Slot, Ints]:
    """Some servers in one rack and as large a part of the jobs."""
    count = min(SAMPLE, slot.servers)
    servers = np.sort(rng.choice(slot.servers, count, replace=False))
    jobs = np.sort(rng.choice(slot.jobs, max(1, slot.jobs * count // slot.servers), replace=False))
    made = slot._replace(
        room=slot.room[servers], link=slot.link[servers], first=np.array([0, count]),
        trunk=np.zeros(1, np.int64), need=slot.need[jobs], band=slot.band[jobs], gain=slot.gain[jobs],
    )  # fmt: skip
    return made, servers


def _averaged(value: Floats, weight: Floats, group: Ints, groups: int, fallback: float) -> Floats:
    """Mean of `value` by group, weighted; the overall mean where a group is not in the sample."""
    total = np.bincount(group, value * weight, minlength=groups)
    there = np.bincount(group, weight, minlength=groups)
    return np.where(there > 0, total / np.maximum(there, 1e-300), fallback)


def pooled(slot: Slot, floor: float, *, turns: int = 8, samples: int = 2) -> Pooled:
    """Prices by class of servers: from the configuration LPs of samples, then improved by Polyak steps.

    floor: a worth that is known to be reachable (the steps aim between it and the best bound). Only for slots where
    every job may run everywhere.
    """
    group, exact = _classes(slot)
    start = _sampled_prices(slot, group, samples)
    return _polyak(slot, group, exact, start, floor, turns)


def _sampled_prices(slot: Slot, group: Ints, samples: int) -> _ByGroup:
    """Mean prices by group of the configuration LPs of samples."""
    rng = np.random.default_rng(SAMPLE_SEED)
    groups, resources = int(group.max()) + 1, slot.room.shape[1]
    room_p, link_p = np.zeros((groups, resources)), np.zeros(groups)
    for _ in range(samples):
        made, servers = _sample(slot, rng)
        found = relax(made, [], gap=1e-3).prices
        for r in range(resources):
            price, size = found.room[:, r], made.room[:, r].astype(np.float64)
            mean = float((price * size).sum() / max(size.sum(), 1.0))
            room_p[:, r] += _averaged(price, size, group[servers], groups, mean) / samples
        size = made.link.astype(np.float64)
        mean = float((found.link * size).sum() / max(size.sum(), 1.0))
        link_p += _averaged(found.link, size, group[servers], groups, mean) / samples
    return _ByGroup(room_p, link_p)


def _polyak(slot: Slot, group: Ints, exact: Ints, start: _ByGroup, floor: float, turns: int) -> Pooled:
    """Subgradient steps on prices by group, scaled by capacity."""
    small, pick = _representative(slot, exact)
    mine, (groups, resources) = group[pick], start.room.shape
    room_c = np.stack([np.bincount(group, slot.room[:, r], minlength=groups) for r in range(resources)], 1)
    link_c = np.bincount(group, slot.link, minlength=groups)
    now = kept = start
    best, reduced, aim, stuck = np.inf, np.zeros(slot.jobs), 0.5, 0
    for _ in range(turns):
        at = SlotPrices(room=now.room[mine], link=now.link[mine], trunk=np.zeros(1))
        _, values, rings = lagrangian(small, at)
        bound = float((room_c * now.room).sum() + (link_c * now.link).sum() + values.sum())
        if bound < best:
            best, kept, reduced, stuck = bound, now, values, 0
        else:
            stuck += 1
            if stuck >= 2:
                now, aim, stuck = kept, aim * 0.5, 0
                continue
        used = _used(small, rings, mine, groups)
        slope_room = np.divide(room_c - used.room, room_c, out=np.zeros_like(room_c, float), where=room_c > 0)
        slope_link = np.divide(link_c - used.link, link_c, out=np.zeros_like(link_c, float), where=link_c > 0)
        norm = float((slope_room**2).sum() + (slope_link**2).sum())
        if norm <= 1e-18:
            break
        step = aim * max(bound - (0.7 * best + 0.3 * floor), 1e-4 * best) / norm
        now = _ByGroup(
            np.maximum(0.0, now.room - step * slope_room / np.maximum(room_c, 1)),
            np.maximum(0.0, now.link - step * slope_link / np.maximum(link_c, 1)),
        )
    prices = SlotPrices(room=kept.room[group], link=kept.link[group], trunk=np.zeros(len(slot.trunk)))
    return Pooled(bound=best, prices=prices, reduced=reduced)


def _used(slot: Slot, rings: Rings, group: Ints, groups: int) -> _ByGroup:
    """Room and link bandwidth that rings use, by group of servers."""
    room, link = np.zeros((groups, slot.room.shape[1])), np.zeros(groups)
    there = rings.server >= 0
    i, j = np.nonzero(there)
    g = group[rings.server[i, j]]
    for r in range(slot.room.shape[1]):
        np.add.at(room[:, r], g, rings.workers[i, j] * slot.need[i, r])
    several = there.sum(1) > 1
    np.add.at(link, g, np.where(several[i], slot.band[i], 0))
    return _ByGroup(room, link)
