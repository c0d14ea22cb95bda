"""Models of a chosen size: a perceptron and a convolutional network on small pictures.

Neither has batch normalisation or dropout: the contribution of a sample must not depend on a worker's other samples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tradewind.train.contract import ContractError
from tradewind.train.data import CLASSES, SIDE

MAX_BYTES = 2_000_000_000


def _mlp(width: int) -> nn.Module:
    inputs = SIDE * SIDE
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, CLASSES),
    )


def _cnn(width: int) -> nn.Module:
    rest = (SIDE // 4) ** 2
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * rest, CLASSES),
    )


MODELS: dict[str, Callable[[int], nn.Module]] = {"mlp": _mlp, "cnn": _cnn}


def size_of(model: nn.Module) -> int:
    """Size of the parameters in bytes."""
    return sum(p.numel() * p.element_size() for p in model.parameters())


def build(kind: str, size: int, seed: int) -> nn.Module:
    """The model of a kind with the size nearest to `size` bytes; the seed determines its parameters."""
    if not 0 < size <= MAX_BYTES:
        raise ContractError(f"--size is {size} bytes; it must be 1 to {MAX_BYTES}")
    make = MODELS[kind]
    with torch.device("meta"):
        low, high = 1, 2
        while size_of(make(high)) < size:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if size_of(make(middle)) < size else (low, middle)
        width = min((low, high), key=lambda w: abs(size_of(make(w)) - size))
    torch.manual_seed(seed)
    return make(width)
