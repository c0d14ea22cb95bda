"""Least attained service in two dimensions, discretised (Tiresias, NSDI 2019): GPUs x time, no runtimes needed.

Jobs enter the first queue and sink to the next one when their attained GPU-seconds reach its limit; they never rise.
Queues are served in turn, each first in, first out with running jobs ahead of waiting ones; every job that still fits
runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.model.view import Policy
from tradewind.systems.cluster.policy.fifo import WORKS


def _limits(text: str) -> tuple[float, ...]:
    """`"3250,7200"` -> (3250.0, 7200.0)."""
    try:
        limits = tuple(float(part) for part in str(text).split(","))
    except ValueError:
        limits = ()
    rising = all(a < b for a, b in pairwise((0.0, *limits)))
    if not limits or not rising or limits[-1] == math.inf:
        raise InputError(
            f"found {text!r}; allowed are rising positive GPU-seconds separated by commas, such as 3250,7200",
            where="las.limits",
        )
    return limits


def settings(params: Mapping[str, Any]) -> tuple[tuple[float, ...], int]:
    """Limits in GPU-seconds and the tick in microseconds."""
    tick = float(params.get("tick_s", 1.0))
    return _limits(params.get("limits", "3250,7200")), round(tick * 1e6)


def _las(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Policy:
    from tradewind.systems.cluster.policy.attained import LeastAttained

    return LeastAttained(setup, *settings(params))


LAS = Spec(
    name="las",
    summary="Least attained service first, in a few queues by GPU-seconds (Tiresias), preemptive",
    factory=_las,
    works=WORKS,
    system="cluster",
    compiled="tradewind.systems.cluster.compiled:las",
    params={
        "limits": Param(
            default="3250,7200", doc="attained GPU-seconds at which a job sinks to the next queue"
        ),
        "tick_s": Param(
            default=1.0,
            doc="jobs sink at whole multiples of this many seconds after an event",
            least=1e-6,
            most=1e9,
        ),
    },
)
