"""Tasks in processes: all results, in any order; what is lost is tried again; errors arrive as they were raised."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tasks import sample_tasks
from tradewind.model.errors import InputError, LookupFailed, Refused, TradewindError
from tradewind.model.result import Violation
from tradewind.tasks.pool import TRIES, PoolTask, Where, run_tasks


def task(call: Callable[..., Any], *args: Any, name: str = "") -> PoolTask:
    return PoolTask(name=name or repr(args), group="", call=call, args=args)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_arrive_with_their_message_and_the_others_go_on(jobs: int) -> None:
    tasks = [task(sample_tasks.refuse, 3), task(sample_tasks.crash), task(sample_tasks.square, 3)]
    found = {done.task.call: done for done in run_tasks(tasks, Where(jobs))}
    assert found[sample_tasks.square].value == 9
    refused, crashed = found[sample_tasks.refuse], found[sample_tasks.crash]
    assert refused.error == "number: found 3; 2 is allowed"
    assert isinstance(refused.cause, InputError)
    assert refused.cause.where == "number"
    assert "ZeroDivisionError in crash" in crashed.error
    assert "three is not two" in crashed.error
    assert isinstance(crashed.cause, ZeroDivisionError)


def test_a_task_whose_worker_is_killed_is_tried_again(tmp_path: Path) -> None:
    tasks = [task(sample_tasks.own_pid, tmp_path, number) for number in range(2)]

    def kill_one() -> None:
        until(lambda: len(list(tmp_path.glob("*-*"))) == 2)
        os.kill(int(next(tmp_path.glob("0-*")).name[2:]), signal.SIGKILL)
        until(lambda: len(list(tmp_path.glob("0-*"))) == 2)
        (tmp_path / "gate").touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = [done.value for done in run_tasks(tasks, Where(2))]
    killer.join()
    assert len(set(found)) == 2
    assert len(list(tmp_path.glob("1-*"))) == 1


def test_a_task_that_ends_every_process_is_given_up(tmp_path: Path) -> None:
    tasks = [task(sample_tasks.die, tmp_path), *(task(sample_tasks.square, n) for n in range(20))]
    found = {done.task.name: done for done in run_tasks(tasks, Where(2))}
    assert len(list(tmp_path.iterdir())) == TRIES
    assert f"{TRIES} workers were lost" in found[tasks[0].name].error
    assert sum(done.value for done in found.values() if not done.error) == sum(n * n for n in range(20))


def test_what_cannot_be_sent_is_said_and_the_others_go_on() -> None:
    tasks = [task(lambda: 1), task(sample_tasks.square, 2), task(sample_tasks.square, 3)]
    found = [(done.value, done.error[:30]) for done in run_tasks(tasks, Where(2))]
    assert sorted(found, key=str) == [(4, ""), (9, ""), (None, "the task cannot be sent to ano")]


def test_only_ray_is_a_cluster_for_tasks() -> None:
    with pytest.raises(InputError, match="ray://HOST:PORT"):
        list(run_tasks([task(sample_tasks.square, 2)], Where(on="slurm")))


@pytest.mark.parametrize(
    "error",
    [
        TradewindError("a"),
        InputError("b", where="here"),
        LookupFailed("policy", "fifp", ["fifo"]),
        Refused((Violation("rule", detail="d"),)),
    ],
)
def test_errors_survive_the_way_to_another_process(error: TradewindError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
