"""Shortest remaining time first, and shortest remaining service first (time x GPUs); both preemptive.

At every event jobs are sorted by what remains (equal ones keep their order), and in that order every job that still
fits runs. A running job that no longer fits is stopped; it loses nothing but the time of a restart elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.setup import Setup
from tradewind.model.spec import ESTIMATES, MEASUREMENT, Spec
from tradewind.model.view import Policy


def _srtf(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Policy:
    from tradewind.systems.cluster.policy.shortest import Shortest

    return Shortest(setup, by_service=False, measured=params["estimates"] == MEASUREMENT)


def _srsf(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Policy:
    from tradewind.systems.cluster.policy.shortest import Shortest

    return Shortest(setup, by_service=True, measured=params["estimates"] == MEASUREMENT)


SRTF = Spec(
    name="srtf",
    summary="Shortest remaining time first, preemptive; needs public runtimes",
    factory=_srtf,
    works=frozenset(("fixed",)),
    system="cluster",
    compiled="tradewind.systems.cluster.compiled:srtf",
    needs=frozenset(("runtime",)),
    params=ESTIMATES,
)
SRSF = Spec(
    name="srsf",
    summary="Shortest remaining time x GPUs first, preemptive; needs public runtimes",
    factory=_srsf,
    works=frozenset(("fixed",)),
    system="cluster",
    compiled="tradewind.systems.cluster.compiled:srsf",
    needs=frozenset(("runtime",)),
    params=ESTIMATES,
)
