"""Why a job was placed as it was: its sites, the cost of the next best plan, the tiers reached."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.bound.slots import first_data_slot, is_present
from tradewind.systems.mlbroker.explain.remarks import NO_DATA
from tradewind.systems.mlbroker.explain.slots import DecidedSlot, decided_slots
from tradewind.systems.mlbroker.kernels.costs import job_parts
from tradewind.systems.mlbroker.kernels.job import cost_with_server
from tradewind.systems.mlbroker.kernels.pool import priced_job, terms
from tradewind.systems.mlbroker.kernels.prices import bill, marginal
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.kernels.tree import cheapest

SERVERS = 3
"""Server sites searched for the next best plan."""


class ReachedTier(NamedTuple):
    """Where a job rents: the tier that the pooled units reach (from 1), and where the next one starts (or infinity)."""

    site: str
    resource: str
    tier: int
    units: float
    next_tier_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An explanation in numbers (USD of this slot) and in sentences.

    added_usd   what the job adds to the pooled cost: its own costs and the rise of the rent
    next_usd    the same for the best plan without one of its sites; infinite where there is none
    next_sites  the sites of that plan
    tiers       tiers reached where the job rents
    lines       the sentences
    """

    added_usd: float
    next_usd: float
    next_sites: tuple[str, ...]
    tiers: tuple[ReachedTier, ...]
    lines: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The same as plain data; null where there is no next tier or next best plan."""
        return {
            "added_usd": self.added_usd,
            "next_usd": _finite(self.next_usd),
            "next_sites": list(self.next_sites),
            "tiers": [{**tier._asdict(), "next_tier_at": _finite(tier.next_tier_at)} for tier in self.tiers],
            "lines": list(self.lines),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def explain(scenario: Scenario, run: Run, job_id: str, slot_number: int) -> Explanation:
    """Explain one job's placement in one slot of a run."""
    if slot_number < 0:
        raise InputError("mlBroker places jobs slot by slot; name the slot with --slot")
    if job_id not in {job.id for job in scenario.jobs}:
        raise LookupFailed("job", job_id, [job.id for job in scenario.jobs])
    for decided in decided_slots(scenario, run):
        if decided.number == slot_number:
            for i, job in enumerate(decided.jobs):
                if job.id == job_id and decided.server[i] >= 0:
                    return _Placed(scenario, decided, i).explanation()
    why = _absence(scenario, run, job_id, slot_number)
    raise InputError(f"job {job_id!r} has no plan in slot {slot_number}: {why}")


def _absence(scenario: Scenario, run: Run, job_id: str, number: int) -> str:
    """Why a job has no plan in a slot: it was refused, waited for data, or was not present."""
    index = next(job.index for job in scenario.jobs if job.id == job_id)
    verdicts = run.tables["verdicts"]
    for row, job, reason in zip(verdicts["decision"], verdicts["job"], verdicts["reason"], strict=True):
        if job == index:
            at_us = cast(int, run.tables["decisions"]["at_us"][cast(int, row)])
            return f"it was refused in slot {at_us // scenario.setup.slot_us}: {reason}"
    if not is_present(scenario, scenario.jobs[index], number * scenario.setup.slot_us):
        return "it was not present"
    begins = first_data_slot(scenario).get(index)
    if begins is None:
        return NO_DATA
    if number < begins:
        return f"it was waiting for data, which begins in slot {begins}"
    return f"the run of {scenario.setup.slots} slots has no decision for it in this slot"


