"""The offline bound of a scenario, computed by the system that declares one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tradewind import registry
from tradewind.model.system import System

if TYPE_CHECKING:
    from tradewind.model.result import Bound
    from tradewind.model.scenario import Scenario


def bound(scenario: Scenario) -> Bound | None:
    """Bound of the scenario's objective over the whole horizon; None if no system has one."""
    system = _system_for(scenario)
    found: Bound | None = registry.load(system.bound)(scenario) if system else None
    return found


def bound_of_served(scenario: Scenario, until_us: Mapping[int, int]) -> Bound | None:
    """Bound where the jobs in `until_us` are served only until that instant; None if no system has one."""
    system = _system_for(scenario)
    if system is None or not system.bound_of_served:
        return None
    found: Bound | None = registry.load(system.bound)(scenario, until_us)
    return found


def _system_for(scenario: Scenario) -> System | None:
    """The system whose bound applies to the scenario's workload, else to its objective."""
    for key in (str(scenario.origin.get("workload", "")), scenario.setup.objective):
        for system in registry.systems().values():
            if key in system.bound_for:
                return system
    return None
