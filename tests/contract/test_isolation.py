"""Every online policy decides in a process of its own what it decides in this one, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.effort import IS_FULL
from tradewind.engine.isolation.policy import isolated
from tradewind.engine.isolation.process import Process
from tradewind.engine.ledger import Ledger
from tradewind.files.run_file import save
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.registry import policies, systems
from tradewind.testing import contract, fitting_scenarios
from tradewind.testing.disturbed import disturbed_run
from tradewind.worlds.simulate import simulate

NAMES = [name for name in policies.names() if policies.find(name).online]
FIRST = {next(name for name in NAMES if name in system.policies) for system in systems().values()}
"""One policy of each system."""


@pytest.fixture(scope="module")
def two_processes() -> Iterator[tuple[Process, Process]]:
    """For many policies in turn, because a start takes a second."""
    kept = Process(), Process()
    yield kept
    for each in kept:
        each.end()


@pytest.mark.parametrize("name", NAMES)
def test_an_isolated_run_has_the_same_run_file(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One policy of each system gets a process that imports what it needs; all do with TRADEWIND_TESTS=full."""
    if not IS_FULL and name not in FIRST:
        kept: Process = request.getfixturevalue("two_processes")[0]
        monkeypatch.setattr("tradewind.engine.isolation.policy.Process", lambda *_: kept)
    spec = policies.find(name)
    given = next(fitting_scenarios(spec, 2))
    files: list[Path] = []
    for each in (spec, isolated(name)):
        run = simulate(given, each, seed=contract.SEED)
        files.append(tmp_path / f"{len(files)}.run.json")
        save(run, files[-1])
    one, other = (file.read_bytes() for file in files)
    assert one == other


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_amid_cancellations_and_failures_saved_and_restored_in_another_process(
    name: str, two_processes: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = cycle(two_processes)
    monkeypatch.setattr("tradewind.engine.isolation.policy.Process", lambda *_: next(turns))
    spec = policies.find(name)
    given = replace(next(fitting_scenarios(spec, 1)), changes=())
    tables = disturbed_run(spec, given, _maker(spec, given), 3)
    middle = len(set(tables["events"]["at_us"])) // 2
    again = disturbed_run(spec, given, _maker(isolated(name), given), 3, restore_after=middle)
    assert next(turns) is two_processes[0]
    assert json.dumps(tables) == json.dumps(again)


def _maker(spec: Spec, given: Scenario) -> Callable[[], Any]:
    return lambda: contract.fresh(spec, given)


def test_a_ledger_is_mirrored_by_every_method_that_changes_it() -> None:
    from tradewind.engine.isolation.mirror import CHANGES

    assert {"take", "commit", "clear_events", "return_events"} <= set(CHANGES)
    assert not set(CHANGES) & {"free", "job", "plan", "data", "capacity", "link_free"}
    assert all(callable(getattr(Ledger, name)) for name in CHANGES)
