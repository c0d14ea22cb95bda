"""Live runs whose ranks are killed, fail, hang or misbehave."""

from __future__ import annotations

import os
import signal
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Scripted, decision, job, node, plan, rows, run_at, scenario, setup, spec_of
from tests.worlds.live_runs import (
    LONG,
    Observer,
    Once,
    alarms,
    handles,
    log,
    one,
    reported,
    run_live,
    states,
    two_sites,
)
from tests.worlds.live_scenarios import COUNT, S, broker, gated, market, rings
from tradewind import api
from tradewind.engine.live import LiveSession
from tradewind.model.errors import InputError
from tradewind.model.job import Rounds
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Limits
from tradewind.worlds.live import check_trainer


def killer(when: Callable[[FleetWorld], Sequence[int]], times: int = 1) -> Observer:
    """Kills the processes that `when` names, `times` times."""
    done = [0]

    def observe(session: LiveSession, world: FleetWorld) -> None:
        if done[0] < times and (found := when(world)):
            done[0] += 1
            for pid in found:
                os.kill(pid, signal.SIGKILL)

    return observe


def commands(world: FleetWorld, at: int, ranks: Callable[[int, int], bool]) -> list[int]:
    """Process ids of a job's commands, by (rank, node), once it has counted to `at`."""
    gang = world.gangs[0]
    if not handles(world, 0) or gang.iterations < at:
        return []
    chosen = [w for i, w in enumerate(handles(world, 0)) if ranks(i, gang.ranks[i].node)]
    found = [watch.child() for watch in chosen]
    return found if all(found) else []


@pytest.mark.parametrize("which", ["a rank", "a site", "a supervisor"])
def test_after_ranks_were_killed_the_job_continues_from_its_checkpoint(which: str, tmp_path: Path) -> None:
    command = gated(14, 8, "killed")
    given = one(command, work=Rounds(count=14, compute_us=10), workers_min=4, workers_max=4, horizon=1000)
    step = run_at(0, (0, 1), (2, 2))

    def victims(world: FleetWorld) -> list[int]:
        saved = [int(path.read_text() or 0) for path in (tmp_path / "state/jobs").rglob("i")]
        if max(saved, default=0) < 5:
            return []
        chosen = commands(world, 5, lambda rank, at: at == 1 if which == "a site" else rank == 3)
        if chosen:
            (tmp_path / "state/jobs/0000-j0/killed").touch()
        return [handles(world, 0)[3].pid] if chosen and which == "a supervisor" else chosen

    run = run_live(
        given,
        tmp_path / "state",
        spec_of(Scripted({0: decision(plan(0, step))}, {})),
        observer=killer(victims),
    )
    assert states(run) == ["finished"]
    assert run.violations == ()
    why = [r[0] for r in rows(run, "attempts", "why")]
    assert len(why) == 2
    assert why[0].startswith("failed: rank")
    assert "SIGKILL" in why[0] or "lost" in why[0]
    assert why[1] == "complete"
    begun = (tmp_path / "state/jobs/0000-j0/begun").read_text().split()[1::2]
    assert all(int(word) < 4 for word in begun[:4])
    assert all(int(word) >= 4 for word in begun[4:])


def test_a_command_that_always_fails_is_given_up_and_the_others_continue(tmp_path: Path) -> None:
    given = scenario(
        [
            job(0, work=LONG, command=("sh", "-c", "echo oh dear; exit 3")),
            job(1, work=LONG, command=("sleep", "1")),
        ],
        where=two_sites(horizon=1000),
    )
    run = run_live(given, tmp_path / "state")
    assert states(run) == ["unfinished", "finished"]
    assert "failed: rank 0@a ended with 3; retry 1 of 2; its log ends with: oh dear" in alarms(run)
    assert "given up" in alarms(run)
    assert log(tmp_path / "state").count("oh dear") == 3
    assert api.check(given, run) == ()


@pytest.mark.parametrize("policy", ["fifo", "fifo-backfill", "srtf", "srsf", "las", "drf"])
def test_the_resources_of_a_job_that_was_given_up_go_to_the_next(policy: str, tmp_path: Path) -> None:
    jobs = [job(0, work=LONG, command=("false",)), job(1, work=LONG, arrive_us=1, command=("true",))]
    given = scenario(jobs, where=setup([node("a", 1)], slot_us=S, horizon_us=60 * S))
    run = run_live(given, tmp_path / "state", policy, options=ExecutionOptions(grace_s=0.5, retries=0))
    assert states(run) == ["unfinished", "finished"]
    assert run.violations == ()
    assert "refused" not in alarms(run)
    assert api.check(given, run) == ()


@pytest.mark.parametrize("made", [broker, market, rings])
def test_policies_that_plan_slots_cope_with_jobs_that_are_given_up(made: Any, tmp_path: Path) -> None:
    given, policy = made(("false",))
    run = run_live(
        given, tmp_path / "state", policy, slot_seconds=0.8, options=ExecutionOptions(grace_s=0.5, retries=0)
    )
    assert "unfinished" in states(run)
    assert "given up" in alarms(run)
    assert run.violations == ()
    assert "refused" not in alarms(run)
    assert api.check(given, run) == ()


