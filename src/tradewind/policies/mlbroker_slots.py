"""What the brokerage policies share: the view as arrays of one slot, and arrays back as plans.

Every policy here decides slot by slot for all stream jobs present. Data is counted in bytes, so that flows are whole;
resources in units; prices in USD per unit and slot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tradewind.maths.broker_limits import clashes
from tradewind.maths.broker_slot import Floats, Ints, Slot, Tiers, tiers
from tradewind.maths.transport import transport
from tradewind.model.decision import NOTHING, Decision, Flow, Plan, Step, Verdict
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job, Stream
from tradewind.model.setup import Setup
from tradewind.model.spec import EVERY_SLOT, Need, Param, Trigger
from tradewind.model.units import GB, MILLI, UNLIMITED, US_PER_HOUR
from tradewind.model.view import View

WORKS = frozenset(("stream",))
ARCHITECTURES = frozenset(("ps",))
NEEDS: frozenset[Need] = frozenset(("concave tariff",))
TRIGGERS: frozenset[Trigger] = EVERY_SLOT

WEIGHTS = {
    "weight_transfer": Param(default=1.0, doc="weight of the data transfer cost C1 in the decision"),
    "weight_rent": Param(default=1.0, doc="weight of the resource cost C2"),
    "weight_deploy": Param(default=1.0, doc="weight of the deployment cost C3"),
    "weight_traffic": Param(default=1.0, doc="weight of the parameter traffic cost C4"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the four costs of Eq. (8) in the decision; the books are never weighted."""

    transfer: float = 1.0
    rent: float = 1.0
    deploy: float = 1.0
    traffic: float = 1.0

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Weights:
        """From a policy's parameters."""
        return cls(**{name.removeprefix("weight_"): float(params[name]) for name in WEIGHTS})


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites of a setup: host nodes in order, their tiers before price factors, egress prices (R, R) per byte."""

    hosts: tuple[int, ...]
    tiers: Tiers
    egress_usd: Floats


def read_sites(setup: Setup) -> Sites:
    """Tariffs and egress prices as arrays; missing ones cost nothing. Tiers are padded with copies of the last."""
    hosts = setup.hosts
    for node in hosts:
        top = setup.site_of[node]
        if top != node and any((top, k) in setup.rent for k in range(len(setup.resources))):
            raise Unsupported(
                f"{setup.nodes[top].name!r} sells by the site but holds several nodes; "
                "the brokerage policies need one node per site, or rent at the node itself"
            )
    count = max((len(t.usd) for t in setup.rent.values()), default=1)
    hours = setup.slot_us / US_PER_HOUR
    shape = (len(hosts), len(setup.resources), count)
    start = np.zeros(shape)
    usd = np.zeros(shape)
    for r, node in enumerate(hosts):
        for k in range(shape[1]):
            tariff = setup.rent.get((node, k))
            for t in range(count):
                known = tariff is not None and t < len(tariff.usd)
                start[r, k, t] = (
                    tariff.starts[t] if tariff and known else (start[r, k, t - 1] + 1.0 if t else 0.0)
                )
                usd[r, k, t] = tariff.usd[t] * hours if tariff and known else (usd[r, k, t - 1] if t else 0.0)
    egress = np.zeros((len(hosts), len(hosts)))
    for r, a in enumerate(hosts):
        for q, b in enumerate(hosts):
            tariff = setup.egress.get((setup.site_of[a], setup.site_of[b]))
            # A tiered egress price counts at its first tier in the decision; the books bill it in full.
            egress[r, q] = tariff.usd[0] / GB if tariff is not None and r != q else 0.0
    return Sites(hosts, tiers(start, usd), egress)


def units(demand: Sequence[tuple[int, int]], kinds: int, times: int = 1) -> Floats:
    """A demand in units of each resource (K,)."""
    out = np.zeros(kinds)
    for resource, milli in demand:
        out[resource] = milli * times / MILLI
    return out


@dataclass(slots=True)
class Present:
    """Where jobs were in the slot before: job -> (slot, sites)."""

    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def sites(self, job: int, slot: int) -> tuple[int, ...]:
        """Sites of the job in the slot before ``slot``; none if it was not planned then."""
        last, where = self.places.get(job, (-2, ()))
        return where if last == slot - 1 else ()


def read_slot(view: View, sites: Sites, jobs: Sequence[Job], present: Present, weights: Weights) -> Slot:
    """The jobs of this slot as arrays, with the prices and the capacity of now."""
    setup = view.setup
    count, kinds = len(sites.hosts), len(setup.resources)
    place = {node: r for r, node in enumerate(sites.hosts)}
    data = np.zeros((len(jobs), count))
    deployed = np.zeros((len(jobs), count), dtype=np.bool_)
    worker_ok = np.ones((len(jobs), count), dtype=np.bool_)
    server_ok = np.ones((len(jobs), count), dtype=np.bool_)
    chunk = np.ones(len(jobs))
    for i, job in enumerate(jobs):
        assert isinstance(job.work, Stream)
        chunk[i] = job.work.bytes_per_worker_slot
        for node, size in view.data(job.index):
            data[i, place[node]] += size
        deployed[i, list(present.sites(job.index, view.slot))] = True
        if job.nodes is not None:
            server_ok[i] = [node in job.nodes for node in sites.hosts]
            worker_ok[i] = server_ok[i]
        if job.data_nodes is not None:
            worker_ok[i] &= [node in job.data_nodes for node in sites.hosts]
    return Slot(
        worker=np.array([units(job.worker, kinds) for job in jobs]),
        server=np.array([units(job.server, kinds, job.servers) for job in jobs]),
        chunk=chunk,
        traffic=np.array([float(job.traffic_bytes_per_worker_slot) for job in jobs]),
        deploy_usd=weights.deploy * np.array([job.deploy_usd for job in jobs]),
        data=data,
        move_usd=weights.transfer * _egress_now(view, sites),
        talk_usd=weights.traffic * _egress_now(view, sites),
        deployed=deployed,
        tiers=_tiers_now(view, sites, weights.rent),
        worker_ok=worker_ok,
        server_ok=server_ok,
        least_workers=np.array([job.workers_min for job in jobs], dtype=np.int64),
        most_workers=np.array([job.workers_max for job in jobs], dtype=np.int64),
        capacity=_room(view, sites),
    )


def _tiers_now(view: View, sites: Sites, weight: float) -> Tiers:
    """Tiers at the price factors of now."""
    factor = np.array(
        [[view.price_factor(node, k) for k in range(len(view.setup.resources))] for node in sites.hosts]
    )
    scale = weight * factor[..., None]
    return Tiers(
        start=sites.tiers.start,
        usd=np.ascontiguousarray(sites.tiers.usd * scale),
        intercept=np.ascontiguousarray(sites.tiers.intercept * scale),
    )


def _egress_now(view: View, sites: Sites) -> Floats:
    """USD per byte between sites (R, R), at the factors of now."""
    top = [view.setup.site_of[node] for node in sites.hosts]
    factor = np.array([[view.egress_factor(a, b) if a != b else 1.0 for b in top] for a in top])
    now: Floats = sites.egress_usd * factor
    return now


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
    flow, _ = transport(slot.move_usd, slot.data[i], workers * slot.chunk[i])
    used = [r for r in range(len(workers)) if workers[r] or r == server]
    step = Step(
        from_us=start,
        until_us=start + view.setup.slot_us,
        nodes=tuple(sites.hosts[r] for r in used),
        workers=tuple(int(workers[r]) for r in used),
        servers=tuple(job.servers if r == server else 0 for r in used),
        flows=tuple(
            Flow(sites.hosts[r], sites.hosts[q], round(float(flow[r, q])))
            for r, q in zip(*np.nonzero(flow), strict=True)
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


class Broker:
    """Decides every slot for all stream jobs; refuses a job whose limits clash and goes on with the others."""

    def __init__(self, setup: Setup, chooser: Chooser, weights: Weights) -> None:
        self._sites = read_sites(setup)
        self._chooser = chooser
        self._weights = weights
        self._present = Present()

    def decide(self, view: View) -> Decision:
        for event in view.events:
            if event.kind in ("voided", "left", "ended", "refused"):
                self._present.places.pop(event.job, None)
        if view.now_us != view.slot * view.setup.slot_us:
            return NOTHING
        jobs = [job for job in view.active.values() if isinstance(job.work, Stream)]
        if not jobs:
            return NOTHING
        slot = read_slot(view, self._sites, jobs, self._present, self._weights)
        found = clashes(slot)
        verdicts = [Verdict(jobs[clash.job].index, clash.limits) for clash in found]
        if found:
            out = {clash.job for clash in found}
            keep = [i for i in range(len(jobs)) if i not in out]
            jobs, slot = [jobs[i] for i in keep], slot.only(np.array(keep, dtype=np.int64))
        if not jobs:
            return Decision(verdicts=tuple(verdicts))
        workers, server = self._chooser.choose(slot, jobs)
        plans = []
        for i, job in enumerate(jobs):
            if server[i] < 0:
                verdicts.append(Verdict(job.index, "the capacity of the sites where it may go is used up"))
                continue
            plans.append(plan_of(view, self._sites, slot, i, job, workers[i], int(server[i])))
            here = {int(server[i]), *np.flatnonzero(workers[i] > 0).tolist()}
            self._present.places[job.index] = (view.slot, tuple(sorted(here)))
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts))

    def save(self) -> bytes:
        places = {str(job): where for job, where in self._present.places.items()}
        return json.dumps({"places": places, "chooser": self._chooser.state()}).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self._present.places = {int(j): (last, tuple(where)) for j, (last, where) in data["places"].items()}
        self._chooser.resume(data["chooser"])
