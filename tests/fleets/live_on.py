"""Live runs on the fleet of a test."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.builders import job, link, node, rows, scenario, setup
from tests.worlds.live_runs import Slots, assert_as_simulated, run_live
from tests.worlds.live_scenarios import S, market, rings
from tests.worlds.test_live_data import EXAMPLE, Processed, short, with_data
from tests.worlds.test_live_training import moving_server, ring
from tradewind import api
from tradewind.engine.live import LiveSession
from tradewind.model.job import Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.store.store import Store
from tradewind.testing.fleet_programs import program
from tradewind.worlds.data.carriers import Copier
from tradewind.worlds.data.opening import has_data, open_depot
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.engine import Engine
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.shared import SharedFleet
from tradewind.worlds.live import LiveRequest, drive

MACHINES = ("a1", "b1")
MEASURED = ("attempts", "alarms")
LIMIT_S = 400.0
"""No run takes that long, however busy the machine is."""


def run_on(engine: Engine, given: Scenario, policy: str, state: Path, **more: Any) -> Run:
    """A live run on the machines of an engine."""
    options = more.pop("options", ExecutionOptions(grace_s=0.5, as_root=True))
    observer, until = more.pop("observer", None), time.monotonic() + LIMIT_S
    first, second = more.pop("machines", MACHINES)
    table = {"a": [first], "b": [second], "c": [first]}

    def watch(session: LiveSession, world: FleetWorld) -> None:
        assert time.monotonic() < until, f"it takes longer than {LIMIT_S:.0f} s; {session.alarms}"
        if observer is not None:
            observer(session, world)

    state.mkdir()
    depot = open_depot(state, given.setup, options, 1.0) if has_data(given) else None
    (state / "lock").touch(0o600)  # as a live run has it
    request = LiveRequest(
        scenario=given, spec=policies.find(policy), seed=1, state=state, options=options, fleet=engine.name, **more
    )  # fmt: skip
    with Store.open(state / "store.db", write=True) as store:
        return drive(
            request, store, lambda token: SharedFleet(state, given.setup, options, token, engine, table), watch, depot
        )  # fmt: skip


def books_are_those_of_processes(
    make: Callable[[], Engine], tmp_path: Path, machines: Sequence[str] = MACHINES
) -> None:
    """Where all instants are known in advance, a run has the books of a run on processes, cell by cell, and of the model."""
    for number, made in enumerate((market, rings)):
        given, policy = made(("sleep", "1000"))
        found = run_on(make(), given, policy, tmp_path / f"{number}-far", slot_seconds=0.4, machines=machines)
        assert_as_simulated(found, given, policy)
        near = run_live(given, tmp_path / f"{number}-near", policy, slot_seconds=0.1)
        assert _books(found) == _books(near)
        assert dict(found.metrics) == dict(near.metrics)
        assert (found.world, near.world) == ("processes", "processes")
        assert (bool(found.fleet), near.fleet) == (True, "")
        with_fleet = tmp_path / f"{number}.json"
        api.save(found, with_fleet)
        assert api.load_run(with_fleet).fleet == found.fleet
        assert [each.rule for each in api.check(given, replace(found, world="simulated"))][-1:] == [
            "header.fleet"
        ]
        assert api.period(tmp_path / f"{number}-far").run.fleet == found.fleet


def data_goes_through_the_shared_directory(engine: Engine, state: Path) -> None:
    """Data of streams is copied to sites that all machines see, and processed there in its slot."""
    given, policy = short(EXAMPLE, 2)
    given, clock = with_data(given), Processed()
    run = run_on(engine, given, policy, state, slot_seconds=1.0, observer=clock.update, time=clock)
    assert_as_simulated(run, given, policy)
    assert api.check(given, run) == ()
    assert run.tables["alarms"]["text"] == [Copier.instead]
    assert any(a != b for a, b in rows(run, "shards", "src", "dst"))


def _books(run: Run) -> Mapping[str, Any]:
    return {name: table for name, table in run.tables.items() if name not in MEASURED}


def counting(*counts: int) -> Scenario:
    """Jobs that count that far on site a, a step every fifth of a second, each on one CPU of two."""
    return on_cpus(2, [(count, program("count", count, 0.2), 1000) for count in counts])


def on_cpus(cpus: int, jobs: Sequence[tuple[int, tuple[str, ...], int]]) -> Scenario:
    """Jobs (iterations, command, thousandths of a CPU) on so many CPUs of site a."""
    where = setup(
        [node("a", cpus, kind="server")], resources=("cpu",), slot_us=S, horizon_us=600 * S,
        objective="jct_mean_s",
    )  # fmt: skip
    return scenario(
        [
            job(
                index, work=Rounds(count=count, compute_us=S // 10, comm="none"), command=command, worker=((0, need),)
            )
            for index, (count, command, need) in enumerate(jobs)
        ],
        where=where,
    )  # fmt: skip


def waits_with_a_reason(engine: Engine, state: Path, release: Callable[[], None], reason: str) -> None:
    """A job that the cluster does not start raises an alarm that says why, and runs as soon as it can."""
    told: list[str] = []

    def look(session: LiveSession, world: FleetWorld) -> None:
        texts = [alarm["text"] for alarm in session.alarms]
        if texts and not told:
            told.extend(texts)
            release()

    options = ExecutionOptions(grace_s=0.5, as_root=True, start_s=3.0)
    run = run_on(engine, counting(5), "las", state, options=options, observer=look, slot_seconds=1.0)
    (text,) = told
    assert text.startswith("attempt 0 has not started after 3 s")
    assert reason in text, text
    assert rows(run, "attempts", "why") == [("complete",)]
    assert run.tables["alarms"]["text"] == [text]


GATED = """
d=$TRADEWIND_CHECKPOINT_DIR
i=$(cat "$d/done" 2>/dev/null | wc -l)
trap 'exit 75' TERM
while [ "$i" -lt 10 ]; do
  sleep 0.1
  [ "$i" -lt 9 ] || [ -e "$0" ] || continue
  i=$((i+1))
  echo $i >> "$d/done"
  printf '{"iteration": %s, "seconds": 0.1, "bytes_sent": 10, "loss": 1, "workers": 1}\\n' $i >> "$TRADEWIND_REPORT"
