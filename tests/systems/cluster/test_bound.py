"""The bound of fixed jobs holds for every scheduler and is tight where it should be."""

from __future__ import annotations

from pathlib import Path

import pytest

import tradewind as tw
from tradewind.model.result import Bound
from tradewind.systems.cluster.bound import shortest_remaining_sum

POLICIES = ("fifo", "fifo-backfill", "srtf", "srsf", "las", "drf")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", POLICIES)
def test_no_scheduler_beats_the_bound(policy: str, seed: int) -> None:
    scenario = tw.generate("cluster", jobs=120, servers=2, load=2.0, seed=seed)
    run = tw.run(scenario, policy=policy, bound=True)
    assert run.bound is not None
    assert run.bound.ratio >= 1 - 1e-12


def test_one_machine_is_solved_exactly() -> None:
    # shortest remaining first: 0-1, (1-2 the short one), 1 more, then the long one
    assert shortest_remaining_sum([(0, 3), (1, 1)], 1) == (4 - 0) + (2 - 1)
    assert shortest_remaining_sum([(0, 6), (2, 2)], 2) == (4 - 0) + (3 - 2)


def test_on_one_gpu_srtf_meets_the_bound() -> None:
    scenario = tw.generate("cluster", jobs=80, servers=1, gpus_per_server=1, load=1.5, seed=3)
    run = tw.run(scenario, policy="srtf", bound=True)
    assert run.bound is not None
    if run.metrics["jobs_refused"] == 0:
        assert run.bound.ratio == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("policy", ["gadget", "ring-fifo", "ring-srtf"])
def test_no_scheduler_of_rings_beats_the_bound_of_a_recorded_trace(policy: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    rows = [f"j{i},{37 * i},{60 + 53 * (i * 7 % 11)},{1 + i % 5}" for i in range(20)]
    file.write_text("id,arrive_s,duration_s,gpus\n" + "\n".join(rows) + "\n")
    made = tw.generate(
        "gadget-trace", file=str(file), format="csv", servers=2, gpus_per_server=4, racks=2, slot_s=20.0
    )
    run = tw.run(made, policy=policy, bound=True)
    assert run.metrics["jobs_completed"] == 20
    assert run.bound is not None
    assert run.bound.kind == "certified"
    assert 1 <= run.bound.ratio < 10


def test_a_ring_alone_meets_its_bound(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,arrive_s,duration_s,gpus\na,0,600,4\n")
    made = tw.generate(
        "gadget-trace", file=str(tmp_path / "jobs.csv"), format="csv", servers=1, gpus_per_server=8, racks=1
    )
    assert tw.run(made, policy="gadget", bound=True).bound == Bound(
        value=600.0, sense="min", kind="certified", ratio=1.0
    )
