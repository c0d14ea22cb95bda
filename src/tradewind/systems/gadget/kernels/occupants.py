"""Which rings are on every server, as linked lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel


class Occupants(NamedTuple):
    """Linked lists of the rings on every server; entry i · N + j is the j-th server of job i, -1 is none.

    head (S,) first entry of a server; after and before (I · N,) an entry's neighbours
    """

    head: Ints
    after: Ints
    before: Ints


@kernel
def occupants_of(servers: int, server: Ints) -> Any:
    """The lists of rings (I, N) on this number of servers."""
    entries = server.shape[0] * server.shape[1]
    lists = Occupants(np.full(servers, -1), np.full(entries, -1), np.full(entries, -1))
    for i in range(server.shape[0]):
        enter(lists, server, i)
    return lists


@kernel
def enter(lists: Occupants, server: Ints, i: int) -> None:
    """Add the ring of job i to the lists of its servers."""
    head, after, before = lists
    width = server.shape[1]
    for j in range(width):
        s = server[i, j]
        if s < 0:
            break
        entry = i * width + j
        after[entry], before[entry] = head[s], -1
        if head[s] >= 0:
            before[head[s]] = entry
        head[s] = entry


@kernel
def leave(lists: Occupants, server: Ints, i: int) -> None:
    """Remove the ring of job i from the lists of its servers."""
    head, after, before = lists
    width = server.shape[1]
    for j in range(width):
        s = server[i, j]
        if s < 0:
            break
        entry = i * width + j
        if before[entry] >= 0:
            after[before[entry]] = after[entry]
        else:
            head[s] = after[entry]
        if after[entry] >= 0:
            before[after[entry]] = before[entry]
