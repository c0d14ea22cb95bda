"""Datasets, generated or real (pictures.py), and the part of them that each worker uses.

The samples are divided into as many blocks as a global batch has samples; each batch takes one sample from every block.
A worker owns a contiguous range of blocks, so it reads only its own samples, and since ranks are numbered by site, each
site holds a contiguous part of the data. The batch of an iteration does not depend on the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tradewind.train import pictures
from tradewind.train.contract import ContractError, Rank
from tradewind.train.options import CLASSES_APART, GENERATED, SITE, TrainOptions
from tradewind.train.pictures import Part, Pictures

SIDE = 12
CLASSES = 10
HELD_OUT = 512
"""Number of samples for measuring accuracy, at most; they are never trained on."""
HELD_OUT_SHARE = 6
"""One in so many samples is held out where a dataset has no part for this."""
MEAN, SPREAD = 0.4, 0.25
"""Pixels from 0 to 1 are shifted and scaled by these."""


class Shape(NamedTuple):
    """Shape of the samples. side: pixels."""

    channels: int
    side: int
    classes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A worker's samples: inputs (blocks, block, channels, side, side), bytes or floats, labels (blocks, block).

    batch  global batch size
    """

    inputs: Tensor
    labels: Tensor
    batch: int
    seed: int

    def take(self, iteration: int) -> tuple[Tensor, Tensor]:
        """This worker's samples of an iteration (from 0)."""
        block = self.labels.shape[1]
        epoch, step = divmod(iteration, block)
        order = torch.randperm(block, generator=_stream(self.seed, 3, epoch))
        at = int(order[step])
        return normalised(self.inputs[:, at]), self.labels[:, at]

    def settle(self, samples: int) -> list[str]:
        """Nothing of such data is ever finished."""
        del samples
        return []


def normalised(pixels: Tensor) -> Tensor:
    """Bytes as numbers around 0; floats as they are."""
    return (pixels.float() / 255 - MEAN) / SPREAD if pixels.dtype == torch.uint8 else pixels


def _stream(seed: int, use: int, number: int = 0) -> torch.Generator:
    """An independent random stream for each use of a seed."""
    return torch.Generator().manual_seed(((seed * 64 + use) * 1_000_003 + number) % (1 << 62))


