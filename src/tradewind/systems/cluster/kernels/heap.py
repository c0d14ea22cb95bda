"""A heap of jobs by the time at which each is due, from which any job can be removed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel

Small = NDArray[np.int32]


@kernel
def _sooner(due: Ints, a: int, b: int) -> bool:
    """Whether job a is due before job b; of two at the same instant the one that arrived first."""
    return bool(due[a] < due[b] or (due[a] == due[b] and a < b))


@kernel
def sift(heap: Small, place: Small, due: Ints, size: int, at: int) -> None:
    """Restore the order of a heap of jobs around one place; `place` (n,) says where each job is."""
    job = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not _sooner(due, job, heap[above]):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _sooner(due, heap[below + 1], heap[below]):
            below += 1
        if not _sooner(due, heap[below], job):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = job
    place[job] = at


@kernel
def pop(heap: Small, place: Small, due: Ints, size: int, job: int) -> int:
    """Remove a job from the heap; returns the new size."""
    at, last = place[job], size - 1
    place[job] = -1
    if at < last:
        heap[at] = heap[last]
        place[heap[at]] = at
        sift(heap, place, due, last, at)
    return last
