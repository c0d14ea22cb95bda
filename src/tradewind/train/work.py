"""Common to all ranks of a job: the model as one flat vector, its optimizer, and the loss of a part of a batch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tradewind.train import checkpoint, data, models
from tradewind.train.checkpoint import Checkpoint
from tradewind.train.contract import Rank
from tradewind.train.options import CLASSES_APART, SITE, TrainOptions
from tradewind.train.site_data import SiteData
from tradewind.train.stopping import StopSignal

EXTRAS = 3
"""Numbers appended to the gradient or the parameters: the loss, a status code, and the number of samples."""
CONTINUE, STOP, FINISH, WISH = 0.0, 1.0, 2.0, 3.0
"""Status codes; WISH: a server was asked to stop, so workers ask all servers to stop in their next message."""

EVALUATED = 64
"""Held-out samples that are evaluated at once."""


class Flat:
    """All parameters as one vector, so that they are sent without copying. values, gradient: (P + EXTRAS,)."""

    def __init__(self, model: nn.Module) -> None:
        self._shapes = [p.shape for p in model.parameters()]
        self.count = sum(p.numel() for p in model.parameters())
        self.values, self.gradient = torch.zeros(self.count + EXTRAS), torch.zeros(self.count + EXTRAS)
        for p, value, gradient in zip(
            model.parameters(), self.split(self.values), self.split(self.gradient), strict=True
        ):
            value.copy_(p.detach())
            p.data = value
            p.grad = gradient

    def split(self, vector: Tensor) -> list[Tensor]:
        """The parts of a vector that belong to each parameter."""
        sizes = [shape.numel() for shape in self._shapes]
        parts = torch.split(vector[: self.count], sizes)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def block(self, number: int, of: int) -> slice:
        """Block `number` of `of` blocks of equal size, which together are all parameters."""
        return slice(number * self.count // of, (number + 1) * self.count // of)


class Momentum:
    """Gradient descent with momentum: v = m v + g, p = p - r v.

    torch.optim.SGD does the same, but loads PyTorch's compiler, which adds two seconds to the start of every rank.
    """

    def __init__(self, flat: Flat, rate: float, momentum: float) -> None:
        self._flat, self.velocity = flat, torch.zeros(flat.count)
        self._rate, self._momentum = rate, momentum

    def step(self, block: slice | None = None) -> None:
        """Update the parameters, or a block of them, with their gradients."""
        part = slice(0, self._flat.count) if block is None else block
        v = self.velocity[part]
        v.mul_(self._momentum).add_(self._flat.gradient[part])
        self._flat.values[part].sub_(v, alpha=self._rate)

    def state(self) -> dict[str, Tensor]:
        """State for a checkpoint."""
        return {str(k): v for k, v in enumerate(self._flat.split(self.velocity))}

    def resume(self, state: dict[str, Tensor]) -> None:
        """Restore the state of a checkpoint."""
        for k, v in enumerate(self._flat.split(self.velocity)):
            v.copy_(state[str(k)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Model and optimizer of one rank. `about`: values in which interchangeable checkpoints agree."""

    model: nn.Module
    flat: Flat
    optimizer: Momentum
    about: dict[str, str | int]

    def snapshot(self, iteration: int) -> Checkpoint:
        """Checkpoint after so many iterations."""
        return Checkpoint(
            iteration=iteration,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state(),
            random=torch.get_rng_state(),
            about=self.about,
        )

    def resume(self, found: Checkpoint | None) -> int:
        """Restore a checkpoint, if any; return the number of iterations done."""
        if found is None:
            return 0
        self.model.load_state_dict(found.model)
        self.optimizer.resume(found.optimizer)
        torch.set_rng_state(found.random)
        return found.iteration


def new_training(options: TrainOptions, rank: Rank) -> Training:
    """Initial state, the same at every rank: the seed determines the parameters."""
    model = models.build(options, data.shape_of(options), rank.seed)
    flat = Flat(model)
    optimizer = Momentum(flat, options.rate, options.momentum)
    about: dict[str, str | int] = {
        "model": options.model,
        "bytes": models.size_of(model),
        "data": options.data,
        "samples": options.samples,
        "batch": options.batch,
        "seed": rank.seed,
        **({"arrange": options.arrange} if options.arrange == CLASSES_APART else {}),
        **({"pixels": options.pixels} if options.pixels else {}),
    }
    return Training(model=model, flat=flat, optimizer=optimizer, about=about)


def load_checkpoint(rank: Rank, training: Training) -> Checkpoint | None:
    """The job's checkpoint, if any."""
    return checkpoint.load(rank.folder, training.about)


class Samples(Protocol):
    """The data of a worker. batch: samples of an iteration over all workers, at most."""

    @property
    def batch(self) -> int: ...

    def take(self, iteration: int) -> tuple[Tensor, Tensor]:
        """Inputs and labels of an iteration (from 0)."""

    def settle(self, samples: int) -> list[str]:
        """Names of shards that are finished with the iteration, in which all workers together had so many samples."""


def samples_of(options: TrainOptions, rank: Rank, stop_signal: StopSignal) -> Samples:
    """The data of this rank."""
    if options.data == SITE:
        return SiteData(rank, options.batch, lambda: stop_signal.received)
    return data.shard(options, rank.shard, rank.seed)


def last_iteration(options: TrainOptions, rank: Rank) -> int:
    """Total number of iterations; the environment takes precedence over the options."""
    return rank.stop_after if rank.stop_after is not None else options.iterations


def partial_loss(model: nn.Module, part: Samples, iteration: int, pause: float) -> tuple[Tensor, int]:
    """This worker's part of the mean loss over the global batch, and its samples; those of all workers add up."""
    inputs, labels = part.take(iteration)
    if not len(labels):
        return torch.zeros((), requires_grad=True), 0
    if pause:
        time.sleep(pause * len(labels))
    return cross_entropy(model(inputs), labels, reduction="sum") / part.batch, len(labels)


class Evaluator:
    """Measures accuracy on held-out samples every K iterations, at the leader of each site."""

    def __init__(self, options: TrainOptions, rank: Rank, *, leads: bool) -> None:
        self._every = options.evaluate_every if leads else 0
        self._samples = data.held_out(options, rank) if self._every else None

    def measure(self, model: nn.Module, iteration: int) -> dict[str, float]:
        """`accuracy` on all held-out samples, `site_accuracy` on those like this site's; none if it is not the time."""
        if self._samples is None or iteration % self._every:
            return {}
        with torch.no_grad():
            found = torch.cat(
                [model(part).argmax(1) for part in torch.split(self._samples.inputs, EVALUATED)]
            )
        right = (found == self._samples.labels).float()
        here = right[self._samples.here]
        measured = {"accuracy": float(right.mean())}
        return measured | ({"site_accuracy": float(here.mean())} if len(here) else {})
