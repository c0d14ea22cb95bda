"""Unit prices as arms of a bandit: Algorithm 1 of DPS, its variant without a free stage, and two simpler learners.

R = K + M kinds, A arms. Kinds of the second group follow those of the first: kind m is row K + m.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.occupancy import commit, plan
from tradewind.systems.dps.kernels.place import next_uniform
from tradewind.systems.dps.kernels.sales import (
    ACCEPTED,
    REFUSED_CAPACITY,
    Outcome,
    Sales,
    has_room,
    outcome,
)

UCB = 0
"""The paper's rewards (4)-(5)."""
WINDOW = 1
"""TOP-like, our own adaptation: mean revenue of each price over the last offers of its kind."""
UNIFORM = 2
"""Prices drawn from [0, 1]."""

MEMORY = 200
"""Offers of a kind in the window."""
UNTRIED = 1e300
"""Reward of a price that was not offered within the window: it is tried first."""
NO_ARM = -1
NO_PRICE = -1.0


class Arms(NamedTuple):
    """State of the bandit."""

    grid: Floats
    """(R, A) candidate prices delta (1 + delta)^z in [0, 1] of each kind; NO_PRICE fills the shorter rows."""
    used: Floats
    """(R, A) times a price was offered."""
    sold: Floats
    """(R, A) items sold at it (or their revenue in the window)."""
    idle_sum: Floats
    """(R,) sum of T - tau over completed bundles; `idle_n` is their number."""
    idle_n: Floats
    met: Floats
    """(R,) arrivals so far."""
    ring: Ints
    """(R, MEMORY) arms of the last offers, or NO_ARM."""
    worth: Floats
    """(R, MEMORY) their revenues."""
    turn: Ints
    """(R,) offers so far."""
    pending: Ints
    """(4,) row and arm of each of the two prices that wait for an answer; NO_ARM for free or random offers."""
    state: NDArray[np.uint64]
    """(1,) state of the random numbers."""


class BanditSettings(NamedTuple):
    """Known before the first arrival: expected arrivals (R,), items (R,), free arrivals (R,), horizon in slots, mode."""

    expected: Floats
    items: Floats
    free: Floats
    slots: float
    mode: int


def price_grid(delta: float) -> Floats:
    """delta (1 + delta)^z up to 1 for z >= 0. In the paper z runs over all integers, which never ends."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}; it must lie between 0 and 1")
    count = math.floor(-math.log(delta) / math.log1p(delta) + 1e-9) + 1
    return np.asarray(delta * (1.0 + delta) ** np.arange(count))


def price_grids(deltas: Floats) -> Floats:
    """The price grid of each kind (R, A), for the step of each kind (R,)."""
    rows = [price_grid(float(delta)) for delta in deltas]
    table: Floats = np.full((len(rows), max(len(row) for row in rows)), NO_PRICE)
    for each, row in zip(table, rows, strict=True):
        each[: len(row)] = row
    return table


def free_share(slots: float, items: Floats, expected: Floats) -> Floats:
    """theta (R,) as printed, (T C log n)^(2/3) / n; far above 1 at the paper's sizes, so every bundle is free."""
    n = np.maximum(expected, 2.0)
    return np.asarray((slots * items * np.log(n)) ** (2.0 / 3.0) / n)


def grid_step(slots: float, items: Floats, expected: Floats) -> Floats:
    """delta of Theorem 2 for each kind (R,), (T C)^(-1/3) (log n)^(2/3), below 1."""
    n = np.maximum(expected, 2.0)
    step = (slots * np.maximum(items, 1.0)) ** (-1.0 / 3.0) * np.log(n) ** (2.0 / 3.0)
    return np.asarray(np.minimum(step, 0.99))


def new_arms(grid: Floats, seed: int) -> Arms:
    """A bandit before the first arrival; grid (R, A)."""
    kinds, table = len(grid), np.zeros_like(grid)
    return Arms(
        grid=grid,
        used=table,
        sold=table.copy(),
        idle_sum=np.zeros(kinds),
        idle_n=np.zeros(kinds),
        met=np.zeros(kinds),
        ring=np.full((kinds, MEMORY), NO_ARM, dtype=np.int64),
        worth=np.zeros((kinds, MEMORY)),
        turn=np.zeros(kinds, dtype=np.int64),
        pending=np.full(4, NO_ARM, dtype=np.int64),
        state=np.array([np.uint64(seed)], dtype=np.uint64),
    )


@kernel
def count_arrival(arms: Arms, settings: BanditSettings, a: int, b: int) -> bool:
    """Count an arrival of the two kinds (rows a and b); return whether it is free of charge (Algorithm 1, line 2)."""
    arms.met[a] += 1.0
    arms.met[b] += 1.0
    return bool(arms.met[a] <= settings.free[a] or arms.met[b] <= settings.free[b])


@kernel
def offer_free(arms: Arms) -> None:
    """Make the pending offer free of charge: its answer says nothing about prices."""
    arms.pending[:] = NO_ARM


