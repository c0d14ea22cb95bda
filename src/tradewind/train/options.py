"""Options of `python -m tradewind.train`: what is trained. Where and with whom comes from the environment."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.train.contract import ContractError

UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1_000_000, "gb": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """size in bytes; iterations in all, over restarts; pause: seconds slept per sample, standing in for computation."""

    model: str
    size: int
    mode: str
    data: str
    samples: int
    batch: int
    iterations: int
    checkpoint_every: int
    evaluate_every: int
    rate: float
    momentum: float
    pause: float
    timeout_s: float


def parse(arguments: Sequence[str]) -> Options:
    """Wrong options end with exit code 2 and a sentence, as argparse does it."""
    parser = argparse.ArgumentParser(
        prog="python -m tradewind.train",
        description="One rank of a training job; RANK, WORLD_SIZE and the TRADEWIND_ names in the environment say which "
        "(docs/jobs.md).",
    )
    add = parser.add_argument
    add("--model", choices=("mlp", "cnn"), default="mlp")
    add("--size", type=_bytes, default=400_000, help="size of the model, for example 400KB or 4MB")
    add(
        "--mode",
        choices=("ps", "ring", "ddp"),
        default="ps",
        help="parameter server (rank 0), ring all-reduce, or the same ring below DistributedDataParallel",
    )
    add("--data", choices=("synthetic", "shapes"), default="synthetic")
    add("--samples", type=_positive, default=8192, help="samples of the data set, over all workers")
    add("--batch", type=_positive, default=64, help="samples per iteration, over all workers")
    add("--iterations", type=_positive, default=200, help="iterations in all; also over restarts")
    add("--checkpoint-every", type=_positive, default=50, metavar="K", help="iterations between checkpoints")
    add(
        "--evaluate-every",
        type=_whole,
        default=0,
        metavar="K",
        help="iterations between accuracies; 0: never",
    )
    add("--rate", type=float, default=0.05, help="learning rate")
    add("--momentum", type=float, default=0.9)
    add("--sample-ms", type=float, default=0.0, help="sleep per sample, to stand in for computation")
    add("--timeout-s", type=float, default=30.0, help="how long to wait for a silent peer")
    found = parser.parse_args(arguments)
    for name, value, least in (("--rate", found.rate, 0.0), ("--sample-ms", found.sample_ms, 0.0)):
        if not least <= value < 1e6:
            raise ContractError(f"{name} is {value}; allowed is {least:g} or more")
    if not found.timeout_s > 0:
        raise ContractError(f"--timeout-s is {found.timeout_s}; it must be positive")
    return Options(
        model=found.model, size=found.size, mode=found.mode, data=found.data, samples=found.samples, batch=found.batch,
        iterations=found.iterations, checkpoint_every=found.checkpoint_every, evaluate_every=found.evaluate_every,
        rate=found.rate, momentum=found.momentum, pause=found.sample_ms / 1000, timeout_s=found.timeout_s,
    )  # fmt: skip


def _bytes(text: str) -> int:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].lower() not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write for example 400KB or 4MB")
    return round(float(match[1]) * UNITS[match[2].lower()])


def _positive(text: str) -> int:
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be 1 or more")
    return value


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number")
    return int(text)
