"""Hostile jobs and cuts of the network on the fleet of a test."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders import job, node, rows, scenario, setup
from tests.fleets.live_on import counting, run_on
from tests.fleets.processes import programs
from tests.hostile import programs as hostile
from tests.worlds import live_scenarios
from tests.worlds.live_scenarios import S
from tradewind import api
from tradewind.engine.live import LiveSession
from tradewind.model.job import Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets import ray, shared, slurm
from tradewind.worlds.fleets.engine import Engine
from tradewind.worlds.fleets.kubernetes import lease
from tradewind.worlds.fleets.processes.handles import processes_of
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Limits

UID = 57_000 + 40 * (os.getpid() % 100)
"""Users of jobs; tests that run at the same time have different ones."""
LIMIT_S = 400.0
FLOOD = 'yes \'{"iteration":1}\' | head -c 20000000 >> "$TRADEWIND_REPORT"; touch ../did; exec sleep 1000'
NAMES = (*hostile.SHELL, *hostile.PYTHON)


def hostile_jobs_hurt_only_themselves(engine: Engine, state: Path) -> None:
    """All hostile programs at once, each as a user of its own: a neighbour completes, and nothing of them is left."""
    commands = [*(hostile.program(name) for name in NAMES), ("sh", "-c", FLOOD)]
    last = len(commands)
    attacks = [
        job(i, work=Rounds(count=1000, compute_us=10), command=each) for i, each in enumerate(commands)
    ]
    neighbour = job(last, work=Rounds(count=4, compute_us=10), command=live_scenarios.counting(4))
    given = scenario([*attacks, neighbour], where=setup([node("a", 64)], slot_us=S, horizon_us=100_000 * S))
    until = time.monotonic() + LIMIT_S

    def missing() -> list[str]:
        done = {int(path.parent.name[:4]) for path in state.glob("jobs/*/did")}
        return [str(commands[index][-1]) for index in range(last) if index not in done]

    def stop(session: LiveSession, world: FleetWorld) -> None:
        if last in world.gangs and world.gangs[last].complete and not missing():
            world.interrupt()
        assert time.monotonic() < until, f"these did not do their deed: {missing()}"

    limits = Limits(processes=40, report_bytes=1_000_000, memory_bytes=1 << 29)
    options = ExecutionOptions(grace_s=0.5, backoff_s=0.05, retries=1, limits=limits, first_uid=UID)
    run = run_on(engine, given, "fifo", state, options=options, observer=stop)
    assert run.violations == ()
    assert rows(run, "outcomes", "state")[last] == ("finished",)
    assert api.check(given, run) == ()
    most = max(n for n, who in rows(run, "attempts", "iterations", "job") if who == last - 1)
    assert most <= (limits.report_bytes + (1 << 18)) / len('{"iteration":1}\n')
    end = time.monotonic() + 120
    while left := [uid for uid in range(UID, UID + last) if processes_of(uid)]:
        assert time.monotonic() < end, f"processes of {left} are left"
        time.sleep(0.2)


CUT_S = float(os.environ.get("TRADEWIND_TEST_CUT_S", "8"))
"""How long loops are cut off from engines; everything that waits for an engine, a loop or a rank is less patient."""


@contextmanager
def _short_patience(cut_s: float) -> Iterator[ExecutionOptions]:
    """Everything that waits gives up before a cut is over."""
    part_s = cut_s / 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "SWEEP_S", part_s / 2)
        for module in (slurm, ray):
            patch.setattr(module, "ANSWER_S", 3 * part_s)
        patch.setattr(lease, "DURATION_S", int(3 * part_s))
        yield ExecutionOptions(grace_s=part_s / 2, patience_s=2 * part_s, as_root=True)


def a_cut_changes_nothing(
    make: Callable[[], Engine], folder: Path, cut: Callable[[], None], mend: Callable[[], None]
) -> None:
    """Two jobs go on while loop and engine do not hear each other; a third one, which waits for a CPU, runs afterwards.

    On a busy machine a loop is silent for longer than a short patience by itself: a longer cut tells the difference.
    """
    folder.mkdir()
    for cut_s in (CUT_S, 4 * CUT_S):
        state = folder / f"{cut_s:.0f}"
        counts = [int(7 * cut_s), int(7 * cut_s), 5]
        given = counting(*counts)
        run = _cut(make(), given, state, cut_s, cut, mend)
        if ("stopped",) not in rows(run, "attempts", "why"):
            break
    assert rows(run, "attempts", "why") == [("complete",)] * 3, run.tables["alarms"]["text"]
    assert rows(run, "outcomes", "state") == [("finished",)] * 3
    for index, count in enumerate(counts):
        path = next(state.glob(f"jobs/{index:04d}-*")) / "checkpoint" / "done"
        assert path.read_text().split() == [str(i) for i in range(1, count + 1)]
    assert api.check(given, run) == ()
    end = time.monotonic() + 120
    while left := list(programs(state)):
        assert time.monotonic() < end, f"{left} are left"
        time.sleep(0.2)


def _cut(
    engine: Engine,
    given: Scenario,
    state: Path,
    cut_s: float,
    cut: Callable[[], None],
    mend: Callable[[], None],
) -> Run:
    """A run whose loop is cut off once the first two jobs have begun."""
    mending = threading.Timer(cut_s, mend)
    seen: list[float] = []

    def look(session: LiveSession, world: FleetWorld) -> None:
        if not seen and all(
            number in world.gangs and world.gangs[number].iterations >= 5 for number in (0, 1)
        ):
            seen.append(time.monotonic())
            cut()
            mending.start()

    with _short_patience(cut_s) as options:
        run = run_on(engine, given, "fifo", state, options=options, observer=look, slot_seconds=1.0)
    mending.join()
    assert time.monotonic() - seen[0] > cut_s
    return run
