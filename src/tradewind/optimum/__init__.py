"""Offline optima and bounds: Scenario -> best value. They know the future; no policy may import them."""

from __future__ import annotations

from importlib import import_module

from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario

BOUNDS: dict[str, str] = {
    "apsp": "tradewind.optimum.apsp:bound",
    "dps": "tradewind.optimum.dps:bound",
    "gadget": "tradewind.optimum.gadget:bound",
    "jct_mean_s": "tradewind.optimum.cluster:bound",
    "makespan_s": "tradewind.optimum.cluster:bound",
    "mlbroker": "tradewind.optimum.mlbroker:bound",
}
"""Workload name (scenario.origin["workload"]) or objective -> "module:function" that gives its bound."""


def bound(scenario: Scenario) -> Bound | None:
    """The offline bound of the whole horizon for the scenario's objective; None where none is known."""
    for key in (str(scenario.origin.get("workload", "")), scenario.setup.objective):
        if key in BOUNDS:
            module, _, name = BOUNDS[key].partition(":")
            found: Bound | None = getattr(import_module(module), name)(scenario)
            return found
    return None
