"""What ranks of live runs measure becomes an estimate of the policy's view, slot by slot, and survives a killed loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import job, node, rows, scenario, setup
from tests.worlds.live_scenarios import S
from tests.worlds.test_fleet_world import LiveCase
from tradewind import api
from tradewind.model.decision import NOTHING, Decision
from tradewind.model.estimate import ALL, Estimate
from tradewind.model.job import Fixed, Rounds
from tradewind.model.view import View
from tradewind.systems.cluster.policy.fifo import FIFO, Fifo
from tradewind.testing.fleet_programs import program

SEEN: list[dict[int, Estimate]] = []


class Watching(Fifo):
    """Fifo that notes what it could believe."""

    def decide(self, view: View) -> Decision:
        SEEN.append({index: view.estimate(each) for index, each in view.active.items()})
        return super().decide(view) or NOTHING


def watching() -> Any:
    return replace(FIFO, name="watching", factory=lambda s, params, rng: Watching(s), compiled="", system="")


def two_jobs() -> Any:
    """Rounds that are declared to take 0.2 s and take 0.5 s, and a fixed job that takes as long as it does."""
    declared = Rounds(count=20, compute_us=S // 5)
    jobs = [
        job(0, work=declared, command=program("count", 20, 0.5), tenant="a"),
        job(1, work=Fixed(runtime_us=2 * S), command=program("count", 8, 0.5), tenant="b"),
        job(2, arrive_us=3 * S, work=declared, command=program("count", 20, 0.5), tenant="a"),
    ]
    return scenario(jobs, where=setup([node("a", 8)], slot_us=2 * S, horizon_us=60 * S))


def test_estimates_come_slot_by_slot_and_with_the_end_of_a_job() -> None:
    SEEN.clear()
    case = LiveCase(two_jobs(), policy=watching())
    run = case.run()
    assert not run.violations
    assert api.check(case.given, run, watching()) == ()
    names = tuple(run.tables["estimates"])
    told = [dict(zip(names, row, strict=True)) for row in rows(run, "estimates", *names)]
    rounds = [row for row in told if row["job"] == 0 and row["node"] == ALL]
    assert len(rounds) >= 3
    assert rounds[-1]["iterations"] > rounds[0]["iterations"]
    for row in rounds:
        assert row["seconds"] == pytest.approx(0.5, rel=0.2)
        assert row["declared_s"] == pytest.approx(0.2)
        assert row["bytes_per_s"] == pytest.approx(10.0 / row["seconds"], rel=0.2)
    (fixed,) = [row for row in told if row["job"] == 1]
    assert fixed["seconds"] / fixed["declared_s"] == pytest.approx(2.0, rel=0.25)  # four seconds, not two
    known = [seen[0] for seen in SEEN if 0 in seen and seen[0].measured]
    assert known
    assert known[-1].factor == pytest.approx(2.5, rel=0.2)
    assert known[-1].done > 0
    fresh = [seen[2] for seen in SEEN if 2 in seen and not seen[2].measured]
    assert fresh[-1].factor > 1.2  # its tenant's other job is slow


def test_estimates_survive_a_killed_loop() -> None:
    for points in (12, 20, 28):
        case = LiveCase(two_jobs())
        assert case.until(points) is None
        run = case.run()
        assert not run.violations
        assert api.check(case.given, run) == ()
        assert set(run.tables["estimates"]["job"]) == {0, 1, 2}
