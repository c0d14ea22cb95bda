"""Packing identical items of two sizes into bins that form a tree.

An *item* has a size per resource; a *bin* has room per resource, and an item also takes room in all bins that contain its
bin. Arrays, with N bins in total, H of them open for items, D the longest chain, R resources:

room   (N, R) int64  free room of each bin
chain  (H, D) int64  a bin and the bins that contain it, padded with -1; chain[h, 0] is the bin itself
big    (R,)   int64  size of one big item
small  (R,)   int64  size of one small item
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.solvers.kernel import kernel

MANY = 1_000_000
"""More items than a bin ever holds; ranks of bins are separated by multiples of it."""


@kernel
def holds(room: Ints, chain: Ints, h: int, size: Ints, most: int) -> int:
    """How many items of `size` (R,) still fit into bin h, at most `most`."""
    count = most
    for d in range(chain.shape[1]):
        at = chain[h, d]
        if at < 0:
            break
        for r in range(size.shape[0]):
            if size[r] > 0:
                count = min(count, max(0, room[at, r] // size[r]))
    return count


@kernel
def take(room: Ints, chain: Ints, h: int, size: Ints, count: int) -> None:
    """Put `count` items of `size` (R,) into bin h and the bins that contain it; a negative count removes them."""
    for d in range(chain.shape[1]):
        at = chain[h, d]
        if at < 0:
            break
        for r in range(size.shape[0]):
            room[at, r] -= size[r] * count


@kernel
def _one_bin(
    room: Ints, chain: Ints, allowed: Bools, big: Ints, small: Ints, n_big: int, n_small: int
) -> int:
    """The bin that holds everything and then has room for the fewest big items; -1 if no bin does."""
    both = big * n_big + small * n_small
    best, least = -1, 2 * MANY
    for h in range(chain.shape[0]):
        if allowed[h] and holds(room, chain, h, both, 1) == 1:
            left = holds(room, chain, h, big, n_big + MANY) - n_big
            if left < least:
                best, least = h, left
    return best


@kernel
def _spread(room: Ints, chain: Ints, allowed: Bools, size: Ints, count: int, out: Ints, near: Ints) -> int:
    """Fill the emptiest bins first and the last one as tightly as possible; return the number of items left over.

    out   (H,) items per bin, added to; room is changed
    near  (H,) bins with a positive entry come first; all zeros: no preference
    """
    left = count
    while left > 0:
        best, score = -1, np.int64(-1)
        for h in range(chain.shape[0]):
            if not allowed[h]:
                continue
            fit = holds(room, chain, h, size, left)
            if fit == 0:
                continue
            # Prefer a bin that holds all the rest, the tightest of them; else the one that holds most.
            rank = np.int64(fit)
            if fit == left:
                rank += 2 * MANY - holds(room, chain, h, size, left + MANY) + left
            if near[h] > 0:
                rank += 8 * MANY
            if rank > score:
                best, score = h, rank
        if best < 0:
            return left
        fit = holds(room, chain, best, size, left)
        take(room, chain, best, size, fit)
        out[best] += fit
        left -= fit
    return 0


@kernel
def pack(
    room: Ints, chain: Ints, allowed: Bools, big: Ints, small: Ints, n_big: int, n_small: int, out: Ints
) -> bool:
    """Place n_big big and n_small small items: in one bin if one holds them all, else in few bins. Return whether they fit.

    out  (2, H) items per bin: big in row 0, small in row 1; overwritten. room is changed only on success.

    Big items alone are placed whenever they fit: limits are nested, so filling bins one by one reaches the largest
    possible number. With small items as well, big ones are placed first, and if that fails, small ones.
    """
    out[:] = 0
    one = _one_bin(room, chain, allowed, big, small, n_big, n_small)
    if one >= 0:
        out[0, one], out[1, one] = n_big, n_small
        take(room, chain, one, big, n_big)
        take(room, chain, one, small, n_small)
        return True
    for first in range(1 + (n_small > 0)):
        trial = room.copy()
        out[:] = 0
        no_preference = np.zeros(chain.shape[0], np.int64)
        if first == 0:
            rest = _spread(trial, chain, allowed, big, n_big, out[0], no_preference)
            if rest == 0:
                rest = _spread(trial, chain, allowed, small, n_small, out[1], out[0])
        else:
            rest = _spread(trial, chain, allowed, small, n_small, out[1], no_preference)
            if rest == 0:
                rest = _spread(trial, chain, allowed, big, n_big, out[0], out[1])
        if rest == 0:
            room[:] = trial
            return True
    out[:] = 0
    return False
