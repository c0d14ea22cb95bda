"""Shortest path: apsp's parameter-server site, every worker site on a path with the fewest hops (APSP, Sec. V-A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.maths.wan_network import Net
from tradewind.maths.wan_problem import fewest_hops
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.policies.apsp import GAP, NearExact
from tradewind.policies.apsp_plan import (
    ARCHITECTURES,
    LOOK_AHEAD,
    NEEDS,
    OBJECTIVES,
    TRIGGERS,
    WORKS,
    Chosen,
    WanPolicy,
)


class FewestHops(NearExact):
    """Keeps nothing; of equally short paths the one over the lowest arc numbers."""

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        sink = super().choose(net, sinks).sink
        return Chosen(sink, fewest_hops(net.problem, sink))


def _shortest_path(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> WanPolicy:
    del setup, rng
    return WanPolicy(FewestHops(float(params["gap"])), float(params["lookahead_s"]))


SHORTEST_PATH = Spec(
    name="shortest-path",
    summary="apsp's parameter-server site, but every path has the fewest hops",
    factory=_shortest_path,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=NEEDS,
    params={**GAP, **LOOK_AHEAD},
    system="apsp",
)
