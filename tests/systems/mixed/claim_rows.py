"""Made-up rows that satisfy and that violate each target of mixed's study."""

from __future__ import annotations

from tests.lab.claims import Certain, Made, Table
from tradewind.systems.mixed.study.figures import ABOVE, LOADS, POLICIES, TARGETS


def at(*beside_target: float) -> Table:
    """The judged policy so far from its target at each load."""
    return lambda who: [
        {"load": load, "policy": who, "ratio": least + more}
        for load, least, more in zip(LOADS, TARGETS[who], beside_target, strict=True)
    ]


def ahead(*gaps: float) -> Table:
    """The judged policy so far ahead of all rivals at each load."""
    return lambda who: [
        {"load": load, "policy": policy.name, "ratio": 0.8 + gap * (policy.name == who)}
        for load, gap in zip(LOADS, gaps, strict=True)
        for policy in POLICIES
    ]


MADE: Made = {
    "welfare/offline target": (at(0.0, 0.01, 0.0), at(0.01, 0.01, -0.01)),
    "welfare/online target": (at(0.0, 0.0, 0.02), at(-0.001, 0.1, 0.1)),
    "welfare/rivals": (ahead(0.001, 0.01, 0.01), ahead(0.1, -0.001, 0.1)),
    "welfare/streams first": (ahead(*(a + 0.001 for a in ABOVE)), ahead(0.1, 0.1, ABOVE[2] - 0.01)),
}

CERTAIN: Certain = {"an aim of ours about means": tuple(MADE)}
