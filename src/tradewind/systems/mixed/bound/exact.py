"""The best plan of a tiny scenario as a mixed-integer program with a search of its own.

Streams choose among the ways to serve a slot that their oracle lists, which it does not check;
all others have whole workers per (slot, place). It covers what the
generator draws: data sets without servers at one chunk per worker and slot, and at least one worker.
"""

from __future__ import annotations

import numpy as np

from tradewind.model.scenario import Scenario
from tradewind.solvers.highs import INFINITY, Entry, Program, ProgramSolution, quiet_solver
from tradewind.systems.mixed.bound.whole import Whole, whole
from tradewind.systems.mixed.shared.frame import FAR
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.oracles.dataset import DataSet
from tradewind.systems.mixed.shared.oracles.gang import Gang, stays
from tradewind.systems.mixed.shared.oracles.ring import Ring
from tradewind.systems.mixed.shared.oracles.stream import Streaming

Row = tuple[int, int, int]
"""(slot, place, resource)."""


class _Builder:
    """Columns and rows of all jobs; `use` and `gb` are what the limits count."""

    def __init__(self, found: Whole) -> None:
        self.found, self.program = found, Program()
        self.use: dict[Row, list[Entry]] = {}
        self.gb: dict[int, list[Entry]] = {}

    def column(self, usd: float, high: float = 1.0) -> int:
        return self.program.column(usd, high, whole=True)

    def equal(self, entries: list[Entry]) -> None:
        self.program.row(0.0, 0.0, _sums(entries))

    def most(self, entries: list[Entry], limit: float) -> None:
        self.program.row(-INFINITY, limit, _sums(entries))

    def uses(self, t: int, h: int, column: int, need: np.ndarray, count: float = 1.0) -> None:
        """A unit of a column uses `count` workers that need so much."""
        for r in np.flatnonzero(need).tolist():
            self.use.setdefault((t, h, r), []).append((column, float(need[r]) * count))

    def moves(self, t: int, column: int, gb: float) -> None:
        if gb:
            self.gb.setdefault(t, []).append((column, gb))

    def workers(self, ask: Ask, usd: float = 0.0) -> dict[tuple[int, int], int]:
        """Whole workers at every (slot, place) where a job may be."""
        found = {}
        for t, h in zip(*(x.tolist() for x in np.nonzero(ask.places)), strict=True):
            found[t, h] = self.column(usd, ask.job.workers_max)
            self.uses(t, h, found[t, h], ask.worker)
        return found

    # ------------------------------------------------------------------ kinds
    def ring(self, ask: Ring) -> None:
        n, full = self.workers(ask), len(ask.gain) - 1
        done = [self.column(float(gain)) for gain in ask.gain]
        self.most([(c, 1.0) for c in done], 1.0)
        self.equal([(c, 1.0) for c in n.values()] + [(c, -float(p)) for p, c in enumerate(done)])
        for t in range(ask.slots):
            self.most([(c, 1.0) for (s, _), c in n.items() if s == t], ask.job.workers_max)
        if ask.final.any():
            ends = [self.column(float(worth)) for worth in ask.final]
            self.most([(c, 1.0) for c in ends] + [(done[full], -1.0)], 0.0)
            for (s, _), c in n.items():  # nothing after the end
                self.most(
                    [(c, 1.0)] + [(e, ask.job.workers_max) for t, e in enumerate(ends) if t < s],
                    ask.job.workers_max,
                )

    def gang(self, ask: Gang) -> None:
        size, slots = ask.run
        if stays(ask.job):
            begin = {t: self.column(float(ask.value[t + slots - 1])) for t in range(ask.slots - slots + 1)}
            self.most([(c, 1.0) for c in begin.values()], 1.0)
            for t, c in begin.items():
                at = {}
                for h in np.flatnonzero(ask.places[t : t + slots].all(axis=0)).tolist():
                    at[h] = self.column(0.0, size)
                    for s in range(t, t + slots):
                        self.uses(s, h, at[h], ask.worker)
                self.equal([(x, 1.0) for x in at.values()] + [(c, -float(size))])
            return
        n = self.workers(ask)
        runs, ends = self._until(ask.value)
        self.equal([(c, 1.0) for c in runs] + [(c, -float(slots)) for c in ends])
        for t, run in enumerate(runs):
            self.equal([(c, 1.0) for (s, _), c in n.items() if s == t] + [(run, -float(size))])

    def _until(self, worth: np.ndarray) -> tuple[list[int], list[int]]:
        """(whether a job runs, whether it ends) in each slot: it ends once, and runs no later."""
        runs, ends = [self.column(0.0) for _ in worth], [self.column(float(usd)) for usd in worth]
        self.most([(c, 1.0) for c in ends], 1.0)
        for t, run in enumerate(runs):
            self.most([(run, 1.0)] + [(c, -1.0) for c in ends[t:]], 0.0)
        return runs, ends

    def dataset(self, ask: DataSet) -> None:
        if ask.chunks.rate != 1.0 or ask.job.servers or ask.job.workers_min > 1:
            raise ValueError(f"jobs[{ask.job.id}]: the exact program has one chunk per worker and no servers")
        runs, ends = self._until(ask.chunks.worth)
        x = {}
        for t, h in zip(*(i.tolist() for i in np.nonzero(ask.places)), strict=True):
            for q in range(len(ask.parts)):
                x[t, h, q] = self.column(-float(ask.chunks.usd[q, h]), ask.job.workers_max)
                self.uses(t, h, x[t, h, q], ask.worker)
                self.moves(t, x[t, h, q], float(ask.chunks.gb[q, h]))
        for q, left in enumerate(ask.chunks.left.tolist()):
            mine = [(c, 1.0) for (_, _, p), c in x.items() if p == q]
            self.equal(mine + [(c, -float(left)) for c in ends])
        for t, run in enumerate(runs):
            mine = [(c, 1.0) for (s, _, _), c in x.items() if s == t]
            self.most([*mine, (run, -float(ask.job.workers_max))], 0.0)

    def stream(self, ask: Streaming) -> None:
        ways, before = ask.ways, [0.0] * ask.hosts
        for node in ask.known.places:
            before[ask.frame.place[node]] = 1.0
        last: list[list[Entry]] = [[] for _ in before]
        for t in range(ask.slots):
            here: list[list[Entry]] = [[] for _ in before]
            mine = []
            for w in range(int(ways.first[t]), int(ways.first[t + 1])):
                c = self.column(float(ask.value[t] - ways.usd[w]))
                mine.append((c, 1.0))
                self.moves(t, c, float(ways.gb[w]))
                for h in range(ask.hosts):
                    if ways.workers[w, h]:
                        self.uses(t, h, c, ask.worker, float(ways.workers[w, h]))
                    if h == ways.server[w]:
                        self.uses(t, h, c, ask.server)
                    if ways.workers[w, h] or h == ways.server[w]:
                        here[h].append((c, 1.0))
            self.most(mine, 1.0)
            for h in range(ask.hosts) if ask.job.deploy_usd else ():  # present now and not just before
                new = self.column(-ask.job.deploy_usd)
                self.most(
                    [*here[h], *((c, -v) for c, v in last[h]), (new, -1.0)], before[h] if t == 0 else 0.0
                )
            last = here

    # ------------------------------------------------------------------ limits and rent
    def limits(self) -> None:
        market, frame = self.found.market, self.found.frame
        slots, _, width = market.linear.shape
        for t in range(slots):
            for node in range(len(frame.setup.nodes)):
                under = np.flatnonzero(frame.under[:, node]).tolist()
                for r in range(width):
                    entries = [e for h in under for e in self.use.get((t, h, r), ())]
                    if entries and market.free[t, node * width + r] < FAR:
                        self.most(entries, float(market.free[t, node * width + r]))
            if t in self.gb and market.free[t, -1] < FAR:
                self.most(self.gb[t], float(market.free[t, -1]))
            for a in range(len(frame.payers)):
                hosts = [
                    (h, r) for h in range(len(frame.hosts)) for r in range(width) if frame.account[h, r] == a
                ]
                entries = [e for h, r in hosts for e in self.use.get((t, h, r), ())]
                if entries:
                    self._rent(entries, t, a)

    def _rent(self, entries: list[Entry], t: int, a: int) -> None:
        """Amounts in tiers; one is begun when those before it are full."""
        market = self.found.market
        starts = [s for s in market.starts[a].tolist() if s < np.inf]
        amounts: list[Entry] = []
        for k, start in enumerate(starts):
            size = starts[k + 1] - start if k + 1 < len(starts) else 1e4
            c = self.program.column(-float(market.usd[a, k] * market.factor[t, a]), size)
            if k:
                begun = self.column(0.0)
                self.most([(c, 1.0), (begun, -size)], 0.0)
                self.most([(begun, start - starts[k - 1]), (amounts[-1][0], -1.0)], 0.0)
            amounts.append((c, 1.0))
        self.equal([*entries, *((c, -1.0) for c, _ in amounts)])


def _sums(entries: list[Entry]) -> list[Entry]:
    """Every column once."""
    found: dict[int, float] = {}
    for column, factor in entries:
        found[column] = found.get(column, 0.0) + factor
    return list(found.items())


def exact(scenario: Scenario, nodes: int = 20_000) -> ProgramSolution:
    """The most welfare of a tiny scenario, or its bound where so many nodes of the search prove none."""
    found = whole(scenario)
    builder = _Builder(found)
    for ask in found.asks:
        if isinstance(ask, Streaming):
            builder.stream(ask)
        elif isinstance(ask, DataSet):
            builder.dataset(ask)
        elif isinstance(ask, Gang):
            builder.gang(ask)
        elif isinstance(ask, Ring):
            builder.ring(ask)
    builder.limits()
    solver = quiet_solver(mip_rel_gap=1e-6, mip_max_nodes=nodes)
    return builder.program.solve(solver, maximise=True)
