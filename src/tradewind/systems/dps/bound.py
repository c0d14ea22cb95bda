"""DPS in hindsight: the best fixed prices (bfp, bfp-tau), the bound that does not peek, and the clairvoyant one.

These read budgets and the demand law; no policy may import them. bfp and bfp-tau get their prices as parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.errors import InputError
from tradewind.model.job import Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI
from tradewind.systems.dps.kernels.books import Cluster, Stream
from tradewind.systems.dps.kernels.bound import clairvoyant_bound, fluid_bound
from tradewind.systems.dps.kernels.fixed import (
    ACCEPTED,
    QUICK,
    Search,
    best_fixed_prices,
    fixed_payments,
    simulate_payments,
)
from tradewind.systems.dps.kernels.place import BEST_FIT, RANDOM, WORST_FIT
from tradewind.systems.dps.workload.draw import KINDS, MarketSize, draw_market, exchange_us

RULES = {"pa": WORST_FIT, "best-fit": BEST_FIT, "random": RANDOM}


class Arrays(NamedTuple):
    """A scenario as the kernels see it; `first` and `second` are the resources of workers and parameter servers."""

    stream: Stream
    cluster: Cluster
    budget: NDArray[np.float64]
    first: tuple[int, ...]
    second: tuple[int, ...]


def arrays_of(scenario: Scenario) -> Arrays:
    """The market's arrays; only for jobs with one type of worker and one of parameter server, arriving on slots."""
    setup = scenario.setup
    second = tuple(r for r, name in enumerate(setup.resources) if name.startswith("ps"))
    first = tuple(r for r in range(len(setup.resources)) if r not in second)
    row_k, row_m = {r: i for i, r in enumerate(first)}, {r: i for i, r in enumerate(second)}
    rows = np.zeros((len(scenario.jobs), 10), dtype=np.int64)
    for i, job in enumerate(scenario.jobs):
        work = job.work
        single = len(job.worker) == 1 and len(job.server) == 1 and job.hold == "through"
        if not (single and isinstance(work, Rounds) and work.whole_slots and work.comm == "colocated"):
            raise InputError(f"jobs[{job.id}] is no bundle of DPS's market", where=scenario.name)
        (r_k, milli_k), (r_m, milli_m) = job.worker[0], job.server[0]
        if (milli_k, milli_m) != (MILLI, MILLI) or r_k not in row_k or r_m not in row_m:
            raise InputError(f"jobs[{job.id}] asks for other types than the market has", where=scenario.name)
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
    return Arrays(Stream(arrive, k, m, d_k, d_m, spread, together), cluster, budget, first, second)


def best_prices(
    scenario: Scenario, *, with_runtime: bool = False, placement: str = "pa", search: Search | None = None
) -> dict[str, Any]:
    """Parameters of bfp (or, with_runtime, bfp-tau) for this scenario, found by coordinate ascent with full simulations."""
    it = arrays_of(scenario)
    how = search if search is not None else Search(RULES[placement])
    how = how._replace(rule=RULES[placement], with_runtime=with_runtime)
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


def fixed_price_sales(scenario: Scenario) -> NDArray[np.float64]:
    """What each job pays (J,) under the best fixed prices of a short search; 0 where it does not buy."""
    it = arrays_of(scenario)
    prices = best_fixed_prices(it.stream, it.cluster, it.budget, QUICK)
    payment = fixed_payments(it.stream, prices)
    answer = simulate_payments(it.stream, it.cluster, payment, it.budget, QUICK.rule).answer
    return np.where(answer == ACCEPTED, payment, 0.0)


def bfp(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp in hindsight; prices that were given are kept."""
    return dict(given) if "prices" in given else {**best_prices(scenario, **_placement(given)), **given}


def bfp_tau(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp-tau in hindsight; prices that were given are kept."""
    if "prices" in given:
        return dict(given)
    return {**best_prices(scenario, with_runtime=True, **_placement(given)), **given}


def _placement(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"placement": given["placement"]} if given.get("placement") in RULES else {}


def demand_law(scenario: Scenario) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Location of each log budget (N,) and the law of its noise (G, 3), drawn again from the scenario's origin.

    None where the scenario was not generated here, or was changed since (its budgets are then not those of the origin).
    """
    origin = scenario.origin
    if origin.get("workload") != "dps" or origin.get("market") not in KINDS:
        return None
    sizes: dict[str, Any] = {
        name: origin[name] for name in ("jobs", "slots", "servers", "worker_types", "server_types")
    }
    market = draw_market(KINDS[str(origin["market"])], int(str(origin["seed"])), MarketSize(**sizes))
    budgets = [customer.budget_usd for customer in scenario.customers]
    return (market.log_value, market.law) if budgets == market.budget.tolist() else None


def bound(scenario: Scenario) -> Bound | None:
    """The non-peeking bound on expected profit, where the demand law is known."""
    law = demand_law(scenario)
    if law is None or not scenario.jobs:
        return None
    it = arrays_of(scenario)
    value = fluid_bound(it.stream, it.cluster, scenario.setup.slots, law).value
    return Bound(value=value, sense="max", kind="in-expectation")


def clairvoyant(scenario: Scenario, blocks: int = 50) -> Bound:
    """What a seller who knows every budget and the future could earn at most."""
    it = arrays_of(scenario)
    value = clairvoyant_bound(it.stream, it.cluster, scenario.setup.slots, it.budget, blocks)
    return Bound(value=value, sense="max", kind="certified")
