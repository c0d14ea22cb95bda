"""EC2 prices of the papers' instance types, and workload prices made of them (`prices=ec2`).

`data/ec2_prices.csv` has one fact per row: USD per hour of an instance in a region, with month and source. Papers name
p3.2xlarge (mlBroker, 3.06 USD), p2.8xlarge (DPS) and the P3 family (GADGET); DPS sets the prices of 15 worker types and ten
server types after EC2 without naming them. Its types are here the `worker` and `server` rows of the table, in order.

Unit prices of a site are split from four instances of its region that differ in one thing at a time: memory by gr6.4xlarge
and g6.4xlarge, vCPUs by g4dn.4xlarge and g4dn.xlarge, and a GPU (T4) is what is left of g4dn.xlarge.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.spec import Param

DRAWN, EC2 = "drawn", "ec2"


class Price(NamedTuple):
    """A row of the table."""

    role: str
    region: str
    instance: str
    gpu: str
    gpus: float
    vcpus: float
    mem_gib: float
    usd_per_hour: float
    date: str
    source: str


def price_param(what: str) -> Param:
    """The parameter `prices` of a workload; `what` says what is drawn by default."""
    return Param(
        default=DRAWN, doc=f"prices: drawn ({what}), or ec2, a table of list prices", choices=(DRAWN, EC2)
    )


@cache
def ec2_prices() -> tuple[Price, ...]:
    """All rows of the table."""
    with resources.files("tradewind.traces").joinpath("data/ec2_prices.csv").open(encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return tuple(
        Price(role, region, instance, gpu, float(gpus), float(vcpus), float(memory), float(usd), date, source)
        for role, region, instance, gpu, gpus, vcpus, memory, usd, date, source in rows
    )


def normalised(role: str, count: int) -> Floats:
    """Prices (count,) of the types of a role in (0, 1]: USD per hour over that of the dearest; types repeat in order."""
    usd = np.array([row.usd_per_hour for row in ec2_prices() if row.role == role])
    return np.resize(usd / usd.max(), count)


def site_prices(count: int) -> Floats:
    """USD per hour (count, 3) of a GPU, a vCPU and a GiB of memory at each site; regions repeat in order."""
    found: dict[str, dict[str, Price]] = {}
    for row in ec2_prices():
        if row.role == "site":
            found.setdefault(row.region, {})[row.instance] = row
    prices = []
    for rows in found.values():
        small, large, plain, roomy = (
            rows[name] for name in ("g4dn.xlarge", "g4dn.4xlarge", "g6.4xlarge", "gr6.4xlarge")
        )
        memory = (roomy.usd_per_hour - plain.usd_per_hour) / (roomy.mem_gib - plain.mem_gib)
        more = large.usd_per_hour - small.usd_per_hour - memory * (large.mem_gib - small.mem_gib)
        vcpu = more / (large.vcpus - small.vcpus)
        prices.append((small.usd_per_hour - vcpu * small.vcpus - memory * small.mem_gib, vcpu, memory))
    return np.resize(np.array(prices), (count, 3))
