"""LP-RS-MDE as printed (Algorithm 2), and its rounding made strictly feasible.

1. Ring sizes from the LP relaxation of (12). Its flow equations (15) are satisfied by zero flow when every worker is
   spread alike, so the LP is a knapsack of total resources; it is solved as that (equal by the test on small slots).
2. The augmented LP with these sizes: the convex hull of valid mappings, here by column generation over rings, whose
   shares are the mapping probabilities.
3. Randomised rounding. It over-allocates; the raw violation is reported.
4. Not in the paper: rings that do not fit are discarded, then other mappings of the jobs without a ring are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.gadget.kernels.columns import Relaxed, relax
from tradewind.systems.gadget.kernels.pack import reserve_if_it_fits
from tradewind.systems.gadget.kernels.slot import Rings, Slot, excess, no_rings, worth
from tradewind.systems.gadget.kernels.state import demand_of, scratch_of, state_of

LEAST_SHARE = 1e-9
"""Columns of an LP with a smaller share are not selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """Rings that fit; raw: the rounding before repair, with its worth and its use / capacity of servers and of links."""

    rings: Rings
    value: float
    raw: Rings
    raw_value: float
    raw_room: float
    raw_links: float


def ring_sizes(slot: Slot) -> Ints:
    """(I,) κ_i = argmax π_iκ χ_iκ over the LP relaxation of (12); 0 where no ring is selected."""
    jobs, resources = slot.need.shape
    total = np.maximum(slot.room.sum(0).astype(np.float64), 1.0)
    names = [(i, k) for i in range(jobs) for k in range(1, slot.widest + 1) if slot.gain[i, k] > 0]
    sizes, best = np.zeros(jobs, np.int64), np.zeros(jobs)
    if not names:
        return sizes
    program, own = Program(), [list[Entry]() for _ in range(jobs)]
    for i, k in names:
        own[i].append((program.column(float(slot.gain[i, k]), 1.0), 1.0))
    for entries in own:
        program.row(-INFINITY, 1.0, entries)
    for r in range(resources):
        use = [(c, float(k * slot.need[i, r] / total[r])) for c, (i, k) in enumerate(names)]
        program.row(-INFINITY, 1.0, use)
    found = program.solve(quiet_solver(seed=7), maximise=True)
    for (i, k), x in zip(names, found.columns.tolist(), strict=True):
        if x > LEAST_SHARE and x * slot.gain[i, k] > best[i]:
            best[i], sizes[i] = x * slot.gain[i, k], k
    return sizes


def paper(slot: Slot, rng: np.random.Generator, tries: int = 10) -> Rounded:
    """Algorithm 2 with u_b = tries: the first rounding worth a third of the LP (Theorem 8), else the last."""
    sizes = ring_sizes(slot)
    keep = np.arange(slot.widest + 1) == sizes[:, None]
    keep[:, 0] = True
    fixed = slot._replace(gain=np.where(keep, slot.gain, -np.inf))
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
    )  # fmt: skip


def _draw(slot: Slot, found: Relaxed, rng: np.random.Generator) -> Rings:
    """Draw mapping k of each job with probability φ_k, and none otherwise."""
    raw = no_rings(slot)
    dice = rng.random(slot.jobs)
    for c in range(len(found.job)):
        i, share = int(found.job[c]), float(found.share[c])
        if dice[i] >= 0 and share > LEAST_SHARE:
            dice[i] -= share
            if dice[i] < 0:
                _set(raw, i, found.columns[c])
    return raw


def _set(rings: Rings, i: int, column: tuple[Ints, Ints]) -> None:
    servers, workers = column
    rings.server[i, : len(servers)], rings.workers[i, : len(servers)] = servers, workers
    rings.size[i] = workers.sum()


def _strict(slot: Slot, raw: Rings, found: Relaxed) -> Rings:
    """Keep the rings that fit, the most valuable first; then try other mappings by their share."""
    state = state_of(slot, no_rings(slot), demand_of(slot), scratch_of(slot))
    gain: Floats = slot.gain[np.arange(slot.jobs), raw.size]
    chosen = [
        (int(i), (raw.server[i][raw.server[i] >= 0], raw.workers[i][raw.server[i] >= 0]))
        for i in np.argsort(-gain)
    ]
    others = [
        (int(found.job[c]), found.columns[c])
        for c in np.argsort(-found.share)
        if found.share[c] > LEAST_SHARE
    ]
    for i, column in [*chosen, *others]:
        if not state.rings.size[i] and len(column[0]):
            _set(state.rings, i, column)
            reserve_if_it_fits(state, i)
    return state.rings
