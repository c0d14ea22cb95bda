"""Claims about Eris's market: what a bidder sees, what holds after a failure, which bids are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind
from tests.builders import rows
from tradewind import api
from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.engine.menu import OfferedMenu
from tradewind.model.errors import Refused, ScenarioError
from tradewind.model.job import Dataset, Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.report.life import life_of
from tradewind.systems.eris.study.lies import FLOOR, market, tiny
from tradewind.systems.eris.workload import CHUNK_BYTES
from tradewind.worlds.simulate import simulate

SELLERS = ("eris", "fcfs")
ALL = (*SELLERS, "eris-preemptive")


def with_bid(scenario: Scenario, number: int = 2, **changes: Any) -> Scenario:
    """The scenario with one bid changed."""
    jobs = tuple(replace(job, **changes) if job.index == number else job for job in scenario.jobs)
    return replace(scenario, jobs=jobs)


def work_of(job: Job, **changes: Any) -> Dataset:
    assert isinstance(job.work, Dataset)
    return replace(job.work, **changes)


def linear(*args: float) -> Utility:
    return Utility(of="delay_slots", shape="linear", args=args)


# ---------------------------------------------------------------------- what a bidder sees


def menus(scenario: Scenario, run: Run) -> list[OfferedMenu]:
    found = [life_of(scenario, run, job.id).market for job in scenario.jobs]
    return [menu for menu in found if isinstance(menu, OfferedMenu)]


def test_every_bidder_can_read_its_menu_and_took_its_best_offer() -> None:
    scenario = tiny(3, scale_slots=30.0, height_usd=600.0)
    run = simulate(scenario, policies.find("eris"), FLOOR)
    found = menus(scenario, run)
    assert [menu.job for menu in found] == [job.id for job in scenario.jobs]
    assert max(len(menu.offers) for menu in found) > 1
    for menu in found:
        payoffs = [line.payoff_usd for line in menu.offers if line.payoff_usd is not None]
        taken = [line for line in menu.offers if line.taken]
        assert [line.payoff_usd for line in taken] == ([max(payoffs)] if payoffs else [])
        assert len([line for line in menu.lines if line.startswith(">")]) == (2 if taken else 0)
        later = [(line.finish_us, -line.payment_usd) for line in menu.offers]
        assert later == sorted(later)  # a later completion is cheaper


def test_a_refusal_is_explained() -> None:
    scenario = with_bid(tiny(3), utility=linear(100.0, 5.0))
    run = simulate(scenario, policies.find("eris"), FLOOR)
    [menu] = [menu for menu in menus(scenario, run) if menu.job == "job-2"]
    assert "rises with the delay" in menu.lines[0]


def test_a_run_is_audited_again_from_its_tables_and_a_modified_payment_is_found() -> None:
    scenario = tiny(3)
    run = simulate(scenario, policies.find("eris"), FLOOR)
    assert api.check(scenario, run) == ()
    offers = dict(run.tables["offers"])
    paid = [float(usd) for usd in offers["payment_usd"]]
    for change in (0.01, -0.01):
        offers["payment_usd"] = [paid[0] + change, *paid[1:]]
        touched = replace(run, tables={**run.tables, "offers": offers})
        assert api.check(scenario, touched)[0].rule == "market.posted"
    posted = {**run.tables["posted"], "floor_usd": [1e-6, 5.0, 1e-6, 10.0]}
    touched = replace(run, tables={**run.tables, "posted": posted})
    assert api.check(scenario, touched)[0].rule == "market.posted"


# ---------------------------------------------------------------------- promises


class Turncoat:
    """Sells as `eris` does and then drops what it sold."""

    def __init__(self, seller: Any) -> None:
        self._seller = seller

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seller, name)

    def decide(self, view: Any) -> Any:
        from tradewind.model.decision import Decision, Plan

        busy = [
            i for i in view.active if (p := view.plan(i)) is not None and p.steps[-1].until_us > view.now_us
        ]
        return Decision(tuple(Plan(i, ()) for i in busy[:1]))


def test_a_seller_that_changes_a_plan_it_sold_is_caught() -> None:
    spec = policies.find("eris")
    false = replace(spec, factory=lambda *given: Turncoat(spec.factory(*given)))
    with pytest.raises(Refused, match=r"market\.binding"):
        simulate(tiny(3), false, FLOOR)


def test_after_a_failure_the_rest_is_planned_anew_at_no_charge_and_finishes() -> None:
    again = 0
    for seed in range(0, 60, 3):
        run = simulate(market(seed), policies.find("eris"))
        voided = {job for kind, job in rows(run, "events", "kind", "job") if kind == "voided"}
        finished = {job for kind, job in rows(run, "events", "kind", "job") if kind == "finished"}
        again += len(voided & finished)
        plans = [job for job, decision in rows(run, "plans", "job", "decision") if decision >= 0]
        assert set(plans) <= voided  # only cancelled plans are replaced
        paid = [job for job, _ in rows(run, "payments", "job", "usd")]
        assert len(paid) == len(set(paid))  # and paid for once
    assert again > 0


def test_a_failed_site_is_used_again_only_once_it_is_back() -> None:
    scenario = tiny(5)
    slot = scenario.setup.slot_us
    down, up = Change(2 * slot, "node_down", 0, 0, 0), Change(6 * slot, "node_up", 0, 0, 0)
    for name in ALL:
        run = simulate(replace(scenario, changes=(down, up)), policies.find(name))
        made = [int(at) for (at,) in rows(run, "plans", "at_us")]
        steps = rows(run, "steps", "plan", "from_us")
        for number, node in rows(run, "places", "step", "node"):
            plan, begin = steps[number]
            assert node != 0 or not (2 * slot <= made[plan] and 2 * slot <= begin < 6 * slot)


# ---------------------------------------------------------------------- bids that are refused


BAD_BIDS = [
    ("rises with the delay", {"utility": linear(100.0, 5.0)}),
    ("negative utility", {"utility": linear(-100.0, 0.0)}),
    ("more than the network can train", {"chunks": ((0, 10**6),)}),
    ("more than the network can train", {"chunks": ((0, 10**15),)}),
    ("0 epochs", {"epochs": 0}),
    ("no data", {"chunks": ()}),
    ("where it has none", {"chunks": ((0, 0), (1, 5))}),
    ("bids for the past", {"bid_from_us": -1}),
]


def _spoiled(scenario: Scenario, changes: dict[str, Any]) -> Scenario:
    if {"chunks", "epochs"} & changes.keys():
        changes = {"work": work_of(scenario.jobs[2], **changes)}
    return with_bid(scenario, **changes)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("why", "changes"), BAD_BIDS)
def test_a_bad_bid_is_refused_with_a_reason_and_the_market_goes_on(
    name: str, why: str, changes: dict[str, Any]
) -> None:
    scenario = tiny(3)
    run = simulate(_spoiled(scenario, changes), policies.find(name))
    texts = [text for job, text in rows(run, "answers", "job", "why") if job == 2]
    texts += [text for job, text in rows(run, "verdicts", "job", "reason") if job == 2]
    assert len(texts) == 1
    assert why in texts[0]
    assert run.metrics["jobs_completed"] == len(scenario.jobs) - 1


@pytest.mark.parametrize("name", SELLERS)
def test_a_worthless_bid_is_refused_for_its_price_not_for_lack_of_room(name: str) -> None:
    run = simulate(with_bid(tiny(3), utility=linear(0.0, 0.0)), policies.find(name))
    assert [why for job, why in rows(run, "answers", "job", "refused") if job == 2] == ["price"]


@pytest.mark.parametrize(
    ("where", "changes"),
    [
        ("epochs is -1", {"work": {"epochs": -1}}),
        ("chunks is -2", {"work": {"chunks": ((0, -2), (1, 5))}}),
        ("bid_from_us is", {"bid_from_us": 10**9 * 20}),
        ("chunk_epochs_per_worker_slot is 0", {"work": {"chunk_epochs_per_worker_slot_milli": 0}}),
        ("arrive_us is -5", {"arrive_us": -5}),
        ("worker is empty", {"worker": ()}),
    ],
)
def test_an_invalid_bid_is_reported_before_the_run_starts(where: str, changes: dict[str, Any]) -> None:
    scenario = tiny(3)
    if "work" in changes:
        changes = {"work": work_of(scenario.jobs[2], **changes["work"])}
    with pytest.raises(ScenarioError, match=where):
        with_bid(scenario, **changes)


@pytest.mark.parametrize("name", ["eris-paper", "eris-printed", "tiresias", "antman-elastic", "liquid"])
@pytest.mark.parametrize(("why", "changes"), [bid for bid in BAD_BIDS if "network" not in bid[0]])
def test_rivals_refuse_a_bad_bid_and_go_on_as_well(name: str, why: str, changes: dict[str, Any]) -> None:
    scenario = tiny(3)
    run = simulate(_spoiled(scenario, changes), policies.find(name))
    texts = rows(run, "answers", "job", "why") + rows(run, "verdicts", "job", "reason")
    assert [why in text for job, text in texts if job == 2] == [True]
    assert run.metrics["jobs_accepted"] > 1


@pytest.mark.parametrize("name", SELLERS)
@pytest.mark.parametrize(("why", "changes"), BAD_BIDS)
def test_other_jobs_are_served_as_if_a_bad_bid_had_never_arrived(
    name: str, why: str, changes: dict[str, Any]
) -> None:
    scenario = tiny(3)
    others = [replace(job, index=job.index - (job.index > 2)) for job in scenario.jobs if job.index != 2]
    without = simulate(replace(scenario, jobs=tuple(others), customers=()), policies.find(name))
    run = simulate(_spoiled(scenario, changes), policies.find(name))
    assert why
    assert _bought(run, scenario.jobs) == _bought(without, tuple(others))


def _bought(run: Run, jobs: Sequence[Job]) -> list[tuple[object, ...]]:
    """Every purchase with its steps."""
    offers = rows(run, "offers", "job", "number", "payment_usd", "finish_us", "plan")
    taken = dict(rows(run, "answers", "job", "taken"))
    steps, places = rows(run, "steps", "plan", "from_us"), rows(run, "places", "step", "node", "workers")
    found: list[tuple[object, ...]] = []
    for job, number, usd, finish, plan in offers:
        if taken[job] == number:
            mine = {s: begin for s, (of, begin) in enumerate(steps) if of == plan}
            where = [(mine[s], node, workers) for s, node, workers in places if s in mine]
            found.append((jobs[job].id, usd, finish, where))
    return found


def _shell(*words: str) -> int:
    return guarded(lambda: app(list(words), standalone_mode=False))


def test_a_market_reads_bad_bids_from_a_file_refuses_them_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command line: epochs 0, a bid before the start and a late one; then the explanations."""
    scenario = tiny(3)
    file, out = tmp_path / "market.json", tmp_path / "run.json"
    tradewind.dump(scenario, file)
    data = json.loads(file.read_text())
    data["jobs"][0]["arrive_us"] = -5
    data["jobs"][2]["work"]["epochs"] = 0
    data["jobs"][4]["arrive_us"] = data["jobs"][1]["arrive_us"] - 1
    file.write_text(json.dumps(data))
    assert _shell("run", str(file), "--policy", "eris", "-o", str(out)) == 0
    assert _shell("audit", str(file), str(out)) == 0
    again = tmp_path / "again.json"
    tradewind.dump(tradewind.load(file), again)
    assert tradewind.load(again).jobs == tradewind.load(file).jobs
    texts = {}
    for number in range(7):
        capsys.readouterr()
        assert _shell("explain", str(out), "--job", scenario.jobs[number].id) == 0
        texts[number] = capsys.readouterr().out
    assert "for the past" in texts[0]
    assert "0 epochs" in texts[2]
    assert "for the past" in texts[4]
    assert all("was taken" in texts[number] for number in (1, 3, 5, 6))


