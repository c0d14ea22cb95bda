"""Policies that do not know capacity are held to it: what does not fit is left for the audit-proof remainder."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.systems.mlbroker.kernels.limits import fitted
from tradewind.systems.mlbroker.kernels.slot import Slot


def within_limits(slot: Slot, workers: Ints, server: Ints) -> tuple[Ints, Ints]:
    """The decision with jobs that break a limit (capacity, workers, places) re-planned one by one in what is left."""
    total = workers.sum(axis=1)
    many = (slot.most_workers >= 0) & (total > slot.most_workers)
    jobs = np.arange(len(server))
    astray = ((workers > 0) & ~slot.worker_ok).any(axis=1) | (server < 0)
    astray |= ~slot.server_ok[jobs, np.maximum(server, 0)]
    return fitted(slot, workers, np.where(many | astray, -1, server))
