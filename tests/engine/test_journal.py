"""The journal: a run can be rebuilt from it, and any changed number in it is found."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from tests.audit.test_lying_world import world
from tests.builders import Scripted, job, loop_of, plan, run_at, scenario, setup, spec_of
from tradewind.api import check, replay
from tradewind.engine.ledger import Ledger
from tradewind.files.run_file import load_run, save
from tradewind.files.run_tables import check_links
from tradewind.model.decision import Offer, Quote
from tradewind.model.errors import RunFileError
from tradewind.model.job import Customer, Fixed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.worlds.simulate import simulate


def a_market() -> tuple[Scenario, Scripted]:
    jobs = [job(i, arrive_us=20 * i, work=Fixed(runtime_us=130)) for i in range(3)]
    customers = [Customer(budget_usd=8.0), Customer(budget_usd=4.0), Customer(budget_usd=3.0)]
    quotes = {
        i: Quote(i, tuple(Offer(usd, 20 * i + 130, plan(i, run_at(20 * i))) for usd in (6.5, 5.5)))
        for i in range(2)
    }
    rent = {(place, 0): Tariff(usd=(10.0**6 * (place + 1),)) for place in (0, 1)}
    return scenario(jobs, customers=customers, where=setup(rent=rent)), Scripted(
        {}, {**quotes, 2: Quote(2, (), "capacity")}
    )


def runs() -> list[tuple[Scenario, Run]]:
    given, script = world()
    first = simulate(given, spec_of(Scripted(script, {})))
    other, policy = a_market()
    return [(given, first), (other, simulate(other, spec_of(policy, pricer=True)))]


RUNS = runs()


def state(ledger: Ledger) -> dict[str, Any]:
    """Everything in a ledger; rows that were filled and emptied again do not count."""
    found = {k: v for k, v in vars(ledger).items() if not isinstance(v, Setup)}
    found["_booked"] = {(r, s): n for r, slots in ledger._booked.items() for s, n in slots.items() if n}
    for name in ("events", "_new", "active"):
        del found[name]
    return found


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_replay_rebuilds_the_final_state_and_the_metrics(number: int) -> None:
    given, run = RUNS[number]
    policy = Scripted(world()[1], {}) if number == 0 else a_market()[1]
    loop = loop_of(given, spec_of(policy, pricer=number == 1), policy)
    loop.run()
    ledger, again = replay(given, replace(run, metrics={}))
    assert state(ledger) == state(loop.session.ledger)
    assert again == run


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_saved_run_loads_as_it_was_and_passes_the_audit(number: int, tmp_path: Path) -> None:
    given, run = RUNS[number]
    save(run, tmp_path / "run.json")
    loaded = load_run(tmp_path / "run.json")
    assert loaded == run
    assert check(given, loaded) == ()


def test_a_run_of_another_scenario_is_refused() -> None:
    with pytest.raises(RunFileError, match="hash"):
        check(RUNS[0][0], RUNS[1][1])


FREE = {
    ("steps", "usd"),  # stated by the policy
    ("prices", "usd"),
    ("bills", "usd"),
    ("paths", "path"),
}


def numbers(run: Run) -> list[tuple[str, str, int]]:
    """Every number in the tables that the policy is not free to choose.

    Costs and use of an offer that was not taken may be anything valid, so they are left out.
    """
    offers: Any = run.tables["offers"]
    taken = dict(zip(run.tables["answers"]["job"], run.tables["answers"]["taken"], strict=True))
    idle = {row for row, job in enumerate(offers["job"]) if taken[job] != offers["number"][row]}
    plans = {offers["plan"][row] for row in idle}
    steps = {row for row, plan in enumerate(run.tables["steps"]["plan"]) if plan in plans}
    places = {row for row, step in enumerate(run.tables["places"]["step"]) if step in steps}
    free = {"steps": steps, "places": places}
    found: list[tuple[str, str, int]] = []
    for table, columns in run.tables.items():
        for column, values in columns.items():
            skipped = idle if (table, column) == ("offers", "payment_usd") else free.get(table, set())
            found += [
                (table, column, row)
                for row, value in enumerate(values)
                if not isinstance(value, str) and (table, column) not in FREE and row not in skipped
            ]
    return found


PLACES = [(which, *place) for which, (_, run) in enumerate(RUNS) for place in numbers(run)]


def tampered(run: Run, table: str, column: str, row: int, by: int) -> Run:
    tables: Any = copy.deepcopy(dict(run.tables))
    tables[table][column][row] += by
    return replace(run, tables=tables)


def is_caught(given: Scenario, run: Run) -> bool:
    try:
        return check(given, run) != ()
    except RunFileError:
        return True


def is_still_valid(given: Scenario, run: Run, column: str, row: int) -> bool:
    """Whether it is a timer after the end of the run."""
    value: Any = run.tables["decisions"][column][row] if column == "wake_us" else 0
    return bool(value > given.setup.horizon_us)


def assert_found(place: tuple[int, str, str, int], by: int) -> None:
    which, table, column, row = place
    given, run = RUNS[which]
    changed = tampered(run, table, column, row, by)
    if is_still_valid(given, changed, column, row):
        return
    try:
        check_links(changed.tables)
    except RunFileError:
        return  # the file is rejected when it is read
    assert is_caught(given, changed), (place, by)


def test_every_single_number_that_is_changed_by_one_is_found() -> None:
    for place in PLACES:
        assert_found(place, 1)
        assert_found(place, -1)


@drawn(st.sampled_from(PLACES), st.integers(-(2**40), 2**40).filter(bool))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_single_number_that_is_changed_is_found(place: tuple[int, str, str, int], by: int) -> None:
    assert_found(place, by)


def test_any_metric_that_is_changed_is_found() -> None:
    for given, run in RUNS:
        for name, value in run.metrics.items():
            assert is_caught(given, replace(run, metrics={**run.metrics, name: value + 0.001})), name
            assert is_caught(given, replace(run, metrics={**run.metrics, name: float("nan")})), name


def test_a_removed_event_is_found() -> None:
    for given, run in RUNS:
        for row in range(len(run.tables["events"]["kind"])):
            tables: Any = copy.deepcopy(dict(run.tables))
            for column in tables["events"].values():
                del column[row]
            assert is_caught(given, replace(run, tables=tables)), run.tables["events"]["kind"][row]
