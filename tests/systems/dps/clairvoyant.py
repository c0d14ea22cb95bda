"""A bound for a seller who knows every budget and the future, to hold the other bounds against."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from tradewind.model.arrays import Floats
from tradewind.systems.dps.kernels.bound import least_hold
from tradewind.systems.dps.kernels.occupancy import Cluster, Stream


def clairvoyant_bound(
    stream: Stream, cluster: Cluster, slots: int, budget: Floats, blocks: int = 50
) -> float:
    """LP: max sum_i min(v_i, d_i) x_i, 0 <= x <= 1, item-slots used in each of `blocks` stretches of time <= capacity."""
    hold = least_hold(stream, cluster, slots)
    kinds_k = len(cluster.idle_k)
    items = np.concatenate([cluster.idle_k.sum(axis=1), cluster.idle_m.sum(axis=1)]).astype(np.float64)
    worth = np.minimum(budget, stream.d_k + stream.d_m)
    fits = (stream.d_k <= items[stream.k]) & (stream.d_m <= items[kinds_k + stream.m])
    edges = np.linspace(0, slots, blocks + 1)
    start, end = stream.arrive.astype(np.float64), stream.arrive + hold
    overlap = np.clip(np.minimum(end[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1]), 0.0, None)
    job, block = np.nonzero(overlap)
    time = overlap[job, block]
    rows = np.concatenate([stream.k[job] * blocks + block, (kinds_k + stream.m[job]) * blocks + block])
    data = np.concatenate([time * stream.d_k[job], time * stream.d_m[job]])
    columns = np.concatenate([job, job])
    matrix = csr_array((data, (rows, columns)), shape=(len(items) * blocks, len(budget)))
    room = np.repeat(items, blocks) * np.tile(np.diff(edges), len(items))
    limits = Bounds(np.zeros(len(budget)), np.where(fits, 1.0, 0.0))
    found = milp(-worth, constraints=LinearConstraint(matrix, -np.inf, room), bounds=limits)
    assert found.success, found.message
    return float(-found.fun)
