"""Live runs whose policy is rejected by the audit, fails, or leaves work undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builders import Scripted, decision, plan, rows, run_at, spec_of
from tests.worlds.live_runs import alarms, one, run_live, states
from tests.worlds.live_scenarios import S, broker, market
from tradewind import api
from tradewind.model.decision import Decision
from tradewind.model.job import Customer
from tradewind.model.scenario import Scenario


def test_an_allocation_that_the_audit_rejects_never_starts_a_process_and_the_last_accepted_plan_continues(
    tmp_path: Path,
) -> None:
    given = one(("sh", "-c", "echo $WORLD_SIZE >> ../started; sleep 1000"), workers_max=9, horizon=4)
    script = {
        0: decision(plan(0, run_at(0, until=S))),
        S: decision(plan(0, run_at(S, (0,), (9,)))),  # nine gpus on a node with four
        2 * S: decision(plan(0, run_at(2 * S, (0, 0), (1, 1)))),  # the same node twice
    }
    run = run_live(given, tmp_path / "state", spec_of(Scripted(script, {})), slot_seconds=0.5)
    assert alarms(run).count("rejected a decision of scripted") == 2
    assert "capacity.node" in alarms(run)
    assert "form.node_once" in alarms(run)
    assert (tmp_path / "state/jobs/0000-j0/started").read_text() == "1\n"
    assert rows(run, "steps", "from_us", "until_us") == [(0, S), (S, 2 * S), (2 * S, 3 * S)]
    assert run.violations == ()
    assert api.check(given, run) == ()


def test_a_rejected_first_decision_starts_nothing(tmp_path: Path) -> None:
    given = one(("sh", "-c", "touch ../started"), workers_max=9, horizon=3)
    bad = {at * S: decision(plan(0, run_at(at * S, (0,), (9,)))) for at in range(3)}
    run = run_live(given, tmp_path / "state", spec_of(Scripted(bad, {})), slot_seconds=0.1)
    assert run.tables["attempts"]["job"] == []
    assert list((tmp_path / "state" / "jobs").iterdir()) == []
    assert states(run) == ["unfinished"]


def test_a_policy_that_fails_raises_an_alarm_and_is_called_again(tmp_path: Path) -> None:
    def broken(view: Any) -> Decision:
        raise RuntimeError("what a day")

    given = one(("sleep", "0.2"))
    policy = Scripted({0: broken, S: decision(plan(0, run_at(S)))}, {})
    run = run_live(given, tmp_path / "state", spec_of(policy))
    assert "what a day" in alarms(run)
    assert states(run) == ["finished"]
    assert [event.kind for event in policy.observed][:2] == [
        "arrived",
        "slot",
    ]  # it gets the first instant again


def test_a_stream_that_is_not_served_is_a_violation_in_the_run_file_and_does_not_end_the_run(
    tmp_path: Path,
) -> None:
    given, _ = broker(("sleep", "1000"))
    run = run_live(given, tmp_path / "state", spec_of(Scripted({}, {})), slot_seconds=0.05)
    assert {v.rule for v in run.violations} == {"data.stream_served"}
    assert {v.rule for v in api.check(given, run)} == {"data.stream_served"}
    assert states(run) == ["left", "left"]


def test_customers_and_budgets_stay_with_the_world(tmp_path: Path) -> None:
    given, policy = market(("sleep", "1000"))
    poor = Scenario(
        name="poor", setup=given.setup, jobs=given.jobs, customers=(Customer(budget_usd=0.0),) * 3, changes=()
    )
    run = run_live(poor, tmp_path / "state", policy, slot_seconds=0.05)
    assert set(states(run)) <= {"declined", "refused"}
    assert run.tables["attempts"]["job"] == []
