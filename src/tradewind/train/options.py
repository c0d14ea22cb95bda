"""Options of `python -m tradewind.train`: what is trained. The environment says where and with which ranks."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.train.contract import ContractError

TOO_LARGE = 1e6
"""Rates and sleep times must be below this."""
MAX_SCALE, MAX_PIXELS = 4.0, 1024
SITE, SITE_MODES = "site", ("ps", "ring")
"""Data that is brought to a rank's site, and the modes that can train on it."""
GENERATED, FOLDERS = ("synthetic", "shapes"), ("cifar10", "tiny-imagenet", "folder")
"""Data that is generated, and data that is in the directory --data-dir."""
SIZED, NETWORKS = ("mlp", "cnn"), ("alexnet", "vgg11", "vgg16", "resnet18", "resnet50")
"""Models whose width follows from --size, and published ones that --scale makes smaller or larger."""
MIXED, CLASSES_APART = "mixed", "classes"
"""How samples are divided among workers: at random, or sorted by class, so that sites have different classes."""
DEFAULT_SIZE, DEFAULT_SAMPLES = 400_000, 8192
UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1_000_000, "gb": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """What is trained.

    size        bytes of the model (of those in SIZED)
    scale       factor on all widths (of models in NETWORKS)
    pixels      side of the pictures that the model gets; 0: as they are
    data_dir    directory of the data (of those in FOLDERS)
    samples     0: all that there are
    iterations  in total, over restarts
    staleness   iterations that a site may be ahead of another (ps-async)
    pause       seconds to sleep per sample, in place of computation
    """

    model: str
    size: int
    scale: float
    pixels: int
    mode: str
    staleness: int
    data: str
    data_dir: str
    arrange: str
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
    add("--model", choices=(*SIZED, *NETWORKS), default="mlp")
    add("--size", type=_bytes, help="size of mlp or cnn, for example 400KB (the default) or 4MB")
    add("--scale", type=float, help="factor on all widths of the other models; 1, the default: as published")
    add("--pixels", type=_positive, default=0, metavar="N", help="resize pictures to N x N pixels")
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
    add(
        "--data",
        choices=(*GENERATED, "digits", *FOLDERS, SITE),
        default="synthetic",
        help=f"generated here, the digits of scikit-learn, pictures in --data-dir, or ({SITE}) what Tradewind brings to "
        "this rank's site",
    )
    add("--data-dir", default="", metavar="DIR", help=f"directory of the data {', '.join(FOLDERS)}")
    add(
        "--arrange",
        choices=(MIXED, CLASSES_APART),
        default=MIXED,
        help="divide samples among workers at random, or sorted by class, so that sites have different classes",
    )
    add(
        "--samples",
        type=_positive,
        help=f"samples in the dataset, over all workers; by default {DEFAULT_SAMPLES} if generated, else all",
    )
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
    if found.data == SITE and (found.mode not in SITE_MODES or found.evaluate_every):
        raise ContractError(
            f"--data {SITE} is for --mode {' and '.join(SITE_MODES)}, without --evaluate-every"
        )
    _check_model_and_data(found)
    if not found.timeout_s > 0:
        raise ContractError(f"--timeout-s is {found.timeout_s}; it must be positive")
    return TrainOptions(
        model=found.model, size=DEFAULT_SIZE if found.size is None else found.size,
        scale=1.0 if found.scale is None else found.scale,
        pixels=found.pixels, mode=found.mode, staleness=found.staleness,
        data=found.data, data_dir=found.data_dir, arrange=found.arrange,
        samples=found.samples or (DEFAULT_SAMPLES if found.data in (*GENERATED, SITE) else 0),
        batch=found.batch, iterations=found.iterations,
        checkpoint_every=found.checkpoint_every, evaluate_every=found.evaluate_every,
        rate=found.rate, momentum=found.momentum, pause=found.sample_ms / 1000, timeout_s=found.timeout_s,
    )  # fmt: skip


def _check_model_and_data(found: argparse.Namespace) -> None:
    if found.model in NETWORKS and found.size is not None:
        raise ContractError(f"--size is for {' and '.join(SIZED)}; --model {found.model} is sized by --scale")
    if found.model in SIZED and found.scale is not None:
        raise ContractError(f"--scale is for {', '.join(NETWORKS)}; --model {found.model} is sized by --size")
    if found.scale is not None and not 0.0 < found.scale <= MAX_SCALE:
        raise ContractError(f"--scale is {found.scale}; it must be above 0 and at most {MAX_SCALE:g}")
    if found.pixels > MAX_PIXELS:
        raise ContractError(f"--pixels is {found.pixels}; it must be at most {MAX_PIXELS}")
    if (found.data in FOLDERS) != bool(found.data_dir):
        raise ContractError(
            f"--data {found.data} needs --data-dir, the directory of the data"
            if found.data in FOLDERS
            else f"--data-dir is for --data {', '.join(FOLDERS)}"
        )
    if found.data == SITE and found.arrange != MIXED:
        raise ContractError(f"--arrange is not for --data {SITE}, which is where the plan puts it")


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
