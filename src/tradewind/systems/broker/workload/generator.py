"""Batch training jobs in markets of cloud machines, by families (systems/broker/workload/families.py).

| drawn     | how                                                                                              |
|-----------|--------------------------------------------------------------------------------------------------|
| GPUs, hours | 1, 2, 4, 8, 16, 32 GPUs with shares 52, 5, 20, 20, 2, 1 %; hours lognormal by GPUs, drawn again until 8 to |
|           | 2,000 GPU-hours and at most 120 h (fitted to the Philly trace of 2017, jobs in that range)       |
| workers   | half to four times as many GPUs, powers of two; a round of 2-20 s and a model of .1-3 GB, log-uniform |
| speeds    | V100 = 1, T4 .35, L4 .6, A10G .7, L40S 1.6, A100 2.2 (80 GB 2.4), H100 4.5, H200 5, x U[.8, 1.25] |
| two sites | parameters may be exchanged every 50 rounds; see model.progress.across_round_us                  |
| data      | 1-3 parts, Dirichlet(2), in different regions                                                    |
| deadline  | arrival + 2 + hours x slack, later where no machine makes it; after it the job is worth nothing   |
| value     | 30 + 8 per GPU-hour + .15 per GB USD                                                             |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.job import Job, Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import GB, US_PER_HOUR, US_PER_S
from tradewind.model.utility import Utility
from tradewind.model.workload import Workload
from tradewind.prices.places import continent
from tradewind.systems.broker.shared.market import Market, accounts_of, rooms
from tradewind.systems.broker.shared.options import Prices, build
from tradewind.systems.broker.shared.ways import Request
from tradewind.systems.broker.workload.families import FAMILIES, MEMORY_GB, SPEED, Family
from tradewind.systems.broker.workload.market import changes_of, market_of, regions_of

SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.52, 0.05, 0.20, 0.20, 0.02, 0.01)
LOG_HOURS = {
    1: (3.07, 0.68),
    2: (3.18, 0.92),
    4: (2.76, 1.0),
    8: (2.75, 1.36),
    16: (2.87, 1.35),
    32: (1.43, 1.69),
}
LEAST, MOST, LONGEST_H = 8.0, 2000.0, 120.0
SYNC_EVERY = 50
WARMUP_US, CHECKPOINT_US = US_PER_HOUR // 10, US_PER_HOUR // 50
NEEDS_GB = (0, 16, 24, 40)


class Size(NamedTuple):
    """A job's GPUs and GPU-hours on the reference GPU."""

    gpus: int
    gpu_hours: float


def _sizes(count: int, rng: np.random.Generator) -> list[Size]:
    found = []
    for gpus in rng.choice(SIZES, size=count, p=SHARES).tolist():
        while True:
            hours = float(rng.lognormal(*LOG_HOURS[gpus]))
            if LEAST <= gpus * hours <= MOST and hours <= LONGEST_H:
                break
        found.append(Size(gpus, gpus * hours))
    return found


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    family, count, rng = FAMILIES[params["family"]], int(params["jobs"]), np.random.default_rng(seed)
    sizes = _sizes(count, rng)
    hours = int(params["slots"]) or family.slots
    regions = regions_of(family, int(params["regions"]), rng)
    setup = market_of(family, regions, hours, sum(size.gpu_hours for size in sizes), count, rng)
    spread = params["arrivals"] == "spread" or (params["arrivals"] == "family" and family.capacity)
    arrive = (
        np.sort(rng.integers(0, max(1, int(0.6 * hours)), count))
        if spread
        else np.zeros(count, dtype=np.int64)
    )
    draw = _Draw(setup, family, regions, rng, params)
    market = Market(setup)
    jobs = tuple(draw.job(j, size, int(arrive[j]), market) for j, size in enumerate(sizes))
    changes = changes_of(setup, hours, rng, interruptions=bool(params["interruptions"]))
    return Scenario(
        name=f"broker-{params['family']}-{count}",
        setup=setup,
        jobs=jobs,
        changes=changes,
        origin={"workload": "broker", "seed": seed, **params},
    )


