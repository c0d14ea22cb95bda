"""First come, first served: the schedules of `eris` at zero prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.model.setup import Setup
from tradewind.systems.eris.policy.posted import ERIS, Seller, floor_of


def _fcfs(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Seller:
    return Seller(setup, 1.0, floor_of(setup, "none", 0.0))


FCFS = replace(
    ERIS,
    name="fcfs",
    summary="First come, first served: each job takes the earliest completion, at zero prices",
    factory=_fcfs,
    params={},
)
