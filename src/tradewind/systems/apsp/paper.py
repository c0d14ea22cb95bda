"""`apsp-paper`: an LP over listed paths for every candidate site, rounded at random, the best kept (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tradewind.model.spec import Param
from tradewind.systems.apsp.kernels.network import Net
from tradewind.systems.apsp.kernels.paper import algorithm_2
from tradewind.systems.apsp.shared.placement import Chosen, MovableServer, RandomStream
from tradewind.systems.apsp.shared.policy import LOOK_AHEAD, placement_spec

ALL_PATHS_UP_TO = 16


class Rounding(RandomStream, MovableServer):
    """The method of ``apsp-paper``."""

    def __init__(self, paths: int, rng: np.random.Generator) -> None:
        self._paths, self._rng = paths, rng

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        # Paper: P_f is "the path set of data flow f", all feasible paths. They are listed in full on networks of
        # up to 16 nodes; on larger ones there are too many, and only the shortest `paths` per flow are listed.
        limit = None if net.problem.graph.nodes <= ALL_PATHS_UP_TO else self._paths
        found = algorithm_2(
            net.problem, self._rng, limit=limit, sinks=np.array(sorted(sinks), dtype=np.int64)
        )
        return Chosen(found.sink, found.routing)


APSP_PAPER = placement_spec(
    "apsp-paper",
    "The paper's Algorithm 2: an LP per candidate site, randomized rounding with one draw per flow",
    lambda params, rng: Rounding(int(params["paths"]), rng),
    {
        "paths": Param(
            default=16, doc="paths per worker site on networks of more than 16 nodes", least=1, most=10_000
        ),
        **LOOK_AHEAD,
    },
)
