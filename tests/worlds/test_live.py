"""The world of processes: what ranks are told, what they may do, and what happens when they misbehave."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Scripted, decision, job, link, node, plan, rows, run_at, scenario, setup, spec_of
from tests.worlds.live_scenarios import COUNT, S, broker, counting, market, rings
from tradewind import api
from tradewind.engine.live import LiveLoop
from tradewind.model.decision import Decision
from tradewind.model.errors import InputError, ScenarioError
from tradewind.model.job import Customer, Fixed, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.worlds.live import Request, live
from tradewind.worlds.processes.launching import Limits, Rules
from tradewind.worlds.processes.watching import strays
from tradewind.worlds.processes.world import ProcessWorld
from tradewind.worlds.simulate import simulate

QUICK = Rules(grace_s=0.5, backoff_s=0.02, retries=2)
LONG = Fixed(runtime_us=10 * S)
Look = Callable[[LiveLoop, ProcessWorld], None]


def land(*, horizon: int = 20, **more: Any) -> Any:
    return setup([node("a"), node("b")], slot_us=S, horizon_us=horizon * S, **more)


def one(command: Sequence[str], *, work: Any = None, horizon: int = 20, **more: Any) -> Scenario:
    return scenario([job(0, work=work or LONG, command=tuple(command), **more)], where=land(horizon=horizon))


def lived(
    given: Scenario, state: Path, policy: Any = "fifo", *, slot_seconds: float = 0.25, rules: Rules = QUICK,
    look: Look | None = None,
) -> Run:  # fmt: skip
    """A live run; no process of it may be left behind."""
    spec = policies.find(policy) if isinstance(policy, str) else policy
    request = Request(scenario=given, spec=spec, seed=1, state=state, slot_seconds=slot_seconds, rules=rules)
    tokens: list[str] = []

    def watch(loop: LiveLoop, world: ProcessWorld) -> None:
        tokens.append(world._ground.token)
        if look is not None:
            look(loop, world)

    run = live(request, watch)
    until = time.monotonic() + 2
    while tokens and strays(tokens[0]) and time.monotonic() < until:
        time.sleep(0.02)
    assert not tokens or strays(tokens[0]) == []
    return run


def alarms(run: Run) -> str:
    return "\n".join(map(str, run.tables["alarms"]["text"]))


def states(run: Run) -> list[Any]:
    return list(run.tables["outcomes"]["state"])


def log(state: Path, index: int = 0, rank: int = 0) -> str:
    return "".join(file.read_text() for file in state.glob(f"logs/{index:04d}-*/rank-{rank}.log"))


# ---------------------------------------------------------------------- the same loop
@pytest.mark.parametrize("made", [broker, market, rings])
def test_where_all_instants_are_known_a_live_run_has_the_books_of_a_simulated_one(
    made: Any, tmp_path: Path
) -> None:
    given, policy = made(("sleep", "1000"))
    run = lived(given, tmp_path / "state", policy, slot_seconds=0.1)
    model = simulate(given, policies.find(policy), {}, seed=1)
    for table in (
        "events",
        "decisions",
        "plans",
        "steps",
        "places",
        "offers",
        "costs",
        "payments",
        "outcomes",
    ):
        assert run.tables[table] == model.tables[table], table
    assert dict(run.metrics) == dict(model.metrics)
    assert run.violations == ()


def test_a_market_that_settles_in_the_end_charges_as_in_the_model_also_when_its_first_decision_failed(
    tmp_path: Path,
) -> None:
    given, _ = market(("sleep", "1000"))
    scarce = tuple(replace(node, capacity_milli=(2000,)) for node in given.setup.nodes)
    given = replace(given, setup=replace(given.setup, nodes=scarce))
    critical = Param(default="critical", doc="")
    spec = replace(policies.find("eris-preemptive"), params={"payments": critical})
    run = lived(given, tmp_path / "state", spec, slot_seconds=0.1)
    model = simulate(given, spec, {}, seed=1)
    assert len(model.tables["charges"]["job"]) == 3
    assert run.tables["charges"] == model.tables["charges"]
    assert dict(run.metrics) == dict(model.metrics)
    again = lived(given, tmp_path / "state", spec, slot_seconds=0.1)  # the journal of a run that is over
    assert again.tables["charges"] == run.tables["charges"]

    def stumbling(*args: Any) -> Any:
        policy, decide = (made := spec.factory(*args)), made.decide
        calls = iter([True])

        def first_fails(view: Any) -> Decision:
            if next(calls, False):
                raise ValueError("not yet")
            return decide(view)

        vars(policy)["decide"] = first_fails
        return policy

    late = lived(given, tmp_path / "late", replace(spec, factory=stumbling), slot_seconds=0.1)
    assert "not yet" in alarms(late)
    assert "nobody is charged" not in alarms(late)
    assert len(late.tables["charges"]["job"]) == 3


def test_a_job_is_finished_when_all_its_ranks_have_ended_well_and_the_file_says_that_this_was_measured(
    tmp_path: Path,
) -> None:
    given = scenario(
        [
            job(i, work=LONG, command=("sh", "-c", f"sleep 0.{1 + i}"), workers_min=2, workers_max=2)
            for i in range(2)
        ],
        where=land(),
    )
    run = lived(given, tmp_path / "state")
    assert states(run) == ["finished", "finished"]
    first, second = run.tables["outcomes"]["finish_us"]
    assert 0 < int(first) < int(second) < 10 * S  # not the ten slots of the scenario
    assert api.check(given, run) == ()
    api.save(run, tmp_path / "run.json")
    again = api.load_run(tmp_path / "run.json")
    assert again.world == "processes"
    assert again.tables["attempts"] == run.tables["attempts"]
    assert [r[0] for r in rows(run, "attempts", "why")] == ["complete", "complete"]


def test_rounds_that_ranks_report_are_the_progress_and_stand_beside_the_prediction(tmp_path: Path) -> None:
    work = Rounds(count=8, compute_us=S // 5)
    run = lived(one(counting(8), work=work), tmp_path / "state")
    assert states(run) == ["finished"]
    iterations, measured, predicted, sent = rows(
        run, "attempts", "iterations", "measured_s", "predicted_s", "bytes_sent"
    )[0]
    assert (iterations, measured, sent) == (8, 0.05, 80.0)
    assert predicted == pytest.approx(0.05)  # a fifth of a slot, which takes a quarter of a second here


def test_progress_at_the_horizon_is_what_was_reported(tmp_path: Path) -> None:
    run = lived(
        one(counting(1000), work=Rounds(count=1000, compute_us=10), horizon=3),
        tmp_path / "state",
        slot_seconds=0.6,
    )
    work = int(run.tables["outcomes"]["work"][0])
    assert states(run) == ["unfinished"]
    assert 1_000_000 <= work <= 40_000_000
    assert api.check(one(counting(1000), work=Rounds(count=1000, compute_us=10), horizon=3), run) == ()


def test_a_plan_that_changes_workers_restarts_the_ranks_from_the_checkpoint(tmp_path: Path) -> None:
    given = one(counting(30), work=Rounds(count=30, compute_us=10), workers_max=3)
    script = {0: decision(plan(0, run_at(0))), 2 * S: decision(plan(0, run_at(2 * S, (1, 0), (1, 2))))}
    run = lived(given, tmp_path / "state", spec_of(Scripted(script, {})), slot_seconds=0.5)
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "places", "why") == [("1@a", "moved"), ("1@b 2@a", "complete")]
    begun = (tmp_path / "state" / "jobs" / "0000-j0" / "begun").read_text().split()
    assert begun[1] == "0"
    assert min(int(word) for word in begun[3::2]) > 0  # the second attempt did not begin at the beginning


def test_a_job_whose_plan_pauses_stops_and_goes_on_later(tmp_path: Path) -> None:
    given = one(counting(10), work=Rounds(count=10, compute_us=10))
    script = {0: decision(plan(0, run_at(0))), S: decision(plan(0)), 2 * S: decision(plan(0, run_at(2 * S)))}
    run = lived(given, tmp_path / "state", spec_of(Scripted(script, {})))
    assert states(run) == ["finished"]
    assert [r[0] for r in rows(run, "attempts", "why")] == ["paused", "complete"]


def test_a_server_follows_the_bandwidth_as_apsp_decides(tmp_path: Path) -> None:
    fast, slow = 80_000_000, 8_000_000
    where = setup(
        [node("a"), node("b"), node("c")],
        links=(link(0, 1, fast), link(0, 2, fast), link(1, 2, slow)),
        slot_us=S,
        horizon_us=60 * S,
        objective="epoch_s",
    )
    work = Rounds(count=30, compute_us=1000, comm="flows", pinned=((0, 1), (1, 1), (2, 1)))
    wan = job(
        0, work=work, model_bytes=100_000, workers_min=3, workers_max=3, servers=1, server=((0, 1000),),
        architecture="ps", command=counting(30),
    )  # fmt: skip
    changes = [Change(2 * S, "bandwidth", 1, 2, slow), Change(2 * S, "bandwidth", 2, 2, fast)]
    given = scenario([wan], where=where, changes=changes)
    run = lived(given, tmp_path / "state", "apsp", slot_seconds=0.5)
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "places", "why") == [
        ("ps@a 1@a 1@b 1@c", "moved"), ("ps@b 1@a 1@b 1@c", "complete")
    ]  # fmt: skip
    assert min(r[0] for r in rows(run, "attempts", "predicted_s")) > 0
    assert api.check(given, run) == ()


# ---------------------------------------------------------------------- what a rank is told
def test_ranks_are_told_the_contract_and_nothing_of_the_loop_around_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    given = scenario(
        [
            job(
                0, work=Rounds(count=7, compute_us=10), command=("sh", "-c", "env > env-$RANK; pwd"), workers_min=3,
                workers_max=3, servers=1, architecture="ps", server=((0, 1000),), env=(("COLOUR", "blue"),), seed=42,
            )
        ],
        where=land(),
    )  # fmt: skip
    step = run_at(0, (1, 0), (2, 1), servers=(0, 1))
    lived(given, tmp_path / "state", spec_of(Scripted({0: decision(plan(0, step))}, {})))
    home = tmp_path / "state" / "jobs" / "0000-j0"
    told = [
        dict(line.split("=", 1) for line in (home / f"rank-{i}" / f"env-{i}").read_text().splitlines())
        for i in range(4)
    ]
    assert [t["TRADEWIND_ROLE"] for t in told] == ["ps", "worker", "worker", "worker"]
    assert [t["TRADEWIND_SITE"] for t in told] == ["a", "b", "b", "a"]
    assert [t["LOCAL_RANK"] for t in told] == ["0", "0", "1", "1"]
    assert [t["TRADEWIND_DATA_SHARD"] for t in told[1:]] == ["0/3", "1/3", "2/3"]
    one_of = told[2]
    expected = {
        "RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "TRADEWIND_SITES": "a,b,b,a", "TRADEWIND_RING": "",
        "TRADEWIND_JOB": "j0", "TRADEWIND_SLOT": "0", "TRADEWIND_SEED": "42", "COLOUR": "blue",
        "TRADEWIND_INTERFACE": "lo", "TRADEWIND_STOP_AFTER_ITERATIONS": "7", "HOME": str(home / "rank-2"),
        "TRADEWIND_CHECKPOINT_DIR": str(home / "checkpoint"), "TRADEWIND_REPORT": str(home / "report/rank-2.jsonl"),
    }  # fmt: skip
    assert {name: one_of.get(name) for name in expected} == expected
    assert len({t["MASTER_PORT"] for t in told}) == 1
    assert log(tmp_path / "state", rank=3).splitlines()[1] == str(home / "rank-3")
    allowed = {
        *expected,
        "PATH",
        "TMPDIR",
        "OMP_NUM_THREADS",
        "LOCAL_RANK",
        "MASTER_PORT",
        "PWD",
        "LANG",
        "LC_ALL",
        "TZ",
    }
    assert {n for n in one_of if not n.startswith("TRADEWIND_")} <= allowed | {"_", "SHLVL", "OLDPWD"}


def test_a_ring_is_told_its_peers_in_ring_order(tmp_path: Path) -> None:
    given = one(("sh", "-c", "echo $TRADEWIND_RING $TRADEWIND_ROLE"), workers_min=3, workers_max=3)
    script = {0: decision(plan(0, run_at(0, (1, 0), (1, 2))))}
    lived(given, tmp_path / "state", spec_of(Scripted(script, {})))
    assert log(tmp_path / "state", rank=2).splitlines()[1] == "0@b,1@a,2@a worker"


def test_env_and_seed_need_a_command_and_cannot_pretend_to_be_the_contract() -> None:
    with pytest.raises(ScenarioError, match="no command"):
        job(0, seed=3)
    for name in ("RANK", "TRADEWIND_SITE", "A-B", ""):
        with pytest.raises(ScenarioError, match="Choose another name"):
            job(0, command=("x",), env=((name, "1"),))


def test_a_scenario_with_commands_is_simulated_as_if_it_had_none() -> None:
    with_command, policy = broker()
    bare, _ = broker(command=())
    runs = [simulate(given, policies.find(policy), {}, seed=1) for given in (with_command, bare)]
    assert runs[0].tables == runs[1].tables
    with pytest.raises(InputError, match="has no command"):
        live(Request(scenario=bare, spec=policies.find(policy), state=Path("/nonexistent/x")))


# ---------------------------------------------------------------------- what ranks may do
def test_limits_are_set_and_cores_are_not_dumped(tmp_path: Path) -> None:
    limits = Limits(open_files=77, file_bytes=512 * 1000, memory_bytes=4 << 30, cpu_seconds=9, processes=3000)
    lived(
        one(("bash", "-c", "ulimit -n -f -v -t -c -u")),
        tmp_path / "state",
        rules=Rules(limits=limits, grace_s=0.5),
    )
    found = [line.split()[-1] for line in log(tmp_path / "state").splitlines()[1:-1]]
    assert sorted(found) == sorted(["77", "500", str(4 << 20), "9", "0", "3000"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start jobs as other users")
def test_a_job_cannot_read_the_checkpoints_of_another_when_each_has_its_own_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:  # other users may pass through what pytest made for this user alone
        if folder.is_relative_to(tempfile.gettempdir()) and folder != Path(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o011)
    write = ("sh", "-c", "echo mine > $TRADEWIND_CHECKPOINT_DIR/model; id -u; sleep 0.6")
    spy = "sleep 0.3; cd ../..; ls .; cat 0000-j0/checkpoint/model; cat ../journal; ls ../control; echo over"
    given = scenario(
        [job(0, work=LONG, command=write), job(1, work=LONG, command=("sh", "-c", spy))], where=land()
    )
    run = lived(given, tmp_path / "state", rules=Rules(grace_s=0.5, first_uid=61_500))
    assert states(run) == ["finished", "finished"]
    assert log(tmp_path / "state", 0).splitlines()[1] == "61500"
    seen = log(tmp_path / "state", 1)
    assert "mine" not in seen
    assert seen.count("Permission denied") >= 3
    assert (tmp_path / "state/jobs/0000-j0/checkpoint/model").read_text() == "mine\n"
    assert (tmp_path / "state/jobs/0000-j0/checkpoint").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["the job's demand", "a limit for all"])
def test_a_rank_gets_no_more_cpu_than_it_may(how: str, tmp_path: Path) -> None:
    where = setup(
        [node("a")], resources=("cpu" if how == "the job's demand" else "gpu",), slot_us=S, horizon_us=9 * S
    )
    spin = ("sh", "-c", "trap 'times; exit 0' TERM; while :; do :; done")
    given = scenario([job(0, work=LONG, worker=((0, 300),), command=spin)], where=where)
    limits = Limits() if how == "the job's demand" else Limits(cpu_milli=300)
    lived(given, tmp_path / "state", rules=Rules(grace_s=0.5, limits=limits))
    minutes, _, seconds = log(tmp_path / "state").splitlines()[1].split()[0].rstrip("s").partition("m")
    used = 60 * int(minutes) + float(seconds)
    assert 0.1 < used < 0.3 * 9 * 0.25 * 1.3  # 0.3 CPUs for nine slots of a quarter of a second


# ---------------------------------------------------------------------- trouble
def killer(when: Callable[[ProcessWorld], Sequence[int]], times: int = 1) -> Look:
    """Kills the processes that `when` names, `times` times."""
    done = [0]

    def look(loop: LiveLoop, world: ProcessWorld) -> None:
        if done[0] < times and (found := when(world)):
            done[0] += 1
            for pid in found:
                os.kill(pid, signal.SIGKILL)

    return look


def commands(world: ProcessWorld, at: int, ranks: Callable[[int, int], bool]) -> list[int]:
    """Process ids of a job's commands, by (rank, node), once it has counted to `at`."""
    crew = world.crews[0]
    if not crew.watches or crew.reports.iterations < at:
        return []
    chosen = [w for i, w in enumerate(crew.watches) if ranks(i, crew.ranks[i].node)]
    found = [watch.child() for watch in chosen]
    return found if all(found) else []


