"""The paper's baselines (Sec. V-A): two fix the site and route like apsp, two take apsp's site and route otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tradewind.model.job import Job
from tradewind.model.spec import Param
from tradewind.systems.apsp.kernels.cut import even_use
from tradewind.systems.apsp.kernels.network import Net
from tradewind.systems.apsp.kernels.problem import fewest_hops
from tradewind.systems.apsp.policy import GAP, NearExact
from tradewind.systems.apsp.shared.placement import Chosen, RandomStream
from tradewind.systems.apsp.shared.policy import LOOK_AHEAD, placement_spec


class RandomSite(RandomStream, NearExact):
    """The server is at a random site, drawn once."""

    def __init__(self, gap: float, rng: np.random.Generator) -> None:
        super().__init__(gap)
        self._rng = rng

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        del net, job
        return sinks[0] if len(sinks) == 1 else int(self._rng.choice(list(sinks)))


class MostLinks(RandomSite):
    """The server is at the site with most links; ties are drawn, or the first is taken."""

    def __init__(self, gap: float, ties: str, rng: np.random.Generator) -> None:
        super().__init__(gap, rng)
        self._ties = ties

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        degree = np.bincount(net.problem.graph.head, minlength=net.problem.graph.nodes)
        most = max(degree[v] for v in sinks)
        tied = [v for v in sinks if degree[v] == most]
        # Paper: how ties are broken is open, and B4 has a six-way tie.
        return tied[0] if self._ties == "first" else super().fixed(net, tied, job)


class FewestHops(NearExact):
    """apsp's site; of equally short paths the one over the lowest arc numbers."""

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        sink = super().choose(net, sinks).sink
        return Chosen(sink, fewest_hops(net.problem, sink))


class EvenUse(NearExact):
    """apsp's site; the largest number of flows per bandwidth on any link is the least possible (a maximum flow)."""

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        sink = super().choose(net, sinks).sink
        # Paper: "paths for flows that can balance the load"; here flows / bandwidth of the worst link, minimised exactly
        # without regard to hops.
        return Chosen(sink, even_use(net.problem, sink))


RANDOM_PS = placement_spec(
    "random-ps",
    "Parameter server at a random site for good, routed like apsp",
    lambda params, rng: RandomSite(float(params["gap"]), rng),
    GAP,
)
MOST_CONNECTED = placement_spec(
    "most-connected",
    "Parameter server at the site with most links for good, routed like apsp",
    lambda params, rng: MostLinks(float(params["gap"]), str(params["ties"]), rng),
    {
        "ties": Param(
            default="random", doc="which of several sites with most links", choices=("random", "first")
        ),
        **GAP,
    },
)
SHORTEST_PATH = placement_spec(
    "shortest-path",
    "apsp's parameter-server site, but every path has the fewest hops",
    lambda params, rng: FewestHops(float(params["gap"])),
    {**GAP, **LOOK_AHEAD},
)
LOAD_BALANCING = placement_spec(
    "load-balancing",
    "apsp's parameter-server site, but paths balance the number of flows per bandwidth, whatever their length",
    lambda params, rng: EvenUse(float(params["gap"])),
    {**GAP, **LOOK_AHEAD},
)
