"""The mlBroker paper's workload: training jobs whose data keeps arriving at many sites with volume discounts.

Half-day slots, prices and demands of Sec. 6.1; `workload.draw` lists what the paper leaves open.

| family | what differs                                                                          |
|--------|---------------------------------------------------------------------------------------|
| paper  | the paper's ranges: GPU prices differ by 8x between sites                              |
| cpu    | workers without GPUs                                                                   |
| narrow | site prices within 10%: placement decides which sites reach a discount                  |
| trap   | within 2-3%, one to three sources: by itself every job chooses a different site         |
| deploy | cpu with 20 times the deployment cost                                                  |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Demand, Job, Stream
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.tariff import Tariff
from tradewind.model.tenant import EVERY_TENANT, SpendCap
from tradewind.model.units import GB, MILLI, UNLIMITED, US_PER_HOUR
from tradewind.model.workload import Workload
from tradewind.systems.mlbroker.workload.draw import (
    FAMILIES,
    RESOURCES,
    SLOT_US,
    DrawSettings,
    MlbrokerDraw,
    draw,
)
from tradewind.traces.arrivals import ARRIVALS, with_arrivals
from tradewind.traces.prices import EC2, price_param


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario of these parameters and this seed."""
    if params["prices"] == EC2 and params["family"] in ("narrow", "trap"):
        raise InputError(
            f"found ec2 with family {params['family']}, which draws prices close to each other; allowed are "
            "the families paper, cpu and deploy",
            where="mlbroker.prices",
        )
    settings = DrawSettings(
        family=params["family"],
        sites=params["sites"],
        slots=params["slots"],
        active=params["jobs_per_slot"],
        data_gb=params["data_gb"],
        threshold_scale=params["threshold_scale"],
        deploy_scale=params["deploy_scale"],
        tiers=params["tiers"],
        rotating=params["rotating"],
        arrivals=params["arrivals"],
        prices=params["prices"],
    )
    drawn = draw(settings, seed)
    name = f"mlbroker-{params['family']}-{params['sites']}x{params['slots']}"
    scenario = scenario_of(
        name,
        drawn,
        slots=params["slots"],
        tenants=params["tenants"],
        origin={"workload": "mlbroker", "seed": seed, **with_arrivals(params)},
    )
    cap = SpendCap(slot_usd=params["cap_slot_usd"] or None, total_usd=params["cap_total_usd"] or None)
    if cap == SpendCap():
        return scenario
    return replace(scenario, setup=replace(scenario.setup, spend_caps={EVERY_TENANT: cap}))


def scenario_of(
    name: str,
    drawn: MlbrokerDraw,
    *,
    slots: int,
    tenants: int,
    origin: Mapping[str, object],
    resources: tuple[str, ...] = RESOURCES,
    slot_us: int = SLOT_US,
) -> Scenario:
    """A drawn instance as a scenario; job j belongs to tenant j mod `tenants`."""
    jobs, customers = [], []
    digits = len(str(max(len(drawn.arrive) - 1, 0)))
    for j in range(len(drawn.arrive)):
        jobs.append(
            Job(
                index=j,
                id=f"job-{j:0{digits}d}",
                arrive_us=int(drawn.arrive[j]) * slot_us,
                work=Stream(bytes_per_worker_slot=round(float(drawn.chunk_gb[j]) * GB)),
                worker=_demand(drawn.worker[j]),
                server=_demand(drawn.server[j]),
                servers=1,
                architecture="ps",
                tenant=f"tenant-{j % tenants}",
                workers_max=1_000_000,
                model_bytes=round(float(drawn.parameters_gb[j]) * GB),
                traffic_bytes_per_worker_slot=round(float(drawn.traffic_gb[j]) * GB),
                deploy_usd=float(drawn.deploy_usd[j]),
            )
        )
        customers.append(Customer(runtime_us=int(drawn.depart[j] - drawn.arrive[j]) * slot_us))
    return Scenario(
        name=name,
        setup=_setup(drawn, resources, slot_us, slots),
        jobs=tuple(jobs),
        customers=tuple(customers),
        volumes=_volumes(drawn),
        origin=origin,
    )


def _demand(units: Floats) -> Demand:
    return tuple((k, round(float(amount) * MILLI)) for k, amount in enumerate(units) if amount > 0)


def _setup(drawn: MlbrokerDraw, resources: tuple[str, ...], slot_us: int, slots: int) -> Setup:
    """Unlimited sites with tiered rent per hour, and a price per GB between any two sites."""
    sites = drawn.transfer_usd.shape[0]
    hours = slot_us / US_PER_HOUR
    rent = {
        (r, k): Tariff(
            starts=tuple(float(x) for x in drawn.tier_start[r, k]),
            usd=tuple(float(x) / hours for x in drawn.tier_usd[r, k]),
        )
        for r in range(sites)
        for k in range(len(resources))
    }
    egress = {
        (r, q): Tariff(usd=(float(drawn.transfer_usd[r, q]),))
        for r in range(sites)
        for q in range(sites)
        if r != q
    }
    digits = len(str(max(sites - 1, 0)))
    return Setup(
        resources=resources,
        nodes=tuple(
            Node(name=f"site-{r:0{digits}d}", capacity_milli=(UNLIMITED,) * len(resources))
            for r in range(sites)
        ),
        rent=rent,
        egress=egress,
        slot_us=slot_us,
        horizon_us=slots * slot_us,
        objective="cost_usd",
    )


def _volumes(drawn: MlbrokerDraw) -> Volumes:
    row, node = np.nonzero(drawn.data_gb > 0.0)
    return Volumes(
        job=drawn.row_job[row],
        slot=drawn.row_slot[row],
        node=node.astype(np.int64),
        bytes=np.maximum(np.rint(drawn.data_gb[row, node] * GB), 1.0).astype(np.int64),
    )


MLBROKER = Workload(
    name="mlbroker",
    summary="Geo-distributed training with volume discounts: data streams at many sites, half-day slots",
    generate=generate,
    params={
        "family": Param(default="paper", doc="family of prices and demands", choices=FAMILIES),
        "sites": Param(default=15, doc="number of sites", least=1, most=2000),
        "slots": Param(default=50, doc="number of half-day slots", least=1, most=100_000),
        "jobs_per_slot": Param(
            default=20.0, doc="mean number of jobs present in a slot", least=0.001, most=100_000
        ),
        "data_gb": Param(default=500.0, doc="mean data of a job per slot, GB", least=0.001, most=1e5),
        "threshold_scale": Param(
            default=1.0,
            doc="factor on the volumes at which tiers start; below 1 for small instances",
            least=1e-6,
            most=1e6,
        ),
        "deploy_scale": Param(default=1.0, doc="factor on the deployment cost", least=0, most=1e6),
        "tiers": Param(default=2, doc="price tiers per site and resource", least=1, most=100),
        "tenants": Param(
            default=5, doc="number of tenants; jobs belong to them in turn", least=1, most=1_000_000
        ),
        "cap_slot_usd": Param(
            default=0.0, doc="most that each tenant may spend per slot, USD; 0 means no cap", least=0
        ),
        "cap_total_usd": Param(
            default=0.0, doc="most that each tenant may spend in total, USD; 0 means no cap", least=0
        ),
        "rotating": Param(default=False, doc="move the sources of a job by one site every slot"),
        "arrivals": ARRIVALS,
        "prices": price_param("from the paper's ranges"),
    },
)
