"""Slots for tests, drawn like those of the workload."""

from dataclasses import replace

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.systems.mlbroker.kernels.slot import Slot, tiers
from tradewind.systems.mlbroker.workload.draw import DrawSettings
from tradewind.systems.mlbroker.workload.slot import drawn_slot


def tiny(family: str, seed: int, jobs: int = 4, sites: int = 4, tier_count: int = 2) -> Slot:
    """A slot that the exact program solves quickly; thresholds are scaled down so that tiers matter."""
    settings = DrawSettings(family=family, sites=sites, threshold_scale=0.06, data_gb=150.0, tiers=tier_count)
    return drawn_slot(settings, seed, jobs)


def permuted_sites(case: Slot, order: Ints) -> Slot:
    """The same slot with its sites listed in another order."""
    both = np.ix_(order, order)
    return replace(
        case,
        data=np.ascontiguousarray(case.data[:, order]),
        move_usd=np.ascontiguousarray(case.move_usd[both]),
        traffic_usd=np.ascontiguousarray(case.traffic_usd[both]),
        deployed=case.deployed[:, order],
        worker_ok=case.worker_ok[:, order],
        server_ok=case.server_ok[:, order],
        capacity=case.capacity[order],
        tiers=tiers(case.tiers.start[order], case.tiers.usd[order]),
    )