class _Placed:
    """One job in one slot: its plan, and what the other jobs use."""

    def __init__(self, scenario: Scenario, decided: DecidedSlot, i: int) -> None:
        self._scenario = scenario
        self._decided = decided
        self._i = i
        self._names = [scenario.setup.nodes[node].name for node in scenario.setup.hosts]
        others = np.array([j for j in range(len(decided.jobs)) if j != i], dtype=np.int64)
        _, self._base = job_parts(decided.slot.only(others), decided.workers[others], decided.server[others])
        self._own: Slot = decided.slot.only(np.array([i]))
        self._workers, self._server = decided.workers[i], int(decided.server[i])

    def explanation(self) -> Explanation:
        """The explanation of the job's plan."""
        added = self._added(self._workers, self._server)
        best, sites = self._next_best()
        tiers, names = self._tiers(), tuple(self._names[r] for r in sites)
        return Explanation(
            added_usd=added,
            next_usd=best,
            next_sites=names,
            tiers=tuple(tiers),
            lines=(*self._cost_lines(added), _next_line(added, best, names), *map(_tier_line, tiers)),
        )

    def _use(self, y: Ints, p: int) -> Floats:
        """(R, K): what a plan of the job uses."""
        usage: Floats = y[:, None] * self._own.worker[0][None, :]
        usage[p] += self._own.server[0]
        return usage

    def _added(self, y: Ints, p: int) -> float:
        """Own costs of a plan and the rise of the pooled rent that it causes."""
        usd, intercept = self._own.tiers.usd, self._own.tiers.intercept
        rise = bill(self._base + self._use(y, p), usd, intercept) - bill(self._base, usd, intercept)
        free = priced_job(terms(self._own, 1.0), 0, np.zeros(self._base.shape))
        return float(cost_with_server(free, p, y) + rise)

    def _next_best(self) -> tuple[float, list[int]]:
        """Cheapest plan found without at least one of the sites in use: (USD, its sites)."""
        price = np.empty(self._base.shape)
        best, where = float("inf"), [0][:0]
        for barred in sorted({self._server, *np.flatnonzero(self._workers > 0).tolist()}):
            for seen in (self._base, self._base + self._use(self._workers, self._server)):
                marginal(seen, self._own.tiers.usd, self._own.tiers.intercept, price)
                job = priced_job(terms(self._own, 1.0), 0, price)
                most, ok = job.most.copy(), job.server_ok.copy()
                most[barred], ok[barred] = 0, False
                _, q, z = cheapest(job._replace(most=most, server_ok=ok), SERVERS)
                if q >= 0:
                    cost = self._added(z, int(q))
                    if cost < best:
                        best, where = cost, sorted({int(q), *np.flatnonzero(z > 0).tolist()})
        return best, where

    def _tiers(self) -> list[ReachedTier]:
        """Tiers of the tariff that the pooled volume reaches where this job rents; what is free has none."""
        setup = self._scenario.setup
        mine = self._use(self._workers, self._server)
        total = self._base + mine
        found = []
        for r, k in zip(*np.nonzero(mine > 0.0), strict=True):
            tariff, units = setup.rent.get((setup.hosts[r], int(k))), float(total[r, k])
            if tariff is not None:
                tier = max(1, bisect_left(tariff.starts, units * (1.0 - 1e-12)))
                following = tariff.starts[tier] if tier < len(tariff.starts) else math.inf
                found.append(ReachedTier(self._names[r], setup.resources[k], tier, units, following))
        return found

    def _cost_lines(self, added: float) -> tuple[str, str]:
        """Where the job is, and what it adds to the pooled cost."""
        y, p = self._workers, self._server
        where = ", ".join(f"{int(y[r])} at {self._names[r]}" for r in np.flatnonzero(y > 0))
        parts, _ = job_parts(self._own, y[None], np.array([p]))
        data, deployment, traffic = (float(x) for x in parts[0])
        job, number = self._decided.jobs[self._i].id, self._decided.number
        return (
            f"{job}, slot {number}: workers {where or 'none (no data)'}; parameter server at {self._names[p]}.",
            f"It adds {added:.2f} USD to the pooled cost: data {data:.2f}, deployment {deployment:.2f}, "
            f"traffic {traffic:.2f}, rent {added - data - deployment - traffic:.2f}.",
        )


def _next_line(added: float, following: float, sites: tuple[str, ...]) -> str:
    if math.isinf(following):
        return "Its limits allow no plan without these sites."
    more = following - added
    return f"The next best plan, at {', '.join(sites)}, would have added {following:.2f} USD ({more:+.2f})."


def _tier_line(tier: ReachedTier) -> str:
    what = f"{tier.site}, {tier.resource}: {tier.units:g} pooled units"
    if not math.isinf(tier.next_tier_at):
        return f"{what} reach tier {tier.tier}; the next tier starts at {tier.next_tier_at:g}."
    return f"{what} reach tier {tier.tier}, the last one." if tier.tier > 1 else f"{what} at a flat price."
