"""Find the best sink and a path for every source, near exact, with a certificate for every sink.

1. Sinks are taken in the order of their degree bound. Against the incumbent's time a sink is refuted by its degree, by
   the prices that refuted an earlier sink, or by column generation; otherwise it is searched.
2. Sinks that survive are worked on from the lowest bound up: integer room raises the bound; draws, rerouting,
   the restricted master as a MILP and trees (bound.decide) lower the incumbent or raise the bound further.
Work stops when the ratio of time to bound is small enough or by counts of moves and nodes, never by the clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.apsp.kernels.bound import (
    SURE,
    decide,
    degree_levels,
    degree_prices,
    integer_level,
    refutes,
    relaxed_level,
    sharpen,
    wide_room,
)
from tradewind.systems.apsp.kernels.columns import PathPool, StopRule, relax
from tradewind.systems.apsp.kernels.problem import (
    Gather,
    Routing,
    fewest_hops,
    next_level,
    room_below,
    room_within,
    sinks_that_reach_all,
    time_of,
)
from tradewind.systems.apsp.kernels.proof import Leaf, SinkBound, leaf_of
from tradewind.systems.apsp.kernels.restricted import best_of_pool
from tradewind.systems.apsp.kernels.search import SearchEffort, best_draw, repair
from tradewind.systems.apsp.kernels.squeeze import squeeze


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveSettings:
    """When to stop: at time <= (1 + gap) * bound, or by counts of draws, moves and nodes.

    quick, long       search per sink: at first, and if the sink stays open
    rounds, mip_nodes how often the MILP over known paths runs, and its branch-and-bound nodes
    tree_size         networks of up to this many nodes are settled by trees of at most tree_nodes LPs
    prices_kept       prices of earlier sinks that are tried before an LP, and those of its neighbours
    squeezes          rounds of multiplicative weights that are tried before an LP
    presort_size      up to this many nodes, sinks are ordered by presort_rounds such rounds, else by degree bound; an LP
                      then takes as long as hundreds of rounds, so long_squeezes are tried before it
    raise_size        up to this many nodes, trees of raise_nodes LPs in total raise the bound to what the gap asks
    after_stuck       once a sink stays open, how many more are searched for faster routings
    """

    gap: Fraction = Fraction(0)
    seed: int = 1
    quick: SearchEffort = field(default_factory=lambda: SearchEffort(draws=64, moves=300))
    long: SearchEffort = field(default_factory=lambda: SearchEffort(draws=256, moves=4000))
    rounds: int = 6
    mip_nodes: int = 60
    tree_size: int = 30
    tree_nodes: int = 2000
    prices_kept: int = 4
    squeezes: int = 25
    presort_size: int = 250
    presort_rounds: int = 20
    long_squeezes: int = 300
    raise_size: int = 100
    raise_nodes: int = 4000
    after_stuck: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The best sink and routing found, its time, a bound that holds for every sink, and the bounds' proofs.

    best: least time found per sink that was routed; bounds: one per sink that all sources reach.
    """

    sink: int
    routing: Routing
    time: Fraction
    bound: Fraction
    bounds: dict[int, SinkBound]
    best: dict[int, Fraction]

    @property
    def ratio(self) -> float:
        return float(self.time / self.bound) if self.bound else 1.0


class _Prices(NamedTuple):
    """Prices (R,) that bound a sink, and their certificate."""

    price: Floats
    leaf: Leaf


@dataclass(slots=True)
class _State:
    """State of one solve: incumbent, bounds, path pools, the prices that refuted last and those of every sink."""

    problem: Gather
    hops: Ints
    settings: SolveSettings
    sink: int = -1
    routing: Routing = ()
    time: Fraction | None = None
    bounds: dict[int, SinkBound] = field(default_factory=dict)
    best: dict[int, Fraction] = field(default_factory=dict)
    routes: dict[int, Routing] = field(default_factory=dict)
    pools: dict[int, PathPool] = field(default_factory=dict)
    prices: list[_Prices] = field(default_factory=list)
    prices_of: dict[int, _Prices] = field(default_factory=dict)

    def offer(self, sink: int, routing: Routing) -> None:
        """Record a routing: update the sink's best and the incumbent."""
        time = time_of(self.problem, routing)
        if sink not in self.best or time < self.best[sink]:
            self.best[sink], self.routes[sink] = time, routing
        if self.time is None or time < self.time:
            self.sink, self.routing, self.time = sink, routing, time

    def done(self, level: Fraction) -> bool:
        return self.time is not None and self.time <= level * (1 + self.settings.gap)

    def bounded(self, sink: int, level: Fraction, price: Floats, fresh: bool = True) -> None:
        """Record the bound of a sink; fresh: prices that earlier sinks have not shown."""
        self._record(sink, level, _Prices(price, leaf_of(price)))
        if fresh:
            self.prices.insert(0, self.prices_of[sink])
            del self.prices[self.settings.prices_kept :]

    def refuted_as_others(self, sink: int, time: Fraction) -> bool:
        """Whether prices of earlier sinks refute this one: the last, or a neighbour's, which often has the same links."""
        graph = self.problem.graph
        near = graph.head[graph.start[sink] : graph.start[sink + 1]].tolist()
        for prices in [*self.prices, *(self.prices_of[v] for v in near if v in self.prices_of)]:
            if refutes(self.problem, sink, time, prices.price):
                self._record(sink, time, prices)
                return True
        return False

    def _record(self, sink: int, level: Fraction, prices: _Prices) -> None:
        self.prices_of[sink] = prices
        self.bounds[sink] = SinkBound(sink, level, prices.leaf)


