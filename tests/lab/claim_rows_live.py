"""Made-up rows for the claims of the measured study."""

from __future__ import annotations

from tests.lab.test_live_study import blocks, curves, lines, rings

MADE = {
    "workers/unchanged": (lambda _: curves(0.001), lambda _: curves(0.05)),
    "reservation/as-planned": (lambda _: lines(-0.05), lambda _: lines(0.2)),
    "rings/order": (lambda _: rings(0.4), lambda _: rings(0.6)),
    "transport/formula": (lambda _: blocks(0.05), lambda _: blocks(0.2)),
}
