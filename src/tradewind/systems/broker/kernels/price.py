"""The cheapest plan of one job at given charges: every option, every start, pauses where they may pay."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.broker.kernels.problem import (
    TINY,
    Charges,
    Leg,
    Problem,
    charge,
    egress_usd,
    first_leg,
    fits,
    is_joint,
    leg_usd,
    list_usd,
    owned,
    paid,
    second_leg,
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
        o, k = p.offer[i], p.other[i]
        if p.floor[i] >= best:
            break
        slots, part = p.need[i, 0], p.part[i, 0]
        runs = 1
        at, usd = -1, best
        if p.plain[o] and (k < 0 or p.plain[k]) and not c.by_shares:
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
    o, k, slots, first = p.offer[i], p.other[i], p.need[i, 0], p.earliest[i]
    one = _one_account(p, i)
    same = one and _is_same(p, c, o) and (k < 0 or _is_same(p, c, k))
    moved, loss = egress_usd(p, c, i, first), p.loss[j]
    if same or is_joint(p, i) or (k < 0 and not _is_short(p, o)):
        runs = np.zeros(0)
    elif k < 0 and p.account[o] < 0:
        runs = _flat(p, c, i, o) * (p.machines[i] * p.risk[i])
    else:
        runs = _starts(p, c, i)
    at, best, blocked = -1, np.inf, first - 1
    second, machines = (k, p.others[i]) if k >= 0 else (o, p.machines[i])
    room, rooms, used, uses = p.room[o], p.room[second], use[o], use[second]
    for end in range(first, p.latest[i] + 1):
        if used[end] + p.machines[i] > room[end] + TINY or uses[end] + machines > rooms[end] + TINY:
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


@kernel(inline="always")
def _is_same(p: Problem, c: Charges, o: int) -> bool:
    """Whether all slots of an offer cost the same."""
    whole = p.account[o] < 0 or p.elapsed[o] + p.price.shape[1] <= p.period[o]
    return bool(whole and p.constant[o] and c.toll[o, -1] == 0.0)


@kernel(inline="always")
def _is_short(p: Problem, o: int) -> bool:
    """Whether the rent of an offer is a sum over slots."""
    return bool(p.account[o] < 0 or p.period[o] == 1)


@kernel
def _starts(p: Problem, c: Charges, i: int) -> Floats:
    """Rent and tolls of option i by its start, counted from the earliest; its offers have accounts of their own."""
    found = _leg_starts(p, c, i, p.offer[i], p.machines[i] * p.risk[i])
    if p.other[i] >= 0:
        found += _leg_starts(p, c, i, p.other[i], p.others[i] * p.risk[i])
    return found


@kernel
def _leg_starts(p: Problem, c: Charges, i: int, o: int, m: float) -> Floats:
    """The same for one of its offers."""
    if _is_short(p, o):
        return _runs(p, c, i, o, m)
    first, slots = p.earliest[i], p.need[i, 0]
    leg = first_leg(p, i) if o == p.offer[i] else second_leg(p, i)
    found = np.empty(max(0, p.latest[i] + 2 - first - slots))
    for n in range(len(found)):
        found[n] = leg_usd(p, c, leg, first + n, slots, p.part[i, 0])
    return found


@kernel
def _runs(p: Problem, c: Charges, i: int, o: int, m: float) -> Floats:
    """The same for an offer whose rent is a sum over slots."""
    if p.account[o] < 0:
        return _flat(p, c, i, o) * m
    first, slots = p.earliest[i], p.need[i, 0]
    span, part = max(0, p.latest[i] + 1 - first), p.part[i, 0]
    price, toll, a = p.price[o], c.toll[o], p.account[o] + p.elapsed[o] + first
    f = tiers_of(p, p.tariff[p.account[o]])
    sums, tails = np.zeros(span + 1), np.zeros(span)
    for n in range(span):
        usd = price[first + n] * m
        tail = usd * part
        if c.by_shares:
            tail, usd = owned(f, c.shares[a + n], tail), owned(f, c.shares[a + n], usd)
        else:
            spent = paid(f, c.spent[a + n])
            tail, usd = paid(f, c.spent[a + n] + tail) - spent, paid(f, c.spent[a + n] + usd) - spent
        tails[n] = tail - usd
        sums[n + 1] = sums[n] + usd + (toll[first + n + 1] - toll[first + n]) * m
    found = np.empty(max(0, span - slots + 1))
    for n in range(len(found)):
        tail = tails[n + slots - 1]
        if c.by_shares and slots > 1:  # a bound also counts runs that begin within a slot and end with one
            tail = min(tail, tails[n])
        found[n] = sums[n + slots] - sums[n] + tail
    return found


@kernel(inline="always")
def _flat(p: Problem, c: Charges, i: int, o: int) -> Floats:
    """Rent and tolls of a machine of an offer without a pool by the start of option i."""
    bounds = (p.earliest[i], p.latest[i], p.need[i, 0])
    # a bound also counts runs that begin within a slot and end with one
    twice = c.by_shares and p.need[i, 0] > 1
    return _flat_runs(p.price[o], p.prefix[o], c.toll[o], bounds, p.part[i, 0], twice)


@kernel
def _flat_runs(
    price: Floats, sums: Floats, toll: Floats, bounds: tuple[int, int, int], part: float, twice: bool
) -> Floats:
    """The same as differences of sums; bounds: first slot, last slot, number of slots."""
    first, last, slots = bounds
    saved, found = 1.0 - part, np.empty(max(0, last + 2 - first - slots))
    for n in range(len(found)):
        t, end = first + n, first + n + slots
        dear = max(price[t], price[end - 1]) if twice else price[end - 1]
        found[n] = sums[end] - sums[t] - saved * dear + toll[end] - toll[t]
    return found


@kernel(inline="always")
def _one_account(p: Problem, i: int) -> bool:
    """Whether the slot of the start does not matter for the egress of option i."""
    for k in range(p.moved.shape[1]):
        if p.moved[i, k] >= 0 and p.moved_elapsed[i, k] + p.price.shape[1] > p.moved_period[i, k]:
            return False
    return True


@kernel
def _weights(p: Problem, c: Charges, i: int, use: Floats, part: float) -> Floats:
    """(T,) cost of each slot for option i, in part; what a constant price adds to a long account is left out."""
    slots = p.price.shape[1]
    found = np.zeros(slots)
    for t in range(slots):
        if not fits(p, i, use, t):
            found[t] = BLOCKED
            continue
        for leg in range(2):
            o, m = (p.offer[i], float(p.machines[i])) if leg == 0 else (p.other[i], float(p.others[i]))
            if o < 0:
                continue
            m *= p.risk[i]
            usd = part * p.price[o, t] * m
            if p.account[o] >= 0:
                if p.period[o] == 1:
                    usd = charge(p, c, p.account[o] + t + p.elapsed[o], usd)
                else:
                    usd *= p.rate[p.tariff[p.account[o]], p.rate.shape[1] - 1]
            found[t] += usd + (c.toll[o, t + 1] - c.toll[o, t]) * m
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
    end = plan[2 * runs] + plan[2 * runs + 1]
    usd = egress_usd(p, c, i, plan[2]) + p.loss[j, end - 1]
    usd += _leg_plan_usd(p, c, plan, first_leg(p, i))
    second = second_leg(p, i)
    if second.offer >= 0:
        usd += _leg_plan_usd(p, c, plan, second)
    return float(usd)


@kernel
def _leg_plan_usd(p: Problem, c: Charges, plan: Ints, leg: Leg) -> float:
    """Rent and tolls of a leg in all runs of a plan."""
    i, runs, o = plan[0], plan[1], leg.offer
    end = plan[2 * runs] + plan[2 * runs + 1]
    usd, spend, number = 0.0, 0.0, -1
    for r in range(runs):
        for t in range(plan[2 + 2 * r], plan[2 + 2 * r] + plan[3 + 2 * r]):
            part = p.part[i, runs - 1] if t == end - 1 else 1.0
            usd += (c.toll[o, t + 1] - c.toll[o, t]) * leg.machines
            if leg.other >= 0:
                usd += (c.toll[leg.other, t + 1] - c.toll[leg.other, t]) * leg.others
            this = (t + p.elapsed[o]) // p.period[o]
            if this != number and number >= 0 and p.account[o] >= 0:
                usd += charge(p, c, p.account[o] + number, spend)
                spend = 0.0
            number = this
            spend += part * list_usd(p, leg, t, t + 1)
    a = p.account[o] + number if p.account[o] >= 0 else -1
    return float(usd + charge(p, c, a, spend))