@kernel
def offer(arms: Arms, settings: BanditSettings, a: int, b: int) -> tuple[float, float]:
    """Post unit prices for the two kinds, lines 9-10."""
    arms.pending[0], arms.pending[2] = a, b
    if settings.mode == UNIFORM:
        arms.pending[1] = arms.pending[3] = NO_ARM
        return next_uniform(arms.state), next_uniform(arms.state)
    arm_a, arm_b = _best(arms, settings, a), _best(arms, settings, b)
    arms.pending[1], arms.pending[3] = arm_a, arm_b
    return float(arms.grid[a, arm_a]), float(arms.grid[b, arm_b])


@kernel
def observe_answer(arms: Arms, settings: BanditSettings, accepted: bool, d_a: int, d_b: int) -> None:
    """(9)-(10): learn from the answer to the pending prices, given the items requested."""
    for at, items in ((0, d_a), (2, d_b)):
        row, arm = arms.pending[at], arms.pending[at + 1]
        sold = items if accepted else 0
        if settings.mode == WINDOW:
            _slide(arms, row, arm, sold)
        if arm != NO_ARM:
            arms.used[row, arm] += 1.0
            arms.sold[row, arm] += sold
    arms.pending[:] = NO_ARM


@kernel
def observe_completion(arms: Arms, settings: BanditSettings, a: int, b: int, runtime: int) -> None:
    """(11)-(12): learn from the runtime of a completed bundle."""
    for row in (a, b):
        arms.idle_sum[row] += settings.slots - runtime
        arms.idle_n[row] += 1.0


@kernel
def _best(arms: Arms, settings: BanditSettings, row: int) -> int:
    """The arm with the highest reward; the lower price on a tie."""
    eta = math.log(max(2.0, settings.expected[row]))
    n = arms.idle_n[row]
    mean = arms.idle_sum[row] / n if n > 0.0 else 0.0
    # (14): before the first completion the printed bound would be log n slots; use the horizon instead.
    idle = mean + eta / (1.0 + n) + math.sqrt(eta * mean / (1.0 + n)) if n > 0.0 else settings.slots
    best, best_value = 0, -1.0
    span = float(min(arms.turn[row], MEMORY))
    for j in range(arms.grid.shape[1]):
        used, price = arms.used[row, j], arms.grid[row, j]
        if price < 0.0:
            break
        q = arms.sold[row, j] / used if used > 0.0 else 0.0
        if settings.mode == UCB:
            # (4), (7), (13)
            upper = q + eta / (1.0 + used) + math.sqrt(eta * q / (1.0 + used))
            value = price * min(settings.expected[row] * upper, settings.items[row] * idle)
        else:
            value = (
                UNTRIED if used == 0.0 else price * q * (1.0 + math.sqrt(0.5 * math.log(1.0 + span) / used))
            )
        if value > best_value:
            best, best_value = j, value
    return best


@kernel
def _slide(arms: Arms, row: int, arm: int, items: int) -> None:
    """Drop the offer that leaves the window of the last MEMORY offers from the counts of its kind."""
    at = arms.turn[row] % MEMORY
    old = arms.ring[row, at]
    if old != NO_ARM:
        arms.used[row, old] -= 1.0
        arms.sold[row, old] -= arms.worth[row, at]
    arms.ring[row, at], arms.worth[row, at] = arm, float(items)
    arms.turn[row] += 1


def simulate_arms(sales: Sales, arms: Arms, settings: BanditSettings) -> Outcome:
    """Run a bandit over a market; both are changed."""
    _simulate(sales, arms, settings)
    return outcome(sales)


@kernel
def _simulate(sales: Sales, arms: Arms, settings: BanditSettings) -> None:
    stream, occupancy, rule = sales.stream, sales.occupancy, sales.rule
    payment, answer, runtime = sales.payment, sales.answer, sales.runtime
    kinds_k = occupancy.free_k.shape[0]
    for i in range(payment.shape[0]):
        # Learn from the bundles that ended before this arrival, and then release them.
        for t in range(occupancy.head[1], stream.arrive[i]):
            done = occupancy.ends[t]
            while done >= 0:
                observe_completion(arms, settings, stream.k[done], kinds_k + stream.m[done], runtime[done])
                done = occupancy.after[done]
        a, b = stream.k[i], kinds_k + stream.m[i]
        free = count_arrival(arms, settings, a, b)
        # Paper: lines 2-6 check no capacity, so line 16 of Algorithm 2 would be undefined; here free jobs need room too.
        if not has_room(occupancy, stream, i):
            answer[i] = REFUSED_CAPACITY
            continue
        if free:
            offer_free(arms)
        else:
            p_a, p_b = offer(arms, settings, a, b)
            payment[i] = p_a * stream.d_k[i] + p_b * stream.d_m[i]
            observe_answer(arms, settings, payment[i] <= sales.budget[i], stream.d_k[i], stream.d_m[i])
        if free or payment[i] <= sales.budget[i]:
            count, tau = plan(occupancy, stream, i, rule)
            commit(occupancy, stream, i, count, tau)
            answer[i], runtime[i] = ACCEPTED, tau
