"""Open horizon: with a window, a slot costs a policy as much after many slots as after few."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.bench_horizon import MARKETS, block, costs

from tradewind.model.errors import InputError, Unsupported
from tradewind.registry import policies
from tradewind.systems.dps import policy as dps
from tradewind.worlds.simulate import simulate

SLOTS, TIMES = 60, 10
"""Slots of a block, and how often it is repeated; `python -m benchmarks horizon` repeats 1,000 slots 100 times."""
ROLLING = [name for *_, names in MARKETS.values() for name in names]


@pytest.mark.parametrize("name", ROLLING)
def test_late_slots_cost_what_early_ones_cost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dps, "ENDLESS", 128)  # full after the first block
    spec = policies.find(name)
    one = block(spec.system, SLOTS)
    costs(spec, one, 1)  # compiles
    found = costs(spec, one, TIMES)
    assert len(found) == TIMES
    early, late = found[: TIMES // 2], found[TIMES // 2 :]
    assert min(c.cpu_s for c in late) <= 2.0 * max(c.cpu_s for c in early)
    assert max(c.saved for c in late) <= 1.25 * max(c.saved for c in early)
    assert max(c.held for c in late) <= 1.25 * max(c.held for c in early)


@pytest.mark.parametrize("name", ["eris", "dps"])
def test_without_a_window_what_is_kept_grows(name: str) -> None:
    spec = policies.find(name)
    one = block(spec.system, SLOTS)
    far = replace(one, setup=replace(one.setup, window_slots=None))
    found = costs(spec, far, 4)
    assert found[-1].saved > 1.5 * found[0].saved


def test_what_needs_an_end_of_the_run_says_so() -> None:
    with pytest.raises(
        Unsupported, match=r"dps-paper plans for a known end of the run.*Leave out window_slots"
    ):
        simulate(block("dps", SLOTS), policies.find("dps-paper"))
    with pytest.raises(InputError, match=r"all bids of a run.*Leave out window_slots, or use payments=none"):
        simulate(block("eris", SLOTS), policies.find("eris-preemptive"), {"payments": "critical"})
