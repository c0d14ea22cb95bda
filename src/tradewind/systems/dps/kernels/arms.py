"""Unit prices as arms of a bandit: Algorithm 1 of DPS, its variant without a free stage, and two simpler learners.

R = K + M kinds, A arms. Kinds of the second group follow those of the first: kind m is row K + m.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.books import (
    Books,
    Cluster,
    Stream,
    commit,
    fits,
    open_books,
    plan,
    release_before,
)
from tradewind.systems.dps.kernels.fixed import ACCEPTED, REFUSED_CAPACITY, Outcome
from tradewind.systems.dps.kernels.place import next_uniform

UCB = 0
"""The paper's rewards (4)-(5)."""
WINDOW = 1
"""TOP-like: the mean revenue of each price over the last offers of its kind; our own adaptation of an idea."""
UNIFORM = 2
"""Prices drawn from [0, 1]."""

MEMORY = 200
"""Offers of a kind that the window remembers."""


class Arms(NamedTuple):
    """State of the learner."""

    grid: Floats
    """(A,) candidate prices delta (1 + delta)^z in [0, 1]."""
    used: Floats
    """(R, A) times a price was offered."""
    sold: Floats
    """(R, A) items sold at it (or their revenue in the window)."""
    idle_sum: Floats
    """(R,) sum of T - tau over completed bundles, and in `idle_n` their number."""
    idle_n: Floats
    met: Floats
    """(R,) arrivals so far."""
    ring: Ints
    """(R, MEMORY) arms of the last offers, -1 where none."""
    worth: Floats
    """(R, MEMORY) their revenues."""
    turn: Ints
    """(R,) offers so far."""
    pending: Ints
    """(4,) row and arm of each of the two prices that wait for an answer; arm -1: free of charge or random."""
    state: NDArray[np.uint64]


class Rules(NamedTuple):
    """What the learner knows beforehand: expected arrivals (R,), items (R,), free arrivals (R,), horizon, and the mode."""

    expected: Floats
    items: Floats
    free: Floats
    slots: float
    mode: int


def price_grid(delta: float) -> Floats:
    """delta (1 + delta)^z up to 1. Paper: z over all integers, which never ends; here z >= 0."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}; it must lie between 0 and 1")
    count = math.floor(-math.log(delta) / math.log1p(delta) + 1e-9) + 1
    return np.asarray(delta * (1.0 + delta) ** np.arange(count))


def free_share(slots: float, items: Floats, expected: Floats) -> Floats:
    """theta (R,) as printed, (T C log n)^(2/3) / n: far above 1 at the paper's sizes, so that every bundle is free."""
    n = np.maximum(expected, 2.0)
    return np.asarray((slots * items * np.log(n)) ** (2.0 / 3.0) / n)


def grid_step(slots: float, items: Floats, expected: Floats) -> float:
    """delta of Theorem 2, (T C)^(-1/3) (log n)^(2/3), averaged over the kinds."""
    n = np.maximum(expected, 2.0)
    return float(np.mean((slots * np.maximum(items, 1.0)) ** (-1.0 / 3.0) * np.log(n) ** (2.0 / 3.0)))


def new_arms(grid: Floats, kinds: int, seed: int) -> Arms:
    """A learner that has seen nothing."""
    table = np.zeros((kinds, len(grid)))
    return Arms(
        grid=grid,
        used=table,
        sold=table.copy(),
        idle_sum=np.zeros(kinds),
        idle_n=np.zeros(kinds),
        met=np.zeros(kinds),
        ring=np.full((kinds, MEMORY), -1, dtype=np.int64),
        worth=np.zeros((kinds, MEMORY)),
        turn=np.zeros(kinds, dtype=np.int64),
        pending=np.full(4, -1, dtype=np.int64),
        state=np.array([np.uint64(seed)], dtype=np.uint64),
    )


@kernel
def meet(arms: Arms, rules: Rules, a: int, b: int) -> bool:
    """Count an arrival of the two kinds (rows a and b); whether it is served free of charge (Algorithm 1, line 2)."""
    arms.met[a] += 1.0
    arms.met[b] += 1.0
    return bool(arms.met[a] <= rules.free[a] or arms.met[b] <= rules.free[b])


@kernel
def ask_free(arms: Arms) -> None:
    """The pending offer is a gift: nothing is learned about prices."""
    arms.pending[:] = -1


@kernel
def ask(arms: Arms, rules: Rules, a: int, b: int) -> tuple[float, float]:
    """Unit prices of the two kinds, lines 9-10."""
    arms.pending[0], arms.pending[2] = a, b
    if rules.mode == UNIFORM:
        arms.pending[1] = arms.pending[3] = -1
        return next_uniform(arms.state), next_uniform(arms.state)
    arm_a, arm_b = _best(arms, rules, a), _best(arms, rules, b)
    arms.pending[1], arms.pending[3] = arm_a, arm_b
    return float(arms.grid[arm_a]), float(arms.grid[arm_b])


