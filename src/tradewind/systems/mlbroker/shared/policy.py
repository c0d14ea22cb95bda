"""The policy that all six mlBroker policies are: it decides slot by slot for all stream jobs present.

They differ only in their :class:`Chooser`. Limits, spend caps, tiered prices between sites and waiting for data are
handled here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import NOTHING, Decision, Verdict
from tradewind.model.job import Job, Stream
from tradewind.model.setup import Setup
from tradewind.model.spec import EVERY_SLOT, Factory, Param, Spec
from tradewind.model.view import View
from tradewind.systems.mlbroker.kernels.bills import list_cost
from tradewind.systems.mlbroker.kernels.egress import choose_by_tiers
from tradewind.systems.mlbroker.kernels.limits import conflicts
from tradewind.systems.mlbroker.kernels.sites import Weights, read_sites, scaled
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.arrays import PreviousSites, egress_factor, plan_of, read_slot
from tradewind.systems.mlbroker.shared.caps import Caps, cheapest_plans, members, pinned_slot, with_cheapest

WEIGHTS = {
    "weight_transfer": Param(default=1.0, doc="weight of the data transfer cost C1 in the decision", least=0),
    "weight_rent": Param(default=1.0, doc="weight of the resource cost C2", least=0),
    "weight_deploy": Param(default=1.0, doc="weight of the deployment cost C3", least=0),
    "weight_traffic": Param(default=1.0, doc="weight of the parameter traffic cost C4", least=0),
}
"""Parameters of :class:`Weights`."""


class Chooser(Protocol):
    """How a policy decides a slot."""

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """Workers (I, R) and server site (I,) of every job; NO_SITE for a job that does not fit."""

    def state(self) -> Any:
        """What must be kept between slots, as JSON."""

    def resume(self, state: Any) -> None:
        """Continue from a saved state."""


@dataclass(slots=True)
class _Pending:
    """Jobs of a slot that are still to be placed, as arrays with and without weights; and those refused so far."""

    jobs: list[Job]
    slot: Slot
    true: Slot
    verdicts: list[Verdict] = field(default_factory=list)

    def refuse(self, found: Sequence[Verdict]) -> Ints:
        """Remove these jobs; returns the indices of those that stay."""
        out = {verdict.job for verdict in found}
        keep = np.array([i for i, job in enumerate(self.jobs) if job.index not in out], dtype=np.int64)
        if found:
            self.verdicts += found
            self.jobs = [self.jobs[i] for i in keep.tolist()]
            self.slot, self.true = self.slot.only(keep), self.true.only(keep)
        return keep


class SlotPolicy:
    """Decides every slot for all stream jobs; refuses a job whose limits conflict and places the others."""

    def __init__(
        self, setup: Setup, chooser: Chooser, weights: Weights, *, egress_tiers: bool = False
    ) -> None:
        """`egress_tiers`: the decision counts all tiers of prices between sites, not the first alone."""
        self._sites = read_sites(setup)
        self._egress_tiers = egress_tiers and self._sites.egress is not None
        self._chooser = chooser
        self._weights = weights
        self._previous = PreviousSites()
        self._caps = Caps(setup)
        self._started: set[int] = set()  # jobs that have had data

    def decide(self, view: View) -> Decision:
        """Plans for this slot; nothing between slots."""
        for event in view.events:
            if event.kind in ("voided", "left", "cancelled", "ended", "refused"):
                self._previous.places.pop(event.job, None)
                if event.kind != "voided":
                    self._started.discard(event.job)
        if view.now_us != view.slot * view.setup.slot_us:
            return NOTHING
        jobs = self._started_jobs(view)
        if not jobs:
            return NOTHING
        slot = read_slot(view, self._sites, jobs, self._previous, self._weights)
        unweighted = self._weights == Weights()
        true = slot if unweighted else read_slot(view, self._sites, jobs, self._previous, Weights())
        pending = _Pending(jobs, slot, true)
        pending.refuse([Verdict(jobs[found.job].index, found.limits) for found in conflicts(slot)])
        return self._decision(view, pending, self._choose(view, pending))

    def _started_jobs(self, view: View) -> list[Job]:
        """Stream jobs that have had data; in a later slot without data they keep their server (8f).

        A job without data so far waits without a plan: it uses no capacity and costs nothing.
        """
        streams = [job for job in view.active.values() if isinstance(job.work, Stream)]
        self._started.update(job.index for job in streams if any(size for _, size in view.data(job.index)))
        return [job for job in streams if job.index in self._started]

    def _choose(self, view: View, pending: _Pending) -> tuple[Ints, Ints]:
        """Workers (I, R) and server (I,) of the pending jobs; may refuse some of them."""
        if self._caps.any:  # caps count first-tier prices, so the decision does, too
            return self._within_caps(pending)
        if self._egress_tiers and pending.jobs:
            return self._by_egress_tiers(view, pending)
        return self._chosen(pending.slot, pending.jobs)

    def _chosen(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """The chooser's answer; empty arrays where no job is left."""
        if jobs:
            return self._chooser.choose(slot, jobs)
        return np.zeros((0, slot.shape[1]), dtype=np.int64), np.zeros(0, dtype=np.int64)

    def _by_egress_tiers(self, view: View, pending: _Pending) -> tuple[Ints, Ints]:
        """Decide under tiered prices between sites; data then moves at the prices of the decision."""
        assert self._sites.egress is not None
        price = scaled(self._sites.egress, egress_factor(view, self._sites))
        weights = (self._weights.transfer, self._weights.traffic)
        weighted = pending.slot

        def choose(slot: Slot) -> tuple[Ints, Ints]:
            seen = replace(weighted, move_usd=slot.move_usd, traffic_usd=slot.traffic_usd)
            return self._chooser.choose(seen, pending.jobs)

        chosen, unit = choose_by_tiers(pending.true, price, weights, choose)
        pending.true = replace(pending.true, move_usd=unit, traffic_usd=unit)
        return chosen

    def _within_caps(self, pending: _Pending) -> tuple[Ints, Ints]:
        """Decide within every tenant's cap: a tenant over its cap first gets cheapest plans, then loses jobs."""
        plans = cheapest_plans(pending.true)
        plans = plans.only(pending.refuse(self._caps.unaffordable(pending.jobs, plans.usd)))
        pinned = np.zeros(len(pending.jobs), dtype=np.bool_)
        while True:
            chosen = self._chosen(pinned_slot(pending.slot, pinned, plans), pending.jobs)
            chosen = with_cheapest(pending.slot, pinned, plans, chosen)
            usd = list_cost(pending.true, *chosen)
            over = self._caps.over(pending.jobs, usd)
            if not over:
                self._caps.commit(pending.jobs, usd)
                return chosen
            more = np.array([job.tenant in over for job in pending.jobs]) & ~pinned
            if more.any():
                pinned |= more
            else:  # the cheapest plans that the capacity allows are still over the cap
                keep = pending.refuse([_newest(pending.jobs, usd, *next(iter(over.items())))])
                plans, pinned = plans.only(keep), pinned[keep]

    def _decision(self, view: View, pending: _Pending, chosen: tuple[Ints, Ints]) -> Decision:
        """Plans for the jobs with a site, verdicts for the refused ones."""
        workers, server = chosen
        plans, verdicts = [], pending.verdicts
        span_us = (view.slot * view.setup.slot_us, (view.slot + 1) * view.setup.slot_us)
        for i, job in enumerate(pending.jobs):
            if server[i] < 0:
                verdicts.append(Verdict(job.index, "the capacity of the sites allowed for it is used up"))
                continue
            plans.append(plan_of(span_us, self._sites, pending.true, i, job, (workers[i], int(server[i]))))
            here = {int(server[i]), *np.flatnonzero(workers[i] > 0).tolist()}
            self._previous.places[job.index] = (view.slot, tuple(sorted(here)))
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts))

    def save(self) -> bytes:
        """The state as JSON."""
        places = {str(job): where for job, where in self._previous.places.items()}
        state = {
            "places": places,
            "chooser": self._chooser.state(),
            "spent": self._caps.spent,
            "fed": sorted(self._started),
        }
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        """Continue from :meth:`save`."""
        data = json.loads(state)
        self._previous.places = {int(j): (last, tuple(where)) for j, (last, where) in data["places"].items()}
        self._chooser.resume(data["chooser"])
        self._caps.spent = dict(data["spent"])
        self._started = set(data["fed"])


def _newest(jobs: Sequence[Job], usd: Floats, tenant: str, reason: str) -> Verdict:
    """Refuse the tenant's newest job that costs anything."""
    return Verdict(jobs[max(i for i in members(jobs)[tenant] if usd[i] > 0.0)].index, reason)


def mlbroker_spec(
    name: str, summary: str, factory: Factory, params: Mapping[str, Param] | None = None
) -> Spec:
    """Spec of a policy for stream jobs with parameter servers, at prices that fall with volume."""
    return Spec(
        name=name,
        summary=summary,
        factory=factory,
        works=frozenset(("stream",)),
        architectures=frozenset(("ps",)),
        objectives=frozenset(("cost_usd",)),
        triggers=EVERY_SLOT,
        needs=frozenset(("concave tariff",)),
        params=dict(params or {}),
        keeps_caps=True,
        system="mlbroker",
    )
