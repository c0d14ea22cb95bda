"""The planning problem as arrays, and what spend costs.

Slots are counted from the first that can be planned. An account is a pool in one of its periods; F of its tariff is what its
spend costs. An option of a job is an offer and a number of machines, or two of them at two sites: only the slots remain to
be chosen. A call counts references to all arrays of a problem, which takes longer than small functions: those are inlined.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel

SEGMENTS = 3
"""Most uninterrupted runs of a job that are planned."""
MOVES = 4
"""Most pools that the parts of a job are charged to."""
PLAN = 2 + 2 * SEGMENTS
"""Columns of a plan: option (-1: not served), number of runs, then start and length of each run in slots."""
TINY = 1e-9


class Problem(NamedTuple):
    """O offers, T slots, A accounts, Q tariffs with K tiers, N options in rows first[j]..first[j+1] of job j.

    price      (O, T) USD of a machine in a slot, at list price; prefix (O, T+1) its sums
    room       (O, T) machines that may be used
    account    (O,) account of slot 0, -1: no pool; period (O,) slots per account; elapsed (O,) slots of it before slot 0
    plain      (O,) whether all slots cost the same and the room is unlimited
    constant   (O,) whether the price is the same in all slots
    tariff     (A,) tariff of each account; width (A, K) USD left of each tier boundary after what was spent before
    start, rate (Q, K) tiers; free, retroactive (Q,)
    offer, machines (N,); other, others (N,) a second offer at another site, -1: none; earliest, own (N,)
    need       (N, SEGMENTS) slots with s runs, part (N, SEGMENTS) part of the last one
    moved, moved_period, moved_elapsed (N, MOVES) accounts as above of the egress in moved_usd (N, MOVES)
    risk       (N,) slots paid for per slot of work, those that interruptions are expected to lose included
    floor      (N,) what an option costs at least, whatever others spend; the options of a job are sorted by it
    latest     (N,) last slot of any use
    loss       (J, T) USD lost if the last slot of a job is this one
    unserved   (J,) USD lost without it; segments (J,) most runs
    """

    price: Floats
    prefix: Floats
    room: Floats
    account: Ints
    period: Ints
    elapsed: Ints
    plain: Bools
    constant: Bools
    tariff: Ints
    width: Floats
    start: Floats
    rate: Floats
    free: Floats
    retroactive: Bools
    first: Ints
    offer: Ints
    machines: Ints
    other: Ints
    others: Ints
    earliest: Ints
    own: Floats
    need: Ints
    part: Floats
    moved: Ints
    moved_period: Ints
    moved_elapsed: Ints
    moved_usd: Floats
    risk: Floats
    floor: Floats
    latest: Ints
    loss: Floats
    unserved: Floats
    segments: Ints


class Charges(NamedTuple):
    """What more spend of a job costs: true increments on `spent` (A,), or by the job's shares (A, K) of the dear tiers.

    toll (O, T+1): prices of capacity in USD per machine and slot, as sums up to each slot
    """

    spent: Floats
    toll: Floats
    shares: Floats
    by_shares: bool


class Tiers(NamedTuple):
    """One tariff: rows of `start` and `rate`, `free` and `retroactive`. Small, so that inner loops pass it quickly."""

    start: Floats
    rate: Floats
    free: float
    retroactive: bool


@kernel(inline="always")
def tiers_of(p: Problem, q: int) -> Tiers:
    """Tariff q."""
    return Tiers(p.start[q], p.rate[q], p.free[q], p.retroactive[q])


@kernel
def paid(f: Tiers, spend: float) -> float:
    """F of a tariff."""
    left = spend - f.free
    if left <= 0.0:
        return 0.0
    k = 0
    while k + 1 < len(f.start) and left >= f.start[k + 1]:
        k += 1
    if f.retroactive:
        return float(left * f.rate[k])
    usd = 0.0
    for i in range(k):
        usd += (f.start[i + 1] - f.start[i]) * f.rate[i]
    return float(usd + (left - f.start[k]) * f.rate[k])


@kernel
def owned(f: Tiers, shares: Floats, usd: float) -> float:
    """What a spend costs the owner of these shares (K,) of the dear tiers: no more than its part of F."""
    if f.free > 0.0:
        return 0.0
    last = len(f.rate) - 1
    found = f.rate[last] * usd
    if not f.retroactive:
        for k in range(last):
            found += (f.rate[k] - f.rate[k + 1]) * min(usd, shares[k])
    return float(found)


@kernel(inline="always")
def charge(p: Problem, c: Charges, a: int, usd: float) -> float:
    """What a spend on account a costs."""
    if a < 0:
        return usd
    f = tiers_of(p, p.tariff[a])
    if c.by_shares:
        return owned(f, c.shares[a], usd)
    return paid(f, c.spent[a] + usd) - paid(f, c.spent[a])


class Leg(NamedTuple):
    """Machines paid for of an offer, and of another one that is charged to the same account; -1: none.

    Those that interruptions are expected to lose count.
    """

    offer: int
    machines: float
    other: int
    others: float


@kernel(inline="always")
def is_joint(p: Problem, i: int) -> bool:
    """Whether both offers of option i are charged to the same account."""
    k = p.other[i]
    return bool(k >= 0 and p.account[k] >= 0 and p.account[k] == p.account[p.offer[i]])


@kernel
def first_leg(p: Problem, i: int) -> Leg:
    """The first offer of option i, with the second where they are charged together."""
    if is_joint(p, i):
        return Leg(p.offer[i], p.machines[i] * p.risk[i], p.other[i], p.others[i] * p.risk[i])
    return Leg(p.offer[i], p.machines[i] * p.risk[i], -1, 0.0)


@kernel
def second_leg(p: Problem, i: int) -> Leg:
    """The second offer of option i where it is charged by itself; offer -1: there is none."""
    if p.other[i] < 0 or is_joint(p, i):
        return Leg(-1, 0.0, -1, 0.0)
    return Leg(p.other[i], p.others[i] * p.risk[i], -1, 0.0)


@kernel(inline="always")
def list_usd(p: Problem, leg: Leg, at: int, stop: int) -> float:
    """Rent of a leg from slot `at` to `stop` at list price."""
    usd = (p.prefix[leg.offer, stop] - p.prefix[leg.offer, at]) * leg.machines
    if leg.other >= 0:
        usd += (p.prefix[leg.other, stop] - p.prefix[leg.other, at]) * leg.others
    return float(usd)


@kernel
def leg_usd(p: Problem, c: Charges, leg: Leg, at: int, slots: int, part: float) -> float:
    """Rent and tolls of a leg from slot `at` on: all slots but the last in full, of the last a part."""
    o, usd, t, end = leg.offer, 0.0, at, at + slots
    while t < end:
        stop = end
        a = p.account[o]
        if a >= 0:
            number = (t + p.elapsed[o]) // p.period[o]
            a += number
            stop = min(end, (number + 1) * p.period[o] - p.elapsed[o])
        spend = list_usd(p, leg, t, stop)
        if stop == end:
            spend -= (1.0 - part) * list_usd(p, leg, end - 1, end)
        usd += charge(p, c, a, spend)
        t = stop
    usd += (c.toll[o, end] - c.toll[o, at]) * leg.machines
    if leg.other >= 0:
        usd += (c.toll[leg.other, end] - c.toll[leg.other, at]) * leg.others
    return float(usd)


@kernel
def window_usd(p: Problem, c: Charges, i: int, at: int, slots: int, part: float) -> float:
    """Rent and tolls of option i from slot `at` on: all slots but the last in full, of the last a part."""
    usd = leg_usd(p, c, first_leg(p, i), at, slots, part)
    second = second_leg(p, i)
    if second.offer >= 0:
        usd += leg_usd(p, c, second, at, slots, part)
    return float(usd)


@kernel
def fits(p: Problem, i: int, use: Floats, t: int) -> bool:
    """Whether the machines of option i are free in slot t."""
    o, k = p.offer[i], p.other[i]
    if use[o, t] + p.machines[i] > p.room[o, t] + TINY:
        return False
    return bool(k < 0 or use[k, t] + p.others[i] <= p.room[k, t] + TINY)


@kernel
def egress_usd(p: Problem, c: Charges, i: int, at: int) -> float:
    """What moving the data costs if the job starts in slot `at`."""
    usd = p.own[i]
    for k in range(MOVES):
        if p.moved_usd[i, k] > 0.0:
            a = p.moved[i, k]
            if a >= 0:
                a += (at + p.moved_elapsed[i, k]) // p.moved_period[i, k]
            usd += charge(p, c, a, p.moved_usd[i, k])
    return float(usd)


@kernel
def post(p: Problem, j: int, plan: Ints, spent: Floats, use: Floats, sign: float) -> float:
    """Add a job's plan to (or take it from) spend and use; return what it costs outside of pools, lost value included.

    Expected interruptions count, as where plans are priced.
    """
    i = plan[0]
    if i < 0:
        return float(p.unserved[j])
    runs = plan[1]
    end = plan[2 * runs] + plan[2 * runs + 1]
    usd = p.own[i] + p.loss[j, end - 1]
    for k in range(MOVES):
        if p.moved_usd[i, k] > 0.0:
            a = p.moved[i, k]
            if a >= 0:
                spent[a + (plan[2] + p.moved_elapsed[i, k]) // p.moved_period[i, k]] += (
                    sign * p.moved_usd[i, k]
                )
            else:
                usd += p.moved_usd[i, k]
    for leg in range(2):
        o, m = (p.offer[i], float(p.machines[i])) if leg == 0 else (p.other[i], float(p.others[i]))
        for r in range(runs if o >= 0 else 0):
            for t in range(plan[2 + 2 * r], plan[2 + 2 * r] + plan[3 + 2 * r]):
                share = p.risk[i] * (p.part[i, runs - 1] if t == end - 1 else 1.0)
                use[o, t] += sign * m
                if p.account[o] >= 0:
                    spent[p.account[o] + (t + p.elapsed[o]) // p.period[o]] += (
                        sign * m * share * p.price[o, t]
                    )
                else:
                    usd += m * share * p.price[o, t]
    return float(usd)


@kernel
def pools_usd(p: Problem, spent: Floats, before: Floats) -> float:
    """What the accounts cost together, less what they cost before."""
    usd = 0.0
    for a in range(len(spent)):
        if spent[a] != before[a]:
            f = tiers_of(p, p.tariff[a])
            usd += paid(f, spent[a]) - paid(f, before[a])
    return float(usd)
