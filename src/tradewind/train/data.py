"""Generated datasets, and the part of them that each worker uses.

The samples are divided into as many blocks as a global batch has samples; each batch takes one sample from every block.
A worker owns a contiguous range of blocks, so it reads only its own samples, and since ranks are numbered by site, each
site holds a contiguous part of the data. The batch of an iteration does not depend on the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tradewind.train.contract import ContractError

SIDE = 12
CLASSES = 10
HELD_OUT = 512
"""Number of samples for measuring accuracy; they are never trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A worker's samples: inputs (blocks, block, 1, SIDE, SIDE), labels (blocks, block); batch: global batch size."""

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
        return self.inputs[:, at], self.labels[:, at]


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


def shard(kind: str, samples: int, batch: int, part: tuple[int, int], seed: int) -> Shard:
    """Part i of n of the data, in whole blocks."""
    number, workers = part
    if batch < workers:
        raise ContractError(
            f"--batch is {batch}, but there are {workers} workers; each needs at least one sample of a batch"
        )
    if samples < batch:
        raise ContractError(f"--samples is {samples}; it must be at least --batch, which is {batch}")
    block = samples // batch
    first, last = number * batch // workers, (number + 1) * batch // workers
    inputs, labels = MAKERS[kind](block * batch, seed, _stream(seed, 0))
    return Shard(
        inputs=inputs.view(batch, block, 1, SIDE, SIDE)[first:last].clone(),
        labels=labels.view(batch, block)[first:last].clone(),
        batch=batch,
        seed=seed,
    )


def held_out(kind: str, seed: int) -> tuple[Tensor, Tensor]:
    """Samples that no worker trains on."""
    return MAKERS[kind](HELD_OUT, seed, _stream(seed, 2))
