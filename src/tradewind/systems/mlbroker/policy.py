"""mlBroker: every slot, workers and servers of all jobs placed together so that pooled volume earns its discount.

Ours, not the paper's pipeline (that is ``mlbroker-paper``): a pool of exact plans per job, searched from prices that
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
from tradewind.systems.mlbroker.kernels.bills import RULES
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.limits import decide
from tradewind.systems.mlbroker.kernels.rivals import central, selfish
from tradewind.systems.mlbroker.kernels.search import SearchEffort
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.slots import WEIGHTS, SlotPolicy, mlbroker_spec


class TierSearch:
    """The decision of ``mlbroker``. State: the marginal prices of the slot before."""

    def __init__(self, deploy_weight: float, effort: SearchEffort) -> None:
        self._deploy_weight = deploy_weight
        self._effort = effort
        self._price: Floats | None = None

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """The searched decision, or the selfish or central one should either cost less from this state."""
        del jobs
        answer, short = decide(slot, self._deploy_weight, self._effort, self._price)
        self._price = answer.price
        best = (answer.workers, answer.server)
        if len(short) or np.isfinite(slot.capacity).any():
            return best
        # Deployment counts in part when deciding; the full bill must still never exceed the rivals' bill.
        cost = sum(cost_parts(slot, *best))
        for rival in (selfish(slot, self._effort.servers), central(slot)):
            if (rival[1] >= 0).all():
                theirs = sum(cost_parts(slot, *rival))
                if theirs < cost * (1.0 - 1e-12):
                    cost, best = theirs, rival
        return best

    def state(self) -> Any:
        return None if self._price is None else self._price.tolist()

    def resume(self, state: Any) -> None:
        self._price = None if state is None else np.array(state)


def _mlbroker(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    del rng
    effort = replace(SearchEffort(), rounds=int(params["rounds"]), servers=int(params["servers"]))
    search = TierSearch(float(params["deploy_weight"]), effort)
    return SlotPolicy(setup, search, Weights.read(params), egress_tiers=True)


MLBROKER = mlbroker_spec(
    name="mlbroker",
    summary="Pools all jobs of a slot for volume discounts: exact plans per job, tier-triggering search",
    factory=_mlbroker,
    params={
        "deploy_weight": Param(
            default=0.5,
            doc="part of the deployment cost that counts when deciding; the books charge all of it",
        ),
        "rounds": Param(default=3, doc="rounds of exact re-pricing"),
        "servers": Param(default=3, doc="server sites searched per job and round"),
        "margin": Param(
            default=0.0, doc="the broker's part of the saving that tenants are charged", least=0, most=1
        ),
        "split": Param(
            default="proportional",
            doc="how the bills split the saving: the same discount for everybody, or Shapley's",
            choices=RULES,
        ),
        **WEIGHTS,
    },
)
