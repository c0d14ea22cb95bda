"""The Eris paper's workload: bids for training on data stored at many edge sites (Sec. VI).

| size      | what                                                                                              |
|-----------|---------------------------------------------------------------------------------------------------|
| testbed   | 9 sites of 12 CPU, 1 GPU, 16 GB; 10 jobs in the first 40 of 50 slots                               |
| simulator | 50 sites of 24 CPU, 4 GPU, 32 GB; 100 jobs in 150 slots                                            |
| contended | 20 such sites, 100 jobs, one chunk per worker and slot                                             |
| crowded   | 50 such sites, 300 jobs, one chunk per worker and slot                                             |

A size is a set of defaults; every parameter can be overridden. Jobs of Table II, E 20 or 30, utility
3000 tau / (1 + exp(delay / 3)), 20 GB per slot in all. Our choices where the paper gives none:

| open in the paper | chosen here                                                                                |
|-------------------|--------------------------------------------------------------------------------------------|
| P                 | E * c with c = max(1, round(D / W)), W in U[24, 48] worker-slots; or `chunks_per_worker`   |
| data              | each chunk is stored at a random site                                                      |
| lambda            | the tensor size of Table II, per worker and slot                                           |
| demands           | worker 1-3 CPU, 1 GPU, 2-6 GB; server the same without GPU. The paper also says 0 or 1 GPU for |
|                   | both (`demands=printed`)                                                                   |
| arrivals          | uniform over the slots; or recorded ones (`arrivals=google:FILE`, traces/arrivals.py)      |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.errors import InputError
from tradewind.model.job import Dataset, Demand, Job
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import MILLI, US_PER_S
from tradewind.model.utility import Utility
from tradewind.model.workload import Workload
from tradewind.systems.eris.kernels.pool import host_capacity, past_bid, reserve_prices, scarcity_prices
from tradewind.systems.eris.shared.replay import best_floor
from tradewind.traces.arrivals import ARRIVALS, DRAWN, in_force, recorded_slots, with_arrivals


class Model(NamedTuple):
    """A row of Table II: chunks and tensor size in MB."""

    name: str
    chunks: int
    tensor_mb: float


TABLE = (
    Model("resnet-50", 27, 97.4),
    Model("resnet-101", 27, 169.9),
    Model("googlenet", 115, 25.9),
    Model("lenet", 115, 283.0),
    Model("alexnet", 150, 237.9),
    Model("inception-bn", 150, 42.9),
)
RESOURCES = ("cpu", "gpu", "gb")
SLOT_US = 1200 * US_PER_S
CHUNK_BYTES = 2_000_000
RESERVE: dict[str, tuple[float, float, float, float]] = {
    "testbed": (0.0, 14.0, 0.0, 0.0),
    "simulator": (0.0, 0.0, 0.0, 0.0),
    "contended": (0.0, 7.5, 0.0, 2.1),
    "crowded": (0.0, 3.9, 0.0, 45.0),
}
"""USD per CPU, GPU, GB of memory and slot, and per GB moved: output of `tradewind.systems.eris.study.reserve`."""
USUAL = "usual"
"""Demands of the text: workers train on GPUs, servers use CPUs."""
HISTORY_SEED, HISTORY_JOBS = 7_041_776, 300
"""Seed and jobs of the past days that the forecast is computed from: the same for every seed of a scenario."""
PRICED_DAYS, REPLAYED_DAYS = 20, 60
"""At most so many past days give scarcity prices, and are replayed with several floors."""
SIZES: dict[str, dict[str, Any]] = {
    "testbed": {
        "sites": 9,
        "jobs": 10,
        "slots": 50,
        "last_arrival": 39,
        "cpu": 12.0,
        "gpu": 1.0,
        "ram_gb": 16.0,
    },
    "simulator": {},
    "contended": {"sites": 20, "chunks_per_worker": 1.0},
    "crowded": {"jobs": 300, "chunks_per_worker": 1.0},
}
DEFAULTS: dict[str, Any] = {
    "sites": 50, "jobs": 100, "slots": 150, "last_arrival": 149, "cpu": 24.0, "gpu": 4.0, "ram_gb": 32.0,
    "chunks_per_worker": 0.0,
}  # fmt: skip


def settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """All values: the given ones, else the size's, else the simulator's."""
    size = params["size"]
    chosen = {key: SIZES[size].get(key, value) for key, value in DEFAULTS.items()}
    chosen |= {key: params[key] for key in DEFAULTS if params[key] >= 0}
    if params["last_arrival"] < 0 and params["slots"] >= 0:
        chosen["last_arrival"] = max(0, params["slots"] - (11 if size == "testbed" else 1))
    chosen |= {key: params[key] for key in ("uneven", "bandwidth_gb", "height_usd", "scale_slots", "demands")}
    chosen["arrivals"] = in_force(params["arrivals"])
    for key, least in (("sites", 1), ("jobs", 0), ("slots", 1), ("cpu", 0), ("gpu", 0), ("ram_gb", 0)):
        if not least <= chosen[key] <= 10**7:
            raise InputError(f"found {chosen[key]}; allowed is {least} to 10000000", where=f"eris.{key}")
    if 0 < chosen["chunks_per_worker"] < 0.001:
        raise InputError(
            f"found {chosen['chunks_per_worker']}; allowed is 0 (random) or at least 0.001",
            where="eris.chunks_per_worker",
        )
    if not 0 <= chosen["last_arrival"] < chosen["slots"]:
        raise InputError(
            f"found {chosen['last_arrival']}; allowed is 0 to {chosen['slots'] - 1}, the slots of the run",
            where="eris.last_arrival",
        )
    return chosen


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    values = settings(params)
    rng = np.random.default_rng(seed)
    sites = values["sites"]
    scale = np.exp(values["uneven"] * rng.uniform(-1.0, 1.0, sites))
    digits = len(str(sites - 1))
    top = (values["cpu"], values["gpu"], values["ram_gb"])
    nodes = tuple(
        Node(name=f"site-{r:0{digits}d}", capacity_milli=tuple(round(c * scale[r]) * MILLI for c in top))
        for r in range(sites)
    )
    setup = _setup(nodes, values)
    jobs = _jobs(rng, values)
    if params["forecast"]:
        own = any(params[key] != -1 for key in DEFAULTS) or values["arrivals"] != DRAWN
        own = own or values != settings({**BARE, "size": params["size"]})
        prices = past_floor(nodes, tuple(sorted(values.items()))) if own else RESERVE[params["size"]]
        setup = replace(setup, forecast=_named(prices))
    return Scenario(
        name=f"eris-{params['size']}-{sites}x{values['jobs']}",
        setup=setup,
        jobs=jobs,
        origin={"workload": "eris", "seed": seed, **_named_demands(with_arrivals(params))},
    )


def _setup(nodes: tuple[Node, ...], values: Mapping[str, Any]) -> Setup:
    """Everything known in advance, without a forecast."""
    return Setup(
        resources=RESOURCES,
        nodes=nodes,
        transfer_bytes_per_slot=round(values["bandwidth_gb"] * 1e9),
        slot_us=SLOT_US,
        horizon_us=values["slots"] * SLOT_US,
        objective="welfare_usd",
    )


def _jobs(rng: np.random.Generator, values: Mapping[str, Any]) -> tuple[Job, ...]:
    """Bids in order of arrival."""
    slots = values["last_arrival"] + 1
    arrive = np.sort(rng.integers(0, slots, values["jobs"]))
    recorded = recorded_slots(values["arrivals"], values["jobs"], slots, SLOT_US, rng.spawn(1)[0])
    arrive = arrive if recorded is None else recorded
    width = len(str(max(values["jobs"] - 1, 0)))
    return tuple(_job(rng, values, j, int(slot), f"job-{j:0{width}d}") for j, slot in enumerate(arrive))


@lru_cache(maxsize=64)
def past_floor(nodes: tuple[Node, ...], settled: tuple[tuple[str, Any], ...]) -> tuple[float, ...]:
    """What an operator knows from past days: the floor that earned most on other random days of the same kind.

    USD per unit and slot of each resource, the last per GB moved: a multiple of `past_prices`, 0 where a floor did not help.
    """
    past = _past_day(settled)
    prices = np.array(past_prices(nodes, settled))
    return tuple(best_floor(_setup(nodes, past), _past_jobs(past, REPLAYED_DAYS), prices).tolist())


def past_prices(nodes: tuple[Node, ...], settled: tuple[tuple[str, Any], ...]) -> tuple[float, ...]:
    """Scarcity prices of other random days of the same kind, never of this one; units as in `past_floor`."""
    past = _past_day(settled)
    setup, slots, busy = _setup(nodes, past), past["slots"], past["last_arrival"] + 1
    hosts, prices = host_capacity(setup), []
    for day in _past_jobs(past, PRICED_DAYS):
        bids = [bid for job in day if (bid := past_bid(job, hosts, setup.slot_us)) is not None]
        prices.append(scarcity_prices(setup, bids, 0, slots, busy))
    return tuple(reserve_prices(np.concatenate(prices)).tolist())


def _past_day(settled: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Values of a past day; a long one is shortened at the same arrival rate."""
    values = dict(settled)
    share = min(1.0, HISTORY_JOBS / max(values["jobs"], 1))
    slots = max(min(values["slots"], 10), round(values["slots"] * share))
    jobs = max(1, round(values["jobs"] * slots / values["slots"]))
    last = min(slots - 1, max(0, round(values["last_arrival"] * slots / values["slots"])))
    return {**values, "slots": slots, "jobs": jobs, "last_arrival": last}


