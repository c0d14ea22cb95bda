"""Most connected: the parameter server stands where most links meet; routes are found as apsp finds them (Sec. V-A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.maths.wan_network import Net
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.policies.apsp import GAP, NearExact
from tradewind.policies.apsp_plan import ARCHITECTURES, NEEDS, OBJECTIVES, TRIGGERS, WORKS, WanPolicy


class MostLinks(NearExact):
    """State: the random stream, used for ties."""

    def __init__(self, gap: float, ties: str, rng: np.random.Generator) -> None:
        super().__init__(gap)
        self._ties, self._rng = ties, rng

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        del job
        degree = np.bincount(net.problem.graph.head, minlength=net.problem.graph.nodes)
        most = max(degree[v] for v in sinks)
        tied = [v for v in sinks if degree[v] == most]
        # Paper: does not say how ties are broken, and B4 has a six-way tie.
        return tied[0] if self._ties == "first" or len(tied) == 1 else int(self._rng.choice(tied))

    def state(self) -> Any:
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        self._rng.bit_generator.state = state


def _most_connected(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> WanPolicy:
    del setup
    return WanPolicy(MostLinks(float(params["gap"]), str(params["ties"]), rng), 0.0)


MOST_CONNECTED = Spec(
    name="most-connected",
    summary="Parameter server at the site with most links for good, routed like apsp",
    factory=_most_connected,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=NEEDS,
    params={
        "ties": Param(
            default="random", doc="which of several sites with most links", choices=("random", "first")
        ),
        **GAP,
    },
    system="apsp",
)