@kernel
def hear_answer(arms: Arms, yes: bool, d_a: int, d_b: int) -> None:
    """(9)-(10): the answer to the pending prices, with the items that were asked for."""
    _book(arms, arms.pending[0], arms.pending[1], d_a if yes else 0)
    _book(arms, arms.pending[2], arms.pending[3], d_b if yes else 0)
    arms.pending[:] = -1


@kernel
def complete(arms: Arms, rules: Rules, a: int, b: int, runtime: int) -> None:
    """(11)-(12): a bundle is done and its runtime known."""
    for row in (a, b):
        arms.idle_sum[row] += rules.slots - runtime
        arms.idle_n[row] += 1.0


@kernel
def _best(arms: Arms, rules: Rules, row: int) -> int:
    """The arm with the highest reward; the lower price on a tie."""
    eta = math.log(max(2.0, rules.expected[row]))
    n = arms.idle_n[row]
    mean = arms.idle_sum[row] / n if n > 0.0 else 0.0
    # (14): with nothing completed the radius alone would be a bound of log n slots; the horizon is what is known then.
    idle = mean + eta / (1.0 + n) + math.sqrt(eta * mean / (1.0 + n)) if n > 0.0 else rules.slots
    best, best_value = 0, -1.0
    span = float(min(arms.turn[row], MEMORY))
    for j in range(arms.grid.shape[0]):
        used, price = arms.used[row, j], arms.grid[j]
        q = arms.sold[row, j] / used if used > 0.0 else 0.0
        if rules.mode == UCB:
            # (4), (7), (13)
            upper = q + eta / (1.0 + used) + math.sqrt(eta * q / (1.0 + used))
            value = price * min(rules.expected[row] * upper, rules.items[row] * idle)
        else:
            value = 1e300 if used == 0.0 else price * q * (1.0 + math.sqrt(0.5 * math.log(1.0 + span) / used))
        if value > best_value:
            best, best_value = j, value
    return best


@kernel
def _book(arms: Arms, row: int, arm: int, items: int) -> None:
    """Enter an answer, and in the ring forget the one that falls out of the window."""
    if arm < 0:
        return
    arms.used[row, arm] += 1.0
    arms.sold[row, arm] += items


@kernel
def slide(arms: Arms, row: int, arm: int, items: int) -> None:
    """Keep only the last MEMORY offers of a kind in its counts."""
    at = arms.turn[row] % MEMORY
    old = arms.ring[row, at]
    if old >= 0:
        arms.used[row, old] -= 1.0
        arms.sold[row, old] -= arms.worth[row, at]
    arms.ring[row, at], arms.worth[row, at] = arm, float(items)
    arms.turn[row] += 1


@kernel
def settle_answer(arms: Arms, rules: Rules, yes: bool, d_a: int, d_b: int) -> None:
    """`hear_answer` for every mode: the window also forgets."""
    if rules.mode == WINDOW:
        slide(arms, arms.pending[0], arms.pending[1], d_a if yes else 0)
        slide(arms, arms.pending[2], arms.pending[3], d_b if yes else 0)
    hear_answer(arms, yes, d_a, d_b)


def simulate_arms(
    stream: Stream, cluster: Cluster, budget: Floats, arms: Arms, how: tuple[Rules, int, int]
) -> tuple[Outcome, Floats]:
    """Run a bandit over a stream; how = rules, placement rule, seed of the placement. Outcome and payments asked (N,)."""
    rules, placement, seed = how
    answer = np.zeros(len(budget), dtype=np.int8)
    runtime = np.zeros(len(budget), dtype=np.int64)
    asked = np.zeros(len(budget))
    books = open_books(stream, cluster, seed)
    profit = _trade(books, stream, budget, arms, rules, placement, answer, runtime, asked)
    return Outcome(answer, runtime, float(profit)), asked


@kernel
def _trade(
    books: Books,
    stream: Stream,
    budget: Floats,
    arms: Arms,
    rules: Rules,
    placement: int,
    answer: NDArray[np.int8],
    runtime: Ints,
    asked: Floats,
) -> float:
    profit = 0.0
    kinds_k = books.free_k.shape[0]
    for i in range(budget.shape[0]):
        slot = stream.arrive[i]
        for t in range(books.head[1], slot):
            done = books.ends[t]
            while done >= 0:
                complete(arms, rules, stream.k[done], kinds_k + stream.m[done], runtime[done])
                done = books.after[done]
        release_before(books, stream, slot)
        a, b = stream.k[i], kinds_k + stream.m[i]
        gift = meet(arms, rules, a, b)
        # Paper: lines 2-6 check no capacity, so line 16 of Algorithm 2 would be undefined; here gifts need room too.
        if not fits(books, stream, i):
            answer[i] = REFUSED_CAPACITY
            continue
        yes = gift
        if gift:
            ask_free(arms)
        else:
            p_a, p_b = ask(arms, rules, a, b)
            asked[i] = p_a * stream.d_k[i] + p_b * stream.d_m[i]
            yes = asked[i] <= budget[i]
            settle_answer(arms, rules, yes, stream.d_k[i], stream.d_m[i])
        if yes:
            count, tau = plan(books, stream, i, placement)
            commit(books, stream, i, count, tau)
            answer[i] = ACCEPTED
            runtime[i] = tau
            profit += asked[i]
    return profit
