"""The policy `broker`: every slot the new jobs are planned together, at what they add to the bill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.model.arrays import Floats
from tradewind.model.spec import Param
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books
from tradewind.systems.broker.shared.market import Market
from tradewind.systems.broker.shared.plan import better, central, first_plans, improve, no_toll, selfish
from tradewind.systems.broker.shared.policy import Chooser, broker_spec

MANY = 100
"""Beyond so many jobs at once the plan in one site is not tried."""


def planned(market: Market, p: Problem, before: Floats, rounds: int) -> Books:
    """First plans, the rivals' plans among them, improved by so many rounds of ruin and recreate."""
    rivals = [selfish(p, before)]
    if len(p.unserved) <= MANY:
        rivals.append(central(p, before, market.site))
    found = better(p, first_plans(p, before, no_toll(p)), rivals)
    return improve(p, found, no_toll(p), rounds) if rounds else found


def _broker(params: Mapping[str, Any]) -> Chooser:
    rounds = int(params["rounds"])
    return lambda market, p, before: planned(market, p, before, rounds)


BROKER = broker_spec(
    name="broker",
    summary="Plans batch training over regions, GPU types, machines and times at the lowest bill of all jobs together",
    choose=_broker,
    may_move=True,
    params={"rounds": Param(default=100, doc="rounds of ruin and recreate per decision", least=0)},
)
