"""Options of `python -m tradewind.train`: what is trained. The environment says where and with which ranks."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.train.contract import ContractError

TOO_LARGE = 1e6
"""Rates and sleep times must be below this."""
UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1_000_000, "gb": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """What is trained.

    size        bytes of the model
    iterations  in total, over restarts
    staleness   iterations that a site may be ahead of another (ps-async)
    pause       seconds to sleep per sample, in place of computation
    """

    model: str
    size: int
    mode: str
    staleness: int
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


def parse(arguments: Sequence[str]) -> TrainOptions:
    """Parse the command line; on an invalid option argparse exits with code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m tradewind.train",
        description="One rank of a training job. RANK, WORLD_SIZE and TRADEWIND_ variables in the environment say which "
        "(docs/jobs.md).",
    )
    add = parser.add_argument
    add("--model", choices=("mlp", "cnn"), default="mlp")
    add("--size", type=_bytes, default=400_000, help="size of the model, for example 400KB or 4MB")
    add(
        "--mode",
        choices=("ps", "ps-async", "ring", "ddp"),
        default="ps",
        help="parameter servers (the first ranks), the same without waiting for all sites, ring all-reduce, or the same "
        "ring in DistributedDataParallel",
    )
    add(
        "--staleness",
        type=_whole,
        default=2,
        metavar="N",
        help="iterations that a site may be ahead of another in mode ps-async",
    )
    add("--data", choices=("synthetic", "shapes"), default="synthetic")
    add("--samples", type=_positive, default=8192, help="samples in the dataset, over all workers")
    add("--batch", type=_positive, default=64, help="samples per iteration, over all workers")
    add("--iterations", type=_positive, default=200, help="total iterations, over restarts")
    add("--checkpoint-every", type=_positive, default=50, metavar="K", help="iterations between checkpoints")
    add(
        "--evaluate-every",
        type=_whole,
        default=0,
        metavar="K",
        help="iterations between measurements of accuracy; 0: never",
    )
    add("--rate", type=float, default=0.05, help="learning rate")
    add("--momentum", type=float, default=0.9)
    add("--sample-ms", type=float, default=0.0, help="sleep per sample, in place of computation")
    add("--timeout-s", type=float, default=30.0, help="time limit for a silent peer")
    found = parser.parse_args(arguments)
    for name, value in (("--rate", found.rate), ("--sample-ms", found.sample_ms)):
        if not 0.0 <= value < TOO_LARGE:
            raise ContractError(f"{name} is {value}; it must be 0 or more, and below {TOO_LARGE:.0f}")
    if not found.timeout_s > 0:
        raise ContractError(f"--timeout-s is {found.timeout_s}; it must be positive")
    return TrainOptions(
        model=found.model, size=found.size, mode=found.mode, staleness=found.staleness, data=found.data,
        samples=found.samples, batch=found.batch, iterations=found.iterations,
        checkpoint_every=found.checkpoint_every, evaluate_every=found.evaluate_every,
        rate=found.rate, momentum=found.momentum, pause=found.sample_ms / 1000, timeout_s=found.timeout_s,
    )  # fmt: skip


def _bytes(text: str) -> int:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].lower() not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write for example 400KB or 4MB")
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
