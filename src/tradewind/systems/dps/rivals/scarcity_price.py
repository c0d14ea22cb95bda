"""Eris's price function in DPS's market: the unit price grows with the share of the type that is in use.

Eris (6) prices a unit of a resource at alpha * (gamma^share - 1). In DPS's market a job pays once for each item, whatever
its runtime, and jobs start at once, so there are no future slots to price; what remains is

    p_r = cap * (gamma^u_r - 1) / (gamma - 1)

with u_r in [0, 1] the share of type r in use including the job, and cap the price in USD of the last item.
Nothing is learned: this is the scarcity half of Eris, for comparison with prices that learn what customers would pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.systems.dps.shared.order import Order
from tradewind.systems.dps.shared.seller import Seller
from tradewind.systems.dps.shared.spec import seller_spec


class ScarcityPrice(Seller):
    """Unit prices from current use."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int) -> None:
        super().__init__(setup, params["placement"], seed)
        self._gamma = params["gamma"]
        self._cap = self.scale.share(params["cap"] or self.scale.usd, "eris-units.cap")
        if not 1.0 < self._gamma <= 1e12:
            raise InputError(
                f"found {self._gamma}; allowed is more than 1, up to 1e12", where="eris-units.gamma"
            )

    def price(self, order: Order) -> tuple[float, str]:
        both = (
            (order.idle_k, order.d_k, self.kinds.cap_k[order.k]),
            (order.idle_m, order.d_m, self.kinds.cap_m[order.m]),
        )
        used = [float(min(1.0, max(0.0, 1.0 - (idle - items) / cap))) for idle, items, cap in both]
        price = [self._cap * (self._gamma**u - 1.0) / (self._gamma - 1.0) for u in used]
        self._units = (price[0], price[1])
        payment = price[0] * order.d_k + price[1] * order.d_m
        return payment, f"{used[0]:.0%} and {used[1]:.0%} of the two types in use including this job"

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        return self._units


ERIS_UNITS = seller_spec(
    "eris-units",
    "Eris's price function in DPS's market: unit prices grow exponentially with the share in use",
    ScarcityPrice,
    {
        "gamma": Param(default=30.0, doc="base of the price function (6)", least=1, most=1e12),
        "cap": Param(default=0.0, doc="unit price in USD when everything is in use; 0: the highest", least=0),
    },
    placement="best-fit",
)
