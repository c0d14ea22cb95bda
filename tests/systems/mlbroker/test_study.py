"""The mlBroker study: comparisons on the same seeds, waiting for parameters, constants of theorems, regions."""

from __future__ import annotations

import math

import pytest

from tradewind.lab.study import Effort, Row
from tradewind.systems.mlbroker.rivals.alone import CENTRAL
from tradewind.systems.mlbroker.rivals.local import LOCAL
from tradewind.systems.mlbroker.rivals.oasis import OASIS
from tradewind.systems.mlbroker.study import real, regions, theorems
from tradewind.systems.mlbroker.study.rows import changes, compared, scenario
from tradewind.systems.mlbroker.workload.real import GB_USD, real_experiment
from tradewind.worlds.simulate import simulate

QUICK = Effort(quick=True, seeds=1)


def test_savings_are_compared_on_the_same_seeds() -> None:
    raw: list[Row] = [
        {"x": 1.0, "seed": seed, "policy": policy, "cost": factor * base}
        for seed, base in enumerate((10.0, 1000.0, 20.0))
        for policy, factor in (("mine", 0.9), ("theirs", 1.0), ("free", 0.0))
    ]
    found = {str(r["policy"]): r for r in compared(raw, ("x",), "cost", ("mine", "free"))}
    assert found["theirs"]["saved by mine"] == pytest.approx(0.1)
    assert found["theirs"]["saved by mine low"] == pytest.approx(0.1), "seeds differ, the saving does not"
    assert float(found["theirs"]["low"]) < 0 < float(found["theirs"]["high"])
    assert found["free"]["saved by mine"] == -1.0
    assert found["free"]["saved by free"] == 0.0


def test_a_change_is_from_the_smallest_to_the_largest_on_the_same_seeds() -> None:
    raw: list[Row] = [
        {"x": x, "seed": seed, "policy": "a", "v": base * (1 + x)}
        for seed, base in enumerate((1.0, 50.0))
        for x in (0.0, 1.0)
    ]
    assert changes(raw, "x", "policy", "v")["a"] == pytest.approx((1.0, 1.0, 1.0))


def test_waiting_follows_from_the_papers_tables_and_is_paid() -> None:
    assert 3600 * real.waiting_hours_per_gb() == pytest.approx(16.0, abs=0.1)
    made = real_experiment(0)
    run = simulate(made, LOCAL, seed=0)
    found = real.outcome(made, run)
    gb = run.metrics["cost_traffic_usd"] / GB_USD
    assert found["waiting"] == pytest.approx(gb * real.waiting_hours_per_gb())
    needed, _ = real.instance_hours(made, run)
    assert found["hours"] == pytest.approx(needed + found["waiting"])
    assert found["rent"] > run.metrics["cost_rent_usd"]
    assert found["cost"] - run.value == pytest.approx(found["rent"] - run.metrics["cost_rent_usd"])
    assert real.outcome(made, simulate(made, CENTRAL, seed=0))["waiting"] == 0


def test_oasis_at_list_prices_spreads_over_equal_zones() -> None:
    made = real_experiment(1)
    follows, spreads = (simulate(made, spec, seed=1) for spec in (OASIS, real.OASIS_LIST))
    zones = [len(set(run.tables["places"]["node"])) for run in (follows, spreads)]
    assert zones == [1, 3]


@pytest.mark.parametrize(("eps", "ratio"), [(1.0, 2 + 2 * math.log(2)), (0.01, 2 + 1.01 * math.log(101))])
def test_r1_is_the_constant_of_theorem_3(eps: float, ratio: float) -> None:
    assert theorems.r1(eps) == pytest.approx(ratio)


def test_r2_is_infinite_where_a_site_has_no_data_and_by_hand_where_all_have() -> None:
    assert theorems.r2(scenario(0, sites=15, slots=2, jobs_per_slot=9.0)) == math.inf
    made = real_experiment(0)
    jobs = {job.index: job for job in made.jobs}
    volumes = made.volumes
    least: dict[tuple[int, int], int] = {}
    total: dict[tuple[int, int], int] = {}
    for job, slot, size in zip(
        volumes.job.tolist(), volumes.slot.tolist(), volumes.bytes.tolist(), strict=True
    ):
        least[job, slot] = min(size, least.get((job, slot), size))
        total[job, slot] = total.get((job, slot), 0) + size
    chunk = {i: float(job.work.bytes_per_worker_slot) for i, job in jobs.items()}  # type: ignore[union-attr]
    one = 1 + max(4 * chunk[j] / d for (j, _), d in least.items())
    need = {key: math.ceil(d / chunk[key[0]]) for key, d in total.items()}
    gb = {i: c / 1e9 for i, c in chunk.items()}
    rent = [
        max(usd * (one + 1 / need[j, t]) / gb[j] for j, t in need)
        for usd in (3.06, 0.8 * 3.06 + 0.2 * 3.06 * 15)
    ]
    deploy = max((1 + one) * jobs[j].deploy_usd / (gb[j] * need[j, t]) for j, t in need)
    traffic = one * max(jobs[j].traffic_bytes_per_worker_slot / chunk[j] for j, _ in need)
    assert theorems.r2(made) == pytest.approx(one * 0.02 + min(rent) + deploy + traffic)


def test_regions_say_where_the_pipeline_is_cheapest() -> None:
    rows = regions.saving(QUICK)
    assert {r["rounding"] for r in rows} == set(regions.VARIANTS)
    text = regions.saving_summary(rows)
    assert "20% cheaper than OASiS, Local and Central: holds in" in text
    printed = [r for r in rows if (r["USD per GB"], r["parameters"]) == (1.0, 1.0)]
    assert all(float(r["measured"]) < 0 for r in printed), "never below central"
    found = regions.real(QUICK)
    assert regions.real_summary(found).startswith("The pipeline cheaper")
