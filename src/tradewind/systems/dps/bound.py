"""DPS in hindsight: the best fixed prices (bfp, bfp-tau), and a certified bound on profit.

These read budgets, so no policy may import them; bfp and bfp-tau get their prices as parameters.

Bound: whoever buys pays at most its budget, and what was sold is delivered: a job holds its items for its shortest
runtime, or, if it begins on arrival, until the run ends (a plan that begins later must finish within the run). So for every
resource and instant s the jobs that arrive from s on hold at most capacity * (horizon - s). The LP over these limits is
valid for every such run, also where starts are delayed; its dual value is the bound. Nothing but the data enters.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Step
from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import comm_us
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI, OPEN, UNLIMITED
from tradewind.solvers.highs import INFINITY, Program, quiet_solver
from tradewind.systems.dps.kernels.fixed import (
    QUICK,
    FixedPrices,
    Search,
    best_fixed_prices,
    fixed_payments,
    printed_prices,
    simulate_payments,
)
from tradewind.systems.dps.kernels.occupancy import Cluster, Stream
from tradewind.systems.dps.kernels.sales import ACCEPTED, new_sales
from tradewind.systems.dps.shared.order import PLACEMENTS, PriceScale
from tradewind.systems.dps.workload.draw import exchange_us

SHRINKING = ("node_down", "node_up", "link_down", "link_up", "price", "egress")
"""Changes that never raise capacity above what the setup states."""
ROUNDING = 16 * 2.0**-53
"""Relative error of a sum of up to eight products in floating point, twice."""


class MarketArrays(NamedTuple):
    """A scenario as arrays for the kernels; `first` and `second` are the resources of workers and parameter servers.

    usd: the highest unit price, in whose units the kernels count
    """

    stream: Stream
    cluster: Cluster
    budget: Floats
    first: tuple[int, ...]
    second: tuple[int, ...]
    usd: float = 1.0

    @property
    def worth(self) -> Floats:
        """Budgets in units of the highest unit price, (N,)."""
        return self.budget / self.usd


def arrays_of(scenario: Scenario) -> MarketArrays:
    """The scenario as arrays; every job must ask for one type of worker and one of parameter server."""
    setup, scale = scenario.setup, PriceScale.of(scenario.setup)
    if scale.hourly:
        raise InputError(
            "found prices by the hour (forecast.usd_per_item_hour); best fixed prices are found for prices by the job "
            "(forecast.usd_per_item, or neither). Leave bfp out, or state prices by the job",
            where=scenario.name,
        )
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
    stream = Stream(arrive, k, m, d_k, d_m, spread, together)
    return MarketArrays(stream, cluster, budget, first, second, scale.usd)


def best_prices(
    scenario: Scenario, *, with_runtime: bool = False, placement: str = "pa", search: Search | None = None
) -> dict[str, Any]:
    """Parameters of bfp (with_runtime: bfp-tau) for this scenario, found by coordinate ascent over full simulations."""
    it = arrays_of(scenario)
    how = search if search is not None else Search(PLACEMENTS[placement])
    how = how._replace(rule=PLACEMENTS[placement], with_runtime=with_runtime)
    found = best_fixed_prices(it.stream, it.cluster, it.worth, how)
    median = float(np.median(it.stream.spread)) if len(it.budget) else 1.0
    return {
        "prices": _listed(scenario, it, found),
        "power": found.power,
        "median_slots": max(1.0, median),
        "placement": placement,
    }


def fixed_price_sales(scenario: Scenario) -> Floats:
    """What each job pays (J,) at the best fixed prices of a short search; 0 where it does not buy."""
    it = arrays_of(scenario)
    prices = best_fixed_prices(it.stream, it.cluster, it.worth, QUICK)
    payment = fixed_payments(it.stream, prices)
    answer = simulate_payments(new_sales(it.stream, it.cluster, it.worth, QUICK.rule), payment).answer
    return np.where(answer == ACCEPTED, payment * it.usd, 0.0)


def bfp(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp in hindsight; given prices are kept."""
    return dict(given) if "prices" in given else {**best_prices(scenario, **_placement(given)), **given}


