"""`dps`, ours: one demand model for the whole bundle, capacity prices, and the runtime known before the price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import ESTIMATES, MEASUREMENT, Param
from tradewind.model.units import US_PER_HOUR
from tradewind.systems.dps.kernels.demand import HEAD, NO_CAP, Prior
from tradewind.systems.dps.kernels.learner import Arrival, observe, observe_unpriced, quote, reprice
from tradewind.systems.dps.kernels.state import (
    PENDING,
    SEEN,
    LearnerState,
    Market,
    Settings,
    Tuning,
    new_learner,
)
from tradewind.systems.dps.shared.history import Past, read_history
from tradewind.systems.dps.shared.order import Order, PriceScale
from tradewind.systems.dps.shared.seller import Seller
from tradewind.systems.dps.shared.spec import seller_spec

_HISTORY = ("kinds", "demand", "logs", "paid", "hold", "came", "offer", "answer")
ENDLESS = 4096
"""Latest arrivals that the learner keeps in a market without an end."""
_SAVED_AS = {"noise": "law"}
"""Fields of the learner whose name in a saved state differs."""
STATED, LEARNED = "stated", "learned"
"""Scales of prices: as the scenario states it, or learned from the answers alone."""
UNSURE = 3.0
"""Standard deviation of the log of what items are worth, where the scale is learned: a factor of 20 either way."""


class Learner(Seller):
    """Learns what customers would pay. The provider may set a floor and a cap of unit prices, and prices per tenant.

    Inside, money is counted in units of the highest unit price, `scale.usd`.
    """

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int) -> None:
        super().__init__(setup, params["placement"], seed)
        self.measured = params["estimates"] == MEASUREMENT
        learned = params["scale"] == LEARNED
        log_top = NO_CAP if learned else 0.0
        most = math.exp(log_top)
        self._floor = self.scale.share(params["floor"], "dps.floor", most)
        self._cap = self.scale.share(params["cap"], "dps.cap", most) if params["cap"] else most
        if self._floor > self._cap:
            raise InputError(
                f"found {params['floor']}, above the cap {params['cap']}; it must not exceed the cap",
                where="dps.floor",
            )
        self._contracts = contracts(params["contracts"], self.scale, most)
        total, _ = self.kinds.expected(setup)
        slots = float(setup.slots) if setup.window_slots is None else float("inf")
        market = Market(self.kinds.cap_k, self.kinds.cap_m, slots, total, log_top)
        prior = Prior(g=UNSURE) if learned else Prior()
        self._settings = Settings(Tuning(), market, prior)
        self._learner = self._new_learner(seed)
        for past in read_history(params["history"], setup, "dps.history"):
            self._remember(past)

    def _new_learner(self, seed: int) -> LearnerState:
        if self.setup.window_slots is None:
            return new_learner(self._settings, seed)
        return new_learner(self._settings, seed, ENDLESS)

    def _remember(self, past: Past) -> None:
        """Learn from an offer of the past and its answer, as if it had been the offer of this seller."""
        k, m = self.kinds.row_k[past.worker], self.kinds.row_m[past.server]
        slots = max(1, math.ceil(past.hours * US_PER_HOUR / self.setup.slot_us))
        log_paid = math.log(self.scale.items(slots))
        # nothing is idle or in use as far as an offer of the past is concerned
        arrival = Arrival(
            k, m, past.workers, past.servers, 0, slots, slots,
            int(self.kinds.cap_k[k]), int(self.kinds.cap_m[m]), log_paid,
        )  # fmt: skip
        if quote(self._learner, self._settings, arrival).payment > 0.0:
            reprice(self._learner, past.price_usd / self.scale.usd)
            observe(self._learner, self._settings, past.accepted)

    def price(self, order: Order) -> tuple[float, str]:
        offered = quote(self._learner, self._settings, self._arrival(order))
        paid, usd = self.scale.items(order.spread), self.scale.usd
        items = (order.d_k + order.d_m) * paid
        fixed = self._contracts.get(order.tenant)
        if offered.payment <= 0.0 and fixed is None:
            return -1.0, (
                f"capacity is worth {offered.cost * usd:.4g} to future jobs, more than any allowed price"
            )
        payment = min(max(offered.payment, self._floor * items), self._cap * items)
        reasons = [] if fixed is None else [f"contract price of {order.tenant}"]
        if fixed is not None:
            payment = fixed * items
        if offered.payment > 0.0:
            chance = reprice(self._learner, payment) if payment != offered.payment else offered.chance
            reasons.append(f"expected acceptance {chance:.0%}")
        reasons += [
            f"capacity cost {offered.cost * usd:.4g}",
            f"mark-up {(payment - offered.cost) * usd:.4g}",
            f"expected worth {offered.value * usd:.4g}",
        ]
        return payment / paid, ", ".join(reasons)

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        """Split in proportion to the learned worth of the two kinds, as far as floor and cap allow."""
        if order.tenant in self._contracts:
            return super().unit_prices(order, payment)
        mean, kinds_k = self._learner.mean, len(self.kinds.cap_k)
        worth_k, worth_m = np.exp(mean[HEAD + order.k]), np.exp(mean[HEAD + kinds_k + order.m])
        unit_k = payment * float(worth_k / (worth_k * order.d_k + worth_m * order.d_m))
        least = max(self._floor, (payment - self._cap * order.d_m) / order.d_k)
        most = min(self._cap, (payment - self._floor * order.d_m) / order.d_k)
        unit_k = min(max(unit_k, least), most)
        return unit_k, min(max((payment - unit_k * order.d_k) / order.d_m, self._floor), self._cap)

    def pending_price(self) -> list[int]:
        """Row of the history, and the arrivals so far."""
        row, self._learner.counts[PENDING] = int(self._learner.counts[PENDING]), -1
        return [row, int(self._learner.counts[SEEN])]

    def observe_answer(self, order: Order, accepted: bool, priced: list[int]) -> None:
        row, seen = priced
        # A contract price for an offer that could not be priced teaches nothing, nor does an answer to a forgotten row.
        if row >= 0 and self._learner.counts[SEEN] - seen < len(self._learner.hold):
            self._learner.counts[PENDING] = row
            observe(self._learner, self._settings, accepted)

    def observe_no_room(self, order: Order) -> None:
        observe_unpriced(self._learner, self._settings, self._arrival(order))

    def _arrival(self, order: Order) -> Arrival:
        return Arrival(
            order.k,
            order.m,
            order.d_k,
            order.d_m,
            order.slot,
            order.runtime,
            order.spread,
            order.idle_k,
            order.idle_m,
            math.log(self.scale.items(order.spread)),
        )

    def _state(self) -> dict[str, NDArray[Any]]:
        used = int(min(self._learner.counts[SEEN], len(self._learner.hold)))
        return {
            _SAVED_AS.get(name, name): array[:used] if name in _HISTORY else array
            for name, array in self._learner._asdict().items()
        }

    def _set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._learner = self._new_learner(0)
        for name, array in self._learner._asdict().items():
            saved = arrays[_SAVED_AS.get(name, name)]
            array[: len(saved)] = saved


def contracts(text: str, scale: PriceScale, most: float) -> dict[str, float]:
    """`"tenant=0.3,other=0.25"` -> unit prices per tenant, as shares of the highest."""
    found: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        tenant, sign, price = part.partition("=")
        try:
            number = float(price)
        except ValueError:
            sign = ""
        if not sign:
            raise InputError(
                f"found {part!r}; write tenant=0.3, separated by commas for several tenants",
                where="dps.contracts",
            )
        found[tenant.strip()] = scale.share(number, f"dps.contracts[{tenant.strip()}]", most)
    return found


DPS = seller_spec(
    "dps",
    "Posted prices from a demand model learned from accepted and declined offers, with capacity prices; ours",
    Learner,
    {
        "floor": Param(default=0.0, doc="lowest unit price in USD", least=0),
        "cap": Param(
            default=0.0, doc="highest unit price in USD; 0: as the scale of the scenario says", least=0
        ),
        "contracts": Param(
            default="", doc="fixed unit prices per tenant in USD: tenant=0.3,other=0.25", tenants=True
        ),
        "scale": Param(
            default=STATED,
            doc="what items are worth: stated by the scenario's forecast (usd_per_item or usd_per_item_hour; without it "
            "unit prices end at 1 USD), or learned from the answers, without a limit",
            choices=(STATED, LEARNED),
        ),
        "history": Param(
            default="",
            doc="past offers and answers to learn from first: a CSV file with the columns worker, workers, server, servers, "
            "hours, price_usd, accepted",
            file=True,
        ),
        **ESTIMATES,
    },
    placement="best-fit",
)
