"""LP-RS-MDE as printed (Algorithm 2), and its rounding made strictly feasible.

1. Ring sizes from the LP relaxation of (12). Its flow equations (15) are satisfied by zero flow when every worker is
   spread alike, so the LP is a knapsack of total resources; it is solved as that (equal by the test on small slots).
2. The augmented LP with these sizes: the convex hull of valid mappings, here by column generation over rings, whose
   shares are the mapping probabilities.
3. Randomised rounding. It over-allocates; the raw violation is reported.
4. Not in the paper: rings that do not fit are discarded, then other mappings of the jobs left out are tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.gadget.kernels.columns import Relaxed, relax
from tradewind.systems.gadget.kernels.pack import book, clear, facts_of, left_of, rings_of
from tradewind.systems.gadget.kernels.slot import Rings, Slot, excess, no_rings, worth


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """rings that fit; raw: the rounding before repair, with its worth and its use / capacity of rooms and of links."""

    rings: Rings
    value: float
    raw: Rings
    raw_value: float
    raw_room: float
    raw_links: float
    lp: float


def ring_sizes(slot: Slot) -> Ints:
    """(I,) κ_i = argmax π_iκ χ_iκ over the LP relaxation of (12); 0 where no ring is selected."""
    h = quiet_solver(seed=7)
    jobs, resources = slot.need.shape
    total = slot.room.sum(0).astype(np.float64)
    count = jobs + resources
    upper = np.concatenate([np.ones(jobs), np.ones(resources)])
    h.addRows(
        count,
        np.full(count, -INFINITY),
        upper,
        0,
        np.zeros(count, np.int32),
        np.empty(0, np.int32),
        np.empty(0),
    )
    names: list[tuple[int, int]] = []
    for i in range(jobs):
        for k in range(1, slot.widest + 1):
            if slot.gain[i, k] > 0:
                use = k * slot.need[i] / np.maximum(total, 1.0)
                index = np.concatenate([[i], np.arange(jobs, count)]).astype(np.int32)
                h.addCol(float(slot.gain[i, k]), 0.0, 1.0, len(index), index, np.concatenate([[1.0], use]))
                names.append((i, k))
    sizes, best = np.zeros(jobs, np.int64), np.zeros(jobs)
    if not names:
        return sizes
    h.changeObjectiveSense(highspy.ObjSense.kMaximize)
    h.run()
    for (i, k), x in zip(names, list(h.getSolution().col_value), strict=True):
        if x > 1e-9 and x * slot.gain[i, k] > best[i]:
            best[i], sizes[i] = x * slot.gain[i, k], k
    return sizes


def paper(slot: Slot, rng: np.random.Generator, tries: int = 10) -> Rounded:
    """Algorithm 2 with u_b = tries: the first rounding worth a third of the LP (Theorem 8), else the last."""
    sizes = ring_sizes(slot)
    keep = np.arange(slot.widest + 1) == sizes[:, None]
    keep[:, 0] = True
    fixed = replace(slot, gain=np.where(keep, slot.gain, -np.inf))
    found = relax(fixed, [])
    raw = no_rings(slot)
    for _ in range(tries):
        raw = _draw(slot, found, rng)
        if worth(slot, raw) >= found.value / 3:
            break
    rings = _strict(slot, raw, found)
    room, links = excess(slot, raw)
    return Rounded(
        rings=rings, value=worth(slot, rings), raw=raw, raw_value=worth(slot, raw), raw_room=room, raw_links=links,
        lp=found.value,
    )  # fmt: skip


def _draw(slot: Slot, found: Relaxed, rng: np.random.Generator) -> Rings:
    """Each job takes mapping k with probability φ_k, none with the rest."""
    raw = no_rings(slot)
    dice = rng.random(slot.jobs)
    for c in range(len(found.job)):
        i, share = int(found.job[c]), float(found.share[c])
        if dice[i] >= 0 and share > 1e-9:
            dice[i] -= share
            if dice[i] < 0:
                _set(raw, i, found.columns[c])
    return raw


def _set(rings: Rings, i: int, column: tuple[Ints, Ints]) -> None:
    servers, workers = column
    rings.server[i, : len(servers)], rings.workers[i, : len(servers)] = servers, workers
    rings.size[i] = workers.sum()


def _strict(slot: Slot, raw: Rings, found: Relaxed) -> Rings:
    """Discards what does not fit, the most valuable rings first in line; then tries other mappings by their share."""
    facts, left, mine = facts_of(slot), left_of(slot), rings_of(no_rings(slot))
    rings = Rings(server=mine[0], workers=mine[1], size=mine[2])
    gain: Floats = slot.gain[np.arange(slot.jobs), raw.size]
    chosen = [
        (int(i), (raw.server[i][raw.server[i] >= 0], raw.workers[i][raw.server[i] >= 0]))
        for i in np.argsort(-gain)
    ]
    others = [
        (int(found.job[c]), found.columns[c]) for c in np.argsort(-found.share) if found.share[c] > 1e-9
    ]
    for i, column in [*chosen, *others]:
        if rings.size[i] or not len(column[0]):
            continue
        _set(rings, i, column)
        book(facts, left, mine, i, 1)
        if not all((part >= 0).all() for part in left):
            book(facts, left, mine, i, -1)
            clear(mine, i)
    return rings
