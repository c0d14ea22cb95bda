"""Eris's price function in DPS's market: a unit costs the more, the larger the share of its type that is in use.

Eris (6) prices a unit of a resource at alpha * (gamma^share - 1). In DPS's market a job pays once for each item, whatever
its runtime, and jobs begin at once, so there are no future slots to price; what stays is

    p_r = cap * (gamma^u_r - 1) / (gamma - 1)

with u_r the share of type r in use once the job has its items, in [0, 1]; cap in USD per item, reached when all is taken.
Nothing is learned: it is the scarcity half of Eris, to be compared with prices that learn what customers would pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.systems.dps.policy import OBJECTIVES, TRIGGERS, WORKS
from tradewind.systems.dps.shared import RULES, Order, Seller, unit_price


class ScarcityPrice(Seller):
    """Unit prices from what is in use."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int) -> None:
        super().__init__(setup, params["placement"], seed)
        self._gamma, self._cap = params["gamma"], unit_price(params["cap"], "eris-units.cap")
        if not 1.0 < self._gamma <= 1e12:
            raise InputError(f"found {self._gamma}; allowed is more than 1", where="eris-units.gamma")

    def price(self, order: Order) -> tuple[float, str]:
        both = (
            (order.idle_k, order.d_k, self.kinds.cap_k[order.k]),
            (order.idle_m, order.d_m, self.kinds.cap_m[order.m]),
        )
        used = [float(min(1.0, max(0.0, 1.0 - (idle - items) / cap))) for idle, items, cap in both]
        price = [self._cap * (self._gamma**u - 1.0) / (self._gamma - 1.0) for u in used]
        self._units = (price[0], price[1])
        payment = price[0] * order.d_k + price[1] * order.d_m
        return payment, f"{used[0]:.0%} and {used[1]:.0%} of the two types in use with this job"

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        return self._units


ERIS_UNITS = Spec(
    name="eris-units",
    summary="Eris's price function in DPS's market: unit prices grow exponentially with the share in use",
    factory=lambda setup, values, rng: ScarcityPrice(setup, values, int(rng.integers(2**62))),
    works=WORKS,
    architectures=frozenset({"ps"}),
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    params={
        "gamma": Param(default=30.0, doc="base of the price function (6)"),
        "cap": Param(default=1.0, doc="unit price when everything is in use"),
        "placement": Param(default="best-fit", doc="pa, best-fit or random", choices=tuple(RULES)),
    },
    pricer=True,
    binding=True,
    system="dps",
)
