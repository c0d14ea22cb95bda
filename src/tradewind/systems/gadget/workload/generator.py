"""The GADGET paper's workload (Sec. VI): ring jobs on servers in racks under a core, and harder families.

| drawn          | how                                                                                       |
|----------------|-------------------------------------------------------------------------------------------|
| racks          | 2 to 5 (one per 40 servers above 60 servers), servers put into them at random             |
| bandwidths     | servers 10 to 100 Gbit/s, racks 200 to 3200, both directions alike, times the family's factor; |
|                | with several spines (leaf-spine) a rack's bandwidth is shared out among them evenly       |
| N, b           | workers by family; 100 Mbit/s to 5 Gbit/s                                                 |
| F, zeta        | 1000 to 6000 iterations; 50 to 500 iterations per worker and slot                         |
| lambda 1, 2, 3 | 1 to 100, between 0 and 1, 300 to 3000 iterations                                         |
| arrivals       | two-state Markov-modulated: bursts bring 8 times as many, last 4 slots, come every 20;     |
|                | or recorded ones (`arrivals=google:FILE`, traces/arrivals.py); none in the last tenth      |

| family | GPUs of a server | links of servers, racks | N   | beyond GPUs                             |
|--------|------------------|-------------------------|-----|-----------------------------------------|
| paper  | 1, 2, 4, 8       | x 1, x 1                | 1-5 |                                         |
| tight  | 1, 2             | x 0.05, x 0.05          | 2-8 |                                         |
| vtight | 1, 2, 4          | x 0.03, x 0.01          | 2-8 |                                         |
| multi  | 2, 4, 8          | x 0.05, x 0.02          | 1-6 | 4-8 CPUs and 16-48 GB a GPU; a worker takes |
|        |                  |                         |     | 1-2 GPUs, 2-9 CPUs, 8-48 GB             |

Utilities of x = zeta times worker-slots, 0 at 0: *sigmoid* (the paper's), *sqrt* lambda1 sqrt(x / lambda3),
*log* lambda1 ln(1 + x / lambda3); *gang*: sqrt, and a job runs with all N workers or not at all. F counts iterations: a job
ends after floor(F / zeta) worker-slots (at least one; a gang after whole slots). Counted in worker-slots, as in the
paper's (3), F would never bind. With `ring_time`, zeta follows from equation (1): n workers do n iterations in 1 / zeta of a
slot, as drawn, plus the time in which their ring reduces 100 to 1600 MB at b.

Objectives of Sec. IV are utilities too. *training*: as above. *energy*: zeta is the energy of a worker in a slot, its power
150 to 400 W, and the cost is quadratic, 100 per kWh squared. The paper's utility -c(x) makes doing nothing optimal, so here
the utility is the work's worth, linear in x, minus that cost: it falls from some point on, for large jobs of low
priority before their work is done. *fairness*: zeta = 1 and ln(1 + x), because ln 0 is undefined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import MILLI, UNLIMITED, US_PER_S
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.model.workload import Workload
from tradewind.traces.arrivals import ARRIVALS, DRAWN, recorded_slots, with_arrivals

SLOT_US = 300 * US_PER_S
GBPS = 1_000_000_000
BURST, IN_BURST, BETWEEN = 8.0, 4.0, 20.0
MODEL_MB = (100, 1600)
REDUCE_BPS = 80 * GBPS
POWER_W = (150, 400)
ENERGY_PRICE = 100.0
"""Cost of the energy of a job, per kWh squared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What differs between families; the table above lists them."""

    gpus: tuple[int, ...]
    links: float
    trunks: float
    workers: tuple[int, int]
    multi: bool = False


FAMILIES = {
    "paper": Family(gpus=(1, 2, 4, 8), links=1.0, trunks=1.0, workers=(1, 5)),
    "tight": Family(gpus=(1, 2), links=0.05, trunks=0.05, workers=(2, 8)),
    "vtight": Family(gpus=(1, 2, 4), links=0.03, trunks=0.01, workers=(2, 8)),
    "multi": Family(gpus=(2, 4, 8), links=0.05, trunks=0.02, workers=(1, 6), multi=True),
}


def arrival_slots(jobs: int, slots: int, rng: np.random.Generator, arrivals: str = DRAWN) -> Ints:
    """(jobs,) slots of arrivals in order, drawn with the rates of a two-state Markov chain, or recorded ones instead."""
    rate, busy = np.ones(slots), False
    for t in range(slots):
        if rng.random() < (1 / IN_BURST if busy else 1 / BETWEEN):
            busy = not busy
        rate[t] = BURST if busy else 1.0
    # no job arrives in the last tenth: too little time is left to serve it
    open_slots = max(1, slots - slots // 10)
    rate[open_slots:] = 0.0
    drawn = np.sort(rng.choice(slots, size=jobs, p=rate / rate.sum())).astype(np.int64)
    recorded = recorded_slots(arrivals, jobs, open_slots, SLOT_US, rng.spawn(1)[0])
    return drawn if recorded is None else recorded


def network(
    servers: int, family: Family, spines: int, rng: np.random.Generator
) -> tuple[tuple[Node, ...], tuple[Link, ...]]:
    """A core or spines, ToR switches with a link to each of them, and servers; both directions have the same bandwidth."""
    racks = int(rng.integers(2, 6)) if servers <= 60 else -(-servers // 40)
    # racks without servers are left out
    rack = np.unique(np.sort(rng.integers(0, racks, servers)), return_inverse=True)[1].ravel()
    racks = int(rack[-1]) + 1
    gpus = rng.choice(family.gpus, servers)
    per_gpu = np.stack(
        [np.ones(servers, np.int64), rng.integers(4, 9, servers), rng.integers(16, 49, servers)], 1
    )
    room = gpus[:, None] * (per_gpu if family.multi else per_gpu[:, :1]) * MILLI
    link = (rng.uniform(10, 100, servers) * family.links * GBPS).astype(np.int64)
    trunk = (rng.uniform(200, 3200, racks) * family.trunks * GBPS).astype(np.int64)
    none = (UNLIMITED,) * room.shape[1]
    tops = ["core"] if spines == 1 else [f"spine-{k}" for k in range(spines)]
    tors = [f"tor-{g}" for g in range(racks)]
    nodes = [Node(name=name, kind="switch", capacity_milli=none) for name in (*tops, *tors)]
    up = (trunk // spines).tolist()
    links = [Link(a=spines + g, b=k, ab_bps=up[g], ba_bps=up[g]) for g in range(racks) for k in range(spines)]
    digits = len(str(servers - 1))
    for s in range(servers):
        nodes.append(
            Node(name=f"server-{s:0{digits}d}", kind="server", capacity_milli=tuple(int(c) for c in room[s]))
        )
        bps = int(link[s])
        links.append(Link(a=spines + racks + s, b=spines + int(rack[s]), ab_bps=bps, ba_bps=bps))
    return tuple(nodes), tuple(links)


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    family = FAMILIES[params["family"]]
    rng = np.random.default_rng(seed)
    nodes, links = network(params["servers"], family, params["spines"], rng)
    nodes, links = scaled(nodes, links, params["node_scale"], params["link_scale"])
    arrive = arrival_slots(params["jobs"], params["slots"], rng, params["arrivals"])
    power = np.random.default_rng([seed, 2]).integers(POWER_W[0], POWER_W[1] + 1, params["jobs"]).tolist()
    jobs = tuple(_job(i, int(t), params, family, rng, power[i]) for i, t in enumerate(arrive.tolist()))
    changes = failures(len(nodes) - params["servers"], params, np.random.default_rng([seed, 1]))
    return Scenario(
        name=f"gadget-{params['family']}-{params['utility']}-{params['servers']}x{params['slots']}",
        setup=Setup(
            resources=("gpu", "cpu", "memory_gb") if family.multi else ("gpu",),
            nodes=nodes,
            links=links,
            slot_us=SLOT_US,
            horizon_us=params["slots"] * SLOT_US,
            objective="utility",
        ),
        jobs=jobs,
        changes=changes,
        origin={"workload": "gadget", "seed": seed, **with_arrivals(params)},
    )


def scaled(
    nodes: tuple[Node, ...], links: tuple[Link, ...], node_scale: float, link_scale: float
) -> tuple[tuple[Node, ...], tuple[Link, ...]]:
    """Scale the capacity of servers (whole units, at least one) and the bandwidth of links (Figures 5 and 6)."""
    if node_scale != 1.0:
        nodes = tuple(
            n if n.kind == "switch" else Node(
                name=n.name, kind=n.kind, parent=n.parent,
                capacity_milli=tuple(max(1, round(c * node_scale / MILLI)) * MILLI for c in n.capacity_milli),
            )
            for n in nodes
        )  # fmt: skip
    if link_scale != 1.0:
        links = tuple(
            Link(a=k.a, b=k.b, ab_bps=int(k.ab_bps * link_scale), ba_bps=int(k.ba_bps * link_scale))
            for k in links
        )
    return nodes, links


def _job(
    i: int, slot: int, params: Mapping[str, Any], family: Family, rng: np.random.Generator, power_w: int
) -> Job:
    """Draw one job; all families and utilities draw the same numbers in the same order."""
    workers = int(rng.integers(family.workers[0], family.workers[1] + 1))
    iterations, zeta = int(rng.integers(1000, 6001)), int(rng.integers(50, 501))
    band = int(rng.integers(GBPS // 10, 5 * GBPS + 1))
    height, steep, middle = float(rng.uniform(1, 100)), float(rng.uniform(0, 1)), int(rng.integers(300, 3001))
    need = (int(rng.integers(1, 3)), int(rng.integers(2, 10)), int(rng.integers(8, 49)))
    model = int(rng.integers(MODEL_MB[0], MODEL_MB[1] + 1)) * 1_000_000
    compute = int(rng.integers(50, 501)) * 1000
    count = max(1, iterations // zeta)
    gang = params["utility"] == "gang"
    if gang:
        count = -(-count // workers) * workers
    work = Rounds(count=count, unit="worker-slot", compute_us=compute, comm="ring")
    if params["objective"] == "energy":
        rate, utility = _energy(power_w, count, height)
    else:
        rate, utility = _utility(params, zeta, height, steep, middle)
    if params["ring_time"]:
        # an iteration takes 1 / zeta of a slot to compute, and the ring time by (1)
        work = replace(work, unit="worker-round", count=iterations, compute_us=SLOT_US // zeta)
        rate = rate / zeta
    return Job(
        index=i,
        id=f"job-{i:05d}",
        arrive_us=slot * SLOT_US,
        work=replace(work, rate=rate),
        worker=tuple((r, n * MILLI) for r, n in enumerate(need)) if family.multi else ((0, MILLI),),
        workers_min=workers if gang else 1,
        workers_max=workers,
        utility=utility,
        model_bytes=model,
        ring_bps=band,
        reduce_bps=REDUCE_BPS,
        restart_us=round(params["restart_s"] * US_PER_S),
    )


def _energy(power_w: int, count: int, height: float) -> tuple[float, Utility]:
    """(kWh of a worker in a slot, worth of the work less a quadratic cost of its energy)."""
    kwh = power_w / 1000 * SLOT_US / (3600 * US_PER_S)
    return kwh, Utility(of="progress", shape="quadratic", args=(0.0, height / (kwh * count), -ENERGY_PRICE))


def _utility(
    params: Mapping[str, Any], zeta: int, height: float, steep: float, middle: int
) -> tuple[float, Utility]:
    """(zeta, utility of progress) of training or fairness, by shape."""
    if params["objective"] == "fairness":
        return 1.0, Utility(of="progress", shape="log1p", args=(1.0, 1.0))
    match params["utility"]:
        case "sigmoid":
            return float(zeta), Utility(
                of="progress", shape="sigmoid", args=(height, steep, float(middle)), from_zero=True
            )
        case "log":
            return float(zeta), Utility(of="progress", shape="log1p", args=(height, float(middle)))
        case _:
            return float(zeta), Utility(of="progress", shape="sqrt", args=(height, float(middle)))


def failures(first: int, params: Mapping[str, Any], rng: np.random.Generator) -> tuple[Change, ...]:
    """Outages of servers: a share `failing` of them is down on average; each starts in mid-slot and lasts 5 slots."""
    share, slots, servers = params["failing"], params["slots"], params["servers"]
    if not share:
        return ()
    down = 5
    changes = []
    for s in range(servers):
        t = int(rng.exponential(down * (1 - share) / share)) if share < 1 else 0
        while t < slots:
            begin = t * SLOT_US + SLOT_US // 2
            changes.append(Change(begin, "node_down", first + s, 0, 0))
            if share < 1 and t + down < slots:
                changes.append(Change(begin + down * SLOT_US, "node_up", first + s, 0, 0))
            t += down + 1 + int(rng.exponential(down * (1 - share) / share)) if share < 1 else slots
    return tuple(sorted(c for c in changes if c.at_us < slots * SLOT_US))


GADGET = Workload(
    name="gadget",
    summary="Ring jobs on servers in racks with directed links: the paper's cluster and harder families",
    generate=generate,
    params={
        "family": Param(
            default="paper", doc="family of servers, links and job sizes", choices=tuple(FAMILIES)
        ),
        "utility": Param(
            default="sigmoid",
            doc="shape of the utility of progress",
            choices=("sigmoid", "sqrt", "log", "gang"),
        ),
        "objective": Param(
            default="training",
            doc="one of the three objectives of Sec. IV of the paper",
            choices=("training", "energy", "fairness"),
        ),
        "servers": Param(default=50, doc="number of servers", least=1, most=100_000),
        "spines": Param(
            default=1,
            doc="switches above the racks: 1 makes a tree, more make a leaf-spine network",
            least=1,
            most=64,
        ),
        "jobs": Param(default=200, doc="number of jobs", least=1, most=1_000_000),
        "slots": Param(default=200, doc="number of slots, five minutes each", least=1, most=1_000_000),
        "ring_time": Param(
            default=False,
            doc="zeta by equation (1): an iteration takes its computation (a slot / zeta) and the ring time of its model",
        ),
        "restart_s": Param(
            default=0.0, doc="seconds without work after a job's workers move", least=0, most=1e6
        ),
        "failing": Param(default=0.0, doc="share of the servers that is down on average", least=0, most=1),
        "node_scale": Param(default=1.0, doc="factor on the resources of the servers", least=0, most=1000),
        "link_scale": Param(default=1.0, doc="factor on the bandwidth of all links", least=0, most=1000),
        "arrivals": ARRIVALS,
    },
)
