"""Algorithm 3 of Eris as printed: what a number of chunks costs in one slot, with its errors (see paper.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.chunks import workers_for
from tradewind.systems.eris.kernels.slot import site_terms
from tradewind.systems.eris.kernels.task import Market, TrainingTask


class Reading(NamedTuple):
    """A reading of what the text leaves open (the table in paper.py).

    remaining  M is what the slots before leave; else all data, in every slot
    reserved   every site keeps room for the server; else the server is not considered
    both       line 2 lists a pair in the direction that saves; else from the site with the smaller number
    """

    remaining: bool
    reserved: bool
    both: bool


@kernel
def _pairs(worker_usd: Floats, chunk_usd: float, unit: float, both: bool) -> tuple[Ints, Ints]:
    """Line 2: pairs (source, destination) with Omega < 0 by rising Omega (9); the paper's text has the opposite sign.

    unit: workers per chunk, E / P; both: a pair counts in the direction that saves, else from the smaller number only
    """
    sites = len(worker_usd)
    count = sites * (sites - 1) // 2
    metric, a, b = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = 0
    for r in range(sites):
        for q in range(r + 1, sites):
            saved = unit * (worker_usd[r] - worker_usd[q])
            if chunk_usd - saved < 0:
                metric[at], a[at], b[at] = chunk_usd - saved, r, q
                at += 1
            elif both and chunk_usd + saved < 0:
                metric[at], a[at], b[at] = chunk_usd + saved, q, r
                at += 1
    order = np.argsort(metric[:at], kind="mergesort")
    return a[order], b[order]


class PrintedSlot(NamedTuple):
    """A slot as Algorithm 3 sees it: `SlotSites` without `with_server`, and

    a, b       pairs (a[i], b[i]) of line 2
    chunk_usd  USD to move a chunk
    fits       chunks (R,) that the workers of a full site train
    room       bytes
    """

    worker_usd: Floats
    server_usd: Floats
    most: Ints
    fits: Ints
    order: Ints
    a: Ints
    b: Ints
    chunk_usd: float
    traffic_usd: float
    room: int


class Deployment(NamedTuple):
    """What Algorithm 3 fills in: workers (R,), chunks that enter and leave each site (R,), and moves (R, R) or, where only
    the cost matters, (0, 0).
    """

    workers: Ints
    moves: Ints
    into: Ints
    out: Ints


@kernel
def slot_of(task: TrainingTask, market: Market, t: int, reading: Reading) -> PrintedSlot:
    """Slot t of the market."""
    worker_usd, server_usd, most, with_server = site_terms(
        market.usd[t], market.free[t], task.worker, task.server, task.most
    )
    if reading.reserved:
        most = np.maximum(with_server, 0)
    chunk_usd = task.chunk_bytes * market.byte_usd[t]
    a, b = _pairs(worker_usd, chunk_usd, task.need / task.rate, reading.both)
    order = np.argsort(worker_usd, kind="mergesort")
    traffic_usd = task.traffic_bytes * market.byte_usd[t]
    fits = most * task.rate // task.need
    return PrintedSlot(
        worker_usd, server_usd, most, fits, order, a, b, chunk_usd, traffic_usd, market.room[t]
    )


@kernel
def _moves(slot: PrintedSlot, task: TrainingTask, data: Ints, chunks: int, plan: Deployment) -> int:
    """Lines 3-11: fills moves, into and out by (10); returns the chunks moved in all."""
    _, moves, into, out = plan
    into[:], out[:] = 0, 0
    wanted = len(moves) > 0
    if wanted:
        moves[:, :] = 0
    room = max(0, slot.room) // task.chunk_bytes
    excluded = np.zeros(len(data), np.bool_)
    listed = np.zeros(len(data), np.int64)
    taken_off, total = 0, 0
    a, b, fits = slot.a, slot.b, slot.fits
    for j in range(len(a)):
        r, q = a[j], b[j]
        if excluded[r] or excluded[q]:
            continue
        left = chunks - taken_off
        if left < 0:  # it only falls from here on
            break
        amount = min(min(data[r] - out[r], room), min(left, fits[q] - data[q] - into[q]))
        if amount < 0:
            excluded[q] = True
        else:
            if wanted:
                moves[r, q] = amount
            into[q] += amount
            out[r] += amount
            total += amount
            taken_off += listed[q] * amount
        listed[q] += 1
        taken_off += data[q] + into[q]
    return total


@kernel
def deploy(
    slot: PrintedSlot, task: TrainingTask, data: Ints, chunks: int, plan: Deployment
) -> tuple[float, int]:
    """Algorithm 3: cost in USD (inf: declared infeasible) and the server's site for `chunks`; data (R,) is M."""
    moved, workers = _moves(slot, task, data, chunks, plan), plan.workers
    total, placed = workers_for(chunks, task.rate, task.need), 0
    workers[:] = 0
    for r in slot.order:
        found = data[r] + plan.into[r]
        if placed < total and slot.most[r] > 0 and found > 0:
            useful = workers_for(found, task.rate, task.need)
            workers[r] = min(useful, min(slot.most[r], total - placed))
            placed += workers[r]
    server = int(np.argmax(workers))
    away = placed - workers[server]
    if placed < total or slot.room - task.chunk_bytes * moved - task.traffic_bytes * away < 0:
        return np.inf, server
    cost = moved * slot.chunk_usd + away * slot.traffic_usd + slot.server_usd[server]
    for r in range(len(workers)):
        cost += workers[r] * slot.worker_usd[r]
    return cost, server


@kernel
def train(slot: PrintedSlot, task: TrainingTask, chunks: int, plan: Deployment, left: Ints) -> None:
    """Takes off `left` (R,) what a deployment trains, at most `chunks`: what it moves, then what its workers find."""
    cap, rest = plan.workers * task.rate // task.need, chunks
    for j in range(len(slot.a)):
        r, q = slot.a[j], slot.b[j]
        amount = min(min(plan.moves[r, q], left[r]), min(cap[q], rest))
        left[r] -= amount
        cap[q] -= amount
        rest -= amount
    for r in slot.order:
        amount = min(cap[r], min(left[r], rest))
        left[r] -= amount
        rest -= amount


@kernel
def least_usd(slot: PrintedSlot, task: TrainingTask, units: int) -> Floats:
    """Lower bound (units + 1,) on what Algorithm 3 asks for 0..units chunks: the cheapest workers.

    inf: there are not so many workers, or too little bandwidth for those that cannot be beside the server
    """
    found = np.full(units + 1, np.inf)
    found[0] = 0.0
    reach, beside = min(int(slot.most.sum()), task.most), int(slot.most.max())
    usd, placed, at, here = 0.0, 0, 0, 0
    for chunks in range(1, units + 1):
        wanted = workers_for(chunks, task.rate, task.need)
        if wanted > reach or (wanted - beside) * task.traffic_bytes > slot.room:
            break
        while placed < wanted:
            while here >= slot.most[slot.order[at]]:
                at, here = at + 1, 0
            usd += slot.worker_usd[slot.order[at]]
            placed, here = placed + 1, here + 1
        found[chunks] = usd
    return found
