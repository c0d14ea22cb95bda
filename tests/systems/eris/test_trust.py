"""Claims about a forecast that a scenario states: it is believed as long as what is sold does not contradict it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tradewind.model.utility import Utility
from tradewind.registry import workloads
from tradewind.systems.eris.kernels.column import Pooled
from tradewind.systems.eris.kernels.pool import PastBid
from tradewind.systems.eris.policy.trust import Trust
from tradewind.systems.eris.study.forecasts import earned, stating

CROWD = {"size": "testbed", "jobs": 20, "slots": 30, "sites": 4}
SEEDS = range(1, 9)


@pytest.mark.parametrize("factor", [4.0, 100.0, 1e6])
@pytest.mark.parametrize("kind", [CROWD, {"size": "testbed"}])
def test_a_forecast_that_is_too_high_does_not_lose_to_none_beyond_noise(
    kind: dict[str, object], factor: float
) -> None:
    gains = []
    for seed in SEEDS:
        scenario = workloads.generate("eris", kind, seed)
        assert scenario.setup.forecast["price_gpu"] > 0
        gains.append(earned(stating(scenario, factor)) - earned(scenario, floor="none"))
    assert np.mean(gains) >= -2.0 * np.std(gains, ddof=1) / len(gains) ** 0.5


@pytest.mark.parametrize("kind", [CROWD, {"size": "testbed"}])
def test_a_right_forecast_earns_as_much_as_if_it_were_a_fixed_floor(kind: dict[str, object]) -> None:
    ours, fixed, none = 0.0, 0.0, 0.0
    for seed in SEEDS:
        scenario = workloads.generate("eris", kind, seed)
        ours += earned(scenario)
        fixed += earned(scenario, floor="fixed")
        none += earned(scenario, floor="none")
    assert ours >= 0.95 * fixed
    assert ours > 1.05 * none


def test_an_unlimited_resource_promises_nothing() -> None:
    scenario = workloads.generate("eris", CROWD, 1)
    setup = replace(
        scenario.setup,
        transfer_bytes_per_slot=None,
        forecast={**scenario.setup.forecast, "price_transfer": 1.0},
    )
    free = replace(scenario, setup=setup)
    assert earned(free) == earned(free, floor="fixed")


# ---------------------------------------------------------------------- the rule


def bid(start: int, usd: float) -> PastBid:
    """A bid of one slot of work, worth three quarters, a half and a quarter of its price in the next slots."""
    job = Pooled(np.ones(2), np.zeros(1), beside=1, widest=1, units=1, start=start, worth=np.zeros(0))
    return PastBid(job, Utility(of="delay_slots", shape="linear", args=(usd, -usd / 4)))


def test_a_floor_that_turns_nobody_away_is_left_as_it_is() -> None:
    trust = Trust()
    trust.bid(bid(0, 8.0), 100)
    trust.sold([0], 8.0)
    trust.look(90, 1000.0)
    assert trust.share == 1.0


def test_slots_that_nobody_wanted_do_not_count() -> None:
    shares = []
    for slot, promise in ((3, 2.0), (90, 2.0), (90, 4.0)):
        trust = Trust()
        trust.bid(bid(0, 8.0), 100)
        trust.unsold(bid(0, 8.0), 100)
        trust.look(slot, promise)
        shares.append(trust.share)
    assert shares == [1.0, 1.0, 0.5]  # wanted in slots 0 to 3


def test_what_is_sold_in_wanted_slots_supports_the_forecast_and_noise_excuses_it() -> None:
    shares = []
    for sold, bids in ((0.0, 1), (6.0, 1), (0.0, 4)):
        trust = Trust()
        for _ in range(bids):
            trust.bid(bid(0, 8.0), 100)
        trust.unsold(bid(0, 8.0), 100)
        trust.sold([0, 1], sold)
        trust.look(2, 10.0)
        shares.append(trust.share)
    assert shares == pytest.approx([8 / 30, 14 / 30, 16 / 30])


def test_the_share_never_rises_and_survives_save_and_restore() -> None:
    trust = Trust()
    trust.bid(bid(0, 8.0), 100)
    trust.unsold(bid(0, 8.0), 100)
    trust.look(1, 10.0)
    low = trust.share
    trust.sold([1, 2], 500.0)
    again = Trust()
    again.restore(trust.save())
    for each in (trust, again):
        each.look(2, 10.0)
        assert each.share == low < 1.0
    assert again.save() == trust.save()
