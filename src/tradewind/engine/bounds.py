"""The offline bound of a scenario, computed by a system that declares one; it follows from the objective and the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tradewind import registry
from tradewind.model.job import DECLARED
from tradewind.model.job_columns import JobColumns
from tradewind.model.system import System

if TYPE_CHECKING:
    from tradewind.model.result import Bound
    from tradewind.model.scenario import Scenario


def bound(scenario: Scenario) -> Bound | None:
    """Bound of the scenario's objective over the whole horizon; None if no system has one."""
    return _first(scenario, _systems(scenario))


def bound_of_served(scenario: Scenario, until_us: Mapping[int, int]) -> Bound | None:
    """Bound where the jobs in `until_us` are served only until that instant; None if no system has one."""
    return _first(scenario, [system for system in _systems(scenario) if system.bound_of_served], until_us)


def _systems(scenario: Scenario) -> list[System]:
    """The systems with a bound on the scenario's objective; each decides from the data whether its bound holds."""
    return [s for s in registry.systems().values() if scenario.setup.objective in s.bound_for]


def _first(scenario: Scenario, systems: Sequence[System], *more: Mapping[int, int]) -> Bound | None:
    if not isinstance(scenario.jobs, JobColumns) and any(
        customer.pace_milli != DECLARED for customer in scenario.customers
    ):
        return None  # bounds follow from declared times
    for system in systems:
        given = scenario if system.bound_of_pools else _without_pools(scenario)
        found: Bound | None = None if given is None else registry.load(system.bound)(given, *more)
        if found is not None:
            return found
    return None


def _without_pools(scenario: Scenario) -> Scenario | None:
    """The scenario with everything at the lowest rate of its pool, which no bill is below; None where there is none."""
    setup = scenario.setup
    if not setup.pools:
        return scenario
    rent, egress = dict(setup.rent), dict(setup.egress)
    for pool in setup.pools:
        if (rate := pool.least_rate) is None:
            return None
        for tariffs, members in ((rent, pool.rent), (egress, pool.egress)):
            for key in members:
                tariffs[key] = replace(tariffs[key], usd=tuple(usd * rate for usd in tariffs[key].usd))
    return replace(scenario, setup=replace(setup, rent=rent, egress=egress, pools=()))
