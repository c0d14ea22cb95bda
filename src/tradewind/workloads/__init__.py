"""The catalogue of workloads: generators and trace readers that make scenarios.

A new workload is one file with a Workload in it and one line here. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import LookupFailed
from tradewind.model.params import settle
from tradewind.model.spec import Param

if TYPE_CHECKING:
    from tradewind.model.scenario import Scenario

CATALOGUE: dict[str, str] = {
    "apsp": "tradewind.workloads.apsp:APSP",
    "cluster": "tradewind.workloads.cluster:CLUSTER",
    "dps": "tradewind.workloads.dps:DPS",
    "eris": "tradewind.workloads.eris:ERIS",
    "gadget": "tradewind.workloads.gadget:GADGET",
    "gadget-trace": "tradewind.workloads.gadget_trace:GADGET_TRACE",
    "mlbroker": "tradewind.workloads.mlbroker:MLBROKER",
    "trace": "tradewind.workloads.trace:TRACE",
}
"""Name -> "module:attribute" of its Workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One line of the catalogue: generate(params, seed) makes the same scenario each time it is called."""

    name: str
    summary: str
    generate: Callable[[Mapping[str, Any], int], Scenario]
    params: Mapping[str, Param] = field(default_factory=dict)


def names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(CATALOGUE))


def find(name: str) -> Workload:
    """The catalogue line of a workload, or an error that suggests the nearest name."""
    if name not in CATALOGUE:
        raise LookupFailed("workload", name, CATALOGUE)
    module, _, attribute = CATALOGUE[name].partition(":")
    workload = getattr(import_module(module), attribute)
    assert isinstance(workload, Workload)
    assert workload.name == name
    return workload


def generate(name: str, params: Mapping[str, Any] | None = None, seed: int = 0) -> Scenario:
    """Makes a scenario; parameters not given take their defaults, text is read as the default's type."""
    workload = find(name)
    return workload.generate(settle(name, workload.params, params or {}), seed)
