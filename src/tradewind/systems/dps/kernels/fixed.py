"""Fixed payments: one simulation, and the best fixed unit prices in hindsight.

The search is deliberately strong (full simulations, several starts): a weak reference flatters every policy.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.occupancy import (
    Cluster,
    Occupancy,
    Stream,
    commit,
    empty_occupancy,
    plan,
    reset,
)
from tradewind.systems.dps.kernels.place import WORST_FIT
from tradewind.systems.dps.kernels.sales import (
    ACCEPTED,
    REFUSED_CAPACITY,
    Outcome,
    Sales,
    has_room,
    new_sales,
    outcome,
)


class Search(NamedTuple):
    """Effort of a search: ascents from flat unit prices, one that polishes the best of them, and `kicks` that perturb it.

    steps and rounds: sizes of the multiplicative steps and passes of the first ascents; polish: step sizes of the later
    ones (empty: none). The defaults are strong: five short starts and one kick take 60% of the time and find 0.3% less.
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
"""A search of about two seconds, for reports and quick studies, which say so."""
_POLISH_ROUNDS = 8


class _Ascent(NamedTuple):
    """The part of a search that the compiled ascent needs; one type whatever the lengths of the lists."""

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


def simulate_payments(sales: Sales, payment: Floats) -> Outcome:
    """Offer each bundle its payment (N,) if it fits; it is accepted if the budget allows."""
    sales.payment[:] = payment
    _simulate(sales)
    return outcome(sales)


@kernel
def _simulate(sales: Sales) -> None:
    stream, occupancy, rule = sales.stream, sales.occupancy, sales.rule
    payment, budget, answer, runtime = sales.payment, sales.budget, sales.answer, sales.runtime
    for i in range(payment.shape[0]):
        if not has_room(occupancy, stream, i):
            answer[i] = REFUSED_CAPACITY
        elif payment[i] <= budget[i]:
            count, tau = plan(occupancy, stream, i, rule)
            commit(occupancy, stream, i, count, tau)
            answer[i], runtime[i] = ACCEPTED, tau


def best_fixed_prices(
    stream: Stream, cluster: Cluster, budget: Floats, search: Search, begin: FixedPrices | None = None
) -> FixedPrices:
    """The best unit prices found by coordinate ascent; every trial is a full simulation with the true budgets.

    With `begin` the search improves those prices instead of starting from flat levels.
    """
    longest = max(1.0, float(np.median(stream.spread))) if len(budget) else 1.0
    ratio = np.log(np.maximum(stream.spread, 1) / longest)
    sales = new_sales(stream, cluster, budget, search.rule)
    empty = empty_occupancy(stream, cluster)
    kinds_k, kinds_m = len(cluster.idle_k), len(cluster.idle_m)
    rng = np.random.default_rng(search.seed)
    ascent = _Ascent(search.with_runtime, search.rounds, search.patience)
    best = np.zeros(kinds_k + kinds_m + 1)
    profit, spent = -1.0, 0
    if begin is not None:
        best[:] = np.concatenate([np.log(begin.p_k), np.log(begin.p_m), [begin.power]])
    for level in search.levels if begin is None else ():
        log_p = np.zeros_like(best)
        log_p[:-1] = np.minimum(0.0, np.log(level) + search.jitter * rng.standard_normal(kinds_k + kinds_m))
        value, used = _ascend(sales, empty, ratio, log_p, np.array(search.steps), ascent)
        spent += used
        if value > profit:
            profit, best = float(value), log_p
    finish = search.polish or (search.steps[1:] if begin is not None else ())
    long = ascent._replace(rounds=_POLISH_ROUNDS)
    for kick in range(1 + search.kicks if finish else 0):
        log_p = best.copy()
        if kick:
            jolt = search.jitter * rng.standard_normal(kinds_k + kinds_m)
            log_p[:-1] = np.minimum(0.0, best[:-1] + jolt)
        value, used = _ascend(sales, empty, ratio, log_p, np.array(finish), long)
        spent += used
        if value > profit:
            profit, best = float(value), log_p
    p = np.exp(best[:-1])
    return FixedPrices(p[:kinds_k], p[kinds_k:], float(best[-1]), profit, spent)


