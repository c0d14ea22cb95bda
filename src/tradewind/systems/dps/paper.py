"""The paper's DPS (Zhang et al., Algorithms 1 and 2), with theta and delta as parameters, and its two variants.

It divides a known number of jobs over a known number of slots, so it needs a market with an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.systems.dps.kernels.arms import (
    UCB,
    Arms,
    BanditSettings,
    count_arrival,
    free_share,
    grid_step,
    new_arms,
    observe_answer,
    observe_completion,
    offer,
    offer_free,
    price_grids,
)
from tradewind.systems.dps.shared.order import Order
from tradewind.systems.dps.shared.seller import Seller
from tradewind.systems.dps.shared.spec import seller_spec


class Bandit(Seller):
    """Algorithm 1: one bandit per kind over a grid of unit prices. Its `mode` selects the rewards of the arms."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], seed: int, mode: int = UCB) -> None:
        super().__init__(setup, params["placement"], seed)
        items = np.concatenate([self.kinds.cap_k, self.kinds.cap_m])
        _, expected = self.kinds.expected(setup)
        slots = float(setup.slots)
        theta, delta = params["theta"], params["delta"]
        share = free_share(slots, items, expected) if theta == "formula" else _theta(theta)
        kinds = len(self.kinds.cap_k), len(self.kinds.cap_m)
        steps = grid_step(slots, items, expected) if delta == "formula" else _deltas(delta, *kinds)
        self._settings = BanditSettings(expected, items, np.asarray(share * expected), slots, mode)
        self._arms = new_arms(price_grids(steps), seed)
        self._units = (0.0, 0.0)

    def _rows(self, order: Order) -> tuple[int, int]:
        return order.k, len(self.kinds.cap_k) + order.m

    def price(self, order: Order) -> tuple[float, str]:
        a, b = self._rows(order)
        if count_arrival(self._arms, self._settings, a, b):
            offer_free(self._arms)
            self._units = (0.0, 0.0)
            return 0.0, "free of charge: the first stage learns runtimes only"
        self._units = offer(self._arms, self._settings, a, b)
        payment = self._units[0] * order.d_k + self._units[1] * order.d_m
        return payment, f"unit prices {self._units[0]:.3f} and {self._units[1]:.3f}"

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        return self._units

    def observe_no_room(self, order: Order) -> None:
        count_arrival(self._arms, self._settings, *self._rows(order))

    def pending_price(self) -> list[int]:
        """Rows and arms of the two prices."""
        return [int(each) for each in self._arms.pending]

    def observe_answer(self, order: Order, accepted: bool, priced: list[int]) -> None:
        self._arms.pending[:] = priced
        if priced[0] >= 0:
            observe_answer(self._arms, self._settings, accepted, order.d_k, order.d_m)

    def observe_release(self, k: int, m: int, runtime: int) -> None:
        observe_completion(self._arms, self._settings, k, len(self.kinds.cap_k) + m, runtime)

    def _state(self) -> dict[str, NDArray[Any]]:
        return dict(self._arms._asdict())

    def _set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arms = Arms(**{name: np.array(array) for name, array in arrays.items()})


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"found {text!r}; allowed is a number or 'formula'", where=where) from None


def _theta(text: str) -> float:
    value = _number(text, "theta")
    if not 0.0 <= value < float("inf"):
        raise InputError(f"found {text}; it must be finite and not negative", where="theta")
    return value


def _deltas(text: str, kinds_k: int, kinds_m: int) -> Floats:
    """Step of each kind (R,): one number, or workers,servers."""
    values = [_number(part, "delta") for part in text.split(",")]
    if len(values) > 2 or not all(0.0 < value < 1.0 for value in values):
        raise InputError(
            f"found {text!r}; it must lie between 0 and 1: one number, or one for workers and one for parameter servers",
            where="delta",
        )
    return np.repeat([values[0], values[-1]], [kinds_k, kinds_m])


def bandit_spec(name: str, summary: str, *, theta: str, mode: int = UCB, placement: str = "pa") -> Spec:
    """A catalogue line of a seller with price arms."""
    params = {
        "theta": Param(
            default=theta, doc="share of the expected jobs that is free at first, or formula (as printed)"
        ),
        "delta": Param(
            default="0.2",
            doc="step of the price grid (0.2, or workers and servers apart: 0.2,0.1), or formula (Theorem 2)",
        ),
    }
    return seller_spec(
        name,
        summary,
        lambda setup, values, seed: Bandit(setup, values, seed, mode),
        params,
        placement=placement,
        needs=frozenset(("horizon",)) if mode == UCB else frozenset(),
    )


DPS_PAPER = bandit_spec(
    "dps-paper", "DPS as in the paper: free of charge at first, then UCB price arms per type", theta="0.11"
)
DPS_SIMPLE = bandit_spec("dps-simple", "DPS as in the paper without its free stage", theta="0")
DPS_RS = bandit_spec("dps-rs", "DPS as in the paper with random placement", theta="0.11", placement="random")
