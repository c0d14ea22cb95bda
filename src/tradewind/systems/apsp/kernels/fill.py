"""Bandwidth per flow: first what the slowest needs, then weighted max-min filling of what is left."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.apsp.kernels.problem import Gather, Routing


def fill(problem: Gather, routing: Routing) -> Floats:
    """Speed x_f (n,) of every flow: it takes the time 1 / x_f, and loads its resources with data * weight * x_f.

    All speeds rise together; when a resource is full its flows keep theirs and the rest goes on. The least
    speed is 1 / max(load / capacity): the slowest flow is as fast as with equal times, all others are not slower.
    """
    flows = [u for u, arcs in enumerate(routing) if arcs]
    speed = np.zeros(problem.graph.nodes)
    left = problem.capacity.astype(np.float64)
    need = {u: float(problem.data[u] * problem.weight[len(routing[u])]) for u in flows}
    on = {u: problem.graph.resource[list(routing[u])] for u in flows}
    load = np.zeros(left.size)
    for u in flows:
        load[on[u]] += need[u]
    rising = set(flows)
    level = 0.0
    while rising:
        busy = np.flatnonzero(load > 1e-9)
        step = left[busy] / load[busy]
        gain = float(step.min())
        level += gain
        left[busy] -= gain * load[busy]
        full = set(busy[step <= gain * (1 + 1e-12)].tolist())
        stopped = [u for u in flows if u in rising and not full.isdisjoint(on[u].tolist())]
        for u in stopped:
            speed[u] = level
            load[on[u]] -= need[u]
            rising.remove(u)
        left[list(full)] = 0.0
        load[list(full)] = 0.0
    return speed
