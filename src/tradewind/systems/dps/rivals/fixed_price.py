"""Fixed unit prices in hindsight: bfp, bfp-tau whose prices also grow with the runtime, bfp-printed after the paper's text.

The prices come from `bound.py`, which knows every budget; these are references, not online policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.systems.dps.shared.order import Order, PriceScale
from tradewind.systems.dps.shared.seller import Seller
from tradewind.systems.dps.shared.spec import seller_spec


class FixedPrice(Seller):
    """Every job pays p_k d_k + p_m d_m; each price is multiplied by (spread runtime / median)^power and capped at 1."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int) -> None:
        super().__init__(setup, params["placement"], seed)
        known = read_prices(params["prices"], setup, self.scale)
        names = setup.resources
        self._p_k = np.array([known[names[r]] for r in self.kinds.first])
        self._p_m = np.array([known[names[r]] for r in self.kinds.second])
        self._power, self._median = params["power"], params["median_slots"]
        if not self._median > 0:
            raise InputError(
                f"found {self._median}; allowed is a positive number of slots", where="bfp.median_slots"
            )

    def price(self, order: Order) -> tuple[float, str]:
        factor = (max(order.spread, 1) / self._median) ** self._power if self._power else 1.0
        self._units = (
            min(1.0, float(self._p_k[order.k]) * factor),
            min(1.0, float(self._p_m[order.m]) * factor),
        )
        payment = self._units[0] * order.d_k + self._units[1] * order.d_m
        return payment, f"fixed unit prices {self._units[0]:.3f} and {self._units[1]:.3f}"

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        return self._units


def read_prices(text: str, setup: Setup, scale: PriceScale) -> dict[str, float]:
    """`"worker-01=0.4,ps-01=0.3"` -> price per resource; every resource needs one. A single number is the price of all.

    Prices are in USD; the result has shares of the highest price.
    """
    where = "bfp.prices"
    found: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, sign, price = part.rpartition("=")
        try:
            number = scale.share(float(price), where)
        except ValueError:
            raise InputError(
                f"found {part!r}; write worker-01=0.4, separated by commas for several resources", where=where
            ) from None
        if sign:
            setup.resource(name)
            found[name] = number
        else:
            found.update(dict.fromkeys(setup.resources, number))
    missing = [name for name in setup.resources if name not in found]
    if missing:
        raise InputError(
            f"no price for {missing[0]}; give one per resource, or one number for all "
            "(tradewind.systems.dps.bound.best_prices finds the best ones in hindsight)",
            where=where,
        )
    return found


def _spec(name: str, summary: str, hindsight: str) -> Spec:
    params = {
        "prices": Param(
            default="0.4",
            doc="unit prices in USD: one number, or worker-01=0.4,ps-01=0.3,…; the best ones in hindsight where not given",
        ),
        "power": Param(default=0.0, doc="power of (spread runtime / median) in the prices"),
        "median_slots": Param(default=1.0, doc="median of the spread runtimes, in slots"),
    }
    return seller_spec(name, summary, FixedPrice, params, placement="pa", hindsight=hindsight)


BFP = _spec("bfp", "Best fixed unit price per type in hindsight", "tradewind.systems.dps.bound:bfp")
BFP_TAU = _spec(
    "bfp-tau",
    "Best fixed unit prices in hindsight, times a power of the runtime",
    "tradewind.systems.dps.bound:bfp_tau",
)
BFP_PRINTED = _spec(
    "bfp-printed",
    "Fixed unit prices that maximise the paper's bound (3), workers and servers apart, in hindsight",
    "tradewind.systems.dps.bound:bfp_printed",
)
