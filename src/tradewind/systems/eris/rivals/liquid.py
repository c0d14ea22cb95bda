"""Liquid on edge sites: jobs in order of arrival, at sites that balance network use against the price of workers.

As the Eris paper describes it (Sec. VI-B): a job keeps its sites until it is done. The score of a site is
weight x (share of the slot's bandwidth that its parameters take) + (1 - weight) x (price / price of a full site).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import MILLI
from tradewind.model.view import View
from tradewind.systems.eris.kernels.spot import Score
from tradewind.systems.eris.shared.edge import EdgeRules, EdgeScheduler, Turn, rival_spec


class Liquid(EdgeScheduler):
    """weight: weight of the network against the price, the paper's lambda."""

    def __init__(self, setup: Setup, rules: EdgeRules, weight: float) -> None:
        super().__init__(setup, rules)
        self._weight = weight

    def turns(self, view: View) -> Iterable[Turn]:
        running = [i for i in self.left if i in self.held]
        waiting = [i for i in self.left if i not in self.held]
        return [Turn(i, exact=True, stays=True) for i in running + waiting]

    def score(self, job: Job) -> Score:
        full = max(self.rules.gamma - 1.0, 1.0) * max(sum(milli for _, milli in job.worker) / MILLI, 1e-9)
        band = max(float(self.ledger.band), 1.0)
        return Score(price=(1.0 - self._weight) / full, byte_score=self._weight / band)


def _liquid(setup: Setup, rules: EdgeRules, params: Mapping[str, Any]) -> Liquid:
    return Liquid(setup, rules, params["weight"])


WEIGHT = Param(
    default=0.5,
    doc="weight of network use against the price of workers (the paper's lambda)",
    least=0,
    most=1,
)
LIQUID = rival_spec(
    "liquid",
    "Rival of Eris: order of arrival, network use weighed against price; a fixed number of workers",
    _liquid,
    weight=WEIGHT,
)
LIQUID_ELASTIC = rival_spec(
    "liquid-elastic", "liquid with as many workers as are useful and fit", _liquid, weight=WEIGHT
)
