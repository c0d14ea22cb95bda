"""The nouns of one bidder's problem (7): what is asked for, what is left at which prices, and what can be offered."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.model.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a bidder asks for.

    worker, server (K,) milli-units of one worker and of the parameter server; data (R,) chunks per site;
    rate, need: a worker trains rate / need chunks in a slot (P and E, both times 1000); chunk_bytes theta;
    traffic_bytes lambda, per worker away from its server and slot; most: workers in a slot at most
    """

    worker: Ints
    server: Ints
    data: Ints
    rate: int
    need: int
    chunk_bytes: int
    traffic_bytes: int
    most: int = 1 << 40

    @property
    def per_worker(self) -> int:
        """Chunks that a worker trains in a slot where that is a whole number, else 0."""
        return self.rate // self.need if self.rate % self.need == 0 else 0

    @property
    def units(self) -> int:
        """Steps of the dynamic program: workers where a worker trains whole chunks, else chunks."""
        total = int(self.data.sum())
        return -(-total // self.per_worker) if self.per_worker else total


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What is left and what it costs, per slot from the first that the bidder may use.

    usd (T, R, K) per milli-unit; byte_usd (T,); free (T, R, K) milli-units; room (T,) bytes
    """

    usd: Floats
    byte_usd: Floats
    free: Ints
    room: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A realisable schedule: slots used, the server's site and workers (S, R) in each, flows (source, dest, chunks).

    usd: what it costs at the posted prices
    """

    slots: tuple[int, ...]
    servers: tuple[int, ...]
    workers: Ints
    flows: list[list[tuple[int, int, int]]]
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Pareto schedules (each later one is cheaper); bound_usd (T,): no schedule until that slot costs less.

    payoff, bound: the best worth minus cost that was found, and what it can never exceed (at least 0 both)
    """

    offers: tuple[Schedule, ...]
    bound_usd: Floats
    payoff: float
    bound: float
