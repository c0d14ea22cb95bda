"""One job on the network it may use: the gathering problem, and a choice of site and paths as a step and a certificate.

Policies and `plan-wan` both plan here, so that they agree on bandwidths, seconds and bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from tradewind.model.decision import Certificate, Duplex, Route, Step
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import comm_us
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN, US_PER_S
from tradewind.systems.apsp.kernels.network import Net, Wire, bounds_as_data, make_net
from tradewind.systems.apsp.kernels.problem import Routing
from tradewind.systems.apsp.kernels.proof import SinkBound

CERTIFICATE = "apsp epoch_s"
"""Name of a placement certificate, by which the audit recognises it."""
MBPS = 1_000_000


class Chosen(NamedTuple):
    """A sink and a routing; bounds where the method gives them."""

    sink: int
    routing: Routing
    bounds: dict[int, SinkBound] | None = None


class Method(Protocol):
    """How a sink and paths are chosen. State that must survive a restart goes through state() and resume()."""

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        """The best among the allowed sinks."""

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        """The sink that this method gives a job for good, or None if the server may move."""

    def state(self) -> Any: ...

    def resume(self, state: Any) -> None: ...


class MovableServer:
    """Base of methods that fix no sink and have no state."""

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        del net, sinks, job
        return None

    def state(self) -> Any:
        return None

    def resume(self, state: Any) -> None:
        del state


class RandomStream:
    """State of a method that draws: its random stream."""

    _rng: np.random.Generator

    def state(self) -> Any:
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        self._rng.bit_generator.state = state


def wires_of(setup: Setup, bps: Callable[[int, int], int], duplex: Duplex = "forward") -> list[Wire]:
    """The links of a setup with the bit/s that `bps(link, direction)` gives; a shared link has direction 0 alone.

    Routes that are push-pull take both directions of every link, so for them the two share what is free in both.
    """
    if duplex == "push-pull":
        both = (min(bps(k, 0), bps(k, 1)) for k in range(len(setup.links)))
        return [Wire(link.a, link.b, free, free, True) for link, free in zip(setup.links, both, strict=True)]
    return [
        Wire(link.a, link.b, bps(k, 0), bps(k, 0 if link.shared else 1), link.shared)
        for k, link in enumerate(setup.links)
    ]


def full_bps(setup: Setup) -> Callable[[int, int], int]:
    """What an empty link can push and pull back, for `wires_of`."""
    return lambda k, _: min(setup.links[k].ab_bps, setup.links[k].ba_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNetwork:
    """The network one job may use.

    wires  every link with the bandwidth that is free for the job
    net    the gathering problem on them
    exact  sizes and bandwidths of `net` are the true ones, so that bounds on it are certificates
    duplex how its routes are reserved
    """

    setup: Setup
    job: Job
    wires: Sequence[Wire]
    net: Net
    exact: bool
    duplex: Duplex = "forward"

    @property
    def pinned(self) -> tuple[tuple[int, int], ...]:
        """(node, workers) of the job's worker sites."""
        return rounds_of(self.job).pinned

    def step(self, chosen: Chosen, from_us: int) -> Step:
        """Workers at their sites, the server at the sink, and bandwidth on every path, from now on."""
        workers = dict(self.pinned)
        nodes = tuple(sorted({*workers, chosen.sink}))
        rates = self.net.rates_bps(chosen.routing)
        routes = tuple(
            Route(u, chosen.sink, rates[u], self.net.path_links(arcs), self.duplex)
            for u, arcs in enumerate(chosen.routing)
            if arcs
        )
        return Step(
            from_us,
            OPEN,
            nodes,
            tuple(workers.get(n, 0) for n in nodes),
            tuple(int(n == chosen.sink) for n in nodes),
            (),
            routes,
        )

    def round_us(self, step: Step) -> int:
        """Computation and communication of a round, as the simulated world counts them."""
        return max(1, rounds_of(self.job).compute_us + comm_us(self.setup, self.job, step))

    def certificate(self, chosen: Chosen) -> Certificate | None:
        """The bound on an epoch's transfer time, with what the audit needs to check it; None without bounds."""
        if chosen.bounds is None or not self.exact:
            return None
        return Certificate(
            name=CERTIFICATE,
            value=self.net.epoch_us(min(bound.level for bound in chosen.bounds.values())) / US_PER_S,
            sense="min",
            data={
                "job": self.job.index,
                **self.net.sizes_as_data(),
                "unit_bps": self.net.unit_bps,
                "allowed": sorted(chosen.bounds),
                "bps": [[wire.ab_bps, wire.ba_bps] for wire in self.wires],
                "sinks": bounds_as_data(self.net, chosen.bounds),
            },
        )


def rounds_of(job: Job) -> Rounds:
    """The work of a job that these policies accept."""
    assert isinstance(job.work, Rounds)
    return job.work


def job_network(setup: Setup, job: Job, wires: Sequence[Wire], duplex: Duplex = "forward") -> JobNetwork:
    """The network of a job; raises ValueError where no link has bandwidth. duplex: that of the wires.

    Odd numbers of bytes times odd numbers of bit/s may exceed what is computed exactly: then whole Mbit/s are used.
    """
    sizes = {node: job.bytes_of(node) for node, _ in rounds_of(job).pinned}
    known = all(sizes.values())
    sources = sizes if known else list(sizes)
    nodes = len(setup.nodes)
    joined = [frozenset((wire.a, wire.b)) for wire in wires if wire.ab_bps > 0 or wire.ba_bps > 0]
    simple = len(set(joined)) == len(
        joined
    )  # else the plan leaves out parallel links, and no bound on it holds
    exact = known and simple and duplex == "forward"  # what pushes may use is what a certificate is about
    try:
        net = make_net(nodes, wires, sources, setup.transport)
        return JobNetwork(setup=setup, job=job, wires=wires, net=net, exact=exact, duplex=duplex)
    except ValueError:
        coarse = [w._replace(ab_bps=w.ab_bps // MBPS * MBPS, ba_bps=w.ba_bps // MBPS * MBPS) for w in wires]
    net = make_net(nodes, coarse, sources, setup.transport)
    return JobNetwork(setup=setup, job=job, wires=wires, net=net, exact=False, duplex=duplex)
