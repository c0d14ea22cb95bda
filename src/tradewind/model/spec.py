"""Spec: one line of the catalogue. What a policy is called, needs and supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tradewind.model.setup import OBJECTIVES, Objective, Setup
from tradewind.model.view import Policy

Trigger = Literal["arrival", "completion", "slot", "change", "timer"]
Need = Literal["runtime", "tree", "concave tariff", "links", "bid"]
EVERY_EVENT: frozenset[Trigger] = frozenset(("arrival", "completion", "change", "timer"))
EVERY_SLOT: frozenset[Trigger] = frozenset(("slot", "timer"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A knob: its default (whose type is the type of the knob), what it does, and what it may be."""

    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def range(self) -> str:
        """The numbers allowed, in words; empty where every number is."""
        if self.least is None:
            return "" if self.most is None else f"{self.most:.15g} or less"
        return f"{self.least:.15g} or more" if self.most is None else f"{self.least:.15g} to {self.most:.15g}"


Factory = Callable[[Setup, Mapping[str, Any], np.random.Generator], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Name, factory and what the policy can do; `run` refuses a mismatch before it starts.

    works          fixed, stream, dataset, rounds, or more exactly rounds/colocated, rounds/flows, rounds/ring, …
    architectures  ps, ring
    objectives     what it tries to make good (it may be run and measured under others listed here)
    needs          runtime: public runtimes · tree: nodes and links form a tree · concave tariff · links · bid: a utility
    pricer         quotes on arrival
    binding        an accepted plan never changes
    charges        asks for payments when the run is over
    keeps_caps     keeps what tenants may spend at most (Setup.spend_caps)
    hindsight      "module:function" (scenario, given parameters) -> all parameters, for a baseline that knows the future
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
    charges: bool = False
    keeps_caps: bool = False
    hindsight: str = ""
    system: str = ""

    @property
    def online(self) -> bool:
        """Whether it decides without knowing the future."""
        return not self.hindsight
