"""Workload: a generator or reader that makes scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tradewind.model.errors import TradewindError, WorkloadError, raised
from tradewind.model.params import check_seed, resolve_params
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named generator. `generate(params, seed)` returns the same scenario for the same arguments."""

    name: str
    summary: str
    generate: Callable[[Mapping[str, Any], int], Scenario]
    params: Mapping[str, Param] = field(default_factory=dict)

    def make(self, given: Mapping[str, Any], seed: int = 0) -> Scenario:
        """A scenario; parameters not given take their defaults, text is read as the default's type."""
        check_seed(seed)
        values = resolve_params(self.name, self.params, given)
        try:
            made = self.generate(values, seed)
        except TradewindError:
            raise
        except Exception as error:
            raise WorkloadError(f"{self.name} failed: {raised(error)}") from error
        if not isinstance(made, Scenario):
            raise WorkloadError(f"{self.name} returned {type(made).__name__}; it must return a Scenario")
        return made
