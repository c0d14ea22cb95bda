"""The price of capacity: what an item-slot of each kind would have earned elsewhere, found by tatonnement.

Over the last arrivals (the refused too) every buyer gets the offer that is best at the present capacity prices; a kind
that would then be used above its share of the cluster becomes dearer, one below becomes cheaper.
"""

import math

from tradewind.model.arrays import Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.demand import accept_chance, best_offer

CELLS = 120
_LOW, _HIGH = -5.0, 3.0
CHEAPEST = 1e-7
"""Capacity prices stay above this, so that a multiplicative rise can begin."""


@kernel
def fill_response(law: Floats, response: Floats) -> None:
    """The best log mark (CELLS,) over the location f, as a function of log(cost) - f on a fixed grid."""
    for j in range(CELLS):
        base = math.exp(_LOW + (_HIGH - _LOW) * j / (CELLS - 1)) if j > 0 else 0.0
        response[j] = best_offer(0.0, 0.0, base, 50.0, law)[0]


@kernel
def respond(f: float, cost: float, log_cap: float, law: Floats, response: Floats) -> tuple[float, float]:
    """Nearly `best_offer` with no uncertainty about f, from the table: log price - f and Pr(sale).

    Where no admissible price covers the cost, nothing is sold.
    """
    place = 0.0
    if cost > 0.0:
        place = (math.log(cost) - f - _LOW) / (_HIGH - _LOW) * (CELLS - 1)
    if place >= CELLS - 1:
        return 50.0, 0.0
    cell = int(place) if place > 0.0 else 0
    part = place - cell if place > 0.0 else 0.0
    low, high = response[cell], response[cell + 1]
    # Where the best offer jumps from one peak to the other, a point in between would be wrong.
    x = low + part * (high - low) if high - low < 0.3 else (low if part < 0.5 else high)
    x = min(x, log_cap - f)
    if f + x < math.log(max(cost, 1e-300)):
        return x, 0.0
    return x, accept_chance(x, 0.0, law)


@kernel
def nudge(price: Floats, use: Floats, room: Floats, pace: float) -> None:
    """One tatonnement step: price (R,) grows with the excess of use (R,) over room (R,), at most by e^(1/2)."""
    for r in range(price.shape[0]):
        excess = use[r] / room[r] - 1.0 if room[r] > 0.0 else 0.0
        price[r] = max(CHEAPEST, price[r] * math.exp(min(max(pace * excess, -0.5), 0.5)))
