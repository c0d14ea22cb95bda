"""The cheapest plan of one job at given charges: every option, every start, pauses where they may pay."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.broker.kernels.problem import (
    TINY,
    Charges,
    Problem,
    charge,
    egress_usd,
    window_usd,
)

BLOCKED = 1e15


@kernel
def price_job(p: Problem, c: Charges, j: int, use: Floats, plan: Ints) -> float:
    """Write the cheapest plan of job j into `plan`; return its cost, that of not serving it if nothing is cheaper.

    Equal costs: the earliest end, then the first option.
    """
    plan[:] = 0
    plan[0] = -1
    best, best_end = p.unserved[j], p.loss.shape[1]
    for i in range(p.first[j], p.first[j + 1]):
        o = p.offer[i]
        if p.own[i] >= best:
            continue
        slots, part = p.need[i, 0], p.part[i, 0]
        runs = 1
        at, usd = -1, best
        if p.plain[o] and not c.by_shares:
            at = p.earliest[i]
            if at + slots - 1 > p.latest[i]:
                continue
            usd = window_usd(p, c, i, at, slots, part) + egress_usd(p, c, i, at) + p.loss[j, at + slots - 1]
        else:
            at, usd = _best_window(p, c, j, i, use)
            runs = p.segments[j]
        if at >= 0 and (usd < best - TINY or (usd <= best + TINY and at + slots < best_end)):
            best, best_end = min(usd, best), at + slots
            plan[0], plan[1], plan[2], plan[3] = i, 1, at, slots
        for s in range(2, runs + 1):
            found = _paused(p, c, j, i, s, use, best - TINY, plan)
            if found < best - TINY:
                best = found
                best_end = plan[2 * s] + plan[2 * s + 1]
    return float(best)


@kernel
def _best_window(p: Problem, c: Charges, j: int, i: int, use: Floats) -> tuple[int, float]:
    """(start, cost) of the cheapest run without a pause; start -1: none fits."""
    o, m, slots, first = p.offer[i], p.machines[i], p.need[i, 0], p.earliest[i]
    at, best, blocked = -1, np.inf, first - 1
    one = _one_account(p, i)
    whole = p.account[o] < 0 or p.elapsed[o] + p.price.shape[1] <= p.period[o]
    same = one and whole and p.constant[o] and c.toll[o, -1] == 0.0
    moved = egress_usd(p, c, i, first)
    short = p.account[o] < 0 or p.period[o] == 1
    rest = p.part[i, 0] - 1.0
    span = max(0, p.latest[i] + 2 - first) if short else 0
    run, last_usd, head = 0.0, np.zeros(span), np.zeros(span)
    for end in range(first, p.latest[i] + 1):
        if use[o, end] + m > p.room[o, end] + TINY:
            blocked = end
        start = end - slots + 1
        if short:  # the cost of a window is a sum over its slots
            usd = p.price[o, end] * m
            tail = usd * rest
            if p.account[o] >= 0:
                tail = charge(p, c, p.account[o] + end + p.elapsed[o], usd * p.part[i, 0])
                usd = charge(p, c, p.account[o] + end + p.elapsed[o], usd)
                tail -= usd
            head[end - first] = tail
            toll = (c.toll[o, end + 1] - c.toll[o, end]) * m
            last_usd[end - first + 1] = last_usd[end - first] + usd + toll
            if start > blocked:
                if c.by_shares:  # a bound also counts runs that begin within a slot and end with one
                    tail = min(tail, head[start - first] if slots > 1 else tail)
                run = (last_usd[end - first + 1] - last_usd[start - first] + tail) * p.risk[i]
        elif start > blocked:
            run = window_usd(p, c, i, start, slots, p.part[i, 0])
        if start <= blocked:
            continue
        usd = run + p.loss[j, end] + (moved if one else egress_usd(p, c, i, start))
        if usd < best - TINY:
            at, best = start, usd
        if same:
            break
    return at, best


@kernel
def _one_account(p: Problem, i: int) -> bool:
    """Whether the slot of the start does not matter for the egress of option i."""
    for k in range(p.moved.shape[1]):
        if p.moved[i, k] >= 0 and p.moved_elapsed[i, k] + p.price.shape[1] > p.moved_period[i, k]:
            return False
    return True


@kernel
def _weights(p: Problem, c: Charges, i: int, use: Floats, part: float) -> Floats:
    """(T,) cost of each slot for option i, in part; what a constant price adds to a long account is left out."""
    o, m = p.offer[i], float(p.machines[i])
    slots = p.price.shape[1]
    found = np.empty(slots)
    for t in range(slots):
        if use[o, t] + m > p.room[o, t] + TINY:
            found[t] = BLOCKED
            continue
        usd = part * p.price[o, t] * m
        if p.account[o] >= 0:
            if p.period[o] == 1:
                usd = charge(p, c, p.account[o] + t + p.elapsed[o], usd)
            else:
                usd *= p.rate[p.tariff[p.account[o]], p.rate.shape[1] - 1]
        found[t] = (usd + (c.toll[o, t + 1] - c.toll[o, t]) * m) * p.risk[i]
    return found


@kernel
def _paused(p: Problem, c: Charges, j: int, i: int, s: int, use: Floats, limit: float, plan: Ints) -> float:
    """Cost of the cheapest plan of option i with exactly s runs, written into `plan` if it is below the limit."""
    need, first, last = p.need[i, s - 1], p.earliest[i], p.latest[i]
    if first + need - 1 > last or need < s:
        return np.inf
    whole, end_w = _weights(p, c, i, use, 1.0), _weights(p, c, i, use, p.part[i, s - 1])
    cheap = np.sort(whole[first : last + 1])[: need - 1].sum() + end_w[first : last + 1].min()
    if cheap + p.own[i] >= limit:
        return np.inf
    width = last + 1 - first
    on, off = np.full((s + 1, need), np.inf), np.full((s + 1, need), np.inf)
    was_on = np.zeros((width, s + 1, need, 2), dtype=np.bool_)
    off[0, 0] = 0.0
    best, best_t = np.inf, -1
    from_on = False
    for t in range(first, last + 1):
        held = min(on[s, need - 1], off[s - 1, need - 1])
        if held + end_w[t] + p.loss[j, t] < best - TINY:
            best, best_t = held + end_w[t] + p.loss[j, t], t
            from_on = on[s, need - 1] <= off[s - 1, need - 1]
        for r in range(s, -1, -1):
            for d in range(need - 1, -1, -1):
                run = np.inf
                if r > 0 and d > 0:
                    was_on[t - first, r, d, 0] = on[r, d - 1] <= off[r - 1, d - 1]
                    run = min(on[r, d - 1], off[r - 1, d - 1]) + whole[t]
                was_on[t - first, r, d, 1] = on[r, d] < off[r, d]
                off[r, d] = min(off[r, d], on[r, d])
                on[r, d] = run
    if best >= limit or best >= BLOCKED:
        return np.inf
    trial = np.zeros_like(plan)
    _trace(was_on, first, best_t, from_on, s, need, trial)
    trial[0], trial[1] = i, s
    usd = _plan_usd(p, c, j, trial)
    if usd < limit:
        plan[:] = trial
        return usd
    return np.inf


@kernel
def _trace(was_on: Bools, first: int, end: int, from_on: bool, s: int, need: int, plan: Ints) -> None:
    """Read the runs of the best plan backwards from its last slot."""
    r, d, t = s, need - 1, end
    plan[2 * s], plan[2 * s + 1] = t, 1
    running = from_on
    if not running:
        r = s - 1
    t -= 1
    while d > 0:
        if running:
            plan[2 * r] = t
            plan[2 * r + 1] += 1
            running = was_on[t - first, r, d, 0]
            d -= 1
            if not running:
                r -= 1
        else:
            running = was_on[t - first, r, d, 1]
        t -= 1


@kernel
def _plan_usd(p: Problem, c: Charges, j: int, plan: Ints) -> float:
    """What a plan costs at these charges; runs of a long account are charged together where the price is constant."""
    i, runs = plan[0], plan[1]
    o, m = p.offer[i], float(p.machines[i])
    end = plan[2 * runs] + plan[2 * runs + 1]
    usd = egress_usd(p, c, i, plan[2]) + p.loss[j, end - 1]
    spend, number = 0.0, -1
    for r in range(runs):
        for t in range(plan[2 + 2 * r], plan[2 + 2 * r] + plan[3 + 2 * r]):
            part = p.part[i, runs - 1] if t == end - 1 else 1.0
            usd += (c.toll[o, t + 1] - c.toll[o, t]) * m * p.risk[i]
            this = (t + p.elapsed[o]) // p.period[o]
            if this != number and number >= 0 and p.account[o] >= 0:
                usd += charge(p, c, p.account[o] + number, spend) * p.risk[i]
                spend = 0.0
            number = this
            spend += part * m * p.price[o, t]
    a = p.account[o] + number if p.account[o] >= 0 else -1
    return float(usd + charge(p, c, a, spend) * p.risk[i])
