"""Contract tests that every policy in the catalogue gets for free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from tests.builders import job, scenario, setup
from tests.contract import contracts
from tests.contract.scenarios import for_policy
from tradewind.model.errors import LookupFailed, Unsupported
from tradewind.model.job import Customer, Dataset, Fixed, Rounds, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate

NAMES = policies.names()
SEEDS = (1, 2)


@cache
def played(name: str, seed: int) -> tuple[Scenario, Run]:
    """A scenario that fits the policy, and its audited run."""
    spec = policies.find(name)
    given = for_policy(spec, seed)
    return given, contracts.passes_the_audit(spec, given)


def fingerprint(run: Run) -> str:
    """Of all numbers in a run."""
    text = json.dumps([dict(run.tables), dict(run.metrics)], sort_keys=True)
    return sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_it_passes_the_audit_and_does_something(name: str, seed: int) -> None:
    _, run = played(name, seed)
    assert run.tables["steps"]["plan"], "not a single job ever ran"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    given, run = played(name, 1)
    contracts.is_the_same_each_time(policies.find(name), given, run)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.7])
@pytest.mark.parametrize("name", NAMES)
def test_it_continues_after_save_and_restore(name: str, share: float) -> None:
    given, run = played(name, 2)
    contracts.continues_after_restore(policies.find(name), given, run, share)


@pytest.mark.parametrize("share", [0.3, 0.8])
@pytest.mark.parametrize("name", [n for n in NAMES if policies.find(n).online])
def test_it_does_not_peek_ahead(name: str, share: float) -> None:
    given, run = played(name, 1)
    contracts.does_not_peek_ahead(policies.find(name), given, run, share)


@pytest.mark.parametrize("name", [n for n in NAMES if policies.find(n).online])
def test_it_does_not_see_budgets(name: str) -> None:
    given, run = played(name, 2)
    contracts.does_not_see_budgets(policies.find(name), given, run)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_parameter_is_refused_before_it_starts(name: str) -> None:
    spec = replace(policies.find(name), factory=_never)
    with pytest.raises(LookupFailed, match="no-such-knob"):
        simulate(played(name, 1)[0], spec, {"no-such-knob": 1})


def _never(*_: Any) -> Any:
    raise AssertionError("the policy was made although it cannot run")


def other_work(works: frozenset[str]) -> Scenario:
    """A scenario of a kind of work that is not among these."""
    kinds: dict[str, Any] = {
        "stream": Stream(bytes_per_worker_slot=1),
        "dataset": Dataset(chunks=((0, 1),), chunk_bytes=1, epochs=1, chunk_epochs_per_worker_slot_milli=1),
        "rounds": Rounds(count=1, compute_us=1),
        "fixed": Fixed(runtime_us=1),
    }
    kind = next(k for k in kinds if not any(w.partition("/")[0] == k for w in works))
    return scenario([job(0, work=kinds[kind])], customers=[Customer(runtime_us=5)])


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_that_it_does_not_support_is_refused_before_it_starts(name: str) -> None:
    spec = policies.find(name)
    given = other_work(spec.works)
    fitting = next(o for o in sorted(spec.objectives))
    given = replace(given, setup=setup(objective=fitting))
    with pytest.raises(Unsupported, match="j0"):
        simulate(given, replace(spec, factory=_never))


def test_another_process_with_other_hashes_makes_the_same_runs() -> None:
    code = (
        "import json, sys; from tests.contract.test_policies import NAMES, fingerprint, played;"
        "print(json.dumps({n: fingerprint(played(n, 1)[1]) for n in NAMES}))"
    )
    env = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {name: fingerprint(played(name, 1)[1]) for name in NAMES}
