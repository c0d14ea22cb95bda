"""The columnar audit catches every planted error that `tradewind audit` catches, and shares no code with the kernel."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.worlds.test_compiled import plain
from tradewind.audit.columnar import USED, audit_columns, exact_product, exact_sum
from tradewind.files.run_tables import check_links
from tradewind.model.errors import RunFileError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.tables import TABLES


def _noticed(scenario: Scenario, run: Run) -> bool:
    """Whether the audit of files notices that something is wrong."""
    try:
        check_links(run.tables)  # as a file is checked when it is read
        return bool(tw.check(scenario, run))
    except RunFileError:
        return True


def _planted(rng: random.Random, run: Run) -> tuple[str, Run]:
    """The run with one random error in its tables."""
    tables: dict[str, Any] = {n: {c: list(v) for c, v in t.items()} for n, t in run.tables.items()}
    name = rng.choice([name for name in USED if len(next(iter(tables[name].values())))])
    table, rows = tables[name], len(next(iter(tables[name].values())))
    row, how = rng.randrange(rows), rng.choice(("cell", "cell", "cell", "swap", "drop", "twice"))
    if how == "cell":
        column = rng.choice([c for c in table if c not in ("why", "reason")])
        before = table[column][row]
        if isinstance(before, str):
            table[column][row] = rng.choice(
                [v for v in sorted(set(table[column]) | {"refused"}) if v != before] or ["left"]
            )
        else:
            step = rng.choice((1, -1, 1000, 10**6, -(10**6), 10**15))
            others = [v for v in table[column] if v != before] or [before + 1]
            table[column][row] = rng.choice((before + step, rng.choice(others)))
        return f"{name}.{column}[{row}]: {before!r} -> {table[column][row]!r}", replace(run, tables=tables)
    other = rng.randrange(rows)
    for values in table.values():
        if how == "swap":
            values[row], values[other] = values[other], values[row]
        elif how == "drop":
            del values[row]
        else:
            values.insert(row, values[row])
    return f"{how} {name}[{row}] {other}", replace(run, tables=tables)


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf"])
def test_no_planted_error_that_the_audit_notices_is_missed(policy: str) -> None:
    rng = random.Random(f"columnar {policy}")
    jobs = [(rng.randrange(40), rng.randrange(1, 30), rng.randrange(1, 10)) for _ in range(30)]
    scenario = plain(jobs, [4, 2, 3], horizon_s=rng.choice((90, 10**6)))
    assert scenario.columns is not None
    run = tw.run(scenario, policy, fast=False, params={"limits": "20,60"} if policy == "las" else {})
    clean = audit_columns(scenario.setup, scenario.columns, run.tables)
    assert clean.violations == ()
    caught = more = 0
    for _ in range(250):
        what, wrong = _planted(rng, run)
        if wrong.tables == run.tables:
            continue
        found = bool(audit_columns(scenario.setup, scenario.columns, wrong.tables).violations)
        noticed = _noticed(scenario, wrong)
        assert found or not noticed, what
        caught, more = caught + noticed, more + (found and not noticed)
    assert caught > 150
    print(policy, caught, more)


PLANTED: tuple[tuple[str, str, str, list[int]], ...] = (
    ("form.table", "steps", "usd", []),
    ("form.step", "steps", "plan", [1, 0]),
    ("form.place", "places", "step", [1, 0]),
    ("time.decision", "plans", "at_us", [0, 1]),
    ("ledger.table", "outcomes", "work", [5_000_000, 1]),
)


@pytest.mark.parametrize(("rule", "table", "column", "values"), PLANTED)
def test_a_planted_error_is_named(rule: str, table: str, column: str, values: list[int]) -> None:
    scenario = plain([(0, 5, 1), (1, 5, 1)], [2])
    assert scenario.columns is not None
    run = tw.run(scenario, "fifo", fast=False)
    wrong = {**run.tables, table: {**run.tables[table], column: values}}
    found = audit_columns(scenario.setup, scenario.columns, wrong).violations
    assert rule in {violation.rule for violation in found}


def test_tables_of_other_kinds_of_runs_are_not_accepted() -> None:
    scenario = plain([(0, 5, 1)], [2])
    assert scenario.columns is not None
    run = tw.run(scenario, "fifo")
    for name in set(TABLES) - set(USED):
        row = {column: [0] for column in TABLES[name]}
        assert audit_columns(scenario.setup, scenario.columns, {**run.tables, name: row}).violations
    missing = {column: values for column, values in run.tables["plans"].items() if column != "job"}
    assert audit_columns(scenario.setup, scenario.columns, {**run.tables, "plans": missing}).violations


def test_sums_do_not_overflow() -> None:
    values = np.full(5000, 2**53, np.int64)
    assert exact_sum(values) == 5000 * 2**53
    assert exact_product(np.full(5000, 10**6, np.int64), values) == 5000 * 10**6 * 2**53
    assert exact_product(values, values) == 5000 * 2**106


def test_the_mean_of_jobs_whose_times_add_up_to_more_than_64_bits_is_right() -> None:
    years = 200 * 365 * 86400
    scenario = plain([(0, years, 1)] * 4000, [4000], horizon_s=years + 10)
    run = tw.run(scenario, "fifo", fast=True)
    assert run.metrics["jct_mean_s"] == pytest.approx(years, rel=1e-12)
    assert run.metrics["utilisation_gpu"] == pytest.approx(1.0, rel=1e-6)
