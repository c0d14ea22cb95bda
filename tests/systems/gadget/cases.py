"""Slots of ring jobs for tests: drawn at random, and every ring of a small one by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import linprog

from tradewind.model.arrays import Floats
from tradewind.systems.gadget.kernels.slot import Slot, make_slot


def drawn(
    seed: int, *, servers: int = 6, jobs: int = 5, racks: int = 2, widest: int = 4, resources: int = 1
) -> Slot:
    """Small servers, links that bind, gains of every shape: concave, gang, and sizes that are not allowed."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.sort(rng.integers(0, servers + 1, racks - 1)), [servers]])
    gain = np.full((jobs, widest + 1), -np.inf)
    gain[:, 0] = 0.0
    for i in range(jobs):
        most = int(rng.integers(1, widest + 1))
        if rng.random() < 0.5:
            gain[i, 1 : most + 1] = np.sqrt(np.arange(1, most + 1)) * rng.uniform(1, 10)
        else:
            gain[i, most] = most * rng.uniform(1, 5)
    return make_slot(
        room=rng.integers(1, 4, (servers, resources)) * rng.integers(1, 3, (1, resources)),
        link=rng.integers(0, 12, servers),
        first=first,
        trunk=rng.integers(0, 12, racks),
        need=rng.integers(1, 3, (jobs, resources)),
        band=rng.integers(1, 6, jobs),
        gain=gain,
    )


def every_ring(slot: Slot, i: int) -> list[tuple[int, ...]]:
    """All (S,) vectors of workers that job i could have in the empty cluster, by brute force."""
    found = []
    rack = slot.rack
    for y in product(range(slot.widest + 1), repeat=slot.servers):
        total = sum(y)
        if not 0 < total <= slot.widest or slot.gain[i, total] == -np.inf:
            continue
        here = [s for s in range(slot.servers) if y[s]]
        if any((y[s] * slot.need[i] > slot.room[s]).any() for s in here):
            continue
        racks = {int(rack[s]) for s in here}
        if len(here) > 1 and any(slot.link[s] < slot.band[i] for s in here):
            continue
        if len(racks) > 1 and any(slot.trunk[g] < slot.band[i] for g in racks):
            continue
        found.append(y)
    return found


def enumerated_lp(slot: Slot) -> float:
    """The configuration LP with every ring written out."""
    spots, resources = slot.room.shape
    rack, racks = slot.rack, len(slot.trunk)
    columns: list[Floats] = []
    cost = []
    for i in range(slot.jobs):
        for y in every_ring(slot, i):
            workers = np.array(y)
            here = workers > 0
            visited = here & (here.sum() > 1)
            crossed = np.zeros(racks)
            if len(set(rack[here])) > 1:
                crossed[np.unique(rack[here])] = slot.band[i]
            job = np.zeros(slot.jobs)
            job[i] = 1.0
            room = (workers[:, None] * slot.need[i]).ravel()
            columns.append(np.concatenate([job, room, visited * slot.band[i], crossed]))
            cost.append(-slot.gain[i, workers.sum()])
    if not columns:
        return 0.0
    limit = np.concatenate([np.ones(slot.jobs), slot.room.ravel(), slot.link, slot.trunk])
    assert len(limit) == slot.jobs + spots * resources + spots + racks
    found = linprog(cost, A_ub=np.array(columns).T, b_ub=limit)
    assert found.fun is not None
    return -float(found.fun)