def solve(problem: Gather, settings: SolveSettings, sinks: Ints | None = None) -> Placement:
    """Best sink and routing; `sinks` restricts where the sink may be."""
    hops, reach = sinks_that_reach_all(problem)
    allowed = reach if sinks is None else np.intersect1d(reach, sinks)
    if allowed.size == 0:
        raise ValueError("no allowed sink can be reached by every source")
    levels = degree_levels(problem, hops)
    if problem.graph.nodes <= settings.presort_size:
        levels = np.maximum(levels, quick_levels(problem, allowed, settings.presort_rounds))
    order = allowed[np.argsort(levels[allowed], kind="stable")].tolist()
    work = _State(problem, hops, settings)
    for sink in order:
        _first_look(work, int(sink), float(levels[sink]))
    open_sinks = sorted((b.level, v) for v, b in work.bounds.items() if not work.done(b.level))
    # a sink that stays open limits the overall bound, so sinks above it are only searched for faster routings
    stuck, tried = math.inf, 0
    for _, sink in open_sinks:
        above = float(work.bounds[sink].level) >= stuck
        if work.done(work.bounds[sink].level) or (above and tried >= settings.after_stuck):
            continue
        tried += above
        _work_on(work, sink, only_search=above)
        if not work.done(work.bounds[sink].level):
            stuck = min(stuck, float(work.bounds[sink].level))
    assert work.time is not None
    bound = min(work.time, *(b.level for b in work.bounds.values()))
    return Placement(
        sink=work.sink, routing=work.routing, time=work.time, bound=bound, bounds=work.bounds, best=work.best
    )


def quick_levels(problem: Gather, sinks: Ints, rounds: int) -> Floats:
    """Bounds (n,) near the LP's, from multiplicative weights, to order the sinks by."""
    room, factor = wide_room(problem)
    levels = np.zeros(problem.graph.nodes)
    for sink in sinks.tolist():
        bound, _ = squeeze(problem, sink, room, degree_prices(problem, sink), rounds)
        levels[sink] = bound * factor
    return levels


def _first_look(work: _State, sink: int, degree_level: float) -> None:
    """Refute the sink against the incumbent, or bound it by its LP and run a quick search."""
    problem, settings = work.problem, work.settings
    if work.time is not None:
        around = degree_prices(problem, sink)
        beyond = degree_level >= float(work.time) * (1 - 1e-9)
        if beyond and refutes(problem, sink, work.time, around):
            work.bounded(sink, work.time, around, fresh=False)
            return
        if work.refuted_as_others(sink, work.time):
            return
        room = room_below(problem, work.time)
        tries = [(around, settings.squeezes), *((p.price, settings.squeezes) for p in work.prices[:1])]
        if problem.graph.nodes > settings.presort_size:
            tries.append((around, settings.long_squeezes))
        for start, rounds in tries:
            _, price = squeeze(problem, sink, room, start, rounds)
            if refutes(problem, sink, work.time, price):
                work.bounded(sink, work.time, price)
                return
    pool = work.pools.setdefault(sink, PathPool())
    if work.time is not None:
        relaxed = relax(problem, sink, room_below(problem, work.time), pool, StopRule(fits=1.0, exceeds=SURE))
        if relaxed.bound > SURE:
            work.bounded(sink, work.time, relaxed.price)
            return
    relaxed, _, level = relaxed_level(problem, sink, pool)
    high = 2.0 * float(level) if work.time is None else float(work.time)
    level = sharpen(problem, sink, relaxed.price, level, high, 8)
    work.bounded(sink, level, relaxed.price)
    _search(work, sink, relaxed.share, level, settings.quick, settings.seed)


