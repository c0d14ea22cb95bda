"""mixed: common prices of capacity, every job's own best answer, made whole and improved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Certificate
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.systems.mixed.kernels.market import Market
from tradewind.systems.mixed.shared.exchange import Effort, Found, exchange
from tradewind.systems.mixed.shared.frame import FAR, Frame
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.policy import Chosen, MixedPolicy, mixed_spec

EFFORT = {
    "rounds": Param(default=30, doc="rounds of prices in a slot", least=1, most=10_000),
    "replies": Param(
        default=40, doc="replies of ruin and recreate in a slot, per job", least=0, most=1_000_000
    ),
    "most_replies": Param(
        default=4_000,
        doc="replies of prices, and of ruin and recreate, in a slot for all jobs together: with many jobs, each gets fewer",
        least=1,
        most=1_000_000_000,
    ),
}


class Exchange:
    """Plans by `exchange`, with a certificate."""

    def __init__(self, effort: Effort, most_replies: int, seed: int) -> None:
        self._effort, self._most, self._seed = effort, most_replies, seed

    def __call__(
        self, frame: Frame, asks: Sequence[Ask], market: Market, held: Mapping[str, Floats], slot: int
    ) -> Chosen:
        del held
        if not asks:
            return Chosen([])
        effort = self._effort.within(self._most, len(asks))
        found = exchange(frame, asks, market, effort, (self._seed, slot))
        mu = found.priced.mu
        posted = market._replace(
            linear=frame.chords(market) + frame.scarce(market, mu), byte_usd=mu[:, -1].copy()
        )
        return Chosen(found.books.plan, certificate_of(found, market), posted)


def certificate_of(found: Found, market: Market) -> Certificate | None:
    """No plan of these jobs on what is free has more welfare; None where a job states no worth or it is not the objective.

    data: planned welfare; jobs: what each gains at most at the prices; room: prices times what is free. Their sum is the
    value.
    """
    asks, frame = found.books.asks, found.books.frame
    if frame.setup.objective != "welfare_usd" or any(ask.job.utility is None for ask in asks):
        return None
    room = np.where(market.free < FAR, np.maximum(market.free, 0.0), 0.0)
    data = {
        "planned": found.books.welfare,
        "jobs": {ask.job.id: float(b) for ask, b in zip(asks, found.priced.bounds, strict=True)},
        "room": float((found.priced.mu * room).sum()),
    }
    return Certificate("mixed.plan", found.priced.bound, "max", data)


def _factory(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> MixedPolicy:
    effort = Effort(rounds=int(params["rounds"]), replies=int(params["replies"]))
    return MixedPolicy(setup, params, Exchange(effort, int(params["most_replies"]), int(rng.integers(2**31))))


MIXED = mixed_spec(
    "mixed", "Every kind of job at common prices of capacity, for the most value less cost", _factory, EFFORT
)
