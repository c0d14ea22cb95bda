"""Which bundle holds what on which bin, and when it is released, as compiled arrays.

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


class Occupancy(NamedTuple):
    """Mutable: idle items per bin, and the placements of running bundles as linked lists."""

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
    """(2,): first free entry; slot up to which ended bundles were released."""
    room: Scratch


def empty_occupancy(stream: Stream, cluster: Cluster, seed: int = 0) -> Occupancy:
    """An empty cluster before the first arrival."""
    jobs, bins = len(stream.arrive), cluster.idle_k.shape[1]
    longest = int(stream.spread.max()) if jobs else 0
    last = int(stream.arrive.max()) if jobs else 0
    # An entry holds at least one item, so the items of the cluster bound the entries.
    entries = int(cluster.idle_k.sum() + cluster.idle_m.sum()) + 1
    entries = min(entries, 2 * bins * jobs + 1)
    chain = np.arange(1, entries + 1, dtype=np.int64)
    return Occupancy(
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


@kernel
def reset(occupancy: Occupancy, empty: Occupancy) -> None:
    """Return to the empty cluster without allocating."""
    occupancy.free_k[:] = empty.free_k
    occupancy.free_m[:] = empty.free_m
    occupancy.idle_k[:] = empty.idle_k
    occupancy.idle_m[:] = empty.idle_m
    occupancy.ends[:] = -1
    occupancy.chain[:] = empty.chain
    occupancy.head[:] = 0
    occupancy.room.state[:] = empty.room.state


@kernel(inline="always")
def release_before(occupancy: Occupancy, stream: Stream, slot: int) -> None:
    """Free everything that ended strictly before `slot`."""
    for t in range(occupancy.head[1], slot):
        job = occupancy.ends[t]
        while job >= 0:
            _release(occupancy, job, stream.k[job], stream.m[job])
            job = occupancy.after[job]
    occupancy.head[1] = max(occupancy.head[1], slot)


@kernel(inline="always")
def _release(occupancy: Occupancy, job: int, k: int, m: int) -> None:
    entry = occupancy.first[job]
    while entry >= 0:
        s = occupancy.where[entry]
        occupancy.free_k[k, s] += occupancy.took_k[entry]
        occupancy.free_m[m, s] += occupancy.took_m[entry]
        occupancy.idle_k[k] += occupancy.took_k[entry]
        occupancy.idle_m[m] += occupancy.took_m[entry]
        beyond = occupancy.chain[entry]
        occupancy.chain[entry] = occupancy.head[0]
        occupancy.head[0] = entry
        entry = beyond


@kernel(inline="always")
def fits(occupancy: Occupancy, stream: Stream, job: int) -> bool:
    """(2a): enough idle items of both kinds over all bins."""
    return bool(
        occupancy.idle_k[stream.k[job]] >= stream.d_k[job]
        and occupancy.idle_m[stream.m[job]] >= stream.d_m[job]
    )


@kernel(inline="always")
def plan(occupancy: Occupancy, stream: Stream, job: int, rule: int) -> tuple[int, int]:
    """Place the bundle tentatively (in `occupancy.room`); return the number of entries and the runtime in slots."""
    x, z = occupancy.free_k[stream.k[job]], occupancy.free_m[stream.m[job]]
    count, together = place(rule, x, z, stream.d_k[job], stream.d_m[job], occupancy.room)
    return count, stream.together[job] if together else stream.spread[job]


@kernel(inline="always")
def commit(occupancy: Occupancy, stream: Stream, job: int, count: int, runtime: int) -> None:
    """Take the planned items from the bundle's arrival through arrival + runtime."""
    k, m = stream.k[job], stream.m[job]
    room = occupancy.room
    occupancy.first[job] = -1
    for i in range(count):
        s = room.bins[i]
        entry = occupancy.head[0]
        occupancy.head[0] = occupancy.chain[entry]
        occupancy.where[entry] = s
        occupancy.took_k[entry] = room.take_k[i]
        occupancy.took_m[entry] = room.take_m[i]
        occupancy.chain[entry] = occupancy.first[job]
        occupancy.first[job] = entry
        occupancy.free_k[k, s] -= room.take_k[i]
        occupancy.free_m[m, s] -= room.take_m[i]
        occupancy.idle_k[k] -= room.take_k[i]
        occupancy.idle_m[m] -= room.take_m[i]
    end = stream.arrive[job] + runtime
    occupancy.after[job] = occupancy.ends[end]
    occupancy.ends[end] = job
