"""One slot of one bidder whose workers train a fractional number of chunks: a knapsack over sites (Eris, problem (8)).

x chunks at a site need ceil(x * E / P) workers there, a ceiling per site, so chunks are counted instead of workers.
Sites before and after the server's site are merged from a prefix and a suffix table.
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


@kernel
def workers_for(chunks: int, rate: int, need: int) -> int:
    """Workers that train so many chunks in a slot: ceil(chunks * need / rate)."""
    return -((-chunks * need) // rate)


@kernel
def _add_site(
    before: Floats, away: Ints, usd: float, most: int, rate: int, need: int, out: Floats, out_away: Ints
) -> None:
    """Min-plus of a table (D + 1,) with one site whose workers cost `usd` each; away counts workers of the minimum."""
    limit = len(before) - 1
    top = min(limit, most * rate // need)
    for d in range(limit + 1):
        out[d], out_away[d] = before[d], away[d]
        for x in range(1, min(top, d) + 1):
            g = workers_for(x, rate, need)
            total = before[d - x] + g * usd
            count = away[d - x] + g
            if total < out[d] or (total == out[d] and count < out_away[d]):
                out[d], out_away[d] = total, count


@kernel
def _tables(
    worker_usd: Floats, most: Ints, traffic_usd: float, rate: int, need: int, limit: int
) -> tuple[Floats, Ints, Floats, Ints]:
    """Prefix and suffix tables (R + 1, limit + 1) of remote chunks: cost in USD and number of workers."""
    sites = len(worker_usd)
    pre, suf = np.full((sites + 1, limit + 1), np.inf), np.full((sites + 1, limit + 1), np.inf)
    pre_n, suf_n = np.zeros((sites + 1, limit + 1), np.int64), np.zeros((sites + 1, limit + 1), np.int64)
    pre[0, 0], suf[sites, 0] = 0.0, 0.0
    for r in range(sites):
        _add_site(
            pre[r], pre_n[r], worker_usd[r] + traffic_usd, most[r], rate, need, pre[r + 1], pre_n[r + 1]
        )
        q = sites - 1 - r
        _add_site(
            suf[q + 1], suf_n[q + 1], worker_usd[q] + traffic_usd, most[q], rate, need, suf[q], suf_n[q]
        )
    return pre, pre_n, suf, suf_n


@kernel
def _others(pre: Floats, pre_n: Ints, suf: Floats, suf_n: Ints, p: int, remote: int) -> Floats:
    """Cost (limit + 1,) of so many chunks away from p with at most `remote` workers."""
    limit = pre.shape[1] - 1
    found = np.full(limit + 1, np.inf)
    for d in range(limit + 1):
        for x in range(d + 1):
            total = pre[p, x] + suf[p + 1, d - x]
            if total < found[d] and pre_n[p, x] + suf_n[p + 1, d - x] <= remote:
                found[d] = total
    return found


@kernel
def chunk_curve(
    worker_usd: Floats,
    server_usd: Floats,
    most: Ints,
    with_server: Ints,
    traffic_usd: float,
    remote: int,
    rate: int,
    need: int,
    limit: int,
) -> tuple[Floats, Ints]:
    """Cost (limit + 1,) of training 0..limit chunks in the slot, and the server's site (limit + 1,)."""
    cost, site = np.full(limit + 1, np.inf), np.full(limit + 1, -1)
    cost[0] = 0.0
    pre, pre_n, suf, suf_n = _tables(worker_usd, most, traffic_usd, rate, need, limit)
    for p in range(len(worker_usd)):
        if with_server[p] < 0:
            continue
        others = _others(pre, pre_n, suf, suf_n, p, remote)
        top = min(limit, with_server[p] * rate // need)
        for d in range(1, limit + 1):
            for x in range(min(top, d) + 1):
                total = server_usd[p] + workers_for(x, rate, need) * worker_usd[p] + others[d - x]
                if total < cost[d]:
                    cost[d], site[d] = total, p
    return cost, site


@kernel
def _undo(
    table: Floats, row: int, step: int, d: int, usd: Floats, most: Ints, rate: int, need: int, out: Ints
) -> None:
    """Walks a prefix (step -1) or suffix (step +1) table back from (row, d) and writes the chunks per site."""
    sites = len(usd)
    while d > 0 and 0 <= row <= sites:
        r = row - 1 if step < 0 else row
        before = row + step
        top = min(d, most[r] * rate // need)
        best, take = np.inf, 0
        for x in range(top + 1):
            total = table[before, d - x] + workers_for(x, rate, need) * usd[r]
            if total < best:
                best, take = total, x
        out[r] = take
        d -= take
        row = before


@kernel
def deploy_chunks(
    worker_usd: Floats,
    most: Ints,
    with_server: Ints,
    traffic_usd: float,
    remote: int,
    server: int,
    rate: int,
    need: int,
    count: int,
    out: Ints,
) -> None:
    """Writes the workers per site (R,) that the curve priced for `count` chunks with the server at `server`."""
    out[:] = 0
    pre, pre_n, suf, suf_n = _tables(worker_usd, most, traffic_usd, rate, need, count)
    others = _others(pre, pre_n, suf, suf_n, server, remote)
    best, own = np.inf, 0
    for x in range(min(count, with_server[server] * rate // need) + 1):
        total = workers_for(x, rate, need) * worker_usd[server] + others[count - x]
        if total < best:
            best, own = total, x
    left, low = count - own, 0
    for x in range(left + 1):
        total = pre[server, x] + suf[server + 1, left - x]
        if total <= others[left] and pre_n[server, x] + suf_n[server + 1, left - x] <= remote:
            low = x
            break
    usd = worker_usd + traffic_usd
    _undo(pre, server, -1, low, usd, most, rate, need, out)
    _undo(suf, server + 1, 1, left - low, usd, most, rate, need, out)
    out[server] = own
    for r in range(len(out)):
        out[r] = workers_for(out[r], rate, need)
