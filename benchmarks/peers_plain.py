"""Simulators of a cluster as users write them in plain Python, without records or checks: what ours are compared with.

Each takes rows (arrival s, duration s, GPUs) in order of arrival and the number of GPUs, and returns the mean completion
time in seconds. Only the number of free GPUs counts.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

Rows = list[tuple[float, float, int]]


def simpy_fifo(rows: Rows, gpus: int) -> float:
    """First in, first out with SimPy: a process per job that takes GPUs from a container."""
    import simpy

    env = simpy.Environment()
    pool, gate, times = simpy.Container(env, gpus, gpus), simpy.Resource(env, 1), list[float]()

    def job(arrive: float, duration: float, need: int) -> Generator[Any, Any, None]:
        yield env.timeout(arrive)
        with gate.request() as turn:  # the head of the queue blocks those behind it
            yield turn
            yield pool.get(need)
        yield env.timeout(duration)
        yield pool.put(need)
        times.append(env.now - arrive)

    for row in rows:
        env.process(job(*row))
    env.run()
    return sum(times) / len(times)


def tiresias_las(rows: Rows, gpus: int, limits: tuple[float, ...] = (3250.0, 7200.0)) -> float:
    """Tiresias' queues by attained service: at every event all jobs are sorted, and those that fit run."""
    left, got, times = (
        {i: row[1] for i, row in enumerate(rows)},
        dict.fromkeys(range(len(rows)), 0.0),
        list[float](),
    )
    here: list[int] = []
    running: list[int] = []
    now, coming = 0.0, 0
    while coming < len(rows) or here:
        ends = [now + left[i] for i in running]
        sinks = [
            now + (limit - got[i]) / rows[i][2] for i in running for limit in limits if got[i] < limit - 1e-6
        ]
        then = min([*ends, *sinks, *([rows[coming][0]] if coming < len(rows) else [])])
        for i in running:
            left[i] -= then - now
            got[i] += (then - now) * rows[i][2]
        now = then
        for i in [i for i in running if left[i] <= 1e-6]:
            here.remove(i)
            times.append(now - rows[i][0])
        while coming < len(rows) and rows[coming][0] <= now:
            here.append(coming)
            coming += 1
        free, running = gpus, []
        for i in sorted(here, key=lambda i: (sum(got[i] >= limit - 1e-6 for limit in limits), i)):
            if rows[i][2] <= free:
                free -= rows[i][2]
                running.append(i)
    return sum(times) / len(times)


def gavel_rounds(rows: Rows, gpus: int, round_s: float = 360.0) -> float:
    """Gavel's mechanism: time in rounds; in each, the jobs with the least service so far run for the whole round."""
    left, got, times = (
        {i: row[1] for i, row in enumerate(rows)},
        dict.fromkeys(range(len(rows)), 0.0),
        list[float](),
    )
    here: list[int] = []
    now, coming = 0.0, 0
    while coming < len(rows) or here:
        if not here:
            now = max(now, rows[coming][0])
        while coming < len(rows) and rows[coming][0] <= now:
            here.append(coming)
            coming += 1
        free = gpus
        for i in sorted(here, key=lambda i: got[i]):
            if rows[i][2] <= free:
                free -= rows[i][2]
                got[i] += round_s * rows[i][2]
                left[i] -= round_s
        for i in [i for i in here if left[i] <= 0]:
            here.remove(i)
            times.append(now + round_s + left[i] - rows[i][0])
        now += round_s
    return sum(times) / len(times)
