"""Random numbers for kernels: a generator whose state is an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.solvers.kernel import kernel

UNIT = 1_000_003
"""Random fractions are multiples of 1 / UNIT."""


@kernel
def random_of(number: int) -> Any:
    """State (1,) of the generator for a seed."""
    return np.array([np.uint64(number * 2654435761 + 88172645463325252)], np.uint64)


@kernel
def draw(random: Any) -> Any:
    """xorshift64*: the next positive 62-bit number."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(2))


@kernel(forceinline=True)
def fraction(random: Any) -> Any:
    """The next float in [0, 1)."""
    return (draw(random) % UNIT) / float(UNIT)
