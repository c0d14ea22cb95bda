"""Ways to run a job: offers and numbers of machines at one site, or at two that hold parts of its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job, Rounds
from tradewind.model.machine import Machine, allreduce_us
from tradewind.model.progress import exchange_us, machine_round_us, site_pairs, split_gpus
from tradewind.model.units import GB, MICRO, MILLI, US_PER_S
from tradewind.systems.broker.kernels.problem import MOVES
from tradewind.systems.broker.shared.market import Market

FAR = 10**6
"""A slot that is never reached."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A job to be planned.

    left       work left, in millionths of a round; ready: first slot in which it may start, if no data has to move
    staged     (source, destination) of data that was moved before
    spent_usd  what it spent before, at list price
    """

    job: Job
    left: int
    ready: int = 0
    staged: frozenset[tuple[int, int]] = frozenset()
    spent_usd: float = 0.0


class Ways(NamedTuple):
    """Columns: offers (other -1: none) and machines, microseconds of running without warm-up, first slot (FAR: none), egress
    outside of pools, pools and USD of each (MOVES), and all egress at list price."""

    offer: Ints
    machines: Ints
    other: Ints
    others: Ints
    need_us: Ints
    earliest: Ints
    own: Any
    moved: Ints
    moved_usd: Any
    usd: Any


class _Move(NamedTuple):
    """Bringing data to a site: first slot, egress outside of pools, pools and USD of each, and all of it."""

    earliest: int
    own: float
    moved: tuple[int, ...]
    moved_usd: tuple[float, ...]
    usd: float


def joined(ways: Sequence[Ways]) -> Ways:
    """All of them."""
    columns: list[Any] = [np.concatenate(column) for column in zip(*ways, strict=True)]
    return Ways(*columns)


def alone(market: Market, request: Request, *, spot: bool) -> Ways:
    """Every offer and number of machines at one site, by offer, then machines."""
    job, speeds = request.job, dict(request.job.gpu_speeds)
    allowed, rows = _allowed(market, job), list[tuple[int, int, int]]()
    for kind, (machine, is_spot) in enumerate(market.kinds):
        if machine.gpu not in speeds or (is_spot and not spot):
            continue
        for count in dict.fromkeys(-(-gpus // machine.gpus) for gpus in job.gpus):
            if job.workers_min <= count <= job.workers_max:
                us = _run_us(market, request, machine_round_us(job, machine, count), is_spot=is_spot)
                rows.append((kind, count, us))
    if not rows:
        return _ways([], [], [], [], [], [])
    kinds, counts, need = np.array(rows, dtype=np.int64).T
    offers = list(market.kinds.values())
    offer = np.concatenate([offers[kind] for kind in kinds.tolist()])
    each = np.repeat(np.arange(len(rows)), [len(offers[kind]) for kind in kinds.tolist()])
    order = np.lexsort((counts[each], offer))
    order = order[allowed[offer[order]]]
    offer, count, us = offer[order], counts[each][order], need[each][order]
    moves = {site: _move(market, request, site) for site in market.site_offers}
    none = np.full(len(offer), -1)
    return _ways(offer, count, none, none + 1, us, [moves[site] for site in market.site[offer].tolist()])


def across(market: Market, request: Request, *, spot: bool) -> Ways:
    """Every pair of offers at two sites that both hold parts; the first gets all parts but the second's own."""
    job, setup = request.job, market.setup
    parts = {site: size for site, size in job.parts if size}
    allowed = _allowed(market, job) & (spot | (market.spot == 0))
    speeds = dict(job.gpu_speeds)
    at = {
        site: [
            o
            for o in np.flatnonzero(allowed & (market.site == site)).tolist()
            if market.machines[o].gpu in speeds
        ]
        for site in parts
    }
    rows: dict[tuple[int, int, int, int], int] = {}
    moves: list[_Move] = []
    for a, b in site_pairs(job):
        each = exchange_us(setup, job, (a, b))
        if not at[a] or not at[b] or (not each and job.model_bytes):
            continue
        move = _move(market, request, a, b)
        if move.earliest >= FAR:
            continue
        rows_before = len(rows)
        for gpus in job.gpus:
            if gpus > 1:
                shares = split_gpus(gpus, parts[b], sum(parts.values()))
                first, second = (
                    [(o, *_side(job, market.machines[o], gpus, share)) for o in at[site]]
                    for site, share in zip((a, b), shares, strict=True)
                )
                for o, m, us in first:
                    for k, n, other_us in second:
                        key, round_us = (o, m, k, n), max(us, other_us) + each
                        if job.workers_min <= m + n <= job.workers_max:
                            rows[key] = min(round_us, rows.get(key, round_us))
        moves += [move] * (len(rows) - rows_before)
    if not rows:
        return _ways([], [], [], [], [], [])
    offer, machines, other, others = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    is_spot = (market.spot[offer] + market.spot[other]) > 0
    need = [
        _run_us(market, request, us, is_spot=bool(risky))
        for us, risky in zip(rows.values(), is_spot, strict=True)
    ]
    return _ways(offer, machines, other, others, need, moves)