def bfp_printed(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp-printed: the prices that maximise the right-hand side of (3); given prices are kept."""
    if "prices" in given:
        return dict(given)
    it = arrays_of(scenario)
    found = printed_prices(it.stream, it.cluster, it.worth, scenario.setup.slots)
    return {"prices": _listed(scenario, it, found), **given}


def bfp_tau(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of bfp-tau in hindsight; given prices are kept."""
    if "prices" in given:
        return dict(given)
    return {**best_prices(scenario, with_runtime=True, **_placement(given)), **given}


def _listed(scenario: Scenario, it: MarketArrays, found: FixedPrices) -> str:
    """Unit prices as the parameter `prices`."""
    names = scenario.setup.resources
    prices = [*zip(it.first, found.p_k, strict=True), *zip(it.second, found.p_m, strict=True)]
    return ",".join(f"{names[r]}={float(p * it.usd)!r}" for r, p in prices)


def _placement(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"placement": given["placement"]} if given.get("placement") in PLACEMENTS else {}


def bound(scenario: Scenario) -> Bound | None:
    """The certified bound; None where a customer has no budget, a bid may be charged instead, or capacity may grow."""
    if any(customer.budget_usd is None for customer in scenario.customers):
        return None
    if any(job.utility is not None for job in scenario.jobs):
        return None
    if not scenario.jobs or any(change.kind not in SHRINKING for change in scenario.changes):
        return None
    return Bound(value=relaxed(scenario)[0], sense="max", kind="certified")


def relaxed(scenario: Scenario) -> tuple[float, Floats]:
    """The bound, and the LP's share of each job (N,)."""
    setup, jobs = scenario.setup, scenario.jobs
    whole = [sum(setup.nodes[h].capacity_milli[r] for h in setup.hosts) for r in range(len(setup.resources))]
    uses = [_bundle(job) for job in jobs]
    fits = [all(milli <= whole[r] for r, milli in use.items()) for use in uses]
    ahead = [(setup.horizon_us - job.arrive_us) / setup.slot_us for job in jobs]
    hold = [min(_least_slots(scenario, job, use), t) for job, use, t in zip(jobs, uses, ahead, strict=True)]
    program = Program()
    columns = [
        program.column(customer.budget_usd or 0.0, float(fit))
        for customer, fit in zip(scenario.customers, fits, strict=True)
    ]
    for r, capacity in enumerate(whole):
        later = -1
        for j in reversed(range(len(jobs)) if capacity < UNLIMITED else ()):
            if r in uses[j]:  # y_j = y_(j + 1) + use_j x_j: what jobs from j on hold
                y = program.column(0.0, capacity / MILLI * ahead[j])
                use = uses[j][r] / MILLI * hold[j]
                before = [(later, -1.0)] if later >= 0 else []
                program.row(0.0, INFINITY, [(y, 1.0), (columns[j], -use), *before])
                later = y
    model = quiet_solver(seed=7)
    found = program.solve(model, maximise=True)
    dual = np.maximum(-np.array(model.getSolution().row_dual), 0.0)
    reduced = np.array(program.cost)
    row = np.repeat(np.arange(len(program.row_high)), np.diff(program.starts))
    np.add.at(reduced, program.index, dual[row] * np.array(program.value))
    size: Floats = np.zeros(len(reduced))
    np.add.at(size, program.index, np.abs(dual[row] * np.array(program.value)))
    size[size > 0] += np.array(program.cost)[size > 0]
    safe = np.maximum(reduced + ROUNDING * size, 0.0)  # so that rounding never makes it too small
    return fsum((safe * np.array(program.high)).tolist()), found.columns[: len(columns)]


def _bundle(job: Job) -> dict[int, int]:
    """Resource -> milli-units that the job holds at least while it runs."""
    use: dict[int, int] = {}
    for demand, count in ((job.worker, job.workers_min), (job.server, job.servers)):
        for r, milli in demand:
            use[r] = use.get(r, 0) + milli * count
    return use


def _least_slots(scenario: Scenario, job: Job, use: Mapping[int, int]) -> float:
    """Least slots that the job runs, on one host if an empty one takes it; 0 where its work does not tell."""
    work, setup = job.work, scenario.setup
    if not isinstance(work, Rounds) or work.unit != "round":
        return 0.0
    hosts = setup.hosts if job.nodes is None else [h for h in setup.hosts if h in job.nodes]
    alone = any(all(setup.nodes[h].capacity_milli[r] >= m for r, m in use.items()) for h in hosts)
    apart = work.comm == "colocated" and not alone
    round_us = work.compute_us
    if apart:
        step = Step(job.arrive_us, OPEN, (0, 0), (job.workers_min, 0), (0, job.servers))
        round_us += comm_us(setup, job, step)
    # plans are whole slots only if the job arrives with a slot and nothing interrupts it
    whole = work.whole_slots and job.arrive_us % setup.slot_us == 0 and not scenario.changes
    return (
        float(-(-work.count * round_us // setup.slot_us)) if whole else work.count * round_us / setup.slot_us
    )
