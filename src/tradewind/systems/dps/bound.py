"""DPS in hindsight: the best fixed prices (bfp, bfp-tau), and a bound on the expected profit.

These read budgets and their distribution, so no policy may import them; bfp and bfp-tau get their prices as parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.errors import InputError
from tradewind.model.job import Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI
from tradewind.systems.dps.kernels.bound import fluid_bound
from tradewind.systems.dps.kernels.fixed import (
    QUICK,
    Search,
    best_fixed_prices,
    fixed_payments,
    simulate_payments,
)
from tradewind.systems.dps.kernels.occupancy import Cluster, Stream
from tradewind.systems.dps.kernels.sales import ACCEPTED, new_sales
from tradewind.systems.dps.shared.order import PLACEMENTS
from tradewind.systems.dps.workload.draw import KINDS, MarketSize, draw_market, exchange_us


class MarketArrays(NamedTuple):
    """A scenario as arrays for the kernels; `first` and `second` are the resources of workers and parameter servers."""

    stream: Stream
    cluster: Cluster
    budget: Floats
    first: tuple[int, ...]
    second: tuple[int, ...]


def arrays_of(scenario: Scenario) -> MarketArrays:
    """The scenario as arrays; every job must ask for one type of worker and one of parameter server."""
    setup = scenario.setup
    second = tuple(r for r, name in enumerate(setup.resources) if name.startswith("ps"))
    first = tuple(r for r in range(len(setup.resources)) if r not in second)
    row_k, row_m = {r: i for i, r in enumerate(first)}, {r: i for i, r in enumerate(second)}
    rows = np.zeros((len(scenario.jobs), 10), dtype=np.int64)
    for i, job in enumerate(scenario.jobs):
        work = job.work
        single = len(job.worker) == 1 and len(job.server) == 1 and job.hold == "through"
        if not (single and isinstance(work, Rounds) and work.whole_slots and work.comm == "colocated"):
            raise InputError(
                "found a job that DPS's market does not sell; allowed are rounds in whole slots with colocated "
                "communication, one type of worker, one type of parameter server and hold: through",
                where=f"{scenario.name}, jobs[{job.id}]",
            )
        (r_k, milli_k), (r_m, milli_m) = job.worker[0], job.server[0]
        if (milli_k, milli_m) != (MILLI, MILLI) or r_k not in row_k or r_m not in row_m:
            raise InputError(
                "found a demand other than 1 of a worker type and 1 of a parameter server type (ps…)",
                where=f"{scenario.name}, jobs[{job.id}]",
            )
        rows[i] = (
            job.arrive_us // setup.slot_us, row_k[r_k], row_m[r_m], job.workers_max, job.servers,
            work.count, work.compute_us, job.model_bytes, job.worker_bps, job.server_bps,
        )  # fmt: skip
    arrive, k, m, d_k, d_m, epochs, compute, gradient, bps_k, bps_m = (
        np.ascontiguousarray(c) for c in rows.T
    )
    together = -(-epochs * compute // setup.slot_us)
    spread = -(-epochs * (compute + exchange_us(gradient, bps_k, bps_m, d_k)) // setup.slot_us)
    capacity = np.array([setup.nodes[h].capacity_milli for h in setup.hosts], dtype=np.int64).T // MILLI
    cluster = Cluster(
        np.ascontiguousarray(capacity[list(first)]), np.ascontiguousarray(capacity[list(second)])
    )
    budget = np.array([c.budget_usd if c.budget_usd is not None else 0.0 for c in scenario.customers])
    return MarketArrays(Stream(arrive, k, m, d_k, d_m, spread, together), cluster, budget, first, second)


def best_prices(
    scenario: Scenario, *, with_runtime: bool = False, placement: str = "pa", search: Search | None = None
) -> dict[str, Any]:
    """Parameters of bfp (with_runtime: bfp-tau) for this scenario, found by coordinate ascent over full simulations."""
    it = arrays_of(scenario)
    how = search if search is not None else Search(PLACEMENTS[placement])
    how = how._replace(rule=PLACEMENTS[placement], with_runtime=with_runtime)
    found = best_fixed_prices(it.stream, it.cluster, it.budget, how)
    names = scenario.setup.resources
    prices = [*zip(it.first, found.p_k, strict=True), *zip(it.second, found.p_m, strict=True)]
    median = float(np.median(it.stream.spread)) if len(it.budget) else 1.0
    return {
        "prices": ",".join(f"{names[r]}={float(p)!r}" for r, p in prices),
        "power": found.power,
        "median_slots": max(1.0, median),
        "placement": placement,
    }


def fixed_price_sales(scenario: Scenario) -> Floats:
    """What each job pays (J,) at the best fixed prices of a short search; 0 where it does not buy."""
    it = arrays_of(scenario)
    prices = best_fixed_prices(it.stream, it.cluster, it.budget, QUICK)
    payment = fixed_payments(it.stream, prices)
    answer = simulate_payments(new_sales(it.stream, it.cluster, it.budget, QUICK.rule), payment).answer
    return np.where(answer == ACCEPTED, payment, 0.0)


def bfp(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp in hindsight; given prices are kept."""
    return dict(given) if "prices" in given else {**best_prices(scenario, **_placement(given)), **given}


def bfp_tau(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp-tau in hindsight; given prices are kept."""
    if "prices" in given:
        return dict(given)
    return {**best_prices(scenario, with_runtime=True, **_placement(given)), **given}


def _placement(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"placement": given["placement"]} if given.get("placement") in PLACEMENTS else {}


def budget_distribution(scenario: Scenario) -> tuple[Floats, Floats] | None:
    """Location of each log budget (N,) and the groups of its noise (G, 3), drawn again from the scenario's origin.

    The distribution is in no scenario, so this bound alone needs the origin; it counts only if it draws the scenario's own
    budgets again. None where the scenario was not generated here, or its budgets were changed since.
    """
    origin = scenario.origin
    if origin.get("workload") != "dps" or origin.get("market") not in KINDS:
        return None
    try:
        sizes: dict[str, Any] = {
            name: origin[name] for name in ("jobs", "slots", "servers", "worker_types", "server_types")
        }
        market = draw_market(KINDS[str(origin["market"])], int(str(origin["seed"])), MarketSize(**sizes))
    except (KeyError, TypeError, ValueError):  # written or changed by hand
        return None
    budgets = [customer.budget_usd for customer in scenario.customers]
    return (market.log_value, market.noise) if budgets == market.budget.tolist() else None


def bound(scenario: Scenario) -> Bound | None:
    """The bound on expected profit that peeks at no budget; None where the distribution of the budgets is unknown."""
    demand = budget_distribution(scenario)
    if demand is None or not scenario.jobs:
        return None
    it = arrays_of(scenario)
    value = fluid_bound(it.stream, it.cluster, scenario.setup.slots, demand).value
    return Bound(value=value, sense="max", kind="in-expectation")
