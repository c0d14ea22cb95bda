"""The offline bound of a scenario, computed by a system that declares one; it follows from the objective and the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tradewind import registry
from tradewind.model.system import Ref, System

if TYPE_CHECKING:
    from tradewind.model.result import Bound
    from tradewind.model.scenario import Scenario


def bound(scenario: Scenario) -> Bound | None:
    """Bound of the scenario's objective over the whole horizon; None if no system has one."""
    return _first(scenario, [system.bound for system in _systems(scenario)])


def bound_of_served(scenario: Scenario, until_us: Mapping[int, int]) -> Bound | None:
    """Bound where the jobs in `until_us` are served only until that instant; None if no system has one."""
    return _first(scenario, [s.bound for s in _systems(scenario) if s.bound_of_served], until_us)


def _systems(scenario: Scenario) -> list[System]:
    """The systems with a bound on the scenario's objective; each decides from the data whether its bound holds."""
    return [s for s in registry.systems().values() if scenario.setup.objective in s.bound_for]


def _first(scenario: Scenario, bounds: Sequence[Ref], *more: Mapping[int, int]) -> Bound | None:
    for each in bounds:
        found: Bound | None = registry.load(each)(scenario, *more)
        if found is not None:
            return found
    return None
