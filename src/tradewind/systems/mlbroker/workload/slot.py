"""One slot of the mlBroker workload as arrays, for studies, benchmarks and tests of the slot decision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tradewind.model.errors import InputError
from tradewind.systems.mlbroker.kernels.slot import JobArrays, Slot, slot_without_limits, tiers
from tradewind.systems.mlbroker.workload.draw import DrawSettings, draw


def drawn_slot(settings: DrawSettings, seed: int, jobs: int) -> Slot:
    """The first `jobs` jobs of the first slot of a drawn instance, none of them deployed; data in GB."""
    d = draw(replace(settings, slots=1, active=3.0 * jobs), seed)
    rows = np.flatnonzero(d.row_slot == 0)[:jobs]
    j = d.row_job[rows]
    if len(j) != jobs:
        raise InputError(
            f"seed {seed} draws {len(j)} jobs for a slot of {jobs}; try another seed", where="mlbroker.seed"
        )
    drawn = JobArrays(
        worker=d.worker[j],
        server=d.server[j],
        chunk=d.chunk_gb[j],
        traffic=d.traffic_gb[j],
        deploy_usd=d.deploy_usd[j],
        data=d.data_gb[rows],
    )
    return slot_without_limits(drawn, d.transfer_usd, tiers(d.tier_start, d.tier_usd))
