"""Prices of scarcity by column generation, the bound that they prove, and the dive to whole schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from tradewind.model.arrays import Floats
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.shared.books import Books
from tradewind.systems.mixed.shared.frame import FAR, Frame
from tradewind.systems.mixed.shared.oracles.ask import Ask

ROUNDS, GAP = 120, 1e-3
MIX = (0.7, 0.4, 0.0)
"""Share of the best prices so far in the next ones; the next share is tried where one finds nothing new."""
PRIMAL = 4
"""HiGHS's primal simplex: columns come one after the other, and the last answer stays feasible."""
DIVE_ROUNDS, DIVE_SHARE, WHOLE = 3, 0.2, 0.999


@dataclass
class Column:
    """A schedule of a job in the program; share: how much of it is used."""

    job: int
    answer: Answer
    share: float = 0.0


@dataclass
class Priced:
    """Prices mu (T, K), the bound that they prove, and the columns of the program.

    bounds  what each job can gain at most at these prices
    """

    mu: Floats
    bound: float
    bounds: Floats
    rounds: int
    columns: list[Column] = field(default_factory=list)


class _Program:
    """max sum of (value - own - rent) x: every job once, every limit kept."""

    def __init__(self, jobs: int, room: Floats) -> None:
        self.limited = np.flatnonzero(room.ravel() < FAR)
        self.row = np.full(room.size, -1, dtype=np.int64)
        self.row[self.limited] = jobs + np.arange(len(self.limited))
        self.jobs, self.shape = jobs, room.shape
        self.model = quiet_solver(simplex_strategy=PRIMAL)
        self.model.changeObjectiveSense(highspy.ObjSense.kMaximize)
        for limit in [1.0] * jobs + np.maximum(room.ravel()[self.limited], 0.0).tolist():
            self.model.addRow(-INFINITY, limit, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        self.columns: list[Column] = []
        self.unit = 1.0
        """USD in which the program counts, from its first column: its tolerances are then the same in every currency."""
        self._seen: set[tuple[int, bytes]] = set()

    def add(self, column: Column, worth: float, rows: Floats) -> bool:
        """Add a column; False if it is there."""
        key = (column.job, rows.tobytes())
        if key in self._seen:
            return False
        self._seen.add(key)
        if not self.columns:
            self.unit = abs(worth) or 1.0
        flat = rows.ravel()
        used = np.flatnonzero(flat)
        used = used[self.row[used] >= 0]
        index = np.concatenate(([column.job], self.row[used])).astype(np.int32)
        self.model.addCol(
            worth / self.unit, 0.0, INFINITY, len(index), index, np.concatenate(([1.0], flat[used]))
        )
        self.columns.append(column)
        return True

    def solve(self) -> tuple[float, Floats]:
        """(value, prices of the limits (T, K))."""
        self.model.run()
        solution = self.model.getSolution()
        for column, share in zip(self.columns, solution.col_value, strict=True):
            column.share = float(share)
        mu = np.zeros(self.row.size)
        mu[self.limited] = np.maximum(0.0, np.array(solution.row_dual)[self.jobs :]) * self.unit
        return float(self.model.getInfo().objective_function_value) * self.unit, mu.reshape(self.shape)


def find_prices(
    frame: Frame, asks: Sequence[Ask], market: Market, rounds: int = ROUNDS, known: Sequence[Column] = ()
) -> Priced:
    """Prices at which the jobs ask for what there is.

    At any prices mu >= 0 no plan has more welfare than the sum of what the jobs gain at most, each alone, plus mu times the
    room: a unit that one job uses another does not. Rent counts at its chord, below the true bill of any use that fits.
    """
    room, chords = np.maximum(market.free, 0.0), frame.chords(market)
    program = _Program(len(asks), room)
    limited = np.where(room < FAR, room, 0.0)

    def enter(column: Column) -> bool:
        ask, answer = asks[column.job], column.answer
        units, rows = frame.use(answer.workers, answer.servers, answer.gb, (ask.worker, ask.server))
        return program.add(column, answer.gain - float((units * chords).sum()), rows)

    for column in known:
        enter(Column(column.job, column.answer))
    best = Priced(np.zeros_like(room), np.inf, np.zeros(len(asks)), 0)
    duals, level, value = np.zeros_like(room), 0, -np.inf
    for number in range(1, rounds + 1):
        mix = MIX[level] if best.bound < np.inf else 0.0
        mu = mix * best.mu + (1.0 - mix) * duals
        priced = market._replace(
            linear=chords + frame.scarce(market, mu), byte_usd=mu[:, -1].copy(), tiers=False
        )
        bounds, fresh = np.zeros(len(asks)), False
        for j, ask in enumerate(asks):
            answer = ask.reply(priced)
            bounds[j] = max(0.0, ask.bound(priced, answer))
            if answer is not None:
                fresh |= enter(Column(j, answer))
        bound = float(bounds.sum() + (mu * limited).sum())
        better = bound < best.bound
        if better:
            best = Priced(mu, bound, bounds, number)
        if not fresh and level + 1 == len(MIX):
            break
        if fresh:
            level = 0 if better else level
            value, duals = program.solve()
        if not fresh or (not better and number > 1):
            level = min(level + 1, len(MIX) - 1)
        if best.bound - value <= GAP * abs(best.bound):
            break
    best.rounds, best.columns = number, program.columns
    return best


def dive(books: Books, priced: Priced) -> None:
    """Give jobs the schedules that the program uses most, a few at a time, and price the rest again on what is left."""
    left = [j for j in range(len(books.asks)) if books.plan[j] is None]
    columns = priced.columns
    while left:
        top: dict[int, Column] = {}
        for column in columns:
            if column.share > 1e-6 and (column.job not in top or column.share > top[column.job].share):
                top[column.job] = column
        order = sorted(top.values(), key=lambda c: (-c.share, c.job))
        few = max(1, int(np.ceil(DIVE_SHARE * len(left))))
        chosen = [c for c in order if c.share >= WHOLE] or order[:few]
        if not chosen:
            return
        for column in chosen:
            books.offer(column.job, column.answer)
        done = {column.job for column in chosen}
        kept = [c for c in columns if c.job not in done and books.fits(c.job, c.answer)]
        left = [j for j in left if j not in done]
        if left:
            number = {j: i for i, j in enumerate(left)}
            again = find_prices(
                books.frame,
                [books.asks[j] for j in left],
                books.market,
                DIVE_ROUNDS,
                [Column(number[c.job], c.answer) for c in kept],
            )
            books.replies += again.rounds * len(left)
            columns = [Column(left[c.job], c.answer, c.share) for c in again.columns]
