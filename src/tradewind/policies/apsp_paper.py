"""APSP as printed: an LP over listed paths for every candidate site, rounded at random, the best kept (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.maths.wan_network import Net
from tradewind.maths.wan_paper import algorithm_2
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.policies.apsp_plan import (
    ARCHITECTURES,
    LOOK_AHEAD,
    NEEDS,
    OBJECTIVES,
    TRIGGERS,
    WORKS,
    Chosen,
    Wanderer,
    WanPolicy,
)

ALL_PATHS_UP_TO = 16


class Rounding(Wanderer):
    """The method of ``apsp-paper``. State: the random stream."""

    def __init__(self, paths: int, rng: np.random.Generator) -> None:
        self._paths, self._rng = paths, rng

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        # Paper: P_f is "the path set of data flow f", all feasible paths. They are listed in full on networks of
        # up to 16 nodes; beyond that their number explodes and the shortest `paths` per flow stand in.
        limit = None if net.problem.graph.nodes <= ALL_PATHS_UP_TO else self._paths
        found = algorithm_2(
            net.problem, self._rng, limit=limit, sinks=np.array(sorted(sinks), dtype=np.int64)
        )
        return Chosen(found.sink, found.routing)

    def state(self) -> Any:
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        self._rng.bit_generator.state = state


def _paper(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> WanPolicy:
    del setup
    return WanPolicy(Rounding(int(params["paths"]), rng), float(params["lookahead_s"]))


APSP_PAPER = Spec(
    name="apsp-paper",
    summary="The paper's Algorithm 2: an LP per candidate site, randomized rounding with one draw per flow",
    factory=_paper,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=NEEDS,
    params={
        "paths": Param(default=16, doc="paths per worker site on networks of more than 16 nodes"),
        **LOOK_AHEAD,
    },
    system="apsp",
)