def printed_prices(stream: Stream, cluster: Cluster, budget: Floats, slots: int) -> FixedPrices:
    """The prices that maximise the right-hand side of (3), workers and servers apart: (4)-(5) with everything known.

    Each type maximises its own min(n p Q(p), p C (T - E tau)) on a grid of 200 prices. Whether a job accepts depends on both
    prices, so types answer each other's prices in turn, until none moves or for 30 turns.
    """
    groups = ((stream.k, stream.d_k, cluster.idle_k), (stream.m, stream.d_m, cluster.idle_m))
    prices = [np.full(len(idle), 0.5) for _, _, idle in groups]
    grid = np.arange(1, 201) / 200
    for _ in range(30):
        before = np.concatenate(prices)
        for own, (kind, items, idle) in enumerate(groups):
            other_kind, other_items, _ = groups[1 - own]
            rest = budget - prices[1 - own][other_kind] * other_items
            for each in np.unique(kind):
                mine = kind == each
                sold = (grid[:, None] * items[mine] <= rest[mine]) @ items[mine]  # n Q(p)
                most = float(idle[each].sum()) * (slots - float(stream.spread[mine].mean()))
                prices[own][each] = grid[int(np.argmax(grid * np.minimum(sold, most)))]
        if np.array_equal(before, np.concatenate(prices)):
            break
    sales = new_sales(stream, cluster, budget, WORST_FIT)
    found = FixedPrices(prices[0], prices[1], 0.0, 0.0, 0)
    return found._replace(profit=simulate_payments(sales, fixed_payments(stream, found)).profit)


def fixed_payments(stream: Stream, prices: FixedPrices) -> Floats:
    """p_k d_k + p_m d_m per bundle (N,), each price times (spread runtime / median)^power and at most 1."""
    median = max(1.0, float(np.median(stream.spread))) if len(stream.spread) else 1.0
    factor = (np.maximum(stream.spread, 1) / median) ** prices.power
    unit_k = np.minimum(prices.p_k[stream.k] * factor, 1.0)
    unit_m = np.minimum(prices.p_m[stream.m] * factor, 1.0)
    return np.asarray(unit_k * stream.d_k + unit_m * stream.d_m)


@kernel
def _ascend(
    sales: Sales, empty: Occupancy, ratio: Floats, log_p: Floats, steps: Floats, ascent: _Ascent
) -> tuple[float, int]:
    """Pattern search: for each step size, move a coordinate or a group while profit grows; `log_p` is overwritten.

    The groups are all prices, all of the first kinds, all of the second kinds, and the two against each other.
    """
    trial = np.empty_like(log_p)
    best = _trial(sales, empty, ratio, log_p)
    used = 1
    kinds_k = empty.free_k.shape[0]
    moves = log_p.shape[0] + 4
    for _ in range(ascent.rounds):
        before = best
        for step in steps:
            for c in range(moves):
                if c == log_p.shape[0] - 1 and not ascent.with_runtime:
                    continue
                for sign in (1.0, -1.0):
                    gained = False
                    while True:
                        _move(log_p, trial, c, sign * step, kinds_k)
                        value = _trial(sales, empty, ratio, trial)
                        used += 1
                        if value <= best:
                            break
                        best = value
                        log_p[:] = trial
                        gained = True
                    if gained:
                        break
        if best <= before * (1.0 + ascent.patience):
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
def _trial(sales: Sales, empty: Occupancy, ratio: Floats, log_p: Floats) -> float:
    """Profit of one price vector (K + M + 1,): logs of the prices, then the power of the runtime."""
    stream, payment = sales.stream, sales.payment
    kinds_k = empty.free_k.shape[0]
    p = np.exp(log_p[:-1])
    power = log_p[-1]
    for i in range(payment.shape[0]):
        a, b = p[stream.k[i]], p[kinds_k + stream.m[i]]
        if power != 0.0:
            factor = np.exp(power * ratio[i])
            a, b = min(a * factor, 1.0), min(b * factor, 1.0)
        payment[i] = a * stream.d_k[i] + b * stream.d_m[i]
    reset(sales.occupancy, empty)
    return _profit(sales.occupancy, stream, payment, sales.budget, sales.rule)


@kernel
def _profit(occupancy: Occupancy, stream: Stream, payment: Floats, budget: Floats, rule: int) -> float:
    """Profit of `_simulate` without its records."""
    profit = 0.0
    for i in range(payment.shape[0]):
        # A customer who would decline changes nothing, so skip the release and the search for room.
        if payment[i] <= budget[i] and has_room(occupancy, stream, i):
            count, tau = plan(occupancy, stream, i, rule)
            commit(occupancy, stream, i, count, tau)
            profit += payment[i]
    return profit
