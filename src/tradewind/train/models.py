"""Models of a chosen size: a perceptron, a small convolutional network, and published networks (networks.py).

None has batch normalisation or dropout: the contribution of a sample must not depend on a worker's other samples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tradewind.train.contract import ContractError
from tradewind.train.data import Shape
from tradewind.train.networks import NETWORKS, initialise
from tradewind.train.options import TrainOptions

MAX_BYTES = 2_000_000_000


def _mlp(width: int, shape: Shape) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(shape.channels * shape.side**2, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, shape.classes),
    )


def _cnn(width: int, shape: Shape) -> nn.Module:
    rest = (shape.side // 4) ** 2
    return nn.Sequential(
        nn.Conv2d(shape.channels, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * rest, shape.classes),
    )


MODELS: dict[str, tuple[Callable[[int, Shape], nn.Module], int]] = {"mlp": (_mlp, 1), "cnn": (_cnn, 4)}
"""How each is made, and the side in pixels of the smallest pictures that it can take."""


def size_of(model: nn.Module) -> int:
    """Size of the parameters in bytes."""
    return sum(p.numel() * p.element_size() for p in model.parameters())


def build(options: TrainOptions, shape: Shape, seed: int) -> nn.Module:
    """The model for pictures of a shape, resized where --pixels says so; the seed determines its parameters."""
    seen = shape._replace(side=options.pixels or shape.side)
    _, smallest = (MODELS | NETWORKS)[options.model]
    if seen.side < smallest:
        raise ContractError(
            f"--model {options.model} needs pictures of {smallest} x {smallest} pixels or more, those of --data "
            f"{options.data} have {seen.side} x {seen.side}; enlarge them with --pixels {smallest}"
        )
    make = _published(options, seen) if options.model in NETWORKS else _sized(options, seen)
    torch.manual_seed(seed)
    model = make()
    if options.model in NETWORKS:
        initialise(model)
    if seen.side == shape.side:
        return model
    return nn.Sequential(nn.Upsample(size=seen.side, mode="bilinear"), model)


def _published(options: TrainOptions, shape: Shape) -> Callable[[], nn.Module]:
    """A published network at a scale."""
    make, _ = NETWORKS[options.model]
    with torch.device("meta"):
        size = size_of(make(options.scale, shape))
    if size > MAX_BYTES:
        raise ContractError(
            f"--model {options.model} --scale {options.scale:g} has {size} bytes; the maximum is {MAX_BYTES}"
        )
    return lambda: make(options.scale, shape)


def _sized(options: TrainOptions, shape: Shape) -> Callable[[], nn.Module]:
    """A network whose width makes its size the nearest to --size."""
    size, (make, _) = options.size, MODELS[options.model]
    if not 0 < size <= MAX_BYTES:
        raise ContractError(f"--size is {size} bytes; it must be 1 to {MAX_BYTES}")
    with torch.device("meta"):
        low, high = 1, 2
        while size_of(make(high, shape)) < size:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if size_of(make(middle, shape)) < size else (low, middle)
        width = min((low, high), key=lambda w: abs(size_of(make(w, shape)) - size))
    return lambda: make(width, shape)