def _synthetic(count: int, seed: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Ten overlapping clusters of points."""
    centres = torch.randn(CLASSES, SIDE * SIDE, generator=_stream(seed, 1))
    labels = torch.randint(CLASSES, (count,), generator=rng)
    points = 0.22 * centres[labels] + torch.randn(count, SIDE * SIDE, generator=rng)
    return points.view(-1, 1, SIDE, SIDE), labels


def _shapes(count: int, seed: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Ten kinds of strokes and shapes at random positions in a noisy picture."""
    del seed
    labels = torch.randint(CLASSES, (count,), generator=rng)
    shift = torch.randint(-2, 3, (count, 2), generator=rng)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    dy = y.view(1, SIDE, SIDE) - SIDE // 2 - shift[:, 0].view(-1, 1, 1)
    dx = x.view(1, SIDE, SIDE) - SIDE // 2 - shift[:, 1].view(-1, 1, 1)
    near = (dx.abs() <= 3) & (dy.abs() <= 3)
    ring = torch.maximum(dx.abs(), dy.abs())
    round_ = dx * dx + dy * dy
    kinds = torch.stack(
        [
            dy == 0, dx == 0, dx == dy, dx == -dy, (dx == 0) | (dy == 0), (dx == dy) | (dx == -dy), ring == 3,
            ring == 1, (round_ >= 5) & (round_ <= 10), dy.abs() == 2,
        ],
        dim=1,
    )  # fmt: skip
    drawn = (kinds[torch.arange(count), labels] & near).float()
    noise = torch.randn(count, SIDE, SIDE, generator=rng)
    return (drawn + 0.3 * noise).unsqueeze(1), labels


MAKERS = {"synthetic": _synthetic, "shapes": _shapes}


def shape_of(options: TrainOptions) -> Shape:
    """Shape of the samples of a dataset."""
    if options.data in (*GENERATED, SITE):
        return Shape(1, SIDE, CLASSES)
    found = _pictures(options)
    return Shape(found.channels, found.side, found.classes)


def _pictures(options: TrainOptions) -> Pictures:
    side = options.pixels or pictures.FILES_SIDE
    folder = Path(options.data_dir)
    match options.data:
        case "digits":
            return pictures.digits()
        case "cifar10":
            return pictures.cifar10(folder)
        case "tiny-imagenet":
            return pictures.tiny_imagenet(folder, side)
        case _:
            return pictures.image_folder(folder, side)


def _parts(options: TrainOptions, seed: int) -> tuple[Part, Part]:
    """Real samples to train on and held-out ones, both in a random order that the seed determines."""
    found = _pictures(options)
    rng = _stream(seed, 4)
    order = torch.randperm(len(found.training.labels), generator=rng)
    if found.held_out is None:
        kept = len(order) - max(1, len(order) // HELD_OUT_SHARE)
        return found.training.chosen(order[:kept]), found.training.chosen(order[kept:][:HELD_OUT])
    others = torch.randperm(len(found.held_out.labels), generator=rng)[:HELD_OUT]
    return found.training.chosen(order), found.held_out.chosen(others)


def _generated(options: TrainOptions, count: int, seed: int, use: int) -> Part:
    inputs, labels = MAKERS[options.data](count, seed, _stream(seed, use))
    return Part(labels=labels, read=lambda numbers: inputs[numbers])


def _arranged(part: Part, options: TrainOptions) -> Part:
    return part.chosen(torch.argsort(part.labels, stable=True)) if options.arrange == CLASSES_APART else part


def shard(options: TrainOptions, worker: tuple[int, int], seed: int) -> Shard:
    """The samples of worker i of n, in whole blocks."""
    batch, samples, (number, workers) = options.batch, options.samples, worker
    if batch < workers:
        raise ContractError(
            f"--batch is {batch}, but there are {workers} workers; each needs at least one sample of a batch"
        )
    if options.data in GENERATED:
        part = _generated(options, samples // batch * batch, seed, 0)
    else:
        part, _ = _parts(options, seed)
        if samples > len(part.labels):
            raise ContractError(
                f"--samples is {samples}, but --data {options.data} has {len(part.labels)} to train on; without "
                "--samples all are used"
            )
        samples = samples or len(part.labels)
    if samples < batch:
        raise ContractError(f"--samples is {samples}; it must be at least --batch, which is {batch}")
    block = samples // batch
    part = _arranged(part.chosen(torch.arange(block * batch)), options)
    first, last = number * batch // workers, (number + 1) * batch // workers
    mine = torch.arange(first * block, last * block)
    inputs = part.read(mine)
    return Shard(
        inputs=inputs.view(last - first, block, *inputs.shape[1:]),
        labels=part.labels[mine].view(last - first, block),
        batch=batch,
        seed=seed,
    )


class HeldOut(NamedTuple):
    """Samples that no worker trains on. here: whether each is like those of this rank's site."""

    inputs: Tensor
    labels: Tensor
    here: Tensor


def held_out(options: TrainOptions, rank: Rank) -> HeldOut:
    """Held-out samples, arranged and divided among the sites as the samples that are trained on."""
    if options.data in GENERATED:
        part = _generated(options, HELD_OUT, rank.seed, 2)
    else:
        _, part = _parts(options, rank.seed)
    part, count = _arranged(part, options), len(part.labels)
    here = torch.zeros(count, dtype=torch.bool)
    for number in range(rank.workers):
        if rank.sites[rank.servers + number] == rank.site:
            first, last = (k * options.batch // rank.workers for k in (number, number + 1))
            here[first * count // options.batch : last * count // options.batch] = True
    return HeldOut(normalised(part.read(torch.arange(count))), part.labels, here)
