"""What the brokerage policies share: the view as arrays of one slot, and arrays back as plans.

Every policy here decides slot by slot for all stream jobs present. Data is counted in bytes, so that flows are whole;
resources in units; prices in USD per unit and slot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import NOTHING, Decision, Flow, Plan, Step, Verdict
from tradewind.model.job import Job, Stream
from tradewind.model.setup import Setup
from tradewind.model.spec import EVERY_SLOT, Factory, Param, Spec
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.model.view import View
from tradewind.solvers.transport import transport
from tradewind.systems.mlbroker.kernels.bills import list_cost
from tradewind.systems.mlbroker.kernels.egress import choose_by_tiers
from tradewind.systems.mlbroker.kernels.limits import conflicts
from tradewind.systems.mlbroker.kernels.sites import Sites, SlotPrices, Weights, make_slot, read_sites, scaled
from tradewind.systems.mlbroker.kernels.slot import Slot, Tiers
from tradewind.systems.mlbroker.shared.caps import Caps, cheapest_plans, members, pinned_slot, with_cheapest

WEIGHTS = {
    "weight_transfer": Param(default=1.0, doc="weight of the data transfer cost C1 in the decision"),
    "weight_rent": Param(default=1.0, doc="weight of the resource cost C2"),
    "weight_deploy": Param(default=1.0, doc="weight of the deployment cost C3"),
    "weight_traffic": Param(default=1.0, doc="weight of the parameter traffic cost C4"),
}


@dataclass(slots=True)
class PreviousSites:
    """Where jobs were in the slot before: job -> (slot, sites)."""

    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def sites(self, job: int, slot: int) -> tuple[int, ...]:
        """Sites of the job in the slot before ``slot``; none if it was not planned then."""
        last, where = self.places.get(job, (-2, ()))
        return where if last == slot - 1 else ()


def read_slot(
    view: View, sites: Sites, jobs: Sequence[Job], present: PreviousSites, weights: Weights
) -> Slot:
    """The jobs of this slot as arrays, with the prices and the capacity of now."""
    egress = sites.egress_usd * _egress_factor(view, sites)
    now = SlotPrices(tiers=_tiers_now(view, sites), egress_usd=egress, room=_room(view, sites))
    data = [view.data(job.index) for job in jobs]
    before = [present.sites(job.index, view.slot) for job in jobs]
    return make_slot(sites, now, jobs, data, before, weights)


def _tiers_now(view: View, sites: Sites) -> Tiers:
    """Tiers at the price factors of now."""
    factor = np.array(
        [[view.price_factor(node, k) for k in range(len(view.setup.resources))] for node in sites.hosts]
    )
    return scaled(sites.tiers, factor)


def _egress_factor(view: View, sites: Sites) -> Floats:
    """(R, R): what multiplies prices between sites now."""
    top = [view.setup.site_of[node] for node in sites.hosts]
    return np.array([[view.egress_factor(a, b) if a != b else 1.0 for b in top] for a in top])


def _room(view: View, sites: Sites) -> Floats:
    """Units free at each site (R, K); infinite where unlimited."""
    room = np.full((len(sites.hosts), len(view.setup.resources)), np.inf)
    for r, node in enumerate(sites.hosts):
        for k in range(room.shape[1]):
            free = view.free(node, k)
            # What is booked of an unlimited resource is subtracted from a number that stands for no limit.
            if free < UNLIMITED // 2:
                room[r, k] = free / MILLI
    return room


def plan_of(view: View, sites: Sites, slot: Slot, i: int, job: Job, workers: Ints, server: int) -> Plan:
    """One job's decision as a plan over this slot, its data moved at least cost in whole bytes."""
    start = view.slot * view.setup.slot_us
    here = workers > 0
    here[server] = True
    used = np.flatnonzero(here)
    sources = np.flatnonzero(slot.data[i])
    flow, _ = transport(
        slot.move_usd[np.ix_(sources, used)], slot.data[i, sources], workers[used] * slot.chunk[i]
    )
    step = Step(
        from_us=start,
        until_us=start + view.setup.slot_us,
        nodes=tuple(sites.hosts[r] for r in used.tolist()),
        workers=tuple(workers[used].tolist()),
        servers=tuple(job.servers if r == server else 0 for r in used.tolist()),
        flows=tuple(
            Flow(sites.hosts[sources[s]], sites.hosts[used[q]], round(float(flow[s, q])))
            for s, q in zip(*np.nonzero(flow), strict=True)
        ),
    )
    return Plan(job.index, (step,))


class Chooser(Protocol):
    """What differs between the brokerage policies: how a slot is decided."""

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """Workers (I, R) and server site (I,) of every job; server -1 for a job that found no room."""

    def state(self) -> Any:
        """What must be kept between slots, as JSON."""

    def resume(self, state: Any) -> None: ...


@dataclass(slots=True)
class _Pending:
    """The jobs of a slot that are still in, as the decision weighs them and at true prices; who was turned away."""

    jobs: list[Job]
    slot: Slot
    true: Slot
    verdicts: list[Verdict] = field(default_factory=list)

    def refuse(self, found: Sequence[Verdict]) -> Ints:
        """Takes jobs out; the places of those that stay."""
        out = {verdict.job for verdict in found}
        keep = np.array([i for i, job in enumerate(self.jobs) if job.index not in out], dtype=np.int64)
        if found:
            self.verdicts += found
            self.jobs = [self.jobs[i] for i in keep.tolist()]
            self.slot, self.true = self.slot.only(keep), self.true.only(keep)
        return keep


