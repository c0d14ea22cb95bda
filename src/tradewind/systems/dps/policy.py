"""DPS: posted prices learned from yes and no, and placement.

`dps` is ours: one demand model for the whole bundle, capacity prices, runtime known before the price.
`dps-paper` is Algorithms 1 and 2 of Zhang et al. with theta and delta as parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.model.errors import InputError
from tradewind.model.setup import Objective, Setup
from tradewind.model.spec import Param, Spec, Trigger
from tradewind.systems.dps.kernels.arms import (
    UCB,
    UNIFORM,
    WINDOW,
    Arms,
    Rules,
    ask,
    ask_free,
    complete,
    free_share,
    grid_step,
    meet,
    new_arms,
    price_grid,
    settle_answer,
)
from tradewind.systems.dps.kernels.demand import HEAD, Prior
from tradewind.systems.dps.kernels.learner import Arrival, hear, pass_by, quote, reprice
from tradewind.systems.dps.kernels.state import PENDING, SEEN, Market, Mind, Tuning, new_mind
from tradewind.systems.dps.shared import RULES, Order, Seller, unit_price

WORKS = frozenset({"rounds/colocated", "rounds/none"})
OBJECTIVES: frozenset[Objective] = frozenset({"profit_usd", "welfare_usd"})
TRIGGERS: frozenset[Trigger] = frozenset({"completion", "change"})
_HISTORY = ("kinds", "demand", "logs", "hold", "offer", "answer")


class Learner(Seller):
    """Ours. The provider may set a floor and a cap for unit prices, and a fixed unit price for a tenant."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int) -> None:
        super().__init__(setup, params["placement"], seed)
        self._floor = unit_price(params["floor"], "dps.floor")
        self._cap = unit_price(params["cap"], "dps.cap")
        if self._floor > self._cap:
            raise InputError(f"found {self._floor} above the cap {self._cap}", where="dps.floor")
        self._contracts = contracts(params["contracts"])
        total, _ = self.kinds.expected(setup)
        self.market = Market(self.kinds.cap_k, self.kinds.cap_m, float(setup.slots), total)
        self.tuning, self.prior = Tuning(), Prior()
        self.mind = new_mind(self.market, self.tuning, self.prior, seed)

    def price(self, order: Order) -> tuple[float, str]:
        it = _arrival(order)
        offered = quote(self.mind, self.tuning, self.market, self.prior, it)
        items = order.d_k + order.d_m
        fixed = self._contracts.get(order.tenant)
        if offered.payment <= 0.0 and fixed is None:
            return -1.0, f"capacity is worth {offered.cost:.4g} to jobs to come, more than any price allowed"
        payment = min(max(offered.payment, self._floor * items), self._cap * items)
        said = [] if fixed is None else [f"contract price of {order.tenant}"]
        if fixed is not None:
            payment = fixed * items
        if offered.payment > 0.0:
            chance = reprice(self.mind, payment) if payment != offered.payment else offered.chance
            said.append(f"expected acceptance {chance:.0%}")
        said += [
            f"capacity cost {offered.cost:.4g}",
            f"mark-up {payment - offered.cost:.4g}",
            f"expected worth {offered.value:.4g}",
        ]
        return payment, ", ".join(said)

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        """In the proportion in which the two kinds are worth something, as far as floor and cap allow."""
        if order.tenant in self._contracts:
            return super().unit_prices(order, payment)
        mean, kinds_k = self.mind.mean, len(self.market.cap_k)
        worth_k, worth_m = np.exp(mean[HEAD + order.k]), np.exp(mean[HEAD + kinds_k + order.m])
        unit_k = payment * float(worth_k / (worth_k * order.d_k + worth_m * order.d_m))
        least = max(self._floor, (payment - self._cap * order.d_m) / order.d_k)
        most = min(self._cap, (payment - self._floor * order.d_m) / order.d_k)
        unit_k = min(max(unit_k, least), most)
        return unit_k, min(max((payment - unit_k * order.d_k) / order.d_m, self._floor), self._cap)

    def heard(self, order: Order, yes: bool) -> None:
        # A contract's customer with an offer that could not be priced is no lesson.
        if self.mind.counts[PENDING] >= 0:
            hear(self.mind, self.tuning, self.market, self.prior, yes)

    def passed(self, order: Order) -> None:
        pass_by(self.mind, self.tuning, self.market, self.prior, _arrival(order))

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        used = int(min(self.mind.counts[SEEN], len(self.mind.hold)))
        return {}, {
            name: array[:used] if name in _HISTORY else array for name, array in self.mind._asdict().items()
        }

    def _set_state(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        fresh = new_mind(self.market, self.tuning, self.prior, 0)
        for name, array in arrays.items():
            getattr(fresh, name)[: len(array)] = array
        self.mind = Mind(*fresh)


class Bandit(Seller):
    """Algorithm 1 with UCB arms per kind, and its simpler relatives."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int, mode: int = UCB) -> None:
        super().__init__(setup, params["placement"], seed)
        items = np.concatenate([self.kinds.cap_k, self.kinds.cap_m])
        _, expected = self.kinds.expected(setup)
        slots = float(setup.slots)
        theta = (
            free_share(slots, items, expected) if params["theta"] == "formula" else _share(params["theta"])
        )
        delta = grid_step(slots, items, expected) if params["delta"] == "formula" else _delta(params["delta"])
        self.rules = Rules(expected, items, np.asarray(theta * expected), slots, mode)
        self.arms = new_arms(price_grid(delta), len(items), seed)

    def _rows(self, order: Order) -> tuple[int, int]:
        return order.k, len(self.kinds.cap_k) + order.m

    def passed(self, order: Order) -> None:
        meet(self.arms, self.rules, *self._rows(order))

    def price(self, order: Order) -> tuple[float, str]:
        a, b = self._rows(order)
        if meet(self.arms, self.rules, a, b):
            ask_free(self.arms)
            self._units = (0.0, 0.0)
            return 0.0, "free of charge: the stage that only learns runtimes"
        self._units = ask(self.arms, self.rules, a, b)
        payment = self._units[0] * order.d_k + self._units[1] * order.d_m
        return payment, f"unit prices {self._units[0]:.3f} and {self._units[1]:.3f}"

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        return self._units

    def heard(self, order: Order, yes: bool) -> None:
        if self.arms.pending[0] >= 0:
            settle_answer(self.arms, self.rules, yes, order.d_k, order.d_m)

    def done(self, k: int, m: int, runtime: int) -> None:
        complete(self.arms, self.rules, k, len(self.kinds.cap_k) + m, runtime)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, dict(self.arms._asdict())

    def _set_state(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arms = Arms(**{name: np.array(array) for name, array in arrays.items()})


def contracts(text: str) -> dict[str, float]:
    """`"tenant=0.3,other=0.25"` -> unit prices per tenant."""
    found: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        tenant, sign, price = part.partition("=")
        try:
            number = float(price)
        except ValueError:
            sign = ""
        if not sign:
            raise InputError(f"found {part!r}; write tenant=0.3, several with commas", where="dps.contracts")
        found[tenant.strip()] = unit_price(number, f"dps.contracts[{tenant.strip()}]")
    return found


def _arrival(order: Order) -> Arrival:
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
    )


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"found {text!r}; allowed is a number, or formula", where=where) from None


def _share(text: str) -> float:
    value = _number(text, "dps.theta")
    if not 0.0 <= value < float("inf"):
        raise InputError(f"found {text}; theta must not be negative", where="dps.theta")
    return value


def _delta(text: str) -> float:
    value = _number(text, "dps.delta")
    if not 0.0 < value < 1.0:
        raise InputError(f"found {text}; delta lies between 0 and 1", where="dps.delta")
    return value


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**62))


def _placement(default: str) -> Param:
    doc = "where a job goes: the paper's Algorithm 2 (pa), the fullest server that takes it all (best-fit), random"
    return Param(default=default, doc=doc, choices=tuple(RULES))


def _bandit(name: str, summary: str, *, theta: str, mode: int = UCB, placement: str = "pa") -> Spec:
    """A catalogue line for one of the price-arm sellers."""
    params = {
        "theta": Param(
            default=theta, doc="share of the expected jobs served free at first, or formula (as printed)"
        ),
        "delta": Param(default="0.2", doc="step of the price grid, or formula (Theorem 2)"),
        "placement": _placement(placement),
    }
    return Spec(
        name=name,
        summary=summary,
        factory=lambda setup, values, rng: Bandit(setup, values, _seed(rng), mode),
        works=WORKS,
        architectures=frozenset({"ps"}),
        objectives=OBJECTIVES,
        triggers=TRIGGERS,
        params=params,
        pricer=True,
        binding=True,
        system="dps",
    )


DPS = Spec(
    name="dps",
    summary="Posted prices from a demand model learned by yes and no, with capacity prices; ours",
    factory=lambda setup, values, rng: Learner(setup, values, _seed(rng)),
    works=WORKS,
    architectures=frozenset({"ps"}),
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    params={
        "placement": _placement("best-fit"),
        "floor": Param(default=0.0, doc="no unit price below this"),
        "cap": Param(default=1.0, doc="no unit price above this"),
        "contracts": Param(default="", doc="fixed unit prices: tenant=0.3,other=0.25"),
    },
    pricer=True,
    binding=True,
    system="dps",
)
DPS_PAPER = _bandit(
    "dps-paper", "DPS as in the paper: free at first, then UCB arms for each type", theta="0.11"
)
DPS_SIMPLE = _bandit("dps-simple", "DPS without its free stage", theta="0")
TOP = _bandit(
    "top", "TOP-like: each type's best price over a sliding window of offers", theta="0", mode=WINDOW
)
RANDOM_PRICE = _bandit("random", "Unit prices drawn from [0, 1]", theta="0", mode=UNIFORM)
DPS_RS = _bandit("dps-rs", "DPS as in the paper with random placement", theta="0.11", placement="random")
