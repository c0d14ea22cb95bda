"""Contract tests that every registered policy gets for free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from hashlib import sha256

import pytest

from tests.effort import tries
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.testing import contract, fitting_scenarios
from tradewind.testing.scenarios import unsupported_scenario

NAMES = policies.names()
SEEDS = (1, 2)


@cache
def played(name: str, seed: int) -> tuple[Scenario, Run]:
    """A scenario that fits the policy, and its audited run."""
    spec = policies.find(name)
    given = next(fitting_scenarios(spec, seed))
    return given, contract.passes_the_audit(spec, given)


def fingerprint(run: Run) -> str:
    """Of all numbers in a run."""
    text = json.dumps([dict(run.tables), dict(run.metrics)], sort_keys=True)
    return sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_it_passes_the_audit_and_does_something(name: str, seed: int) -> None:
    _, run = played(name, seed)
    contract.runs_something(run)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    given, run = played(name, 1)
    contract.is_the_same_each_time(policies.find(name), given, run)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.7])
@pytest.mark.parametrize("name", NAMES)
def test_it_continues_after_save_and_restore(name: str, share: float) -> None:
    given, run = played(name, 2)
    contract.continues_after_restore(policies.find(name), given, run, share)


@pytest.mark.parametrize("share", [0.3, 0.8])
@pytest.mark.parametrize("name", [n for n in NAMES if policies.find(n).online])
def test_it_does_not_peek_ahead(name: str, share: float) -> None:
    given, run = played(name, 1)
    contract.does_not_peek_ahead(policies.find(name), given, run, share)


@pytest.mark.parametrize("name", [n for n in NAMES if policies.find(n).online])
def test_it_does_not_see_budgets(name: str) -> None:
    given, run = played(name, 2)
    contract.does_not_see_budgets(policies.find(name), given, run)


@pytest.mark.parametrize("name", [n for n in NAMES if policies.find(n).online])
def test_it_handles_cancellations_and_failures_that_no_script_has(name: str) -> None:
    contract.handles_unscripted_events(
        policies.find(name), played(name, 1)[0], seeds=range(1, 1 + tries(2, 5))
    )


@pytest.mark.parametrize("window", [1, 3, 40])
@pytest.mark.parametrize("name", [n for n in NAMES if policies.find(n).online])
def test_it_plans_in_a_rolling_window_and_does_not_ask_for_jobs_that_are_over(name: str, window: int) -> None:
    contract.plans_in_a_window(policies.find(name), played(name, 2)[0], window)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_parameter_is_refused_before_it_starts(name: str) -> None:
    contract.refuses_an_unknown_parameter(policies.find(name), played(name, 1)[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_that_it_does_not_support_is_refused_before_it_starts(name: str) -> None:
    spec = policies.find(name)
    assert unsupported_scenario(spec) is not None
    contract.refuses_what_it_does_not_support(spec)


def test_another_process_with_other_hashes_makes_the_same_runs() -> None:
    code = (
        "import json, sys; from tests.contract.test_policies import NAMES, fingerprint, played;"
        "print(json.dumps({n: fingerprint(played(n, 1)[1]) for n in NAMES}))"
    )
    env = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {name: fingerprint(played(name, 1)[1]) for name in NAMES}
