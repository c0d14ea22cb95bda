"""A slot of rings: prices, bounds and searches against brute force and an exact program."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import tries
from tests.systems.gadget.cases import drawn, enumerated_lp, every_ring
from tradewind.systems.gadget.kernels.bound import knapsack, pooled, possible
from tradewind.systems.gadget.kernels.columns import lagrangian, relax
from tradewind.systems.gadget.kernels.exact import solve_exactly
from tradewind.systems.gadget.kernels.gains import Climb, climbs, envelope, gains, gains_now, price_of_waiting
from tradewind.systems.gadget.kernels.slot import Slot, SlotPrices, excess, make_slot, use, worth
from tradewind.systems.gadget.kernels.solve import SlotEffort, solve

SEEDS = range(12)


def priced(slot: Slot, seed: int) -> SlotPrices:
    rng = np.random.default_rng(seed)
    return SlotPrices(
        room=rng.random(slot.room.shape), link=rng.random(slot.servers), trunk=rng.random(len(slot.trunk))
    )


def cost_of(slot: Slot, i: int, y: tuple[int, ...], prices: SlotPrices) -> float:
    workers = np.array(y)
    here = workers > 0
    total = float((workers[:, None] * slot.need[i] * prices.room).sum())
    if here.sum() > 1:
        total += float(slot.band[i] * prices.link[here].sum())
        racks = np.unique(slot.rack[here])
        if len(racks) > 1:
            total += float(slot.band[i] * prices.trunk[racks].sum())
    return total


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("resources", [1, 2])
def test_pricing_finds_the_best_ring_that_enumeration_finds(seed: int, resources: int) -> None:
    slot = drawn(seed, servers=5, resources=resources, racks=3)
    prices = priced(slot, seed)
    _, best, rings = lagrangian(slot, prices)
    for i in range(slot.jobs):
        wanted = max(
            (slot.gain[i, sum(y)] - cost_of(slot, i, y, prices) for y in every_ring(slot, i)), default=0.0
        )
        assert best[i] == pytest.approx(max(0.0, wanted), abs=1e-9)
        if best[i] > 0:
            y = np.zeros(slot.servers, int)
            np.add.at(y, rings.server[i][rings.server[i] >= 0], rings.workers[i][rings.server[i] >= 0])
            assert tuple(y.tolist()) in every_ring(slot, i)
            assert slot.gain[i, y.sum()] - cost_of(slot, i, tuple(y), prices) == pytest.approx(best[i])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_is_the_lp_over_every_ring(seed: int) -> None:
    slot = drawn(seed, servers=6 if seed < 4 else 5, resources=1 + seed % 2)
    wanted = enumerated_lp(slot)
    found = relax(slot, [], gap=1e-9)
    assert found.value == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert found.bound == pytest.approx(wanted, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_ordered_and_no_answer_passes_the_optimum(seed: int) -> None:
    slot = possible(drawn(seed, servers=8, jobs=8, racks=2))
    proof = solve_exactly(slot)
    assert proof.optimal
    assert max(excess(slot, proof.rings)) <= 1.0
    answer = solve(slot, SlotEffort(rounds=400), seed=seed)
    room, links = excess(slot, answer.rings)
    assert room <= 1.0
    assert links <= 1.0
    assert answer.value == pytest.approx(worth(slot, answer.rings))
    assert answer.value <= proof.value * (1 + 1e-7)
    full = relax(slot, []).bound
    assert proof.value <= full * (1 + 1e-7)
    assert full <= knapsack(slot) * (1 + 1e-4)
    assert full <= pooled(slot, answer.value).bound * (1 + 1e-4)


def test_small_slots_come_within_half_a_percent_of_the_optimum_on_average() -> None:
    ratios = []
    for seed in range(tries(8, 20)):
        slot = drawn(100 + seed, servers=10, jobs=10, racks=3)
        ratios.append(solve(slot, SlotEffort(rounds=6000), seed=seed).value / solve_exactly(slot).value)
    assert np.mean(ratios) >= 0.995
    assert min(ratios) >= 0.98


def test_gangs_of_five_on_four_gpus_without_bandwidth_are_worth_nothing_and_the_bound_knows() -> None:
    gain = np.full((3, 6), -np.inf)
    gain[:, 0], gain[:, 5] = 0.0, 10.0
    slot = make_slot(
        room=np.full((4, 1), 4), link=np.zeros(4, int), first=np.array([0, 2, 4]), trunk=np.zeros(2, int),
        need=np.ones((3, 1), int), band=np.ones(3, int), gain=gain,
    )  # fmt: skip
    answer = solve(slot, SlotEffort())
    assert answer.value == 0.0
    assert answer.bound == 0.0
    assert relax(slot, []).bound == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_falls_when_links_shrink(seed: int) -> None:
    slot = drawn(seed, servers=8, jobs=8)
    wide, narrow = (
        relax(slot._replace(link=slot.link * n // 4, trunk=slot.trunk * n // 4), []).bound for n in (4, 1)
    )
    assert narrow <= wide * (1 + 1e-4)


def test_some_bound_falls_strictly_when_links_vanish() -> None:
    falls = 0
    for seed in SEEDS:
        slot = drawn(seed, servers=8, jobs=8)
        none = slot._replace(link=slot.link * 0, trunk=slot.trunk * 0)
        falls += relax(none, []).bound < 0.99 * relax(slot, []).bound
    assert falls >= 3


@pytest.mark.parametrize("seed", SEEDS)
def test_permuting_servers_within_a_rack_leaves_the_bound(seed: int) -> None:
    slot = drawn(seed, servers=8, jobs=8, racks=2)
    rng = np.random.default_rng(seed)
    order = np.concatenate(
        [rng.permutation(np.arange(a, b)) for a, b in zip(slot.first[:-1], slot.first[1:], strict=True)]
    )
    other = slot._replace(room=slot.room[order], link=slot.link[order])
    assert relax(other, [], gap=1e-9).bound == pytest.approx(relax(slot, [], gap=1e-9).bound, rel=1e-6)


def test_same_seed_same_rings() -> None:
    slot = drawn(5, servers=10, jobs=14, racks=3)
    one, two = (solve(slot, SlotEffort(rounds=300), seed=3).rings for _ in range(2))
    assert (one.server == two.server).all()
    assert (one.workers == two.workers).all()


def test_staying_keeps_rings_that_are_still_worth_it() -> None:
    slot = drawn(7, servers=10, jobs=10, racks=3)
    before = solve(slot, SlotEffort(rounds=300)).rings
    again = solve(slot, SlotEffort(rounds=300), before=before).rings
    both = (before.size > 0) & (again.size > 0)
    same = (before.server == again.server).all(1) & (before.workers == again.workers).all(1)
    assert same[both].mean() >= 0.9


def test_two_servers_take_both_links_once_and_one_server_takes_none() -> None:
    gain = np.array([[0.0, 1.0, 3.0]])
    slot = make_slot(
        room=np.ones((2, 1), int), link=np.array([5, 7]), first=np.array([0, 1, 2]), trunk=np.array([5, 5]),
        need=np.ones((1, 1), int), band=np.array([5]), gain=gain,
    )  # fmt: skip
    answer = solve(slot, SlotEffort())
    assert answer.value == 3.0
    room, link, trunk = use(slot, answer.rings)
    assert link.tolist() == [5, 5]
    assert trunk.tolist() == [5, 5]
    alone = solve(slot._replace(trunk=np.array([5, 4])), SlotEffort())
    assert alone.value == 1.0
    assert use(slot, alone.rings)[1].tolist() == [0, 0]
    assert room.tolist() == [[1], [1]]


def test_the_envelope_is_concave_and_never_below_the_values() -> None:
    values = np.array([0.0, 0.0, 0.0, 1.0, 9.0, 10.0, 10.0])
    line = envelope(values)
    assert (line >= values - 1e-12).all()
    assert (np.diff(line, 2) <= 1e-12).all()
    assert line[4] == 9.0
    assert gains(values, 3)[1] == pytest.approx(9.0 / 4)
    assert gains(values, 9)[7:].tolist() == [-np.inf] * 3


def test_waiting_is_free_where_there_is_time_and_worth_the_envelope_where_there_is_none() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = np.cumsum(np.append(0.0, rng.random(12) * rng.integers(0, 2, 12)))
        job = Climb(values=values, need=0.25, widest=4)
        assert gains_now(job, 0.0, slots=3) == pytest.approx(np.zeros(5), abs=1e-12)  # 3 slots of 4 do it all
        assert gains_now(job, 1e9, slots=3) == pytest.approx(gains(values, 4), abs=1e-9)
        now = gains_now(job, price_of_waiting([job] * 5, 2), slots=2)
        assert (np.diff(now) >= -1e-12).all()
        assert (now <= gains(values, 4) + 1e-9).all()


def test_at_the_price_of_waiting_what_is_wanted_fits_and_at_a_lower_one_it_does_not() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        jobs = [
            Climb(values=np.append(0.0, np.cumsum(-np.sort(-rng.random(9)))), need=float(need), widest=2)
            for need in rng.uniform(0.05, 0.4, 8)
        ]
        price = price_of_waiting(jobs, 3)

        def wanted(usd: float, crowd: list[Climb] = jobs) -> float:
            return sum(j.need * min(6, int((np.diff(j.line) > usd * j.need).sum())) for j in crowd)

        assert wanted(price * (1 + 1e-9)) <= 3 + 1e-9
        assert price == 0.0 or wanted(price * (1 - 1e-9)) > 3


def test_a_utility_climbs_where_it_bends_upwards() -> None:
    x = np.arange(20.0)
    assert climbs(1 / (1 + np.exp(9 - x)))
    assert not climbs(np.sqrt(x))
    assert not climbs(np.log1p(x))
    assert not climbs(3 * x)
