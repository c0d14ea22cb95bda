"""Eris as printed: the errors of the printed algorithms, and what remains once a schedule must be feasible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tradewind.model.arrays import Floats, Ints
from tradewind.model.job import Dataset
from tradewind.model.spec import Spec
from tradewind.registry import policies, workloads
from tradewind.systems.eris.kernels.oracle import menu
from tradewind.systems.eris.kernels.paper import PrintedSchedule
from tradewind.systems.eris.kernels.paper import printed as search
from tradewind.systems.eris.kernels.printed_slot import Deployment, Reading, deploy, slot_of, train
from tradewind.systems.eris.kernels.repair import carried_out, repair
from tradewind.systems.eris.kernels.task import Market, TrainingTask
from tradewind.systems.eris.paper import DEARER, INFEASIBLE, MOST_CHUNKS, PaperSeller, Terms, least_bases
from tradewind.systems.eris.shared.market import CapacityLedger, PostedPrices, plan_of, task_of, worth_of
from tradewind.systems.eris.study.bases import day_bases
from tradewind.systems.eris.study.lies import payoffs, tiny
from tradewind.worlds.simulate import simulate

FORMULAS = Reading(remaining=False, reserved=False, both=False)
TEXT = Reading(remaining=True, reserved=True, both=True)
WORTH: Floats = 1000.0 * np.float64(0.5) ** np.arange(4)


def task(data: list[int], per_worker: float = 1.0, **more: Any) -> TrainingTask:
    """One GPU and one CPU per worker, one CPU per server, 1 MB chunks, 10 MB of parameters per worker and slot."""
    base = TrainingTask(
        worker=np.array([1000, 1000]),
        server=np.array([1000, 0]),
        data=np.array(data, dtype=np.int64),
        rate=round(1000 * per_worker),
        need=1000,
        chunk_bytes=1_000_000,
        traffic_bytes=10_000_000,
    )
    return base._replace(**more)


def market(free: list[list[int]], room: int = 10**9, usd: Floats | None = None) -> Market:
    """The same in all four slots: whole units of CPU and GPU per site, bytes of bandwidth, prices per unit."""
    units = np.tile(np.array(free, dtype=np.int64) * 1000, (4, 1, 1))
    prices = np.full(units.shape, 1e-6) if usd is None else np.tile(usd / 1000.0, (4, 1, 1))
    return Market(usd=prices, byte_usd=np.full(4, 1e-15), free=units, room=np.full(4, room, dtype=np.int64))


def printed(bid: TrainingTask, place: Market, worth: Floats, reading: Reading = FORMULAS) -> PrintedSchedule:
    return search(bid, place, worth, reading)


def trained(rows: list[list[tuple[int, int, int]]], sites: int) -> Ints:
    """Chunks taken from every site."""
    found = np.zeros(sites, np.int64)
    for slot in rows:
        for source, _, n in slot:
            found[source] += n
    return found


def test_twenty_seven_chunks_on_as_many_sites_get_nine_workers_that_train_nine_of_them() -> None:
    # line 14 rounds up the total, not every site: it counts three chunks per worker, of which one is stored at its site
    bid, place = task([1] * 27, per_worker=3.0), market([[4, 4]] * 27)
    found = printed(bid, place, WORTH)
    assert found.workers.sum() == 9
    _, left = carried_out(bid, place, found)
    assert left == 18
    real = repair(bid, place, found)
    assert real is not None  # feasible with bandwidth for eighteen moves
    assert trained(real.flows, 27).tolist() == [1] * 27
    moved = sum(n for slot in real.flows for a, b, n in slot if a != b)
    assert moved == 18


def test_without_bandwidth_for_the_moves_the_same_bid_is_infeasible() -> None:
    bid = task([1] * 27, per_worker=3.0, traffic_bytes=0)
    place = market([[4, 4]] * 27, room=17_000_000)
    assert repair(bid, place, printed(bid, place, WORTH)) is None


def test_the_same_data_is_used_in_every_slot() -> None:
    # two GPUs, four chunks at two sites: each slot counts the first site's chunks again
    bid = task([2, 2])
    usd = np.array([[0.0, 1.0], [0.0, 3.0]])
    found = printed(bid, market([[4, 2], [4, 2]], room=0, usd=usd), WORTH)
    assert found.workers.tolist() == [[2, 0], [2, 0]]
    _, left = carried_out(bid, market([[4, 2], [4, 2]], room=0, usd=usd), found)
    assert left == 2


def test_the_server_goes_where_most_workers_are_though_it_does_not_fit() -> None:
    # the first site's CPUs are all taken by its workers; the second has room for a server
    bid, place = task([4, 0]), market([[4, 4], [4, 0]])
    found = printed(bid, place, WORTH)
    assert found.servers.tolist() == [0]
    kept, left = carried_out(bid, place, found)
    assert (kept.slots, left) == ((), 4)
    real = repair(bid, place, found)
    assert real is not None
    assert real.servers == (1,)
    assert real.usd > found.usd  # parameters now cross sites


def test_bandwidth_just_under_the_parameters_of_one_worker_keeps_workers_together() -> None:
    bid = task([1, 1])
    apart = printed(bid, market([[4, 1], [4, 1]], room=10_000_000), WORTH)
    assert len(apart.slots) == 1
    assert printed(bid, market([[4, 1], [4, 1]], room=9_999_999), WORTH).workers.tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("per_worker", [1.9, 0.5])
def test_fractional_workers_are_repaired_or_refused_but_never_cheat(per_worker: float) -> None:
    bid, place = task([3, 2, 2], per_worker), market([[8, 8]] * 3)
    real = repair(bid, place, printed(bid, place, WORTH))
    if real is None:
        return
    assert trained(real.flows, 3).tolist() == [3, 2, 2]
    for s, rows in enumerate(real.flows):
        into = np.zeros(3, np.int64)
        for _, b, n in rows:
            into[b] += n
        assert (real.workers[s] * bid.rate >= into * bid.need).all()


def test_no_gpu_demand_and_a_full_site_are_no_obstacle() -> None:
    bid = task([2, 2], worker=np.array([1000, 0]))
    found = printed(bid, market([[0, 0], [8, 0]]), WORTH)
    assert found.workers[:, 0].sum() == 0
    assert found.workers.sum() > 0


def test_no_feasible_schedule_is_cheaper_than_the_certified_bound() -> None:
    rng, real_ones = np.random.default_rng(7), 0
    for _ in range(60):
        sites = int(rng.integers(2, 5))
        bid = task(rng.integers(0, 4, sites).tolist(), float(rng.choice([1.0, 2.0, 3.0])))
        if not bid.data.any():
            continue
        usd = rng.uniform(0, 5, (sites, 2))
        place = market(rng.integers(1, 5, (sites, 2)).tolist(), int(rng.integers(0, 60)) * 10**6, usd)
        real = repair(bid, place, printed(bid, place, WORTH))
        if real is not None and WORTH[real.slots[-1]] > real.usd:
            real_ones += 1
            assert WORTH[real.slots[-1]] - real.usd <= menu(bid, place, WORTH).bound + 1e-9
    assert real_ones > 10


def test_a_repaired_market_keeps_every_rule_and_gives_reasons_for_refusals() -> None:
    reasons: set[str] = set()
    for seed in range(6):
        scenario = tiny(seed, chunks_per_worker=(1.0, 1.9, 3.0)[seed % 3], gpu=4.0, bandwidth_gb=0.4)
        run = simulate(scenario, policies.find("eris-paper"))
        assert run.metrics["jobs_completed"] == run.metrics["jobs_accepted"]
        assert all(p > 0 for p in payoffs(scenario, run).values())
        reasons |= set(run.tables["answers"]["why"])  # type: ignore[arg-type] # a column of words
    crowded = workloads.generate(
        "eris",
        {"size": "crowded", "sites": 10, "jobs": 60, "slots": 40, "bandwidth_gb": 4.0, "forecast": False},
        1,
    )
    reasons |= set(simulate(crowded, policies.find("eris-paper")).tables["answers"]["why"])  # type: ignore[arg-type]
    assert reasons & {INFEASIBLE, DEARER}


def test_most_jobs_that_the_printed_algorithm_accepts_never_finish() -> None:
    accepted = finished = 0.0
    for seed in range(3):
        run = simulate(
            workloads.generate(
                "eris", {"size": "contended", "jobs": 40, "slots": 60, "forecast": False}, seed
            ),
            policies.find("eris-printed"),
        )
        accepted += run.metrics["jobs_accepted"]
        finished += run.metrics["jobs_completed"]
    assert accepted > 100
    assert finished < 0.5 * accepted


def test_remaining_data_is_not_used_again() -> None:
    bid, usd = task([2, 2]), np.array([[0.0, 1.0], [0.0, 3.0]])
    place = market([[4, 2], [4, 2]], room=0, usd=usd)
    found = printed(bid, place, WORTH, FORMULAS._replace(remaining=True))
    assert found.workers.tolist() == [[2, 0], [0, 2]]
    kept, left = carried_out(bid, place, found)
    assert left == 0
    assert trained(kept.flows, 2).tolist() == [2, 2]
    assert found.usd == pytest.approx(8.0)  # the second site's price is counted, unlike in the other reading
    assert printed(bid, place, WORTH).usd == pytest.approx(4.0)


def test_room_that_is_kept_for_the_server_is_enough_where_it_goes() -> None:
    bid, place = task([4, 0]), market([[4, 4], [4, 0]])
    found = printed(bid, place, WORTH, FORMULAS._replace(reserved=True))
    assert int(found.workers.sum(axis=1).max()) == 3
    kept, _ = carried_out(bid, place, found)
    assert len(kept.slots) == len(found.slots) == 2
    none = market([[1, 4], [1, 4]])  # one CPU: a worker or the server
    assert not printed(bid, none, WORTH, FORMULAS._replace(reserved=True)).possible


def test_a_pair_of_sites_moves_data_in_the_direction_that_saves() -> None:
    # all data is at the dear second site; the first is cheap
    bid, usd = task([0, 2]), np.array([[0.0, 1.0], [0.0, 50.0]])
    place = market([[8, 4], [8, 4]], usd=usd)
    assert printed(bid, place, WORTH).workers.tolist() == [[0, 2]]
    cheap = printed(bid, place, WORTH, FORMULAS._replace(both=True))
    assert cheap.workers.tolist() == [[2, 0]]
    assert cheap.moves[0].tolist() == [[0, 0], [2, 0]]


def test_remaining_data_is_searched_as_the_recursion_says() -> None:
    # Algorithm 2 by plain recursion over (slot, chunks), where a state keeps what its cheapest schedule leaves
    rng = np.random.default_rng(18)
    for _ in range(25):
        sites = int(rng.integers(2, 4))
        bid = task(rng.integers(0, 4, sites).tolist(), float(rng.choice([1.0, 2.0, 1.5])))
        if not bid.data.any():
            continue
        usd = rng.uniform(0, 9, (sites, 2))
        place = market(rng.integers(1, 5, (sites, 2)).tolist(), int(rng.integers(0, 60)) * 10**6, usd)
        found = printed(bid, place, WORTH, TEXT)
        states: list[tuple[float, Ints]] = [(0.0, bid.data)] + [(np.inf, bid.data)] * int(bid.data.sum())
        payoff = 0.0
        for t in range(4):
            slot, after = slot_of(bid, place, t, TEXT), []
            for n, best in enumerate(states):
                for d in range(1, n + 1):
                    usd_before, left = states[n - d]
                    if usd_before == np.inf:
                        continue
                    plan = Deployment(
                        *(np.zeros(shape, np.int64) for shape in (sites, (sites, sites), sites, sites))
                    )
                    cost, _ = deploy(slot, bid, left, d, plan)
                    if usd_before + cost < best[0] * (1 - 1e-12):
                        rest = left.copy()
                        train(slot, bid, d, plan, rest)
                        best = usd_before + cost, rest
                after.append(best)
            states = after
            payoff = max(payoff, WORTH[t] - states[-1][0])
        assert found.payoff == pytest.approx(payoff)


def test_in_the_kindest_reading_every_schedule_for_single_chunks_is_carried_out() -> None:
    params = {"data": "remaining", "server": "reserved", "pairs": "both"}
    for seed in range(2):
        scenario = workloads.generate(
            "eris", {"size": "contended", "jobs": 40, "slots": 60, "forecast": False}, seed
        )
        run = simulate(scenario, policies.find("eris-printed"), params)
        assert run.metrics["jobs_accepted"] > 30
        assert run.metrics["jobs_completed"] == run.metrics["jobs_accepted"]


def terms(**changes: Any) -> Terms:
    return replace(Terms(gamma=1000.0, gamma_transfer=1000.0, unit="gb", reading=FORMULAS), **changes)


def test_bandwidth_priced_per_mb_is_a_thousand_times_dearer() -> None:
    scenario = tiny(1)
    ledger, job = CapacityLedger(scenario.setup), scenario.jobs[0]
    per_gb, per_mb = (terms(unit=unit).market(ledger, job, 0) for unit in ("gb", "mb"))
    assert per_mb.byte_usd == pytest.approx(1000 * per_gb.byte_usd)
    assert (per_mb.usd == per_gb.usd).all()
    run = simulate(scenario, policies.find("eris-paper"), {"transfer_unit": "mb"})
    assert run.metrics["jobs_completed"] >= 1


def test_bandwidth_has_a_base_of_its_own() -> None:
    scenario = tiny(1)
    ledger, job = CapacityLedger(scenario.setup), scenario.jobs[0]
    same = terms().market(ledger, job, 0)
    found = terms().search(task_of(ledger, job), same, worth_of(scenario.setup, job, 0, len(same.room)))
    real = repair(task_of(ledger, job), same, found)
    assert real is not None
    ledger.reserve(job, plan_of(ledger, job, real, 0))
    low, high = (terms(gamma_transfer=g).market(ledger, job, 0) for g in (10.0, 1000.0))
    share = ledger.moved / ledger.band
    assert share.max() > 0
    assert low.byte_usd[share > 0] * 1e9 == pytest.approx(np.maximum(10 ** share[share > 0] - 1, 1e-3))
    assert (low.usd == high.usd).all()
    assert (terms().listed, terms(gamma_transfer=10.0).listed) == (True, False)
    run = simulate(scenario, policies.find("eris-paper"), {"gamma_transfer": 5.0})
    assert run.metrics["jobs_completed"] >= 1


@pytest.mark.parametrize("name", ["eris-paper", "eris-printed"])
def test_a_bid_of_too_many_chunks_is_refused_and_the_market_goes_on(name: str) -> None:
    scenario = tiny(3, slots=60, gpu=8.0, cpu=200.0, ram_gb=500.0)
    work = scenario.jobs[2].work
    assert isinstance(work, Dataset)
    large = replace(scenario.jobs[2], work=replace(work, chunks=((0, MOST_CHUNKS + 1),)))
    jobs = tuple(large if job.index == 2 else job for job in scenario.jobs)
    run = simulate(replace(scenario, jobs=jobs), policies.find(name))
    assert run.tables["outcomes"]["state"][2] == "refused"
    assert run.metrics["jobs_accepted"] >= 1


def test_bases_cover_the_worth_per_unit_and_per_gb_of_a_bid() -> None:
    market = tiny(1)
    ledger, job = CapacityLedger(market.setup), market.jobs[0]
    gamma, transfer = least_bases(ledger, job)
    bid, worth = task_of(ledger, job), job.utility.value(0) if job.utility else 0.0
    found = menu(bid, ledger.market(job, 0, PostedPrices(gamma=1.0, floor=np.zeros(4))), np.full(14, worth))
    for offer in found.offers:
        units = offer.workers.sum() * bid.worker.sum() / 1000 + len(offer.slots) * bid.server.sum() / 1000
        assert worth / units <= gamma - 1
    assert least_bases(ledger, job, "mb")[1] - 1 == pytest.approx((transfer - 1) / 1000)
    assert isinstance(job.work, Dataset)
    one_site = replace(job, work=replace(job.work, chunks=((0, 10),)))
    assert least_bases(ledger, one_site)[1] == 2.0  # nothing has to move


def test_bases_from_bids_are_those_of_earlier_bids_and_survive_a_restart() -> None:
    market, spec = tiny(1), policies.find("eris-paper")
    assert simulate(market, spec, {"bases": "bids"}).metrics["jobs_completed"] > 0
    policy = spec.factory(market.setup, _all(spec, bases="bids"), np.random.default_rng(0))
    assert isinstance(policy, PaperSeller)
    assert policy.bases == (2.0, 2.0)
    for job in market.jobs[:3]:
        policy._learn(job)
    assert policy.bases == day_bases(replace(market, jobs=market.jobs[:3], customers=market.customers[:3]))
    other = spec.factory(market.setup, _all(spec, bases="bids"), np.random.default_rng(0))
    other.restore(policy.save())
    assert isinstance(other, PaperSeller)
    assert other.bases == policy.bases


def _all(spec: Spec, **given: Any) -> dict[str, Any]:
    return {name: param.default for name, param in spec.params.items()} | given
