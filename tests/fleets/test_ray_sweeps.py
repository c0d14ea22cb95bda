"""Sweeps on a real Ray cluster: the same results as here, whatever is lost; nothing is left when they are stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fleets import sweep
from tests.fleets.ray_cluster import RayCluster, missing
from tests.tasks import sample_tasks
from tests.tasks.test_pool import task, until
from tradewind.model.errors import TradewindError
from tradewind.tasks.pool import TRIES, TaskResult, Where, spread
from tradewind.tasks.ray import RayWorkers

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
ROOT = Path(__file__).parents[2]
ON = f"ray://{RayCluster.address}"


def start(cluster: RayCluster, folder: Path, *argv: str) -> subprocess.Popen[str]:
    """Start a Python program where the cluster can be reached."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    return subprocess.Popen(
        [*cluster.command, sys.executable, *argv], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def workers(cluster: RayCluster, count: int) -> RayWorkers:
    return RayWorkers(cluster.address, count, count, cluster.command)


def test_results_are_those_of_this_process_byte_for_byte(ray_cluster: RayCluster, tmp_path: Path) -> None:
    far = start(ray_cluster, tmp_path, "-m", "tests.fleets.sweep", str(tmp_path / "far"), "2", ON)
    sweep.main(tmp_path / "here", Where())
    sweep.main(tmp_path / "near", Where(jobs=2))
    assert far.wait(timeout=200) == 0, far.communicate()[1]
    files = [each.name for each in (tmp_path / "here").iterdir() if ".timings" not in each.suffixes]
    assert len(files) == 6
    for name in files:
        here = (tmp_path / "here" / name).read_bytes()
        assert (tmp_path / "near" / name).read_bytes() == here
        assert (tmp_path / "far" / name).read_bytes() == here


def meanwhile(act: Callable[[], None], results: Callable[[], list[TaskResult]]) -> list[TaskResult]:
    beside = threading.Thread(target=act)
    beside.start()
    try:
        return results()
    finally:
        beside.join()


def test_tasks_of_lost_workers_are_tried_again_and_errors_arrive(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    tasks = [task(sample_tasks.own_pid, tmp_path, number) for number in range(2)]
    tasks += [task(sample_tasks.refuse, 7), task(sample_tasks.crash)]

    def pid(number: int) -> int:
        until(lambda: bool(list(tmp_path.glob(f"{number}-*"))))
        return int(next(tmp_path.glob(f"{number}-*")).name[2:])

    def act() -> None:
        os.kill(pid(0), signal.SIGKILL)
        until(lambda: len(list(tmp_path.glob("0-*"))) == 2)
        on = next(name for name in ray_cluster.names if ray_cluster.has(name, pid(1)))
        ray_cluster.signal_agent(on, signal.SIGKILL)
        until(lambda: len(list(tmp_path.glob("1-*"))) == 2)
        ray_cluster.start_node(on)
        (tmp_path / "gate").touch()

    found = meanwhile(act, lambda: list(spread(tasks, workers(ray_cluster, 2))))
    by_name = {done.task.name: done for done in found}
    assert len(found) == len(by_name) == 4
    assert all(by_name[each.name].value > 0 for each in tasks[:2])
    assert by_name[tasks[2].name].error == "number: found 7; 2 is allowed"
    assert "ZeroDivisionError in crash" in by_name[tasks[3].name].error


def test_a_task_that_ends_every_worker_is_given_up(ray_cluster: RayCluster, tmp_path: Path) -> None:
    tasks = [task(sample_tasks.die, tmp_path), task(sample_tasks.square, 4)]
    found = {done.task.call: done for done in spread(tasks, workers(ray_cluster, 2))}
    assert f"{TRIES} workers were lost" in found[sample_tasks.die].error
    assert found[sample_tasks.square].value == 16


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_stopped_reproduction_leaves_nothing_and_goes_on(
    ray_cluster: RayCluster, tmp_path: Path, how: int, code: int
) -> None:
    from tests.lab.sample_study import GATE, PIDS

    def begin(where: str) -> subprocess.Popen[str]:
        lines = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)",
            "from pathlib import Path; from tradewind.registry import studies",
            "from tradewind.cli.guard import guarded; from tradewind.lab.reproduce import reproduce",
            "from tradewind.lab.study import Effort; from tradewind.tasks.pool import Where",
            "studies.entries['pieces'] = 'tests.lab.sample_study:PIECES'",
            "effort = Effort(quick=True, seeds=3)",
            f"sys.exit(guarded(lambda: reproduce(['pieces'], Path('out'), effort=effort, where={where})))",
        )
        return start(ray_cluster, tmp_path, "-c", "\n".join(lines))

    def pids() -> list[int]:
        path = tmp_path / PIDS
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def kept() -> int:
        return len(list((tmp_path / "out" / "kept").glob("pieces-*.json")))

    running = begin(f"Where(2, {ON!r})")
    until(lambda: running.poll() is not None or (kept() == 2 and len(pids()) == 4))
    running.send_signal(how)
    assert running.wait(timeout=200) == code, running.communicate()[1]
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids()))
    (tmp_path / GATE).touch()
    again = begin("Where()")
    assert again.wait(timeout=200) == 0, again.communicate()[1]
    assert sorted((tmp_path / "computed.txt").read_text()) == ["0", "1", "2", "3"], (
        "what the cluster computed is not computed again"
    )


def test_a_cluster_that_is_not_there_is_said(ray_cluster: RayCluster, tmp_path: Path) -> None:
    argv = (
        "-m",
        "tradewind.cli.main",
        "compare",
        "cluster",
        "--policies",
        "fifo,las",
        "--given",
        "jobs=5",
        "--json",
    )
    wrong = start(ray_cluster, tmp_path, *argv, "--on", "ray://127.0.0.1:1")
    assert wrong.wait(timeout=120) == 1
    assert "ray://127.0.0.1:1 cannot be used" in wrong.communicate()[1]
    right = start(ray_cluster, tmp_path, *argv, "--on", ON, "--jobs", "1")
    out, error = right.communicate(timeout=200)
    assert right.returncode == 0, error
    assert [each["policy"] for each in json.loads(out)["runs"]] == ["fifo", "las"]


def test_workers_with_other_code_are_refused(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.tasks.ray.code_digest", lambda: "other")
    with pytest.raises(TradewindError, match="has other code than this one"):
        list(spread([task(sample_tasks.square, 4)], workers(ray_cluster, 1)))
