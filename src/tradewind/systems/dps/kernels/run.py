"""The learner in a whole market, compiled: the twin of the audited loop for studies and searches."""

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
from tradewind.systems.dps.kernels.demand import Prior
from tradewind.systems.dps.kernels.fixed import ACCEPTED, REFUSED_CAPACITY, Outcome
from tradewind.systems.dps.kernels.learner import Arrival, hear, pass_by, quote
from tradewind.systems.dps.kernels.state import Market, Mind, Tuning


def simulate_learner(
    stream: Stream, cluster: Cluster, budget: Floats, mind: Mind, settings: tuple[Tuning, Market, Prior, int]
) -> tuple[Outcome, Floats]:
    """Run the learner over a stream; settings end with the placement rule. Outcome and payments asked (N,), 0 if none."""
    answer = np.zeros(len(budget), dtype=np.int8)
    runtime = np.zeros(len(budget), dtype=np.int64)
    asked = np.zeros(len(budget))
    tuning, market, prior, rule = settings
    books = open_books(stream, cluster)
    profit = _trade(books, stream, budget, mind, tuning, market, prior, rule, answer, runtime, asked)
    return Outcome(answer, runtime, float(profit)), asked


@kernel
def _trade(
    books: Books,
    stream: Stream,
    budget: Floats,
    mind: Mind,
    tuning: Tuning,
    market: Market,
    prior: Prior,
    rule: int,
    answer: NDArray[np.int8],
    runtime: Ints,
    asked: Floats,
) -> float:
    profit = 0.0
    for i in range(budget.shape[0]):
        slot = stream.arrive[i]
        release_before(books, stream, slot)
        k, m = stream.k[i], stream.m[i]
        room = fits(books, stream, i)
        count, tau = plan(books, stream, i, rule) if room else (0, stream.spread[i])
        it = Arrival(
            k, m, stream.d_k[i], stream.d_m[i], slot, tau, stream.spread[i], books.idle_k[k], books.idle_m[m]
        )
        if not room:
            answer[i] = REFUSED_CAPACITY
            pass_by(mind, tuning, market, prior, it)
            continue
        asked[i] = quote(mind, tuning, market, prior, it).payment
        if asked[i] <= 0.0:
            answer[i] = REFUSED_CAPACITY
            continue
        yes = asked[i] <= budget[i]
        if yes:
            commit(books, stream, i, count, tau)
            answer[i] = ACCEPTED
            runtime[i] = tau
            profit += asked[i]
        hear(mind, tuning, market, prior, yes)
    return profit
