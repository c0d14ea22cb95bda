"""The policy `mlbroker`: places all jobs of a slot together so that pooled volume reaches discount tiers.

Not the paper's pipeline (that is `mlbroker-paper`): it searches pools of plans per job, starting from prices that
trigger discount tiers. See docs/systems/mlbroker.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.systems.mlbroker.kernels.bills import SPLIT_RULES
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.limits import decide
from tradewind.systems.mlbroker.kernels.rivals import central, selfish
from tradewind.systems.mlbroker.kernels.search import SearchEffort
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.policy import WEIGHTS, SlotPolicy, mlbroker_spec


class TierSearch:
    """Search over discount tiers. State: the marginal prices of the previous slot."""

    def __init__(self, deploy_weight: float, effort: SearchEffort) -> None:
        self._deploy_weight = deploy_weight
        self._effort = effort
        self._price: Floats | None = None

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """The decision found by the search, or the selfish or central one if that costs less from this state."""
        del jobs
        found, unplaced = decide(slot, self._deploy_weight, self._effort, self._price)
        self._price = found.price
        best = (found.workers, found.server)
        if len(unplaced) or np.isfinite(slot.capacity).any():
            return best
        # The search counts deployment in part; the full cost must still never exceed that of the baselines.
        cost = sum(cost_parts(slot, *best))
        for rival in (selfish(slot, self._effort.servers), central(slot)):
            if (rival[1] >= 0).all():
                rival_cost = sum(cost_parts(slot, *rival))
                if rival_cost < cost * (1.0 - 1e-12):
                    cost, best = rival_cost, rival
        return best

    def state(self) -> Any:
        """The marginal prices (R, K), or None."""
        return None if self._price is None else self._price.tolist()

    def resume(self, state: Any) -> None:
        """Continue from :meth:`state`."""
        self._price = None if state is None else np.array(state)


def _mlbroker(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    del rng
    effort = replace(SearchEffort(), rounds=int(params["rounds"]), servers=int(params["servers"]))
    search = TierSearch(float(params["deploy_weight"]), effort)
    return SlotPolicy(setup, search, Weights.read(params), egress_tiers=True)


MLBROKER = mlbroker_spec(
    name="mlbroker",
    summary="Places all jobs of a slot together so that pooled volume reaches discount tiers",
    factory=_mlbroker,
    params={
        "deploy_weight": Param(
            default=0.5,
            doc="part of the deployment cost that the decision counts; all of it is billed",
            least=0,
        ),
        "rounds": Param(default=3, doc="rounds of re-pricing in the search", least=0, most=10_000),
        "servers": Param(default=3, doc="server sites searched per job and round", least=1, most=10_000),
        "margin": Param(default=0.0, doc="part of the saving that the broker keeps", least=0, most=1),
        "split": Param(
            default="proportional",
            doc="how bills split the saving: the same discount for all tenants, or Shapley values",
            choices=SPLIT_RULES,
        ),
        **WEIGHTS,
    },
)
