"""The data of one bidder's problem (7): the task, the capacity on sale at its prices, and what can be offered.

`TrainingTask` and `Market` are named tuples, so compiled kernels take them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tradewind.model.arrays import Floats, Ints

ANY_NUMBER = 1 << 40
"""More workers than any network holds."""


class TrainingTask(NamedTuple):
    """What a bidder asks for.

    worker, server  (K,) milli-units of one worker and of the parameter server
    data            (R,) chunks per site
    rate, need      a worker trains rate / need chunks in a slot (P and E, both times 1000)
    chunk_bytes     theta
    traffic_bytes   lambda, per slot and worker away from its server
    most            maximum number of workers in a slot
    """

    worker: Ints
    server: Ints
    data: Ints
    rate: int
    need: int
    chunk_bytes: int
    traffic_bytes: int
    most: int = ANY_NUMBER

    @property
    def per_worker(self) -> int:
        """Chunks that a worker trains in a slot if that is a whole number, else 0."""
        return self.rate // self.need if self.rate % self.need == 0 else 0

    @property
    def units(self) -> int:
        """Steps of the dynamic program: workers where a worker trains whole chunks, else chunks."""
        total = int(self.data.sum())
        return -(-total // self.per_worker) if self.per_worker else total


class Market(NamedTuple):
    """Free capacity and its prices, per slot from the first that the bidder may use.

    usd (T, R, K) per milli-unit; byte_usd (T,); free (T, R, K) milli-units; room (T,) bytes
    """

    usd: Floats
    byte_usd: Floats
    free: Ints
    room: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A feasible schedule: slots used, the server's site and workers (S, R) in each, flows (source, dest, chunks).

    usd: its cost at the posted prices
    """

    slots: tuple[int, ...]
    servers: tuple[int, ...]
    workers: Ints
    flows: list[list[tuple[int, int, int]]]
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Pareto-optimal schedules (each later one is cheaper).

    bound_usd  (T,) lower bound on the cost of any schedule that completes by that slot
    payoff     best worth minus cost found; bound: upper bound on it (both at least 0)
    """

    offers: tuple[Schedule, ...]
    bound_usd: Floats
    payoff: float
    bound: float
