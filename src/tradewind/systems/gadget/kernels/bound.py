"""Upper bounds on the worth of a slot: a knapsack of all servers together, and pooled prices for large clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.columns import lagrangian, relax
from tradewind.systems.gadget.kernels.gains import envelope
from tradewind.systems.gadget.kernels.price import cheapest, most_workers
from tradewind.systems.gadget.kernels.slot import Prices, Slot

BUCKETS = 8
"""Link speeds are pooled by eighths of their order."""
SAMPLE = 60
"""Servers in the sample that gives the first prices."""


@kernel
def embeddable(
    room: Ints, link: Ints, first: Ints, trunk: Ints, need: Ints, band: Ints, widest: int, open_: np.ndarray
) -> np.ndarray:
    """(I, N + 1) whether a ring of that size fits into the empty cluster at all."""
    count, spots, racks = need.shape[0], room.shape[0], trunk.size
    window = np.arange(racks)
    cost, outer = np.empty(widest + 1), np.empty(widest + 1)
    kind, where = np.empty(widest + 1, np.int64), np.empty(widest + 1, np.int64)
    inner, pick = np.empty((racks, widest + 1)), np.empty((spots, widest + 1), np.int64)
    part = np.empty((racks, widest + 1), np.int64)
    nothing, gate, everywhere = np.zeros(spots), np.zeros(racks), np.ones(0, np.int8)
    result = np.zeros((count, widest + 1), np.bool_)
    for i in range(count):
        row = open_[i] if open_.shape[0] > 0 else everywhere
        if _one_rack(room, link, first, need[i], band[i], widest, row):
            result[i] = True
            continue
        cheapest(
            room, link, first, trunk, window, need[i], band[i], widest, nothing, nothing, gate, row,
            cost, kind, where, inner, pick, outer, part,
        )  # fmt: skip
        for k in range(widest + 1):
            result[i, k] = cost[k] < np.inf
    return result


@kernel
def _one_rack(
    room: Ints, link: Ints, first: Ints, need: Ints, band: int, widest: int, row: np.ndarray
) -> bool:
    """Whether one of the first racks holds a ring of `widest`, and with it rings of all sizes."""
    for g in range(min(4, first.size - 1)):
        reach = 0
        for s in range(first[g], first[g + 1]):
            if link[s] >= band and (row.size == 0 or row[s] != 0):
                reach += most_workers(room[s], need, widest)
                if reach >= widest:
                    return True
    return False


def possible(slot: Slot) -> Slot:
    """The slot without ring sizes that no empty cluster could hold."""
    if not slot.jobs or not slot.servers:
        return replace(
            slot, gain=np.where(np.arange(slot.widest + 1) == 0, 0.0, np.full_like(slot.gain, -np.inf))
        )
    fits = embeddable(
        slot.room, slot.link, slot.first, slot.trunk, slot.need, slot.band, slot.widest, slot.open
    )
    return replace(slot, gain=np.where(fits, slot.gain, -np.inf))


def knapsack(slot: Slot) -> float:
    """Fractional knapsack of the scarcest resource with concave gains: valid, quick, blind to where things are."""
    return _knapsack(slot)[0]


def knapsack_prices(slot: Slot) -> tuple[Prices, Floats]:
    """Its prices: the gain of the last worker that goes in, everywhere alike. And (I,) every job's best reduced value."""
    _, scarce, price = _knapsack(slot)
    room = np.zeros(slot.room.shape)
    if scarce >= 0:
        room[:, scarce] = price
    paid = np.arange(slot.widest + 1) * (slot.need[:, scarce, None] * price if scarce >= 0 else 0.0)
    hope: Floats = np.maximum(slot.gain - paid, 0.0).max(1)
    return Prices(room=room, link=np.zeros(slot.servers), trunk=np.zeros(len(slot.trunk))), hope


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
    """bound, and the prices and reduced values (I,) that gave it, for every server."""

    bound: float
    prices: Prices
    hope: Floats


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
    made = replace(
        slot,
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
    made = replace(
        slot, room=slot.room[servers], link=slot.link[servers], first=np.array([0, count]),
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
    rng = np.random.default_rng(20_22)
    group, exact = _classes(slot)
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
    small, pick = _representative(slot, exact)
    own = exact[pick]
    return _polyak(slot, small, own, group, exact, room_p, link_p, floor, turns)


def _polyak(
    slot: Slot, small: Slot, own: Ints, group: Ints, exact: Ints, room_p: Floats, link_p: Floats, floor: float,
    turns: int,
) -> Pooled:  # fmt: skip
    """Subgradient steps on prices by group, scaled by capacity."""
    groups, resources = room_p.shape
    of = np.zeros(int(exact.max()) + 1, np.int64)
    of[exact] = group
    mine = of[own]
    room_c = np.stack([np.bincount(group, slot.room[:, r], minlength=groups) for r in range(resources)], 1)
    link_c = np.bincount(group, slot.link, minlength=groups)
    best, kept, hope, aim = np.inf, (room_p, link_p), np.zeros(slot.jobs), 0.5
    stuck = 0
    for _ in range(turns):
        at = Prices(room=room_p[mine], link=link_p[mine], trunk=np.zeros(1))
        _, reduced, rings = lagrangian(small, at)
        bound = float((room_c * room_p).sum() + (link_c * link_p).sum() + reduced.sum())
        if bound < best:
            best, kept, hope, stuck = bound, (room_p, link_p), reduced, 0
        else:
            stuck += 1
            if stuck >= 2:
                room_p, link_p = kept
                aim, stuck = aim * 0.5, 0
                continue
        used_room, used_link = np.zeros_like(room_p), np.zeros(groups)
        there = rings.server >= 0
        i, j = np.nonzero(there)
        g = mine[rings.server[i, j]]
        for r in range(resources):
            np.add.at(used_room[:, r], g, rings.workers[i, j] * slot.need[i, r])
        several = there.sum(1) > 1
        np.add.at(used_link, g, np.where(several[i], slot.band[i], 0))
        slope_room = np.divide(room_c - used_room, room_c, out=np.zeros_like(room_c, float), where=room_c > 0)
        slope_link = np.divide(link_c - used_link, link_c, out=np.zeros_like(link_c, float), where=link_c > 0)
        norm = float((slope_room**2).sum() + (slope_link**2).sum())
        if norm <= 1e-18:
            break
        step = aim * max(bound - (0.7 * best + 0.3 * floor), 1e-4 * best) / norm
        room_p = np.maximum(0.0, room_p - step * slope_room / np.maximum(room_c, 1))
        link_p = np.maximum(0.0, link_p - step * slope_link / np.maximum(link_c, 1))
    prices = Prices(room=kept[0][group], link=kept[1][group], trunk=np.zeros(len(slot.trunk)))
    return Pooled(bound=best, prices=prices, hope=hope)
