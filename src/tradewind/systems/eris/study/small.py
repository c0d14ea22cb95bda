"""Small extreme markets: one to three sites, three to eight bids, from hardly any bandwidth to plenty.

`python -m tradewind.systems.eris.study.small 400` prints what share of the bound policies reach on 400 of them (three
minutes of processor time), and how much more or less that is than without a floor.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.eris.bound import pooled_bound
from tradewind.worlds.simulate import simulate

FIRST_SEED = 31_000
Played = tuple[tuple[str, Mapping[str, Any]], ...]
"""Policies with their parameters."""
PLAYED: Played = (
    ("fcfs", {}),
    ("eris", {}),
    ("eris", {"floor": "learned"}),
    ("eris-preemptive", {}),
    ("eris-preemptive", {"payments": "critical"}),
    ("tiresias", {}),
    ("tiresias-elastic", {}),
)
"""The first has no floor."""


def settings(number: int) -> dict[str, Any]:
    """Random parameters of the workload."""
    rng = np.random.default_rng((number, 77))
    slots = int(rng.integers(3, 11))
    return {
        "size": "testbed", "sites": int(rng.integers(1, 4)), "jobs": int(rng.integers(3, 9)), "slots": slots,
        "last_arrival": int(rng.choice([0, slots // 3, slots // 2, slots - 1])), "cpu": float(rng.choice([6, 12])),
        "gpu": float(rng.choice([1, 2])), "ram_gb": 40.0, "chunks_per_worker": float(rng.choice([2, 8, 20, 40])),
        "bandwidth_gb": float(rng.choice([0.05, 0.2, 1, 20])), "scale_slots": float(rng.choice([1, 3])),
    }  # fmt: skip


def small_market(number: int, **changes: Any) -> Scenario:
    """The market with this number."""
    return workloads.generate("eris", {**settings(number), **changes}, FIRST_SEED + number)


def shares(scenario: Scenario, names: Played = PLAYED) -> Floats | None:
    """Share of the bound of each policy; None where nothing can be earned."""
    top = pooled_bound(scenario).bound
    if top <= 1e-6:
        return None
    return np.array([simulate(scenario, policies.find(name), params).value for name, params in names]) / top


def main() -> None:
    """Prints a line per policy."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rows = [row for n in range(count) if (row := shares(small_market(n))) is not None]
    found = np.array(rows)
    gain = found - found[:, :1]
    error = gain.std(axis=0) / len(found) ** 0.5
    print(f"{len(found)} of {count} markets in which something can be earned")
    for k, (name, params) in enumerate(PLAYED):
        words = "".join(f" {key}={value}" for key, value in params.items())
        print(
            f"{name}{words}: {found[:, k].mean():.3f} of the bound; than without a floor {gain[:, k].mean():+.3f} "
            f"(standard error {error[k]:.3f}), more in {(gain[:, k] > 1e-9).sum()}, less in {(gain[:, k] < -1e-9).sum()}"
        )


if __name__ == "__main__":
    main()
