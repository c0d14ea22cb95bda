"""DPS's market (Section V): servers with typed workers and parameter servers, and jobs with private budgets.

`draw.py` draws the arrays; this module makes them a scenario. Jobs arrive at the starts of slots and hold their
resources *through* the last instant, so that these are free for a job that arrives strictly after t + tau.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.model.job import Customer, Job, Rounds
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import MILLI
from tradewind.model.workload import Workload
from tradewind.systems.dps.workload.draw import KINDS, SLOT_US, MarketDraw, MarketSize, draw_market
from tradewind.traces.arrivals import ARRIVALS, with_arrivals
from tradewind.traces.prices import price_param


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    size = MarketSize(**{name: value for name, value in params.items() if name != "market"})
    market = draw_market(KINDS[params["market"]], seed, size)
    origin = {"workload": "dps", "seed": seed, **with_arrivals(params)}
    return scenario_of(market, f"dps-{params['market']}-{seed}", origin)


def scenario_of(market: MarketDraw, name: str, origin: Mapping[str, object]) -> Scenario:
    """A drawn market as a scenario, including jobs that ask for more of a type than all servers hold."""
    kinds_k, kinds_m = len(market.bps_k), len(market.bps_m)
    resources = (
        *(f"worker-{k + 1:02d}" for k in range(kinds_k)),
        *(f"ps-{m + 1:02d}" for m in range(kinds_m)),
    )
    nodes = tuple(
        Node(
            name=f"server-{s + 1:02d}",
            kind="server",
            capacity_milli=tuple(int(n) * MILLI for n in (*market.idle_k[s], *market.idle_m[s])),
        )
        for s in range(len(market.idle_k))
    )
    forecast = {"jobs": float(market.expected_k.sum())}
    expected = (*market.expected_k.tolist(), *market.expected_m.tolist())
    forecast.update({f"jobs.{name}": n for name, n in zip(resources, expected, strict=True)})
    setup = Setup(
        resources=resources,
        nodes=nodes,
        slot_us=SLOT_US,
        horizon_us=market.slots * SLOT_US,
        objective="profit_usd",
        forecast=forecast,
    )
    jobs = tuple(_job(market, i, kinds_k) for i in range(len(market.arrive)))
    customers = tuple(Customer(budget_usd=budget) for budget in market.budget.tolist())
    return Scenario(name=name, setup=setup, jobs=jobs, customers=customers, origin=origin)


def _job(market: MarketDraw, i: int, kinds_k: int) -> Job:
    """The public part of a job; its runtime (1) follows from `work`, the bandwidths and the placement."""
    k, m = int(market.k[i]), int(market.m[i])
    workers = int(market.d_k[i])
    return Job(
        index=i,
        id=f"job-{i:05d}",
        arrive_us=int(market.arrive[i]) * SLOT_US,
        work=Rounds(
            count=int(market.epochs[i]),
            compute_us=int(market.epoch_us[i]),
            comm="colocated",
            whole_slots=True,
        ),
        worker=((k, MILLI),),
        architecture="ps",
        server=((kinds_k + m, MILLI),),
        workers_min=workers,
        workers_max=workers,
        servers=int(market.d_m[i]),
        model_bytes=int(market.gradient_bytes[i]),
        worker_bps=int(market.bps_k[k]),
        server_bps=int(market.bps_m[m]),
        hold="through",
    )


DPS = Workload(
    name="dps",
    summary="DPS's market: typed workers and parameter servers, bursty arrivals, private budgets",
    generate=generate,
    params={
        "market": Param(
            default="balanced",
            doc="load light, balanced or saturated; budgets by pair of types (km), growing with the runtime (sat-runtime), "
            "loose, tight, drifting or bimodal",
            choices=tuple(KINDS),
        ),
        "jobs": Param(default=10_000, doc="number of jobs", least=0, most=1_000_000),
        "slots": Param(default=10_000, doc="slots of five minutes", least=4, most=1_000_000),
        "servers": Param(default=50, doc="physical servers", least=1, most=10_000),
        "worker_types": Param(default=15, doc="types of workers", least=1, most=500),
        "server_types": Param(default=10, doc="types of parameter servers", least=1, most=500),
        "arrivals": ARRIVALS,
        "prices": price_param("what a unit of each type is worth, from 0.15 to 0.7"),
    },
)
