"""The fractional step with every worker beside its server: water-filling source by source, then exact on a forest.

In the relaxation traffic is free where servers follow the workers (s proportional to y), so pairs of two sites are hardly
ever used. Without them a source s pays unit_sr per worker at site r and brings presence u_sr there, and

    min  sum_sr unit_sr u_sr / k + sum_r phi(v_r),   v_r = sum_s u_sr,   sum_r u_sr = supply_s,

with phi' = (c / sigma) ln((v + eps) / (v0 + eps)) above v0 and 0 below. At the level z_s of a source its sites hold
v_r + eps = z_s weight_sr, weight_sr = (v0_r + eps) exp(-unit_sr sigma / (k c)): linear in z_s. So one source is solved
exactly by sorting its sites. Sources that share sites form a forest once cycles are cancelled; along a tree the levels
are tied, which leaves one unknown, again linear. What is found is checked against all pairs by the caller.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

SWEEPS = 50  # passes over the sources; three are usual
CHANGES = 10  # pairs that leave the forest per pass at most
ALONE = 1  # passes before the first look at the forest: by then most pairs are the right ones


class WaterFilling(NamedTuple):
    """S sources, R sites. unit (S, R) USD per worker and k, the presence of one worker with its server.

    weight (S, R); order (S, R) with reach (S,): the first so many sites are those that a source may use, by the level at
    which they begin to take; supply (S,) and brought [u] (S, R): presence of the sources; v (R,); v0 (R,); slope: that of
    phi', c / sigma; eps.
    """

    unit: Floats
    weight: Floats
    order: Ints
    reach: Ints
    supply: Floats
    brought: Floats
    v: Floats
    v0: Floats
    k: float
    slope: float
    eps: float


class Forest(NamedTuple):
    """A tree of sources (0..S-1) and sites (S..), all (S + R,), in the order of ``queue``; parent -1: not in a tree.

    factor: what a node's level (source) or v + eps (site) is for a level of 1 at the root; due: what a node still has
    to send (source) or to get (site, negative); flow: presence between a node and its parent.
    """

    parent: Ints
    depth: Ints
    queue: Ints
    factor: Floats
    due: Floats
    flow: Floats


@kernel
def _sort(order: Ints, count: int, key: Floats) -> None:
    """The first sites of an order by their key; by insertion, because they are few or nearly sorted."""
    for j in range(1, count):
        r, m = order[j], j - 1
        while m >= 0 and key[order[m]] > key[r]:
            order[m + 1] = order[m]
            m -= 1
        order[m + 1] = r


@kernel
def start_filling(unit: Floats, amount: Floats, v0: Floats, c: float, eps: float, k: float) -> WaterFilling:
    """Nothing brought yet. Of every source only those sites in reach that its level can come to.

    A site dearer than the cheapest by more than k c takes nothing, since no v exceeds 1. Where the level is above the
    one at which a site begins, v + eps >= level * weight whoever is there; all v add up to 1, so no level is higher than
    one at which the source alone would bring 1.
    """
    sources, sites = unit.shape
    weight = np.empty((sources, sites))
    order = np.empty((sources, sites), dtype=np.int64)
    reach = np.zeros(sources, dtype=np.int64)
    slope = c / np.log(1.0 + 1.0 / eps)
    for s in range(sources):
        least, near = unit[s].min(), 0
        for r in range(sites):
            if unit[s, r] - least <= k * c:
                order[s, near] = r
                near += 1
        _sort(order[s], near, unit[s])
        rise, held = 0.0, 0.0
        for j in range(near):
            r = order[s, j]
            begin = np.exp((unit[s, r] - least) / (k * slope))
            if begin * rise - held > 1.0:
                break
            weight[s, r] = (v0[r] + eps) / begin
            rise += weight[s, r]
            held += eps
            reach[s] += 1
    brought = np.zeros((sources, sites))
    return WaterFilling(unit, weight, order, reach, amount * k, brought, np.zeros(sites), v0, k, slope, eps)


@kernel
def _fill(water: WaterFilling, s: int, begin: Floats) -> None:
    """Source s anew, exactly, with the others where they are. A site below v0 takes up to v0 at one level."""
    weight, order, u, v, count = water.weight[s], water.order[s], water.brought[s], water.v, water.reach[s]
    for j in range(count):
        r = order[j]
        v[r] = max(v[r] - u[r], 0.0)
        begin[r] = (max(v[r], water.v0[r]) + water.eps) / weight[r]
    _sort(order, count, begin)
    slope, held, level, rest = 0.0, 0.0, 0.0, -1.0
    last = count
    for j in range(count):
        r = order[j]
        left = water.supply[s] - (begin[r] * slope - held)
        if left <= 0.0:
            last = j
            break
        if water.v0[r] - v[r] >= left:
            last, rest, level = j, left, begin[r]
            break
        slope += weight[r]
        held += water.eps + v[r]
    if rest < 0.0:
        level = (water.supply[s] + held) / slope
    for j in range(count):
        r = order[j]
        u[r] = max(level * weight[r] - water.eps - v[r], 0.0) if j < last else 0.0
        if j == last and rest >= 0.0:
            u[r] = rest
        v[r] += u[r]


@kernel
def _gap(water: WaterFilling, slopes: Floats) -> tuple[float, float]:
    """Frank-Wolfe gap over the sites, and the linear value, USD."""
    sources, sites = water.unit.shape
    for r in range(sites):
        v, v0 = water.v[r], water.v0[r]
        above = water.slope * np.log((v + water.eps) / (v0 + water.eps)) if v > v0 else 0.0
        slopes[r] = water.k * above
    gap, total = 0.0, 0.0
    for s in range(sources):
        if water.supply[s] <= 0.0:
            continue
        best, mine = np.inf, 0.0
        for j in range(water.reach[s]):
            r = water.order[s, j]
            value = water.unit[s, r] + slopes[r]
            best = min(best, value)
            mine += water.brought[s, r] * value
        total += mine / water.k
        gap += (mine - best * water.supply[s]) / water.k
    return gap, total


@kernel
def _grow(water: WaterFilling, forest: Forest, root: int) -> tuple[int, int, int]:
    """The tree of a source over pairs in use: its size; and a pair that closes a cycle, or -1, -1."""
    u, parent = water.brought, forest.parent
    sources = len(u)
    parent[root], forest.depth[root], forest.queue[0] = root, 0, root
    head, tail = 0, 1
    while head < tail:
        q = forest.queue[head]
        head += 1
        for j in range(water.reach[q] if q < sources else sources):
            s, r = (q, water.order[q, j]) if q < sources else (j, q - sources)
            other = sources + r if q < sources else s
            if u[s, r] <= 0.0 or parent[q] == other:
                continue
            if parent[other] >= 0:
                return tail, s, r
            parent[other], forest.depth[other], forest.queue[tail] = q, forest.depth[q] + 1, other
            tail += 1
    return tail, -1, -1


@kernel
def _around(
    water: WaterFilling, forest: Forest, pair: tuple[int, int], sign: float, push: float
) -> tuple[float, float, tuple[int, int]]:
    """Once round the cycle that a pair closes, the pair growing (1) or shrinking (-1) by ``push``.

    Returns USD per unit, what the shrinking pairs hold at least, and the pair that holds it.
    """
    s, r = pair
    sources = len(water.unit)
    usd, least, scarce = sign * water.unit[s, r], np.inf, pair
    if sign < 0.0:
        least = water.brought[s, r]
    water.brought[s, r] += sign * push
    a, b = sources + r, s
    sign_a, sign_b = -sign, -sign
    while a != b:
        if forest.depth[a] < forest.depth[b]:
            a, b = b, a
            sign_a, sign_b = sign_b, sign_a
        up = forest.parent[a]
        s, r = (a, up - sources) if a < sources else (up, a - sources)
        usd += sign_a * water.unit[s, r]
        if sign_a < 0.0 and water.brought[s, r] < least:
            least, scarce = water.brought[s, r], (s, r)
        water.brought[s, r] += sign_a * push
        a, sign_a = up, -sign_a
    return usd, least, scarce


@kernel
def _cancel(water: WaterFilling, forest: Forest, pair: tuple[int, int]) -> None:
    """Push round a cycle, the way that costs no more, until one of its pairs is empty; v stays."""
    sign = 1.0
    usd, least, scarce = _around(water, forest, pair, sign, 0.0)
    if usd > 0.0:
        sign = -1.0
        _, least, scarce = _around(water, forest, pair, sign, 0.0)
    _around(water, forest, pair, sign, least)
    water.brought[scarce] = 0.0


@kernel
def _level(water: WaterFilling, forest: Forest, tail: int) -> float:
    """Fills due with a tree's optimum; the longest step (at most 1) towards it with every site on its side of v0.

    A site below v0 pins the level; where two do, the step is -1: not solved here.
    """
    sources, v0 = len(water.supply), water.v0
    total, slope, count, pinned = 0.0, 0.0, 0, -1
    for i in range(tail):
        q = forest.queue[i]
        up = forest.parent[q]
        if q < sources:
            forest.factor[q] = forest.factor[up] / water.weight[q, up - sources] if i else 1.0
            forest.due[q] = water.supply[q]
            total += water.supply[q]
            continue
        forest.factor[q] = forest.factor[up] * water.weight[up, q - sources]
        slope += forest.factor[q]
        count += 1
        if water.v[q - sources] < v0[q - sources]:
            if pinned >= 0:
                return -1.0
            pinned = q
    level = (total + count * water.eps) / slope
    if pinned >= 0:
        level = (v0[pinned - sources] + water.eps) / forest.factor[pinned]
    excess = total - (level * slope - count * water.eps)  # what a pinned site holds above v0
    step = 1.0
    for i in range(tail):
        q = forest.queue[i]
        if q >= sources:
            r = q - sources
            new = v0[r] + excess if q == pinned else level * forest.factor[q] - water.eps
            forest.due[q] = -new
            crosses = new > v0[r] if q == pinned else new < v0[r]
            if crosses and v0[r] > 0.0:
                step = min(step, (v0[r] - water.v[r]) / (new - water.v[r]))
    return step


@kernel
def _settle(water: WaterFilling, forest: Forest, tail: int) -> bool:
    """Move a tree towards its optimum until a pair is empty (True: it left the tree) or all the way."""
    u, sources = water.brought, len(water.supply)
    step = _level(water, forest, tail)
    if step < 0.0:
        return False
    out = -1
    for i in range(tail - 1, 0, -1):
        q = forest.queue[i]
        up = forest.parent[q]
        forest.due[up] += forest.due[q]
        forest.flow[q] = forest.due[q] if q < sources else -forest.due[q]
        s, r = (q, up - sources) if q < sources else (up, q - sources)
        if forest.flow[q] < 0.0 and u[s, r] < step * (u[s, r] - forest.flow[q]):
            step, out = u[s, r] / (u[s, r] - forest.flow[q]), q
    for i in range(1, tail):
        q = forest.queue[i]
        up = forest.parent[q]
        s, r = (q, up - sources) if q < sources else (up, q - sources)
        u[s, r] = 0.0 if q == out else max(u[s, r] + step * (forest.flow[q] - u[s, r]), 0.0)
    for i in range(tail):
        if forest.queue[i] >= sources:
            r = forest.queue[i] - sources
            water.v[r] = u[:, r].sum()
    return out >= 0


@kernel
def _balance(water: WaterFilling, forest: Forest) -> None:
    """The optimum over the pairs in use, tree by tree; pairs that become empty drop out."""
    forest.parent[:] = -1
    left, root = CHANGES, 0
    while root < len(water.supply) and left >= 0:
        if forest.parent[root] >= 0 or water.supply[root] <= 0.0:
            root += 1
            continue
        tail, s, r = _grow(water, forest, root)
        changed = s >= 0
        if s >= 0:
            _cancel(water, forest, (s, r))
        else:
            changed = _settle(water, forest, tail)
        if changed:  # the tree is another one now
            left -= 1
            for i in range(tail):
                forest.parent[forest.queue[i]] = -1
        else:
            root += 1


@kernel
def fill_all(water: WaterFilling, accuracy: float) -> None:
    """Brings what all sources have; stops at a relative gap of ``accuracy`` over single sites, or after SWEEPS."""
    sources, sites = water.unit.shape
    begin = np.empty(sites)
    nodes = sources + sites
    whole = np.empty((3, nodes), dtype=np.int64)
    parts = np.empty((3, nodes))
    forest = Forest(whole[0], whole[1], whole[2], parts[0], parts[1], parts[2])
    for sweep in range(SWEEPS):
        for s in range(sources):
            if water.supply[s] > 0.0:
                _fill(water, s, begin)
        if sweep >= ALONE:
            _balance(water, forest)
        gap, total = _gap(water, begin)
        if gap <= accuracy * abs(total):
            break
