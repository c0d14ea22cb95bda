"""Plans at list prices: worked out by hand on a small list, audited, certified, refused with the nearest miss."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tradewind import __version__
from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.files import documents, scenario_file
from tradewind.files.jobs_file import PlanFile, load_jobs
from tradewind.files.price_files import load_contract
from tradewind.files.yaml_text import dump
from tradewind.model.errors import InputError, TradewindError
from tradewind.planner.page import html
from tradewind.planner.plan import Overrides, Plan, make
from tradewind.planner.what_if import what_if
from tradewind.prices.builtin import catalogue
from tradewind.prices.table import read_egress, read_machines
from tradewind.prices.wan import measured, read_wan
from tradewind.service import config

LIST = """# date: 2026-08
cloud,region,machine,gpu,gpus,gpu_gb,usd_per_hour,spot_usd_per_hour
aws,us-east-1,a8,A100,8,40,20,5
aws,us-east-1,a1,A100,1,40,4,
aws,eu-west-1,h8,H100,8,80,30,
gcp,us-east1,t1,T4,1,16,0.5,
"""
EGRESS = """# date: 2026
# tiers aws: 0 x1, 1000 x0.5
src,dst,usd_per_gb
aws:us-east-1,aws:eu-west-1,0.02
aws:us-east-1,gcp:us-east1,0.1
aws:eu-west-1,aws:us-east-1,0.02
aws:eu-west-1,gcp:us-east1,0.1
gcp:us-east1,aws:us-east-1,0.12
gcp:us-east1,aws:eu-west-1,0.12
"""
WAN = "# date: 2026\nsrc,dst,gbps\n" + "".join(
    f"{row.rsplit(',', 1)[0]},1\n" for row in EGRESS.splitlines()[3:]
)
PRICES = read_machines(LIST, "list.csv", egress=read_egress(EGRESS, "egress.csv"))
PATHS = read_wan(WAN, "wan.csv")
JOB: dict[str, Any] = {"id": "j", "gpu": "A100", "gpu_hours": 80, "gpus": [8], "restart": 0, "checkpoint": 0}


def planned(*jobs: dict[str, Any], overrides: Overrides | None = None, **top: Any) -> Plan:
    file = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": [{**JOB, **job} for job in jobs], **top})
    return make(file, {}, PRICES, PATHS, overrides or Overrides())


def test_eight_gpus_for_ten_hours_cost_ten_hours_of_a_machine() -> None:
    found = planned({})
    (row,) = found.jobs
    assert found.usd == pytest.approx(200.0)
    assert found.least_usd == pytest.approx(200.0)
    assert html(found) == html(planned({}))
    assert '<td class="words"><div>1 x a8<small>8 A100</small></div></td>' in html(found)
    assert (row.region, row.what, row.start_h, row.finish_h) == ("aws:us-east-1", "1 x a8, 8 A100", 0, 10)
    assert row.slack_h == 7 * 24 - 10
    assert found.run.violations == ()
    assert tw.check(found.scenario, found.run) == ()


def test_one_gpu_rents_the_small_machine_and_eight_the_large_one() -> None:
    (row,) = planned({"gpus": [1, 8], "deadline": "4 d"}).jobs
    assert row.what == "1 x a8, 8 A100"  # 2.5 USD per GPU-hour against 4
    (row,) = planned({"gpus": [1], "gpu_hours": 8}).jobs
    assert row.what == "1 x a1, 1 A100"
    assert row.usd == pytest.approx(32.0)


def test_data_moves_where_that_is_cheaper_and_takes_its_time() -> None:
    """10 h at 20 USD, or 5 h at 30 USD and 1,000 GB at 0.02 USD: 200 against 170; 8,000 s are three slots."""
    found = planned(
        {"gpu": "A100 or H100", "speeds": {"H100": 2}, "of": "A100", "data": {"us-east-1": "1000 GB"}}
    )
    (row,) = found.jobs
    assert (row.region, row.start_h, row.finish_h) == ("aws:eu-west-1", 3, 8)
    assert row.usd == pytest.approx(170.0)
    assert found.usd == pytest.approx(170.0)
    assert row.moved == "1,000 GB from aws:us-east-1"
    assert row.next_best.startswith("+30.00 USD: 8 x A100 in aws:us-east-1")
    (row,) = planned(
        {"gpu": "A100 or H100", "speeds": {"H100": 2}, "of": "A100", "data": {"us-east-1": "3 TB"}}
    ).jobs
    assert row.region == "aws:us-east-1"


def test_tiers_of_egress_are_shared_by_jobs_and_the_bound_knows() -> None:
    """1,000 GB to another cloud cost 100 USD alone; two jobs pay 100 + 50."""
    job = {"gpu": "T4", "gpus": [1], "gpu_hours": 2, "data": {"us-east-1": "1000 GB"}}
    alone = planned(job)
    assert alone.usd == pytest.approx(101.0)
    both = planned(job, {**job, "id": "k"})
    assert both.usd == pytest.approx(152.0)
    assert both.least_usd == pytest.approx(152.0)
    assert both.least_usd <= both.usd
    assert tw.check(both.scenario, both.run) == ()


def test_the_rule_of_one_task_at_a_time_is_shown_with_the_deadlines_that_it_misses() -> None:
    """It asks for a quarter of 32 GPUs, 10 h; all of them take 2.5 h."""
    found = planned({"gpus": [8, 16, 32], "deadline": "6 h"})
    assert found.usd == pytest.approx(200.0)
    assert (
        found.compared[-1] == "SkyPilot's rule (our model of it): 200.00 USD; 1 of 1 jobs late or not served"
    )


def test_the_same_jobs_are_planned_under_other_assumptions() -> None:
    """20 USD for ten hours; 5 USD as spot; nothing is sold in the west; 8 h are too short."""
    file = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": [JOB]})
    found = make(file, {}, PRICES, PATHS, Overrides())

    def asked(text: str) -> str:
        return what_if(file, {}, found, Overrides(), text)

    assert asked("by=1 d") == "what if by=1 d: 200.00 USD, +0.0%"
    assert asked("spot=1:0.01") == "what if spot=1:0.01: 50.00 USD, -75.0%"
    assert asked("spot=none") == "what if spot=none: 200.00 USD, +0.0%"
    assert "not possible: jobs[j] fits no offer: 2.0 h late" in asked("by=8 h")
    assert "no machine with A100 is listed in eu" in asked("regions=eu")
    assert "interruptions_per_hour is 0; it must be above 0" in asked("spot=1:0")
    assert "every job bought alone: 200.00 USD, +0.0%" in found.compared
    for wrong, message in (
        ("spot=4", "4:0.05"),
        ("spot=0:1", "4:0.05"),
        ("by=soon", "2 d"),
        ("bye=1 d", "'by'"),
    ):
        with pytest.raises(TradewindError, match=message):
            asked(wrong)


def test_communication_slows_a_job_down() -> None:
    """An iteration of 8 s on one GPU is 1 s on eight, and 4.5 GB over 1,200 Gbit/s take 0.0525 s more."""
    work = {"gpu_hours": None, "iterations": 3600, "iteration_s": 1, "measured_gpus": 8}
    assert planned(work).jobs[0].finish_h == pytest.approx(1.0)
    assert planned({**work, "model": "4.5 GB"}).jobs[0].finish_h == pytest.approx(1.0525)


def test_jobs_take_turns_on_scarce_spot_machines() -> None:
    """One hour and ten hours on one machine at 5 USD: the plan of each job alone would send one to machines at 20 USD."""
    spot = {"machines": 1, "interruptions_per_hour": 0.01}
    short = {"id": "k", "spot": True, "gpu_hours": 8, "deadline": "1 d"}
    found = planned({"spot": True}, short, spot=spot)
    assert [row.what for row in found.jobs] == ["1 x a8 spot, 8 A100"] * 2
    assert found.usd == pytest.approx(55.0)
    assert found.least_usd == pytest.approx(55.0)
    assert sorted(row.start_h for row in found.jobs)[0] == 0
    assert found.jobs[0].start_h >= found.jobs[1].finish_h or found.jobs[1].start_h >= found.jobs[0].finish_h
    assert "without spot machines: 220.00 USD, +300.0%" in found.compared
    assert tw.check(found.scenario, found.run) == ()
    assert planned({"spot": True}, spot=spot, overrides=Overrides(spot=False)).usd == pytest.approx(200.0)


def test_a_later_turn_on_scarce_machines_is_found_where_the_first_job_cannot_wait() -> None:
    """The first job may wait ten hours for the machine that the second one needs at once."""
    spot = {"machines": 1, "interruptions_per_hour": 0.01}
    first, second = (
        {"id": name, "spot": True, "gpu_hours": 80, "deadline": until}
        for name, until in (("j", "22 h"), ("k", "11 h"))
    )
    found = planned(first, second, spot=spot)
    assert found.usd == found.least_usd == pytest.approx(100.0)
    assert [row.start_h for row in found.jobs] == [pytest.approx(found.jobs[1].until_h, abs=1.0), 0.0]


def test_spot_needs_a_number_and_a_rate() -> None:
    with pytest.raises(InputError, match="whose number and interruptions no list knows"):
        planned({"spot": True})


def test_jobs_that_start_later_are_planned_from_then_on() -> None:
    found = planned({"after": "5 h"}, {"id": "k"})
    assert [(row.id, row.start_h, row.finish_h) for row in found.jobs] == [("k", 0, 10), ("j", 5, 15)]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"deadline": "8 h"}, "2.0 h late on 8 x A100 in aws:us-east-1 (200 USD)"),
        ({"budget": 150}, "50.00 USD over budget on 8 x A100 in aws:us-east-1"),
        ({"deadline": "8 h", "budget": 150}, "the fastest is 2.0 h late and costs 200 USD"),
        ({"regions": "eu"}, "no machine with A100 is listed in eu"),
        ({"regions": "eu-wst-1"}, "Did you mean 'eu-west-1'"),
        ({"data": {"us-eats-1": 1}}, "Did you mean 'us-east-1'"),
        ({"gpu": "A10"}, "Did you mean 'A100'"),
        ({"gpu": "A100 or H100", "speeds": {"H10": 2}}, "Did you mean 'H100'"),
        ({"gpu_memory": "50 GB"}, "the largest has 40 GB"),
        ({"gpu_hours": 0}, "gpu_hours is 0"),
        ({"gpu_hours": None}, "give gpu_hours, or iterations"),
        ({"gpu_hours": None, "iterations": 5}, "need iteration_s or a profile"),
        ({"gpu_hours": None, "iterations": 5, "iteration_s": -1}, "takes -1 s"),
        ({"model": "1 GB"}, "gpu_hours say nothing"),
        ({"deadline": "10000 d"}, "240,000 slots of 1 h before its deadline; a plan has 20,000 at most"),
        ({"deadline": "30 min"}, "no whole slot of 1 h before its deadline"),
        ({"after": "2 d", "deadline": "1 d"}, "is not after its earliest start"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_nearest_miss(job: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        planned(job)
    assert message in str(error.value)


def test_little_data_that_moves_is_not_said_to_be_none() -> None:
    (row,) = planned({"data": {"aws:eu-west-1": "2 MB"}}).jobs
    assert row.moved == "0.002 GB from aws:eu-west-1"


def test_pairs_that_no_job_uses_may_be_unknown() -> None:
    one_way = {("aws:us-east-1", "aws:eu-west-1"), ("gcp:us-east1", "aws:us-east-1")}
    few = replace(PRICES.egress, prices={pair: PRICES.egress.prices[pair] for pair in one_way})
    paths = replace(PATHS, paths={pair: PATHS.paths[pair] for pair in one_way})
    jobs = [
        {**JOB, "gpu": "A100 or H100", "data": {"us-east-1": 10**9}},
        {**JOB, "id": "k", "gpu": "A100", "data": {"us-east1": 10**9}},
    ]
    file = PlanFile.model_validate(
        {"tradewind_jobs": 1, "jobs": [jobs[0], {**jobs[1], "regions": "us-east-1"}]}
    )
    found = make(file, {}, replace(PRICES, egress=few), paths, Overrides())
    assert [row.region for row in found.jobs] == ["aws:eu-west-1", "aws:us-east-1"]
    assert found.usd == make(file, {}, PRICES, PATHS, Overrides()).usd
    assert not found.run.violations


def test_a_pair_without_price_or_bandwidth_is_named() -> None:
    job = {**JOB, "gpu": "A100 or H100", "data": {"mars:red": 1}}
    file = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": [job]})
    far = read_egress(EGRESS + "mars:red,aws:us-east-1,1\n", "egress.csv")
    near = read_wan(WAN + "mars:red,aws:us-east-1,1\n", "wan.csv")
    with pytest.raises(InputError, match="no egress price is known from mars:red to aws:eu-west-1"):
        make(file, {}, replace(PRICES, egress=far), near, Overrides())
    more = {**JOB, "id": "k", "gpu": "A100 or T4", "data": {"mars:red": 1, "us-east-1": 1}}
    both = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": [job, more]})
    paths = read_wan(WAN.replace("aws:us-east-1,gcp:us-east1,1\n", "") + "mars:red,aws:us-east-1,1\n", "w")
    with pytest.raises(InputError) as error:
        make(both, {}, replace(PRICES, egress=far), paths, Overrides())
    said = str(error.value)  # all pairs of both tables at once
    assert "known from mars:red to aws:eu-west-1, from mars:red to gcp:us-east1; add the 2 pairs" in said
    assert "no bandwidth is known from aws:us-east-1 to gcp:us-east1, from mars:red to aws:eu-west-1" in said
    with pytest.raises(
        InputError, match="its data can reach; no data moves to or from mars:red: egress or band"
    ):
        make(file, {}, replace(PRICES, egress=far), PATHS, Overrides())


def test_a_price_list_alone_serves_jobs_whose_data_lies_where_they_run() -> None:
    lonely = read_machines(LIST.replace("aws,us-east-1", "own,cellar"), "list.csv", egress=PRICES.egress)
    file = PlanFile.model_validate(
        {"tradewind_jobs": 1, "jobs": [{**JOB, "data": {"cellar": "900 GB"}}, {**JOB, "id": "k"}]}
    )
    found = make(file, {}, lonely, PATHS, Overrides())
    assert [row.region for row in found.jobs] == ["own:cellar", "own:cellar"]
    assert "no data moves to or from own:cellar: egress or bandwidth is not known" in " ".join(found.notes)
    elsewhere = file.model_copy(update={"jobs": [file.jobs[0].model_copy(update={"regions": ("gcp",)})]})
    with pytest.raises(InputError, match="cannot run"):
        make(elsewhere, {}, lonely, PATHS, Overrides())


def test_money_times_a_hundred_changes_no_decision_and_the_order_of_jobs_no_cost() -> None:
    jobs: list[dict[str, Any]] = [
        {"gpu": "A100 or H100", "speeds": {"H100": 2}, "of": "A100", "data": {"us-east-1": "700 GB"}},
        {"id": "k", "gpus": [1, 8], "gpu_hours": 20},
    ]
    found, turned = planned(*jobs), planned(*jobs[::-1])
    assert turned.usd == pytest.approx(found.usd)
    dear = replace(
        PRICES,
        machines=tuple(replace(m, usd_per_hour=100 * m.usd_per_hour) for m in PRICES.machines),
        egress=replace(
            PRICES.egress,
            prices={
                pair: p._replace(usd_per_gb=100 * p.usd_per_gb) for pair, p in PRICES.egress.prices.items()
            },
        ),
    )
    file = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": [{**JOB, **job} for job in jobs]})
    again = make(file, {}, dear, PATHS, Overrides())
    assert [row.what for row in again.jobs] == [row.what for row in found.jobs]
    assert again.usd == pytest.approx(100 * found.usd)


def test_splitting_data_in_two_equal_parts_changes_nothing_in_one_region() -> None:
    at_once = planned({"gpu": "H100", "data": {"us-east-1": "100 GB"}})
    assert at_once.usd == pytest.approx(302.0)
    assert planned({"gpu": "H100", "data": {"us-east-1": "0 B"}}).jobs[0].start_h == 0


def test_the_command_plans_explains_and_writes_files_that_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "profile.yaml").write_text(
        "tradewind_profile: 1\ngpu: A100\nranks: 2\niteration_s: 0.5\nrestart_s: 30\n"
    )
    jobs = [
        {"id": "vision", "gpu": "A100 or H100", "iterations": 500000, "profile": "profile.yaml", "gpus": "4-16",
         "data": {"aws:us-east-1": "800 GB"}, "deadline": "2 d"},
        {"id": "small", "gpu": "T4 or L4", "gpu_hours": 30, "gpus": [1, 2, 4], "regions": "eu"},
    ]  # fmt: skip
    path, run, scenario = tmp_path / "jobs.yaml", tmp_path / "run.json", tmp_path / "s.yaml"
    path.write_text(dump({"tradewind_jobs": 1, "name": "autumn", "jobs": jobs}))
    assert load_jobs(path)[1]["vision"].ranks == 2

    def call(*more: str) -> tuple[int, str, str]:
        code = guarded(lambda: app(["plan", str(path), *more], standalone_mode=False))
        said = capsys.readouterr()
        return code, said.out, said.err

    code, out, err = call("-o", str(run), "--scenario", str(scenario), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["usd"] == pytest.approx(found["least_usd"])
    assert found["prices"]["hash"] == catalogue().hash
    assert found["wan"]["hash"] == measured().hash
    assert "days old" in err
    assert guarded(lambda: app(["audit", str(scenario), str(run)], standalone_mode=False)) == 0
    capsys.readouterr()
    page = tmp_path / "plan.html"
    code, out, _ = call("--page", str(page))
    assert code == 0
    assert "certified" in out
    drawn = page.read_text()
    for word in (
        "What it costs to be done earlier",
        "Nodes and flows under plan",
        "Jobs under plan",
        "vision",
        "small",
        "<h1>Plan of ",
        "Assumed for vision: speed H100 2 x A100; checkpoint 1 min.",
        f"Tradewind {__version__}",
    ):
        assert word in drawn
    assert "rotate(-90" not in drawn  # no label on its side, which phones cut
    code, _, err = call("--page", str(tmp_path / "plan.txt"), "--scenario", str(tmp_path / "early.yaml"))
    assert code == 2
    assert "--page" in err
    assert not (tmp_path / "early.yaml").exists()
    code, out, _ = call("--explain", "vision")
    assert code == 0
    assert "cost against finish" in out
    assert "500,000 iterations, " in out
    code, out, _ = call("--explain", "small")
    assert "\n30.0 GPU-hours of T4; " in out
    assert "misses" not in out
    assert call("--explain", "visoin")[2].endswith("Did you mean 'vision'?\n")
    code, _, err = call("--by", "1 h")
    assert code == 2
    assert "h late on" in err
    code, out, _ = call("--spot", "2:0.05", "--what-if", "by=3 d")
    assert code == 0
    assert "what if by=3 d" in out
    assert call("--spot", "2")[0] == 2
    assert "contradict each other" in call("--spot", "2:0.05", "--on-demand")[2]
    code, _, err = call("--budget", "1")
    assert code == 2
    assert "USD over budget" in err


SPLIT: dict[str, Any] = {
    "gpu": "A100 or H100", "speeds": {"H100": 1}, "of": "A100", "gpus": [16], "iterations": 1000, "iteration_s": 36,
    "measured_gpus": 16, "gpu_hours": None, "model": "1 GB", "data": {"us-east-1": "9 TB", "eu-west-1": "9 TB"},
}  # fmt: skip


def test_two_regions_train_together_where_moving_the_data_is_dearer() -> None:
    """10 h on a machine at 20 USD and one at 30 USD; 10 GB each way at 0.02 USD; 9 TB would cost 180 USD."""
    found = planned({**SPLIT, "sync_every": 100})
    (row,) = found.jobs
    assert row.region == "aws:eu-west-1 + aws:us-east-1"
    assert row.what == "1 x h8 + 1 x a8, 16 H100 and A100"
    assert row.moved == "–"
    assert found.usd == pytest.approx(row.usd)
    assert found.usd == pytest.approx(row.finish_h * 50 + 2 * 10 * 0.02)
    assert row.finish_h == pytest.approx(10, rel=0.02)
    assert found.least_usd == pytest.approx(found.usd, rel=1e-6)
    alone = planned(SPLIT)
    assert " + " not in alone.jobs[0].region
    assert alone.usd > found.usd
    assert tw.check(found.scenario, found.run) == ()
    assert html(found) == html(planned({**SPLIT, "sync_every": 100}))


def test_what_being_late_costs_is_shown_and_certified() -> None:
    """Three slots of moving and 5 h of H100 for 170 USD, an hour late, or 10 h at once for 200 USD."""
    job = {"gpu": "A100 or H100", "speeds": {"H100": 2}, "of": "A100", "data": {"us-east-1": "1000 GB"}}
    assert planned(job).jobs[0].finish_h == 8
    by_five = {**job, "due": "7 h", "late": 1}
    found = planned(by_five)
    assert found.jobs[0].finish_h == 8
    assert found.usd == pytest.approx(170.0)
    assert found.late_usd == pytest.approx(1.0)
    assert found.least_usd == pytest.approx(171.0)
    assert found.gap_percent == pytest.approx(0.0, abs=1e-6)
    assert tw.check(found.scenario, found.run) == ()


def test_budgets_count_list_prices_and_are_kept_by_every_policy() -> None:
    """1,500 GB to another cloud cost 100 + 25 USD, 150 at list price."""
    job = {"gpu": "T4", "gpus": [1], "gpu_hours": 2, "data": {"us-east-1": "1500 GB"}, "budget": 151}
    found = planned(job)
    assert found.usd == pytest.approx(126.0)
    assert found.scenario.jobs[0].spend_cap_usd == 151
    with pytest.raises(InputError, match=r"1.00 USD over budget on 1 x T4 in gcp:us-east1"):
        planned({**job, "budget": 150})


def test_the_bill_is_divided_by_tenant_with_what_their_jobs_save_together() -> None:
    away = {"gpu": "H100", "data": {"us-east-1": "1000 GB"}, "gpu_hours": 8}
    found = planned(
        {**away, "id": "a", "tenant": "red"},
        {**away, "id": "b", "tenant": "blue"},
        {"id": "c", "tenant": "red"},
    )
    assert [row.tenant for row in found.jobs] == ["red", "blue", "red"]
    assert list(found.tenants) == ["blue", "red"]
    assert sum(found.tenants.values()) == pytest.approx(found.usd)
    assert found.tenants["blue"] == pytest.approx(50.0)
    assert found.by_tenant == "by tenant: blue 50.00 USD, red 250.00 USD"
    assert found.by_tenant in html(found).replace("<li>By", "<li>by")
    assert found.as_json()["tenants"] == dict(found.tenants)
    assert planned({}).by_tenant == ""


def test_a_plan_without_a_name_is_called_as_its_file(tmp_path: Path) -> None:
    for text, name in (("", "winter"), ("name: autumn\n", "autumn")):
        path = tmp_path / "winter.yaml"
        path.write_text(f"tradewind_jobs: 1\n{text}jobs:\n- {{id: a, gpu: H100, gpu_hours: 1}}\n")
        assert load_jobs(path)[0].name == name


def test_another_kind_of_file_is_called_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text("tradewind_jobs: 1\njobs: []\n")
    with pytest.raises(InputError, match="the file is jobs for `tradewind plan`; needed is a contract"):
        load_contract(path)
    path.write_text("tradewind_contract: 1\n")
    with pytest.raises(InputError, match=r"the file is a contract, .* needed is jobs"):
        load_jobs(path)


def test_an_unknown_field_is_answered_with_all_that_are_known(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text("tradewind_jobs: 1\njobs: [{id: a, gpu: H100, gpu_hours: 1, xyz: 1}]\n")
    with pytest.raises(InputError, match=r"xyz is not a known field. Known: id, tenant, .* command, env\.$"):
        load_jobs(path)


def test_a_planned_scenario_carries_commands() -> None:
    found = planned({"command": ["python3", "train.py"], "env": {"SIZE": "3"}})
    (job,) = found.scenario.jobs
    assert (job.command, job.env) == (("python3", "train.py"), (("SIZE", "3"),))
    told = "its command is told to stop after 28,800 iterations, 10 s each on one A100"
    assert found.jobs[0].assumed == (told, "no deadline: 7 days")
    counted = {"gpu_hours": None, "iterations": 100, "iteration_s": 1, "command": ["x"]}
    assert planned(counted).jobs[0].assumed == ("no deadline: 7 days",)


def test_the_example_is_the_file_of_the_page_and_can_be_planned() -> None:
    root = Path(__file__).parents[2]
    page = re.search(r"```yaml\n(.*?)```", (root / "docs" / "plan.md").read_text(), flags=re.DOTALL)
    assert page
    example = root / "examples" / "plan.yaml"
    assert example.read_text().partition("\n")[2] == page.group(1)
    file, profiles = load_jobs(example)
    found = make(file, profiles, catalogue(), measured(), Overrides())
    assert [row.id for row in found.jobs] == ["vision", "language", "large"]
    assert found.run.violations == ()


def test_a_planned_scenario_is_the_setup_of_a_service(tmp_path: Path) -> None:
    found = planned(
        {"gpu": "A100 or H100", "data": {"us-east-1": "100 GB"}},
        {"id": "k", "spot": True},
        spot={"machines": 1, "interruptions_per_hour": 0.1},
    )
    path = tmp_path / "s.yaml"
    scenario_file.dump(found.scenario, path)
    text = documents.read(path)
    setup = {key: text[key] for key in ("objective", "slot_us", "resources", "nodes", "links", "egress")}
    given = {
        "tradewind_service": 1, "name": "plan", "setup": {**setup, "pools": text.get("pools", []), "window_slots": 48},
        "policy": {"name": "broker"}, "tenants": {"team": {"any_command": True}},
    }  # fmt: skip
    served = config.parse(given, path).setup
    assert [node.machine for node in served.nodes] == [node.machine for node in found.scenario.setup.nodes]
    assert served.rent == found.scenario.setup.rent
    assert served.egress == found.scenario.setup.egress


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"late": 3}, "due and late go together"),
        ({"due": "9 d", "late": 3}, "due is not between"),
        ({"sync_every": 5}, "give model, its size"),
    ],
)
def test_due_dates_and_two_regions_need_their_facts(job: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned(job)
