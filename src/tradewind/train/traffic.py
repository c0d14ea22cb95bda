"""One site of an exchange over gloo, with the trainer's own functions (see worlds/testbed/traffic.py).

All sites are on one machine and read the same clock: they begin a round at an agreed moment, and say when they ended it.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tradewind.train.exchange import (
    Ring,
    Site,
    add_from,
    join,
    leave,
    receive,
    receive_all,
    ring_numbers,
    send,
)

torch.set_num_threads(1)


def run(argument: dict[str, Any]) -> int:
    """Entry point of a child process; the first site writes the times of the rounds."""
    count, me = len(argument["addresses"]), int(argument["number"])
    ring = argument["kind"] == "ring"
    number = ring_numbers(range(count))[me] if ring else me
    store = join(
        number=number,
        world=count,
        master=(argument["addresses"][0], argument["port"]),
        interface=argument["interface"],
        host=me == 0,
        timeout_s=argument["timeout_s"],
    )
    values = torch.ones(int(argument["model_bytes"]) // 4)
    rounds, ahead_s = int(argument["rounds"]) + 1, float(argument["ahead_s"])
    if ring:
        seconds = _ring(number, count, values, rounds, ahead_s)
    else:
        seconds = _serve(count, values, rounds, ahead_s) if me == 0 else _work(values, rounds)
    if me == 0:
        Path(argument["result"]).write_text(json.dumps(seconds[1:]), encoding="utf-8")
    leave(store, count, host=me == 0)
    return 0


def _moment(seconds: float = 0.0) -> torch.Tensor:
    return torch.tensor([seconds], dtype=torch.float64)


def _wait_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _latest(seconds: float) -> float:
    """The latest moment of all sites."""
    found = _moment(seconds)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return float(found.item())


def _ring(number: int, count: int, values: torch.Tensor, rounds: int, ahead_s: float) -> list[float]:
    ring = Ring(Site(number, [number]), range(count), count)
    seconds = []
    for _ in range(rounds):
        begin = _latest(time.monotonic() + ahead_s)
        _wait_until(begin)
        ring.sum(values)
        seconds.append(_latest(time.monotonic()) - begin)
        values.fill_(1.0)
    return seconds


def _serve(count: int, values: torch.Tensor, rounds: int, ahead_s: float) -> list[float]:
    """Time each round from the agreed moment until the last site has all parameters."""
    workers = list(range(1, count))
    ends = {worker: _moment() for worker in workers}
    seconds = []
    for _ in range(rounds):
        begin = time.monotonic() + ahead_s
        send(_moment(begin), workers)
        add_from(workers, values)
        send(values, workers)
        receive_all([(end, worker) for worker, end in ends.items()])
        seconds.append(max(float(end.item()) for end in ends.values()) - begin)
    return seconds


def _work(values: torch.Tensor, rounds: int) -> list[float]:
    begin = _moment()
    for _ in range(rounds):
        receive(begin, 0)
        _wait_until(float(begin.item()))
        send(values, [0])
        receive(values, 0)
        send(_moment(time.monotonic()), [0])
    return []
