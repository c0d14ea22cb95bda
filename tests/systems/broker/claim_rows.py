"""Made-up rows for the aims of the broker's study: one table that meets each, one that misses it."""

from __future__ import annotations

from tests.lab.claims import Certain, Made, Table


def freedoms(region_low: float) -> Table:
    """What the lack of two freedoms costs in two families."""
    low = {("F", "region"): -0.1, ("E", "region"): region_low, ("F", "time"): 2.0, ("E", "time"): -1.0}
    return lambda _: [{"family": f, "source": s, "more": v + 1, "low": v} for (f, s), v in low.items()]


def bills(*values: float) -> Table:
    """Bills over the time until deadlines."""
    return lambda _: [{"family": "F", "factor": 1.0 + i, "cost": v} for i, v in enumerate(values)]


def online(mine: float, rival: float) -> Table:
    """Costs over the bound, with intervals of 0.002 to both sides."""
    names = ("broker-selfish", "broker-central", "skypilot-rule")
    return lambda who: [
        {"family": f, "policy": n, "ratio": v, "high": v + 0.002}
        for f in ("F", "E")
        for n, v in ((who, mine), *((n, rival) for n in names))
    ]


MADE: Made = {
    "savings/each saves": (freedoms(0.1), freedoms(1e-13)),
    "deadlines/later is cheaper": (bills(1, 0.98, 0.98 + 1e-14), bills(1, 0.97, 0.98)),
    "online/near the bound": (online(1.009, 1.1), online(1.011, 1.1)),
    "online/never dearer": (online(1.005, 1.1), online(1.11, 1.1)),
}

CERTAIN: Certain = {
    "an aim of ours about means": (
        "deadlines/later is cheaper",
        "online/near the bound",
        "online/never dearer",
    )
}
