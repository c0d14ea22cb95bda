"""Floor prices of the named sizes by replaying past days: `python -m tradewind.systems.eris.study.reserve [SIZE ...]`.

The search begins at the scarcity prices of the pooled LP, and raises or lowers one price after another while `eris` earns
more welfare on random days of the same kind. No day of a benchmark, study or test is among them: their seeds begin at
HISTORY_SEED. It prints the table RESERVE of workload.py, which every scenario of the size then forecasts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from math import fsum

from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.eris.workload import BARE, HISTORY_SEED, SIZES, past_prices, settings
from tradewind.worlds.simulate import simulate

FloorPrices = tuple[float, ...]
DAYS = {"testbed": 300, "simulator": 1, "contended": 30, "crowded": 8}
"""Days to replay: about as many bids of each size, except for the simulator, where nothing is scarce."""
STEPS = (2**0.25, 2**0.125)
"""Factors by which a price is raised or lowered; the second is used once the first finds nothing better."""


def climb(start: FloorPrices, welfare: Callable[[FloorPrices], float]) -> FloorPrices:
    """Coordinate ascent from `start`; prices of 0 stay 0."""
    best, top = start, welfare(start)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for k, factor in product(range(len(start)), (step, 1 / step)):
                tried = (*best[:k], best[k] * factor, *best[k + 1 :])
                while best[k] > 0 and (found := welfare(tried)) > top:
                    best, top, moved = tried, found, True
                    tried = (*best[:k], best[k] * factor, *best[k + 1 :])
    return best


def earned(days: list[Scenario], prices: FloorPrices) -> float:
    """Welfare in USD of `eris` over these days at these floor prices."""
    floor = {"floor": ",".join(str(price) for price in prices)}
    return fsum(simulate(day, policies.find("eris"), floor).metrics["welfare_usd"] for day in days)


def reserve(size: str, count: int) -> FloorPrices:
    """Floor prices of a size from `count` days, to two significant digits."""
    days = [workloads.generate("eris", {"size": size}, HISTORY_SEED + day) for day in range(count)]
    values = settings({**BARE, "size": size})
    start = past_prices(days[0].setup.nodes, tuple(sorted(values.items())))
    return tuple(float(f"{price:.2g}") for price in climb(start, cache(partial(earned, days))))


def main() -> None:
    """Prints one line of RESERVE per size."""
    for size in sys.argv[1:] or SIZES:
        print(f'    "{size}": {reserve(size, DAYS[size])},', flush=True)


if __name__ == "__main__":
    main()
