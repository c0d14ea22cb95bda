"""Why a job was placed as it was: its sites, what the next best would have cost, which tiers were reached."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.bound import first_data_slot, is_present
from tradewind.systems.mlbroker.decided import NO_DATA, DecidedSlot, decided_slots
from tradewind.systems.mlbroker.kernels.costs import job_parts
from tradewind.systems.mlbroker.kernels.job import cost_with_server, solve
from tradewind.systems.mlbroker.kernels.pool import priced_job, terms
from tradewind.systems.mlbroker.kernels.prices import bill, marginal, piece
from tradewind.systems.mlbroker.kernels.slot import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer in numbers (USD of this slot) and in lines for people.

    added_usd  what the job adds to the pooled cost: own costs and the rise of the rent
    next_usd   the same for the best plan that avoids at least one of its sites (infinite: there is none)
    tiers      (site, resource, tier from 1, units, start of the next tier or infinite) where the job rents
    """

    added_usd: float
    next_usd: float
    next_sites: tuple[str, ...]
    tiers: tuple[tuple[str, str, int, float, float], ...]
    lines: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The same as plain data; null where there is no next tier or next best plan."""
        tiers = [
            {
                "site": site,
                "resource": name,
                "tier": tier,
                "units": units,
                "next_tier_at": following if math.isfinite(following) else None,
            }
            for site, name, tier, units, following in self.tiers
        ]
        return {
            "added_usd": self.added_usd,
            "next_usd": self.next_usd if math.isfinite(self.next_usd) else None,
            "next_sites": list(self.next_sites),
            "tiers": tiers,
            "lines": list(self.lines),
        }


def explain(scenario: Scenario, run: Run, job_id: str, slot_number: int) -> Explanation:
    """Explains one job's placement in one slot of a run."""
    if slot_number < 0:
        raise InputError("a placement belongs to a slot; name it with --slot")
    if job_id not in {job.id for job in scenario.jobs}:
        raise LookupFailed("job", job_id, [job.id for job in scenario.jobs])
    for decided in decided_slots(scenario, run):
        if decided.number == slot_number:
            for i, job in enumerate(decided.jobs):
                if job.id == job_id and decided.server[i] >= 0:
                    return _explained(scenario, decided, i)
    why = _absence(scenario, run, job_id, slot_number)
    raise InputError(f"job {job_id!r} has no plan in slot {slot_number}; {why}")


def _absence(scenario: Scenario, run: Run, job_id: str, number: int) -> str:
    """Why a job has no plan in a slot: it was turned away for a reason, waited for data, or was not there."""
    index = next(job.index for job in scenario.jobs if job.id == job_id)
    verdicts = run.tables["verdicts"]
    for row, job, reason in zip(verdicts["decision"], verdicts["job"], verdicts["reason"], strict=True):
        if job == index:
            at_us = cast(int, run.tables["decisions"]["at_us"][cast(int, row)])
            return f"it was turned away in slot {at_us // scenario.setup.slot_us}: {reason}"
    if not is_present(scenario, scenario.jobs[index], number * scenario.setup.slot_us):
        return "it was not there"
    begins = first_data_slot(scenario).get(index)
    if begins is None:
        return f"it waited: {NO_DATA}"
    if number < begins:
        return f"it waited: its data begins in slot {begins}"
    return f"the run, of {scenario.setup.slots} slots, decided nothing for it then"


def _explained(scenario: Scenario, decided: DecidedSlot, i: int) -> Explanation:
    slot, names = decided.slot, [scenario.setup.nodes[node].name for node in scenario.setup.hosts]
    others = np.array([j for j in range(len(decided.jobs)) if j != i], dtype=np.int64)
    _, base = job_parts(slot.only(others), decided.workers[others], decided.server[others])
    own = slot.only(np.array([i]))
    y, p = decided.workers[i], int(decided.server[i])
    added = _added(own, base, y, p)
    best, sites = _next_best(own, base, y, p)
    tiers = _tiers(scenario, slot, base, own, y, p)
    return Explanation(
        added_usd=added,
        next_usd=best,
        next_sites=tuple(names[r] for r in sites),
        tiers=tuple(tiers),
        lines=tuple(_lines(scenario, decided, i, (added, best), sites, tiers)),
    )


