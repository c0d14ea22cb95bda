"""Plans of all jobs together: best responses, and ruin and recreate. Searches stop by counted rounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.broker.kernels.price import price_job
from tradewind.systems.broker.kernels.problem import PLAN, TINY, Charges, Problem, fits, pools_usd, post

NEAR, FEW = 0.002, 50
"""A changed plan is kept if it is dearer than the best by at most this part of what so many jobs cost on average."""


class Books(NamedTuple):
    """Plans (J, PLAN), what each costs outside of pools (J,), spend (A,), use (O, T), and the spend before (A,).

    fixed  (J,) jobs whose plans must not change
    """

    plan: Ints
    flat: Floats
    spent: Floats
    use: Floats
    before: Floats
    fixed: Bools


@kernel
def total_usd(p: Problem, b: Books) -> float:
    """What all plans cost together."""
    return float(pools_usd(p, b.spent, b.before) + b.flat.sum())


@kernel
def respond(p: Problem, b: Books, order: Ints, toll: Floats, spent: Floats) -> int:
    """Take each job out, price it and put it back; return how many changed their plan.

    spent: what jobs take as spent by others, usually that of the books
    """
    c = Charges(spent, toll, np.zeros((0, 0)), False)
    moved, found = 0, np.zeros(PLAN, dtype=np.int64)
    for j in order:
        if b.fixed[j]:
            continue
        post(p, j, b.plan[j], b.spent, b.use, -1.0)
        price_job(p, c, j, b.use, found)
        for k in range(PLAN):
            if b.plan[j, k] != found[k]:
                moved += 1
                break
        b.plan[j] = found
        b.flat[j] = post(p, j, found, b.spent, b.use, 1.0)
    return moved


@kernel
def _draw(state: Ints, below: int) -> int:
    """A number from 0 to below - 1; the state is one number (xorshift, so the same everywhere)."""
    x = np.uint64(state[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = np.int64(x)
    return int(np.int64((x >> np.uint64(11)) % np.uint64(below)))


@kernel
def _shares_offer(p: Problem, b: Books, j: int, pick: int) -> bool:
    """Whether job j uses the offer or the pool of job `pick`."""
    i, k = b.plan[j, 0], b.plan[pick, 0]
    if i < 0 or k < 0:
        return bool(i < 0)
    a, o = p.offer[i], p.offer[k]
    return bool(a == o or (p.account[a] >= 0 and p.account[a] == p.account[o]))


@kernel
def _raise(p: Problem, spent: Floats, q: int, usd: float) -> None:
    """Add to the spend of all accounts of a tariff."""
    for a in range(len(spent)):
        if p.tariff[a] == q:
            spent[a] += usd


@kernel
def ruin_and_recreate(p: Problem, b: Books, toll: Floats, lure: Floats, rounds: int, seed: int) -> float:
    """Improve plans: take related jobs out, put them back in random order at random tolls or lured by a discount.

    lure (Q,): what the spend of the accounts of a tariff is raised by when they lure. Leaves the best plans in `b` and
    returns their cost.
    """
    jobs = len(b.flat)
    state = np.array([seed * 2654435761 + 88172645463325252], dtype=np.int64)
    best = cost = total_usd(p, b)
    best_plan = b.plan.copy()
    near = 1.0 + NEAR * min(1.0, FEW / max(1, jobs))
    mobile = np.flatnonzero(~b.fixed)
    if len(mobile) == 0:
        return best
    out, found = np.zeros(jobs, dtype=np.int64), np.zeros(PLAN, dtype=np.int64)
    for turn in range(rounds):
        size = min(len(mobile), 30 if turn % 3 == 2 else 2 + _draw(state, 11))
        pick = mobile[_draw(state, len(mobile))]
        out[0] = pick
        count, at = 1, _draw(state, len(mobile))
        for step in range(len(mobile)):
            if count >= size:
                break
            j = mobile[(at + step) % len(mobile)]
            if j != pick and (_shares_offer(p, b, j, pick) or _draw(state, 100) < 15):
                out[count] = j
                count += 1
        for n in range(count - 1, 0, -1):
            k = _draw(state, n + 1)
            out[n], out[k] = out[k], out[n]
        old = b.plan[out[:count]].copy()
        for n in range(count):
            post(p, out[n], old[n], b.spent, b.use, -1.0)
        lured, scaled = 0, toll
        if turn % 2 and len(lure):
            lured = _draw(state, len(lure))
            _raise(p, b.spent, lured, lure[lured])
        else:
            scaled = toll * (_draw(state, 121) / 100.0)
        c = Charges(b.spent, scaled, np.zeros((0, 0)), False)
        for n in range(count):
            price_job(p, c, out[n], b.use, found)
            b.plan[out[n]] = found
            b.flat[out[n]] = post(p, out[n], found, b.spent, b.use, 1.0)
        if turn % 2 and len(lure):
            _raise(p, b.spent, lured, -lure[lured])
        new = total_usd(p, b)
        if new < best - TINY * (1.0 + best):
            best = cost = new
            best_plan[:] = b.plan
        elif turn % 2 == 0 and new <= best * near:
            cost = new
        elif new > cost:
            _undo(p, b, out[:count], old)
        else:
            cost = new
    load(p, b, best_plan)
    return best


@kernel
def _undo(p: Problem, b: Books, out: Ints, old: Ints) -> None:
    """Put the plans of these jobs back as they were."""
    for n in range(len(out)):
        post(p, out[n], b.plan[out[n]], b.spent, b.use, -1.0)
    for n in range(len(out)):
        b.plan[out[n]] = old[n]
        b.flat[out[n]] = post(p, out[n], old[n], b.spent, b.use, 1.0)


@kernel
def load(p: Problem, b: Books, plan: Ints) -> None:
    """Replace all plans that may change."""
    for j in range(len(b.flat)):
        if not b.fixed[j]:
            post(p, j, b.plan[j], b.spent, b.use, -1.0)
    for j in range(len(b.flat)):
        if not b.fixed[j]:
            b.plan[j] = plan[j]
            b.flat[j] = post(p, j, plan[j], b.spent, b.use, 1.0)


@kernel
def take(p: Problem, b: Books, j: int, plan: Ints) -> None:
    """Give job j, which has no plan, this one if its machines are free."""
    i = plan[0]
    if i < 0:
        return
    for r in range(plan[1]):
        for t in range(plan[2 + 2 * r], plan[2 + 2 * r] + plan[3 + 2 * r]):
            if not fits(p, i, b.use, t):
                return
    b.plan[j] = plan
    b.flat[j] = post(p, j, plan, b.spent, b.use, 1.0)