class _Draw:
    """Draws jobs one after the other."""

    def __init__(
        self,
        setup: Setup,
        family: Family,
        regions: tuple[str, ...],
        rng: np.random.Generator,
        params: Mapping[str, Any],
    ) -> None:
        self.setup, self.family, self.regions, self.rng = setup, family, regions, rng
        self.two_sites, self.moves = bool(params["two_sites"]), bool(params["moves"])
        self.due, self.late_usd = float(params["due"]), float(params["late_usd"])

    def job(self, index: int, size: Size, arrive: int, market: Market) -> Job:
        """One job; its deadline is moved so that the fastest placement alone makes it."""
        rng, family = self.rng, self.family
        round_s, model_gb = (
            np.exp(rng.uniform(np.log(2), np.log(20))),
            np.exp(rng.uniform(np.log(0.1), np.log(3))),
        )
        slack = rng.uniform(*family.slack)
        need_gb = int(rng.choice(NEEDS_GB)) if not family.regions else 0
        speeds = {gpu: SPEED[gpu] * rng.uniform(0.8, 1.25) for gpu in family.types}
        parts = self._parts(size)
        kept = not family.regions and rng.random() < 0.2
        pauses = family.capacity and rng.random() < 0.5
        data_gb = sum(parts.values()) / GB
        nodes = self._same_continent(max(parts, key=lambda node: parts[node])) if kept else None
        job = Job(
            index=index,
            id=f"job-{index:04d}",
            arrive_us=arrive * US_PER_HOUR,
            work=Rounds(
                count=max(1, round(3600 * size.gpu_hours / round_s)),
                compute_us=round(round_s * US_PER_S),
                comm="machines",
            ),
            worker=((0, 1000),),
            workers_max=4 * size.gpus,
            gpus=tuple(n for n in (size.gpus // 2, size.gpus, 2 * size.gpus, 4 * size.gpus) if n),
            gpu_speeds=tuple(
                (gpu, max(1, round(1000 * speed)))
                for gpu, speed in speeds.items()
                if MEMORY_GB[gpu] >= need_gb
            ),
            model_bytes=round(model_gb * GB),
            parts=tuple(sorted(parts.items())),
            warmup_us=WARMUP_US,
            checkpoint_us=CHECKPOINT_US,
            sync_every=SYNC_EVERY if self.two_sites else 0,
            restarts=None if self.moves else 2 if pauses else 0,
            nodes=nodes,
        )
        value = 30 + 8 * size.gpu_hours + 0.15 * data_gb
        slots = 2 + ceil(size.gpu_hours / size.gpus * slack)
        slots = max(slots, self._fastest(job, market, arrive))
        slots = min(slots, self.setup.slots - arrive)
        if not self.late_usd:
            return _with_deadline(job, value, slots)
        return _with_due_date(job, value, slots, due=ceil(self.due * slots), late_usd=self.late_usd)

    def _parts(self, size: Size) -> dict[int, int]:
        """Site -> bytes."""
        rng, (low, high) = self.rng, self.family.data_gb
        if not high:  # one part, in proportion to the work
            site = int(rng.integers(len(self.regions)))
            return {site: max(1, round(size.gpu_hours * rng.uniform(0.3, 1.2) * GB))}
        total = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        count = min(int(rng.integers(1, 4)), len(self.regions))
        sites = rng.choice(len(self.regions), size=count, replace=False)
        shares = rng.dirichlet([2.0] * count)
        return {
            int(site): max(1, round(total * share * GB)) for site, share in zip(sites, shares, strict=True)
        }

    def _same_continent(self, site: int) -> frozenset[int] | None:
        """Hosts on a site's continent; None where nothing is sold there."""
        home = continent(self.regions[site])
        near = {i for i, region in enumerate(self.regions) if continent(region) == home}
        hosts = (host for host in self.setup.hosts if self.setup.nodes[host].machine is not None)
        return frozenset(host for host in hosts if self.setup.site_of[host] in near) or None

    def _fastest(self, job: Job, market: Market, arrive: int) -> int:
        """Slots that the fastest placement on demand takes from the arrival on."""
        slots = self.setup.slots
        sure = _with_deadline(job, 1e12, slots - arrive)
        prices = Prices(
            slot=0, factor=np.ones((len(market.nodes), slots)), room=rooms(self.setup, market.nodes, slots, 1000),
            accounts=accounts_of(self.setup, 0, slots, {}), spot=False,
        )  # fmt: skip
        p = build(market, [Request(job=sure, left=job.work.total or 0, ready=arrive)], prices)
        return int((p.earliest + p.need[:, 0]).min() - arrive) if len(p.offer) else slots - arrive


def _with_deadline(job: Job, value: float, slots: int) -> Job:
    """The job with a bid that is worth `value` if it ends within so many slots, and nothing later."""
    late = Utility(of="delay_slots", shape="piecewise", args=(float(slots - 1), value, float(slots), 0.0))
    return replace(job, utility=late)


def _with_due_date(job: Job, value: float, slots: int, *, due: int, late_usd: float) -> Job:
    """The same with a loss per slot after it is due, until the deadline or until nothing is left of its value."""
    last = min(slots - 1, due - 1 + ceil(value / late_usd) - 1)
    if last <= due - 1:
        return _with_deadline(job, value, due)
    left = value - late_usd * (last - due + 1)
    args = (float(due - 1), value, float(last), left, float(last + 1), 0.0)
    return replace(job, utility=Utility(of="delay_slots", shape="piecewise", args=args))


BROKER = Workload(
    name="broker",
    summary="Batch training jobs with deadlines and data in several regions, in markets of cloud machines",
    generate=generate,
    params={
        "family": Param(default="Bm", doc="family of markets: " + "; ".join(f"{k} {f.about}" for k, f in FAMILIES.items()),
                        choices=tuple(FAMILIES)),
        "jobs": Param(default=50, doc="number of jobs", least=1, most=100_000),
        "regions": Param(default=0, doc="number of regions; 0: as the family has", least=0, most=63),
        "slots": Param(default=0, doc="hours of the run; 0: as the family has", least=0, most=2000),
        "arrivals": Param(default="family", doc="all at the start, spread over 60% of the run, or as the family has",
                          choices=("family", "start", "spread")),
        "two_sites": Param(default=True, doc="whether jobs may train at two sites that hold parts of their data"),
        "moves": Param(default=False, doc="whether jobs may move while they run; there is no bound then"),
        "due": Param(default=1.0, doc="part of the time to the deadline after which a job is late", least=0.0, most=1.0),
        "late_usd": Param(default=0.0, doc="USD that a job loses per slot after it is due", least=0.0),
        "interruptions": Param(default=False, doc="whether spot machines are taken back at their rates"),
    },
)  # fmt: skip
