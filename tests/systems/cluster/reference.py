"""The schedulers once more, in the plainest way: one list of jobs, whole seconds, only the number of free GPUs counts.

Written from the description of the rules alone, without any code of the package, so that equal completion times
mean that two independent programs agree.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RefJob:
    """A job as the reference sees it; times in seconds."""

    number: int
    arrive: int
    duration: int
    gpus: int
    tenant: str = ""
    done: int = 0
    running: bool = False
    queue: int = 0
    finish: int = -1


def simulate(
    jobs: list[RefJob], gpus: int, rule: str, limits: tuple[int, ...] = (3250, 7200)
) -> dict[int, int]:
    """Job number -> completion second, for every job that fits into the cluster."""
    coming = [job for job in sorted(jobs, key=lambda j: j.arrive) if job.gpus <= gpus]
    active: list[RefJob] = []
    queues: list[list[RefJob]] = [[] for _ in range(len(limits) + 1)]
    finished: dict[int, int] = {}
    now = 0
    jump = None
    while coming or active:
        ends = [now + job.duration - job.done for job in active if job.running]
        instants = [*([min(ends)] if ends else []), *([coming[0].arrive] if coming else [])]
        if jump is not None:
            instants.append(jump)
        then = min(instants)
        for job in active:
            if job.running:
                job.done += then - now
        now = then
        for job in [j for j in active if j.running and j.done == j.duration]:
            finished[job.number] = job.finish = now
            active.remove(job)
            if rule == "las":
                queues[job.queue].remove(job)
        while coming and coming[0].arrive == now:
            active.append(coming[0])
            queues[0].append(coming.pop(0))
        if rule == "las":
            jump = _las(active, queues, gpus, limits, now)
        elif rule in ("srtf", "srsf"):
            active.sort(key=lambda j: (j.duration - j.done) * (j.gpus if rule == "srsf" else 1))
            _run_what_fits(active, gpus)
        else:
            _start(active, gpus, rule)
    return finished


def _run_what_fits(order: list[RefJob], gpus: int) -> None:
    free = gpus
    for job in order:
        job.running = job.gpus <= free
        if job.running:
            free -= job.gpus


def _start(active: list[RefJob], gpus: int, rule: str) -> None:
    """fifo, fifo-backfill and drf: nothing that runs is ever stopped."""
    free = gpus - sum(job.gpus for job in active if job.running)
    if rule == "drf":
        while (job := _poorest(active, free)) is not None:
            job.running = True
            free -= job.gpus
        return
    for job in active:
        if job.running:
            continue
        if job.gpus <= free:
            job.running = True
            free -= job.gpus
        elif rule == "fifo":
            return


def _poorest(active: list[RefJob], free: int) -> RefJob | None:
    """The next job of the tenant that uses least, among the tenants whose next job fits."""
    users = [job.tenant or f"#{job.number}" for job in active]
    used = dict.fromkeys(users, 0)
    following: dict[str, RefJob] = {}
    for user, job in zip(users, active, strict=True):
        if job.running:
            used[user] += job.gpus
        else:
            following.setdefault(user, job)
    candidates = [(used[user], job.number, job) for user, job in following.items() if job.gpus <= free]
    return min(candidates, key=lambda c: c[:2])[2] if candidates else None


def _las(
    active: list[RefJob], queues: list[list[RefJob]], gpus: int, limits: tuple[int, ...], now: int
) -> int | None:
    """Sink, serve, put running jobs first; returns the next second at which a running job sinks."""
    for job in active:  # in order of arrival
        if job.running and job.queue < len(limits) and job.done * job.gpus >= limits[job.queue]:
            queues[job.queue].remove(job)
            job.queue += 1
            queues[job.queue].append(job)
    _run_what_fits([job for queue in queues for job in queue], gpus)
    for q, queue in enumerate(queues):
        queues[q] = [j for j in queue if j.running] + [j for j in queue if not j.running]
    jumps = [
        now + max(1, -(-(limits[j.queue] - j.done * j.gpus) // j.gpus))
        for j in active
        if j.running and j.queue < len(limits)
    ]
    return min(jumps, default=None)
