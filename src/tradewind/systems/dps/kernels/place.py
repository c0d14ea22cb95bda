"""Placement rules: kernels that split d_k items of one kind and d_m of another over bins.

A row `x` (S,) holds what is idle of the first kind on each bin, `z` (S,) what is idle of the second. Every rule
assumes sum(x) >= d_k and sum(z) >= d_m, writes a list of (bin, items of the first kind, items of the second kind)
into its scratch arrays of length 2 S and returns how many entries it wrote and whether one bin holds everything.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel

WORST_FIT = 0
"""Algorithm 2 of DPS: the bin with most idle items first, co-located where a bin can take everything."""
BEST_FIT = 1
"""Co-located in the bin that it fills best; otherwise spread over the bins with the fewest idle items."""
RANDOM = 2
"""Bins in random order, filled one after the other."""

LARGEST = 2**20 - 1
"""Most bins of a cluster, and most items on a bin: three such numbers are packed into one sort key."""

_BIN_MASK = LARGEST
_NOTHING = 2**63 - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


class Scratch(NamedTuple):
    """Buffers for one placement, and the state of the random rule (1,)."""

    bins: Ints
    take_k: Ints
    take_m: Ints
    order: Ints
    keys: Ints
    state: NDArray[np.uint64]


def scratch(bins: int, seed: int) -> Scratch:
    """Buffers for a cluster of `bins` bins."""
    room = np.zeros(2 * bins, dtype=np.int64)
    state = np.array([np.uint64(seed)], dtype=np.uint64)
    order = np.arange(bins, dtype=np.int64)
    return Scratch(room, room.copy(), room.copy(), order, order.copy(), state)


@kernel
def next_uniform(state: NDArray[np.uint64]) -> float:
    """A number in [0, 1) from splitmix64; `state` (1,) advances, so a saved state continues identically."""
    state[0] += _GOLDEN
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * _MIX_A
    word = (word ^ (word >> np.uint64(27))) * _MIX_B
    word = word ^ (word >> np.uint64(31))
    return float(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def place(rule: int, x: Ints, z: Ints, d_k: int, d_m: int, room: Scratch) -> tuple[int, bool]:
    """Split one bundle by `rule`; the module says what is written and returned."""
    found: tuple[int, bool]
    if rule == RANDOM:
        _shuffle(room)
        found = _along(room.order, x, z, d_k, d_m, room)
        return found
    home = _worst_home(x, z, d_k, d_m) if rule == WORST_FIT else _best_home(x, z, d_k, d_m)
    if home >= 0:
        room.bins[0] = home
        room.take_k[0] = d_k
        room.take_m[0] = d_m
        return 1, True
    worst = rule == WORST_FIT
    found = _spread_worst(x, z, d_k, d_m, room) if worst else _spread_best(x, z, d_k, d_m, room)
    return found


@kernel
def _worst_home(x: Ints, z: Ints, d_k: int, d_m: int) -> int:
    """Algorithm 2, lines 1-10: the first bin in descending (x, z) that takes all, or -1; ties go to the lower index."""
    best = -1
    for s in range(x.shape[0]):
        key = _pack(x[s], z[s], _BIN_MASK - s)
        best = max(best, key if (x[s] >= d_k and z[s] >= d_m) else -1)
    return _BIN_MASK - (best & _BIN_MASK) if best >= 0 else -1


@kernel
def _best_home(x: Ints, z: Ints, d_k: int, d_m: int) -> int:
    """The bin that takes all with the least idle left over in both kinds together, or -1."""
    best = _NOTHING
    for s in range(x.shape[0]):
        key = _pack(0, x[s] + z[s], s)
        best = min(best, key if (x[s] >= d_k and z[s] >= d_m) else _NOTHING)
    return best & _BIN_MASK if best < _NOTHING else -1


@kernel
def _spread_worst(x: Ints, z: Ints, d_k: int, d_m: int, room: Scratch) -> tuple[int, bool]:
    """Algorithm 2, lines 12-22: both kinds walk the bins in descending (x, z), each from the start."""
    keys, order = room.keys, room.order
    for s in range(x.shape[0]):
        keys[s] = _pack(x[s], z[s], _BIN_MASK - s)
    count = 0
    ranked = 0
    while d_k > 0:
        s = _pop_largest(keys)
        order[ranked] = s
        ranked += 1
        took = min(d_k, x[s])
        count = _write(room, count, s, took, 0)
        d_k -= took
    at = 0
    while d_m > 0:
        if at == ranked:
            order[ranked] = _pop_largest(keys)
            ranked += 1
        s = order[at]
        took = min(d_m, z[s])
        count = _write(room, count, s, 0, took)
        d_m -= took
        at += 1
    return count, False


@kernel
def _spread_best(x: Ints, z: Ints, d_k: int, d_m: int, room: Scratch) -> tuple[int, bool]:
    """Use up the bins with the fewest idle items: runtime (1) does not depend on how many bins are used."""
    keys = room.keys
    count = 0
    for s in range(x.shape[0]):
        keys[s] = _pack(0, x[s], s) if x[s] > 0 else _NOTHING
    while d_k > 0:
        s = _pop_smallest(keys)
        took = min(d_k, x[s])
        count = _write(room, count, s, took, 0)
        d_k -= took
    for s in range(x.shape[0]):
        keys[s] = _pack(0, z[s], s) if z[s] > 0 else _NOTHING
    while d_m > 0:
        s = _pop_smallest(keys)
        took = min(d_m, z[s])
        count = _write(room, count, s, 0, took)
        d_m -= took
    return count, False


@kernel(inline="always")
def _pack(high: int, low: int, s: int) -> int:
    """One integer that sorts by (high, low, s); each part below 2^20."""
    return (((high << 20) | low) << 20) | s


@kernel
def _pop_largest(keys: Ints) -> int:
    """The bin of the largest key, which is removed (a key stores mask - bin)."""
    best = -1
    for s in range(keys.shape[0]):
        best = max(best, keys[s])
    s = _BIN_MASK - (best & _BIN_MASK)
    keys[s] = -1
    return s


@kernel
def _pop_smallest(keys: Ints) -> int:
    """The bin of the smallest key, which is removed."""
    best = _NOTHING
    for s in range(keys.shape[0]):
        best = min(best, keys[s])
    s = best & _BIN_MASK
    keys[s] = _NOTHING
    return s


@kernel
def _along(order: Ints, x: Ints, z: Ints, d_k: int, d_m: int, room: Scratch) -> tuple[int, bool]:
    """Fill bins in the given order, the first kind and then the second."""
    first = order[0]
    if x[first] >= d_k and z[first] >= d_m:
        return _write(room, 0, first, d_k, d_m), True
    count = 0
    for s in order:
        if d_k == 0:
            break
        took = min(d_k, x[s])
        count = _write(room, count, s, took, 0)
        d_k -= took
    for s in order:
        if d_m == 0:
            break
        took = min(d_m, z[s])
        count = _write(room, count, s, 0, took)
        d_m -= took
    return count, False


@kernel
def _write(room: Scratch, count: int, s: int, take_k: int, take_m: int) -> int:
    """Append one entry unless it is empty."""
    if take_k == 0 and take_m == 0:
        return count
    room.bins[count] = s
    room.take_k[count] = take_k
    room.take_m[count] = take_m
    return count + 1


@kernel
def _shuffle(room: Scratch) -> None:
    order = room.order
    for s in range(order.shape[0]):
        order[s] = s
    for s in range(order.shape[0] - 1, 0, -1):
        other = int(next_uniform(room.state) * (s + 1))
        order[s], order[other] = order[other], order[s]
