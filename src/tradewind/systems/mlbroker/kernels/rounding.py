"""Rounding of fractional workers and servers: Algorithms 2 and 3 of the mlBroker paper, and two baselines."""

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.mlbroker.kernels.slot import Slot

SNAP = 1e-6
"""A count this close to an integer is that integer; the difference is solver noise."""


def snapped(y: Floats) -> Floats:
    """y with counts within SNAP of an integer set to it, so that noise never becomes a worker."""
    whole = np.rint(y)
    near: Floats = np.where(np.abs(y - whole) <= SNAP, whole, y)
    return near


def pair_off(p: Floats, weight: Floats, rng: np.random.Generator) -> Ints:
    """Round probabilities p (n,) in (0, 1) to 0 or 1 in compensating pairs that keep sum(weight * p).

    Lines 8-25 of Algorithm 3: two entries at a time, one up and one down; the last one goes up. Weights must be
    positive. A value within 1e-9 of 0 or 1 counts as 0 or 1 (the paper compares floats for equality).
    """
    p = p.copy()
    out = np.zeros(len(p), dtype=np.int64)
    left = list(range(len(p)))
    while len(left) > 1:
        first, second = (int(j) for j in rng.choice(len(left), 2, replace=False))
        a, b = left[first], left[second]
        ratio = weight[b] / weight[a]
        up = min(1.0 - p[a], ratio * p[b])
        down = min(p[a], ratio * (1.0 - p[b]))
        if rng.random() * (up + down) < down:
            p[a], p[b] = p[a] + up, p[b] - up / ratio
        else:
            p[a], p[b] = p[a] - down, p[b] + down / ratio
        for j in (a, b):
            if p[j] <= 1e-9 or p[j] >= 1.0 - 1e-9:
                out[j] = round(float(p[j]))
                left.remove(j)
    for j in left:
        out[j] = 1
    return out


def round_over_jobs(y: Floats, weight: Floats, rng: np.random.Generator) -> Ints:
    """Round1_y (Algorithm 3): per site, pairs of jobs keep the site's demand for one resource.

    y (I, R) fractional workers; weight (I,) units of the resource per worker. Line 10 of the paper divides by the
    weight; here a job that needs none of the resource (a CPU job and GPUs) is rounded down.
    """
    y = snapped(y)
    out = np.floor(y).astype(np.int64)
    for r in range(y.shape[1]):
        open_ = np.flatnonzero((y[:, r] > out[:, r]) & (weight > 0.0))
        if len(open_):
            out[open_, r] += pair_off(y[open_, r] - out[open_, r], weight[open_], rng)
    return out


def round_over_sites(y: Floats, rng: np.random.Generator) -> Ints:
    """Round2_y: per job, pairs of sites keep the job's number of workers. y (I, R) -> whole numbers (I, R)."""
    y = snapped(y)
    out = np.floor(y).astype(np.int64)
    for i in range(y.shape[0]):
        open_ = np.flatnonzero(y[i] > out[i])
        if len(open_):
            out[i, open_] += pair_off(y[i, open_] - out[i, open_], np.ones(len(open_)), rng)
    return out


def sampled_server(s: Floats, rng: np.random.Generator) -> Ints:
    """Lines 6-9 of Algorithm 2: draw each job's server site with probabilities s (I, R)."""
    s = np.where(s > SNAP, s, 0.0)
    edges = np.cumsum(s / s.sum(axis=1, keepdims=True), axis=1)
    drawn = rng.random(len(s))
    site: Ints = np.minimum((edges <= drawn[:, None]).sum(axis=1), s.shape[1] - 1).astype(np.int64)
    return site


def dependent(slot: Slot, y: Floats, s: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """A_round (Algorithm 2): the maximum of K + 1 dependent roundings, and a sampled server."""
    rounded = round_over_sites(y, rng)
    for k in range(slot.worker.shape[1]):
        rounded = np.maximum(rounded, round_over_jobs(y, slot.worker[:, k], rng))
    return topped_up(slot, rounded, y), sampled_server(s, rng)


def dependent_light(slot: Slot, y: Floats, s: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Round2_y alone: keeps every job's number of workers, without the over-provisioning of the maximum."""
    return topped_up(slot, round_over_sites(y, rng), y), sampled_server(s, rng)


def independent(slot: Slot, y: Floats, s: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """IR of Sec. 6.2: round to the nearest integer, then add workers where most was rounded off until there are enough."""
    return topped_up(slot, np.rint(snapped(y)).astype(np.int64), y), sampled_server(s, rng)


def greedy(slot: Slot, y: Floats, s: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """GR of Sec. 6.2: round every count up, put the server where s is largest; `rng` is not used."""
    del rng
    return topped_up(slot, np.ceil(snapped(y)).astype(np.int64), y), s.argmax(axis=1).astype(np.int64)


def topped_up(slot: Slot, rounded: Ints, y: Floats) -> Ints:
    """Add workers one by one at the sites rounded down most, until every job has its N workers."""
    out = rounded.copy()
    for i in np.flatnonzero(out.sum(axis=1) < slot.needed):
        while out[i].sum() < slot.needed[i]:
            lost = np.where(slot.worker_ok[i], y[i] - out[i], -np.inf)
            out[i, int(lost.argmax())] += 1
    return out
