"""Every changed cell or header field of a run file is noticed, or the audit names it as not checked."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests import builders
from tests.audit import forged
from tests.audit.edit_cases import Case, cancellations, cases, held_quotes, live_batch, live_rings
from tests.audit.edits import Edit, double_row, outcome, remove_row, swap_rows, tally
from tests.builders import job, node, setup
from tests.worlds.live_scenarios import S
from tradewind import api
from tradewind.audit import Audit
from tradewind.engine.accounts import settle
from tradewind.model.decision import Decision
from tradewind.model.errors import InputError
from tradewind.model.job import Fixed
from tradewind.model.result import Bound, Run, Violation
from tradewind.model.scenario import Scenario
from tradewind.model.view import Event
from tradewind.testing.scenarios import contended_cluster

NEVER = {"header.version", "header.policy", "header.params", "header.seed"}
"""What a second run cannot show, or only where the run depends on it."""


def test_of_random_edits_none_passes_in_silence() -> None:
    found = tally(320, seed=5)
    assert sum(outcomes["noticed"] for outcomes in found.values()) > 200
    gaps = {where: dict(outcomes) for where, outcomes in found.items() if "GAP" in outcomes}
    assert not gaps
    free = {where for where, outcomes in found.items() if any(what.startswith("free") for what in outcomes)}
    assert free <= NEVER


@pytest.fixture(scope="module")
def edited_cases() -> list[Case]:
    return [
        case for name in ("gadget-f", "failures", "live_b", "held", "canc", "refunds") for case in cases(name)
    ]


@pytest.mark.parametrize("make", [swap_rows, remove_row, double_row])
def test_every_row_of_events_that_is_swapped_or_removed_or_doubled_is_noticed(
    edited_cases: list[Case], make: Callable[[dict[str, Any], int], Edit], tmp_path: Path
) -> None:
    """Only what customers say within a microsecond is in any order, and only the expiry of a closed quote may be missing."""
    free: dict[str, set[str]] = {}
    for case in edited_cases:
        for row in range(case.document["tables"]["events"]["rows"] - (make is swap_rows)):
            document = deepcopy(case.document)
            edit = make(document, row)
            if edit.before == edit.after or outcome(case, edit, document, tmp_path / "run.json") == "noticed":
                continue
            said = [edit.before, edit.after if make is swap_rows else edit.before]
            assert {kind for _, kind, *_ in said} <= {"cancelled", "answered", "expired"}, (case.name, edit)
            free.setdefault(case.name, set()).add(edit.where)
    assert set(free) <= {"held_quotes"}


@pytest.mark.parametrize("name", ["held", "live_b", "mlbroker-t"])
def test_a_table_that_is_missing_or_has_rows_twice_is_noticed_or_named(name: str, tmp_path: Path) -> None:
    """A table that is missing counts as empty, as in a file that is older than it."""
    for case in cases(name):
        for table, content in case.document["tables"].items():
            if content["rows"]:
                missing, twice = deepcopy(case.document), deepcopy(case.document)
                del missing["tables"][table]
                gone = Edit(f"{table}.rows", 0, "the table", None)
                assert outcome(case, gone, missing, tmp_path / "run.json") != "GAP", table
                found = outcome(case, double_row(twice, 0, table), twice, tmp_path / "run.json")
                assert found == "noticed" if table in ("answers", "events", "outcomes") else found != "GAP", (
                    table
                )


def test_a_timer_that_is_removed_is_noticed_where_a_decision_of_its_instant_sets_another() -> None:
    jobs = [job(index, arrive_us=index * S, work=Fixed(runtime_us=S)) for index in range(2)]
    where = setup([node("a", 2)], slot_us=S, horizon_us=9 * S, objective="jct_mean_s")
    given = builders.scenario(jobs, where=where)
    audit = Audit(where, given)
    arrivals = [Event(each.arrive_us, "arrived", each.index, 0, each) for each in given.jobs]
    assert audit.take(arrivals[:1]) == audit.check(0, Decision(wake_us=S)) == ()
    assert audit.take(arrivals[1:]) == ()
    assert [each.rule for each in audit.check(S, Decision(wake_us=2 * S))] == ["time.timer"]
    assert audit.take([Event(S, "timer")]) == audit.check(S, Decision(wake_us=2 * S)) == ()


def test_the_time_of_a_cancellation_agrees_with_what_the_job_used() -> None:
    given, run = cancellations()
    events: Any = run.tables["events"]
    noticed = 0
    for row in (i for i, kind in enumerate(events["kind"]) if kind == "cancelled"):
        moved = edited(run, "events", "at_us", row, events["at_us"][row] + given.setup.slot_us // 4)
        try:
            noticed += bool(rules(given, moved))
        except InputError:  # no longer in order
            noticed += 1
    assert noticed == list(events["kind"]).count("cancelled") > 1


@pytest.fixture(scope="module")
def known() -> tuple[Scenario, Run]:
    given = contended_cluster(4)
    return given, tw.run(given, "las", seed=3)


def rules(given: Scenario, run: Run, **depth: Any) -> set[str]:
    return {violation.rule for violation in api.audit(given, run, **depth).violations}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"scenario_name": "another"}, "header.scenario_name"),
        ({"policy": "eris"}, "header.policy"),
        ({"params": {"unheard_of": 1}}, "header.params"),
        ({"world": "processes"}, "attempts.missing"),
        ({"bound": Bound(value=1.0, sense="max", kind="certified", ratio=1.5)}, "header.bound"),
        ({"certificates": ({"name": "invented", "value": 1.0, "at_us": -5, "data": {}},)}, "certificate.placement"),
    ],
)  # fmt: skip
def test_a_false_header_is_a_violation(known: tuple[Scenario, Run], change: Any, rule: str) -> None:
    given, run = known
    assert rules(given, run) == set()
    assert rule in rules(given, replace(run, **change))


@pytest.mark.parametrize(
    ("workload", "policy", "kind"),
    [("apsp", "shortest-path", "ended"), ("mlbroker", "mlbroker", "left"), ("cluster", "fifo", "finished")],
)
def test_a_run_that_is_called_measured_does_not_pass_with_a_completion_moved(
    workload: str, policy: str, kind: str
) -> None:
    small: dict[str, Any] = {"apsp": {"transport": "cut-through", "hours": 3.0, "vary": 0.5, "epochs": 10**9}}
    given = tw.generate(
        workload, seed=3, **small.get(workload, {"slots": 6} if kind == "left" else {"jobs": 5})
    )
    run = tw.run(given, policy)
    events: Any = {name: list(column) for name, column in run.tables["events"].items()}
    row = max(i for i, each in enumerate(events["kind"]) if each == kind)
    events["at_us"][row] -= 1
    order = sorted(range(len(events["kind"])), key=lambda i: events["at_us"][i])
    moved: Any = {name: [column[i] for i in order] for name, column in events.items()}
    false = settle(given, replace(run, world="processes", tables={**run.tables, "events": moved}))
    assert "attempts.missing" in rules(given, false)


@pytest.fixture(scope="module")
def measured() -> tuple[Scenario, Run]:
    return live_batch()


def edited(run: Run, table: str, column: str, row: int, value: Any) -> Run:
    """A run with one other cell, and everything that follows from it computed again."""
    values: list[Any] = list(run.tables[table][column])
    values[row] = value
    return replace(run, tables={**run.tables, table: {**run.tables[table], column: values}})


def test_what_a_live_run_measured_agrees_with_its_plans(measured: tuple[Scenario, Run]) -> None:
    given, run = measured
    assert rules(given, run) == set()
    attempts: Any = run.tables["attempts"]
    assert {why.split(":")[0] for why in attempts["why"]} >= {"complete", "failed"}
    last = len(attempts["job"]) - 1
    assert attempts["why"][0] == "complete"
    for column, row, value, rule in (
        ("number", last, 7, "attempts.order"),
        ("workers", 0, 2, "attempts.plan"),
        ("places", 0, "1@a 1@b", "attempts.plan"),
        ("at_us", 0, attempts["at_us"][0] + 30_000_000, "attempts.order"),
        ("slot", 0, 3, "attempts.plan"),
        ("why", 0, "paused", "work.finish"),
        ("ended_us", 0, attempts["ended_us"][0] + 200_000, "work.finish"),
    ):
        assert rule in rules(given, edited(run, "attempts", column, row, value)), column


def test_what_follows_from_plans_in_predictions_and_measurements_is_checked() -> None:
    given, run = live_rings()
    assert rules(given, run) == set()
    attempts, measured = run.tables["attempts"], run.tables["measurements"]
    for row in range(len(attempts["job"])):
        longer = edited(run, "attempts", "predicted_s", row, float(attempts["predicted_s"][row]) * 1.01)
        assert "attempts.predicted" in rules(given, longer)
    reported: Any = measured["iterations"]
    for column, row, value in (
        ("job", 0, 1),  # of two rows for the same job and node
        ("job", len(reported) - 1, 0),
        ("node", 0, 3),  # where it did not run
        ("iterations", 0, sum(reported)),
        ("iterations", 0, 0),
        *(("predicted_s", row, float(each) * 2) for row, each in enumerate(measured["predicted_s"])),
    ):
        assert rules(given, edited(run, "measurements", column, row, value)) == {"attempts.measured"}, column


def test_a_job_that_was_given_up_or_finished_cannot_be_said_to_have_ended_otherwise(
    measured: tuple[Scenario, Run],
) -> None:
    given, run = measured
    kinds: Any = run.tables["events"]["kind"]
    ended = next(i for i, kind in enumerate(kinds) if kind == "ended")
    false = edited(edited(run, "events", "kind", ended, "finished"), "events", "value", ended, 0)
    assert "work.finish" in rules(given, settle(given, false))
    done = next(i for i, kind in enumerate(kinds) if kind == "finished")
    assert {"work.finish", "time.end"} & rules(
        given, settle(given, edited(run, "events", "kind", done, "ended"))
    )


def test_a_sale_of_a_held_quote_needs_its_answer_and_expiries_are_those_of_quotes() -> None:
    given, run = held_quotes()
    assert rules(given, run) == set()
    events: Any = run.tables["events"]
    answered = events["kind"].index("answered")
    assert "market.sale" in rules(given, edited(run, "events", "value", answered, 7))
    assert "market.sale" in rules(given, edited(run, "events", "job", answered, 2))
    expired = max(i for i, kind in enumerate(events["kind"]) if kind == "expired")
    assert "time.quote" in rules(given, edited(run, "events", "value", expired, 0))
    with pytest.raises(InputError, match="thought about their quotes"):
        api.audit(given, run, rerun=True)


def test_an_invented_metric_and_a_false_list_of_violations_are_noticed(known: tuple[Scenario, Run]) -> None:
    given, run = known
    assert rules(given, replace(run, metrics={**run.metrics, "invented_usd": 1.0})) == {"header.metrics"}
    assert rules(given, replace(run, violations=(Violation("invented"),))) == {"header.audit"}


def test_another_policy_or_seed_or_text_shows_in_a_second_run(known: tuple[Scenario, Run]) -> None:
    given, run = known
    assert api.audit(given, run, rerun=True).violations == ()
    assert "rerun.table" in rules(given, replace(run, policy="fifo", params={}), rerun=True)
    tables: Any = {**run.tables, "decisions": {**run.tables["decisions"]}}
    tables["decisions"]["why"] = ["invented", *tables["decisions"]["why"][1:]]
    assert "decisions.why" in api.audit(given, run).unchecked
    assert rules(given, replace(run, tables=tables), rerun=True) == {"rerun.table"}


def test_an_invented_bound_shows_when_it_is_computed_again() -> None:
    given = tw.generate("cluster", jobs=10, seed=3)
    run = tw.run(given, "fifo", bound=True)
    assert run.bound is not None
    assert rules(given, run, bound=True) == set()
    value = run.bound.value * 0.9
    false = replace(run, bound=replace(run.bound, value=value, ratio=run.value / value))
    assert "bound" in api.audit(given, false).unchecked
    assert rules(given, false, bound=True) == {"header.bound"}


def test_false_bills_show_when_they_are_computed_again() -> None:
    given = tw.generate("mlbroker", tenants=2, slots=6, sites=4, jobs_per_slot=3.0, seed=3)
    run = tw.run(given, "mlbroker")
    usd: Any = run.tables["bills"]["usd"]
    assert rules(given, run, bills=True) == set()
    bills = {**run.tables["bills"], "usd": [2 * each for each in usd]}
    false = replace(run, tables={**run.tables, "bills": bills})
    assert "bills.usd" in api.audit(given, false).unchecked
    assert rules(given, false, bills=True) == {"ledger.table"}


def test_a_measured_run_and_one_of_an_unknown_policy_are_not_repeated(known: tuple[Scenario, Run]) -> None:
    given, run = known
    with pytest.raises(InputError, match="--policy"):
        api.audit(given, replace(run, policy="unheard-of"), rerun=True)
    assert (
        api.audit(given, replace(run, policy="unheard-of"), "las", rerun=True).violations[0].rule
        == "rerun.policy"
    )


def test_a_comparison_has_the_bills_that_a_run_has() -> None:
    given = tw.generate("mlbroker", tenants=2, slots=6, sites=4, jobs_per_slot=3.0, seed=3)
    alone = tw.run(given, "mlbroker")
    beside = next(run for run in tw.compare(given, ["mlbroker"]).runs if run.policy == "mlbroker")
    assert alone.tables["bills"]["usd"]
    assert beside.tables["bills"] == alone.tables["bills"]


def test_a_decision_at_the_end_of_a_run_is_read_before_the_end() -> None:
    where = setup([node("a", 1)], slot_us=S, horizon_us=4 * S, objective="jct_mean_s")
    jobs = [job(0, work=Fixed(runtime_us=4 * S)), job(1, work=Fixed(runtime_us=S))]
    given = builders.scenario(jobs, where=where)
    run = tw.run(given, "fifo")
    assert run.tables["plans"]["at_us"] == [0, 4 * S]
    assert rules(given, run) == set()


def test_event_rows_that_are_swapped_and_timers_that_are_removed_are_noticed() -> None:
    given = tw.generate("cluster", seed=3, jobs=10)
    run = tw.run(given, "las")
    events: Any = {name: list(column) for name, column in run.tables["events"].items()}
    times, kinds = events["at_us"], events["kind"]
    for row in (i for i in range(len(times) - 1) if times[i] != times[i + 1]):
        order = [*range(row), row + 1, row, *range(row + 2, len(times))]
        swapped: Any = {name: [column[i] for i in order] for name, column in events.items()}
        with pytest.raises(InputError, match="events must be in order"):
            api.check(given, replace(run, tables={**run.tables, "events": swapped}))
    assert "timer" in kinds
    for row in (i for i, kind in enumerate(kinds) if kind == "timer"):
        fewer: Any = {name: column[:row] + column[row + 1 :] for name, column in events.items()}
        found = rules(given, replace(run, tables={**run.tables, "events": fewer}))
        assert found & {"time.timer", "time.decision"}


@pytest.mark.parametrize("only", ["eris-c", "held", "refunds", "mlbroker-t", "failures"])
def test_of_whole_runs_that_are_forged_none_passes_in_silence(only: str) -> None:
    """The journal is changed, and all that follows computed again."""
    found = forged.tally(60, seed=7, only=only)
    assert found["noticed"] > 20
    assert [what for what in found if what.startswith("GAP")] == []
