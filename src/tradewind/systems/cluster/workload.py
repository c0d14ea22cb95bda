"""A synthetic training cluster that resembles recorded ones: few long jobs, many short ones, busy days.

| drawn        | how                                                                                       |
|--------------|-------------------------------------------------------------------------------------------|
| GPUs         | 1, 2, 4, 8, 16 with shares 70, 10, 10, 8, 2 % (none larger than the cluster)              |
| duration     | lognormal, median 20 min, sigma 1.6, cut to 30 s … 5 days, whole seconds; jobs with more  |
|              | GPUs run longer: x GPUs^0.25                                                              |
| arrivals     | Poisson, rate x (1 + 0.6 sin) over the day; the span is chosen so that jobs ask for `load` |
|              | times the GPU time of the cluster                                                         |
| tenants      | five, with shares 40, 25, 15, 12, 8 %                                                     |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.columns import Numbered, Words
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param
from tradewind.model.units import MILLI, US_PER_S
from tradewind.model.workload import Workload
from tradewind.traces.machines import GPUS_PER_SERVER, RACKS, RUNTIME, SLOT_S, Machines, Rows, scenario_of

SIZES, SIZE_SHARES = (1, 2, 4, 8, 16), (0.70, 0.10, 0.10, 0.08, 0.02)
TENANTS, TENANT_SHARES = ("vision", "speech", "search", "ads", "maps"), (0.40, 0.25, 0.15, 0.12, 0.08)
MEDIAN_S, SIGMA, SHORTEST_S, LONGEST_S = 1200.0, 1.6, 30.0, 5 * 86400.0
DAY_S, SWING = 86400.0, 0.6


def arrivals_s(count: int, span_s: float, rng: np.random.Generator) -> Ints:
    """Sorted arrival times (count,) in whole seconds of [0, span).

    Given their number, Poisson arrivals are independent draws from the density of the rate; here by inverting the
    cumulative rate on a grid of minutes.
    """
    grid = np.linspace(0.0, span_s, max(2, int(span_s / 60.0) + 1))
    # The cumulated rate of 1 - SWING cos(2 pi t / day): nights are quiet, noon is busy.
    turn = 2.0 * np.pi / DAY_S
    cumulated = grid - SWING / turn * np.sin(turn * grid)
    drawn = np.interp(rng.random(count) * cumulated[-1], cumulated, grid)
    return np.sort(np.floor(drawn).astype(np.int64))


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    count, load = params["jobs"], params["load"]
    machines = Machines(servers=params["servers"], gpus=params["gpus_per_server"], racks=params["racks"])
    rng = np.random.default_rng(seed)
    total = machines.servers * machines.gpus
    gpus = np.minimum(rng.choice(SIZES, size=count, p=SIZE_SHARES), total).astype(np.int64)
    runtime = rng.lognormal(np.log(MEDIAN_S), SIGMA, count) * gpus**0.25
    runtime_s = np.round(np.clip(runtime, SHORTEST_S, LONGEST_S))
    span_s = max(1.0, float((runtime_s * gpus).sum()) / (load * total))
    tenants = rng.choice(len(TENANTS), size=count, p=TENANT_SHARES)
    digits = len(str(count - 1))
    rows = Rows(
        ids=Numbered(np.arange(count), "job-", digits),
        arrive_us=arrivals_s(count, span_s, rng) * US_PER_S,
        runtime_us=runtime_s.astype(np.int64) * US_PER_S,
        workers=gpus,
        tenants=Words(tenants.astype(np.int8), TENANTS),
        demand=[((0, MILLI),)],
    )
    return scenario_of(
        f"cluster-{count}",
        rows,
        machines,
        slot_s=params["slot_s"],
        public=params["runtime"] == "public",
        origin={"workload": "cluster", "seed": seed, **params},
    )


CLUSTER = Workload(
    name="cluster",
    summary="A synthetic training cluster: heavy-tailed durations, busy days, five tenants",
    generate=generate,
    params={
        "jobs": Param(default=2000, doc="number of jobs", least=1, most=10_000_000),
        "servers": Param(default=20, doc="number of servers"),
        "gpus_per_server": GPUS_PER_SERVER,
        "racks": RACKS,
        "load": Param(
            default=1.1,
            doc="GPU time that jobs ask for / GPU time of the cluster while they arrive",
            least=1e-6,
            most=1000,
        ),
        "runtime": RUNTIME,
        "slot_s": SLOT_S,
    },
)
