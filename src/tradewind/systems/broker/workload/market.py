"""Regions, offers, prices, pools and links of a family."""

from __future__ import annotations

import numpy as np

from tradewind.model.machine import Machine
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.pool import Pool
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import UNLIMITED, US_PER_HOUR
from tradewind.model.view import Change
from tradewind.systems.broker.workload.families import FAST_BUS, SPEED, Family
from tradewind.systems.broker.workload.prices import ListPrice, between, list_prices
from tradewind.systems.broker.workload.prices import regions as every_region

MONTH_US = 720 * US_PER_HOUR
GBIT = 10**9
EGRESS_STARTS, EGRESS_RATES = (0.0, 922.0, 4608.0, 13_824.0), (1.0, 0.944, 0.778, 0.556)


def regions_of(family: Family, wanted: int, rng: np.random.Generator) -> tuple[str, ...]:
    """All regions, or a random choice of those that sell a type of the family, in the order of the list."""
    count = wanted or family.regions
    if not count:
        return every_region()
    known = tuple(dict.fromkeys(price.region for price in list_prices() if price.gpu in family.types))
    if count >= len(known):
        return known
    return tuple(known[i] for i in sorted(rng.choice(len(known), size=count, replace=False).tolist()))


def _sold(family: Family, regions: tuple[str, ...], rng: np.random.Generator) -> list[ListPrice]:
    """What is sold in these regions."""
    if not family.alike:
        return [
            price for price in list_prices() if price.region in set(regions) and price.gpu in family.types
        ]
    model = [
        price for price in list_prices() if price.region == "aws:us-east-1" and price.gpu in family.types
    ]
    low, high = 1 - family.alike, 1 + family.alike
    return [
        price._replace(region=region, usd=price.usd * rng.uniform(low, high), spot_usd=0.0)
        for region in regions
        for price in model
    ]


