"""Live runs on the fleet of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.builders import link, node, rows, scenario, setup
from tests.worlds.live_runs import assert_as_simulated, run_live
from tests.worlds.live_scenarios import S, market, rings
from tests.worlds.test_live_training import Slots, moving_server, ring
from tradewind import api
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.store.store import Store
from tradewind.worlds.fleets.engine import Engine
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.shared import SharedFleet
from tradewind.worlds.live import LiveRequest, drive

SITES = {"a": ["a1"], "b": ["b1"], "c": ["a1"]}
MEASURED = ("attempts", "alarms")


def run_on(engine: Engine, given: Scenario, policy: str, state: Path, **more: Any) -> Run:
    """A live run on the machines of an engine."""
    options = more.pop("options", ExecutionOptions(grace_s=0.5, as_root=True))
    observer = more.pop("observer", None)
    state.mkdir()
    request = LiveRequest(
        scenario=given, spec=policies.find(policy), seed=1, state=state, options=options, **more
    )  # fmt: skip
    with Store.open(state / "store.db", write=True) as store:
        return drive(
            request, store, lambda token: SharedFleet(state, given.setup, options, token, engine, SITES), observer
        )  # fmt: skip


def books_are_those_of_processes(make: Callable[[], Engine], tmp_path: Path) -> None:
    """Where all instants are known in advance, a run has the books of a run on processes, cell by cell, and of the model."""
    for number, made in enumerate((market, rings)):
        given, policy = made(("sleep", "1000"))
        found = run_on(make(), given, policy, tmp_path / f"{number}-far", slot_seconds=0.4)
        assert_as_simulated(found, given, policy)
        near = run_live(given, tmp_path / f"{number}-near", policy, slot_seconds=0.1)
        assert _books(found) == _books(near)
        assert dict(found.metrics) == dict(near.metrics)


def _books(run: Run) -> Mapping[str, Any]:
    return {name: table for name, table in run.tables.items() if name not in MEASURED}


def training_moves_and_grows(make: Callable[[], Engine], tmp_path: Path) -> None:
    """A server job is moved and gets another worker, and a ring job trains to its end, with PyTorch."""
    slots = Slots(3)
    options = ExecutionOptions(grace_s=20.0, as_root=True)
    given = moving_server()
    run = run_on(
        make(), given, "mlbroker", tmp_path / "server", slot_seconds=1.0, time=slots, options=options,
        observer=slots.update,
    )  # fmt: skip
    found = rows(run, "attempts", "places", "why")
    assert found == [("ps@a 1@a", "moved"), ("ps@b 2@b", "the run is over")]
    assert api.check(given, run) == ()
    nodes = [node("switch", 0, kind="switch"), node("a", 1, kind="server"), node("b", 1, kind="server")]
    bps = 20_000_000
    where = setup(
        nodes, links=(link(0, 1, bps), link(0, 2, bps)), slot_us=S, horizon_us=60 * S, objective="utility"
    )
    slots = Slots(50)
    run = run_on(
        make(), scenario([ring(0, 6)], where=where), "gadget", tmp_path / "ring", slot_seconds=1.0, time=slots,
        options=options, observer=slots.update,
    )  # fmt: skip
    ((where_to, why, iterations),) = rows(run, "attempts", "places", "why", "iterations")
    assert (sorted(where_to.split()), why, iterations) == (["1@a", "1@b"], "complete", 6)
