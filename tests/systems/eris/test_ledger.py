"""Claims about the capacity ledger: prices that are kept between bids are those computed anew, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tradewind.model.arrays import Floats
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.systems.eris.shared import market
from tradewind.systems.eris.shared.market import CapacityLedger, Kept, most_chunks
from tradewind.systems.eris.study.lies import tiny
from tradewind.worlds.simulate import simulate

current = CapacityLedger._current


@pytest.mark.parametrize("gamma", [1.0, 30.0])
@pytest.mark.parametrize("policy", ["eris", "eris-paper"])
@pytest.mark.parametrize("window", [None, 3])
def test_prices_and_room_kept_between_bids_are_those_computed_anew(
    policy: str, window: int | None, gamma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = 0

    def compared(self: CapacityLedger, gamma: float, least: Floats) -> Kept:
        nonlocal again
        again += self._kept is not None
        found = current(self, gamma, least)
        share = self.used / np.maximum(self.capacity, 1)
        with np.errstate(over="ignore"):
            assert np.array_equal(found.usd, np.maximum(gamma**share - 1.0, least) / 1000)
        assert np.array_equal(found.free, self.capacity - self.used)
        return found

    monkeypatch.setattr(CapacityLedger, "_current", compared)
    for seed in range(8):
        scenario = tiny(seed)
        setup = replace(scenario.setup, window_slots=window)
        third, host = setup.slot_us * (setup.slots // 3), setup.hosts[0]
        failed = (Change(third, "node_down", host, 0, 0), Change(2 * third, "node_up", host, 0, 0))
        given = replace(scenario, setup=setup, changes=failed if seed % 2 else ())
        simulate(given, policies.find(policy), {"gamma": gamma})
    assert again > 20


def test_sites_of_equal_capacity_are_counted_once_and_of_the_setup_that_is_asked_for() -> None:
    for seed in range(4):
        scenario = tiny(seed, uneven=0.5)
        larger = [
            replace(node, capacity_milli=tuple(2 * c for c in node.capacity_milli))
            for node in scenario.setup.nodes
        ]
        for setup in (scenario.setup, replace(scenario.setup, nodes=tuple(larger))):
            assert sum(market._kinds_of_sites(setup).values()) == len(setup.hosts)
            for job in scenario.jobs:
                fits = [
                    min(setup.nodes[h].capacity_milli[k] // milli for k, milli in job.worker if milli)
                    for h in setup.hosts
                ]
                workers = min(sum(min(fit, job.workers_max) for fit in fits), job.workers_max)
                slots = setup.slots_ahead(job.arrive_us // setup.slot_us)
                rate = job.work.chunk_epochs_per_worker_slot_milli  # type: ignore[union-attr]
                assert most_chunks(setup, job) == slots * workers * rate // (1000 * job.work.epochs)  # type: ignore[union-attr]