def _side(job: Job, machine: Machine, gpus: int, share: int) -> tuple[int, int]:
    """(machines, microseconds of a round) at one of two sites with so many of all GPUs."""
    count, work = -(-share // machine.gpus), job.work
    assert isinstance(work, Rounds)
    compute = -(-work.compute_us * MILLI // (gpus * dict(job.gpu_speeds)[machine.gpu]))
    return count, compute + allreduce_us(machine, count, share, job.model_bytes)


def _run_us(market: Market, request: Request, round_us: int, *, is_spot: bool) -> int:
    """Microseconds of the work that is left, with a checkpoint per slot on spot."""
    slot_us, left = market.setup.slot_us, request.left * round_us
    if is_spot:
        return max(1, -(-left * (slot_us + request.job.checkpoint_us) // (MICRO * slot_us)))
    return max(1, -(-left // MICRO))


def _allowed(market: Market, job: Job) -> Any:
    """(O,) whether the job may use an offer."""
    if job.nodes is None:
        return np.ones(len(market.nodes), dtype=np.bool_)
    return np.array([node in job.nodes for node in market.nodes])


def _ways(offer: Any, machines: Any, other: Any, others: Any, need_us: Any, moves: Sequence[_Move]) -> Ways:
    a, m, b, n, us = (
        np.array(column, dtype=np.int64) for column in (offer, machines, other, others, need_us)
    )
    earliest, own, moved, moved_usd, usd = zip(*moves, strict=True) if moves else ((), (), (), (), ())
    return Ways(
        a,
        m,
        b,
        n,
        us,
        np.array(earliest, dtype=np.int64),
        np.array(own, dtype=float),
        np.array(moved, dtype=np.int64).reshape(-1, MOVES),
        np.array(moved_usd, dtype=float).reshape(-1, MOVES),
        np.array(usd, dtype=float),
    )


def _move(market: Market, request: Request, site: int, second: int = -1) -> _Move:
    """Moving all parts to a site, but that of a second one, with which parameters are exchanged."""
    setup, job = market.setup, request.job
    lead_us, total, pools = 0, 0.0, dict[int, float]()
    brought = [
        (source, size)
        for source, size in job.parts
        if size and source not in (site, second) and (source, site) not in request.staged
    ]
    bytes_of: list[tuple[tuple[int, int], float]] = [((source, site), size) for source, size in brought]
    for source, size in brought:
        bps = setup.direct_bps.get((source, site), 0)
        if not bps or (job.data_nodes is not None and site not in job.data_nodes):
            return _Move(FAR, 0.0, (-1,) * MOVES, (0.0,) * MOVES, 0.0)
        lead_us = max(lead_us, -(-8 * size * US_PER_S // bps))
    if second >= 0:
        exchanged = request.left * job.model_bytes / (MICRO * job.sync_every)
        bytes_of += [((site, second), exchanged), ((second, site), exchanged)]
    for pair, amount in bytes_of:
        usd = setup.egress[pair].usd[0] * amount / GB if pair in setup.egress else 0.0
        pool = market.egress_pool.get(pair, -1)
        pools[pool] = pools.get(pool, 0.0) + usd
        total += usd
    own = pools.pop(-1, 0.0)
    if len(pools) > MOVES:
        raise Unsupported(f"the parts of job {job.id} belong to more than {MOVES} pools of egress")
    more = MOVES - len(pools)
    lead = ceil(lead_us / setup.slot_us)
    return _Move(request.ready + lead, own, (*pools, *[-1] * more), (*pools.values(), *[0.0] * more), total)
