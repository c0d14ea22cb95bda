"""DPS for a seller that knows every job and budget: sales at the budgets with their places, and the certified bound.

Jobs in the order of the bound's LP, then of arrival, take the first place and start that fit; then a search moves jobs to
the front or the back. A job may start late: customers of this market do not mind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.model.decision import Offer, Plan, Step
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.systems.dps.bound import MarketArrays, arrays_of, relaxed

WORK = (2 * 10**6, 2 * 10**7, 2 * 10**8)
"""Orders of sale that are tried times the square of the jobs, by effort."""
FIRST, LAST = -2.0, 1.0
"""Ranks before and behind those of the LP, which are between -1 (sold) and 0."""


class Sale(NamedTuple):
    """Where a job runs: first slot, slots until it is over, workers and servers (S,) per host."""

    start: int
    runtime: int
    workers: Ints
    servers: Ints


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """Sales and bound; None for other scenarios."""
    if scenario.setup.objective != "profit_usd" or not scenario.jobs or scenario.changes:
        return None
    it, slots = arrays_of(scenario), scenario.setup.slots
    bound, share = relaxed(scenario)
    rng = np.random.default_rng(effort)
    rank = -np.round(share, 6)
    best = Shop(it, slots).sell(np.lexsort((it.stream.arrive, rank)))
    most = float(it.budget[list(best)].sum())
    for _ in range(WORK[min(effort, len(WORK)) - 1] // len(rank) ** 2):
        if most >= bound * (1 - 1e-12):
            break
        tried = rank.copy()
        some = rng.integers(0, len(rank), int(rng.integers(1, 4)))
        tried[some] = rng.choice((FIRST, LAST), len(some))
        sold = Shop(it, slots).sell(np.lexsort((it.stream.arrive, tried)))
        worth = float(it.budget[list(sold)].sum())
        if worth > most:
            rank, best, most = tried, sold, worth
    return Offline(offers={j: _offer(scenario, it, j, sale) for j, sale in best.items()}, bound=bound)


class Shop:
    """What is free of every type at every host in every slot."""

    def __init__(self, it: MarketArrays, slots: int) -> None:
        self._it, self._slots = it, slots
        shape = (slots + 1,)
        self._free_k = np.broadcast_to(
            it.cluster.idle_k[..., None], (*it.cluster.idle_k.shape, *shape)
        ).astype(np.int64)
        self._free_m = np.broadcast_to(
            it.cluster.idle_m[..., None], (*it.cluster.idle_m.shape, *shape)
        ).astype(np.int64)

    def sell(self, order: Ints) -> dict[int, Sale]:
        """Sells to each job in order that still fits somewhere."""
        sold = {}
        for j in order.tolist():
            if self._it.budget[j] > 0 and (sale := self._place(j)) is not None:
                sold[j] = sale
                span = slice(sale.start, sale.start + sale.runtime + 1)
                self._free_k[self._it.stream.k[j], :, span] -= sale.workers[:, None]
                self._free_m[self._it.stream.m[j], :, span] -= sale.servers[:, None]
        return sold

    def _place(self, j: int) -> Sale | None:
        """The first start on one host, else spread over hosts."""
        stream = self._it.stream
        arrive, d_k, d_m = int(stream.arrive[j]), int(stream.d_k[j]), int(stream.d_m[j])
        free_k, free_m = self._free_k[stream.k[j], :, arrive:], self._free_m[stream.m[j], :, arrive:]
        runtime = int(stream.together[j])
        ok = (free_k >= d_k) & (free_m >= d_m)
        start, host = _first(ok, self._span(arrive, runtime))
        if start >= 0:
            return Sale(arrive + start, runtime, *(_at(host, n, len(free_k)) for n in (d_k, d_m)))
        return self._spread(j, free_k, free_m)

    def _span(self, arrive: int, runtime: int) -> int:
        """Slots that a job holds: it holds its items through the instant of completion, or until the end of the run."""
        return min(runtime, self._slots - arrive) + 1

    def _spread(self, j: int, free_k: Ints, free_m: Ints) -> Sale | None:
        """On several hosts, at the first of a few starts."""
        stream = self._it.stream
        arrive, runtime = int(stream.arrive[j]), int(stream.spread[j])
        span = self._span(arrive, runtime)
        last = free_k.shape[1] - span
        for start in sorted({min(last, s) for s in (0, *(span * k // 4 for k in range(1, 17)))}):
            room_k = free_k[:, start : start + span].min(axis=1)
            room_m = free_m[:, start : start + span].min(axis=1)
            if room_k.sum() >= stream.d_k[j] and room_m.sum() >= stream.d_m[j]:
                workers, servers = _fill(room_k, int(stream.d_k[j])), _fill(room_m, int(stream.d_m[j]))
                if ((workers > 0) | (servers > 0)).sum() > 1:
                    return Sale(arrive + start, runtime, workers, servers)
        return None


def _first(ok: Bools, span: int) -> tuple[int, int]:
    """First start and host (S, T) at which `span` slots in a row are ok; (-1, -1) where there is none."""
    total: Ints = np.zeros((len(ok), ok.shape[1] + 1), dtype=np.int64)
    np.cumsum(ok, axis=1, out=total[:, 1:])
    runs = total[:, span:] - total[:, :-span] == span
    starts = np.flatnonzero(runs.any(axis=0))
    return (int(starts[0]), int(np.flatnonzero(runs[:, starts[0]])[0])) if len(starts) else (-1, -1)


def _at(host: int, amount: int, hosts: int) -> Ints:
    found = np.zeros(hosts, dtype=np.int64)
    found[host] = amount
    return found


def _fill(room: Ints, amount: int) -> Ints:
    """Amounts per host that add up, the roomiest hosts first."""
    found = np.zeros(len(room), dtype=np.int64)
    for host in np.argsort(-room, kind="stable").tolist():
        found[host] = min(amount, int(room[host]))
        amount -= int(found[host])
    return found


def _offer(scenario: Scenario, it: MarketArrays, j: int, sale: Sale) -> Offer:
    """The sale at the customer's budget; open-ended where the run ends before the job."""
    setup = scenario.setup
    begin, end = sale.start * setup.slot_us, (sale.start + sale.runtime) * setup.slot_us
    here = np.flatnonzero((sale.workers > 0) | (sale.servers > 0)).tolist()
    step = Step(
        begin,
        end if end <= setup.horizon_us else OPEN,
        tuple(setup.hosts[s] for s in here),
        tuple(int(sale.workers[s]) for s in here),
        tuple(int(sale.servers[s]) for s in here),
    )
    return Offer(float(it.budget[j]), end, Plan(j, (step,)))
