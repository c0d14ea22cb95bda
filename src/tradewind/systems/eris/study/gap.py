"""Shares of three versions of the bound, to tell the gap of a policy from the gap of the bound.

`python -m tradewind.systems.eris.study.gap SIZE FIRST COUNT` prints, for `eris-preemptive`, the same without futures and
with payments, and `eris`, the mean share (with its standard error) of the bound, of the same LP without cuts, and of the
LP without a bandwidth limit per schedule.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.eris.bound import WHOLE, pooled_bound, pooled_jobs
from tradewind.systems.eris.kernels.bound import BoundEffort, configuration_bound
from tradewind.systems.eris.kernels.pool import pooled_capacity
from tradewind.worlds.simulate import simulate

PLAYED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("eris-preemptive", {}),
    ("eris-preemptive", {"samples": 0}),
    ("eris-preemptive", {"payments": "critical"}),
    ("eris", {}),
)
PLAIN = BoundEffort(rounds=WHOLE.rounds)


def limits(scenario: Scenario) -> Floats:
    """The bound, the bound without cuts, and the bound without a bandwidth limit per schedule (3,), in USD."""
    capacity = pooled_capacity(scenario.setup, scenario.setup.slots)
    wide = configuration_bound(pooled_jobs(scenario, None), capacity, PLAIN)
    return np.array([pooled_bound(scenario).bound, pooled_bound(scenario, PLAIN).bound, wide.bound])


def shares(size: str, first: int, count: int) -> Floats:
    """Shares of the three bounds by seed and policy (count, len(PLAYED), 3)."""
    found = []
    for seed in range(first, first + count):
        scenario = workloads.generate("eris", {"size": size}, seed)
        values = [simulate(scenario, policies.find(name), params).value for name, params in PLAYED]
        found.append(np.array(values)[:, None] / limits(scenario))
    return np.array(found)


def main() -> None:
    """Prints a line per policy."""
    size, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = shares(size, first, count)
    error = found.std(axis=0) / max(count - 1, 1) ** 0.5
    for (name, params), mean, off in zip(PLAYED, found.mean(axis=0), error, strict=True):
        settings = "".join(f" {key}={value}" for key, value in params.items())
        print(
            f"{size} {first}-{first + count - 1} {name}{settings}: {mean[0]:.4f} ({off[0]:.4f}) of the bound, "
            f"{mean[1]:.4f} without cuts, {mean[2]:.4f} without a bandwidth limit per schedule"
        )


if __name__ == "__main__":
    main()
