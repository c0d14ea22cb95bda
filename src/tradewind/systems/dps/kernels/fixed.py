"""Posted payments that do not react: one simulation, and the best fixed unit prices in hindsight.

The search is deliberately strong (full simulations, several starts), because a weak yardstick flatters everybody.
"""

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
from tradewind.systems.dps.kernels.place import WORST_FIT

REFUSED_PRICE = 0
ACCEPTED = 1
REFUSED_CAPACITY = 2


class Outcome(NamedTuple):
    """What became of each bundle: answer (N,), runtime in slots or 0 (N,), and the sum of payments."""

    answer: NDArray[np.int8]
    runtime: Ints
    profit: float


class Search(NamedTuple):
    """How hard to look: ascents from flat unit prices, one that polishes the best of them, and `kicks` that shake it.

    steps and rounds: sizes of the multiplicative steps and passes of the first; polish: sizes of the others' (none: no
    polishing). The defaults are strong: five short starts and one kick take 60% of their time and find 0.3% less.
    """

    rule: int
    with_runtime: bool = False
    levels: tuple[float, ...] = (0.35, 0.5, 0.65)
    steps: tuple[float, ...] = (0.3, 0.12, 0.05, 0.02)
    rounds: int = 8
    polish: tuple[float, ...] = (0.12, 0.05, 0.02)
    patience: float = 5e-4
    kicks: int = 4
    jitter: float = 0.12
    seed: int = 0


LIGHT = Search(WORST_FIT, levels=(0.35, 0.5), steps=(0.3, 0.12, 0.05), rounds=4, polish=(), kicks=0)
"""A search of a few seconds."""
QUICK = LIGHT._replace(rounds=2)
"""A search of two seconds or so, for reports and quick studies, which say so."""
_POLISH_ROUNDS = 8


class _Pace(NamedTuple):
    """The part of a search that the compiled ascent needs (one type whatever the lengths of the lists)."""

    rule: int
    with_runtime: bool
    rounds: int
    patience: float


class FixedPrices(NamedTuple):
    """Unit prices per kind (K,), (M,), the power of the runtime in them, their profit and the simulations spent."""

    p_k: Floats
    p_m: Floats
    power: float
    profit: float
    simulations: int


def simulate_payments(
    stream: Stream, cluster: Cluster, payment: Floats, budget: Floats, rule: int, seed: int = 0
) -> Outcome:
    """Offer each bundle its payment (N,) if it fits; it is taken if the budget (N,) allows."""
    answer = np.zeros(len(payment), dtype=np.int8)
    runtime = np.zeros(len(payment), dtype=np.int64)
    profit = _simulate(open_books(stream, cluster, seed), stream, payment, budget, rule, answer, runtime)
    return Outcome(answer, runtime, float(profit))


@kernel
def _simulate(
    books: Books,
    stream: Stream,
    payment: Floats,
    budget: Floats,
    rule: int,
    answer: NDArray[np.int8],
    runtime: Ints,
) -> float:
    profit = 0.0
    for i in range(payment.shape[0]):
        release_before(books, stream, stream.arrive[i])
        if not fits(books, stream, i):
            answer[i] = REFUSED_CAPACITY
        elif payment[i] <= budget[i]:
            count, tau = plan(books, stream, i, rule)
            commit(books, stream, i, count, tau)
            answer[i] = ACCEPTED
            runtime[i] = tau
            profit += payment[i]
    return profit


def best_fixed_prices(
    stream: Stream, cluster: Cluster, budget: Floats, search: Search, begin: FixedPrices | None = None
) -> FixedPrices:
    """The best unit prices found by coordinate ascent, every trial a full simulation with the true budgets.

    With `begin` the search improves these prices instead of starting from the flat levels.
    """
    longest = max(1.0, float(np.median(stream.spread))) if len(budget) else 1.0
    ratio = np.log(np.maximum(stream.spread, 1) / longest)
    books = open_books(stream, cluster)
    clean = open_books(stream, cluster)
    kinds_k, kinds_m = len(cluster.idle_k), len(cluster.idle_m)
    rng = np.random.default_rng(search.seed)
    pace = _Pace(search.rule, search.with_runtime, search.rounds, search.patience)
    best = np.zeros(kinds_k + kinds_m + 1)
    profit, spent = -1.0, 0
    if begin is not None:
        best[:] = np.concatenate([np.log(begin.p_k), np.log(begin.p_m), [begin.power]])
    for level in search.levels if begin is None else ():
        log_p = np.zeros_like(best)
        log_p[:-1] = np.minimum(0.0, np.log(level) + search.jitter * rng.standard_normal(kinds_k + kinds_m))
        value, used = _ascend(books, clean, stream, budget, ratio, log_p, np.array(search.steps), pace)
        spent += used
        if value > profit:
            profit, best = float(value), log_p
    finish = search.polish or (search.steps[1:] if begin is not None else ())
    long = pace._replace(rounds=_POLISH_ROUNDS)
    for kick in range(1 + search.kicks if finish else 0):
        log_p = best.copy()
        if kick:
            jolt = search.jitter * rng.standard_normal(kinds_k + kinds_m)
            log_p[:-1] = np.minimum(0.0, best[:-1] + jolt)
        value, used = _ascend(books, clean, stream, budget, ratio, log_p, np.array(finish), long)
        spent += used
        if value > profit:
            profit, best = float(value), log_p
    p = np.exp(best[:-1])
    return FixedPrices(p[:kinds_k], p[kinds_k:], float(best[-1]), profit, spent)


