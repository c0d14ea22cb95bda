"""Rivals of mixed: fixed shares of the capacity, streams before the rest, and one line for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.shared.books import Books, densities, fill
from tradewind.systems.mixed.shared.exchange import by_density
from tradewind.systems.mixed.shared.frame import Frame
from tradewind.systems.mixed.shared.oracles import ORACLES, oracle_of
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.policy import Chosen, MixedPolicy, mixed_spec

Plans = list[Answer | None]


def in_line(frame: Frame, asks: Sequence[Ask], market: Market, *, streams_first: bool) -> Books:
    """One after the other, the most worth per unit of capacity first."""
    books = Books(frame, asks, market)
    fill(books, by_density(asks, densities(frame, asks, market), streams_first=streams_first))
    return books


def by_shares(frame: Frame, asks: Sequence[Ask], market: Market, held: Mapping[str, Floats]) -> Plans:
    """Every kind of job in its own equal share, in whole units."""
    plans: Plans = [None] * len(asks)
    used = sum(held.values()) if held else np.zeros_like(market.free)
    for kind in ORACLES:
        mine = [j for j, ask in enumerate(asks) if oracle_of(ask.job) == kind]
        share = np.floor((market.free + used) / len(ORACLES)) - held.get(kind, 0.0)
        part = market._replace(free=np.clip(share, 0.0, np.maximum(market.free, 0.0)))
        found = in_line(frame, [asks[j] for j in mine], part, streams_first=False)
        for j, answer in zip(mine, found.plan, strict=True):
            plans[j] = answer
        for ask in found.asks:  # what is spent is not there for the next kind
            if ask.purse is not None:
                ask.purse[:] = found.purse[ask.job.tenant]
    return plans


def _rival(
    name: str, summary: str, plan: Callable[[Frame, Sequence[Ask], Market, Mapping[str, Floats]], Plans]
) -> Spec:
    def choose(
        frame: Frame, asks: Sequence[Ask], market: Market, held: Mapping[str, Floats], slot: int
    ) -> Chosen:
        del slot
        return Chosen(plan(frame, asks, market, held))

    def factory(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> MixedPolicy:
        del rng
        return MixedPolicy(setup, params, choose)

    return mixed_spec(name, summary, factory)


SHARES = _rival(
    "mixed-shares", "Every kind of job in its own equal share of the capacity, by worth per unit", by_shares
)
PRIORITY = _rival(
    "mixed-priority",
    "Streams first, then all other jobs by worth per unit of capacity",
    lambda frame, asks, market, held: in_line(frame, asks, market, streams_first=True).plan,
)
LINE = _rival(
    "mixed-line",
    "All jobs in one line by worth per unit of capacity",
    lambda frame, asks, market, held: in_line(frame, asks, market, streams_first=False).plan,
)
