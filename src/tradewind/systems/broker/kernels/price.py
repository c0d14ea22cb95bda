"""The cheapest plan of one job at given charges: every option, every start, pauses where they may pay."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.broker.kernels.problem import (
    TINY,
    Charges,
    Problem,
    Tiers,
    charge,
    egress_usd,
    owned,
    paid,
    tiers_of,
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
        if p.floor[i] >= best:
            break
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
    o, slots, first = p.offer[i], p.need[i, 0], p.earliest[i]
    one = _one_account(p, i)
    whole = p.account[o] < 0 or p.elapsed[o] + p.price.shape[1] <= p.period[o]
    same = one and whole and p.constant[o] and c.toll[o, -1] == 0.0
    moved, m, loss = egress_usd(p, c, i, first), float(p.machines[i]), p.loss[j]
    room, used = p.room[o], use[o]
    short = p.account[o] < 0 or p.period[o] == 1
    runs = _runs(p, c, i) if short and not same else np.zeros(0)
    at, best, blocked = -1, np.inf, first - 1
    for end in range(first, p.latest[i] + 1):
        if used[end] + m > room[end] + TINY:
            blocked = end
        start = end - slots + 1
        if start <= blocked:
            continue
        run = runs[start - first] if len(runs) else window_usd(p, c, i, start, slots, p.part[i, 0])
        usd = run + loss[end] + (moved if one else egress_usd(p, c, i, start))
        if usd < best - TINY:
            at, best = start, usd
        if same:
            break
    return at, best


@kernel
def _runs(p: Problem, c: Charges, i: int) -> Floats:
    """Rent and tolls of option i by its start, counted from the earliest, where the rent is a sum over slots."""
    o, first, slots = p.offer[i], p.earliest[i], p.need[i, 0]
    span, m, part = max(0, p.latest[i] + 1 - first), float(p.machines[i]), p.part[i, 0]
    price, toll, pooled, a = p.price[o], c.toll[o], p.account[o] >= 0, p.account[o] + p.elapsed[o] + first
    f = tiers_of(p, p.tariff[p.account[o]]) if pooled else Tiers(price, price, 0.0, False)
    sums, tails = np.zeros(span + 1), np.zeros(span)
    for n in range(span):
        usd = price[first + n] * m
        tail = usd * part
        if pooled and c.by_shares:
            tail, usd = owned(f, c.shares[a + n], tail), owned(f, c.shares[a + n], usd)
        elif pooled:
            spent = paid(f, c.spent[a + n])
            tail, usd = paid(f, c.spent[a + n] + tail) - spent, paid(f, c.spent[a + n] + usd) - spent
        tails[n] = tail - usd
        sums[n + 1] = sums[n] + usd + (toll[first + n + 1] - toll[first + n]) * m
    found = np.empty(max(0, span - slots + 1))
    for n in range(len(found)):
        tail = tails[n + slots - 1]
        if c.by_shares and slots > 1:  # a bound also counts runs that begin within a slot and end with one
            tail = min(tail, tails[n])
        found[n] = (sums[n + slots] - sums[n] + tail) * p.risk[i]
    return found


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
