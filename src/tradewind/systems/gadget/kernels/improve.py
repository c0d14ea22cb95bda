"""Annealed ruin and recreate of the rings of a slot."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.draws import draw, fraction, random_of
from tradewind.systems.gadget.kernels.occupants import Occupants, enter, leave, occupants_of
from tradewind.systems.gadget.kernels.pack import clear, grow, place, price_rings, rack_of, release, reserve
from tradewind.systems.gadget.kernels.slot import Rings, SlotPrices
from tradewind.systems.gadget.kernels.state import TIE, State


class Search(NamedTuple):
    """How `improve` searches: rounds at most, worth that may be lost at the start (falling to 0), worth to stop at."""

    rounds: int
    heat: float
    goal: float
    seed: int


class Repair(NamedTuple):
    """What the steps of a round share: names (I,) of the jobs taken out, kept: their rings; random: the generator."""

    state: State
    lists: Occupants
    reduced: Floats
    random: Any
    names: Ints
    kept: Rings


@kernel
def _ruin(repair: Repair, near: Any, most: int, out: Ints) -> int:
    """Up to `most` jobs to take out: those on server near[0], then some on random ones of near[1] … near[2] - 1."""
    head, after, _ = repair.lists
    width = repair.state.rings.server.shape[1]
    count = 0
    for turn in range(1 + 2 * most):
        s = near[0] if turn == 0 else near[1] + draw(repair.random) % (near[2] - near[1])
        entry = head[s]
        while entry >= 0 and count < most:
            i = entry // width
            fresh = turn == 0 or draw(repair.random) % 2 == 0
            for n in range(count):
                fresh = fresh and out[n] != i
            if fresh:
                out[count] = i
                count += 1
            entry = after[entry]
        if count >= most:
            break
    return count


@kernel
def _inside(state: State, i: int) -> bool:
    """Whether the whole ring of job i lies in the racks of the window."""
    first, server, window = state.free.first, state.rings.server, state.window
    for j in range(server.shape[1]):
        s = server[i, j]
        if s < 0:
            break
        found = False
        for w in range(window.size):
            found = found or (first[window[w]] <= s < first[window[w] + 1])
        if not found:
            return False
    return True


@kernel
def _stay_bonus(state: State, i: int, servers: Ints) -> float:
    """`stay` for every server (N,) of a ring of job i where it ran before: what moving it away must bring."""
    last, stay = state.demand.last, state.demand.stay
    if stay == 0.0:
        return 0.0
    count = 0
    for j in range(servers.size):
        if servers[j] < 0:
            break
        for n in range(last.shape[1]):
            count += last[i, n] == servers[j]
    return float(stay * count)


@kernel
def _open_window(window: Ints, racks: int, rack: int, random: Any) -> None:
    """Write `rack` and then random others in order to the window."""
    window[0] = rack
    for w in range(1, window.size):
        window[w] = (window[w - 1] + 1 + draw(random) % (racks - window.size)) % racks
    window.sort()
    at = np.searchsorted(window, rack)
    window[at] = window[0]
    window[0] = rack


@kernel
def _victims(repair: Repair, near: Any, most: int) -> int:
    """Write jobs to take out to `names`: near a server and wholly in the window; returns how many."""
    state = repair.state
    everywhere = state.window.size == state.free.trunk.size
    out = np.empty(most, np.int64)
    count, found = 0, _ruin(repair, near, most, out)
    for n in range(found):
        if everywhere or _inside(state, out[n]):
            repair.names[count] = out[n]
            count += 1
    return count


@kernel
def _join(repair: Repair, most: int, count: int) -> int:
    """Add idle and unfinished jobs to `names`, those with more reduced value more often; returns how many there are."""
    state, reduced, names, ruined = repair.state, repair.reduced, repair.names, count
    gain, size = state.demand.gain, state.rings.size
    everywhere = state.window.size == state.free.trunk.size
    for _ in range(4 * most):
        i = draw(repair.random) % size.size
        j = draw(repair.random) % size.size
        if reduced[j] > reduced[i]:
            i = j
        if (size[i] > 0 and gain[i, size[i]] >= gain[i].max()) or count >= ruined + most:
            continue
        fresh = True
        for n in range(count):
            fresh = fresh and names[n] != i
        if fresh and (size[i] == 0 or everywhere or _inside(state, i)):
            names[count] = i
            count += 1
    return count


@kernel
def _order(repair: Repair, count: int) -> Ints:
    """In which order jobs come back: by reduced value (half of the time), by gain or at random, with noise."""
    gain, names = repair.state.demand.gain, repair.names
    rank, order = np.empty(count), draw(repair.random) % 4
    for n in range(count):
        noise = 0.6 + 0.8 * fraction(repair.random)
        i = names[n]
        if order < 2:
            rank[n] = -(repair.reduced[i] + 1e-9) * noise
        elif order == 2:
            rank[n] = -gain[i].max() * noise
        else:
            rank[n] = noise
    return np.argsort(rank)


@kernel
def _recreate(state: State, prices: SlotPrices, i: int) -> None:
    """Give job i the ring that is worth most at prices, if one is worth anything."""
    gain, cost = state.demand.gain, state.scratch.cost
    price_rings(state, prices, i)
    top, at = 0.0, 0
    for k in range(1, gain.shape[1]):
        v = gain[i, k] - cost[k]
        if v > top:
            top = v
            at = k
    if at > 0:
        place(state, i, at)


@kernel
def _take_out(repair: Repair, count: int) -> float:
    """Remove the rings of the jobs in `names` and keep a copy; returns what they were worth."""
    state, kept, worth = repair.state, repair.kept, 0.0
    server, workers, size = state.rings
    for n in range(count):
        i = repair.names[n]
        kept.server[n], kept.workers[n], kept.size[n] = server[i], workers[i], size[i]
        worth += state.demand.gain[i, size[i]]
        if size[i] > 0:
            leave(repair.lists, server, i)
            release(state, i)
            clear(state.rings, i)
    return worth


@kernel
def _undo(repair: Repair, count: int) -> None:
    """Put the rings of the jobs in `names` back as they were."""
    state, names, kept = repair.state, repair.names, repair.kept
    server, workers, size = state.rings
    for n in range(count):
        if size[names[n]] > 0:
            release(state, names[n])
    for n in range(count):
        i = names[n]
        server[i], workers[i], size[i] = kept.server[n], kept.workers[n], kept.size[n]
        if size[i] > 0:
            reserve(state, i)
            enter(repair.lists, server, i)


@kernel
def _start(state: State, reduced: Floats, seed: int) -> Any:
    """Tables for a search from the rings of a state."""
    jobs, width = state.rings.server.shape
    lists = occupants_of(state.free.first[-1], state.rings.server)
    kept = Rings(
        np.empty((jobs, width), np.int64), np.empty((jobs, width), np.int64), np.empty(jobs, np.int64)
    )
    return Repair(state, lists, reduced, random_of(seed), np.empty(jobs, np.int64), kept)


@kernel
def _choose(repair: Repair, turn: int) -> tuple[int, int]:
    """Write the jobs of a round to `names` and draw the weight of ties; returns how many jobs, and a die of 8."""
    state, random = repair.state, repair.random
    first, window = state.free.first, state.window
    servers, racks = first[-1], first.size - 1
    spot = draw(random) % servers
    rack = rack_of(first, spot)
    if window.size < racks:
        _open_window(window, racks, rack, random)
    most = 2 + draw(random) % (20 if turn % 8 == 7 else 6)
    die = draw(random) % 8
    state.tie[0] = TIE * (1 - draw(random) % 3)  # tight, any or roomy servers first
    near = (spot, first[rack], first[rack + 1])
    if window.size == racks and draw(random) % 2 == 0:
        near = (spot, 0, servers)
    count = _victims(repair, near, most)
    return _join(repair, most, count), die


@kernel
def _scaled(prices: SlotPrices, factor: float) -> Any:
    return SlotPrices(factor * prices.room, factor * prices.link, factor * prices.trunk)


@kernel
def improve(state: State, prices: SlotPrices, reduced: Floats, search: Search) -> float:
    """Annealed ruin and recreate; returns the worth of the best rings, which are left in the state (`free` is spoilt).

    reduced (I,): reduced values at the prices; idle jobs are tried in proportion. Jobs come back in order of reduced
    value with noise, each with its best size at the prices; what is then free is filled greedily, nearly at no price.
    """
    server, workers, size = state.rings
    repair = _start(state, reduced, search.seed)
    gain, names = state.demand.gain, repair.names
    half, cheap = _scaled(prices, 0.5), _scaled(prices, 1e-3)
    now = 0.0
    for i in range(size.size):
        now += gain[i, size[i]]
    best, best_rings = now, Rings(server.copy(), workers.copy(), size.copy())
    for turn in range(search.rounds):
        if best >= search.goal:
            break
        count, die = _choose(repair, turn)
        level = prices if die > 2 else half if die > 0 else cheap
        before, after, bonus = _take_out(repair, count), 0.0, 0.0
        for n in _order(repair, count):
            _recreate(state, level, names[n])
        grow(state, cheap, names[:count])
        for n in range(count):
            i = names[n]
            after += gain[i, size[i]]
            bonus += _stay_bonus(state, i, server[i]) - _stay_bonus(state, i, repair.kept.server[n])
        allowed = search.heat * (1.0 - turn / search.rounds) * fraction(repair.random)
        if after + bonus < before - allowed:
            _undo(repair, count)
            continue
        for n in range(count):
            enter(repair.lists, server, names[n])
        now += after - before
        if now > best + 1e-12:
            best = now
            if search.heat > 0.0:  # without heat the rings at the end are the best ones
                best_rings.server[:], best_rings.workers[:], best_rings.size[:] = server, workers, size
    if search.heat > 0.0:
        server[:], workers[:], size[:] = best_rings
    return best
