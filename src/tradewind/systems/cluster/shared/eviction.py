"""Which jobs run, in a given order, with several resources: running jobs keep their places where possible."""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.systems.cluster.shared.placement import Cluster
from tradewind.systems.cluster.shared.shape import Place, Shape


def reassign(
    cluster: Cluster, order: list[int], shapes: Mapping[int, Shape]
) -> tuple[dict[int, Place], list[int]]:
    """Walk the order; a job that does not fit evicts running jobs from the end of the order until it does.

    Returns (job -> its new place, jobs that stop). An evicted job gets its place back if that is still free, else another
    one, and stops only where there is none.
    """
    before = {job: cluster.places[job][0] for job in order if job in cluster.places}
    running = [job for job in order if job in before]
    starts: dict[int, Place] = {}
    hopeless: set[Shape] = set()
    ahead = 0
    for job in order:
        if ahead < len(running) and running[ahead] == job:
            ahead += 1
        if job in cluster.places:
            continue
        shape = shapes[job]
        if job in before and cluster.take_back(job, before[job], shape):
            continue
        if shape in hopeless:  # jobs further back never have more room
            continue
        behind = [other for other in running[ahead:] if other in cluster.places]
        place = cluster.take(job, shape) or _evict(cluster, job, shape, behind)
        if place is None:
            hopeless.add(shape)
        elif place != before.get(job):
            starts[job] = place
    return starts, [job for job in running if job not in cluster.places]


def _evict(cluster: Cluster, job: int, shape: Shape, behind: list[int]) -> Place | None:
    """Place a job by evicting as few jobs as needed from the end of `behind`; None where evicting all does not help."""
    if not behind:
        return None
    held = {other: cluster.places[other] for other in behind}
    for other in behind:
        cluster.give(other)
    if cluster.take(job, shape) is None:
        for other in behind:
            cluster.take_back(other, *held[other])
        return None
    cluster.give(job)
    for other in behind:
        cluster.take_back(other, *held[other])
    place, out = None, []
    while place is None:
        other = behind.pop()
        out.append(other)
        cluster.give(other)
        place = cluster.take(job, shape)
    for other in reversed(out):
        cluster.take_back(other, *held[other])
    return place
