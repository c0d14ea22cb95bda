"""Offline optima and bounds: Scenario -> best value. They know the future; no policy may import them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario

BOUNDS: dict[str, str] = {
    "apsp": "tradewind.optimum.apsp:bound",
    "cost_usd": "tradewind.optimum.mlbroker:bound",
    "dps": "tradewind.optimum.dps:bound",
    "eris": "tradewind.optimum.eris:bound",
    "gadget": "tradewind.optimum.gadget:bound",
    "jct_mean_s": "tradewind.optimum.cluster:bound",
    "makespan_s": "tradewind.optimum.cluster:bound",
    "mlbroker": "tradewind.optimum.mlbroker:bound",
    "mlbroker-real": "tradewind.optimum.mlbroker:bound",
    "welfare_usd": "tradewind.optimum.eris:bound",
}
"""Workload name (scenario.origin["workload"]) or objective -> "module:function" that gives its bound."""

SERVED: dict[str, str] = {
    "cost_usd": "tradewind.optimum.mlbroker:bound",
    "mlbroker": "tradewind.optimum.mlbroker:bound",
    "mlbroker-real": "tradewind.optimum.mlbroker:bound",
}
"""The same for bounds that can leave jobs out: (scenario, job -> microseconds until which it is served) -> bound."""

HINDSIGHT: dict[str, str] = {
    "bfp": "tradewind.optimum.dps:bfp",
    "bfp-tau": "tradewind.optimum.dps:bfp_tau",
}
"""Hindsight policy -> "module:function" (scenario, given parameters) -> all its parameters."""


def hindsight(policy: str, scenario: Scenario, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters that a hindsight baseline takes from the whole scenario, beside those that were given."""
    if policy not in HINDSIGHT:
        return given
    module, _, name = HINDSIGHT[policy].partition(":")
    found: Mapping[str, Any] = getattr(import_module(module), name)(scenario, given)
    return found


def bound(scenario: Scenario) -> Bound | None:
    """The offline bound of the whole horizon for the scenario's objective; None where none is known."""
    return _first(BOUNDS, scenario)


def bound_of_served(scenario: Scenario, gone: Mapping[int, int]) -> Bound | None:
    """The bound of serving all but some jobs, and these (index -> microseconds) until then; None where none is known."""
    return _first(SERVED, scenario, gone)


def _first(catalogue: Mapping[str, str], scenario: Scenario, *more: Any) -> Bound | None:
    """What the catalogue has for the scenario's workload, else for its objective."""
    for key in (str(scenario.origin.get("workload", "")), scenario.setup.objective):
        if key in catalogue:
            module, _, name = catalogue[key].partition(":")
            found: Bound | None = getattr(import_module(module), name)(scenario, *more)
            return found
    return None
