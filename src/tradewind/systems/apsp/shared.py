"""What all parameter-server placements share: the network a job finds, its plan, and when a server moves.

A job has workers pinned at sites. Its server stands at one site, every other worker site sends along one path, and each path
holds bandwidth. When bandwidth changes the job is planned again on what is free plus its own; the server moves only
where the rounds gained within the look-ahead outweigh those lost to `restart_us`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from tradewind.model.decision import Certificate, Decision, Plan, Route, Step
from tradewind.model.job import Job, Rounds
from tradewind.model.setup import Objective, Setup, transport_fraction
from tradewind.model.spec import EVERY_EVENT, Need, Param, Spec
from tradewind.model.units import OPEN, US_PER_S
from tradewind.model.view import View
from tradewind.systems.apsp.kernels.network import Net, Wire, bounds_as_data, make_net
from tradewind.systems.apsp.kernels.problem import Routing
from tradewind.systems.apsp.kernels.proof import Bound

WORKS = frozenset({"rounds/flows"})
ARCHITECTURES = frozenset({"ps"})
OBJECTIVES: frozenset[Objective] = frozenset(("epoch_s", "jct_mean_s", "makespan_s"))
NEEDS: frozenset[Need] = frozenset(("links",))
TRIGGERS = EVERY_EVENT
MBPS = 1_000_000
LOOK_AHEAD = {
    "lookahead_s": Param(
        default=3600.0, doc="a server moves if that gains rounds within so many seconds, restart included"
    )
}


class Chosen(NamedTuple):
    """A sink and a routing; bounds where the method gives them."""

    sink: int
    routing: Routing
    bounds: dict[int, Bound] | None = None


class Method(Protocol):
    """How a sink and paths are chosen. State that must survive a restart goes through state() and resume()."""

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        """The best among the sinks allowed."""

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        """The sink that this method gives a job once and for all; None: it may move."""

    def state(self) -> Any: ...

    def resume(self, state: Any) -> None: ...


class Ledgers:
    """Bandwidth and resources already given away within one decision."""

    def __init__(self) -> None:
        self.bps: dict[tuple[int, int], int] = {}
        self.milli: dict[tuple[int, int], int] = {}

    def take(self, view: View, job: Job, step: Step, sign: int) -> None:
        """Book (+1) or give back (-1) what a step holds."""
        for route in step.routes:
            at = route.src
            for k in route.path:
                link = view.setup.links[k]
                direction = 0 if link.shared or link.a == at else 1
                at = link.b if link.a == at else link.a
                self.bps[k, direction] = self.bps.get((k, direction), 0) + sign * route.bps
        servers = step.servers or (0,) * len(step.nodes)
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            for demand, count in ((job.worker, workers), (job.server, ps)):
                for resource, milli in demand:
                    for place in view.setup.lineage[node]:
                        key = (place, resource)
                        self.milli[key] = self.milli.get(key, 0) + sign * milli * count

    def free_bps(self, view: View, link: int, direction: int) -> int:
        return max(0, view.link_free(link, direction) - self.bps.get((link, direction), 0))

    def fits(self, view: View, node: int, need: Mapping[int, int]) -> bool:
        return all(
            view.free(place, r) - self.milli.get((place, r), 0) >= milli
            for r, milli in need.items()
            for place in view.setup.lineage[node]
        )


@dataclass(slots=True)
class _Option:
    """A way to go on: step, time of a round in microseconds, certificate if there is one."""

    step: Step
    round_us: float
    certificate: Certificate | None


class WanPolicy:
    """Plans every job with pinned workers by a Method; keeps where each job's server stands."""

    def __init__(self, method: Method, lookahead_s: float) -> None:
        self._method = method
        self._lookahead_us = lookahead_s * US_PER_S
        self._at: dict[int, int] = {}

    def decide(self, view: View) -> Decision:
        """Plans for jobs that wait; better ones for jobs that run, where something changed."""
        again = any(event.kind in ("changed", "finished", "released", "refused") for event in view.events)
        for event in view.events:
            if event.kind in ("finished", "refused", "ended"):
                self._at.pop(event.job, None)
        given = Ledgers()
        plans, certificate = [], None
        for index, job in view.active.items():
            current = self._running(view, index)
            if current is not None and not again:
                continue
            option = self._plan(view, job, current, given)
            if option is None:
                continue
            plans.append(Plan(index, (option.step,)))
            certificate = option.certificate
        return Decision(plans=tuple(plans), certificate=certificate if len(plans) == 1 else None)

    @staticmethod
    def _running(view: View, index: int) -> Step | None:
        plan = view.plan(index)
        return None if plan is None else next((s for s in plan.steps if s.until_us > view.now_us), None)

    def _plan(self, view: View, job: Job, current: Step | None, given: Ledgers) -> _Option | None:
        if current is not None:
            given.take(view, job, current, -1)
        option = self._best(view, job, current, given)
        kept = option.step if option is not None else current
        if kept is not None:
            given.take(view, job, kept, +1)
        if option is not None:
            self._at[job.index] = _server_of(option.step)
        return option

    def _best(self, view: View, job: Job, current: Step | None, given: Ledgers) -> _Option | None:
        """The option to change to, or None to leave the job as it is (or waiting)."""
        work = job.work
        assert isinstance(work, Rounds)
        sinks = _sinks(view, job, work, given)
        scene = _scene(view, job, work, given)
        if not sinks or scene is None:
            return None
        net = scene.net
        home = self._at.get(job.index)
        only = self._method.fixed(net, sinks, job) if home is None else None
        if only is not None:
            home, sinks = only, [only]
        elif home is not None and self._method.fixed(net, [home], job) is not None:
            sinks = [home] if home in sinks else []
        try:
            best = self._option(view, job, scene, sinks, given) if sinks else None
            stay = best
            if home in sinks and best is not None and _server_of(best.step) != home:
                stay = self._option(view, job, scene, [home], given)
        except ValueError:
            return None  # some worker site is cut off for now
        if best is not None and stay is not None and stay is not best and not self._pays(job, stay, best):
            best = stay
        if best is None or current is None:
            return best
        before = _round_us(view, job, current)
        same = _server_of(best.step) == _server_of(current)
        gains = (
            best.round_us < before * (1 - 1e-9)
            if same
            else self._pays(job, _Option(current, before, None), best)
        )
        return best if gains else None

    def _pays(self, job: Job, stay: _Option, move: _Option) -> bool:
        """Does moving do more rounds within the look-ahead than staying, restart included?"""
        left = self._lookahead_us - job.restart_us
        return left > 0 and left / move.round_us > self._lookahead_us / stay.round_us * (1 + 1e-9)

    def _option(self, view: View, job: Job, scene: _Scene, sinks: Sequence[int], given: Ledgers) -> _Option:
        chosen = self._method.choose(scene.net, sinks)
        step = _step(view, job, scene.net, chosen)
        certificate = None
        if chosen.bounds is not None and scene.exact:
            certificate = _certificate(view, job, scene.net, chosen.bounds, given)
        return _Option(step, _round_us(view, job, step), certificate)

    def save(self) -> bytes:
        return json.dumps({"at": sorted(self._at.items()), "method": self._method.state()}).encode()

    def restore(self, state: bytes) -> None:
        kept = json.loads(state)
        self._at = {int(job): int(node) for job, node in kept["at"]}
        self._method.resume(kept["method"])


