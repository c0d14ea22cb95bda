"""The exchange: prices, whole schedules, and improvement by ruin and recreate. Searches stop by counted replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats
from tradewind.systems.mixed.kernels.market import Market
from tradewind.systems.mixed.shared.books import Books, Snapshot, densities, fill
from tradewind.systems.mixed.shared.frame import Frame
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.oracles.stream import Streaming
from tradewind.systems.mixed.shared.prices import ROUNDS, Priced, dive, find_prices

HEAT = 0.08
"""First temperature of annealing, as a share of the mean worth of a job that has something."""
FORCED, PRICED, TILTED = 0.25, 0.6, 0.3
CROWDED = 1e-6


LEAST_ROUNDS = 3


class Effort(NamedTuple):
    """Rounds of prices, and replies of ruin and recreate per job, at least so many in all.

    dives  whether the program's schedules are a start
    """

    rounds: int = ROUNDS
    replies: int = 300
    dives: bool = True
    least: int = 0

    def within(self, most: int, jobs: int) -> Effort:
        """Less for many jobs: about so many replies for prices, and as many for ruin and recreate.

        The dive solves as many programs again as the prices, so it goes first.
        """
        each = most // max(1, jobs)
        rounds = min(self.rounds, max(LEAST_ROUNDS, each))
        return Effort(rounds, min(self.replies, each), self.dives and rounds == self.rounds)


OFFLINE = Effort(least=4_000)
"""For whole scenarios: few jobs need more replies each."""


class Found(NamedTuple):
    """The best plans and the prices behind them."""

    books: Books
    priced: Priced


def by_density(asks: Sequence[Ask], density: Floats, *, streams_first: bool) -> list[int]:
    """Jobs in order: streams first, or all in one line, the most worth per unit first."""
    first = [streams_first and isinstance(ask, Streaming) for ask in asks]
    return sorted(range(len(asks)), key=lambda j: (not first[j], -density[j], j))


def exchange(frame: Frame, asks: Sequence[Ask], market: Market, effort: Effort, seed: Sequence[int]) -> Found:
    """Plan all jobs: the best of the starts, improved; never below the orders of the rivals."""
    density = densities(frame, asks, market)
    priced = find_prices(frame, asks, market, effort.rounds)
    scarce, byte_usd = frame.scarce(market, priced.mu), priced.mu[:, -1].copy()
    best: Books | None = None
    for start in ("streams", "line", *(("dive",) if effort.dives else ()), "priced"):
        books = Books(frame, asks, market)
        if start == "dive":
            dive(books, priced)
        elif start == "priced":
            fill(books, by_density(asks, density, streams_first=False), 0.6 * scarce, 0.6 * byte_usd)
        fill(books, by_density(asks, density, streams_first=start == "streams"))
        books.respond()
        if best is None or books.welfare > best.welfare:
            best = books
    assert best is not None
    if len(asks) > 1:
        _Ruin(best, priced, density, np.random.default_rng(list(seed))).run(
            max(effort.least, effort.replies * len(asks))
        )
    return Found(best, priced)


class _Ruin:
    """Take jobs out and put them back in another order and at other prices."""

    def __init__(self, books: Books, priced: Priced, density: Floats, rng: np.random.Generator) -> None:
        self.books, self.rng, self.density = books, rng, density
        self.scarce, self.byte_usd = books.frame.scarce(books.base, priced.mu), priced.mu[:, -1].copy()
        self.crowded = bool((priced.mu > CROWDED).any())

    def run(self, replies: int) -> None:
        """Improve until so many replies were asked for."""
        books, rng = self.books, self.rng
        end = books.replies + replies
        served = [a.gain for a in books.plan if a is not None]
        heat = HEAT * (sum(served) / len(served) if served else 0.0)
        best = now = books.snapshot()
        while books.replies < end:
            before = books.replies
            out = self._force() if self.crowded and rng.random() < FORCED else self._ruin()
            self._recreate(out)
            share = 1.0 - (end - books.replies) / replies
            cooler = heat * max(0.0, 1.0 - share)
            won = books.welfare - (now.gain - now.usd)
            if won > 0.0 or (cooler > 0.0 and rng.random() < np.exp(won / cooler)):
                now = books.snapshot()
                if _welfare(now) > _welfare(best) + 1e-9:
                    best = now
            else:
                books.restore(now)
            books.replies = max(books.replies, before + 1)
        books.restore(best)
        books.respond()

    def _ruin(self) -> list[int]:
        """Jobs out: those at a random place in one to three slots, and two to four others."""
        books, rng = self.books, self.rng
        slots, hosts = books.base.linear.shape[:2]
        h, t, span = int(rng.integers(hosts)), int(rng.integers(slots)), int(rng.integers(1, 4))
        out = [
            j for j, a in enumerate(books.plan)
            if a is not None and (a.workers[t : t + span, h].any() or a.servers[t : t + span, h].any())
        ]  # fmt: skip
        more = rng.integers(len(books.plan), size=int(rng.integers(2, 5))).tolist()
        out = list(dict.fromkeys([*out, *more]))
        for j in out:
            books.take(j)
        return out

    def _force(self) -> list[int]:
        """A job without a schedule takes its best place; who is in its way goes."""
        books, rng = self.books, self.rng
        outside = [j for j, a in enumerate(books.plan) if a is None]
        if not outside:
            return self._ruin()
        j = int(rng.choice(outside))
        books.replies += 1
        scale = float(rng.uniform(0.0, 1.2))
        answer = books.asks[j].reply(
            books.base._replace(linear=scale * self.scarce, byte_usd=scale * self.byte_usd)
        )
        if answer is None:
            return self._ruin()
        out: list[int] = []
        while not books.fits(j, answer):
            ask = books.asks[j]
            _, rows = books.frame.use(answer.workers, answer.servers, answer.gb, (ask.worker, ask.server))
            over = rows > books.market.free + 1e-9
            inside = [i for i, a in enumerate(books.plan) if a is not None and self._uses(i, over)]
            if not inside:
                return out or self._ruin()
            worst = min(inside, key=lambda i: (self.density[i] * rng.uniform(0.5, 1.5), i))
            books.take(worst)
            out.append(worst)
        books.put(j, answer)
        return out

    def _uses(self, i: int, over: NDArray[np.bool_]) -> bool:
        ask, answer = self.books.asks[i], self.books.plan[i]
        assert answer is not None
        _, rows = self.books.frame.use(answer.workers, answer.servers, answer.gb, (ask.worker, ask.server))
        return bool((rows[over] > 0).any())

    def _recreate(self, out: list[int]) -> None:
        """Put jobs back: in random order or by density, at prices of scarcity or none, tilted or not."""
        rng = self.rng
        order = (
            rng.permutation(out).tolist()
            if rng.random() < 0.5
            else sorted(out, key=lambda j: -self.density[j])
        )
        scale = float(rng.uniform(0.0, 1.2)) if rng.random() < PRICED else 0.0
        linear, byte_usd = scale * self.scarce, scale * self.byte_usd
        if rng.random() < TILTED:
            shape = linear.shape if rng.random() < 0.5 else (1, linear.shape[1], 1)
            linear = linear + rng.uniform(0.0, 0.3, size=shape) * float(self._level())
        fill(self.books, order, linear, byte_usd)

    def _level(self) -> float:
        """A typical price of a unit."""
        return max(
            float(self.scarce.mean()),
            float(self.books.frame.usd[:, 0].mean()) if len(self.books.frame.usd) else 0.1,
        )


def _welfare(kept: Snapshot) -> float:
    return kept.gain - kept.usd
