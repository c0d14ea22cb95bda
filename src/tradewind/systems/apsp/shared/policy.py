"""The policy around a placement method: when jobs are planned again, and when a server moves.

A job has workers pinned at sites. Its server is at one site, every other worker site sends along one path, and each path
holds bandwidth. When bandwidth changes the job is planned again on what is free plus its own; the server moves only
where the rounds gained within the look-ahead outweigh those lost to `restart_us`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind.model.decision import Certificate, Decision, Duplex, Plan, Step
from tradewind.model.job import Job
from tradewind.model.setup import Objective, Setup
from tradewind.model.spec import EVERY_EVENT, Need, Param, Spec
from tradewind.model.units import US_PER_S
from tradewind.model.view import View
from tradewind.systems.apsp.shared.placement import JobNetwork, Method, job_network, rounds_of, wires_of
from tradewind.systems.apsp.shared.reservations import Reservations

WORKS = frozenset({"rounds/flows"})
ARCHITECTURES = frozenset({"ps"})
OBJECTIVES: frozenset[Objective] = frozenset(("epoch_s", "jct_mean_s", "makespan_s"))
NEEDS: frozenset[Need] = frozenset(("links",))
AGAIN = frozenset(("changed", "finished", "released", "refused", "cancelled"))
"""Events after which running jobs are planned again."""
LOOK_AHEAD = {
    "lookahead_s": Param(
        default=3600.0,
        doc="move the server if that gains rounds within this many seconds, restart included",
        least=0,
    )
}
DUPLEX: Mapping[str, Duplex] = {"phases": "forward", "always": "push-pull"}
RESERVE = {
    "reserve": Param(
        default="phases",
        doc="phases: what jobs push apart from what they pull, as if all pushed at the same time (the paper); always: both "
        "directions of their links all the time, so that several jobs keep their times on a real network",
        choices=tuple(DUPLEX),
        later=True,
    )
}


@dataclass(frozen=True, slots=True)
class _Option:
    """A way to go on: step, time of a round in microseconds, certificate if there is one."""

    step: Step
    round_us: int
    certificate: Certificate | None = None


class PlacementPolicy:
    """Plans every job with pinned workers by a Method; keeps the site of each job's server."""

    def __init__(self, method: Method, lookahead_s: float, duplex: Duplex = "forward") -> None:
        self._method, self._duplex = method, duplex
        self._lookahead_us = lookahead_s * US_PER_S
        self._at: dict[int, int] = {}

    def decide(self, view: View) -> Decision:
        """Plan waiting jobs; improve running ones where something changed."""
        again = any(event.kind in AGAIN for event in view.events)
        for event in view.events:
            if event.kind in ("finished", "refused", "cancelled", "ended"):
                self._at.pop(event.job, None)
        reserved = Reservations(view)
        plans, certificate = [], None
        for index, job in view.active.items():
            current = self._running(view, index)
            if current is not None and not again:
                continue
            option = self._plan(view, job, current, reserved)
            if option is None:
                continue
            plans.append(Plan(index, (option.step,)))
            certificate = option.certificate
        return Decision(plans=tuple(plans), certificate=certificate if len(plans) == 1 else None)

    @staticmethod
    def _running(view: View, index: int) -> Step | None:
        plan = view.plan(index)
        return None if plan is None else next((s for s in plan.steps if s.until_us > view.now_us), None)

    def _plan(self, view: View, job: Job, current: Step | None, reserved: Reservations) -> _Option | None:
        if current is not None:
            reserved.add(job, current, -1)
        try:
            option = self._best(view, job, current, reserved)
        except ValueError:
            option = None  # no bandwidth is left, or some worker site is cut off for now
        kept = option.step if option is not None else current
        if kept is not None:
            reserved.add(job, kept, +1)
        if option is not None:
            self._at[job.index] = _server_of(option.step)
        return option

    def _best(self, view: View, job: Job, current: Step | None, reserved: Reservations) -> _Option | None:
        """The option to change to, or None to leave the job as it is (or waiting)."""
        sinks = _sinks(view, job, reserved)
        if not sinks:
            return None
        wires = wires_of(view.setup, reserved.free_bps, self._duplex)
        network = job_network(view.setup, job, wires, self._duplex)
        home, sinks = self._allowed(network, sinks)
        if not sinks:
            return None
        best = stay = self._option(view, network, sinks)
        if home in sinks and _server_of(best.step) != home:
            stay = self._option(view, network, [home])
        if stay is not best and not self._pays(job, stay, best):
            best = stay
        if current is None:
            return best
        before = _Option(current, network.round_us(current))
        if _server_of(best.step) == _server_of(current):
            gains = best.round_us < before.round_us * (1 - 1e-9)
        else:
            gains = self._pays(job, before, best)
        return best if gains else None

    def _allowed(self, network: JobNetwork, sinks: list[int]) -> tuple[int | None, list[int]]:
        """The site of the job's server so far, and the sinks to choose from."""
        job, home = network.job, self._at.get(network.job.index)
        if home is None:
            only = self._method.fixed(network.net, sinks, job)
            return only, sinks if only is None else [only]
        if self._method.fixed(network.net, [home], job) is not None:
            return home, [home] if home in sinks else []
        return home, sinks

    def _pays(self, job: Job, stay: _Option, move: _Option) -> bool:
        """Does moving do more rounds within the look-ahead than staying, restart included?"""
        left = self._lookahead_us - job.restart_us
        return left > 0 and left / move.round_us > self._lookahead_us / stay.round_us * (1 + 1e-9)

    def _option(self, view: View, network: JobNetwork, sinks: Sequence[int]) -> _Option:
        chosen = self._method.choose(network.net, sinks)
        step = network.step(chosen, view.now_us)
        return _Option(step, network.round_us(step), network.certificate(chosen))

    def save(self) -> bytes:
        return json.dumps({"at": sorted(self._at.items()), "method": self._method.state()}).encode()

    def restore(self, state: bytes) -> None:
        kept = json.loads(state)
        self._at = {int(job): int(node) for job, node in kept["at"]}
        self._method.resume(kept["method"])


