"""A lower bound on the bill from shares of the dear tiers and prices of capacity.

What a pool charges is a sum of pieces D_k min(S, l_k) + m_K S, and min(sum_j u_j, l) >= sum_j min(u_j, s_j) whenever the
shares s_j add up to at most l. So for any such shares and any prices mu >= 0 of capacity

    sum_j min(unserved_j, min over options and slots of [own + sum_q (m_K u + sum_k D_k min(u, s_jqk)) + mu m]) - sum mu cap

bounds the bill of every plan from below. The inner minimum is exact, so every point of the search gives a valid bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.broker.kernels.price import price_job
from tradewind.systems.broker.kernels.problem import Charges, Problem, post

MEMORY = 0.9
"""Part of the last direction that is kept."""
LEVEL = 0.3
"""Steps aim at the best value and this part of what is left to the target, which no point may reach."""
UNLIMITED_ROOM = 1e17


class Dual(NamedTuple):
    """Shares (J, A, K) of the tiers below the last, and prices of capacity (O, T)."""

    shares: Floats
    toll: Floats


@kernel
def sums(toll: Floats) -> Floats:
    """Prices per slot as sums up to each slot, (O, T+1)."""
    found = np.zeros((toll.shape[0], toll.shape[1] + 1))
    for o in range(toll.shape[0]):
        for t in range(toll.shape[1]):
            found[o, t + 1] = found[o, t] + toll[o, t]
    return found


@kernel
def evaluate(p: Problem, d: Dual, plan: Ints, usd: Floats, spend: Floats, use: Floats) -> float:
    """The bound at a point; writes each job's best reply, its cost (J,) and spend (J, A), and the use of all (O, T)."""
    none, prices = np.zeros_like(p.price), sums(d.toll)
    before = np.zeros(p.width.shape[0])
    spend[:] = 0.0
    use[:] = 0.0
    found = 0.0
    for o in range(p.price.shape[0]):
        for t in range(p.price.shape[1]):
            if d.toll[o, t] > 0.0:
                found -= d.toll[o, t] * p.room[o, t]
    for j in range(len(p.unserved)):
        usd[j] = price_job(p, Charges(before, prices, d.shares[j], True), j, none, plan[j])
        found += usd[j]
        if plan[j, 0] >= 0:
            post(p, j, plan[j], spend[j], use, 1.0)
    return found


@kernel
def start_shares(p: Problem, spend: Floats) -> Floats:
    """Shares by a plan's spend (J, A): in proportion where a tier is full, else the spend, and the rest in equal parts."""
    jobs, accounts, tiers = spend.shape[0], spend.shape[1], p.width.shape[1]
    found = np.zeros((jobs, accounts, tiers))
    for a in range(accounts):
        total = spend[:, a].sum()
        for k in range(tiers):
            width = p.width[a, k]
            if total > width:
                found[:, a, k] = spend[:, a] * (width / total)
            elif width < UNLIMITED_ROOM:
                users = (spend[:, a] > 0.0).sum()
                rest = (width - total) / max(1, jobs - users)
                for j in range(jobs):
                    found[j, a, k] = spend[j, a] if spend[j, a] > 0.0 else rest
            else:
                found[:, a, k] = width / jobs
    return found * (1.0 - 1e-9)


@kernel
def _direction(p: Problem, d: Dual, spend: Floats, way: Floats) -> None:
    """Mix the ascent direction of the shares into `way`; where a tier is full only differences between its jobs count."""
    jobs, last = spend.shape[0], p.rate.shape[1] - 1
    for a in range(spend.shape[1]):
        q = p.tariff[a]
        for k in range(last):
            gain = p.rate[q, k] - p.rate[q, k + 1]
            if gain <= 0.0 or p.retroactive[q] or p.free[q] > 0.0:
                continue
            total, count = 0.0, 0
            for j in range(jobs):
                if spend[j, a] > d.shares[j, a, k] + 1e-12:
                    total += gain
                    count += 1
                elif d.shares[j, a, k] > 0.0:
                    count += 1
            full = d.shares[:, a, k].sum() >= p.width[a, k] * (1.0 - 1e-6)
            mean = total / count if full and count else 0.0
            for j in range(jobs):
                raw = gain if spend[j, a] > d.shares[j, a, k] + 1e-12 else 0.0
                if raw > 0.0 or d.shares[j, a, k] > 0.0:
                    raw -= mean
                way[j, a, k] = MEMORY * way[j, a, k] + (1.0 - MEMORY) * raw


