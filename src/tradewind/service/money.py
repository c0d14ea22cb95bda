"""What runs now costs per hour: rented together, each job alone, and the bound."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from math import fsum
from typing import Any

from tradewind.model.job import Job
from tradewind.model.units import MILLI
from tradewind.service.service import Service
from tradewind.store.board import Row

RUNNING = ("running", "scheduled")
"""Statuses of jobs that have a place."""
MOST_JOBS = 2000
"""Running jobs that are added up."""


def running_jobs(service: Service, equal: Mapping[str, Any]) -> list[tuple[Row, Job]]:
    """Jobs that have a place, as people and as policies see them."""
    rows = service.board.rows("board_jobs", status=list(RUNNING), most=MOST_JOBS, **equal)
    return [(row, service.reader.build(json.loads(row["body"]), 0, row["id"], 0).job) for row in rows]


def money(service: Service) -> dict[str, float] | None:
    """USD per hour of what is in use: as it is rented together, if every job rented by itself, and the bound.

    The bound is the same use at the lowest list price of any site: it could not cost less. None: there are no list prices.
    """
    setup = service.config.setup
    if not setup.rent:
        return None
    factors = {
        (row["node"], row["resource"]): row["price_factor"]
        for row in service.board.rows("board_sites", most=100_000)
    }
    used: dict[tuple[int, int], float] = defaultdict(float)
    alone: list[float] = []

    def price(key: tuple[int, int], units: float) -> float:
        tariff = setup.rent.get(key)
        names = setup.nodes[key[0]].name, setup.resources[key[1]]
        return 0.0 if tariff is None else tariff.cost(units) * factors.get(names, 1.0)

    for row, job in running_jobs(service, {}):
        mine: dict[tuple[int, int], float] = defaultdict(float)
        places = json.loads(row["places"])
        for part, demand in (("workers", job.worker), ("servers", job.server)):
            for site, count in places.get(part, {}).items():
                for resource, milli in demand:
                    mine[setup.node_index[site], resource] += count * milli / MILLI
        for key, units in mine.items():
            used[key] += units
            alone.append(price(key, units))
    least = {
        r: min(
            min(t.usd) * factors.get((setup.nodes[n].name, setup.resources[r]), 1.0)
            for (n, other), t in setup.rent.items()
            if other == r
        )
        for r in {resource for _, resource in setup.rent}
    }
    return {
        "together": fsum(price(key, units) for key, units in used.items()),
        "alone": fsum(alone),
        "bound": fsum(units * least.get(key[1], 0.0) for key, units in used.items() if key in setup.rent),
    }