Make = Callable[[Mapping[str, Any], np.random.Generator], Method]


def wan_spec(name: str, summary: str, make: Make, params: Mapping[str, Param]) -> Spec:
    """A catalogue line of a placement; without `lookahead_s` among its parameters its server never moves."""

    def factory(setup: Setup, values: Mapping[str, Any], rng: np.random.Generator) -> WanPolicy:
        del setup
        return WanPolicy(make(values, rng), float(values.get("lookahead_s", 0.0)))

    return Spec(
        name=name,
        summary=summary,
        factory=factory,
        works=WORKS,
        architectures=ARCHITECTURES,
        objectives=OBJECTIVES,
        triggers=TRIGGERS,
        needs=NEEDS,
        params=dict(params),
        system="apsp",
    )


class Wanderer:
    """A method without a sink of its own and without state."""

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        del net, sinks, job
        return None

    def state(self) -> Any:
        return None

    def resume(self, state: Any) -> None:
        del state


class Drawing:
    """State of a method that draws: its random stream."""

    _rng: np.random.Generator

    def state(self) -> Any:
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        self._rng.bit_generator.state = state


def _server_of(step: Step) -> int:
    return next(n for n, s in zip(step.nodes, step.servers, strict=True) if s)


def _sinks(view: View, job: Job, work: Rounds, given: Ledgers) -> list[int]:
    """Sites where the server fits beside the workers; empty if the workers themselves do not fit."""
    pinned = dict(work.pinned)
    found = []
    for node in view.setup.hosts:
        if job.nodes is not None and node not in job.nodes:
            continue
        need: dict[int, int] = {}
        for demand, count in ((job.worker, pinned.get(node, 0)), (job.server, 1)):
            for r, milli in demand:
                need[r] = need.get(r, 0) + milli * count
        if given.fits(view, node, need):
            found.append(node)
    for node, workers in work.pinned:
        if not given.fits(view, node, {r: milli * workers for r, milli in job.worker}):
            return []
    return found


