"""A whole market, compiled: the steps that every simulated seller takes with one request after the other.

These loops are the fast twins of the audited loop, for studies and searches; tests hold the two against each other.
Loops take `occupancy` and `stream` out of `Sales` once and call `plan` and `commit` themselves: nesting these calls deeper
makes a simulation 1.3 to 1.7 times slower.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bytes, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.occupancy import (
    Cluster,
    Occupancy,
    Stream,
    empty_occupancy,
    fits,
    release_before,
)

REFUSED_PRICE = 0
ACCEPTED = 1
REFUSED_CAPACITY = 2


class Sales(NamedTuple):
    """The requests with their budgets, the placement rule, the cluster in use, and what became of each request."""

    stream: Stream
    budget: Floats
    rule: int
    occupancy: Occupancy
    payment: Floats
    """(N,) payment asked, 0 where nothing was asked."""
    answer: Bytes
    """(N,) REFUSED_PRICE, ACCEPTED or REFUSED_CAPACITY."""
    runtime: Ints
    """(N,) runtime in slots of the accepted, else 0."""


class Outcome(NamedTuple):
    """What became of each bundle: answer (N,), runtime in slots or 0 (N,), payment asked (N,); and the sum of payments."""

    answer: Bytes
    runtime: Ints
    payment: Floats
    profit: float


def new_sales(stream: Stream, cluster: Cluster, budget: Floats, rule: int, seed: int = 0) -> Sales:
    """A market before its first request; `seed` is that of random placement."""
    jobs = len(budget)
    return Sales(
        stream=stream,
        budget=budget,
        rule=rule,
        occupancy=empty_occupancy(stream, cluster, seed),
        payment=np.zeros(jobs),
        answer=np.full(jobs, REFUSED_PRICE, dtype=np.int8),
        runtime=np.zeros(jobs, dtype=np.int64),
    )


def outcome(sales: Sales) -> Outcome:
    """The result of a market that was run to its end."""
    return Outcome(sales.answer, sales.runtime, sales.payment, float(_profit(sales)))


@kernel
def _profit(sales: Sales) -> float:
    total = 0.0
    for i in range(sales.payment.shape[0]):
        if sales.answer[i] == ACCEPTED:
            total += sales.payment[i]
    return total


@kernel(inline="always")
def has_room(occupancy: Occupancy, stream: Stream, i: int) -> bool:
    """Release what ended before request i arrived; return whether it fits now."""
    release_before(occupancy, stream, stream.arrive[i])
    return fits(occupancy, stream, i)