done
"""
"""Counts to ten, but ends only when there is a file."""
Steps = Sequence[tuple[Callable[[], object], int]]


def capacity_follows(engine: Engine, state: Path, steps: Steps, job_milli: int = 1000) -> Run:
    """Two jobs on a site with CPUs for four. steps: what happens when all run that fit, and the milli-CPUs afterwards."""
    left, gate = list(steps), state.with_name("gate")
    command = ("sh", "-c", GATED, str(gate))
    given = on_cpus(4 * job_milli // 1000, [(10, command, job_milli)] * 2)
    waited: list[int] = []

    def look(session: LiveSession, world: FleetWorld) -> None:
        has = session.ledger.capacity(0, 0)
        if waited and waited[0] != has:
            return
        gangs = world.gangs.values()
        running = [gang for gang in gangs if gang.current and not gang.stopping and gang.iterations >= 3]
        if len(running) >= min(2, has // job_milli):
            if left:
                act, then = left.pop(0)
                waited[:] = [then]
                act()
            else:
                gate.touch()

    options = ExecutionOptions(grace_s=0.5, patience_s=5.0, as_root=True)
    run = run_on(engine, given, "las", state, options=options, observer=look, slot_seconds=1.0)
    assert rows(run, "outcomes", "state") == [("finished",), ("finished",)], run.tables["alarms"]["text"]
    # an engine may or may not have noticed that a machine was away for a moment
    told = [value for kind, value in rows(run, "changes", "kind", "value") if kind == "capacity"]
    assert told == [then for _, then in steps]
    assert api.check(given, run) == ()
    for index in range(2):
        path = next(state.glob(f"jobs/{index:04d}-*")) / "checkpoint" / "done"
        assert path.read_text().split() == [str(i) for i in range(1, 11)]
    return run


def training_moves_and_grows(
    make: Callable[[], Engine], tmp_path: Path, machines: Sequence[str] = MACHINES
) -> None:
    """A server job is moved and gets another worker, and a ring job trains to its end, with PyTorch."""
    slots = Slots(3)
    options = ExecutionOptions(grace_s=20.0, as_root=True)
    given = moving_server()
    run = run_on(
        make(), given, "mlbroker", tmp_path / "server", slot_seconds=1.0, time=slots, options=options,
        observer=slots.update, machines=machines,
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
        options=options, observer=slots.update, machines=machines,
    )  # fmt: skip
    ((where_to, why, iterations),) = rows(run, "attempts", "places", "why", "iterations")
    assert (sorted(where_to.split()), why, iterations) == (["1@a", "1@b"], "complete", 6)