@pytest.mark.parametrize("which", ["a rank", "a site", "a keeper"])
def test_after_ranks_were_killed_the_job_goes_on_from_its_checkpoint(which: str, tmp_path: Path) -> None:
    given = one(counting(14), work=Rounds(count=14, compute_us=10), workers_min=4, workers_max=4)
    step = run_at(0, (0, 1), (2, 2))

    def victims(world: ProcessWorld) -> list[int]:
        if which == "a keeper":
            ready = commands(world, 5, lambda rank, _: rank == 3)
            return [world.crews[0].watches[3].pid] if ready else []
        return commands(world, 5, lambda rank, at: rank == 3 if which == "a rank" else at == 1)

    run = lived(
        given, tmp_path / "state", spec_of(Scripted({0: decision(plan(0, step))}, {})), look=killer(victims)
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


def test_a_command_that_always_fails_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    given = scenario(
        [
            job(0, work=LONG, command=("sh", "-c", "echo oh dear; exit 3")),
            job(1, work=LONG, command=("sleep", "1")),
        ],
        where=land(),
    )
    run = lived(given, tmp_path / "state")
    assert states(run) == ["unfinished", "finished"]
    assert "failed: rank 0@a ended with 3; retry 1 of 2" in alarms(run)
    assert "given up" in alarms(run)
    assert log(tmp_path / "state").count("oh dear") == 3
    assert api.check(given, run) == ()


@pytest.mark.parametrize("policy", ["fifo", "fifo-backfill", "srtf", "srsf", "las", "drf"])
def test_the_room_of_a_job_that_was_given_up_goes_to_the_next(policy: str, tmp_path: Path) -> None:
    jobs = [job(0, work=LONG, command=("false",)), job(1, work=LONG, arrive_us=1, command=("true",))]
    given = scenario(jobs, where=setup([node("a", 1)], slot_us=S, horizon_us=60 * S))
    run = lived(given, tmp_path / "state", policy, rules=Rules(grace_s=0.5, retries=0))
    assert states(run) == ["unfinished", "finished"]
    assert run.violations == ()
    assert "refused" not in alarms(run)
    assert api.check(given, run) == ()


@pytest.mark.parametrize("made", [broker, market, rings])
def test_policies_that_plan_slots_live_with_jobs_that_are_given_up(made: Any, tmp_path: Path) -> None:
    given, policy = made(("false",))
    run = lived(given, tmp_path / "state", policy, slot_seconds=0.8, rules=Rules(grace_s=0.5, retries=0))
    assert "unfinished" in states(run)
    assert "given up" in alarms(run)
    assert run.violations == ()
    assert "refused" not in alarms(run)
    assert api.check(given, run) == ()


def test_a_program_that_does_not_exist_is_said_clearly(tmp_path: Path) -> None:
    run = lived(one(("no-such-program",)), tmp_path / "state")
    assert states(run) == ["unfinished"]
    assert "ended with 127" in alarms(run)
    assert "cannot start 'no-such-program'" in log(tmp_path / "state")


def test_a_rank_that_ignores_sigterm_is_killed_with_everything_it_started(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; setsid sleep 1000 & sleep 1000 & while :; do sleep 0.1; done"
    run = lived(one(("sh", "-c", stubborn), horizon=2), tmp_path / "state", slot_seconds=1.0)
    assert "ignored SIGTERM for 0.5 s and was killed" in alarms(run)
    assert states(run) == ["unfinished"]


def test_a_rank_that_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    run = lived(one(("sh", "-c", "setsid sleep 1000 & (sleep 1000 &) ; exit 0")), tmp_path / "state")
    assert states(run) == ["finished"]


def test_a_job_that_hangs_after_its_first_iterations_is_started_again(tmp_path: Path) -> None:
    once = COUNT.format(n=3) + "[ -e ../again ] || { touch ../again; sleep 1000; }"
    rules = Rules(grace_s=0.5, backoff_s=0.02, stall_s=0.5)
    given = one(("sh", "-c", once), work=Rounds(count=3, compute_us=10))
    run = lived(given, tmp_path / "state", rules=rules)
    assert states(run) == ["finished"]
    assert "no iteration reported for 0.5 s" in alarms(run)


def test_a_log_never_grows_beyond_its_cap(tmp_path: Path) -> None:
    rules = Rules(grace_s=0.5, limits=Limits(log_bytes=50_000))
    run = lived(one(("sh", "-c", "yes | head -c 3000000; echo the end")), tmp_path / "state", rules=rules)
    files = list((tmp_path / "state" / "logs" / "0000-j0").iterdir())
    assert sum(file.stat().st_size for file in files) <= 50_000
    assert "the end" in log(tmp_path / "state")
    assert "more than its log may hold" in alarms(run)


def test_reports_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    lines = ["nonsense", "[1]", '{"iteration": -5}', '{"iteration": 1e400}', '{"iteration": "x"}', "{" * 5000]
    good = '{"iteration": 2, "seconds": 0.5, "workers": 1, "at": AT}'
    script = "".join(f"echo '{line}' >> $TRADEWIND_REPORT;" for line in lines)
    script += f"echo '{good}' | sed \"s/AT/$(date +%s)/\" >> $TRADEWIND_REPORT; sleep 1000"
    run = lived(
        one(("sh", "-c", script), work=Rounds(count=5, compute_us=10), horizon=3),
        tmp_path / "state",
        slot_seconds=0.6,
    )
    assert run.tables["outcomes"]["work"] == [2_000_000]


# ---------------------------------------------------------------------- the audit
def test_an_allocation_that_the_audit_refuses_never_starts_a_process_and_the_last_good_plan_goes_on(
    tmp_path: Path,
) -> None:
    given = one(("sh", "-c", "echo $WORLD_SIZE >> ../started; sleep 1000"), workers_max=9, horizon=4)
    script = {
        0: decision(plan(0, run_at(0, until=S))),
        S: decision(plan(0, run_at(S, (0,), (9,)))),  # nine gpus on a node with four
        2 * S: decision(plan(0, run_at(2 * S, (0, 0), (1, 1)))),  # the same node twice
    }
    run = lived(given, tmp_path / "state", spec_of(Scripted(script, {})), slot_seconds=0.5)
    assert alarms(run).count("refused: a decision of scripted") == 2
    assert "capacity.node" in alarms(run)
    assert "form.node_once" in alarms(run)
    assert (tmp_path / "state/jobs/0000-j0/started").read_text() == "1\n"
    assert rows(run, "steps", "from_us", "until_us") == [(0, S), (S, 2 * S), (2 * S, 3 * S)]
    assert run.violations == ()
    assert api.check(given, run) == ()


def test_a_refused_decision_from_the_start_starts_nothing(tmp_path: Path) -> None:
    given = one(("sh", "-c", "touch ../started"), workers_max=9, horizon=3)
    bad = {at * S: decision(plan(0, run_at(at * S, (0,), (9,)))) for at in range(3)}
    run = lived(given, tmp_path / "state", spec_of(Scripted(bad, {})), slot_seconds=0.1)
    assert run.tables["attempts"]["job"] == []
    assert list((tmp_path / "state" / "jobs").iterdir()) == []
    assert states(run) == ["unfinished"]


def test_a_policy_that_fails_is_heard_of_and_called_again(tmp_path: Path) -> None:
    def broken(view: Any) -> Decision:
        raise RuntimeError("what a day")

    given = one(("sleep", "0.2"))
    policy = Scripted({0: broken, S: decision(plan(0, run_at(S)))}, {})
    run = lived(given, tmp_path / "state", spec_of(policy))
    assert "what a day" in alarms(run)
    assert states(run) == ["finished"]
    assert [event.kind for event in policy.heard][:2] == [
        "arrived",
        "slot",
    ]  # it hears of the first instant again


def test_a_stream_that_is_not_served_is_a_violation_in_the_file_and_not_the_end(tmp_path: Path) -> None:
    given, _ = broker(("sleep", "1000"))
    run = lived(given, tmp_path / "state", spec_of(Scripted({}, {})), slot_seconds=0.05)
    assert {v.rule for v in run.violations} == {"data.stream_served"}
    assert {v.rule for v in api.check(given, run)} == {"data.stream_served"}
    assert states(run) == ["left", "left"]


def test_customers_and_budgets_stay_with_the_world(tmp_path: Path) -> None:
    given, policy = market(("sleep", "1000"))
    poor = Scenario(
        name="poor", setup=given.setup, jobs=given.jobs, customers=(Customer(budget_usd=0.0),) * 3, changes=()
    )
    run = lived(poor, tmp_path / "state", policy, slot_seconds=0.05)
    assert set(states(run)) <= {"declined", "refused"}
    assert run.tables["attempts"]["job"] == []
