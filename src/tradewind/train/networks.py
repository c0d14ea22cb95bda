"""AlexNet, VGG and ResNet: the layers of the published networks, with all widths multiplied by a scale.

At scale 1 they have as many parameters as the published ones (AlexNet in its form with one column). None has batch
normalisation or dropout: the contribution of a sample must not depend on a worker's other samples. The ResNets have group
normalisation instead, which has the same parameters and looks at one sample at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from tradewind.train.data import Shape

GROUPS = 32
STEP = 8
"""Widths are multiples of this."""


def _width(channels: int, scale: float) -> int:
    return max(STEP, STEP * round(channels * scale / STEP))


def _classifier(inputs: int, scale: float, classes: int) -> list[nn.Module]:
    """The three dense layers of AlexNet and VGG."""
    hidden = _width(4096, scale)
    return [
        nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
        nn.Linear(hidden, classes),
    ]  # fmt: skip


def _alexnet(scale: float, shape: Shape) -> nn.Module:
    a, b, c, d = (_width(channels, scale) for channels in (64, 192, 384, 256))
    return nn.Sequential(
        nn.Conv2d(shape.channels, a, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(a, b, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(b, c, 3, padding=1), nn.ReLU(),
        nn.Conv2d(c, d, 3, padding=1), nn.ReLU(),
        nn.Conv2d(d, d, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(6), *_classifier(d * 36, scale, shape.classes),
    )  # fmt: skip


def _vgg(convolutions: Sequence[int]) -> Callable[[float, Shape], nn.Module]:
    """VGG with so many convolutions in each of its five stages."""

    def make(scale: float, shape: Shape) -> nn.Module:
        layers: list[nn.Module] = []
        before = shape.channels
        for count, channels in zip(convolutions, (64, 128, 256, 512, 512), strict=True):
            for _ in range(count):
                layers += [nn.Conv2d(before, _width(channels, scale), 3, padding=1), nn.ReLU()]
                before = _width(channels, scale)
            layers.append(nn.MaxPool2d(2))
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(7), *_classifier(before * 49, scale, shape.classes)
        )

    return make


def _norm(channels: int) -> nn.Module:
    return nn.GroupNorm(math.gcd(GROUPS, channels // 2), channels)


def _conv(before: int, after: int, side: int, stride: int = 1) -> list[nn.Module]:
    """A convolution without bias, normalised."""
    return [nn.Conv2d(before, after, side, stride, padding=side // 2, bias=False), _norm(after)]


class Block(nn.Module):
    """A residual block: two convolutions, or three where the outer ones are narrow (`expansion` 4)."""

    def __init__(self, before: int, channels: int, expansion: int, stride: int) -> None:
        super().__init__()
        after = channels * expansion
        if expansion == 1:
            path = [*_conv(before, channels, 3, stride), nn.ReLU(), *_conv(channels, after, 3)]
        else:
            path = [
                *_conv(before, channels, 1), nn.ReLU(), *_conv(channels, channels, 3, stride), nn.ReLU(),
                *_conv(channels, after, 1),
            ]  # fmt: skip
        self.path = nn.Sequential(*path)
        same = stride == 1 and before == after
        self.past = nn.Identity() if same else nn.Sequential(*_conv(before, after, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        """The input, projected where the shape changes, plus what the convolutions add."""
        total: Tensor = self.path(x) + self.past(x)
        return total.relu()


def _resnet(blocks: Sequence[int], expansion: int) -> Callable[[float, Shape], nn.Module]:
    """ResNet with so many blocks in each of its four stages."""

    def make(scale: float, shape: Shape) -> nn.Module:
        before = _width(64, scale)
        layers = [*_conv(shape.channels, before, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
        for stage, count in enumerate(blocks):
            channels = _width(64 << stage, scale)
            for number in range(count):
                stride = 2 if stage and not number else 1
                layers.append(Block(before, channels, expansion, stride))
                before = channels * expansion
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, shape.classes))

    return make


NETWORKS: dict[str, tuple[Callable[[float, Shape], nn.Module], int]] = {
    "alexnet": (_alexnet, 63),
    "vgg11": (_vgg((1, 1, 2, 2, 2)), 32),
    "vgg16": (_vgg((2, 2, 3, 3, 3)), 32),
    "resnet18": (_resnet((2, 2, 2, 2), 1), 8),
    "resnet50": (_resnet((3, 4, 6, 3), 4), 8),
}
"""How each is made, and the side in pixels of the smallest pictures that it can take."""


def initialise(model: nn.Module) -> None:
    """Random weights by He et al. in all layers but the last; they keep the size of activations through many layers."""
    layers = [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    for layer in layers[:-1]:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