def test_a_job_without_a_bid_must_still_be_listed_by_arrival() -> None:
    scenario = tiny(3)
    late = replace(scenario.jobs[-1], arrive_us=scenario.jobs[0].arrive_us - 1)
    with pytest.raises(ScenarioError, match="listed by arrival"):
        replace(scenario, jobs=(*scenario.jobs[:-1], late))


@pytest.mark.parametrize("name", ALL)
def test_a_bid_that_needs_no_gpu_is_served(name: str) -> None:
    scenario = with_bid(tiny(3), worker=((0, 1000), (2, 2000)))
    run = simulate(scenario, policies.find(name))
    assert 2 in {job for kind, job in rows(run, "events", "kind", "job") if kind == "finished"}


@pytest.mark.parametrize("name", ALL)
def test_a_bid_whose_data_lies_at_one_site_is_served_and_sites_without_data_send_none(name: str) -> None:
    scenario = tiny(3)
    run = simulate(with_bid(scenario, work=work_of(scenario.jobs[2], chunks=((1, 27),))), policies.find(name))
    assert 2 in {job for kind, job in rows(run, "events", "kind", "job") if kind == "finished"}
    plans = {number for number, (job,) in enumerate(rows(run, "plans", "job")) if job == 2}
    steps = {number for number, (plan,) in enumerate(rows(run, "steps", "plan")) if plan in plans}
    assert {source for step, source in rows(run, "flows", "step", "src") if step in steps} == {1}


@pytest.mark.parametrize("name", SELLERS)
def test_a_bid_with_more_data_than_a_slot_can_carry_is_served_over_several(name: str) -> None:
    scenario = tiny(3, bandwidth_gb=0.05, chunks_per_worker=3.0)
    assert min(work_of(job).total * CHUNK_BYTES for job in scenario.jobs) > 50_000_000
    assert simulate(scenario, policies.find(name)).metrics["jobs_completed"] >= 4


def test_a_refusal_for_lack_of_bandwidth_says_so() -> None:
    scenario = tiny(3, bandwidth_gb=0.0, chunks_per_worker=12.0)
    at_home = with_bid(scenario, work=work_of(scenario.jobs[2], chunks=((1, 24),)))
    flat = simulate(at_home, policies.find("eris"))
    texts = dict(rows(flat, "answers", "job", "why"))
    assert "flat charge" in texts[2]
    moved = simulate(at_home, policies.find("eris"), {"data": "moved"})
    assert 2 in {job for kind, job in rows(moved, "events", "kind", "job") if kind == "finished"}
