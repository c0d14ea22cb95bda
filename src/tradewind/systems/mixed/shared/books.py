"""Plans of all jobs in one market, with the true pooled bill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.mixed.kernels.market import Answer, Market, fits, post
from tradewind.systems.mixed.shared.frame import Frame
from tradewind.systems.mixed.shared.oracles.ask import Ask

TINY = 1e-7
DEARER, DEAR_GB = 12, 0.05
"""Times that prices rise for a tenant over its cap, and USD per GB in the first rise."""


class Snapshot(NamedTuple):
    """Books at some time."""

    plan: list[Answer | None]
    free: Floats
    spent: Floats
    usd: float
    gain: float
    purse: dict[str, Floats]


class Books:
    """What every job has. `replies` counts the answers that were asked for."""

    def __init__(self, frame: Frame, asks: Sequence[Ask], market: Market) -> None:
        self.frame, self.asks, self.base = frame, asks, market
        self.market = market._replace(free=market.free.copy(), spent=market.spent.copy())
        self.plan: list[Answer | None] = [None] * len(asks)
        self.usd = self.gain = 0.0
        self.replies = 0
        self.listed = frame.listed(market)
        self.purse = {ask.job.tenant: ask.purse.copy() for ask in asks if ask.purse is not None}

    @property
    def welfare(self) -> float:
        """Value less own cost less the bill."""
        return self.gain - self.usd

    def put(self, j: int, answer: Answer | None) -> None:
        """Give a job a schedule."""
        if answer is not None:
            self._post(j, answer, 1.0)
        self.plan[j] = answer

    def take(self, j: int) -> Answer | None:
        """Take a job's schedule away."""
        answer = self.plan[j]
        if answer is not None:
            self._post(j, answer, -1.0)
            self.plan[j] = None
        return answer

    def _post(self, j: int, answer: Answer, sign: float) -> None:
        ask = self.asks[j]
        self.usd += float(
            post(self.market, ask.worker, ask.server, answer.workers, answer.servers, answer.gb, sign)
        )
        self.gain += sign * answer.gain
        if ask.purse is not None:
            self.purse[ask.job.tenant] -= sign * spend(ask, answer, self.listed)

    def ask(self, j: int, linear: Floats | None = None, byte_usd: Floats | None = None) -> Answer | None:
        """A job's best schedule in what is free at the true bill, with prices of scarcity if given."""
        self.replies += 1
        market, ask = self.market, self.asks[j]
        if linear is not None and byte_usd is not None:
            market = market._replace(linear=linear, byte_usd=byte_usd)
        answer = ask.reply(market)
        if ask.purse is None:
            return answer
        more = np.zeros(len(market.byte_usd))
        for _ in range(DEARER):  # what its tenant cannot pay gets dearer, until it asks for what fits
            if answer is None:
                return None
            left = self.purse[ask.job.tenant] - spend(ask, answer, self.listed)
            if (left >= -TINY).all():
                return answer
            over = (left[:-1] < -TINY) | (left[-1] < -TINY)
            more = np.where(over, 2.0 * more + 0.5, more)
            self.replies += 1
            answer = ask.reply(
                market._replace(
                    linear=market.linear + more[:, None, None] * self.listed,
                    byte_usd=market.byte_usd + more * DEAR_GB,
                )
            )
        return None

    def fits(self, j: int, answer: Answer) -> bool:
        """Whether a schedule fits into what is free."""
        ask = self.asks[j]
        if ask.purse is not None:
            left = self.purse[ask.job.tenant] - spend(ask, answer, self.listed)
            if (left < -TINY).any():
                return False
        return bool(fits(self.market, ask.worker, ask.server, answer.workers, answer.servers, answer.gb))

    def offer(self, j: int, answer: Answer | None) -> bool:
        """Give a job a schedule if it fits and raises welfare; True: it has it."""
        if answer is None or not self.fits(j, answer):
            return False
        before = self.welfare
        self.put(j, answer)
        if self.welfare <= before + TINY:
            self.take(j)
            return False
        return True

    def respond(self, rounds: int = 10) -> None:
        """Each job in turn gives back what it has and takes what is best at the true bill, until nobody gains."""
        for _ in range(rounds):
            better = False
            for j in range(len(self.asks)):
                before, old = self.welfare, self.take(j)
                answer = self.ask(j)
                if answer is not None and self.fits(j, answer):
                    self.put(j, answer)
                if self.welfare > before + TINY:
                    better = True
                elif self.plan[j] is not old:
                    self.take(j)
                    self.put(j, old)
                    if self.welfare < before - TINY:  # it cost more than it brought
                        self.take(j)
                        better = True
                elif old is not None:
                    self.put(j, old)
            if not better:
                return

    def snapshot(self) -> Snapshot:
        return Snapshot(
            list(self.plan), self.market.free.copy(), self.market.spent.copy(), self.usd, self.gain,
            {tenant: left.copy() for tenant, left in self.purse.items()},
        )  # fmt: skip

    def restore(self, kept: Snapshot) -> None:
        self.plan = list(kept.plan)
        self.market.free[:], self.market.spent[:] = kept.free, kept.spent
        self.usd, self.gain = kept.usd, kept.gain
        self.purse = {tenant: left.copy() for tenant, left in kept.purse.items()}


def spend(ask: Ask, answer: Answer, listed: Floats) -> Floats:
    """(T + 1,) USD of a schedule at list price in every slot, and in all; listed (T, H, R): list price of a unit.

    A job that is no stream pays for deployment wherever it is in a slot, which is never too little.
    """
    units = answer.workers[:, :, None] * ask.worker + answer.servers[:, :, None] * ask.server
    usd = (units * listed).sum(axis=(1, 2)) + answer.own
    if ask.job.deploy_usd and ask.kind != "stream":
        usd = usd + ask.job.deploy_usd * ((answer.workers > 0) | (answer.servers > 0)).sum(axis=1)
    return np.append(usd, usd.sum())


def densities(frame: Frame, asks: Sequence[Ask], market: Market) -> Floats:
    """Value less own cost per unit of capacity of every job alone, (J,)."""
    linear = frame.chords(market)
    alone = market._replace(linear=linear, tiers=False)
    whole = np.maximum(np.where(market.free < 1e17, market.free, 0.0).sum(axis=0), 1e-9)
    found = np.zeros(len(asks))
    for j, ask in enumerate(asks):
        answer = ask.reply(alone)
        if answer is not None:
            _, rows = frame.use(answer.workers, answer.servers, answer.gb, (ask.worker, ask.server))
            share = float((rows.sum(axis=0) / whole).max())
            found[j] = answer.gain / max(share, 1e-12)
    return found


def fill(
    books: Books, order: Sequence[int], linear: Floats | None = None, byte_usd: Floats | None = None
) -> None:
    """Give each job in turn its best schedule in what is left."""
    for j in order:
        if books.plan[j] is None:
            books.offer(j, books.ask(j, linear, byte_usd))