def fixed_payments(stream: Stream, prices: FixedPrices) -> Floats:
    """p_k d_k + p_m d_m per bundle (N,), each price times (spread runtime / median)^power and at most 1."""
    median = max(1.0, float(np.median(stream.spread))) if len(stream.spread) else 1.0
    factor = (np.maximum(stream.spread, 1) / median) ** prices.power
    unit_k = np.minimum(prices.p_k[stream.k] * factor, 1.0)
    unit_m = np.minimum(prices.p_m[stream.m] * factor, 1.0)
    return np.asarray(unit_k * stream.d_k + unit_m * stream.d_m)


@kernel
def _ascend(
    books: Books,
    clean: Books,
    stream: Stream,
    budget: Floats,
    ratio: Floats,
    log_p: Floats,
    steps: Floats,
    pace: _Pace,
) -> tuple[float, int]:
    """Pattern search: for each step size, move a coordinate or a group while that pays; `log_p` is overwritten.

    The groups are all prices, all of the first kinds, all of the second kinds, and the two against each other.
    """
    payment = np.empty(budget.shape[0])
    trial = np.empty_like(log_p)
    best = _trial(books, clean, stream, budget, ratio, log_p, payment, pace.rule)
    used = 1
    kinds_k = clean.free_k.shape[0]
    moves = log_p.shape[0] + 4
    for _ in range(pace.rounds):
        before = best
        for step in steps:
            for c in range(moves):
                if c == log_p.shape[0] - 1 and not pace.with_runtime:
                    continue
                for sign in (1.0, -1.0):
                    gained = False
                    while True:
                        _move(log_p, trial, c, sign * step, kinds_k)
                        value = _trial(books, clean, stream, budget, ratio, trial, payment, pace.rule)
                        used += 1
                        if value <= best:
                            break
                        best = value
                        log_p[:] = trial
                        gained = True
                    if gained:
                        break
        if best <= before * (1.0 + pace.patience):
            break
    return best, used


@kernel
def _move(log_p: Floats, trial: Floats, move: int, step: float, kinds_k: int) -> None:
    """trial = log_p with one coordinate or one group moved by `step`; prices stay at most 1."""
    trial[:] = log_p
    last = log_p.shape[0] - 1
    if move <= last:
        trial[move] += step
    else:
        up_k = move - last in (1, 2, 4)
        up_m = 1.0 if move - last in (1, 3) else (-1.0 if move - last == 4 else 0.0)
        for c in range(last):
            trial[c] += step * ((1.0 if up_k else 0.0) if c < kinds_k else up_m)
    for c in range(last):
        trial[c] = min(0.0, trial[c])


@kernel
def _trial(
    books: Books,
    clean: Books,
    stream: Stream,
    budget: Floats,
    ratio: Floats,
    log_p: Floats,
    payment: Floats,
    rule: int,
) -> float:
    """Profit of one price vector (K + M + 1,): logs of the prices, then the power of the runtime."""
    kinds_k = clean.free_k.shape[0]
    p = np.exp(log_p[:-1])
    power = log_p[-1]
    for i in range(payment.shape[0]):
        a, b = p[stream.k[i]], p[kinds_k + stream.m[i]]
        if power != 0.0:
            factor = np.exp(power * ratio[i])
            a, b = min(a * factor, 1.0), min(b * factor, 1.0)
        payment[i] = a * stream.d_k[i] + b * stream.d_m[i]
    _reset(books, clean)
    profit = 0.0
    for i in range(payment.shape[0]):
        # Who would say no changes nothing, so only the willing are worth releasing and looking for room.
        if payment[i] <= budget[i]:
            release_before(books, stream, stream.arrive[i])
            if fits(books, stream, i):
                count, tau = plan(books, stream, i, rule)
                commit(books, stream, i, count, tau)
                profit += payment[i]
    return profit


@kernel
def _reset(books: Books, clean: Books) -> None:
    """Back to the empty cluster without allocating."""
    books.free_k[:] = clean.free_k
    books.free_m[:] = clean.free_m
    books.idle_k[:] = clean.idle_k
    books.idle_m[:] = clean.idle_m
    books.ends[:] = -1
    books.chain[:] = clean.chain
    books.head[:] = 0
    books.room.state[:] = clean.room.state
