"""A slot of the view as arrays, and a job's decision as a plan.

Data is counted in bytes, so that flows are whole; resources in units; prices in USD per unit and slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import Flow, Plan, Step
from tradewind.model.job import Job
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.model.view import View
from tradewind.solvers.transport import transport
from tradewind.systems.mlbroker.kernels.sites import Sites, SlotPrices, Weights, make_slot, scaled
from tradewind.systems.mlbroker.kernels.slot import Slot, Tiers

STILL_UNLIMITED = UNLIMITED // 2
"""A free amount above this is what bookings leave of an unlimited resource."""


@dataclass(slots=True)
class PreviousSites:
    """Sites that jobs used in their last planned slot: job -> (slot, sites)."""

    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def sites(self, job: int, slot: int) -> tuple[int, ...]:
        """Sites of the job in the slot before `slot`; none if it was not planned then."""
        last, where = self.places.get(job, (-2, ()))
        return where if last == slot - 1 else ()


def read_slot(
    view: View, sites: Sites, jobs: Sequence[Job], previous: PreviousSites, weights: Weights
) -> Slot:
    """The jobs of this slot as arrays, at current prices and free capacity; sites that are down are not allowed."""
    egress = sites.egress_usd * egress_factor(view, sites)
    now = SlotPrices(tiers=_current_tiers(view, sites), egress_usd=egress, room=_room(view, sites))
    data = [view.data(job.index) for job in jobs]
    before = [previous.sites(job.index, view.slot) for job in jobs]
    slot = make_slot(sites, now, jobs, data, before, weights)
    up = np.array([not view.is_down(node) for node in sites.hosts])
    return replace(slot, worker_ok=slot.worker_ok & up, server_ok=slot.server_ok & up)


def _current_tiers(view: View, sites: Sites) -> Tiers:
    """Rent tiers at the current price factors."""
    factor = np.array(
        [[view.price_factor(node, k) for k in range(len(view.setup.resources))] for node in sites.hosts]
    )
    return scaled(sites.tiers, factor)


def egress_factor(view: View, sites: Sites) -> Floats:
    """(R, R): current factors on prices between sites."""
    top = [view.setup.site_of[node] for node in sites.hosts]
    return np.array([[view.egress_factor(a, b) if a != b else 1.0 for b in top] for a in top])


def _room(view: View, sites: Sites) -> Floats:
    """Free units at each site (R, K); infinite where unlimited."""
    room = np.full((len(sites.hosts), len(view.setup.resources)), np.inf)
    for r, node in enumerate(sites.hosts):
        for k in range(room.shape[1]):
            free = view.free(node, k)
            if free < STILL_UNLIMITED:
                room[r, k] = free / MILLI
    return room


def plan_of(
    span_us: tuple[int, int], sites: Sites, slot: Slot, i: int, job: Job, chosen: tuple[Ints, int]
) -> Plan:
    """Job i's workers (R,) and server site as a plan over a slot, its data moved at least cost in whole bytes."""
    workers, server = chosen
    here = workers > 0
    here[server] = True
    used = np.flatnonzero(here)
    sources = np.flatnonzero(slot.data[i])
    flow, _ = transport(
        slot.move_usd[np.ix_(sources, used)], slot.data[i, sources], workers[used] * slot.chunk[i]
    )
    step = Step(
        from_us=span_us[0],
        until_us=span_us[1],
        nodes=tuple(sites.hosts[r] for r in used.tolist()),
        workers=tuple(workers[used].tolist()),
        servers=tuple(job.servers if r == server else 0 for r in used.tolist()),
        flows=tuple(
            Flow(sites.hosts[sources[s]], sites.hosts[used[q]], round(float(flow[s, q])))
            for s, q in zip(*np.nonzero(flow), strict=True)
        ),
    )
    return Plan(job.index, (step,))
