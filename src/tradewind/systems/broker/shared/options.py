"""Options of jobs: every offer and number of machines, with its time, data moves and latest end. Built with exact times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.job import Job
from tradewind.model.units import US_PER_HOUR
from tradewind.systems.broker.kernels.problem import MOVES, SEGMENTS, Problem
from tradewind.systems.broker.shared.market import Accounts, Market, tiers
from tradewind.systems.broker.shared.ways import FAR, Request, across, alone, joined

ROUNDING_USD = 1e-6
"""USD that a spend cap may be exceeded by."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Factors on list prices and free machines, each (O, T), and accounts; `slot` is the first slot planned.

    careful  whether expected interruptions count: their cost, and a margin before the end
    every    whether options stay that no discount makes cheaper than the best certain one
    """

    slot: int
    factor: Floats
    room: Floats
    accounts: Accounts
    careful: bool = False
    spot: bool = True
    every: bool = False


class _Rows(NamedTuple):
    """Columns of the options of one job."""

    offer: Ints
    machines: Ints
    other: Ints
    others: Ints
    earliest: Ints
    own: Floats
    need: Ints
    part: Floats
    moved: Ints
    moved_usd: Floats
    risk: Floats
    floor: Floats
    latest: Ints


def build(market: Market, requests: Sequence[Request], prices: Prices) -> Problem:
    """The problem of planning these jobs."""
    setup, acc = market.setup, prices.accounts
    slots = prices.factor.shape[1]
    price = market.list_usd[:, None] * prices.factor
    prefix = np.concatenate([np.zeros((len(market.nodes), 1)), np.cumsum(price, axis=1)], axis=1)
    pooled = market.rent_pool >= 0
    account = np.where(pooled, acc.first[market.rent_pool] if len(acc.first) else -1, -1)
    period = np.where(pooled, acc.period[market.rent_pool] if len(acc.first) else 1, 10**9)
    elapsed = np.where(pooled, acc.elapsed[market.rent_pool] if len(acc.first) else 0, 0)
    constant = (price == price[:, :1]).all(axis=1)
    plain = constant & (prices.room >= 1e17).all(axis=1) & (period > 1)
    start, rate, free, retroactive = tiers(setup)
    width = np.maximum(0.0, start[acc.tariff] - acc.spent[:, None])[:, 1:]
    loss, last, unserved = _losses(market, requests, prices.slot, slots)
    builder = _Builder(market, prices, price, plain)
    rows = [builder.rows(each, int(last[j]), float(unserved[j])) for j, each in enumerate(requests)]
    columns = [np.concatenate(c) for c in zip(*rows, strict=True)] if rows else list(builder.empty())
    moved = columns[8]
    found: list[Any] = [
        price, prefix, prices.room, account, period, elapsed, plain, constant,
        acc.tariff, width, start, rate, free, retroactive,
        np.concatenate([[0], np.cumsum([len(each.offer) for each in rows])]).astype(np.int64),
        *columns[:8],
        np.where(moved >= 0, acc.first[moved] if len(acc.first) else -1, -1),
        np.where(moved >= 0, acc.period[moved] if len(acc.first) else 1, 10**9),
        np.where(moved >= 0, acc.elapsed[moved] if len(acc.first) else 0, 0),
        *columns[9:], loss, unserved,
        np.array([_segments(request.job) for request in requests], dtype=np.int64),
    ]  # fmt: skip
    return Problem(*map(np.ascontiguousarray, found))


def hours_lost(market: Market, job: Job) -> float:
    """What an interruption is expected to lose: half a slot and a restart."""
    return (market.setup.slot_us / 2 + job.warmup_us) / US_PER_HOUR


def _segments(job: Job) -> int:
    return SEGMENTS if job.restarts is None else min(SEGMENTS, job.restarts + 1)


def _losses(
    market: Market, requests: Sequence[Request], slot: int, slots: int
) -> tuple[Floats, Ints, Floats]:
    """(USD lost by the last slot (J, T), last slot of any use (J,), USD lost unserved (J,))."""
    loss, last = np.zeros((len(requests), slots)), np.full(len(requests), -1, dtype=np.int64)
    unserved = np.zeros(len(requests))
    for j, request in enumerate(requests):
        worth, arrived = request.job.utility, request.job.arrive_us // market.setup.slot_us
        if worth is None or worth.of != "delay_slots":
            continue
        unserved[j] = worth.value(0.0)
        values = np.array([worth.value(float(slot + t - arrived)) for t in range(slots)])
        loss[j] = unserved[j] - values
        useful = np.flatnonzero(values > 0.0)
        last[j] = useful[-1] if len(useful) else -1
    return loss, last, unserved


class _Builder:
    """Makes the options of one job after the other."""

    def __init__(self, market: Market, prices: Prices, price: Floats, plain: Bools) -> None:
        self.market, self.prices, self.plain = market, prices, plain
        self.cheapest = price.min(axis=1, initial=np.inf) if price.shape[1] else price[:, :0].sum(axis=1)
        self.deepest = np.concatenate([market.deepest(), [1.0]])[market.rent_pool]
        self.most = prices.room.max(axis=1, initial=0.0)
        self.pool_floor = np.concatenate([market.deepest(), [1.0]])

    def empty(self) -> _Rows:
        ints, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
        return _Rows(
            ints, ints, ints, ints, ints, floats, np.zeros((0, SEGMENTS), dtype=np.int64), np.zeros((0, SEGMENTS)),
            np.zeros((0, MOVES), dtype=np.int64), np.zeros((0, MOVES)), floats, floats, ints,
        )  # fmt: skip

    def rows(self, request: Request, last: int, unserved: float) -> _Rows:
        """The options of a job; those that no discount makes cheaper than the best certain one may be left out."""
        market, job, prices = self.market, request.job, self.prices
        slot_us = market.setup.slot_us
        ways = alone(market, request, spot=prices.spot)
        if job.sync_every:
            ways = joined((ways, across(market, request, spot=prices.spot)))
        if not len(ways.offer) or last < 0:
            return self.empty()
        a, m, b, n = ways.offer, ways.machines, ways.other, ways.others
        runs = np.arange(1, SEGMENTS + 1)
        total = (
            ways.need_us[:, None] + runs * job.warmup_us + (runs - 1)
        )  # a microsecond per pause for rounding
        need = -(-total // slot_us)
        part = total / slot_us - (need - 1)
        if job.spend_cap_usd is not None:
            a_slot = (m * market.list_usd[a] + n * market.list_usd[b])[:, None] / slot_us
            spend = request.spent_usd + (total - (runs - 1)) * a_slot + ways.usd[:, None]
            need = np.where(spend > job.spend_cap_usd + ROUNDING_USD, FAR, need)
        spot = market.spot[a] + np.where(b >= 0, market.spot[b], 0.0)
        risk, margin = np.ones(len(a)), np.zeros(len(a), dtype=np.int64)
        if prices.careful:
            risk = 1.0 + spot * hours_lost(market, job)
            margin = np.where(spot > 0, 1 + np.ceil(0.1 * need[:, 0]).astype(np.int64), 0)
        found = _Rows(
            a, m, b, n, ways.earliest, ways.own, need, part, ways.moved, ways.moved_usd, risk, risk, last - margin,
        )  # fmt: skip
        keep = (found.earliest + need[:, 0] - 1 <= found.latest) & (m <= self.most[a]) & (n <= self.most[b])
        slots = need[:, 0] - 1 + part[:, 0]
        list_usd = slots * (m * self.cheapest[a] + n * self.cheapest[b]) + ways.usd
        egress = found.own + (found.moved_usd * self.pool_floor[found.moved]).sum(axis=1)
        certain = keep & self.plain[a] & ((b < 0) | self.plain[b])
        best = min(unserved, list_usd[certain].min(initial=np.inf) + self._late(request, found, certain))
        deep = m * self.cheapest[a] * self.deepest[a] + n * self.cheapest[b] * self.deepest[b]
        least = slots * deep * risk + egress
        order = np.flatnonzero(keep & (prices.every | (least <= best + 1e-9)))
        order = order[np.argsort(least[order], kind="stable")]
        columns: list[Any] = [column[order] for column in found._replace(floor=least)]
        return _Rows(*columns)

    def _late(self, request: Request, rows: _Rows, certain: Bools) -> float:
        """The most that a certain option loses by its delay."""
        worth = request.job.utility
        if worth is None or not certain.any():
            return 0.0
        end = int((rows.earliest + rows.need[:, 0])[certain].max()) - 1
        arrived = request.job.arrive_us // self.market.setup.slot_us
        return worth.value(0.0) - worth.value(float(self.prices.slot + end - arrived))
