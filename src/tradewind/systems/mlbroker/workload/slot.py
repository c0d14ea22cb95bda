"""One slot of the mlBroker workload by itself, as arrays: for studies, benchmarks and tests of the decision alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tradewind.model.errors import InputError
from tradewind.systems.mlbroker.kernels.slot import Slot, slot, tiers
from tradewind.systems.mlbroker.workload.draw import DrawSettings, draw


def drawn_slot(settings: DrawSettings, seed: int, jobs: int) -> Slot:
    """The first ``jobs`` jobs of the first slot of a drawn instance, none of them deployed; data in GB."""
    d = draw(replace(settings, slots=1, active=3.0 * jobs), seed)
    rows = np.flatnonzero(d.row_slot == 0)[:jobs]
    j = d.row_job[rows]
    if len(j) != jobs:
        raise InputError(
            f"seed {seed} draws {len(j)} jobs for a slot of {jobs}; take another", where="mlbroker.seed"
        )
    return slot(
        worker=d.worker[j],
        server=d.server[j],
        chunk=d.chunk_gb[j],
        traffic=d.traffic_gb[j],
        deploy_usd=d.deploy_usd[j],
        data=d.data_gb[rows],
        transfer_usd=d.transfer_usd,
        price=tiers(d.tier_start, d.tier_usd),
    )
