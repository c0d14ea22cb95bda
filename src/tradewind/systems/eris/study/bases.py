"""Bases of the prices from the bids (Sec. IV-B), and where the ratio of Figure 5 stays below 1.5."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from tradewind.lab.study import Effort, Row
from tradewind.model.scenario import Scenario
from tradewind.systems.eris.paper import least_bases
from tradewind.systems.eris.shared.market import CapacityLedger
from tradewind.systems.eris.study.runs import PAPER, joined, limit, made, outcome, seeds
from tradewind.systems.eris.study.tables import READINGS, TEXT

SIZES = ("testbed", "simulator", "contended", "crowded")
PRINTED, SO_FAR, WHOLE_DAY = "1000", "bids so far", "bids of the day"
LIMIT = 1.5
"""Claimed for optimum / welfare."""


def day_bases(scenario: Scenario, unit: str = "gb") -> tuple[float, float]:
    """Bases of resources and bandwidth that cover all bids of the day, which nobody knows beforehand."""
    ledger = CapacityLedger(scenario.setup)
    found = np.array([least_bases(ledger, job, unit) for job in scenario.jobs])
    gamma, transfer = found.max(axis=0).tolist()
    return gamma, transfer


def choices(scenario: Scenario) -> dict[str, Mapping[str, Any]]:
    """Parameters of the printed algorithm by where its bases come from."""
    gamma, transfer = day_bases(scenario)
    return {
        PRINTED: {},
        SO_FAR: {"bases": "bids"},
        WHOLE_DAY: {"gamma": gamma, "gamma_transfer": transfer},
    }


def base_rows(effort: Effort) -> list[Row]:
    """Share of the bound by the origin of the bases, on every size, with ours beside it; and the bases that Sec. IV-B asks
    for, over all seeds.
    """
    rows: list[Row] = []
    for size in SIZES:
        scenarios = [made(effort, seed, size) for seed in seeds(effort, effort.pick(3, 5))]
        gamma, per_gb = np.max([day_bases(s) for s in scenarios], axis=0).tolist()
        needed = {
            "resources": gamma,
            "per GB": per_gb,
            "per MB": max(day_bases(s, "mb")[1] for s in scenarios),
        }
        for scenario in scenarios:
            top = limit(scenario)
            found = {base: outcome(scenario, PAPER, params) for base, params in choices(scenario).items()}
            found["eris"] = outcome(scenario, "eris")
            rows += [
                {"size": size, "base": b, "of bound": o.welfare / top, **needed} for b, o in found.items()
            ]
    return joined(rows, ("size", "base", "resources", "per GB", "per MB"), "of bound")


KNOBS = ("base", "chunks per worker", "demands", "jobs", "reading")


def ratio_rows(effort: Effort) -> list[Row]:
    """Bound / welfare on the testbed over what the paper leaves open: bases, P / E, demands, load, reading of M."""
    rows: list[Row] = []
    for per_worker, demands, jobs in product(
        effort.pick((0.0, 1.0), (0.0, 1.0, 3.0, 6.0)),
        effort.pick(("usual",), ("usual", "printed")),
        effort.pick((5, 10), (5, 10, 20)),
    ):
        for seed in seeds(effort, effort.pick(4, 10), 2):
            given = {"chunks_per_worker": per_worker, "demands": demands, "jobs": jobs, "forecast": False}
            scenario = made(effort, seed, "testbed", **given)
            top, ours = limit(scenario), outcome(scenario, "eris").welfare
            for (base, params), reading in product(choices(scenario).items(), ("formulas", TEXT)):
                earned = outcome(scenario, PAPER, {**params, **READINGS[reading]}).welfare
                rows.append({
                    "base": base, "chunks per worker": per_worker, "demands": demands, "jobs": float(jobs),
                    "reading": reading, PAPER: top / max(earned, 1e-9), "eris": top / max(ours, 1e-9),
                })  # fmt: skip
    return joined(rows, KNOBS, PAPER, "eris")
