"""Streams whose data begins late or never: they wait without a plan and cost nothing until there is data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests import builders
from tests.systems.mlbroker.test_bad_input import without_data
from tests.systems.mlbroker.test_policy import ALL, made, reasons
from tradewind import api
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.tariff import Tariff
from tradewind.model.tenant import SpendCap
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.exact import exact
from tradewind.systems.mlbroker.explain.bills import tenant_bills
from tradewind.systems.mlbroker.explain.placement import explain
from tradewind.systems.mlbroker.explain.remarks import never_trained
from tradewind.systems.mlbroker.explain.slots import places_of
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.worlds.simulate import simulate

HOUR = 3_600_000_000
LATE, BEGINS = 3, 2
"""The newest job of the first slot, and the slot in which its data begins."""


def late(**params: Any) -> Scenario:
    return without_data(made(**params), {LATE}, set(range(BEGINS)))


def arriving_with_its_data(scenario: Scenario) -> Scenario:
    """The same scenario, but the late job arrives with its data."""
    wait = BEGINS * scenario.setup.slot_us
    jobs, customers = list(scenario.jobs), list(scenario.customers)
    stay = customers[LATE].runtime_us
    assert stay is not None
    jobs[LATE] = replace(jobs[LATE], arrive_us=wait)
    customers[LATE] = replace(customers[LATE], runtime_us=stay - wait)
    return replace(scenario, jobs=tuple(jobs), customers=tuple(customers))


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_a_late_stream_costs_what_it_would_had_it_arrived_with_its_data(spec: Spec) -> None:
    given = late(family="deploy")
    run, other = simulate(given, spec), simulate(arriving_with_its_data(given), spec)
    assert reasons(run) == []
    assert run.metrics["jobs_completed"] == len(given.jobs)
    served = {number for number, job in places_of(given, run) if job == LATE}
    assert served == set(range(BEGINS, given.setup.slots))
    for part in ("transfer", "rent", "deploy", "traffic"):
        assert run.metrics[f"cost_{part}_usd"] == other.metrics[f"cost_{part}_usd"]
    assert api.check(given, run) == ()


def one_stream(volumes: list[tuple[int, int, int, int]], stay: int = 4) -> Scenario:
    """A job of one GPU per worker and per server at two sites, 2 and 3 USD an hour, 10 bytes per worker and slot."""
    work = Stream(bytes_per_worker_slot=10)
    job = builders.job(
        work=work, architecture="ps", servers=1, server=((0, 1000),), workers_max=9, deploy_usd=7.0
    )
    rent = {(0, 0): Tariff(starts=(0.0,), usd=(2.0,)), (1, 0): Tariff(starts=(0.0,), usd=(3.0,))}
    where = builders.setup(slot_us=HOUR, horizon_us=4 * HOUR, rent=rent)
    return builders.scenario(
        [job], where=where, customers=[Customer(runtime_us=stay * HOUR)], volumes=volumes
    )


def test_the_bill_of_a_late_stream_by_hand() -> None:
    """Slot 2: server and two workers at 2 USD; slot 3: the server alone (8f); deployed once, in slot 2."""
    given = one_stream([(0, 0, 1, 0), (0, 2, 0, 15)])
    run = simulate(given, MLBROKER)
    assert run.metrics["cost_rent_usd"] == pytest.approx(3 * 2.0 + 2.0)
    assert run.metrics["cost_deploy_usd"] == pytest.approx(7.0)
    assert run.metrics["wait_mean_s"] == 2 * 3600
    certified = bound(given)
    assert certified is not None
    assert certified.value == pytest.approx(3 * 2.0 + 7.0)  # the audit does not require the server in slot 3


def test_bound_and_optimum_of_a_late_stream_count_from_its_data_on() -> None:
    given = late(family="deploy")
    certified, other = bound(given), bound(arriving_with_its_data(given))
    assert certified is not None
    assert certified == other
    best, run = exact(given, nodes=20_000), simulate(given, MLBROKER)
    assert certified.value <= best.bound * (1 + 1e-6)
    assert best.bound * (1 - 1e-6) <= run.value <= 1.06 * best.cost


def test_a_waiting_job_uses_neither_capacity_nor_its_tenants_cap() -> None:
    """Site a has room for one worker and one server: the job with data gets them, though the other arrived first."""
    given = one_stream([(0, 3, 0, 10)])
    second = replace(given.jobs[0], index=1, id="j1", tenant="x", arrive_us=0)
    nodes = tuple(
        replace(n, capacity_milli=(milli,)) for n, milli in zip(given.setup.nodes, (2000, 0), strict=True)
    )
    two = builders.scenario(
        [replace(given.jobs[0], tenant="x"), second],
        where=replace(given.setup, nodes=nodes, spend_caps={"x": SpendCap(slot_usd=11.0)}),
        customers=[Customer(runtime_us=4 * HOUR), Customer(runtime_us=3 * HOUR)],
        volumes=[(1, 0, 0, 10), (1, 1, 0, 10), (1, 2, 0, 10), (0, 3, 0, 10)],
    )
    run = simulate(two, MLBROKER)
    assert reasons(run) == []
    assert sorted(places_of(two, run)) == [(0, 1), (1, 1), (2, 1), (3, 0)]


def test_a_tenant_pays_nothing_while_its_job_waits() -> None:
    given = late(family="deploy")
    jobs = tuple(replace(job, tenant="late" if job.index == LATE else "others") for job in given.jobs)
    named = replace(given, jobs=jobs)
    moved = arriving_with_its_data(named)
    bills, other = (tenant_bills(each, simulate(each, MLBROKER)) for each in (named, moved))
    assert bills == other


def test_a_waiting_job_is_explained_and_so_is_one_that_never_had_data() -> None:
    given = late()
    run = simulate(given, MLBROKER)
    name = given.jobs[LATE].id
    with pytest.raises(
        InputError, match="no plan in slot 1: it was waiting for data, which begins in slot 2"
    ):
        explain(given, run, name, 1)
    assert explain(given, run, name, 2).added_usd > 0.0
    dry = without_data(given, {LATE})
    with pytest.raises(InputError, match="it had no data while it was present"):
        explain(dry, simulate(dry, MLBROKER), name, 2)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_a_stream_that_never_has_data_costs_nothing_and_is_named_after_the_run(spec: Spec) -> None:
    given = without_data(made(), {LATE})
    run = simulate(given, spec)
    assert reasons(run) == []
    assert never_trained(given, run) == [LATE]
    assert LATE not in run.tables["plans"]["job"]
    assert set(run.tables["plans"]["job"]) == {job.index for job in given.jobs} - {LATE}


def test_without_any_data_nothing_is_spent_and_every_job_is_named() -> None:
    free = made()
    given = without_data(free, {job.index for job in free.jobs})
    run = simulate(given, MLBROKER)
    assert run.metrics["cost_usd"] == 0.0
    assert never_trained(given, run) == [job.index for job in given.jobs]


def test_data_that_comes_only_after_a_job_has_left_is_no_data() -> None:
    given = one_stream([(0, 3, 0, 10)], stay=2)
    run = simulate(given, MLBROKER)
    assert never_trained(given, run) == [0]
    assert run.value == 0.0
    certified = bound(given)
    assert certified is not None
    assert certified.value == 0.0