def _use(own: Slot, y: Ints, p: int) -> Floats:
    usage: Floats = y[:, None] * own.worker[0][None, :]
    usage[p] += own.server[0]
    return usage


def _added(own: Slot, base: Floats, y: Ints, p: int) -> float:
    """Own costs of a plan and the rise of the pooled rent on top of ``base`` (R, K)."""
    usd, intercept = own.tiers.usd, own.tiers.intercept
    rise = bill(base + _use(own, y, p), usd, intercept) - bill(base, usd, intercept)
    return float(cost_with_server(priced_job(terms(own, 1.0), 0, np.zeros(base.shape)), p, y) + rise)


def _next_best(own: Slot, base: Floats, y: Ints, p: int) -> tuple[float, list[int]]:
    """Cheapest plan found that leaves out at least one of the sites in use: (USD, its sites)."""
    price = np.empty(base.shape)
    best, where = float("inf"), [0][:0]
    for barred in sorted({p, *np.flatnonzero(y > 0).tolist()}):
        for seen in (base, base + _use(own, y, p)):
            marginal(seen, own.tiers.usd, own.tiers.intercept, price)
            job = priced_job(terms(own, 1.0), 0, price)
            most, ok = job.most.copy(), job.server_ok.copy()
            most[barred], ok[barred] = 0, False
            _, q, z = solve(job._replace(most=most, server_ok=ok), 3)
            if q >= 0:
                cost = _added(own, base, z, int(q))
                if cost < best:
                    best, where = cost, sorted({int(q), *np.flatnonzero(z > 0).tolist()})
    return best, where


def _tiers(
    scenario: Scenario, slot: Slot, base: Floats, own: Slot, y: Ints, p: int
) -> list[tuple[str, str, int, float, float]]:
    """Tiers that the pooled volume reached where this job rents something."""
    mine = _use(own, y, p)
    total = base + mine
    found = []
    for r, k in zip(*np.nonzero(mine > 0.0), strict=True):
        tier = piece(slot.tiers.usd[r, k], slot.tiers.intercept[r, k], total[r, k])
        starts = slot.tiers.start[r, k]
        following = float(starts[tier + 1]) if tier + 1 < len(starts) else float("inf")
        name = scenario.setup.nodes[scenario.setup.hosts[r]].name
        found.append((name, scenario.setup.resources[k], tier + 1, float(total[r, k]), following))
    return found


def _lines(
    scenario: Scenario,
    decided: DecidedSlot,
    i: int,
    usd: tuple[float, float],
    sites: list[int],
    tiers: list[tuple[str, str, int, float, float]],
) -> list[str]:
    names = [scenario.setup.nodes[node].name for node in scenario.setup.hosts]
    y, p = decided.workers[i], int(decided.server[i])
    where = ", ".join(f"{int(y[r])} at {names[r]}" for r in np.flatnonzero(y > 0)) or "none (no data)"
    parts, _ = job_parts(
        decided.slot.only(np.array([i])), decided.workers[i : i + 1], decided.server[i : i + 1]
    )
    moved, deployed, talked = (float(x) for x in parts[0])
    lines = [
        f"{decided.jobs[i].id}, slot {decided.number}: workers {where}; parameter server at {names[p]}.",
        f"It adds {usd[0]:.2f} USD to the pooled cost: data {moved:.2f}, deployment {deployed:.2f}, "
        f"traffic {talked:.2f}, rent {usd[0] - moved - deployed - talked:.2f}.",
    ]
    if np.isfinite(usd[1]):
        lines.append(
            f"The next best, at {', '.join(names[r] for r in sites)}, would have added {usd[1]:.2f} USD "
            f"({usd[1] - usd[0]:+.2f})."
        )
    else:
        lines.append("There is no plan without these sites: its limits allow no other.")
    for site, resource, tier, amount, following in tiers:
        rest = "the last tier" if np.isinf(following) else f"the next tier starts at {following:g}"
        lines.append(f"{site}, {resource}: {amount:g} units pooled reach tier {tier}; {rest}.")
    return lines
