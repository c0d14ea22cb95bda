"""One slot of one job for schedulers that plan slot by slot: sites of workers and server, and the chunks they train.

Workers come in units: one worker, or as many as train a whole chunk in a slot if one alone trains less. Symbols as in
slot.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.eris.kernels.slot import SlotSites, cost_curve, deploy, remote_limit, site_terms
from tradewind.systems.eris.kernels.task import Market, Schedule, TrainingTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How sites are scored: weight of the posted price in USD, and score of each byte of parameters sent to the server.

    price 1 and byte_score None are the posted prices themselves.
    """

    price: float = 1.0
    byte_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A slot of a job: server's site, workers (R,), flows (source, destination, chunks), chunks trained, USD."""

    server: int
    workers: Ints
    flows: list[tuple[int, int, int]]
    trained: int
    usd: float

    def schedule(self) -> Schedule:
        """This slot as a schedule."""
        return Schedule(
            slots=(0,), servers=(self.server,), workers=self.workers[None], flows=[self.flows], usd=self.usd
        )


def unit(task: TrainingTask) -> int:
    """Workers deployed together to train at least one chunk in a slot."""
    return -(-task.need // task.rate)


def units_left(task: TrainingTask) -> int:
    """Units that would train all remaining data in one slot if sites did not matter."""
    return -(-int(task.data.sum()) * task.need // (task.rate * unit(task)))


def place(task: TrainingTask, market: Market, want: int, exact: bool, score: Score) -> Spot | None:
    """At most `want` units (exact: that many or none) at the best-scored sites of the market's first slot."""
    size, sites = unit(task), len(task.data)
    widest = min(want, task.most // size)
    if widest < 1 or (exact and widest < want):
        return None
    worker_usd, server_usd, most, beside = site_terms(
        market.usd[0], market.free[0], task.worker * size, task.server, widest
    )
    room = int(market.room[0])
    chunks = size * task.rate // task.need
    reach = -(-(task.data + max(0, room) // task.chunk_bytes) // chunks)  # more units than data never help
    by_data = np.argsort(-task.data, kind="mergesort")
    worker_score = worker_usd * score.price
    byte_score = float(market.byte_usd[0]) if score.byte_score is None else score.byte_score
    traffic = task.traffic_bytes * size
    remote = remote_limit(room, traffic, widest)
    here = SlotSites(
        worker_usd=worker_score,
        server_usd=server_usd * score.price,
        most=np.minimum(most, reach),
        with_server=np.minimum(beside, reach),
        order=by_data[np.argsort(worker_score[by_data], kind="mergesort")],
        traffic_usd=traffic * byte_score,
    )
    curve, where = cost_curve(here, np.full(widest + 1, remote), widest)
    count = int(np.flatnonzero(np.isfinite(curve))[-1])
    if count < 1 or (exact and count < want):
        return None
    placed = np.zeros(sites, np.int64)
    server = int(where[count])
    deploy(here, remote, server, count, placed)
    return at(task, market, server, placed * size)


def pack(task: TrainingTask, market: Market) -> Spot | None:
    """As many workers as are useful in the market's first slot, packed on few sites.

    If a worker trains a fraction of a chunk, four at one site train more than one at each of four sites. First beside the
    server, then where a worker trains most, sites with most data first.
    """
    _, _, most, beside = site_terms(market.usd[0], market.free[0], task.worker, task.server, task.most)
    server = int(np.argmax(beside))
    left, room = int(task.data.sum()), int(market.room[0])
    workers = np.zeros(len(task.data), np.int64)
    own = min(max(0, int(beside[server])), -(-left * task.need // task.rate))
    workers[server], left = own, left - own * task.rate // task.need
    away = min(remote_limit(room, task.traffic_bytes, task.most), task.most - own)
    trained = (most * task.rate // task.need) / np.maximum(most, 1)
    for r in np.lexsort((-task.data, -trained)).tolist():
        if r != server and left > 0 and away > 0:
            workers[r] = min(int(most[r]), away, -(-left * task.need // task.rate))
            left, away = left - int(workers[r]) * task.rate // task.need, away - int(workers[r])
    return at(task, market, server, workers) if beside[server] >= 0 else None


def at(task: TrainingTask, market: Market, server: int, workers: Ints) -> Spot | None:
    """These workers (R,) with the server at `server`, without those that would be idle; None: no room."""
    need = workers[:, None] * task.worker
    need[server] += task.server
    room = int(market.room[0]) - task.traffic_bytes * int(workers.sum() - workers[server])
    runs = workers > 0
    runs[server] = True
    if (need > market.free[0])[runs].any() or room < 0:
        return None
    rows, trained = train(workers * task.rate // task.need, task.data, room // task.chunk_bytes)
    if not trained.any():
        return None
    kept: Ints = -(-trained * task.need // task.rate)
    moved = sum(n for a, b, n in rows if a != b)
    away = int(kept.sum() - kept[server])
    usd: Floats = market.usd[0]
    cost = float((kept * (usd @ task.worker)).sum()) + float(usd[server] @ task.server)
    cost += (moved * task.chunk_bytes + away * task.traffic_bytes) * float(market.byte_usd[0])
    return Spot(server=server, workers=kept, flows=rows, trained=int(trained.sum()), usd=cost)


def train(cap: Ints, data: Ints, room: int) -> tuple[list[tuple[int, int, int]], Ints]:
    """Flows and chunks trained per site (R,): local chunks first, then moves from where most is left."""
    local = np.minimum(cap, data)
    left, spare = data - local, cap - local
    rows = [(int(r), int(r), int(local[r])) for r in np.flatnonzero(local)]
    trained = local.copy()
    sources = [int(r) for r in np.argsort(-left, kind="mergesort") if left[r]]
    for r in np.flatnonzero(spare):
        while spare[r] and sources and room:
            source = sources[0]
            amount = int(min(spare[r], left[source], room))
            rows.append((source, int(r), amount))
            trained[r] += amount
            spare[r] -= amount
            left[source] -= amount
            room -= amount
            if not left[source]:
                sources.pop(0)
    return rows, trained
