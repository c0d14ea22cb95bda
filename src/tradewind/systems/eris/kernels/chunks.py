"""One slot of one bidder whose workers train a fractional number of chunks: a knapsack over sites (Eris, problem (8)).

x chunks at a site need ceil(x * E / P) workers there, a ceiling per site, so chunks are counted instead of workers.
Sites before and after the server's site are merged from a prefix and a suffix table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.slot import NOT_AT_ALL, SlotSites
from tradewind.systems.eris.kernels.task import TrainingTask


class _Remote(NamedTuple):
    """Least cost in USD of 0..limit chunks away from the server, and the workers of that minimum."""

    usd: Floats
    workers: Ints


class _Tables(NamedTuple):
    """Prefix and suffix tables (R + 1, limit + 1): row r covers the sites before r, or from r on."""

    before: _Remote
    after: _Remote


@kernel
def workers_for(chunks: int, rate: int, need: int) -> int:
    """Workers that train this many chunks in a slot: ceil(chunks * need / rate)."""
    return -((-chunks * need) // rate)


@kernel
def _add_site(known: _Remote, usd: float, most: int, task: TrainingTask, out: _Remote) -> None:
    """Min-plus of a row (limit + 1,) with one site whose workers cost `usd` each."""
    known_usd, known_workers = known
    least, workers = out
    rate, need, limit = task.rate, task.need, len(least) - 1
    top = min(limit, most * rate // need)
    for d in range(limit + 1):
        least[d], workers[d] = known_usd[d], known_workers[d]
        for x in range(1, min(top, d) + 1):
            g = workers_for(x, rate, need)
            total = known_usd[d - x] + g * usd
            count = known_workers[d - x] + g
            if total < least[d] or (total == least[d] and count < workers[d]):
                least[d], workers[d] = total, count


@kernel
def _row(table: _Remote, r: int) -> _Remote:
    return _Remote(table.usd[r], table.workers[r])


@kernel
def _tables(sites: SlotSites, task: TrainingTask, limit: int) -> _Tables:
    """The tables of up to `limit` remote chunks."""
    count = len(sites.worker_usd)
    shape = (count + 1, limit + 1)
    before = _Remote(np.full(shape, np.inf), np.zeros(shape, np.int64))
    after = _Remote(np.full(shape, np.inf), np.zeros(shape, np.int64))
    before.usd[0, 0], after.usd[count, 0] = 0.0, 0.0
    for r in range(count):
        usd = sites.worker_usd[r] + sites.traffic_usd
        _add_site(_row(before, r), usd, sites.most[r], task, _row(before, r + 1))
        q = count - 1 - r
        usd = sites.worker_usd[q] + sites.traffic_usd
        _add_site(_row(after, q + 1), usd, sites.most[q], task, _row(after, q))
    return _Tables(before, after)


@kernel
def _others(tables: _Tables, p: int, remote: int) -> Floats:
    """Cost (limit + 1,) of 0..limit chunks away from p with at most `remote` workers."""
    usd_before, workers_before = _row(tables.before, p)
    usd_after, workers_after = _row(tables.after, p + 1)
    found = np.full(len(usd_before), np.inf)
    for d in range(len(found)):
        for x in range(d + 1):
            total = usd_before[x] + usd_after[d - x]
            if total < found[d] and workers_before[x] + workers_after[d - x] <= remote:
                found[d] = total
    return found


@kernel
def chunk_curve(sites: SlotSites, task: TrainingTask, remote: int, limit: int) -> tuple[Floats, Ints]:
    """Cost (limit + 1,) of training 0..limit chunks in the slot, and the server's site (limit + 1,)."""
    cost, site = np.full(limit + 1, np.inf), np.full(limit + 1, NOT_AT_ALL)
    cost[0] = 0.0
    tables = _tables(sites, task, limit)
    for p in range(len(sites.worker_usd)):
        if sites.with_server[p] < 0:
            continue
        others, server_usd, own_usd = _others(tables, p, remote), sites.server_usd[p], sites.worker_usd[p]
        top = min(limit, sites.with_server[p] * task.rate // task.need)
        for d in range(1, limit + 1):
            for x in range(min(top, d) + 1):
                total = server_usd + workers_for(x, task.rate, task.need) * own_usd + others[d - x]
                if total < cost[d]:
                    cost[d], site[d] = total, p
    return cost, site


@kernel
def _undo(
    table: Floats, row: int, step: int, d: int, sites: SlotSites, task: TrainingTask, out: Ints
) -> None:
    """Walks a prefix (step -1) or suffix (step +1) table back from (row, d) and writes the chunks per site."""
    while d > 0 and 0 <= row <= len(sites.worker_usd):
        r = row - 1 if step < 0 else row
        before = row + step
        top = min(d, sites.most[r] * task.rate // task.need)
        best, take = np.inf, 0
        for x in range(top + 1):
            each = sites.worker_usd[r] + sites.traffic_usd
            total = table[before, d - x] + workers_for(x, task.rate, task.need) * each
            if total < best:
                best, take = total, x
        out[r] = take
        d -= take
        row = before


@kernel
def deploy_chunks(
    sites: SlotSites, task: TrainingTask, remote: int, server: int, count: int, out: Ints
) -> None:
    """Writes the workers per site (R,) that the curve priced for `count` chunks with the server at `server`."""
    out[:] = 0
    tables = _tables(sites, task, count)
    before, after = tables
    others = _others(tables, server, remote)
    best, own = np.inf, 0
    for x in range(min(count, sites.with_server[server] * task.rate // task.need) + 1):
        total = workers_for(x, task.rate, task.need) * sites.worker_usd[server] + others[count - x]
        if total < best:
            best, own = total, x
    left, low = count - own, 0
    for x in range(left + 1):
        total = before.usd[server, x] + after.usd[server + 1, left - x]
        workers = before.workers[server, x] + after.workers[server + 1, left - x]
        if total <= others[left] and workers <= remote:
            low = x
            break
    _undo(before.usd, server, -1, low, sites, task, out)
    _undo(after.usd, server + 1, 1, left - low, sites, task, out)
    out[server] = own
    for r in range(len(out)):
        out[r] = workers_for(out[r], task.rate, task.need)
