"""Streams, rings, data sets and fixed jobs on a few sites whose rent falls with use.

| drawn    | how                                                                                                |
|----------|----------------------------------------------------------------------------------------------------|
| sites    | GPUs = demand / load / slots, split by U[.6, 1.4], at least 4; 5.5 CPUs per GPU                    |
| prices   | 2 USD per GPU-slot x U[.9, 1.1], x 1, .85, .7 from 0, 35 and 75 % of a site on; CPU .03; egress U[.02, .09] |
|          | per GB; 4 GB per GPU may be moved in a slot                                                        |
| jobs     | the kinds in turn; a quarter comes at 0, the others before 70 % of the slots; 5 USD per GPU-slot x  |
|          | lognormal(.6); 2-8 CPUs per GPU; 30 % of rings and fixed jobs are kept to half of the sites        |
| fixed    | gang of 1, 2, 4, 8 (.3 .3 .3 .1), 2-8 slots, half may not be interrupted; half worth all until 2-9 slots   |
|          | beyond its runtime, half falling to 0 over twice that                                              |
| ring     | 2-6 workers of 1-2 GPUs, 10-40 worker-slots, worth by progress: square root or sigmoid             |
| data set | 1-3 parts of 3-12 chunks of 2-20 GB, 2-6 workers, sigmoid of delay (middle U[4, 14], steepness U[.3, 1.2]) |
| stream   | 6 slots or more, 1-3 sources of U[.4, 1.6] workers x U[.6, 1.4] per slot, with or without a server,  |
|          | deployment U[.5, 3], 8 USD per worker-slot                                                         |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.tariff import Tariff
from tradewind.model.units import GB, MILLI, US_PER_HOUR
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.model.workload import Workload

KINDS = ("stream", "ring", "dataset", "fixed")
LOADS = {"slack": 0.5, "tight": 1.2, "very": 2.5}
SLOT_US = US_PER_HOUR
GB_PER_WORKER = 10.0
USD_GPU, USD_CPU, DENSITY, STREAM_USD = 2.0, 0.03, 5.0, 8.0


class _Drawn(NamedTuple):
    """A job, its private part, its volumes (slot, node, bytes) and the GPU-slots that it wants."""

    fields: dict[str, Any]
    customer: Customer
    volumes: list[tuple[int, int, int]]
    gpu_slots: float


class _Draw:
    """Draws jobs for so many sites and slots."""

    def __init__(self, rng: np.random.Generator, sites: int, slots: int) -> None:
        self.rng, self.sites, self.slots = rng, sites, slots

    def job(self, number: int, kind: str) -> _Drawn:
        rng = self.rng
        arrive = 0 if rng.random() < 0.25 else int(rng.integers(0, max(1, int(np.ceil(0.7 * self.slots)))))
        usd = DENSITY * float(rng.lognormal(0.0, 0.6))
        cpus = int(rng.integers(2, 9))
        found = getattr(self, kind)(arrive, usd, cpus)
        assert isinstance(found, _Drawn)
        half = rng.permutation(self.sites)[: max(1, self.sites // 2)]
        if kind in ("ring", "fixed") and rng.random() < 0.3:
            found.fields["nodes"] = frozenset(int(n) for n in half)
        fields = {"id": f"{kind}-{number}", "arrive_us": arrive * SLOT_US, **found.fields}
        return found._replace(fields=fields)

    @staticmethod
    def _worker(gpus: int, cpus: int) -> tuple[tuple[int, int], ...]:
        return ((0, gpus * MILLI), (1, gpus * cpus * MILLI))

    def fixed(self, arrive: int, usd: float, cpus: int) -> _Drawn:
        rng = self.rng
        gang = int(rng.choice((1, 2, 4, 8), p=(0.3, 0.3, 0.3, 0.1)))
        slots = int(rng.integers(2, 9))
        whole, sudden, slack = rng.random() < 0.5, rng.random() < 0.5, int(rng.integers(2, 10))
        worth, last = usd * gang * slots, slots - 1 + slack
        args = (
            (worth, float(last)) if sudden else (float(slots - 1), worth, float(slots - 1 + 2 * slack), 0.0)
        )
        return _Drawn(
            {
                "work": Fixed(runtime_us=slots * SLOT_US),
                "worker": self._worker(1, cpus),
                "workers_min": gang,
                "workers_max": gang,
                "restarts": 0 if whole else None,
                "utility": Utility(of="delay_slots", shape="budget" if sudden else "piecewise", args=args),
            },
            Customer(),
            [],
            float(gang * slots),
        )

    def ring(self, arrive: int, usd: float, cpus: int) -> _Drawn:
        rng = self.rng
        gpus, most = int(rng.integers(1, 3)), int(rng.integers(2, 7))
        count, concave = int(rng.integers(10, 41)), rng.random() < 0.5
        worth = usd * gpus * count
        args = (worth, float(count)) if concave else (worth, 10.0 / count, count / 2.0)
        return _Drawn(
            {
                "work": Rounds(count=count, unit="worker-slot"),
                "worker": self._worker(gpus, cpus),
                "workers_max": most,
                "utility": Utility(
                    of="progress", shape="sqrt" if concave else "sigmoid", args=args, from_zero=True
                ),
            },
            Customer(),
            [],
            float(gpus * count),
        )

    def dataset(self, arrive: int, usd: float, cpus: int) -> _Drawn:
        rng = self.rng
        parts = rng.permutation(self.sites)[: int(rng.integers(1, min(3, self.sites) + 1))]
        chunks = tuple(sorted((int(node), int(rng.integers(3, 13))) for node in parts))
        size, most = int(rng.integers(2, 21)), int(rng.integers(2, 7))
        total = sum(n for _, n in chunks)
        args = (usd * total, -float(rng.uniform(0.3, 1.2)), float(rng.uniform(4.0, 14.0)))
        return _Drawn(
            {
                "work": Dataset(
                    chunks=chunks, chunk_bytes=size * GB, epochs=1, chunk_epochs_per_worker_slot_milli=MILLI
                ),
                "worker": self._worker(1, cpus),
                "workers_max": most,
                "utility": Utility(of="delay_slots", shape="sigmoid", args=args),
            },
            Customer(),
            [],
            float(total),
        )

    def stream(self, arrive: int, usd: float, cpus: int) -> _Drawn:
        del usd
        rng = self.rng
        stay = int(rng.integers(min(6, self.slots - 1), self.slots))
        sources = rng.permutation(self.sites)[: int(rng.integers(1, min(3, self.sites) + 1))]
        mean, served = rng.uniform(0.4, 1.6, size=len(sources)), rng.random() < 0.5
        end = min(self.slots, arrive + stay)
        rows, total = [], 0.0
        for slot in range(arrive, end):
            for node, workers in zip(
                sources.tolist(), (mean * rng.uniform(0.6, 1.4, size=len(sources))).tolist(), strict=True
            ):
                rows.append((slot, int(node), round(workers * GB_PER_WORKER * GB)))
                total += workers
        fields: dict[str, Any] = {
            "work": Stream(bytes_per_worker_slot=round(GB_PER_WORKER * GB)),
            "worker": self._worker(1, cpus),
            "workers_max": 20,
            "deploy_usd": float(rng.uniform(0.5, 3.0)),
            "utility": Utility(of="served", shape="linear", args=(0.0, STREAM_USD / GB_PER_WORKER)),
        }
        if served:
            fields |= {
                "architecture": "ps",
                "servers": 1,
                "server": ((1, 2 * MILLI),),
                "traffic_bytes_per_worker_slot": GB // 2,
            }
        return _Drawn(fields, Customer(runtime_us=stay * SLOT_US), rows, total)


def _setup(
    rng: np.random.Generator, sites: int, slots: int, gpu_slots: float, params: Mapping[str, Any]
) -> Setup:
    share = rng.uniform(0.6, 1.4, size=sites)
    load = LOADS[params["load"]]
    gpus = np.maximum(4, np.rint(gpu_slots / load / slots * share / share.sum())).astype(np.int64).tolist()
    usd = (USD_GPU * rng.uniform(0.9, 1.1, size=sites)).tolist()
    rent = {}
    for node in range(sites):
        whole = params["tiers"] and gpus[node]
        starts = (0.0, 0.35 * gpus[node], 0.75 * gpus[node]) if whole else (0.0,)
        rent[node, 0] = Tariff(
            starts=starts, usd=tuple(usd[node] * f for f in (1.0, 0.85, 0.7)[: len(starts)])
        )
        rent[node, 1] = Tariff(usd=(USD_CPU,))
    egress = {
        (a, b): Tariff(usd=(float(rng.uniform(0.02, 0.09)),))
        for a in range(sites)
        for b in range(sites)
        if a != b
    }
    return Setup(
        resources=("gpu", "cpu"),
        nodes=tuple(
            Node(name=f"site-{n}", capacity_milli=(gpus[n] * MILLI, round(5.5 * gpus[n] * MILLI)))
            for n in range(sites)
        ),
        rent=rent,
        egress=egress,
        transfer_bytes_per_slot=4 * sum(gpus) * GB,
        slot_us=SLOT_US,
        horizon_us=slots * SLOT_US,
        objective="welfare_usd",
    )


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """Jobs of all kinds and the sites that their demand and the load call for."""
    count, sites, slots = int(params["jobs"]), int(params["sites"]), int(params["slots"])
    rng = np.random.default_rng([seed, count, sites, slots])
    draw = _Draw(rng, sites, slots)
    kinds = KINDS if params["kind"] == "all" else (params["kind"],)
    drawn = [draw.job(i, kinds[i % len(kinds)]) for i in range(count)]
    setup = _setup(rng, sites, slots, sum(d.gpu_slots for d in drawn), params)
    order = sorted(range(count), key=lambda i: (drawn[i].fields["arrive_us"], i))
    jobs = tuple(Job(index=index, **drawn[i].fields) for index, i in enumerate(order))
    rows = [(index, *row) for index, i in enumerate(order) for row in drawn[i].volumes]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    changes: list[Change] = []
    for _ in range(int(params["failures"])):
        node, begin = int(rng.integers(sites)), int(rng.integers(0, slots))
        end = begin + int(rng.integers(1, 4))
        if all(c.a != node for c in changes):
            changes += [
                Change(begin * SLOT_US, "node_down", node, 0, 0),
                Change(end * SLOT_US, "node_up", node, 0, 0),
            ]
    return Scenario(
        name=f"mixed-{params['load']}-{count}-{seed}",
        setup=setup,
        jobs=jobs,
        customers=tuple(drawn[i].customer for i in order),
        volumes=Volumes(job=columns[0], slot=columns[1], node=columns[2], bytes=columns[3]),
        changes=tuple(sorted((c for c in changes if c.at_us < setup.horizon_us), key=lambda c: c.at_us)),
        origin={"workload": "mixed", "params": dict(params), "seed": seed},
    )


MIXED = Workload(
    name="mixed",
    summary="Streams, rings, data sets and fixed jobs on sites whose rent falls with use",
    generate=generate,
    params={
        "jobs": Param(default=40, doc="number of jobs", least=1, most=100_000),
        "sites": Param(default=4, doc="number of sites", least=1, most=50),
        "slots": Param(default=24, doc="number of slots of an hour", least=3, most=10_000),
        "load": Param(
            default="tight", doc="demand over capacity: slack .5, tight 1.2, very 2.5", choices=tuple(LOADS)
        ),
        "kind": Param(default="all", doc="kinds of jobs", choices=("all", *KINDS)),
        "tiers": Param(default=True, doc="whether rent falls with use"),
        "failures": Param(default=0, doc="sites that fail once for 1 to 3 slots", least=0, most=50),
    },
)
