"""Stopping and continuing a live run, recovery after a kill, and journals that cannot be continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import job, node, rows, scenario, setup
from tests.store.postgres import alter
from tests.worlds.live_runs import LONG, PATIENCE_S, in_a_process, states, two_sites
from tests.worlds.live_scenarios import S, broker, counting, gated
from tradewind import api
from tradewind.cli import main as cli
from tradewind.cli.guard import guarded
from tradewind.engine.live import LiveSession
from tradewind.model.codec import read
from tradewind.model.decision import Certificate, Decision, Flow, Offer, Plan, Quote, Route, Step, Verdict
from tradewind.model.errors import InputError, StoreError
from tradewind.model.job import Rounds
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.store.store import Store
from tradewind.testing.fleet_fake import FakeTime
from tradewind.worlds.clock import Clock
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.handles import marked_processes
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.simulate import simulate


def request(
    given: Scenario,
    state: Path,
    policy: str = "fifo",
    *,
    slot_seconds: float = 0.25,
    patience_s: float = 120.0,
) -> LiveRequest:
    options = ExecutionOptions(grace_s=0.5, backoff_s=0.02, patience_s=patience_s, as_root=True)
    return LiveRequest(
        scenario=given, spec=policies.find(policy), state=state, slot_seconds=slot_seconds, options=options
    )


def count_to(n: int, command: tuple[str, ...] = ()) -> Scenario:
    work = Rounds(count=n, compute_us=10)
    return scenario([job(0, work=work, command=command or counting(n))], where=two_sites(horizon=1000))


def token(state: Path) -> str:
    with Store.open(state) as store:
        return str(store.read()[0]["token"])


def test_an_interrupted_run_is_complete_and_auditable_and_can_be_continued(tmp_path: Path) -> None:
    given, state = count_to(25, gated(25, 8, "stopped")), tmp_path / "state"
    stopped: list[int] = []

    def observe(session: LiveSession, world: FleetWorld) -> None:
        if not stopped and 0 in world.gangs and world.gangs[0].iterations >= 3:
            stopped.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    first = live(request(given, state), observe)
    (state / "jobs/0000-j0/stopped").touch()
    assert states(first) == ["unfinished"]
    assert [r[0] for r in rows(first, "attempts", "why")] == ["the run is over"]
    assert api.check(given, first) == ()
    assert marked_processes(token(state)) == []
    second = live(request(given, state))
    assert states(second) == ["finished"]
    assert [r[0] for r in rows(second, "attempts", "why")] == ["the run is over", "complete"]
    # nothing is done twice; a stop may come between this command's checkpoint and its report
    assert 24 <= sum(r[0] for r in rows(second, "attempts", "iterations")) <= 25
    assert api.check(given, second) == ()


def starts(state: Path) -> list[Path]:
    """Claims of supervisors; a claim for process 0 keeps a supervisor that never began from beginning later."""
    return sorted(claim for claim in state.rglob("claim") if json.loads(claim.read_text())["pid"])


def test_a_finished_run_that_is_repeated_gives_the_same_result_and_starts_nothing(tmp_path: Path) -> None:
    given, policy = broker(("sleep", "1000"))
    first = live(request(given, tmp_path / "s", policy, slot_seconds=0.05))
    before = starts(tmp_path)
    again = live(request(given, tmp_path / "s", policy, slot_seconds=0.05))
    assert again == first
    assert starts(tmp_path) == before


def test_ranks_whose_loop_is_never_restarted_end_by_themselves(tmp_path: Path) -> None:
    pid = in_a_process(request(count_to(1000), tmp_path / "s", patience_s=5.0))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    mark = token(tmp_path / "s")
    assert len(marked_processes(mark)) >= 2  # the supervisor and its command continue for a while
    until = time.monotonic() + 60
    while marked_processes(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert marked_processes(mark) == []


def test_a_restarted_loop_adopts_the_rank_that_kept_running(tmp_path: Path) -> None:
    given, state = count_to(30), tmp_path / "s"
    pid = in_a_process(request(given, state))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    run = live(request(given, state))
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "number", "why", "iterations") == [(0, "complete", 30)]
    assert (state / "jobs/0000-j0/begun").read_text() == "from 0\n"


@pytest.mark.parametrize("who", ["command", "supervisor"])
def test_a_rank_that_dies_while_there_is_no_loop_is_started_again_from_its_checkpoint(
    who: str, tmp_path: Path
) -> None:
    given, state = count_to(30, gated(30, 20, "killed")), tmp_path / "s"
    pid = in_a_process(request(given, state))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    file = state / "control/0000-j0-0/0-0" / ("child" if who == "command" else "claim")
    until = time.monotonic() + 60
    while not (file.exists() and list(state.glob("jobs/0000-j0/checkpoint/i"))):
        assert time.monotonic() < until, "it wrote no checkpoint"
        time.sleep(0.02)
    os.kill(json.loads(file.read_text())["pid"], signal.SIGKILL)
    (state / "jobs/0000-j0/killed").touch()
    run = live(request(given, state))
    assert states(run) == ["finished"]
    why = [r[0] for r in rows(run, "attempts", "why")]
    assert why[0].startswith("failed: rank 0@a was")
    assert why[1] == "complete"
    first, second = (int(line.split()[1]) for line in (state / "jobs/0000-j0/begun").read_text().splitlines())
    assert first == 0 < second
    assert marked_processes(token(state)) == []


def test_two_loops_cannot_share_a_state_directory(tmp_path: Path) -> None:
    asked = request(count_to(1000), tmp_path / "s")
    pid = in_a_process(asked)
    with pytest.raises(InputError, match="another live run uses this state directory"):
        live(asked)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    assert marked_processes(token(tmp_path / "s")) == []


def test_a_store_is_continued_by_the_same_run_only(tmp_path: Path) -> None:
    given, policy = broker(("sleep", "1000"))
    live(request(given, tmp_path / "s", policy, slot_seconds=0.02))
    other, _ = broker(("sleep", "999"))
    with pytest.raises(InputError, match="belongs to a run with scenario"):
        live(request(other, tmp_path / "s", policy, slot_seconds=0.02))
    with pytest.raises(InputError, match="belongs to a run with pace"):
        live(request(given, tmp_path / "s", policy, slot_seconds=0.03))


def test_a_run_whose_records_were_altered_is_not_continued(tmp_path: Path) -> None:
    given, policy = broker(("sleep", "1000"))
    asked = request(given, tmp_path / "s", policy, slot_seconds=0.02)
    live(asked)
    alter(str(tmp_path / "s" / "store.db"), "delete from records where number = 3")
    with pytest.raises(StoreError, match="record 3 is missing"):
        live(asked)


def test_a_run_of_an_earlier_version_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "journal").write_text("old")
    given, policy = broker(("sleep", "1000"))
    with pytest.raises(InputError, match="a run of an earlier version"):
        live(request(given, tmp_path / "s", policy))
    assert not (tmp_path / "s" / "store.db").exists()


def test_a_store_is_private_and_names_every_job_that_is_over(tmp_path: Path) -> None:
    given, policy = broker(("sleep", "1000"))
    run = live(request(given, tmp_path / "s", policy, slot_seconds=0.02))
    assert (tmp_path / "s" / "store.db").stat().st_mode & 0o777 == 0o600
    with Store.open(tmp_path / "s") as store:
        assert store.verify().number == len(store.read())
        assert store.read()[-1]["kind"] == "closed"
        rows = [store.job(index) for index in range(len(given.jobs))]
    assert [row.id for row in rows if row is not None] == [each.id for each in given.jobs]
    how = {"unfinished": "ended"}
    assert [row.how for row in rows if row is not None] == [how.get(each, each) for each in states(run)]


def test_decisions_and_quotes_are_read_back_from_the_store_unchanged(tmp_path: Path) -> None:
    step = Step(0, 5, (1, 0), (2, 1), (0, 1), (Flow(0, 1, 7),), (Route(0, 1, 9, (3,), "push-pull"),), 0.1)
    decision = Decision(
        (Plan(3, (step,)),), (Verdict(1, "no"),), 9, Certificate("c", 1.5, "min", {"x": [1]}), "why"
    )
    quote = Quote(3, (Offer(1.25, 8, Plan(3, (step, step)), ((0, 0.5),)),), "", "because")
    with Store.open(tmp_path / "store.db", write=True) as store:
        store.append("both", {"decision": decision, "quote": quote})
        (record,) = store.read()
    assert read(Decision, record["decision"], "") == decision
    assert read(Quote, record["quote"], "") == quote


def test_the_clock_never_skips_an_instant_and_leaves_every_slot_half_of_its_time() -> None:
    source = FakeTime()
    clock = Clock(1000.0, 1000, source)
    source.advance(0.5)
    assert clock.now_us() == 500
    source.advance(0.75)  # slot 1 is a quarter of a second late: it catches up
    clock.arrive(1000)
    assert clock.now_us() == 1250
    source.advance(2.75)  # slot 2 is two slots late: the clock moves back to it
    clock.arrive(2000)
    assert clock.now_us() == 2000
    assert clock.seconds_until(3000) == pytest.approx(1.0)
    source.step_wall(-3600)
    assert clock.now_us() == 2000


def test_the_command_writes_run_file_and_report_and_streams_plain_lines(tmp_path: Path) -> None:
    # a failed attempt is noticed when the machine has time for it; the run ends as soon as nothing is left to do
    where = setup([node("a"), node("b")], slot_us=S, horizon_us=3000 * S)
    given = scenario(
        [
            job(0, work=Rounds(count=5, compute_us=10), command=counting(5)),
            job(1, work=LONG, command=("sh", "-c", "echo no data; exit 1")),
        ],
        where=where,
    )
    api.dump(given, tmp_path / "scenario.yaml")
    command = [
        sys.executable, "-m", "tradewind.cli.main", "live", "scenario.yaml", "--policy", "fifo", "--slot-seconds", "0.2",
        "--state", "state", "-o", "run.json", "--report", "report.html", "--retries", "0", "--as-root",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr  # a job was given up
    assert "slot 0: " in done.stderr
    assert "alarm: j1: attempt 0 failed: rank 0@" in done.stderr
    assert "no data" in done.stderr  # the end of its log
    assert "complete" in done.stdout
    run = api.load_run(tmp_path / "run.json")
    assert api.check(given, run) == ()
    html = (tmp_path / "report.html").read_text()
    assert "Attempts of all jobs" in html
    assert '<th scope="col">predicted</th>' in html
    assert "given up" in html
    assert "no data" in html
    assert "it 5" in done.stderr or "loss 1" in done.stderr or "iterations" in done.stdout


def test_the_command_stopped_by_ctrl_c_says_130_and_how_it_goes_on(tmp_path: Path) -> None:
    where = setup([node("a")], slot_us=S, horizon_us=3000 * S)
    program = ("sh", "-c", f"echo $$ > {tmp_path}/begun; exec sleep 600")
    api.dump(scenario([job(0, work=LONG, command=program)], where=where), tmp_path / "scenario.yaml")
    command = [
        sys.executable, "-m", "tradewind.cli.main", "live", "scenario.yaml", "--policy", "fifo", "--slot-seconds", "0.2",
        "--state", "state", "--grace", "5", "--as-root",
    ]  # fmt: skip
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            until = time.monotonic() + PATIENCE_S
            while not (tmp_path / "begun").exists() or not (tmp_path / "begun").read_text().endswith("\n"):
                assert running.poll() is None, running.communicate()
                assert time.monotonic() < until
                time.sleep(0.05)
            running.send_signal(signal.SIGINT)
            said, alarms = running.communicate(timeout=PATIENCE_S)
        finally:
            running.kill()
    assert running.returncode == 130, alarms
    assert "stopped before the end; to continue, repeat the command with --state state" in said
    assert "Traceback" not in alarms
    rank = Path("/proc", (tmp_path / "begun").read_text().strip(), "cmdline")
    assert not rank.exists() or b"sleep" not in rank.read_bytes()


def test_the_example_takes_less_than_two_minutes_and_has_changing_workers_and_a_moving_server() -> None:
    given = api.load(Path(__file__).parents[2] / "examples" / "live.yaml")
    assert given.setup.horizon_us <= 95 * S
    run = simulate(given, policies.find("mlbroker"), {})
    places = rows(run, "places", "node", "workers", "servers")
    assert len({node for node, _, servers in places if servers}) > 1
    assert len({workers for _, workers, _ in places}) > 1
    assert all(each.command[:3] == ("python", "-m", "tradewind.train") for each in given.jobs)


def test_the_command_explains_what_it_rejects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.dump(broker(())[0], tmp_path / "bare.yaml")
    api.dump(broker()[0], tmp_path / "fine.yaml")

    def errors_of(file: str, *more: str) -> str:
        arguments = [
            "live",
            str(tmp_path / file),
            "--policy",
            "mlbroker",
            "--state",
            str(tmp_path / "state"),
            *more,
        ]
        assert guarded(lambda: cli.app(arguments, standalone_mode=False)) == 2
        return capsys.readouterr().err

    assert "has no command" in errors_of("bare.yaml")
    assert "No limit is called 'memory'" in errors_of("fine.yaml", "--limit", "memory=3")
    assert "write a whole number" in errors_of("fine.yaml", "--limit", "open_files=many")
    assert "a name that ends in .html" in errors_of("fine.yaml", "--report", "x.pdf")
    (tmp_path / "places.json").write_text('{"a": {"netns": "x"}}')
    assert "allowed are the fields namespace" in errors_of(
        "fine.yaml", "--places", str(tmp_path / "places.json")
    )
