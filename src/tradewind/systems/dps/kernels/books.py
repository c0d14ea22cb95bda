"""Who holds what on which bin, and when it comes free: compiled books of a market of bundles.

Convention: a bundle taken in slot t with runtime tau holds its items through slot t + tau; they are idle again for an
arrival strictly after t + tau. Rows are per kind and contiguous over bins: `free_k` (K, S), `free_m` (M, S).
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.place import Scratch, place, scratch


class Stream(NamedTuple):
    """Public data of N arriving bundles, each (N,): slots are integers, `spread` and `together` are runtimes of (1)."""

    arrive: Ints
    k: Ints
    m: Ints
    d_k: Ints
    d_m: Ints
    spread: Ints
    together: Ints


class Cluster(NamedTuple):
    """Items of each kind on each bin when nothing runs: (K, S) and (M, S)."""

    idle_k: Ints
    idle_m: Ints


class Books(NamedTuple):
    """Mutable state of a running market."""

    free_k: Ints
    free_m: Ints
    idle_k: Ints
    """(K,) idle items of each first kind over all bins."""
    idle_m: Ints
    ends: Ints
    """(slots + longest + 2,) first bundle that ends in each slot, or -1."""
    after: Ints
    """(N,) next bundle that ends in the same slot, or -1."""
    first: Ints
    """(N,) first entry of a bundle's placement."""
    chain: Ints
    """(E,) next entry of the same bundle, or next free entry."""
    where: Ints
    took_k: Ints
    took_m: Ints
    head: Ints
    """(2,): first free entry; slot up to which ends have been released."""
    room: Scratch


def open_books(stream: Stream, cluster: Cluster, seed: int = 0) -> Books:
    """Books of an empty cluster before the first arrival."""
    jobs, bins = len(stream.arrive), cluster.idle_k.shape[1]
    longest = int(stream.spread.max()) if jobs else 0
    last = int(stream.arrive.max()) if jobs else 0
    # An entry holds at least one item, so the items of the cluster bound the entries.
    entries = int(cluster.idle_k.sum() + cluster.idle_m.sum()) + 1
    entries = min(entries, 2 * bins * jobs + 1)
    chain = np.arange(1, entries + 1, dtype=np.int64)
    return Books(
        free_k=np.ascontiguousarray(cluster.idle_k, dtype=np.int64).copy(),
        free_m=np.ascontiguousarray(cluster.idle_m, dtype=np.int64).copy(),
        idle_k=cluster.idle_k.sum(axis=1).astype(np.int64),
        idle_m=cluster.idle_m.sum(axis=1).astype(np.int64),
        ends=np.full(last + longest + 2, -1, dtype=np.int64),
        after=np.full(jobs, -1, dtype=np.int64),
        first=np.full(jobs, -1, dtype=np.int64),
        chain=chain,
        where=np.zeros(entries, dtype=np.int64),
        took_k=np.zeros(entries, dtype=np.int64),
        took_m=np.zeros(entries, dtype=np.int64),
        head=np.zeros(2, dtype=np.int64),
        room=scratch(bins, seed),
    )


@kernel(inline="always")
def release_before(books: Books, stream: Stream, slot: int) -> None:
    """Free everything that ended strictly before `slot`."""
    for t in range(books.head[1], slot):
        job = books.ends[t]
        while job >= 0:
            _release(books, job, stream.k[job], stream.m[job])
            job = books.after[job]
    books.head[1] = max(books.head[1], slot)


@kernel(inline="always")
def _release(books: Books, job: int, k: int, m: int) -> None:
    entry = books.first[job]
    while entry >= 0:
        s = books.where[entry]
        books.free_k[k, s] += books.took_k[entry]
        books.free_m[m, s] += books.took_m[entry]
        books.idle_k[k] += books.took_k[entry]
        books.idle_m[m] += books.took_m[entry]
        beyond = books.chain[entry]
        books.chain[entry] = books.head[0]
        books.head[0] = entry
        entry = beyond


@kernel(inline="always")
def fits(books: Books, stream: Stream, job: int) -> bool:
    """(2a): enough idle items of both kinds over all bins."""
    return bool(
        books.idle_k[stream.k[job]] >= stream.d_k[job] and books.idle_m[stream.m[job]] >= stream.d_m[job]
    )


@kernel(inline="always")
def plan(books: Books, stream: Stream, job: int, rule: int) -> tuple[int, int]:
    """Where the bundle would go (left in `books.room`): number of entries and runtime in slots."""
    x, z = books.free_k[stream.k[job]], books.free_m[stream.m[job]]
    count, together = place(rule, x, z, stream.d_k[job], stream.d_m[job], books.room)
    return count, stream.together[job] if together else stream.spread[job]


@kernel(inline="always")
def commit(books: Books, stream: Stream, job: int, count: int, runtime: int) -> None:
    """Take the planned items from the bundle's arrival through arrival + runtime."""
    k, m = stream.k[job], stream.m[job]
    room = books.room
    books.first[job] = -1
    for i in range(count):
        s = room.bins[i]
        entry = books.head[0]
        books.head[0] = books.chain[entry]
        books.where[entry] = s
        books.took_k[entry] = room.take_k[i]
        books.took_m[entry] = room.take_m[i]
        books.chain[entry] = books.first[job]
        books.first[job] = entry
        books.free_k[k, s] -= room.take_k[i]
        books.free_m[m, s] -= room.take_m[i]
        books.idle_k[k] -= room.take_k[i]
        books.idle_m[m] -= room.take_m[i]
    end = stream.arrive[job] + runtime
    books.after[job] = books.ends[end]
    books.ends[end] = job
