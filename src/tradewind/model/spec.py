"""Spec: the declaration of a policy: its name, parameters, what it needs and what it supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tradewind.model.setup import OBJECTIVES, Objective, Setup
from tradewind.model.view import Policy

Trigger = Literal["arrival", "completion", "slot", "change", "timer"]
Need = Literal["runtime", "tree", "concave tariff", "links", "bid", "horizon"]
EVERY_EVENT: frozenset[Trigger] = frozenset(("arrival", "completion", "change", "timer"))
EVERY_SLOT: frozenset[Trigger] = frozenset(("slot", "timer"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A parameter: its default (which also gives its type), a description and its allowed values.

    file     a path stands for the text of that file, which becomes the value
    tenants  NAME=VALUE pairs, separated by commas; each name must be a tenant of the scenario
    later    left out of run files where it has its default, because it came later than files that must not change
    """

    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    file: bool = False
    tenants: bool = False
    later: bool = False

    @property
    def range(self) -> str:
        """The allowed numbers in words, or "" if all are."""
        if self.least is None:
            return "" if self.most is None else f"{self.most:.15g} or less"
        return f"{self.least:.15g} or more" if self.most is None else f"{self.least:.15g} to {self.most:.15g}"


DECLARATION, MEASUREMENT = "declared", "measured"
ESTIMATES: Mapping[str, Param] = {
    "estimates": Param(
        default=DECLARATION,
        doc="times of jobs: as declared, or corrected by what was measured of the job, its tenant's jobs and all jobs",
        choices=(DECLARATION, MEASUREMENT),
        later=True,
    )
}
"""The parameter of policies that can use estimates (model.estimate)."""
Factory = Callable[[Setup, Mapping[str, Any], np.random.Generator], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Name, factory and capabilities of a policy; `run` rejects a scenario that does not fit before it starts.

    works          fixed, stream, dataset, rounds, or more exactly rounds/colocated, rounds/flows, rounds/ring, …
    architectures  ps, ring
    objectives     objectives under which it may be run
    needs          runtime: public runtimes · tree: nodes and links form a tree · concave tariff · links · bid: a utility
                   horizon: plans for a known end of the run, so the scenario may have no window
    pricer         quotes a price when a job arrives
    binding        an accepted plan never changes
    serial_quotes  a job whose quote depends on what open quotes hold waits until they are closed
    charges        charges jobs after the run
    uncharged      parameters with which such a policy does not
    keeps_caps     respects spend caps of tenants (Setup.spend_caps)
    hindsight      "module:function" (scenario, given parameters) -> all parameters, for a baseline that knows the future
    compiled       "module:function" (scenario, its jobs as columns, parameters) -> the tables of the journal that the loop
                   would write, for plain jobs; raises Unsupported with the reason where it cannot
    system         the system it belongs to, which adds explanations, bills and rivals
    """

    name: str
    summary: str
    factory: Factory
    works: frozenset[str]
    architectures: frozenset[str] = frozenset(("ps", "ring"))
    objectives: frozenset[Objective] = frozenset(OBJECTIVES)
    triggers: frozenset[Trigger] = EVERY_EVENT
    needs: frozenset[Need] = frozenset()
    params: Mapping[str, Param] = field(default_factory=dict)
    pricer: bool = False
    binding: bool = False
    serial_quotes: bool = False
    charges: bool = False
    uncharged: Mapping[str, Any] = field(default_factory=dict)
    keeps_caps: bool = False
    hindsight: str = ""
    compiled: str = ""
    system: str = ""

    def charges_with(self, params: Mapping[str, Any]) -> bool:
        """Whether it charges jobs after the run with these parameters."""
        return self.charges and not (self.uncharged and self.uncharged.items() <= params.items())

    @property
    def online(self) -> bool:
        """Whether it decides without knowledge of the future."""
        return not self.hindsight