def _wires(view: View, given: Ledgers) -> list[Wire]:
    return [
        Wire(
            link.a,
            link.b,
            given.free_bps(view, k, 0),
            given.free_bps(view, k, 0 if link.shared else 1),
            link.shared,
        )
        for k, link in enumerate(view.setup.links)
    ]


class _Scene(NamedTuple):
    """The network a job finds; exact: sizes and bandwidths are the true ones, so that bounds on it are certificates."""

    net: Net
    exact: bool


def _scene(view: View, job: Job, work: Rounds, given: Ledgers) -> _Scene | None:
    """The network; None where no link has bandwidth left.

    Odd numbers of bytes times odd numbers of bit/s may exceed what is computed exactly: then whole Mbit/s are used.
    """
    sizes = {node: job.bytes_of(node) for node, _ in work.pinned}
    sources: Sequence[int] | Mapping[int, int] = sizes if all(sizes.values()) else list(sizes)
    wires, nodes = _wires(view, given), len(view.setup.nodes)
    try:
        return _Scene(make_net(nodes, wires, sources, view.setup.transport), all(sizes.values()))
    except ValueError:
        coarse = [w._replace(ab_bps=w.ab_bps // MBPS * MBPS, ba_bps=w.ba_bps // MBPS * MBPS) for w in wires]
    try:
        return _Scene(make_net(nodes, coarse, sources, view.setup.transport), False)
    except ValueError:
        return None


def _step(view: View, job: Job, net: Net, chosen: Chosen) -> Step:
    work = job.work
    assert isinstance(work, Rounds)
    workers = dict(work.pinned)
    nodes = tuple(sorted({*workers, chosen.sink}))
    rates = net.rates_bps(chosen.routing)
    routes = tuple(
        Route(u, chosen.sink, rates[u], net.path_links(arcs)) for u, arcs in enumerate(chosen.routing) if arcs
    )
    return Step(
        view.now_us,
        OPEN,
        nodes,
        tuple(workers.get(n, 0) for n in nodes),
        tuple(int(n == chosen.sink) for n in nodes),
        (),
        routes,
    )


def _round_us(view: View, job: Job, step: Step) -> float:
    """Computation and communication of a round: 2 (w(h) 8 D / b + latency) of the slowest route."""
    work = job.work
    assert isinstance(work, Rounds)
    slowest = 0.0
    for route in step.routes:
        weight, whole = transport_fraction(view.setup.transport, len(route.path))
        push = weight * 8 * job.bytes_of(route.src) * US_PER_S / (whole * route.bps)
        slowest = max(slowest, 2 * (push + sum(view.setup.links[k].latency_us for k in route.path)))
    return max(1.0, work.compute_us + slowest)


def _certificate(view: View, job: Job, net: Net, bounds: dict[int, Bound], given: Ledgers) -> Certificate:
    """The bound on the epoch's transfer time and what is needed to check it (audit.wan_certificate.recheck)."""
    level = min(bound.level for bound in bounds.values())
    wires = _wires(view, given)
    return Certificate(
        name="apsp epoch_s",
        value=net.seconds(level),
        sense="min",
        data={
            "job": job.index,
            **net.sizes_as_data(),
            "unit_bps": net.unit_bps,
            "allowed": sorted(bounds),
            "bps": [[wire.ab_bps, wire.ba_bps] for wire in wires],
            "sinks": bounds_as_data(net, bounds),
        },
    )
