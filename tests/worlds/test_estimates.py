"""Declarations that are wrong: what is measured of jobs, what policies may believe, and what that wins."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tradewind.engine.ledger import Ledger
from tradewind.engine.stimuli import from_json, to_json
from tradewind.model.errors import ScenarioError, Unsupported
from tradewind.model.estimate import ALL, Factors, Measured, believed
from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import US_PER_S
from tradewind.model.view import Event
from tradewind.registry import policies

S = US_PER_S


def fixed(index: int, runtime_s: int, tenant: str = "", arrive_s: int = 0) -> Job:
    work = Fixed(runtime_us=runtime_s * S)
    return Job(
        index=index, id=f"j{index}", arrive_us=arrive_s * S, work=work, worker=((0, 1000),), tenant=tenant
    )


def one_gpu(jobs: list[Job], paces: list[float]) -> Scenario:
    setup = Setup(
        resources=("gpu",), nodes=(Node(name="a", kind="server", capacity_milli=(1000,)),), slot_us=10 * S,
        horizon_us=10_000 * S, objective="jct_mean_s",
    )  # fmt: skip
    customers = tuple(Customer(pace_milli=round(1000 * pace)) for pace in paces)
    return Scenario(name="wrong", setup=setup, jobs=tuple(jobs), customers=customers)


def finished(run: tw.Run) -> dict[int, float]:
    events = run.tables["events"]
    rows = zip(events["at_us"], events["kind"], events["job"], strict=True)
    return {int(job): int(at) / S for at, kind, job in rows if kind == "finished"}


def moved(run: tw.Run) -> dict[str, Any]:
    """The table `estimates`, a microsecond later."""
    told = run.tables["estimates"]
    return {"estimates": {**told, "at_us": [int(at) + 1 for at in told["at_us"]]}}


def measured(factor: float, error_s: float = 0.0) -> tuple[Measured, ...]:
    return (Measured(ALL, 10, factor, error_s, 1.0),)


def test_a_job_takes_its_true_time_and_is_measured_when_it_completes() -> None:
    scenario = one_gpu([fixed(0, 100), fixed(1, 100)], [1.5, 0.5])
    run = tw.run(scenario, policy="fifo")
    assert finished(run) == {0: 150.0, 1: 200.0}
    assert tw.check(scenario, run) == ()
    told = run.tables["estimates"]
    assert list(zip(told["at_us"], told["job"], told["seconds"], strict=True)) == [
        (150 * S, 0, 1.5),
        (200 * S, 1, 0.5),
    ]


def test_a_run_that_tells_another_pace_than_the_world_has_breaks_a_rule() -> None:
    scenario = one_gpu([fixed(0, 100)], [1.5])
    run = tw.run(scenario, policy="fifo")
    lie = {**run.tables, "estimates": {**run.tables["estimates"], "seconds": [1.2]}}
    found = tw.check(scenario, replace(run, tables=lie))
    assert [violation.rule for violation in found] == ["work.measured"]
    times = [int(at) + (int(at) == 150 * S) for at in run.tables["events"]["at_us"]]
    late = {**run.tables, "events": {**run.tables["events"], "at_us": times}}
    assert "work.finish" in {v.rule for v in tw.check(scenario, replace(run, tables=late | moved(run)))}


def test_files_keep_paces_and_estimates(tmp_path: Path) -> None:
    scenario = one_gpu([fixed(0, 100)], [1.25])
    tw.dump(scenario, tmp_path / "s.json")
    assert tw.load(tmp_path / "s.json").customers == scenario.customers
    run = tw.run(scenario, policy="fifo")
    tw.save(run, tmp_path / "r.json")
    assert tw.check(scenario, tw.load_run(tmp_path / "r.json")) == ()
    right = replace(scenario, customers=(Customer(),))
    assert "estimates" not in tw.run(right, policy="srtf").tables
    assert "estimates" not in tw.run(right, policy="srtf").params


@pytest.mark.parametrize("pace", [0.001, 200.0])
def test_an_absurd_pace_is_refused(pace: float) -> None:
    with pytest.raises(ScenarioError, match=r"between 0\.01 and 100"):
        one_gpu([fixed(0, 100)], [pace])


def test_no_bound_is_claimed_where_declarations_are_wrong() -> None:
    assert tw.run(one_gpu([fixed(0, 100)], [1.0]), policy="fifo", bound=True).bound is not None
    assert tw.run(one_gpu([fixed(0, 100)], [0.5]), policy="fifo", bound=True).bound is None


def test_the_shortest_job_by_measurement_goes_first() -> None:
    """Tenant a's jobs take twice what they declare, b's half: after one of each the order of the next turns around."""
    jobs = [fixed(k, 100, "ab"[k % 2]) for k in range(8)]
    late = [fixed(8, 90, "a", 2000), fixed(9, 110, "b", 2000)]
    scenario = one_gpu([*jobs, *late], [2.0, 0.5] * 5)
    by_word = finished(tw.run(scenario, policy="srtf"))
    run = tw.run(scenario, policy="srtf", params={"estimates": "measured"})
    assert tw.check(scenario, run) == ()
    assert run.params["estimates"] == "measured"
    assert by_word[8] < by_word[9]
    assert finished(run)[9] < finished(run)[8]
    assert run.value < tw.run(scenario, policy="srtf").value


def test_estimates_shrink_to_the_tenant_and_to_all_and_own_measurements_count_most() -> None:
    factors = Factors()
    stranger = fixed(99, 100, "c")
    assert factors.of(stranger).factor == 1.0
    assert factors.of(stranger).error == pytest.approx(math.sqrt(0.25 + 0.25 + 0.25 / 4))
    for k in range(20):
        factors.take(fixed(k, 100, "a"), 0, 5, measured(2.0 if k % 2 else 1.8))
        factors.take(fixed(20 + k, 100, "b"), 0, 5, measured(0.5))
    a, b, c = (factors.of(fixed(90, 100, tenant)) for tenant in "abc")
    assert 1.7 < a.factor < 2.0
    assert 0.5 <= b.factor < 0.6
    assert b.factor < c.factor < a.factor
    assert a.error < c.error
    assert a.measured == ()
    own = factors.of(fixed(0, 100, "a"))
    assert own.factor == pytest.approx(1.8, rel=0.01)
    assert (own.done, own.measured) == (5, measured(1.8))
    unsure = Factors()
    unsure.take(fixed(0, 100, "a"), 0, 5, measured(4.0, error_s=-1.0))
    assert 1.5 < unsure.of(fixed(0, 100, "a")).factor < 4.0  # few iterations weigh less
    again = Factors()
    again.restore(factors.save())
    assert again.of(fixed(90, 100, "a")) == a
    assert again.of(fixed(0, 100, "a")) == own


def test_a_view_offers_the_estimate_beside_the_declaration_and_keeps_it() -> None:
    ledger = Ledger(one_gpu([fixed(0, 100)], [1.0]).setup)
    job = fixed(0, 100, "a")
    event = Event(5, "measured", 0, 7, measured(1.5))
    assert from_json(to_json(event)) == event
    ledger.take([Event(0, "arrived", 0, 0, job), event])
    assert ledger.estimate(job).factor == pytest.approx(1.5, rel=0.01)
    assert ledger.job(0).work == Fixed(runtime_us=100 * S)
    again = Ledger(ledger.setup)
    again.restore(ledger.save(), "ledger")
    assert again.estimate(job) == ledger.estimate(job)


def test_believed_jobs_declare_what_was_measured() -> None:
    assert believed(fixed(0, 100), 1.5).work == Fixed(runtime_us=150 * S)
    rounds = replace(fixed(0, 1), work=Rounds(count=10, compute_us=100), model_bytes=1000)
    slower = believed(rounds, 2.0)
    assert (slower.work, slower.model_bytes) == (Rounds(count=10, compute_us=200), 2000)
    data = Dataset(chunks=((0, 4),), chunk_bytes=10, epochs=1, chunk_epochs_per_worker_slot_milli=3000)
    assert believed(replace(fixed(0, 1), work=data), 2.0).work == replace(
        data, chunk_epochs_per_worker_slot_milli=1500
    )


def _wrong(name: str, seed: int, **given: object) -> Scenario:
    """A generated scenario whose tenants declare wrong by factors from 0.5 to 2."""
    scenario = tw.generate(name, seed=seed, **given)
    jobs = tuple(replace(job, tenant=f"t{job.index % 4}") for job in scenario.jobs)
    paces = tuple(round(1000 * 0.5 * 4 ** (job.index % 4 / 3)) for job in jobs)
    customers = tuple(
        replace(customer, pace_milli=pace) for customer, pace in zip(scenario.customers, paces, strict=True)
    )
    return replace(scenario, jobs=jobs, customers=customers)


@pytest.mark.parametrize("estimates", ["declared", "measured"])
@pytest.mark.parametrize(
    ("workload", "given"),
    [
        ("gadget", {"jobs": 15, "slots": 12, "servers": 6, "ring_time": True}),
        ("dps", {"jobs": 60, "slots": 60, "servers": 3, "worker_types": 2, "server_types": 2}),
        ("eris", {"jobs": 12, "slots": 20, "sites": 4}),
    ],
)
def test_every_system_runs_under_audit_where_declarations_are_wrong(
    workload: str, given: dict[str, object], estimates: str
) -> None:
    scenario = _wrong(workload, 1, **given)
    run = tw.run(scenario, policy=workload, params={"estimates": estimates})
    assert tw.check(scenario, run) == ()
    assert len(run.tables["estimates"]["at_us"]) > 0


def test_sold_plans_of_slow_datasets_are_not_enough_unless_estimates_are_used() -> None:
    scenario = _wrong("eris", 1, jobs=30, slots=40, sites=4)
    declared, corrected = (
        tw.run(scenario, policy="eris", params={"estimates": how}) for how in ("declared", "measured")
    )

    def share(run: tw.Run) -> float:
        states = list(run.tables["outcomes"]["state"])
        return states.count("finished") / (states.count("finished") + states.count("unfinished"))

    assert share(declared) < share(corrected)
    with pytest.raises(Unsupported, match="sold for good"):
        tw.run(scenario, policy="eris-preemptive")


@pytest.mark.parametrize("name", ["gadget", "eris", "dps", "srtf", "srsf"])
def test_policies_that_decide_by_times_take_the_parameter(name: str) -> None:
    assert policies.find(name).params["estimates"].choices == ("declared", "measured")