def _search(
    work: _State, sink: int, share: list[tuple[int, float]], level: Fraction, effort: SearchEffort, seed: int
) -> None:
    """Draw, then reroute towards ever tighter targets between the level and the sink's best time."""
    problem, pool, hops = work.problem, work.pools[sink], work.hops[sink]
    routing = best_draw(problem, pool, share, room_within(problem, level), effort, seed)
    work.offer(sink, routing)
    reach = Fraction(1)
    for attempt in range(4):
        best = work.best[sink]
        if best <= level:
            return
        target = level + (best - level) * (1 - reach / 2)
        room = np.minimum(room_below(problem, best), room_within(problem, target))
        left, found = repair(problem, sink, hops, room, work.routes[sink], effort, seed + attempt)
        if left > 0.0:
            reach /= 2
        work.offer(sink, found)


def _work_on(work: _State, sink: int, only_search: bool) -> None:
    """Raise the sink's bound and lower the incumbent until they meet within the gap or the limits are reached."""
    problem, settings = work.problem, work.settings
    pool = work.pools.setdefault(sink, PathPool())
    bound, relaxed = integer_level(problem, sink, pool, work.bounds[sink], work.time)
    work.bounds[sink] = bound
    if work.done(bound.level) or relaxed is None:
        return
    if problem.graph.nodes <= settings.tree_size and _by_tree(work, sink):
        return
    _search(work, sink, relaxed.share, bound.level, settings.long, settings.seed + 17)
    if settings.rounds > 0 and not work.done(bound.level):
        _restricted(work, sink, pool)
    if problem.graph.nodes <= settings.raise_size and not only_search:
        _raise(work, sink)
    for turn in range(1, settings.rounds):
        if work.done(work.bounds[sink].level):
            return
        _restricted(work, sink, _varied(work, sink, turn))


def _raise(work: _State, sink: int) -> None:
    """Raise the bound, or find faster routings, by trees at targets up to what the gap asks for.

    High targets first; when the highest and three lower ones stay open, start again with three times the LPs for each.
    """
    problem, settings = work.problem, work.settings
    left, most, part = settings.raise_nodes, settings.raise_nodes // 16, Fraction(1)
    while left > 0 and work.time is not None:
        level, goal = work.bounds[sink].level, work.time / (1 + settings.gap)
        if level >= goal:
            return
        room = room_below(problem, level + (goal - level) * part)
        verdict = decide(problem, sink, room, work.pools[sink], min(left, most))
        left -= verdict.nodes
        if verdict.proof is not None:
            work.bounds[sink] = SinkBound(sink, next_level(problem, room), verdict.proof)
        elif verdict.routing is not None:
            work.offer(sink, verdict.routing)
        elif part > Fraction(1, 64):
            part /= 4
        else:
            part, most = Fraction(1), 3 * most


def _by_tree(work: _State, sink: int) -> bool:
    """A tree against the incumbent; True when the sink is settled within the gap."""
    problem, settings = work.problem, work.settings
    while work.time is not None:
        target = work.time / (1 + settings.gap)
        if target <= work.bounds[sink].level:
            return True
        verdict = decide(problem, sink, room_below(problem, target), work.pools[sink], settings.tree_nodes)
        if verdict.proof is not None:
            work.bounds[sink] = SinkBound(sink, target, verdict.proof)
            return True
        if verdict.routing is None:
            return False
        work.offer(sink, verdict.routing)
    return False


def _varied(work: _State, sink: int, turn: int) -> PathPool:
    """Another pool for the MILP: a random 93% of the paths, the best routing's, and a shortest one per flow.

    HiGHS dives elsewhere when a few columns are missing, which finds more than extra nodes do.
    """
    problem, pool = work.problem, work.pools[sink]
    rng = np.random.default_rng((work.settings.seed, sink, turn))
    kept = rng.random(len(pool.flow)) < 0.93
    varied = PathPool()
    for flow, arcs, keep in zip(pool.flow, pool.arcs, kept.tolist(), strict=True):
        if keep:
            varied.add(flow, arcs)
    for routing in (work.routes[sink], fewest_hops(problem, sink)):
        for flow, arcs in enumerate(routing):
            if arcs:
                varied.add(flow, arcs)
    return varied


def _restricted(work: _State, sink: int, pool: PathPool) -> None:
    """The restricted master as a MILP over a pool of paths."""
    best = work.best[sink]
    room = room_within(work.problem, best)
    found = best_of_pool(work.problem, room, pool, float(best), work.settings.mip_nodes)
    if found is not None:
        work.offer(sink, found)
