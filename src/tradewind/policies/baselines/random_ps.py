"""Random PS: the parameter server stands at a site drawn once; routes are found as apsp finds them (APSP, Sec. V-A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.maths.wan_network import Net
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.policies.apsp import GAP, NearExact
from tradewind.policies.apsp_plan import ARCHITECTURES, NEEDS, OBJECTIVES, TRIGGERS, WORKS, WanPolicy


class RandomSite(NearExact):
    """State: the random stream."""

    def __init__(self, gap: float, rng: np.random.Generator) -> None:
        super().__init__(gap)
        self._rng = rng

    def fixed(self, net: Net, sinks: Sequence[int], job: Job) -> int | None:
        del net, job
        return sinks[0] if len(sinks) == 1 else int(self._rng.choice(list(sinks)))

    def state(self) -> Any:
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        self._rng.bit_generator.state = state


def _random_ps(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> WanPolicy:
    del setup
    return WanPolicy(RandomSite(float(params["gap"]), rng), 0.0)


RANDOM_PS = Spec(
    name="random-ps",
    summary="Parameter server at a random site for good, routed like apsp",
    factory=_random_ps,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=NEEDS,
    params=GAP,
    system="apsp",
)
