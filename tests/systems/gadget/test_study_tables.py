"""Two tables of the GADGET study by other means: what a move costs, and a trace as rings recomputed from its plans."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.builders import scenario
from tests.systems.gadget.test_policy import SLOT, ring_job, small, tree
from tradewind.engine import bounds
from tradewind.engine.intervals import ints
from tradewind.lab.study import Effort, Row, mean_of
from tradewind.model.job import Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change
from tradewind.registry import policies, workloads
from tradewind.systems.gadget.study.ours import (
    ANEW,
    COSTS_S,
    PLAIN,
    RINGS,
    STAYS,
    judge_churn,
    judge_migration,
    migration_rows,
    trace_rows,
)
from tradewind.systems.gadget.study.runs import RIVALS
from tradewind.worlds.simulate import simulate

QUICK = Effort(quick=True, seeds=1)
HOUR = 3600


@pytest.fixture(scope="module")
def costs() -> list[Row]:
    return migration_rows(QUICK)


def test_the_dearer_a_move_the_less_everyone_who_moves_earns(costs: list[Row]) -> None:
    for name in (STAYS, ANEW, *RIVALS):
        earned = [mean_of(costs, "of bound", policy=name, cost=c) for c in COSTS_S]
        moves = mean_of(costs, "moved", policy=name, cost=COSTS_S[-1]) > 0
        assert (earned[0] > earned[-1]) == moves, name
        # a schedule that loses work takes other turns, so a step may be off by a little
        assert all(a >= b - 2e-3 for a, b in pairwise(earned)), name


def test_rings_that_stay_lose_least_when_moves_cost(costs: list[Row]) -> None:
    loss = {
        name: mean_of(costs, "of bound", policy=name, cost=0.0)
        - mean_of(costs, "of bound", policy=name, cost=COSTS_S[-1])
        for name in (STAYS, ANEW)
    }
    assert loss[STAYS] < 0.25 * loss[ANEW]
    assert judge_migration(costs, STAYS).holds


def test_the_judge_of_moves_misses_its_aim_where_a_rival_earns_more(costs: list[Row]) -> None:
    better = [{**row, "of bound": 1.0} if row["policy"] == "ring-drf" else row for row in costs]
    assert not judge_migration(better, STAYS).holds


@pytest.mark.parametrize(
    ("moved", "kept", "met"), [(0.24, 9999.0, True), (0.26, 9999.0, False), (0.1, 9980.0, False)]
)
def test_the_judge_of_churn_wants_few_moves_and_the_utility(moved: float, kept: float, met: bool) -> None:
    rows: list[Row] = [
        {"case": "a", "rings": "stay", "moved": moved, "utility": kept},
        {"case": "a", "rings": "anew", "moved": 0.9, "utility": 10_000.0},
    ]
    assert judge_churn(rows, STAYS).holds == met


def test_the_bound_ignores_what_moves_cost() -> None:
    free, dear = (bounds.bound(small("vtight", "sqrt", restart_s=cost)) for cost in (0.0, 300.0))
    assert free is not None
    assert dear is not None
    assert free.value == dear.value


@pytest.mark.parametrize("name", ["gadget", "gadget-paper", "ring-fifo", "ring-drf", "ring-las", "ring-srtf"])
def test_every_scheduler_pays_the_same_for_a_move(name: str) -> None:
    # the server that the job is on fails in the second slot: it loses that slot, moves, and does nothing for 50 us
    def played(*changes: Change) -> Run:
        job = ring_job(0, count=8, workers=2, least=2, restart_us=50)
        return simulate(scenario([job], where=tree(((2,), (2,))), changes=changes), policies.find(name))

    calm = played()
    assert calm.tables["outcomes"]["finish_us"] == [4 * SLOT]
    server = ints(calm, "places", "node")[0]
    rough = played(Change(SLOT + 50, "node_down", int(server), 0, 0))
    assert set(rough.tables["places"]["node"]) == {2, 4}
    assert rough.tables["outcomes"]["finish_us"] == [2 * SLOT + 50 + 3 * SLOT]


def recomputed(given: Scenario, run: Run) -> list[int]:
    """When every job is done, from the plans alone: a plan holds until the next one of its job."""
    made, owner = ints(run, "plans", "at_us").tolist(), ints(run, "plans", "job").tolist()
    plan_of = ints(run, "steps", "plan").tolist()
    on = np.bincount(ints(run, "places", "step"), ints(run, "places", "workers"), len(plan_of))
    workers = {plan: int(on[step]) for step, plan in enumerate(plan_of)}
    finish = []
    for index, job in enumerate(given.jobs):
        assert isinstance(job.work, Rounds)
        mine = [k for k in range(len(made)) if owner[k] == index]
        left, at = job.work.count * given.setup.slot_us, 0
        ends = [made[k] for k in mine[1:]] + [given.setup.horizon_us]
        for k, end in zip(mine, ends, strict=True):
            rate = workers.get(k, 0)
            if rate and left <= rate * (end - made[k]):
                at, left = made[k] + -(-left // rate), 0
                break
            left -= rate * (end - made[k])
        assert left == 0, job.id
        finish.append(at)
    return finish


def philly(folder: Path, rows: list[tuple[str, float, int]]) -> None:
    text = "".join(f"2017-10-09 {at},{duration},{gpus},0,vc\n" for at, duration, gpus in rows)
    (folder / "philly.csv").write_text("timestamp,duration,num_gpus,gpu_time,cluster\n" + text)


def test_rings_of_a_trace_finish_when_their_plans_say_and_the_metrics_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [
        (f"{h:02d}:{m:02d}:00", float(d), int(g))
        for h, m, d, g in zip(
            rng.integers(0, 6, 40), rng.integers(0, 60, 40), rng.lognormal(8.5, 1.0, 40), rng.choice([1, 2, 4, 8, 12], 40),
            strict=True,
        )
    ]  # fmt: skip
    philly(tmp_path, rows)
    where = {
        "file": str(tmp_path / "philly.csv"),
        "format": "philly",
        "servers": 4,
        "racks": 2,
        "slot_s": 600.0,
    }
    given = workloads.generate("gadget-trace", where, 0)
    for name in RINGS:
        run = simulate(given, policies.find(name), {"rounds": 0} if name == "gadget" else {}, seed=1)
        finish = recomputed(given, run)
        arrive = [job.arrive_us for job in given.jobs]
        assert run.metrics["jobs_completed"] == 40
        assert run.tables["outcomes"]["finish_us"] == finish
        mean = sum(f - a for f, a in zip(finish, arrive, strict=True)) / 40 / 1e6
        assert run.metrics["jct_mean_s"] == pytest.approx(mean)
        assert run.metrics["makespan_s"] == pytest.approx((max(finish) - min(arrive)) / 1e6)


def test_the_table_of_the_trace_has_the_hours_that_one_adds_up_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # nothing is in anyone's way; rings wait for slots of four hours and run whole ones
    philly(tmp_path, [("00:00:00", 5 * HOUR, 16), ("01:00:00", 4 * HOUR, 3), ("04:00:00", 0.5 * HOUR, 1)])
    monkeypatch.setenv("TRADEWIND_TRACES", str(tmp_path))
    rows = trace_rows(QUICK)
    assert {row["policy"] for row in rows} == {*RINGS, *PLAIN}
    for row in rows:
        ring = row["policy"] in RINGS
        hours = (8, 7, 4) if ring else (5, 4, 0.5)  # finished at 8, 8, 8; at 5, 5, 4.5
        assert row["trace"] == "philly"
        assert row["completed"] == 3
        assert row["mean completion"] == pytest.approx(sum(hours) / 3), row
        assert row["makespan"] == pytest.approx(8 if ring else 5), row


def test_without_the_trace_a_drawn_cluster_takes_its_place_and_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_TRACES", str(tmp_path))
    rows = trace_rows(QUICK)
    assert {row["trace"] for row in rows} == {"generated"}
    assert {row["completed"] for row in rows} == {150.0}