@kernel
def _project(p: Problem, shares: Floats) -> None:
    """Shares are not negative and add up to at most the width of their tier."""
    for a in range(shares.shape[1]):
        for k in range(shares.shape[2]):
            total = 0.0
            for j in range(shares.shape[0]):
                shares[j, a, k] = max(0.0, shares[j, a, k])
                total += shares[j, a, k]
            if total > p.width[a, k]:
                shares[:, a, k] *= p.width[a, k] / total * (1.0 - 1e-9)


@kernel
def _scales(p: Problem, spend: Floats) -> Floats:
    """Per account: the square of what a job spends on an account of its pool, if it spends anything (A,)."""
    total, count = np.zeros(len(p.free)), np.zeros(len(p.free))
    for a in range(spend.shape[1]):
        for j in range(spend.shape[0]):
            if spend[j, a] > 0.0:
                total[p.tariff[a]] += spend[j, a]
                count[p.tariff[a]] += 1.0
    usual = total.sum() / max(1.0, count.sum())
    found = np.zeros(spend.shape[1])
    for a in range(spend.shape[1]):
        q = p.tariff[a]
        found[a] = (total[q] / count[q] if count[q] > 0.0 else usual) ** 2
    return found


@kernel
def ascend(
    p: Problem, d: Dual, target: float, rounds: int, enough: float, length: float, plan: Ints
) -> tuple[float, float]:
    """Raise the bound by so many steps towards `target`, the cost of a plan; the best point is left in `d`.

    length: of steps, beside Polyak's to a level between the best value and the target. Writes the last replies into `plan`
    (J, PLAN) and returns the bound and the length to go on with. Stops early at target * (1 - enough).
    """
    jobs, accounts = len(p.unserved), p.width.shape[0]
    usd = np.zeros(jobs)
    spend, use = np.zeros((jobs, accounts)), np.zeros_like(p.price)
    way, toll_way = np.zeros_like(d.shares), np.zeros_like(d.toll)
    best = evaluate(p, d, plan, usd, spend, use)
    best_shares, best_toll = d.shares.copy(), d.toll.copy()
    scale = _scales(p, spend)
    value, misses, gains = best, 0, 0
    for _ in range(rounds):
        if best >= target * (1.0 - enough):
            break
        _direction(p, d, spend, way)
        norm = 0.0
        for a in range(accounts):
            norm += scale[a] * (way[:, a, :] ** 2).sum()
        for o in range(p.price.shape[0]):
            for t in range(p.price.shape[1]):
                if p.room[o, t] < UNLIMITED_ROOM:
                    over = use[o, t] - p.room[o, t]
                    if over < 0.0 and d.toll[o, t] <= 0.0:
                        over = 0.0
                    toll_way[o, t] = MEMORY * toll_way[o, t] + (1.0 - MEMORY) * over
                    norm += (p.price[o, t] / 2.0) ** 2 * toll_way[o, t] ** 2
        if norm <= 1e-18:
            break
        step = length * (best + LEVEL * (target - best) - value) / norm
        for a in range(accounts):
            d.shares[:, a, :] += step * scale[a] * way[:, a, :]
        _project(p, d.shares)
        for o in range(p.price.shape[0]):
            for t in range(p.price.shape[1]):
                d.toll[o, t] = max(0.0, d.toll[o, t] + step * (p.price[o, t] / 2.0) ** 2 * toll_way[o, t])
        value = evaluate(p, d, plan, usd, spend, use)
        if value > best:
            best, misses, gains = value, 0, gains + 1
            best_shares[:], best_toll[:] = d.shares, d.toll
            if gains >= 4:
                length, gains = min(2.0, length * 1.25), 0
        else:
            misses, gains = misses + 1, 0
            if misses >= 20:
                length, misses = length * 0.7, 0
                d.shares[:], d.toll[:] = best_shares, best_toll
                way[:], toll_way[:] = 0.0, 0.0
                value = evaluate(p, d, plan, usd, spend, use)
    d.shares[:], d.toll[:] = best_shares, best_toll
    return best, length