class SlotPolicy:
    """Decides every slot for all stream jobs; refuses a job whose limits clash and goes on with the others."""

    def __init__(
        self, setup: Setup, chooser: Chooser, weights: Weights, *, egress_tiers: bool = False
    ) -> None:
        """``egress_tiers``: the decision counts tiered prices of data between sites, not their first tier alone."""
        self._sites = read_sites(setup)
        self._egress_tiers = egress_tiers and self._sites.egress is not None
        self._chooser = chooser
        self._weights = weights
        self._previous = PreviousSites()
        self._caps = Caps(setup)
        self._fed: set[int] = set()  # jobs whose data has begun

    def decide(self, view: View) -> Decision:
        for event in view.events:
            if event.kind in ("voided", "left", "ended", "refused"):
                self._previous.places.pop(event.job, None)
                if event.kind != "voided":
                    self._fed.discard(event.job)
        if view.now_us != view.slot * view.setup.slot_us:
            return NOTHING
        jobs = self._begun(view)
        if not jobs:
            return NOTHING
        slot = read_slot(view, self._sites, jobs, self._previous, self._weights)
        plain = self._weights == Weights()
        true = slot if plain else read_slot(view, self._sites, jobs, self._previous, Weights())
        pending = _Pending(jobs, slot, true)
        pending.refuse(
            [Verdict(pending.jobs[clash.job].index, clash.limits) for clash in conflicts(pending.slot)]
        )
        if self._caps.any:  # caps count first-tier prices, and so does the decision then
            return self._answer(view, pending, self._within_caps(pending))
        if self._egress_tiers and pending.jobs:
            return self._answer(view, pending, self._by_tiers(view, pending))
        return self._answer(view, pending, self._chosen(pending.slot, pending.jobs))

    def _by_tiers(self, view: View, pending: _Pending) -> tuple[Ints, Ints]:
        """The decision under tiered prices between sites; data then moves at the prices that it was made at."""
        assert self._sites.egress is not None
        price = scaled(self._sites.egress, _egress_factor(view, self._sites))
        weights = (self._weights.transfer, self._weights.traffic)
        weighed = pending.slot

        def choose(slot: Slot) -> tuple[Ints, Ints]:
            seen = replace(weighed, move_usd=slot.move_usd, traffic_usd=slot.traffic_usd)
            return self._chooser.choose(seen, pending.jobs)

        chosen, unit = choose_by_tiers(pending.true, price, weights, choose)
        pending.true = replace(pending.true, move_usd=unit, traffic_usd=unit)
        return chosen

    def _begun(self, view: View) -> list[Job]:
        """Jobs whose data has begun: a dry slot later on keeps the server (8f).

        Before that there is nothing to train: a job waits without a plan, holds no room and costs nothing.
        """
        streams = [job for job in view.active.values() if isinstance(job.work, Stream)]
        self._fed.update(job.index for job in streams if any(size for _, size in view.data(job.index)))
        return [job for job in streams if job.index in self._fed]

    def _chosen(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """The chooser's answer; nothing where nobody is left."""
        if jobs:
            return self._chooser.choose(slot, jobs)
        return np.zeros((0, slot.shape[1]), dtype=np.int64), np.zeros(0, dtype=np.int64)

    def _within_caps(self, pending: _Pending) -> tuple[Ints, Ints]:
        """A decision that keeps every tenant's cap: first cheapest plans for who is over, then fewer jobs."""
        plans = cheapest_plans(pending.true)
        plans = plans.only(pending.refuse(self._caps.dropped(pending.jobs, plans.usd)))
        pinned = np.zeros(len(pending.jobs), dtype=np.bool_)
        while True:
            chosen = self._chosen(pinned_slot(pending.slot, pinned, plans), pending.jobs)
            chosen = with_cheapest(pending.slot, pinned, plans, chosen)
            usd = list_cost(pending.true, *chosen)
            over = self._caps.over(pending.jobs, usd)
            if not over:
                self._caps.book(pending.jobs, usd)
                return chosen
            more = np.array([job.tenant in over for job in pending.jobs]) & ~pinned
            if more.any():
                pinned |= more
            else:  # even the cheapest that the capacity leaves is too much
                keep = pending.refuse([_newest(pending.jobs, usd, *next(iter(over.items())))])
                plans, pinned = plans.only(keep), pinned[keep]

    def _answer(self, view: View, pending: _Pending, chosen: tuple[Ints, Ints]) -> Decision:
        """Plans for those who have a place, a refusal for those who found none."""
        workers, server = chosen
        plans, verdicts = [], pending.verdicts
        for i, job in enumerate(pending.jobs):
            if server[i] < 0:
                verdicts.append(Verdict(job.index, "the capacity of the sites where it may go is used up"))
                continue
            plans.append(plan_of(view, self._sites, pending.true, i, job, workers[i], int(server[i])))
            here = {int(server[i]), *np.flatnonzero(workers[i] > 0).tolist()}
            self._previous.places[job.index] = (view.slot, tuple(sorted(here)))
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts))

    def save(self) -> bytes:
        places = {str(job): where for job, where in self._previous.places.items()}
        state = {
            "places": places,
            "chooser": self._chooser.state(),
            "spent": self._caps.spent,
            "fed": sorted(self._fed),
        }
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self._previous.places = {int(j): (last, tuple(where)) for j, (last, where) in data["places"].items()}
        self._chooser.resume(data["chooser"])
        self._caps.spent = dict(data["spent"])
        self._fed = set(data["fed"])


def _newest(jobs: Sequence[Job], usd: Floats, tenant: str, reason: str) -> Verdict:
    """The tenant's newest job that costs anything is turned away."""
    return Verdict(jobs[max(i for i in members(jobs)[tenant] if usd[i] > 0.0)].index, reason)


def mlbroker_spec(
    name: str, summary: str, factory: Factory, params: Mapping[str, Param] | None = None
) -> Spec:
    """A catalogue line of a brokerage policy: streams with parameter servers, at prices that fall with volume."""
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
