"""Load balancing: apsp's parameter-server site, paths that even out the use of links whatever their length (Sec. V-A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.maths.wan_cut import solve_cut_through
from tradewind.maths.wan_network import Net
from tradewind.maths.wan_problem import hop_weight
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


class EvenUse(NearExact):
    """Keeps nothing. The largest share of flows per bandwidth on any link is the least possible (a maximum flow)."""

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        sink = super().choose(net, sinks).sink
        # Paper: "paths for flows that can balance the load"; here flows / bandwidth of the worst link, minimised exactly
        # without regard to hops.
        flat = replace(net.problem, weight=hop_weight(net.problem.graph.nodes, "cut-through")[0])
        return Chosen(sink, solve_cut_through(flat, np.array([sink], dtype=np.int64)).routing)


def _load_balancing(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> WanPolicy:
    del setup, rng
    return WanPolicy(EvenUse(float(params["gap"])), float(params["lookahead_s"]))


LOAD_BALANCING = Spec(
    name="load-balancing",
    summary="apsp's parameter-server site, but paths even out the use of links whatever their length",
    factory=_load_balancing,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=NEEDS,
    params={**GAP, **LOOK_AHEAD},
    system="apsp",
)
