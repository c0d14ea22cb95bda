"""plan-wan: a plan as data and as text, its bound checked, prices and pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tradewind as tw
from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.cli.plan_wan import run
from tradewind.model.errors import InputError, LookupFailed
from tradewind.systems.apsp.plan.report import plan
from tradewind.systems.apsp.plan.request import PlanRequest, scenario_of
from tradewind.systems.apsp.workload.sizes import model_bytes


def test_a_plan_for_b4_is_optimal_with_every_site_on_a_path() -> None:
    found = plan(PlanRequest(topology="b4"))
    assert found["ratio"] == 1.0
    assert found["transfer_s"] == pytest.approx(found["bound_s"])
    assert found["epoch_s"] > found["transfer_s"]  # latency
    assert len(found["flows"]) == 11
    assert all(flow["path"][-1] == found["server"] for flow in found["flows"])
    assert {row["way"] for row in found["alternatives"]} == {"splittable", "aggregation tree", "ring"}
    assert all(row["epoch_s"] >= found["epoch_s"] * (1 - 1e-9) for row in found["runners_up"])


def epoch_of_run(scenario: tw.Scenario, gap: float) -> float:
    """`epoch_s` of an audited run of the `apsp` policy."""
    run = tw.run(scenario, policy="apsp", params={"gap": gap})
    assert tw.check(scenario, run) == ()
    return run.metrics["epoch_s"]


def server_only_at(scenario: tw.Scenario, site: str) -> tw.Scenario:
    """The scenario with a resource that the server needs and only one site has."""
    setup = scenario.setup
    nodes = tuple(
        replace(node, capacity_milli=(*node.capacity_milli, 1000 * (node.name == site)))
        for node in setup.nodes
    )
    jobs = tuple(replace(job, server=((len(setup.resources), 1000),)) for job in scenario.jobs)
    return replace(
        scenario, setup=replace(setup, resources=(*setup.resources, "slot"), nodes=nodes), jobs=jobs
    )


SEVERAL = pytest.mark.parametrize(
    "asked",
    [
        PlanRequest(topology="b4"),
        PlanRequest(topology="b4", transport="cut-through", model="1 GB"),
        PlanRequest(topology="b4", rule="inverse", seed=3, model="1 MB"),
        PlanRequest(topology="internet2", rule="uniform", seed=3, shared=True),
        PlanRequest(
            topology="internet2", transport="chunks:4", model="12.345 MB", workers="Seattle,NewYork,Houston"
        ),
    ],
)


@SEVERAL
def test_an_epoch_takes_as_long_as_in_a_simulated_run(asked: PlanRequest) -> None:
    found = plan(asked)
    scenario = scenario_of(asked, asked.read())
    assert epoch_of_run(server_only_at(scenario, found["server"]), asked.gap) == found["epoch_s"]


@SEVERAL
def test_the_policy_by_itself_is_no_faster_and_a_note_says_where_latency_decides(asked: PlanRequest) -> None:
    found = plan(asked)
    free = epoch_of_run(scenario_of(asked, asked.read()), asked.gap)
    assert free >= found["epoch_s"]
    assert (free > found["epoch_s"]) == any("latency decides" in note for note in found["notes"])


def test_the_plan_is_that_of_the_apsp_workload_with_latency() -> None:
    scenario = tw.generate("apsp", seed=2, topology="internet2", rule="power", latency=True, epochs=3)
    run = tw.run(scenario, policy="apsp", params={"gap": 0.01})
    found = plan(PlanRequest(topology="internet2", rule="power", seed=2))
    assert found["epoch_s"] == run.metrics["epoch_s"]


def test_epochs_with_sizes_per_site_and_prices_are_those_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    request = PlanRequest(topology=str(path), model="100 MB", data="d=3000", usd_per_gb=0.5)
    found = plan(request)
    assert epoch_of_run(scenario_of(request, request.read()), request.gap) == found["epoch_s"]


def test_workers_may_be_named_and_an_unknown_one_is_suggested() -> None:
    found = plan(PlanRequest(topology="internet2", workers="Seattle, NewYork", transport="cut-through"))
    assert len(found["flows"]) in (1, 2)
    with pytest.raises(LookupFailed, match="Seattle"):
        plan(PlanRequest(topology="internet2", workers="Seatle"))


def test_sizes_are_read_and_unknown_models_suggested() -> None:
    assert model_bytes("vgg") == 552_000_000
    assert model_bytes("300 MB") == 300_000_000
    with pytest.raises(LookupFailed, match="resnet50"):
        model_bytes("resnet5")
    with pytest.raises(InputError, match="not a size"):
        model_bytes("300 parsecs")


def test_without_a_topology_the_shipped_ones_are_offered() -> None:
    with pytest.raises(InputError, match="b4 or internet2"):
        run(PlanRequest(topology=""), as_json=False, output=None)


def test_the_command_prints_text_or_json_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(PlanRequest(topology="internet2"), as_json=False, output=tmp_path / "wan")
    text = capsys.readouterr().out
    assert "Parameter server at" in text
    assert "certificate checked" in text
    assert (tmp_path / "wan.svg").read_text().startswith("<svg")
    assert (tmp_path / "wan.png").stat().st_size > 5000
    run(PlanRequest(topology="internet2"), as_json=True, output=None)
    assert json.loads(capsys.readouterr().out)["certificate_checked"] is True


def test_priced_links_give_a_front_of_time_against_cost(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = ["src,dst,gbps,rtt_ms,usd_per_gb"]
    for a, b, gbps, usd in (
        ("a", "b", 1, 0.01),
        ("b", "c", 1, 0.01),
        ("a", "c", 8, 0.2),
        ("c", "d", 4, 0.02),
    ):
        rows += [f"{a},{b},{gbps},10,{usd}", f"{b},{a},{gbps},10,{usd}"]
    path.write_text("\n".join(rows) + "\n")
    found = plan(PlanRequest(topology=str(path)))
    front = found["pareto"]
    assert len(front) >= 2
    costs = [point["usd_per_epoch"] for point in front]
    times = [point["transfer_s"] for point in front]
    assert costs == sorted(costs)
    assert times == sorted(times, reverse=True)
    assert times[-1] == pytest.approx(found["transfer_s"])


def test_bad_rules_bandwidths_and_transports_are_reported() -> None:
    for request, message in (
        (PlanRequest(topology="b4", rule="powr"), "power"),
        (PlanRequest(topology="b4", rule="power", min_mbps=9000), "1 to 5000"),
        (PlanRequest(topology="b4", transport="warp"), "cut-through"),
        (PlanRequest(topology="b4", model="0 MB"), "no bytes"),
        (PlanRequest(topology="b4", rule="file"), "no bandwidth in the file"),
    ):
        with pytest.raises(InputError, match=message):
            plan(request)


def test_one_worker_site_needs_no_traffic(capsys: pytest.CaptureFixture[str]) -> None:
    run(PlanRequest(topology="internet2", workers="Seattle"), as_json=False, output=None)
    assert "takes 0 s" in capsys.readouterr().out
    found = plan(PlanRequest(topology="internet2", workers="Seattle"))
    assert (found["server"], found["epoch_s"], found["flows"]) == ("Seattle", 0.0, [])


PAIRS = """src,dst,gbps,rtt_ms,usd_per_gb
a,b,4,10,0.02
b,c,1,10,0.01
a,c,4,10,0.09
c,d,2,10,
"""


def test_a_site_without_priced_links_is_left_out_of_the_front_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    found = plan(PlanRequest(topology=str(path)))
    assert found["pareto_without"] == ["d"]
    assert found["pareto"]
    assert found["usd_per_epoch"] is None, "the plan itself serves d, whose price is unknown"
    assert guarded(lambda: app(["plan-wan", str(path)], standalone_mode=False)) == 0
    assert "--default-usd-per-gb" in capsys.readouterr().out


def test_a_price_for_links_that_have_none_brings_every_site_into_the_front(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    found = plan(PlanRequest(topology=str(path), usd_per_gb=0.5))
    assert found["pareto_without"] == []
    cheapest = found["pareto"][0]
    # 92 MB there and back for each site: the dear link of d once, the cheap ones for the others
    assert cheapest["usd_per_epoch"] >= 2 * 0.092 * 0.5
    assert any("--default-usd-per-gb" in note for note in found["notes"])
    with pytest.raises(InputError, match="0 or more"):
        plan(PlanRequest(topology=str(path), usd_per_gb=-1.0))


def test_sites_may_exchange_different_amounts(tmp_path: Path) -> None:
    """Twice the data of one site costs it twice the traffic, and twice the data everywhere takes twice the time."""
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    one = plan(PlanRequest(topology=str(path), model="100 MB", usd_per_gb=0.5))
    (tmp_path / "data.csv").write_text("site,mb\na,200\nb,200\nc,200\nd,200\n")
    (tmp_path / "data.json").write_text('{"a": 200, "b": "200 MB", "c": 200, "d": 0.2e3}')
    for data in ("a=200,b=200 MB,c=0.2 GB,d=200", str(tmp_path / "data.csv"), str(tmp_path / "data.json")):
        two = plan(PlanRequest(topology=str(path), model="100 MB", usd_per_gb=0.5, data=data))
        assert two["transfer_s"] == pytest.approx(2 * one["transfer_s"])
        assert two["server"] == one["server"]
    far = plan(PlanRequest(topology=str(path), model="100 MB", data="d=3000"))
    assert far["server"] == "d", "the site with most data should host the server"
    assert far["site_bytes"] == {"d": 3_000_000_000}
    assert [row["way"] for row in far["alternatives"]] == ["splittable"], (
        "a tree or a ring needs equal amounts"
    )
    assert far["certificate_checked"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("Oslo=3", "Oslo"),
        ("a", "SITE=MB"),
        ("a=-3", "positive"),
        ("a=nan", "positive"),
        ("a=1,a=2", "twice"),
        ("none.csv", "none.csv"),
        ("b=1", "not a worker site"),
    ],
)
def test_unreadable_amounts_are_reported(tmp_path: Path, data: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    with pytest.raises(InputError, match=message):
        plan(PlanRequest(topology=str(path), workers="a,c", data=data))
