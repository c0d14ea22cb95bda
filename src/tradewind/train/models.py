"""Models of a chosen size: a perceptron and a convolutional network on small pictures.

Neither has batch normalisation or dropout: what one sample contributes must not depend on which others a worker holds.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tradewind.train.contract import ContractError
from tradewind.train.data import CLASSES, SIDE

MOST_BYTES = 2_000_000_000


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
    """Bytes of its parameters."""
    return sum(p.numel() * p.element_size() for p in model.parameters())


def build(kind: str, size: int, seed: int) -> nn.Module:
    """The model of that kind whose size in bytes is nearest; its parameters follow from the seed."""
    if not 0 < size <= MOST_BYTES:
        raise ContractError(f"--size is {size} bytes; allowed is 1 to {MOST_BYTES}")
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
