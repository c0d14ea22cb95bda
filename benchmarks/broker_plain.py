"""The broker's problem as one time-indexed program in HiGHS, binary tiers, on the options that `exact` keeps."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.errors import Unsupported
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.bound.exact import exact


class Plain(NamedTuple):
    """Cost of the plan found (infinite: none) and the proven bound; why: why there is neither."""

    usd: float
    bound: float
    why: str = ""


def plain(scenario: Scenario, nodes: int) -> Plain:
    """Solve it within a number of nodes of the search tree."""
    try:
        return Plain(*exact(scenario, nodes))
    except Unsupported as error:
        return Plain(float("inf"), 0.0, str(error))
