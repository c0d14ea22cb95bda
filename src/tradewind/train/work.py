"""What all ranks of a job have in common: the model on one flat vector, its optimizer, gradients of a share of a batch."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tradewind.train import checkpoint, data, models
from tradewind.train.checkpoint import Checkpoint
from tradewind.train.contract import Rank
from tradewind.train.options import Options

EXTRAS = 2
"""Numbers that travel behind the gradient or the parameters: the loss, and one of the next three words."""
GO_ON, STOP, FINISH = 0.0, 1.0, 2.0


class Flat:
    """All parameters as one vector: what is sent is sent without copying. values (P + EXTRAS,), gradient alike."""

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        count = sum(p.numel() for p in parameters)
        self.values, self.gradient = torch.zeros(count + EXTRAS), torch.zeros(count + EXTRAS)
        at = 0
        for p in parameters:
            mine = self.values[at : at + p.numel()].view_as(p)
            mine.copy_(p.detach())
            p.data = mine
            p.grad = self.gradient[at : at + p.numel()].view_as(p)
            at += p.numel()


class Momentum:
    """Gradient descent with momentum: v = m v + g, p = p - r v.

    torch.optim.SGD does the same, but it loads PyTorch's compiler, and every rank would take two more seconds to start.
    """

    def __init__(self, model: nn.Module, rate: float, momentum: float) -> None:
        self._parameters = list(model.parameters())
        self._speed = [torch.zeros_like(p) for p in self._parameters]
        self._rate, self._momentum = rate, momentum

    def step(self) -> None:
        with torch.no_grad():
            for p, v in zip(self._parameters, self._speed, strict=True):
                v.mul_(self._momentum)
                if p.grad is not None:
                    v.add_(p.grad)
                p.sub_(v, alpha=self._rate)

    def clear(self) -> None:
        """Forget the gradients."""
        for p in self._parameters:
            p.grad = None

    def state(self) -> dict[str, Tensor]:
        return {str(k): v for k, v in enumerate(self._speed)}

    def resume(self, state: dict[str, Tensor]) -> None:
        for k, v in enumerate(self._speed):
            v.copy_(state[str(k)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainee:
    """Model and optimizer of one rank; about: what makes two checkpoints interchangeable."""

    model: nn.Module
    optimizer: Momentum
    about: dict[str, str | int]

    def snapshot(self, iteration: int) -> Checkpoint:
        return Checkpoint(
            iteration=iteration,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state(),
            random=torch.get_rng_state(),
            about=self.about,
        )

    def resume(self, found: Checkpoint | None) -> int:
        """Take over a checkpoint; the number of iterations done."""
        if found is None:
            return 0
        self.model.load_state_dict(found.model)
        self.optimizer.resume(found.optimizer)
        torch.set_rng_state(found.random)
        return found.iteration


def trainee(options: Options, rank: Rank) -> Trainee:
    """The same at every rank: parameters follow from the seed."""
    model = models.build(options.model, options.size, rank.seed)
    optimizer = Momentum(model, options.rate, options.momentum)
    about: dict[str, str | int] = {
        "model": options.model,
        "bytes": models.size_of(model),
        "data": options.data,
        "samples": options.samples,
        "batch": options.batch,
        "seed": rank.seed,
    }
    return Trainee(model=model, optimizer=optimizer, about=about)


def found_checkpoint(rank: Rank, mine: Trainee) -> Checkpoint | None:
    return checkpoint.load(rank.folder, mine.about)


def shard(options: Options, rank: Rank) -> data.Shard:
    return data.shard(options.data, options.samples, options.batch, rank.shard, rank.seed)


def last_iteration(options: Options, rank: Rank) -> int:
    return rank.stop_after if rank.stop_after is not None else options.iterations


def loss_of_share(model: nn.Module, mine: data.Shard, iteration: int, pause: float) -> Tensor:
    """This worker's part of the mean loss over the whole batch: parts of all workers add up to it, and so do gradients."""
    inputs, labels = mine.take(iteration)
    if pause:
        time.sleep(pause * len(labels))
    return cross_entropy(model(inputs), labels, reduction="sum") / mine.batch


class Judge:
    """Accuracy on held-out samples, every K iterations."""

    def __init__(self, options: Options, seed: int) -> None:
        self._every = options.evaluate_every
        self._samples = data.held_out(options.data, seed) if self._every else None

    def accuracy(self, model: nn.Module, iteration: int) -> float | None:
        if self._samples is None or iteration % self._every:
            return None
        inputs, labels = self._samples
        with torch.no_grad():
            return float((model(inputs).argmax(1) == labels).float().mean())
