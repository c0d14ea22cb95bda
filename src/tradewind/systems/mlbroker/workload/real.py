"""A scaled copy of the mlBroker paper's real experiment (Sec. 6.4): three zones, five models, ten slots.

The paper gives the instance price (3.06 USD per hour), the price of a GB between zones (0.02 USD), the models with
their parameters and batch sizes (Table 3), the number of slots and the stay of a job. It does not give discounts,
thresholds, arrivals, speeds or volumes; those are fixed here. A slot is an hour; a worker and a parameter server take
one instance each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_HOUR
from tradewind.systems.mlbroker.workload.draw import MlbrokerDraw
from tradewind.systems.mlbroker.workload.generator import scenario_of

INSTANCE_USD_PER_HOUR = 3.06
GB_USD = 0.02
SLOTS, STAY_SLOTS, ARRIVALS_PER_SLOT = 10, (3, 8), 2.0
DATASET_GB = 138.0
# Millions of parameters (Table 3), and GB of images that one instance trains to convergence in a slot (assumed).
MODELS = {
    "AlexNet": (61.1, 9.0),
    "VGG-16": (138.0, 4.0),
    "VGG-19": (143.0, 3.5),
    "Inception-V3": (27.0, 6.0),
    "ResNet-152": (60.2, 4.5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RealSettings:
    """What the paper leaves open: instances from which a zone gives its discount, the part of the list price paid from
    there on, and how often a worker and the server exchange all parameters in a slot."""

    threshold_instances: float = 15.0
    discount: float = 0.8
    exchanges_per_slot: int = 12


def real_experiment(seed: int, settings: RealSettings | None = None) -> Scenario:
    """One run of the experiment; the seed draws arrivals, models, stays and volumes."""
    settings = settings or RealSettings()
    rng = np.random.default_rng(seed)
    arrive, depart, kind = [], [], []
    for slot in range(SLOTS):
        for _ in range(int(rng.poisson(ARRIVALS_PER_SLOT)) + (slot == 0)):
            arrive.append(slot)
            depart.append(min(slot + int(rng.integers(STAY_SLOTS[0], STAY_SLOTS[1] + 1)), SLOTS))
            kind.append(int(rng.integers(len(MODELS))))
    table = np.array(list(MODELS.values()))[kind]
    parameters = table[:, 0] * 4e6 / 1e9
    rows = [(j, t) for j in range(len(arrive)) for t in range(arrive[j], depart[j])]
    shares = rng.dirichlet(np.full(3, 2.0), len(rows)) * rng.uniform(0.05, 0.15, (len(rows), 1))
    jobs = len(arrive)
    drawn = MlbrokerDraw(
        tier_start=np.tile(np.array([0.0, settings.threshold_instances]), (3, 1, 1)),
        tier_usd=np.tile(INSTANCE_USD_PER_HOUR * np.array([1.0, settings.discount]), (3, 1, 1)),
        transfer_usd=GB_USD * (1.0 - np.eye(3)),
        arrive=np.array(arrive, dtype=np.int64),
        depart=np.array(depart, dtype=np.int64),
        worker=np.ones((jobs, 1)),
        server=np.ones((jobs, 1)),
        chunk_gb=table[:, 1].copy(),
        traffic_gb=parameters * settings.exchanges_per_slot,
        parameters_gb=parameters,
        deploy_usd=rng.uniform(0.05, 0.1, jobs) * (rng.uniform(2.0, 10.0, jobs) + parameters),
        row_job=np.array([j for j, _ in rows], dtype=np.int64),
        row_slot=np.array([t for _, t in rows], dtype=np.int64),
        data_gb=shares * DATASET_GB,
    )
    return scenario_of(
        "mlbroker-real",
        drawn,
        slots=SLOTS,
        tenants=3,
        origin={"workload": "mlbroker-real", "seed": seed},
        resources=("instance",),
        slot_us=US_PER_HOUR,
    )
