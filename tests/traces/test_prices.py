"""EC2 prices: the papers' instance types are in the table, and workloads use it only where asked to."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind.model.errors import InputError
from tradewind.registry import workloads
from tradewind.traces.prices import ec2_prices, normalised, site_prices

SMALL = {"sites": 14, "slots": 3, "jobs_per_slot": 3.0}
MARKET = {"jobs": 60, "slots": 48, "servers": 4}


def test_the_papers_instances_are_there_with_month_and_source() -> None:
    table = {(row.region, row.instance): row for row in ec2_prices()}
    assert table["us-east-1", "p3.2xlarge"].usd_per_hour == 3.06  # Sec. 6.4 of mlBroker
    assert table["us-east-1", "p2.8xlarge"].gpus == 8
    for row in ec2_prices():
        assert row.usd_per_hour > 0
        assert row.source.startswith("AWS on-demand")
        assert len(row.date) == 7
    assert sum(row.role == "worker" for row in ec2_prices()) == 15
    assert sum(row.role == "server" for row in ec2_prices()) == 10


def test_unit_prices_add_up_to_the_prices_of_the_instances() -> None:
    gpu, vcpu, memory = site_prices(1)[0]
    table = {row.instance: row for row in ec2_prices() if row.role == "site" and row.region == "us-east-1"}
    for name in ("g4dn.xlarge", "g4dn.4xlarge"):
        row = table[name]
        assert gpu + vcpu * row.vcpus + memory * row.mem_gib == pytest.approx(row.usd_per_hour)
    assert (site_prices(30) > 0).all()
    assert np.array_equal(site_prices(24)[12:], site_prices(12))


def test_normalised_prices_end_at_the_dearest_type_and_repeat() -> None:
    assert normalised("worker", 15).max() == 1.0
    assert normalised("server", 20)[10:].tolist() == normalised("server", 10).tolist()


def test_sites_of_mlbroker_cost_what_their_regions_do_and_only_prices_change() -> None:
    drawn, listed = (workloads.generate("mlbroker", {**SMALL, "prices": p}, 1) for p in ("drawn", "ec2"))
    assert listed.setup.rent[0, 0].usd[0] == pytest.approx(site_prices(1)[0, 0])
    assert listed.setup.rent[12, 1].usd[0] == pytest.approx(site_prices(1)[0, 1])
    assert listed.setup.rent[0, 3].usd == drawn.setup.rent[0, 3].usd
    assert listed.jobs == drawn.jobs
    assert listed.origin["prices"] == "ec2"
    with pytest.raises(InputError, match="family narrow"):
        workloads.generate("mlbroker", {**SMALL, "family": "narrow", "prices": "ec2"}, 1)


def test_budgets_of_dps_follow_the_listed_prices() -> None:
    drawn, listed = (workloads.generate("dps", {**MARKET, "prices": p}, 1) for p in ("drawn", "ec2"))
    assert listed.jobs == drawn.jobs
    assert [c.budget_usd for c in listed.customers] != [c.budget_usd for c in drawn.customers]