def test_a_missing_pytorch_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.worlds.live.find_spec", lambda name: None)
    command = ("python", "-m", "tradewind.train", "--mode", "ps")
    given = scenario([job(0, work=LONG, command=command)], where=two_sites())
    with pytest.raises(InputError, match=r"jobs\[j0\] runs tradewind.train, which needs PyTorch"):
        run_live(given, tmp_path / "state")
    assert not (tmp_path / "state" / "logs").exists()


@pytest.mark.parametrize("which", ["a virtual environment", "the one that runs this, with a path of its own"])
def test_the_python_that_a_job_names_is_asked_for_pytorch(which: str, tmp_path: Path) -> None:
    found = tmp_path / "modules"
    for name in ("tradewind", "torch"):
        (found / name).mkdir(parents=True)
        (found / name / "__init__.py").touch()
    bare = tmp_path / "bare"
    venv.create(bare)
    program = str(bare / "bin" / "python") if which.startswith("a virtual") else "python"
    training = job(
        0, work=LONG, command=(program, "-m", "tradewind.train"), env=(("PYTHONPATH", str(found)),)
    )
    check_trainer(scenario([training], where=two_sites()), ExecutionOptions())
    if program == "python":
        return
    alone = job(0, work=LONG, command=(program, "-m", "tradewind.train"))
    with pytest.raises(InputError, match="bare/bin/python has no tradewind and no torch"):
        run_live(
            scenario([alone], where=two_sites()), tmp_path / "state", options=ExecutionOptions(as_root=True)
        )
    assert not (tmp_path / "state" / "logs").exists()


def test_a_program_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    run = run_live(one(("no-such-program",), horizon=1000), tmp_path / "state")
    assert states(run) == ["unfinished"]
    assert "ended with 127" in alarms(run)
    assert "cannot start 'no-such-program'" in log(tmp_path / "state")


def test_a_rank_that_ignores_sigterm_is_killed_with_everything_it_started(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; setsid sleep 1000 & sleep 1000 & touch ../deaf; while :; do sleep 0.1; done"
    clock = Once(lambda world: (tmp_path / "state/jobs/0000-j0/deaf").exists())
    run = run_live(one(("sh", "-c", stubborn), horizon=2), tmp_path / "state", slot_seconds=1.0, slots=clock)
    assert "ignored SIGTERM for 0.5 s and was killed" in alarms(run)
    assert states(run) == ["unfinished"]


def test_a_rank_that_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    run = run_live(
        one(("sh", "-c", "setsid sleep 1000 & (sleep 1000 &) ; exit 0"), horizon=1000), tmp_path / "state"
    )
    assert states(run) == ["finished"]


def test_a_job_that_hangs_after_its_first_iterations_is_started_again(tmp_path: Path) -> None:
    once = COUNT.format(n=3) + "[ -e ../again ] || { touch ../again; sleep 1000; }"
    options = ExecutionOptions(grace_s=0.5, backoff_s=0, stall_s=1.0)
    given = one(("sh", "-c", once), work=Rounds(count=3, compute_us=10), horizon=1000)

    def hangs(world: FleetWorld) -> bool:
        gang, hung = world.gangs.get(0), (tmp_path / "state/jobs/0000-j0/again").exists()
        return hung and gang is not None and not gang.stopping and not gang.failures

    run = run_live(given, tmp_path / "state", options=options, slots=Once(hangs))
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "why") == [("failed: no iteration reported for 1 s",), ("complete",)]
    assert "no iteration reported for 1 s; retry 1 of 3" in alarms(run)


def test_a_log_never_grows_beyond_its_cap(tmp_path: Path) -> None:
    options = ExecutionOptions(grace_s=0.5, limits=Limits(log_bytes=50_000))
    run = run_live(
        one(("sh", "-c", "yes | head -c 3000000; echo the end"), horizon=1000),
        tmp_path / "state",
        options=options,
    )
    files = list((tmp_path / "state" / "logs" / "0000-j0").iterdir())
    assert sum(file.stat().st_size for file in files) <= 50_000
    assert "the end" in log(tmp_path / "state")
    assert "more than its log limit" in alarms(run)


def test_reports_that_are_invalid_are_ignored(tmp_path: Path) -> None:
    lines = ["nonsense", "[1]", '{"iteration": -5}', '{"iteration": 1e400}', '{"iteration": "x"}', "{" * 5000]
    good = '{"iteration": 2, "seconds": 0.5, "workers": 1, "at": AT}'
    script = "".join(f"echo '{line}' >> $TRADEWIND_REPORT;" for line in lines)
    script += f"echo '{good}' | sed \"s/AT/$(date +%s)/\" >> $TRADEWIND_REPORT; sleep 1000"
    run = run_live(
        one(("sh", "-c", script), work=Rounds(count=5, compute_us=10), horizon=3),
        tmp_path / "state",
        slot_seconds=1.0,
        slots=reported(2),
    )
    assert run.tables["outcomes"]["work"] == [2_000_000]
