"""Eris as printed: Algorithms 2 and 3 with their errors, in the readings that the text allows.

| question            | readings                                                                                    |
|---------------------|---------------------------------------------------------------------------------------------|
| M, (10) and line 14 | what the slots before leave (Table I), or all data in every slot (the memo of DPC_T(t, d))  |
| the server          | every site keeps room for it (Sec. IV-D), or it is not considered (as in (10) and line 14)  |
| pairs, line 2       | each in the direction that saves, or from the site with the smaller number                  |

The proof of Theorem 6 counts DPC_T(t, d) once for each t and d, which is right only if M does not depend on the slots
before. Where it does, Algorithm 3 runs for every state before a slot, and a state keeps what its cheapest schedule leaves.

Known errors, all kept on purpose in every reading (`eris` corrects them):

| where            | what                                                                                          |
|------------------|-----------------------------------------------------------------------------------------------|
| Algorithm 2      | the state is the number of chunks left, not their location                                    |
| (10), 2nd term   | the bandwidth that earlier pairs took is not subtracted                                       |
| (10), 3rd term   | a destination that was listed twice is subtracted twice                                       |
| line 14          | data that leaves a site is not subtracted from its workers; workers are rounded up in total only |
| line 16          | the server goes where most workers are, whatever it costs there                               |

Symbols as in slot.py and search.py; all sizes in chunks, bytes and milli-units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.minplus import minplus
from tradewind.systems.eris.kernels.printed_slot import (
    Deployment,
    PrintedSlot,
    Reading,
    deploy,
    least_usd,
    slot_of,
    train,
)
from tradewind.systems.eris.kernels.slot import SAME
from tradewind.systems.eris.kernels.task import Market, TrainingTask


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedSchedule:
    """Result of Algorithm 2: slots used (S,), server sites (S,), workers (S, R), moves (S, R, R) in chunks.

    usd: its cost at the posted prices; payoff: mu of (5), 0 if nothing pays; possible: whether any cost was finite
    calls: how often Algorithm 3 ran to find it
    """

    slots: Ints
    servers: Ints
    workers: Ints
    moves: Ints
    usd: float
    payoff: float
    possible: bool
    calls: int


class _States(NamedTuple):
    """Least cost (D + 1,) of having trained 0..D chunks, and the chunks (D + 1, R) that the cheapest way leaves."""

    usd: Floats
    left: Ints


@kernel
def _empty(sites: int, pairs: int) -> Deployment:
    """A deployment to fill in, with moves (pairs, pairs)."""
    workers, into, out = np.zeros(sites, np.int64), np.zeros(sites, np.int64), np.zeros(sites, np.int64)
    return Deployment(workers, np.zeros((pairs, pairs), np.int64), into, out)


@kernel
def _curve(slot: PrintedSlot, task: TrainingTask, plan: Deployment) -> tuple[Floats, int]:
    """Cost (D + 1,) of 0..D chunks in a slot that finds all data, and how often Algorithm 3 ran."""
    curve, calls = least_usd(slot, task, int(task.data.sum())), 0
    for chunks in range(1, len(curve)):
        if curve[chunks] < np.inf:
            curve[chunks], _ = deploy(slot, task, task.data, chunks, plan)
            calls += 1
    return curve, calls


@kernel
def _step(
    slot: PrintedSlot, task: TrainingTask, before: _States, after: _States, choice: Ints, plan: Deployment
) -> int:
    """A slot of the recursion in which M is what the schedule before it leaves; `choice` (D + 1,): chunks in the slot.

    Of equal sums the one with the least in this slot is taken. What the cheapest workers make too dear is not tried.
    Returns how often Algorithm 3 ran.
    """
    least, whole = least_usd(slot, task, len(before.usd) - 1), _empty(len(task.data), len(task.data))
    calls = 0
    for n in range(len(before.usd)):
        best, take = before.usd[n], 0
        for d in range(1, n + 1):
            if before.usd[n - d] + least[d] >= best:
                continue
            usd, _ = deploy(slot, task, before.left[n - d], d, plan)
            calls += 1
            if before.usd[n - d] + usd < best * (1 - SAME):
                best, take = before.usd[n - d] + usd, d
        after.usd[n], choice[n] = best, take
        after.left[n] = before.left[n - take]
        if take:
            deploy(slot, task, before.left[n - take], take, whole)
            train(slot, task, take, whole, after.left[n])
    return calls


@kernel
def _search(
    task: TrainingTask, market: Market, worth: Floats, reading: Reading
) -> tuple[int, float, float, Ints, bool, int]:
    """Algorithm 2: the completion slot that pays most (-1: none), its cost, its payoff, chunks per slot (T,), whether any
    cost was finite, and how often Algorithm 3 ran.

    Completion times whose utility is not above the best payoff so far cannot pay more and are left out.
    """
    horizon, sites, _ = market.usd.shape
    units = int(task.data.sum())
    rows = units + 1 if reading.remaining else 1
    before = _States(np.full(units + 1, np.inf), np.zeros((rows, sites), np.int64))
    after = _States(np.full(units + 1, np.inf), np.zeros((rows, sites), np.int64))
    before.usd[0], before.left[0] = 0.0, task.data
    choice = np.zeros((horizon, units + 1), np.int64)
    plan = _empty(sites, 0)
    best, payoff, cost, possible, calls = -1, 0.0, np.inf, False, 0
    for t in range(horizon):
        if worth[t] <= payoff:
            break
        slot = slot_of(task, market, t, reading)
        if reading.remaining:
            calls += _step(slot, task, before, after, choice[t], plan)
        else:
            curve, runs = _curve(slot, task, plan)
            minplus(before.usd, curve, after.usd, choice[t])
            calls += runs
        before, after = after, before
        usd = before.usd[units]
        possible = possible or usd < np.inf
        if worth[t] - usd > payoff:
            best, payoff, cost = t, worth[t] - usd, usd
    loads, n = np.zeros(horizon, np.int64), units
    for t in range(best, -1, -1):
        loads[t] = choice[t, n]
        n -= loads[t]
    return best, cost, payoff, loads, possible, calls


def printed(task: TrainingTask, market: Market, worth: Floats, reading: Reading) -> PrintedSchedule:
    """Algorithm 2 with Algorithm 3 in it: the schedule with the largest payoff (5) at the posted prices."""
    best, usd, payoff, loads, possible, calls = _search(task, market, worth, reading)
    slots = np.flatnonzero(loads) if best >= 0 else np.zeros(0, np.int64)
    sites, left = len(task.data), task.data.copy()
    servers = np.zeros(len(slots), np.int64)
    workers, moves = np.zeros((len(slots), sites), np.int64), np.zeros((len(slots), sites, sites), np.int64)
    into, out = np.zeros(sites, np.int64), np.zeros(sites, np.int64)
    for s, t in enumerate(slots.tolist()):
        plan, slot = Deployment(workers[s], moves[s], into, out), slot_of(task, market, t, reading)
        _, servers[s] = deploy(slot, task, left, loads[t], plan)
        if reading.remaining:
            train(slot, task, loads[t], plan, left)
    return PrintedSchedule(
        slots=slots,
        servers=servers,
        workers=workers,
        moves=moves,
        usd=float(usd),
        payoff=float(payoff),
        possible=bool(possible),
        calls=int(calls),
    )
