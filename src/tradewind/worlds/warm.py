"""Compiles the kernels of a system's policies, so that no later call waits for it."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.engine import bounds
from tradewind.registry import policies, systems, workloads
from tradewind.worlds.compiled import why_not
from tradewind.worlds.simulate import simulate

SMALL = {
    "jobs": 20, "servers": 5, "slots": 6, "sites": 5, "jobs_per_slot": 5, "worker_types": 3, "server_types": 3,
}  # fmt: skip
"""Parameters that make a workload small; each takes those that it has."""


def warm_up(system: str, names: Iterable[str] = ()) -> None:
    """Runs policies of a system on a few jobs of its own; numba keeps what it compiled.

    By default all, also those that can by their compiled path, and the bound.
    """
    if system not in systems():  # a policy of one's own
        return
    workload = workloads.find(system)
    given = {key: value for key, value in SMALL.items() if key in workload.params}
    scenario = workloads.generate(system, given, 0)
    if not names:
        bounds.bound(scenario)
    for name in names or systems()[system].policies:
        spec = policies.find(name)
        simulate(scenario, spec)
        if not names and not why_not(scenario, spec):
            simulate(scenario, spec, fast=True)
