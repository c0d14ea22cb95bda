"""Made-up rows for the claims of the measured study."""

from __future__ import annotations

from tests.lab.claims import Certain
from tests.lab.test_live_study import blocks, brokers, curves, estimated, lines, rings, trained
from tradewind.lab.live.estimates import CASES

MADE = {
    "workers/unchanged": (lambda _: curves(0.001), lambda _: curves(0.05)),
    **{
        f"reservation/{name}": (lambda _: lines(-0.05), lambda _: lines(0.2))
        for name in ("as-planned", "even", "by-phases")
    },
    "trainers/as-predicted": (lambda _: trained(0.08), lambda _: trained(-0.12)),
    "brokerage/cheapest": (
        lambda policy: brokers(policy, "cost", 1.0),
        lambda policy: brokers(policy, "cost", 3.0),
    ),
    "brokerage/Central fastest": (
        lambda _: brokers("central", "hours", 1.0),
        lambda _: brokers("central", "hours", 3.0),
    ),
    "brokerage/waiting": (
        lambda _: brokers("central", "waiting", 1.0),
        lambda _: brokers("central", "waiting", 3.0),
    ),
    "brokerage/discount": (
        lambda policy: brokers(policy, "discount", 1.0),
        lambda policy: brokers(policy, "discount", 3.0),
    ),
    "brokerage/all processed": (
        lambda policy: brokers(policy, "missed", 0.0),
        lambda policy: brokers(policy, "missed", 1.0),
    ),
    **{
        f"estimates/{name}": (lambda policy: estimated(policy, 0.9), lambda policy: estimated(policy, 0.7))
        for name in CASES
    },
    "rings/order": (lambda _: rings(0.4), lambda _: rings(0.6)),
    "transport/formula": (lambda _: blocks(0.05), lambda _: blocks(0.2)),
}

CERTAIN: Certain = {"measured once on this machine": tuple(MADE)}
