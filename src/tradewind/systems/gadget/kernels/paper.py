"""LP-RS-MDE as printed (Algorithm 2), and its rounding made strictly feasible.

0. Most workers ⌈q_i⌉ of every job: (10) with (2), (4) and (11) relaxed to fractions, so that only the totals of the
   resources limit it. Γ is the largest of them (Lemma 7).
1. Ring sizes up to ⌈q_i⌉ from the LP relaxation of (12). Its flow equations (15) are satisfied by zero flow when every
   worker is spread alike, so the LP is a knapsack of total resources; it is solved as that (equal by the test on small
   slots).
2. The augmented LP with these sizes: the convex hull of valid mappings, here by column generation over rings, whose
   shares are the mapping probabilities.
3. Randomised rounding, again until the rings are worth a third of the LP and use at most β^r of every server and γ of
   every link (lines 2 and 7, Theorem 8), at most u_b times. It over-allocates; the raw violation is reported.
4. Not in the paper: rings that do not fit are discarded, then other mappings of the jobs without a ring are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.gadget.kernels.columns import Relaxed, relax
from tradewind.systems.gadget.kernels.gains import envelope
from tradewind.systems.gadget.kernels.guarantee import ALPHA, Violations, overuse, violations
from tradewind.systems.gadget.kernels.pack import reserve_if_it_fits
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings, worth
from tradewind.systems.gadget.kernels.state import demand_of, scratch_of, state_of

LEAST_SHARE = 1e-9
"""Columns of an LP with a smaller share are not selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """The end of Algorithm 2.

    rings      that fit, and their worth `value`
    raw        the rounding before repair, with its worth and its use / capacity of servers and of links
    allowed    what the theorem lets it use
    lp         value of the augmented LP
    widest     Γ: the largest ⌈q_i⌉
    roundings  that were drawn, and whether the last met the three limits of line 7
    """

    rings: Rings
    value: float
    raw: Rings
    raw_value: float
    raw_room: float
    raw_links: float
    allowed: Violations
    lp: float
    widest: int
    roundings: int
    met: bool


def most_workers(slot: Slot, fine: Floats) -> Ints:
    """(I,) ⌈q_i⌉ of the relaxation of (10), in which whole servers and rings do not matter; 0 where a job gets nothing.

    fine (I, parts N + 1): worth of every fraction of a worker. Where it is not concave, its envelope is taken, which has
    the same optimum up to one job per resource. A job with a least number of workers is allowed that number, which (10)
    does not have.
    """
    parts = (fine.shape[1] - 1) // slot.widest
    total = np.maximum(slot.room.sum(0).astype(np.float64), 1.0)
    program, owner = Program(), list[int]()
    for i, row in enumerate(fine):
        slopes = np.diff(envelope(np.maximum.accumulate(row)))
        for slope, length in zip(*np.unique(slopes[slopes > 0], return_counts=True), strict=True):
            program.column(float(slope) * parts, float(length) / parts)
            owner.append(i)
    if not owner:
        return np.zeros(slot.jobs, np.int64)
    for r in range(slot.need.shape[1]):
        share = slot.need[owner, r] / total[r]
        program.row(-INFINITY, 1.0, [(c, float(v)) for c, v in enumerate(share) if v > 0])
    q = np.bincount(owner, program.solve(quiet_solver(seed=7), maximise=True).columns, slot.jobs)
    least = np.argmax(slot.gain > 0, axis=1)
    most: Ints = np.where(q > LEAST_SHARE, np.maximum(np.ceil(q - LEAST_SHARE), least), 0).astype(np.int64)
    return most


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


def paper(slot: Slot, rng: np.random.Generator, tries: int = 10, most: Ints | None = None) -> Rounded:
    """Algorithm 2 with u_b = tries; most (I,): ⌈q_i⌉ of `most_workers`, by default the widest ring."""
    if most is None:
        most = np.full(slot.jobs, slot.widest)
    sizes = ring_sizes(slot._replace(gain=np.where(_sizes(slot) > most[:, None], -np.inf, slot.gain)))
    keep = (_sizes(slot) == sizes[:, None]) | (_sizes(slot) == 0)
    found = relax(slot._replace(gain=np.where(keep, slot.gain, -np.inf)), [])
    allowed = violations(slot, sizes)
    raw, met, draws = no_rings(slot), False, 0
    while not met and draws < tries:
        raw, draws = _draw(slot, found, rng), draws + 1
        room, links = overuse(slot, raw)
        met = bool(
            worth(slot, raw) >= ALPHA * found.value
            and (room <= allowed.beta).all()
            and links <= allowed.gamma
        )
    rings = fitting(slot, raw, _mappings(found))
    room, links = overuse(slot, raw)
    return Rounded(
        rings=rings, value=worth(slot, rings), raw=raw, raw_value=worth(slot, raw), raw_room=float(room.max(initial=0.0)),
        raw_links=links, allowed=allowed, lp=found.value, widest=int(most.max(initial=0)), roundings=draws, met=met,
    )  # fmt: skip


def _sizes(slot: Slot) -> Ints:
    """(N + 1,) all ring sizes."""
    return np.arange(slot.widest + 1)


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


def fitting(slot: Slot, raw: Rings, others: Sequence[tuple[int, tuple[Ints, Ints]]] = ()) -> Rings:
    """The rings that fit, the most valuable first; then, for jobs without one, the others (job, servers and workers)."""
    state = state_of(slot, no_rings(slot), demand_of(slot), scratch_of(slot))
    gain: Floats = slot.gain[np.arange(slot.jobs), raw.size]
    chosen = [
        (int(i), (raw.server[i][raw.server[i] >= 0], raw.workers[i][raw.server[i] >= 0]))
        for i in np.argsort(-gain)
    ]
    for i, column in [*chosen, *others]:
        if not state.rings.size[i] and len(column[0]):
            _set(state.rings, i, column)
            reserve_if_it_fits(state, i)
    return state.rings


def _mappings(found: Relaxed) -> list[tuple[int, tuple[Ints, Ints]]]:
    """Job and ring of all mappings with a share, the largest first."""
    return [
        (int(found.job[c]), found.columns[c])
        for c in np.argsort(-found.share)
        if found.share[c] > LEAST_SHARE
    ]