def _past_jobs(past: Mapping[str, Any], most: int) -> list[tuple[Job, ...]]:
    """Bids of at most so many past days."""
    days = max(2, min(most, HISTORY_JOBS // past["jobs"]))
    return [_jobs(np.random.default_rng((HISTORY_SEED, day)), past) for day in range(days)]


def _named(prices: Sequence[float]) -> dict[str, float]:
    """The forecast's keys: price_RESOURCE, price_transfer."""
    return {f"price_{name}": float(p) for name, p in zip((*RESOURCES, "transfer"), prices, strict=True)}


def _named_demands(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters; `demands` only if they are not the usual ones."""
    return {key: value for key, value in params.items() if key != "demands" or value != USUAL}


def _demand(cpu: int, gpu: int, ram_gb: int) -> Demand:
    amounts = ((0, cpu), (1, gpu), (2, ram_gb))
    return tuple((k, amount * MILLI) for k, amount in amounts if amount)


def _job(rng: np.random.Generator, values: Mapping[str, Any], index: int, slot: int, name: str) -> Job:
    """One bid."""
    model = TABLE[int(rng.integers(len(TABLE)))]
    epochs, tau, width = int(rng.choice([20, 30])), float(rng.uniform(1, 2)), float(rng.uniform(24, 48))
    per_worker = values["chunks_per_worker"] or max(1.0, float(round(model.chunks / width)))
    cpu, ram = rng.integers(1, 4, 2).tolist(), rng.integers(2, 7, 2).tolist()
    gpu = [1, 0] if values["demands"] == USUAL else rng.integers(0, 2, 2).tolist()
    stored = np.bincount(rng.integers(0, values["sites"], model.chunks), minlength=values["sites"])
    return Job(
        index=index,
        id=name,
        arrive_us=slot * SLOT_US,
        work=Dataset(
            chunks=tuple((r, int(n)) for r, n in enumerate(stored) if n),
            chunk_bytes=CHUNK_BYTES,
            epochs=epochs,
            chunk_epochs_per_worker_slot_milli=round(1000 * epochs * per_worker),
        ),
        worker=_demand(cpu[0], gpu[0], ram[0]),
        server=_demand(cpu[1], gpu[1], ram[1]),
        servers=1,
        architecture="ps",
        tenant=model.name,
        workers_max=1_000_000,
        utility=Utility(
            of="delay_slots",
            shape="sigmoid",
            args=(values["height_usd"] * tau, -1.0 / values["scale_slots"], 0.0),
        ),
        traffic_bytes_per_worker_slot=round(model.tensor_mb * 1e6),
    )


def _own(default: float | int, doc: str) -> Param:
    return Param(default=default, doc=f"{doc}; -1: as set by the size", most=1e7)


ERIS = Workload(
    name="eris",
    summary="Bids for training on data at many edge sites: utility falls with the delay, bandwidth is scarce",
    generate=generate,
    params={
        "size": Param(default="simulator", doc="set of defaults", choices=tuple(SIZES)),
        "sites": _own(-1, "number of sites"),
        "jobs": _own(-1, "number of jobs"),
        "slots": _own(-1, "number of slots of 20 minutes"),
        "last_arrival": _own(-1, "last slot in which a job may arrive"),
        "cpu": _own(-1.0, "CPU cores of a site"),
        "gpu": _own(-1.0, "GPUs of a site"),
        "ram_gb": _own(-1.0, "GB of memory of a site"),
        "chunks_per_worker": _own(
            -1.0, "P / E, chunks that a worker trains in a slot, may be a fraction; 0: random"
        ),
        "uneven": Param(
            default=0.0, doc="sites differ: capacity times exp(U[-uneven, uneven])", least=0, most=5
        ),
        "bandwidth_gb": Param(default=20.0, doc="GB that may be moved per slot in all", least=0, most=1e6),
        "height_usd": Param(
            default=3000.0, doc="twice the utility of an instant completion at tau = 1", least=0, most=1e9
        ),
        "forecast": Param(
            default=True, doc="forecast what resources were worth on other random days of the same kind"
        ),
        "scale_slots": Param(default=3.0, doc="delay scale of the utility, in slots", least=1e-6, most=1e6),
        "demands": Param(
            default=USUAL,
            doc="GPUs: usual (1 per worker, none per server) or printed (0 or 1 for both, as the paper's set says)",
            choices=(USUAL, "printed"),
        ),
        "arrivals": ARRIVALS,
    },
)
BARE = {key: param.default for key, param in ERIS.params.items()}
"""All parameters at their defaults."""
