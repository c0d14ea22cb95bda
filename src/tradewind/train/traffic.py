"""One site of an exchange over gloo, with the trainer's own functions (see worlds/testbed/traffic.py)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tradewind.train.exchange import Ring, Site, add_from, join, leave, receive, ring_numbers, send

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
    rounds = int(argument["rounds"]) + 1
    if ring:
        seconds = _ring(number, count, values, rounds)
    else:
        seconds = _serve(count, values, rounds) if me == 0 else _work(values, rounds)
    if me == 0:
        Path(argument["result"]).write_text(json.dumps(seconds[1:]), encoding="utf-8")
    leave(store, count, host=me == 0)
    return 0


def _ring(number: int, count: int, values: torch.Tensor, rounds: int) -> list[float]:
    ring = Ring(Site(number, [number]), range(count), count)
    seconds = []
    for _ in range(rounds):
        dist.barrier()
        began = time.perf_counter()
        ring.sum(values)
        dist.barrier()
        seconds.append(time.perf_counter() - began)
        values.fill_(1.0)
    return seconds


def _serve(count: int, values: torch.Tensor, rounds: int) -> list[float]:
    """Time each round from the start signal until the last site has all parameters."""
    workers, signal = list(range(1, count)), torch.zeros(1)
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        send(signal, workers)
        add_from(workers, values)
        send(values, workers)
        add_from(workers, signal)
        seconds.append(time.perf_counter() - began)
    return seconds


def _work(values: torch.Tensor, rounds: int) -> list[float]:
    signal = torch.zeros(1)
    for _ in range(rounds):
        receive(signal, 0)
        send(values, [0])
        receive(values, 0)
        send(signal, [0])
    return []
