"""Rings that are recalled: what a pinned job may do, swaps, and what a recall may cost."""

from __future__ import annotations

import numpy as np
import pytest

from tests.systems.gadget.cases import drawn
from tradewind.systems.gadget.kernels.pack import place, price_rings
from tradewind.systems.gadget.kernels.pool import RingPool
from tradewind.systems.gadget.kernels.recall import RecallLimits
from tradewind.systems.gadget.kernels.slot import Rings, Slot, excess, make_slot, no_prices, no_rings, worth
from tradewind.systems.gadget.kernels.solve import SlotEffort, solve
from tradewind.systems.gadget.kernels.state import demand_of, scratch_of, state_of


def servers(gpus: tuple[int, ...], gain: list[list[float]], *, link: int = 10, band: int = 5) -> Slot:
    """Servers in one rack, jobs of one GPU per worker."""
    return make_slot(
        room=np.array(gpus)[:, None], link=np.full(len(gpus), link), first=np.array([0, len(gpus)]),
        trunk=np.array([100]), need=np.ones((len(gain), 1), np.int64), band=np.full(len(gain), band), gain=np.array(gain),
    )  # fmt: skip


def rings(slot: Slot, *where: dict[int, int]) -> Rings:
    """One ring per job: workers by server."""
    made = no_rings(slot)
    for i, ring in enumerate(where):
        made.server[i, : len(ring)], made.workers[i, : len(ring)] = list(ring), list(ring.values())
        made.size[i] = sum(ring.values())
    return made


def moved(before: Rings, now: Rings) -> int:
    """Jobs that run in both on different sets of servers."""
    both = np.flatnonzero((before.size > 0) & (now.size > 0)).tolist()
    return sum(set(before.server[i].tolist()) != set(now.server[i].tolist()) for i in both)


def recalled(slot: Slot, now: Rings, before: Rings, floor: float, lost: float = 0.0) -> Rings:
    return RingPool(slot, before.server, 0.0).recalled(now, before, RecallLimits(200, floor, lost, 1))


def test_jobs_that_swapped_servers_return_although_they_block_each_other() -> None:
    slot = servers((1, 1), [[0.0, 1.0], [0.0, 1.0]])
    before = rings(slot, {0: 1}, {1: 1})
    found = recalled(slot, rings(slot, {1: 1}, {0: 1}), before, floor=2.0)
    assert moved(before, found) == 0
    assert worth(slot, found) == 2.0


def test_a_ring_is_not_recalled_where_that_would_cost_too_much() -> None:
    # job 0 has grown onto the larger server, where it earns 3; its old server has room for one worker
    slot = servers((1, 3), [[0.0, 1.0, 2.0, 3.0]])
    before, now = rings(slot, {0: 1}), rings(slot, {1: 3})
    assert moved(before, recalled(slot, now, before, floor=2.5)) == 1
    back = recalled(slot, now, before, floor=1.0)
    assert moved(before, back) == 0
    assert worth(slot, back) == 1.0
    # a move that loses the whole slot is not worth it either
    assert moved(before, recalled(slot, now, before, floor=0.0, lost=1.0)) == 0


def test_a_pinned_job_runs_on_all_of_its_old_servers_or_not_at_all() -> None:
    slot = servers((2, 2, 4), [[0.0, 1.0, 2.0, 3.0, 4.0]])
    demand, scratch = demand_of(slot, np.array([[1, 0, -1, -1]])), scratch_of(slot)
    demand.pinned[0] = 1
    state = state_of(slot, no_rings(slot), demand, scratch)
    price_rings(state, no_prices(slot), 0)
    assert (scratch.cost < np.inf).tolist() == [True, False, True, True, True]
    place(state, 0, 3)
    assert state.rings.server[0].tolist() == [1, 0, -1, -1]
    assert state.rings.workers[0].tolist() == [2, 1, 0, 0]
    assert state.free.room.ravel().tolist() == [1, 0, 4]
    for field, spot in (("room", (0, 0)), ("link", 1)):  # no room on one of them, no bandwidth
        short = state_of(slot, no_rings(slot), demand, scratch)
        getattr(short.free, field)[spot] = 0
        price_rings(short, no_prices(slot), 0)
        assert (scratch.cost < np.inf).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("seed", range(8))
def test_a_recall_never_overbooks_nor_falls_below_the_floor_nor_moves_more(seed: int) -> None:
    slot = drawn(seed, servers=10, jobs=14, racks=3, resources=1 + seed % 2)
    before = solve(slot, SlotEffort(rounds=200), seed=seed).rings
    rng = np.random.default_rng(seed)
    later = slot._replace(gain=slot.gain * rng.uniform(0.5, 1.5, (slot.jobs, 1)))
    now = solve(later, SlotEffort(rounds=200), seed=seed + 1).rings
    floor = 0.98 * worth(later, now)
    found = recalled(later, now, before, floor)
    assert max(excess(later, found)) <= 1.0
    assert worth(later, found) >= floor
    assert moved(before, found) <= moved(before, now)


def test_a_recall_halves_the_moves_of_slots_that_are_solved_anew() -> None:
    anew = stays = 0
    for seed in range(8):
        slot = drawn(seed, servers=10, jobs=14, racks=3)
        before = solve(slot, SlotEffort(rounds=200), seed=seed).rings
        now = solve(slot, SlotEffort(rounds=200), seed=seed + 1).rings
        found = recalled(slot, now, before, 0.999 * worth(slot, now))
        anew, stays = anew + moved(before, now), stays + moved(before, found)
    assert stays <= 0.5 * anew
