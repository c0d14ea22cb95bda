"""Capacity prices: what an item-slot of each kind would earn elsewhere, found by tatonnement.

Every recent arrival, refused or not, gets the offer that is best at the current capacity prices. The price of a kind whose
resulting use exceeds its share of the cluster rises; otherwise it falls.
"""

import math

from tradewind.model.arrays import Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.demand import NO_CAP, accept_chance, best_offer

CELLS = 120
_LOW, _HIGH = -5.0, 3.0
CHEAPEST = 1e-7
"""Lower limit of capacity prices; a multiplicative step cannot leave zero."""


@kernel
def fill_response(noise: Floats, response: Floats) -> None:
    """Tabulate the best log price minus f (CELLS,) over log(cost) - f on a fixed grid."""
    for j in range(CELLS):
        base = math.exp(_LOW + (_HIGH - _LOW) * j / (CELLS - 1)) if j > 0 else 0.0
        response[j] = best_offer(0.0, 0.0, base, NO_CAP, noise)[0]


@kernel
def respond(f: float, cost: float, log_cap: float, noise: Floats, response: Floats) -> tuple[float, float]:
    """Approximate `best_offer` without uncertainty about f from the table: log price - f and Pr(sale).

    The probability is 0 where no price up to the cap covers the cost.
    """
    place = 0.0
    if cost > 0.0:
        place = (math.log(cost) - f - _LOW) / (_HIGH - _LOW) * (CELLS - 1)
    if place >= CELLS - 1:
        return NO_CAP, 0.0
    cell = int(place) if place > 0.0 else 0
    part = place - cell if place > 0.0 else 0.0
    low, high = response[cell], response[cell + 1]
    # Where the best offer jumps from one peak to the other, a point in between would be wrong.
    x = low + part * (high - low) if high - low < 0.3 else (low if part < 0.5 else high)
    x = min(x, log_cap - f)
    if f + x < math.log(max(cost, 1e-300)):
        return x, 0.0
    return x, accept_chance(x, 0.0, noise)


@kernel
def nudge(price: Floats, use: Floats, room: Floats, pace: float) -> None:
    """One tatonnement step: price (R,) grows with the excess of use (R,) over room (R,), at most by e^(1/2)."""
    for r in range(price.shape[0]):
        excess = use[r] / room[r] - 1.0 if room[r] > 0.0 else 0.0
        price[r] = max(CHEAPEST, price[r] * math.exp(min(max(pace * excess, -0.5), 0.5)))
