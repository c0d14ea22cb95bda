"""The generator's draws: the paper's ranges, the arrivals, the data."""

from dataclasses import replace

import numpy as np
import pytest

from tradewind.systems.mlbroker.workload.draw import FAMILIES, LIST_PRICE_RANGE, DrawSettings, draw

DEFAULT = DrawSettings()


def test_the_same_seed_draws_the_same_arrays() -> None:
    a, b = draw(DEFAULT, 4), draw(DEFAULT, 4)
    assert np.array_equal(a.data_gb, b.data_gb)
    assert np.array_equal(a.tier_usd, b.tier_usd)
    assert not np.array_equal(a.tier_usd, draw(DEFAULT, 5).tier_usd)


def test_prices_thresholds_and_discounts_lie_in_the_papers_ranges() -> None:
    d = draw(DEFAULT, 0)
    per_day = d.tier_usd[..., 0] * 2.0
    assert (per_day >= LIST_PRICE_RANGE[:, 0]).all()
    assert (per_day <= LIST_PRICE_RANGE[:, 1]).all()
    discount = d.tier_usd[..., 1] / d.tier_usd[..., 0]
    assert ((discount >= 0.7) & (discount <= 0.8)).all()
    assert ((d.tier_start[:, 0, 1] >= 500) & (d.tier_start[:, 0, 1] <= 600)).all()
    assert np.array_equal(d.transfer_usd, d.transfer_usd.T)
    assert ((d.traffic_gb >= 4.32) & (d.traffic_gb <= 82.8)).all()
    assert (d.server[:, 0] == 0).all()


def test_the_mean_number_of_jobs_present_is_what_was_asked_for() -> None:
    present = [np.mean(np.bincount(draw(DEFAULT, seed).row_slot, minlength=50)) for seed in range(40)]
    assert np.mean(present) == pytest.approx(20.0, rel=0.08)


def test_every_job_has_data_in_every_slot_it_is_present() -> None:
    d = draw(replace(DEFAULT, slots=12), 2)
    assert len(d.row_job) == int((d.depart - d.arrive).sum())
    total = d.data_gb.sum(axis=1)
    assert ((total >= 0.7 * 500 - 1e-9) & (total <= 1.3 * 500 + 1e-9)).all()
    sources = (d.data_gb > 0).sum(axis=1)
    assert ((sources >= 3) & (sources <= 8)).all()


@pytest.mark.parametrize(("family", "spread"), [("narrow", 1.1), ("trap", 1.03)])
def test_close_prices_are_close(family: str, spread: float) -> None:
    first = draw(replace(DEFAULT, family=family), 3).tier_usd[..., 0]
    assert (first.max(axis=0) / first.min(axis=0) <= spread + 1e-12).all()


def test_cpu_families_need_no_gpu_and_deploy_costs_twenty_times_as_much() -> None:
    cpu, deploy = (draw(replace(DEFAULT, family=f), 3) for f in ("cpu", "deploy"))
    assert (cpu.worker[:, 0] == 0).all()
    assert np.allclose(deploy.deploy_usd, 20 * cpu.deploy_usd)


def test_more_tiers_get_cheaper_and_start_later() -> None:
    d = draw(replace(DEFAULT, tiers=4), 1)
    assert (np.diff(d.tier_usd, axis=2) < 0).all()
    assert (np.diff(d.tier_start, axis=2) > 0).all()


def test_an_unknown_family_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=FAMILIES[0]):
        draw(replace(DEFAULT, family="nope"), 0)
