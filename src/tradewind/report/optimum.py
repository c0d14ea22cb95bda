"""The offline solver of a system on any scenario: the best plan with the future known, and whether it is the optimum."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind import registry
from tradewind.engine import bounds
from tradewind.model.errors import InputError
from tradewind.model.result import CLOSED, Offline, Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.model.system import Ref
from tradewind.registry import systems
from tradewind.worlds.planned import planned
from tradewind.worlds.simulate import simulate

MOST_EFFORT = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """What was found: the audited run of the plan, and the best certified bound; each None where there is none."""

    run: Run | None
    bound: float | None

    @property
    def gap(self) -> float | None:
        """How far the value is from the bound, as a share of the bound; None where one of them is missing or it is 0."""
        if self.run is None or not self.bound:
            return None
        return abs(self.run.value - self.bound) / abs(self.bound)

    @property
    def proven(self) -> bool:
        """Whether no run can be better."""
        return self.gap is not None and self.gap <= CLOSED


def search(scenario: Scenario, effort: int) -> Optimum:
    """Solver and bound on a scenario."""
    if isinstance(effort, bool) or not isinstance(effort, int) or not 1 <= effort <= MOST_EFFORT:
        raise InputError(f"effort: found {effort!r}; it must be a whole number from 1 to {MOST_EFFORT}")
    plan, certified = plan_of(scenario, effort), certified_bound(scenario)
    known = [each for each in (certified, plan.bound if plan else None) if each is not None]
    tightest = max if SENSE[scenario.setup.objective] == "min" else min
    return Optimum(run=run_of(scenario, plan, effort), bound=tightest(known) if known else None)


def certified_bound(scenario: Scenario) -> float | None:
    """The value of the offline bound, if it is certified."""
    found = bounds.bound(scenario)
    return found.value if found is not None and found.kind == "certified" else None


def _solvers(scenario: Scenario) -> dict[str, Ref]:
    """The offline solvers for the objective, by system."""
    every = {name: system.offline for name, system in systems().items() if system.offline}
    return {n: ref for n, ref in every.items() if scenario.setup.objective in systems()[n].bound_for}


def plan_of(scenario: Scenario, effort: int) -> Offline | None:
    """What the first system with an offline solver for this scenario finds."""
    for solver in _solvers(scenario).values():
        found: Offline | None = registry.load(solver)(scenario, effort)
        if found is not None:
            return found
    return None


def why_none(scenario: Scenario) -> str:
    """Why there is no plan."""
    names = " and ".join(_solvers(scenario))
    if not names:
        return f"no system has an offline solver for {scenario.setup.objective}"
    return f"the offline solver of {names} found no plan: the scenario is too large for this --effort, or not of its kind"


def run_of(scenario: Scenario, plan: Offline | None, effort: int) -> Run | None:
    """The run that carries out a plan; None where there is nothing to carry out."""
    if plan is None or not (plan.plans or plan.offers):
        return None
    return simulate(scenario, planned(f"offline-{effort}", plan))
