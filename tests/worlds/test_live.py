"""Live runs: the same results as in simulation, the contract with ranks, and their limits."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Scripted, decision, job, link, node, plan, rows, run_at, scenario, setup, spec_of
from tests.worlds.live_runs import (
    LONG,
    Slots,
    alarms,
    assert_as_simulated,
    log,
    one,
    reported,
    run_live,
    states,
    two_sites,
)
from tests.worlds.live_scenarios import S, broker, counting, market, rings
from tradewind import api
from tradewind.cli import show_placements
from tradewind.model.decision import Decision
from tradewind.model.errors import InputError, ScenarioError
from tradewind.model.job import Rounds
from tradewind.model.spec import Param
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.report.live import measurements
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Limits
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.simulate import simulate


# ---------------------------------------------------------------------- compared with simulation
@pytest.mark.parametrize("made", [broker, market, rings])
def test_if_all_instants_are_known_a_live_run_has_the_results_of_a_simulated_one(
    made: Any, tmp_path: Path
) -> None:
    given, policy = made(("sleep", "1000"))
    run = run_live(given, tmp_path / "state", policy, slot_seconds=0.1)
    assert_as_simulated(run, given, policy)


def test_a_market_that_settles_at_the_end_charges_as_in_the_model_also_when_its_first_decision_failed(
    tmp_path: Path,
) -> None:
    given, _ = market(("sleep", "1000"))
    scarce = tuple(replace(node, capacity_milli=(2000,)) for node in given.setup.nodes)
    given = replace(given, setup=replace(given.setup, nodes=scarce))
    critical = Param(default="critical", doc="")
    spec = replace(policies.find("eris-preemptive"), params={"payments": critical})
    run = run_live(given, tmp_path / "state", spec, slot_seconds=0.1)
    model = simulate(given, spec, {}, seed=1)
    assert len(model.tables["charges"]["job"]) == 3
    assert run.tables["charges"] == model.tables["charges"]
    assert dict(run.metrics) == dict(model.metrics)
    again = run_live(given, tmp_path / "state", spec, slot_seconds=0.1)  # the journal of a run that is over
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

    late = run_live(given, tmp_path / "late", replace(spec, factory=stumbling), slot_seconds=0.1)
    assert "not yet" in alarms(late)
    assert "no customer was charged" not in alarms(late)
    assert len(late.tables["charges"]["job"]) == 3


def test_a_job_is_finished_when_all_its_ranks_have_ended_with_0_and_the_run_file_says_that_this_was_measured(
    tmp_path: Path,
) -> None:
    given = scenario(
        [
            job(i, work=LONG, command=("sh", "-c", f"sleep 0.{1 + i}"), workers_min=2, workers_max=2)
            for i in range(2)
        ],
        where=two_sites(),
    )
    run = run_live(given, tmp_path / "state")
    assert states(run) == ["finished", "finished"]
    first, second = run.tables["outcomes"]["finish_us"]
    assert 0 < int(first) < int(second) < 10 * S  # not the ten slots of the scenario
    assert api.check(given, run) == ()
    api.save(run, tmp_path / "run.json")
    again = api.load_run(tmp_path / "run.json")
    assert again.world == "processes"
    assert again.tables["attempts"] == run.tables["attempts"]
    assert [r[0] for r in rows(run, "attempts", "why")] == ["complete", "complete"]


def test_rounds_that_ranks_report_are_the_progress_and_are_shown_with_the_prediction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = one(counting(8), work=Rounds(count=8, compute_us=S // 5))
    run = run_live(given, tmp_path / "state")
    assert states(run) == ["finished"]
    iterations, measured, predicted, sent = rows(
        run, "attempts", "iterations", "measured_s", "predicted_s", "bytes_sent"
    )[0]
    assert (iterations, measured, sent) == (8, 0.05, 80.0)
    assert predicted == pytest.approx(0.05)  # a fifth of a slot, which takes a quarter of a second here
    names = ("job", "node", "iterations", "measured_s", "error_s", "predicted_s", "accuracy")
    assert rows(run, "measurements", *names) == [
        (0, 0, 8, pytest.approx(0.05), pytest.approx(0.0), pytest.approx(0.05), -1.0)
    ]
    (row,) = measurements(run)
    assert row.ratio.startswith("1 ± ")
    show_placements.table(given, run, (), whole=True, as_json=False)
    assert row.ratio in capsys.readouterr().out


def test_progress_at_the_horizon_is_what_was_reported(tmp_path: Path) -> None:
    run = run_live(
        one(counting(1000), work=Rounds(count=1000, compute_us=10), horizon=3),
        tmp_path / "state",
        slot_seconds=1.0,
        slots=reported(1),
    )
    work = int(run.tables["outcomes"]["work"][0])
    assert states(run) == ["unfinished"]
    assert 1_000_000 <= work <= 40_000_000
    assert api.check(one(counting(1000), work=Rounds(count=1000, compute_us=10), horizon=3), run) == ()


def test_a_plan_that_changes_workers_restarts_the_ranks_from_the_checkpoint(tmp_path: Path) -> None:
    given = one(counting(30), work=Rounds(count=30, compute_us=10), workers_max=3)
    script = {0: decision(plan(0, run_at(0))), 2 * S: decision(plan(0, run_at(2 * S, (1, 0), (1, 2))))}
    run = run_live(given, tmp_path / "state", spec_of(Scripted(script, {})), slot_seconds=1.0, slots=Slots(1))
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "places", "why") == [("1@a", "moved"), ("1@b 2@a", "complete")]
    begun = (tmp_path / "state" / "jobs" / "0000-j0" / "begun").read_text().split()
    assert begun[1] == "0"
    assert min(int(word) for word in begun[3::2]) > 0  # the second attempt did not begin at the beginning


def test_a_job_whose_plan_pauses_stops_and_continues_later(tmp_path: Path) -> None:
    given = one(counting(10), work=Rounds(count=10, compute_us=10))
    script = {0: decision(plan(0, run_at(0))), S: decision(plan(0)), 2 * S: decision(plan(0, run_at(2 * S)))}
    run = run_live(given, tmp_path / "state", spec_of(Scripted(script, {})))
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
    run = run_live(given, tmp_path / "state", "apsp", slot_seconds=0.5)
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "places", "why") == [
        ("ps@a 1@a 1@b 1@c", "moved"), ("ps@b 1@a 1@b 1@c", "complete")
    ]  # fmt: skip
    assert min(r[0] for r in rows(run, "attempts", "predicted_s")) > 0
    assert api.check(given, run) == ()


# ---------------------------------------------------------------------- environment of a rank
def test_ranks_get_the_contract_and_nothing_else_of_the_loops_environment(
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
        where=two_sites(),
    )  # fmt: skip
    step = run_at(0, (1, 0), (2, 1), servers=(0, 1))
    run_live(given, tmp_path / "state", spec_of(Scripted({0: decision(plan(0, step))}, {})))
    home = tmp_path / "state" / "jobs" / "0000-j0"
    environments = [
        dict(line.split("=", 1) for line in (home / f"rank-{i}" / f"env-{i}").read_text().splitlines())
        for i in range(4)
    ]
    assert [t["TRADEWIND_ROLE"] for t in environments] == ["ps", "worker", "worker", "worker"]
    assert [t["TRADEWIND_SITE"] for t in environments] == ["a", "b", "b", "a"]
    assert [t["LOCAL_RANK"] for t in environments] == ["0", "0", "1", "1"]
    assert [t["TRADEWIND_DATA_SHARD"] for t in environments[1:]] == ["0/3", "1/3", "2/3"]
    one_of = environments[2]
    expected = {
        "RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "TRADEWIND_SITES": "a,b,b,a", "TRADEWIND_RING": "",
        "TRADEWIND_JOB": "j0", "TRADEWIND_SLOT": "0", "TRADEWIND_SEED": "42", "COLOUR": "blue",
        "TRADEWIND_INTERFACE": "lo", "TRADEWIND_STOP_AFTER_ITERATIONS": "7", "HOME": str(home / "rank-2"),
        "TRADEWIND_CHECKPOINT_DIR": str(home / "checkpoint"), "TRADEWIND_REPORT": str(home / "report/rank-2.jsonl"),
    }  # fmt: skip
    assert {name: one_of.get(name) for name in expected} == expected
    assert len({t["MASTER_PORT"] for t in environments}) == 1
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


def test_several_servers_are_the_first_ranks(tmp_path: Path) -> None:
    given = scenario(
        [
            job(
                0, work=Rounds(count=7, compute_us=10),
                command=("sh", "-c", "echo $TRADEWIND_ROLE $TRADEWIND_SERVERS $RANK"),
                workers_min=2, workers_max=2, servers=3, architecture="ps", server=((0, 500),),
            )
        ],
        where=two_sites(),
    )  # fmt: skip
    step = run_at(0, (1, 0), (1, 1), servers=(1, 2))
    run = run_live(given, tmp_path / "state", spec_of(Scripted({0: decision(plan(0, step))}, {})))
    assert rows(run, "attempts", "places") == [("ps@b ps@a ps@a 1@b 1@a",)]
    said = [log(tmp_path / "state", rank=rank).splitlines()[1] for rank in range(5)]
    assert said == ["ps 3 0", "ps 3 1", "ps 3 2", "worker 3 3", "worker 3 4"]


def test_a_ring_gets_its_peers_in_ring_order(tmp_path: Path) -> None:
    given = one(("sh", "-c", "echo $TRADEWIND_RING $TRADEWIND_ROLE"), workers_min=3, workers_max=3)
    script = {0: decision(plan(0, run_at(0, (1, 0), (1, 2))))}
    run_live(given, tmp_path / "state", spec_of(Scripted(script, {})))
    assert log(tmp_path / "state", rank=2).splitlines()[1] == "0@b,1@a,2@a worker"


def test_env_and_seed_need_a_command_and_cannot_override_the_contract() -> None:
    with pytest.raises(ScenarioError, match="no command"):
        job(0, seed=3)
    for name in ("RANK", "TRADEWIND_SITE", "A-B", ""):
        with pytest.raises(ScenarioError, match="Choose another name"):
            job(0, command=("x",), env=((name, "1"),))


def test_a_scenario_with_commands_is_simulated_as_if_it_had_none(tmp_path: Path) -> None:
    with_command, policy = broker()
    bare, _ = broker(command=())
    runs = [simulate(given, policies.find(policy), {}, seed=1) for given in (with_command, bare)]
    assert runs[0].tables == runs[1].tables
    with pytest.raises(InputError, match="has no command"):
        live(LiveRequest(scenario=bare, spec=policies.find(policy), state=tmp_path / "state"))
    assert not (tmp_path / "state").exists(), "nothing is written for a run that cannot start"


# ---------------------------------------------------------------------- limits of a rank
def test_limits_are_set_and_cores_are_not_dumped(tmp_path: Path) -> None:
    limits = Limits(open_files=77, file_bytes=512 * 1000, memory_bytes=4 << 30, cpu_seconds=9)
    run_live(
        one(("bash", "-c", "ulimit -n -f -v -t -c")),
        tmp_path / "state",
        options=ExecutionOptions(limits=limits, grace_s=0.5),
    )
    found = [line.split()[-1] for line in log(tmp_path / "state").splitlines()[1:-1]]
    assert sorted(found) == sorted(["77", "500", str(4 << 20), "9", "0"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start jobs as other users")
def test_a_job_cannot_read_the_checkpoints_of_another_when_each_has_its_own_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:  # other users may pass through what pytest made for this user alone
        if folder.is_relative_to(tempfile.gettempdir()) and folder != Path(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o011)
    write = ("sh", "-c", "echo mine > $TRADEWIND_CHECKPOINT_DIR/model; id -u; sleep 0.6")
    spy = "sleep 0.3; cd ../..; ls .; cat 0000-j0/checkpoint/model; cat ../store.db; ls ../control; echo over"
    given = scenario(
        [job(0, work=LONG, command=write), job(1, work=LONG, command=("sh", "-c", spy))], where=two_sites()
    )
    run = run_live(given, tmp_path / "state", options=ExecutionOptions(grace_s=0.5, first_uid=61_500))
    assert states(run) == ["finished", "finished"]
    assert log(tmp_path / "state", 0).splitlines()[1] == "61500"
    seen = log(tmp_path / "state", 1)
    assert "mine" not in seen
    assert seen.count("Permission denied") >= 3
    assert (tmp_path / "state/jobs/0000-j0/checkpoint/model").read_text() == "mine\n"
    assert (tmp_path / "state/jobs/0000-j0/checkpoint").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["the job's demand", "a limit for all"])
def test_a_rank_gets_no_more_cpu_than_its_limit(how: str, tmp_path: Path) -> None:
    where = setup(
        [node("a")], resources=("cpu" if how == "the job's demand" else "gpu",), slot_us=S, horizon_us=9 * S
    )
    spin = ("sh", "-c", "trap 'times; exit 0' TERM; while :; do :; done")
    given = scenario([job(0, work=LONG, worker=((0, 300),), command=spin)], where=where)
    limits = Limits() if how == "the job's demand" else Limits(cpu_milli=300)
    run_live(given, tmp_path / "state", options=ExecutionOptions(grace_s=0.5, limits=limits))
    minutes, _, seconds = log(tmp_path / "state").splitlines()[1].split()[0].rstrip("s").partition("m")
    used = 60 * int(minutes) + float(seconds)
    assert 0.1 < used < 0.3 * 9 * 0.25 * 1.3  # 0.3 CPUs for nine slots of a quarter of a second
