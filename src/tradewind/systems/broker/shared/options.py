"""Options of jobs: every offer and number of machines, with its time, data moves and latest end. Built with exact times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job
from tradewind.model.progress import machine_round_us
from tradewind.model.units import GB, MICRO, US_PER_HOUR, US_PER_S
from tradewind.systems.broker.kernels.problem import MOVES, SEGMENTS, Problem
from tradewind.systems.broker.shared.market import Accounts, Market, tiers

FAR = 10**6
"""An earliest slot that is never reached."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A job to be planned.

    left     work left, in millionths of a round; ready: first slot in which it may start, if no data has to move
    staged   (source, destination) of data that was moved before
    """

    job: Job
    left: int
    ready: int = 0
    staged: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Factors on list prices and free machines, each (O, T), and accounts; `slot` is the first slot planned.

    careful  whether expected interruptions count: their cost, and a margin before the end
    """

    slot: int
    factor: Floats
    room: Floats
    accounts: Accounts
    careful: bool = False
    spot: bool = True


class _Rows(NamedTuple):
    """Columns of the options of one job."""

    offer: Ints
    machines: Ints
    earliest: Ints
    own: Floats
    need: Ints
    part: Floats
    moved: Ints
    moved_usd: Floats
    risk: Floats
    floor: Floats
    latest: Ints


@dataclass(frozen=True, kw_only=True)
class _Data:
    """Moving a job's data to each site: first slot (FAR: not possible), unpooled USD, pools and USD per pool."""

    earliest: Ints
    own: Floats
    moved: Ints
    moved_usd: Floats
    total: Floats = field(default_factory=lambda: np.zeros(0))


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
    moved = columns[6]
    found: list[Any] = [
        price, prefix, prices.room, account, period, elapsed, plain, constant,
        acc.tariff, width, start, rate, free, retroactive,
        np.concatenate([[0], np.cumsum([len(each.offer) for each in rows])]).astype(np.int64),
        *columns[:6],
        np.where(moved >= 0, acc.first[moved] if len(acc.first) else -1, -1),
        np.where(moved >= 0, acc.period[moved] if len(acc.first) else 1, 10**9),
        np.where(moved >= 0, acc.elapsed[moved] if len(acc.first) else 0, 0),
        *columns[7:], loss, unserved,
        np.array([_segments(request.job) for request in requests], dtype=np.int64),
    ]  # fmt: skip
    return Problem(*map(np.ascontiguousarray, found))


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
            ints, ints, ints, floats, np.zeros((0, SEGMENTS), dtype=np.int64), np.zeros((0, SEGMENTS)),
            np.zeros((0, MOVES), dtype=np.int64), np.zeros((0, MOVES)), floats, floats, ints,
        )  # fmt: skip

    def rows(self, request: Request, last: int, unserved: float) -> _Rows:
        """The options of a job; those that no discount makes cheaper than the best certain one are left out."""
        market, job = self.market, request.job
        slot_us = market.setup.slot_us
        offers, machines, need_us = self._times(request)
        if not len(offers) or last < 0:
            return self.empty()
        data = self._data(request)
        site = market.site[offers]
        runs = np.arange(1, SEGMENTS + 1)
        total = need_us[:, None] + runs * job.warmup_us + (runs - 1)  # a microsecond per pause for rounding
        need = -(-total // slot_us)
        part = total / slot_us - (need - 1)
        spot = market.spot[offers]
        risk, margin = np.ones(len(offers)), np.zeros(len(offers), dtype=np.int64)
        if self.prices.careful:
            hours = (slot_us / 2 + job.warmup_us) / US_PER_HOUR
            risk = 1.0 + spot * hours
            margin = np.where(spot > 0, 1 + np.ceil(0.1 * need[:, 0]).astype(np.int64), 0)
        found = _Rows(
            offers, machines, data.earliest[site], data.own[site], need, part, data.moved[site], data.moved_usd[site],
            risk, risk, last - margin,
        )  # fmt: skip
        keep = (found.earliest + need[:, 0] - 1 <= found.latest) & (machines <= self.most[offers])
        floor = (need[:, 0] - 1 + part[:, 0]) * machines * self.cheapest[offers]
        list_usd = floor + data.total[site]
        egress = found.own + (found.moved_usd * self.pool_floor[found.moved]).sum(axis=1)
        certain = keep & self.plain[offers]
        best = min(unserved, list_usd[certain].min(initial=np.inf) + self._late(request, found, certain))
        least = floor * risk * self.deepest[offers] + egress
        order = np.flatnonzero(keep & (least <= best + 1e-9))
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

    def _times(self, request: Request) -> tuple[Ints, Ints, Ints]:
        """(offer, machines, microseconds of running without warm-up) of everything that can run the job."""
        job, slot_us = request.job, self.market.setup.slot_us
        speeds = dict(job.gpu_speeds)
        offers, machines, need = [], [], []
        for (machine, spot), where in self.market.kinds.items():
            if machine.gpu not in speeds or (spot and not self.prices.spot):
                continue
            for count in dict.fromkeys(-(-gpus // machine.gpus) for gpus in job.gpus):
                if not job.workers_min <= count <= job.workers_max:
                    continue
                round_us = machine_round_us(job, machine, count)
                us = -(-request.left * round_us // MICRO)
                if spot:
                    us = -(-request.left * round_us * (slot_us + job.checkpoint_us) // (MICRO * slot_us))
                offers.append(where)
                machines.append(np.full(len(where), count))
                need.append(np.full(len(where), max(1, us)))
        if not offers:
            empty = np.zeros(0, dtype=np.int64)
            return empty, empty, empty
        found = [np.concatenate(columns).astype(np.int64) for columns in (offers, machines, need)]
        order = np.lexsort((found[1], found[0]))
        if job.nodes is not None:
            allowed = np.array([node in job.nodes for node in self.market.nodes])
            order = order[allowed[found[0][order]]]
        return found[0][order], found[1][order], found[2][order]

    def _data(self, request: Request) -> _Data:
        """What moving the data to each site takes, by node index."""
        market, setup, job = self.market, self.market.setup, request.job
        count = len(setup.nodes)
        earliest, own = np.full(count, FAR, dtype=np.int64), np.zeros(count)
        moved, moved_usd, total = (
            np.full((count, MOVES), -1, dtype=np.int64),
            np.zeros((count, MOVES)),
            np.zeros(count),
        )
        for site in market.site_offers:
            lead_us, pools, possible = 0, dict[int, float](), True
            for source, size in job.parts:
                if source == site or not size or (source, site) in request.staged:
                    continue
                bps = setup.direct_bps.get((source, site), 0)
                if not bps or (job.data_nodes is not None and site not in job.data_nodes):
                    possible = False
                    break
                lead_us = max(lead_us, -(-8 * size * US_PER_S // bps))
                usd = setup.egress[source, site].usd[0] * size / GB
                pool = market.egress_pool.get((source, site), -1)
                pools[pool] = pools.get(pool, 0.0) + usd
                total[site] += usd
            if not possible:
                continue
            lead = ceil(lead_us / setup.slot_us)
            earliest[site] = request.ready + lead
            own[site] = pools.pop(-1, 0.0)
            if len(pools) > MOVES:
                raise Unsupported(f"the parts of job {job.id} belong to more than {MOVES} pools of egress")
            for k, (pool, usd) in enumerate(pools.items()):
                moved[site, k], moved_usd[site, k] = pool, usd
        return _Data(earliest=earliest, own=own, moved=moved, moved_usd=moved_usd, total=total)
