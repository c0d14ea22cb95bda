"""Every changed cell or header field of a run file is noticed, or the audit names it as not checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tradewind as tw
from tests.audit.edits import tally
from tradewind import api
from tradewind.model.errors import InputError
from tradewind.model.result import Bound, Run, Violation
from tradewind.model.scenario import Scenario
from tradewind.testing.scenarios import contended_cluster

NEVER = {"header.version", "header.policy", "header.params", "header.seed"}
"""What a second run cannot show, or only where the run depends on it."""


def test_of_random_edits_none_passes_in_silence() -> None:
    found = tally(260, seed=5)
    assert sum(outcomes["noticed"] for outcomes in found.values()) > 150
    gaps = {where: dict(outcomes) for where, outcomes in found.items() if "GAP" in outcomes}
    assert not gaps
    free = {where for where, outcomes in found.items() if any(what.startswith("free") for what in outcomes)}
    assert free <= NEVER


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
        ({"world": "processes"}, "header.world"),
        ({"bound": Bound(value=1.0, sense="max", kind="certified", ratio=1.5)}, "header.bound"),
        ({"certificates": ({"name": "invented", "value": 1.0, "at_us": -5, "data": {}},)}, "certificate.placement"),
    ],
)  # fmt: skip
def test_a_false_header_is_a_violation(known: tuple[Scenario, Run], change: Any, rule: str) -> None:
    given, run = known
    assert rules(given, run) == set()
    assert rule in rules(given, replace(run, **change))


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
