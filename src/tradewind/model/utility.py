"""Utility: the value of a job as a function of delay, progress, payment or data served."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tradewind.model.errors import ScenarioError

Of = Literal["delay_slots", "progress", "payment", "served"]
Shape = Literal["sigmoid", "log1p", "sqrt", "linear", "quadratic", "gang", "piecewise", "budget"]
OFS: tuple[Of, ...] = ("delay_slots", "progress", "payment", "served")
ARGS: dict[Shape, tuple[str, ...]] = {
    "sigmoid": ("height", "steepness", "middle"),
    "log1p": ("height", "scale"),
    "sqrt": ("height", "scale"),
    "linear": ("height", "slope"),
    "quadratic": ("height", "slope", "curvature"),
    "gang": ("height", "need"),
    "piecewise": ("x1", "y1", "…"),
    "budget": ("height", "limit"),
}


def _logistic(z: float) -> float:
    """1 / (1 + e^-z) without overflow."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """Value in USD (or utility units) at x, where `of` says what x is.

    of         delay_slots: slots from arrival to completion, from 0; progress: rounds or worker-slots done, times the
               work's rate; payment: USD paid; served: GB of a stream's slot that were processed, all or 0, where the value
               is a sum over the slots with data: the value at 0 is what a slot left out costs (a penalty where negative)
    shape      sigmoid    height * logistic(steepness * (x - middle)); falls where steepness < 0
               log1p      height * ln(1 + x / scale)
               sqrt       height * sqrt(x / scale)
               linear     height + slope * x
               quadratic  height + slope * x + curvature * x^2
               gang       height if x >= need, else 0
               piecewise  linear between (x1, y1), (x2, y2), …; constant outside
               budget     height if x <= limit, else 0
    from_zero  subtract the value at x = 0, so that no progress has value 0
    """

    of: Of
    shape: Shape
    args: tuple[float, ...]
    from_zero: bool = False

    def __post_init__(self) -> None:
        if self.of not in OFS:
            raise ScenarioError(f"utility.of is {self.of!r}; allowed are {', '.join(OFS)}")
        if self.shape not in ARGS:
            raise ScenarioError(f"utility.shape is {self.shape!r}; allowed are {', '.join(ARGS)}")
        if not all(math.isfinite(a) for a in self.args):
            raise ScenarioError(f"utility.args are {list(self.args)}; each must be a finite number")
        if self.shape == "piecewise":
            xs = self.args[::2]
            if len(self.args) < 4 or len(self.args) % 2 or any(b <= a for a, b in pairwise(xs)):
                raise ScenarioError(
                    f"utility.args of a piecewise utility are {list(self.args)}; "
                    "write x1, y1, x2, y2, … with at least two points and rising x"
                )
        elif len(self.args) != len(ARGS[self.shape]):
            raise ScenarioError(
                f"utility.args has {len(self.args)} numbers; a {self.shape} utility needs "
                f"{len(ARGS[self.shape])}: {', '.join(ARGS[self.shape])}"
            )
        if self.shape in ("log1p", "sqrt") and self.args[1] <= 0:
            raise ScenarioError(
                f"utility.args: the scale of a {self.shape} utility is {self.args[1]}; it must be positive"
            )

    def value(self, x: float) -> float:
        """Utility at x."""
        return self._raw(x) - self._raw(0.0) if self.from_zero else self._raw(x)

    def _raw(self, x: float) -> float:
        a = self.args
        match self.shape:
            case "sigmoid":
                return a[0] * _logistic(a[1] * (x - a[2]))
            case "log1p":
                return a[0] * math.log1p(x / a[1])
            case "sqrt":
                return a[0] * math.sqrt(x / a[1])
            case "linear":
                return a[0] + a[1] * x
            case "quadratic":
                return a[0] + a[1] * x + a[2] * x * x
            case "gang":
                return a[0] if x >= a[1] else 0.0
            case "budget":
                return a[0] if x <= a[1] else 0.0
            case "piecewise":
                return _interpolate(a[::2], a[1::2], x)


def _interpolate(xs: tuple[float, ...], ys: tuple[float, ...], x: float) -> float:
    if x <= xs[0]:
        return ys[0]
    for i in range(1, len(xs)):
        if x <= xs[i]:
            return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])
    return ys[-1]
