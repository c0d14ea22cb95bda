"""Water-filling for the fractional step with every worker beside its server: source by source, then exact on a forest.

In the relaxation traffic costs nothing where servers follow the workers (s proportional to y), so pairs of two sites are
hardly ever used. Without them a source s pays unit_sr per worker at site r and adds presence u_sr there, and the problem is

    min  sum_sr unit_sr u_sr / k + sum_r phi(v_r),   v_r = sum_s u_sr,   sum_r u_sr = supply_s,

with phi' = (c / sigma) ln((v + eps) / (v0 + eps)) above v0 and 0 below. At water level z_s a source's sites have
v_r + eps = z_s weight_sr with weight_sr = (v0_r + eps) exp(-unit_sr sigma / (k c)), linear in z_s, so sorting its sites
solves one source exactly. Sources that share sites form a forest once cycles are cancelled; along a tree the levels are
tied, which leaves one unknown, again linear. The caller checks the result against all pairs of sites.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

SWEEPS = 50
"""Passes over the sources at most; three are typical."""
CHANGES = 10
"""Pairs that leave the forest per pass at most."""
UNSOLVED = -1.0
"""Step of a tree that has two sites below v0."""
NO_PARENT = -1
ALONE = 1
"""Passes source by source before the forest is solved; by then most pairs in use are final."""


class WaterFilling(NamedTuple):
    """State of the water-filling of one job. S sources, R sites.

    unit     (S, R) USD per worker
    weight   (S, R) presence per unit of water level
    order    (S, R) sites by the level at which they start to fill
    reach    (S,) the first `reach` sites of `order` are those that a source can use
    supply   (S,) presence that a source has to place
    brought  [u] (S, R) presence that it has placed
    v, v0    (R,) presence now and in the previous slot
    k        presence of one worker together with its part of the server
    slope    c / sigma
    eps      epsilon of the regulariser
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
    """Trees over sources (0..S-1) and sites (S..S+R-1); all arrays (S + R,).

    parent  parent node, NO_PARENT outside the tree; the root is its own parent
    depth   distance from the root
    queue   nodes in breadth-first order
    factor  a source's level, or a site's v + eps, when the root's level is 1
    due     what a source still has to send, or (negative) a site still has to receive
    flow    presence between a node and its parent
    """

    parent: Ints
    depth: Ints
    queue: Ints
    factor: Floats
    due: Floats
    flow: Floats


@kernel
def _sort(order: Ints, count: int, key: Floats) -> None:
    """Sort the first `count` sites of `order` by key; insertion sort, because they are few or nearly sorted."""
    for j in range(1, count):
        r, m = order[j], j - 1
        while m >= 0 and key[order[m]] > key[r]:
            order[m + 1] = order[m]
            m -= 1
        order[m + 1] = r


@kernel
def start_filling(unit: Floats, amount: Floats, v0: Floats, c: float, eps: float, k: float) -> WaterFilling:
    """The state before anything is placed, with each source limited to the sites that its level can reach.

    A site that costs more than the cheapest by over k c stays empty, since no v exceeds 1. Above the level at which a
    site starts to fill, v + eps >= level * weight whoever uses it; all v add up to 1, so no level exceeds the one at
    which the source alone would place 1.
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
    """Place source s again, exactly, given the others. A site below v0 fills up to v0 at one level."""
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
    """Frank-Wolfe gap over single sites, and the linear value, USD."""
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
    """Grow the tree of a source over pairs in use: its size, and a pair that closes a cycle or -1, -1."""
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
    """Walk the cycle that a pair closes, the pair growing (sign 1) or shrinking (-1) by `push`.

    Returns USD per unit, the least amount of the shrinking pairs, and the pair that has it.
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
    """Shift along a cycle, in the direction that does not cost more, until a pair is empty; v does not change."""
    sign = 1.0
    usd, least, scarce = _around(water, forest, pair, sign, 0.0)
    if usd > 0.0:
        sign = -1.0
        _, least, scarce = _around(water, forest, pair, sign, 0.0)
    _around(water, forest, pair, sign, least)
    water.brought[scarce] = 0.0


@kernel
def _level(water: WaterFilling, forest: Forest, tail: int) -> float:
    """Fill `due` with a tree's optimum; returns the longest step (at most 1) to it with every site on its side of v0.

    A site below v0 pins the level. With two such sites the tree is not solved here and the step is UNSOLVED.
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
                return UNSOLVED
            pinned = q
    level = (total + count * water.eps) / slope
    if pinned >= 0:
        level = (v0[pinned - sources] + water.eps) / forest.factor[pinned]
    excess = total - (level * slope - count * water.eps)  # presence of a pinned site above v0
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
    """Move a tree to its optimum, or until a pair becomes empty and leaves the tree (True)."""
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
    """Solve for the optimum over the pairs in use, tree by tree; pairs that become empty drop out."""
    forest.parent[:] = NO_PARENT
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
        if changed:  # grow the tree again
            left -= 1
            for i in range(tail):
                forest.parent[forest.queue[i]] = NO_PARENT
        else:
            root += 1


@kernel
def fill_all(water: WaterFilling, accuracy: float) -> None:
    """Place all sources; stops at a relative gap of `accuracy` over single sites, or after SWEEPS."""
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
