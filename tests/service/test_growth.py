"""Sites that the setup did not name join a running service: by API, by CONFIG, in a queue and in a market."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import tradewind as tw
from tests.service.servers import checked, over, running, until
from tests.service.test_changes import CONFIG, COUNT, eventually
from tests.service.test_market import POSTED, priced
from tradewind.files.scenario_build import build
from tradewind.files.schemas_scenario import ScenarioFile
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.service.growth import difference, grown
from tradewind.store.store import Store

TOKYO = {"name": "tokyo", "capacity": {"gpu": 8}, "rent": {"gpu": 2.5}}


def setup(*nodes: dict[str, Any], **more: Any) -> Setup:
    raw = {
        "tradewind_scenario": 1,
        "objective": "cost_usd",
        "slot_us": "1 s",
        "horizon_us": "10 s",
        "nodes": list(nodes),
    }
    return build(ScenarioFile.model_validate({**raw, **more}), "x").setup


def test_new_nodes_come_after_those_that_there_were_with_their_links_and_tariffs() -> None:
    a, b, c = ({"name": name, "capacity": {"gpu": 1}, "rent": {"gpu": n}} for n, name in enumerate("abc", 1))
    links = [{"a": "a", "b": "c", "bps": "1 Gbit/s"}, {"a": "a", "b": "b", "bps": "2 Gbit/s"}]
    egress = [{"src": "*", "dst": "*", "tariff": 0.01}]
    before = setup(a, b, links=links[1:], egress=egress)
    found = grown(before, setup(c, b, a, links=links, egress=egress))
    assert [node.name for node in found.nodes] == ["a", "b", "c"]
    assert found.links == (*before.links, replace(found.links[1], a=0, b=2))
    assert {key: tariff.usd for key, tariff in found.rent.items()} == {
        (0, 0): (1.0,),
        (1, 0): (2.0,),
        (2, 0): (3.0,),
    }
    assert set(found.egress) == {(x, y) for x in range(3) for y in range(3) if x != y}
    assert grown(before, before) == before
    with pytest.raises(InputError, match="differs from what the service has: link a and b"):
        grown(before, setup(a, b, c, links=[{**links[1], "bps": "3 Gbit/s"}], egress=egress))
    dearer = {**a, "rent": {"gpu": 9}, "capacity": {"gpu": 4}}
    assert difference(before, setup(dearer, b, links=links[1:], egress=egress)) == ""  # by other means


def test_a_site_joins_by_api_jobs_go_on_and_run_there_and_the_export_is_audited(tmp_path: Path) -> None:
    with running(tmp_path, CONFIG) as server, server.client() as admin:
        assert (
            server.client(server.secret("operator")).post("/v1/sites", json={"nodes": [TOKYO]}).status_code
            == 403
        )
        early = checked(admin.post("/v1/jobs", json=COUNT, params={"tenant": "research"}))["id"]
        until(admin, early, "running")
        wide = {**COUNT, "id": "wide", "workers": 6, "nodes": ["tokyo"]}
        unknown = admin.post("/v1/jobs", json=wide, params={"tenant": "research"})
        assert unknown.status_code == 422
        wrong = admin.post("/v1/sites", json={"nodes": [{**TOKYO, "capacity": {"gpus": 8}}]})
        assert "gpus" in wrong.json()["error"]["message"]
        twice = admin.post("/v1/sites", json={"nodes": [{**TOKYO, "name": "oregon"}]})
        assert "is a site already" in twice.json()["error"]["message"]
        rows = checked(admin.post("/v1/sites", json={"nodes": [TOKYO]}, timeout=120))
        eventually(lambda: any(r["node"] == "tokyo" and r["capacity_milli"] == 8000 and not r["is_down"]
                               for r in checked(admin.get("/v1/sites"))), "it has joined")  # fmt: skip
        assert {row["node"] for row in rows} <= {"oregon", "dublin", "tokyo"}
        assert checked(admin.get("/v1/prices"))["rent"]["tokyo"]["gpu"]["usd"] == [2.5]
        late = checked(admin.post("/v1/jobs", json=wide, params={"tenant": "research"}))["id"]
        assert over(admin, early)["status"] == over(admin, late)["status"] == "finished"
        lines = [x for x in admin.get(f"/v1/jobs/{early}/logs").text.splitlines() if x.startswith("at")]
        assert len(lines) <= 33  # it went on from its checkpoint
        assert server.stop() == 0
        server.start()  # CONFIG does not name it; the store does
        assert "tokyo" in {row["node"] for row in checked(admin.get("/v1/sites"))}
        bill = checked(admin.get("/v1/bills", params={"tenant": "research"}, timeout=60))["bills"][0]
        assert "tokyo" in {line["where"] for line in bill["lines"] if line["job"] == late}
        again = checked(admin.post("/v1/jobs", json={**wide, "id": "again"}, params={"tenant": "research"}))[
            "id"
        ]
        assert over(admin, again)["status"] == "finished"
        notes = checked(admin.get("/v1/actions", params={"limit": 20}))
        joined = next(each for each in notes if each["action"] == "site.join")
        assert (joined["actor"], joined["subject"], joined["before"]) == ("admin:first", "tokyo", None)
        with Store.open(server.data) as store:
            store.verify()
        for begin in (0, 1_000_000):
            found = tw.period(server.data, begin)
            assert [node.name for node in found.scenario.setup.nodes] == ["oregon", "dublin", "tokyo"]
            assert tw.check(found.scenario, found.run) == ()
        again_run = tw.run(found.scenario, policy="srtf")
        assert tw.check(found.scenario, again_run) == ()


def test_config_that_names_a_further_site_lets_it_join_on_reload(tmp_path: Path) -> None:
    with running(tmp_path, CONFIG) as server, server.client() as admin:
        nodes = [TOKYO, *CONFIG["setup"]["nodes"]]  # wherever it stands
        server.config.write_text(yaml.safe_dump({**CONFIG, "setup": {**CONFIG["setup"], "nodes": nodes}}))
        assert checked(admin.post("/v1/reload", timeout=120))["joined"] == ["tokyo"]
        id_ = checked(
            admin.post("/v1/jobs", json={**COUNT, "nodes": ["tokyo"]}, params={"tenant": "research"})
        )["id"]
        assert over(admin, id_)["status"] == "finished"
        third = {**TOKYO, "name": "lima"}
        server.stop()
        server.config.write_text(
            yaml.safe_dump({**CONFIG, "setup": {**CONFIG["setup"], "nodes": [*nodes, third]}})
        )
        server.start()
        eventually(
            lambda: "lima" in {row["node"] for row in checked(admin.get("/v1/sites"))},
            "it joins at the start",
        )
        other = {**CONFIG["setup"], "slot_us": "3 s"}
        server.config.write_text(yaml.safe_dump({**CONFIG, "setup": other}))
        refused = admin.post("/v1/reload", timeout=120)
        assert "slot_us (here 3000000, there 1000000)" in refused.json()["error"]["message"]


def test_in_a_market_what_was_sold_runs_to_its_end_at_its_price_before_a_site_joins(tmp_path: Path) -> None:
    with running(tmp_path, POSTED) as server, server.client() as admin:
        long = {**priced(private={"budget_usd": 1e6}), "command": ["sh", "-c", "sleep 4"]}
        work = {"kind": "rounds", "count": 4, "compute_us": "1 s", "comm": "colocated"}
        sold = checked(admin.post("/v1/jobs", json={**long, "work": work}, params={"tenant": "red"}))["id"]
        price = until(admin, sold, "running")["price_usd"]
        fresh = {"name": "tokyo", "kind": "server", "capacity": {"gpu": 8, "ps": 8}}
        checked(admin.post("/v1/sites", json={"nodes": [fresh]}, timeout=120))
        done = over(admin, sold)
        assert (done["status"], done["price_usd"]) == ("finished", price)
        kinds = [each["kind"] for each in checked(admin.get(f"/v1/jobs/{sold}/events"))["events"]]
        assert "suspended" not in kinds
        there = {**priced(private={"budget_usd": 1e6}), "nodes": ["tokyo"]}
        id_ = checked(admin.post("/v1/jobs", json=there, params={"tenant": "red"}))["id"]
        assert over(admin, id_)["status"] == "finished"