Make = Callable[[Mapping[str, Any], np.random.Generator], Method]


def placement_spec(name: str, summary: str, make: Make, params: Mapping[str, Param]) -> Spec:
    """The catalogue entry of a placement; without `lookahead_s` among its parameters the server never moves."""

    def factory(setup: Setup, values: Mapping[str, Any], rng: np.random.Generator) -> PlacementPolicy:
        del setup
        lookahead_s = float(values.get("lookahead_s", 0.0))
        return PlacementPolicy(make(values, rng), lookahead_s, DUPLEX[values["reserve"]])

    return Spec(
        name=name,
        summary=summary,
        factory=factory,
        works=WORKS,
        architectures=ARCHITECTURES,
        objectives=OBJECTIVES,
        triggers=EVERY_EVENT,
        needs=NEEDS,
        params={**params, **RESERVE},
        system="apsp",
    )


def _server_of(step: Step) -> int:
    return next(n for n, s in zip(step.nodes, step.servers, strict=True) if s)


def _sinks(view: View, job: Job, reserved: Reservations) -> list[int]:
    """Sites where the server fits beside the workers; empty if the workers themselves do not fit."""
    pinned = dict(rounds_of(job).pinned)
    if not all(
        reserved.fits(node, {r: milli * workers for r, milli in job.worker})
        for node, workers in pinned.items()
    ):
        return []
    found = []
    for node in view.setup.hosts:
        if job.nodes is not None and node not in job.nodes:
            continue
        need: dict[int, int] = {}
        for demand, count in ((job.worker, pinned.get(node, 0)), (job.server, 1)):
            for r, milli in demand:
                need[r] = need.get(r, 0) + milli * count
        if reserved.fits(node, need):
            found.append(node)
    return found