def market_of(
    family: Family,
    regions: tuple[str, ...],
    hours: int,
    gpu_hours: float,
    jobs: int,
    rng: np.random.Generator,
) -> Setup:
    """The setup of a family: sites, then their offers."""
    sold = _sold(family, regions, rng)
    limits = _limits(sold, gpu_hours / (0.5 * hours), rng) if family.capacity else [UNLIMITED] * len(sold)
    nodes = [Node(name=region, capacity_milli=(UNLIMITED,)) for region in regions]
    rent: dict[tuple[int, int], Tariff] = {}
    for price, limit in zip(sold, limits, strict=True):
        for spot in (False, True):
            usd = price.spot_usd if spot else price.usd
            if not usd or (spot and not family.spot):
                continue
            rent[len(nodes), 0] = Tariff(usd=(float(usd),))
            amount = max(1, int(rng.integers(8, 65)) // price.gpus) * 1000 if spot else limit
            nodes.append(
                Node(
                    name=f"{price.region}/{price.gpu}x{price.gpus}{'-spot' if spot else ''}",
                    kind="server",
                    parent=regions.index(price.region),
                    capacity_milli=(amount,),
                    machine=_machine(price),
                    interruptions_per_hour=round(float(rng.uniform(0.01, 0.1)), 4) if spot else 0.0,
                )
            )
    links, egress = _network(regions)
    return Setup(
        resources=("machine",),
        nodes=tuple(nodes),
        links=links,
        rent=rent,
        egress=egress,
        slot_us=US_PER_HOUR,
        horizon_us=hours * US_PER_HOUR,
        objective="total_usd",
        pools=(*_pools(family, nodes, rent, regions, jobs, rng), *_egress_pools(family, regions, egress)),
    )


def _machine(price: ListPrice) -> Machine:
    fast = price.gpu in FAST_BUS
    return Machine(
        gpu=price.gpu,
        gpus=price.gpus,
        bus_bps=(1200 if fast else 128) * GBIT,
        network_bps=(100 if price.gpus >= 8 else 25) * GBIT,
    )


def _limits(sold: list[ListPrice], gpus: float, rng: np.random.Generator) -> list[int]:
    """Machines of each offer: GPUs of speed 1 in total, split by U[1, 4]."""
    shares = rng.uniform(1, 4, len(sold))
    split = gpus * shares / shares.sum()
    return [max(1, round(n / SPEED[p.gpu] / p.gpus)) * 1000 for n, p in zip(split, sold, strict=True)]


def _network(regions: tuple[str, ...]) -> tuple[tuple[Link, ...], dict[tuple[int, int], Tariff]]:
    links, egress = [], {}
    for a, source in enumerate(regions):
        for b, target in enumerate(regions):
            if a != b:
                egress[a, b] = Tariff(usd=(between(source, target)[1],))
            if a < b:
                there, back = between(source, target)[0], between(target, source)[0]
                links.append(
                    Link(
                        a=a, b=b, ab_bps=round(there * GBIT), ba_bps=round(back * GBIT),
                        latency_us=round(500 * between(source, target)[2]),
                    )
                )  # fmt: skip
    return tuple(links), egress


def _pools(
    family: Family,
    nodes: list[Node],
    rent: dict[tuple[int, int], Tariff],
    regions: tuple[str, ...],
    jobs: int,
    rng: np.random.Generator,
) -> list[Pool]:
    """Discounts on rent; spot earns and gets none."""
    offers = [(i, node) for i, node in enumerate(nodes) if node.machine and not node.interruptions_per_hour]
    if family.pool == "slot":
        found = []
        for i, node in offers:
            gpus = node.machine.gpus if node.machine else 1
            usd = int(rng.integers(4, 13)) / gpus * rent[i, 0].usd[0]  # spend of so many GPUs in an hour
            tariff = Tariff(starts=(0.0, usd, 3 * usd), usd=family.rates)
            found.append(Pool(name=node.name, rent=((i, 0),), period_us=US_PER_HOUR, tariff=tariff))
        return found
    if not family.pool:
        return []
    groups: dict[str, list[tuple[int, int]]] = {}
    for i, node in offers:
        region = regions[node.parent]
        groups.setdefault(region if family.pool == "region" else region.partition(":")[0], []).append((i, 0))
    tariff = Tariff(starts=(0.0, family.starts[0] * jobs, family.starts[1] * jobs), usd=family.rates)
    return [
        Pool(name=f"{name} rent", rent=tuple(members), period_us=MONTH_US, tariff=tariff)
        for name, members in groups.items()
    ]


def _egress_pools(
    family: Family, regions: tuple[str, ...], egress: dict[tuple[int, int], Tariff]
) -> list[Pool]:
    """Tiers per source region and month, towards other clouds."""
    found = []
    for a, source in enumerate(regions) if family.egress_tiers else ():
        cloud = source.partition(":")[0]
        pairs = tuple((a, b) for b, other in enumerate(regions) if other.partition(":")[0] != cloud)
        pairs = tuple(pair for pair in pairs if egress[pair].usd[0] > 0)
        if pairs:
            tariff = Tariff(starts=EGRESS_STARTS, usd=EGRESS_RATES)
            found.append(Pool(name=f"{source} egress", egress=pairs, period_us=MONTH_US, tariff=tariff))
    return found


def changes_of(
    setup: Setup, hours: int, rng: np.random.Generator, *, interruptions: bool
) -> tuple[Change, ...]:
    """Price paths of spot (a random walk of steps .05 within .8 to 2) and, if wanted, interruptions until the next hour."""
    found: list[Change] = []
    for i, node in enumerate(setup.nodes):
        if not node.interruptions_per_hour:
            continue
        factor = 1.0
        for hour in range(1, hours):
            factor = float(np.clip(factor * np.exp(rng.normal(0.0, 0.05)), 0.8, 2.0))
            found.append(Change(hour * US_PER_HOUR, "price", i, 0, round(1000 * factor)))
        if interruptions:
            lost = np.flatnonzero(rng.random(hours - 1) < -np.expm1(-node.interruptions_per_hour))
            for hour in lost.tolist():
                at = hour * US_PER_HOUR + int(rng.integers(1, US_PER_HOUR))
                found.append(Change(at, "node_down", i, 0, 0))
                found.append(Change((hour + 1) * US_PER_HOUR, "node_up", i, 0, 0))
    return tuple(sorted(found, key=lambda change: change.at_us))
