"""What a wrong forecast costs: `python -m tradewind.systems.eris.study.forecasts [FIRST_SEED]`.

Prints, for forecasts that are off by a factor, the welfare of `eris` over that of no floor: with the forecast as a fixed
floor, and as it is believed (policy/trust.py). About five minutes of processor time.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from math import fsum
from typing import Any

from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.worlds.simulate import simulate

FACTORS = (0.5, 1.0, 2.0, 4.0, 100.0)
KINDS: tuple[tuple[dict[str, Any], int], ...] = (
    ({"size": "testbed"}, 30),
    ({"size": "testbed", "jobs": 30}, 12),
    ({"size": "testbed", "jobs": 40, "sites": 5}, 12),
    ({"size": "testbed", "jobs": 20, "slots": 30, "sites": 4}, 12),
    ({"size": "contended"}, 3),
)
"""Parameters of the workload, and days."""


def stating(scenario: Scenario, factor: float) -> Scenario:
    """The scenario with a forecast that is off by this factor."""
    wrong = {key: factor * usd for key, usd in scenario.setup.forecast.items()}
    return replace(scenario, setup=replace(scenario.setup, forecast=wrong))


def earned(scenario: Scenario, *, floor: str = "auto") -> float:
    """Welfare of `eris` in USD; floor "fixed": the forecast's prices, whatever is sold."""
    prices = ",".join(str(usd) for usd in scenario.setup.forecast.values())
    return simulate(scenario, policies.find("eris"), {"floor": prices if floor == "fixed" else floor}).value


def main() -> None:
    """Prints a line per kind of day and factor."""
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for params, count in KINDS:
        days = [workloads.generate("eris", params, seed) for seed in range(first, first + count)]
        none = fsum(earned(day, floor="none") for day in days)
        for factor in FACTORS:
            wrong = [stating(day, factor) for day in days]
            fixed, ours = (fsum(earned(day, floor=floor) for day in wrong) for floor in ("fixed", "auto"))
            print(f"{params}, {count} days, forecast times {factor:g}: {fixed / none:.3f} {ours / none:.3f}")


if __name__ == "__main__":
    main()
