"""A market over HTTP: quotes that are held, accepted, declined and expire; declared limits; nothing private anywhere."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import tradewind as tw
from tests import builders
from tests.command import tradewind as run_command
from tests.service.servers import QUEUE, Server, checked, job, over, running
from tradewind.model.errors import InputError
from tradewind.model.node import Node
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import dollars
from tradewind.service.config import parse
from tradewind.service.terms import list_prices
from tradewind.store.board import Board

PATIENCE_S = 120.0
ROUNDS = {"kind": "rounds", "count": 1, "compute_us": "1 s", "comm": "colocated"}
POSTED: dict[str, Any] = {
    **QUEUE,
    "setup": {
        "objective": "profit_usd", "slot_us": "1 s", "window_slots": 60, "resources": ["gpu", "ps"],
        "forecast": {"jobs": 100, "jobs.gpu": 100, "jobs.ps": 100},
        "nodes": [{"name": "oregon", "kind": "server", "capacity": {"gpu": 4, "ps": 4}}],
    },
    "policy": {"name": "dps"},
    "quotes": {"hold_s": 8},
}  # fmt: skip


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("market"), POSTED) as server:
        yield server


def priced(**more: Any) -> dict[str, Any]:
    """A job with a parameter server, as the policy needs it."""
    parts = {"architecture": "ps", "server": {"ps": 1}, "servers": 1, "model_bytes": 1000}
    speed = {"worker_bps": "1 Gbit/s", "server_bps": "1 Gbit/s"}
    return job("sh", "-c", "echo sold", work=ROUNDS, **parts, **speed, **more)


def test_a_quote_is_held_accepted_once_and_the_job_runs(market: Server) -> None:
    with market.tenant("red") as client:
        quote = checked(client.post("/v1/quotes", json=priced()))
        assert (quote["status"], quote["held"]) == ("open", True)
        option = quote["options"][0]
        assert option["plan"] == "1 worker at oregon; server at oregon"
        assert option["expected_usd"] == option["maximum_usd"] == option["price_usd"]
        assert quote["made_s"] - 2 < option["start"]["p50_s"] <= option["start"]["p90_s"]
        assert option["start"]["p50_s"] < option["finish"]["p50_s"] <= option["finish"]["p90_s"]
        assert option["alone_usd"] is None  # there are no list prices
        assert quote["policy"].startswith("dps ")
        assert len(quote["price_list"]) == 16
        path = f"/v1/quotes/{quote['id']}/accept"
        receipt = checked(client.post(path, json={"option": 0}))
        assert receipt["price_usd"] == option["price_usd"]
        assert (receipt["mode"], receipt["discount_usd"]) == ("posted prices", 0.0)
        assert "posted price" in receipt["payment_rule"]
        assert receipt["certificate"]["price_list"] == quote["price_list"]
        assert checked(client.post(path, json={"option": 0}))["price_usd"] == receipt["price_usd"]
        done = over(client, quote["job"], PATIENCE_S)
        assert (done["status"], done["price_usd"]) == ("finished", receipt["price_usd"])
        later = checked(client.post("/v1/quotes", json=priced()))
        known = time.monotonic() + PATIENCE_S
        while not checked(client.get(f"/v1/quotes/{later['id']}"))["options"][0]["kept"]:
            assert time.monotonic() < known, "p90 follows from the delays of what was sold before"
            time.sleep(0.2)
        waits = checked(client.get(f"/v1/jobs/{later['job']}/why"))
        lowest = later["options"][0]["price_usd"]
        assert waits["price_usd"] == lowest > 0
        words = f"the lowest price is {lowest:.6g} USD, for whoever takes it while the quote is open"
        assert waits["lines"][-1] == words
        assert waits["rule"].startswith("dps: ")
        checked(client.post(f"/v1/quotes/{later['id']}/decline"))


def test_a_declined_and_an_expired_quote_hold_nothing_and_cannot_be_accepted(market: Server) -> None:
    with market.tenant("red") as client:
        first = checked(client.post("/v1/quotes", json=priced()))
        assert checked(client.post(f"/v1/quotes/{first['id']}/decline"))["status"] == "declined"
        late = checked(client.post("/v1/quotes", json=priced()))
        expired = time.monotonic() + PATIENCE_S
        while checked(client.get(f"/v1/quotes/{late['id']}"))["status"] == "open":
            assert time.monotonic() < expired
            time.sleep(0.1)
        assert {row["used_milli"] for row in checked(client.get("/v1/sites"))} == {0}
        take = f"/v1/quotes/{late['id']}/accept"
        answers = [client.post(take, json={"option": 0}) for _ in range(2)]
        assert [each.status_code for each in answers] == [409, 409]
        errors = [each.json()["error"] for each in answers]
        assert [each["code"] for each in errors] == ["price_moved"] * 2
        assert checked(client.get(f"/v1/quotes/{late['id']}"))["status"] == "expired"
        fresh = errors[0]["data"]
        assert (fresh["status"], fresh["id"]) == ("open", errors[1]["data"]["id"])  # quoted anew once
        receipt = checked(client.post(f"/v1/quotes/{fresh['id']}/accept"))
        assert receipt["price_usd"] == fresh["options"][0]["price_usd"]
        assert over(client, fresh["job"], PATIENCE_S)["status"] == "finished"
        late_no = client.post(f"/v1/quotes/{fresh['id']}/decline")
        assert (late_no.status_code, late_no.json()["error"]["code"]) == (409, "conflict")
        refused = client.post(f"/v1/quotes/{first['id']}/accept").json()["error"]
        assert (refused["code"], "data" in refused) == ("price_moved", False)  # its owner did not want it
        why = checked(client.get(f"/v1/jobs/{first['job']}/why"))["lines"]
        assert why[-1].startswith(f"the lowest price was {first['options'][0]['price_usd']:.6g} USD")


def test_quotes_are_listed_by_the_client_and_the_command(market: Server, tmp_path: Path) -> None:
    secret = market.secret("tenant", "red")
    (tmp_path / "token").write_text(secret)
    env = {**os.environ, "TRADEWIND_SERVER": market.address, "TRADEWIND_TOKEN_FILE": str(tmp_path / "token")}
    with tw.Client(market.address, token=secret) as client:
        made = client.quote(priced())
        assert made.id in [each.id for each in client.quotes(status="open")]
        pending = run_command(
            "quotes", f"q-{made.job}", env=env
        )  # the name that a quote has before it is made
        assert f"{made.id}: " in pending.stdout
        client.decline(made.id)
        assert made.id not in [each.id for each in client.quotes(status="open")]
        assert made.id in run_command("quotes", env=env).stdout


def test_a_declared_limit_answers_at_once_and_is_found_nowhere(market: Server) -> None:
    budget = 7651.4321
    with market.tenant("red") as client, market.client() as admin:
        rich = checked(client.post("/v1/jobs", json=priced(private={"budget_usd": budget})))
        assert over(client, rich["id"], PATIENCE_S)["status"] == "finished"
        poor = checked(client.post("/v1/jobs", json=priced(private={"budget_usd": 1e-9})))
        assert over(client, poor["id"], PATIENCE_S)["status"] == "declined"
        unlimited = client.post("/v1/jobs", json=priced())
        assert "ask for a quote" in unlimited.json()["error"]["message"]
        paths = (
            "/v1/jobs",
            f"/v1/jobs/{rich['id']}",
            f"/v1/jobs/{rich['id']}/events",
            "/v1/events",
            "/v1/quotes",
        )
        seen = [who.get(path).text for who in (client, admin) for path in (*paths, "/v1/actions", "/metrics")]
    with Board(market.data) as board:
        seen += list(board.text())
    files = [each for each in market.data.rglob("*") if each.is_file()]
    seen += [each.read_bytes().decode("latin-1") for each in (*files, market.folder / "log")]
    assert len(files) > 5
    period = tw.period(market.data)
    assert tw.check(period.scenario, period.run) == ()  # who declined had a reason that nobody is told
    exported = dict(zip((each.id for each in period.scenario.jobs), period.scenario.customers, strict=True))
    assert exported[rich["id"]].budget_usd is None
    lowest = exported[poor["id"]].budget_usd
    assert lowest is not None
    assert lowest > 1e-9
    seen.append(repr(period))
    assert not [text[:200] for text in seen if "7651.43" in text]
    assert any(json.dumps("sold")[1:-1] in text for text in seen)  # the search finds what is there


def test_a_withdrawn_quote_answers_that_the_price_moved_with_a_fresh_one(market: Server) -> None:
    with market.tenant("red") as client, market.client() as admin:
        first = checked(client.post("/v1/quotes", json=priced()))
        checked(
            admin.post("/v1/sites/oregon", json={"capacity": {"gpu": 3}})
        )  # whatever was offered is offered anew
        answer = client.post(f"/v1/quotes/{first['id']}/accept", json={"option": 0})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (409, "price_moved")
        assert error["data"]["job"] == first["job"]
        assert error["data"]["id"] != first["id"]
        receipt = checked(client.post(f"/v1/quotes/{error['data']['id']}/accept", json={"option": 0}))
        assert receipt["price_usd"] == error["data"]["options"][0]["price_usd"]
        assert over(client, first["job"], PATIENCE_S)["status"] == "finished"
        checked(admin.post("/v1/sites/oregon", json={"capacity": {"gpu": 4}}))


def test_the_command_shows_the_fresh_quote_of_one_that_holds_no_more(market: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(market.secret("tenant", "red"))
    env = {**os.environ, "TRADEWIND_SERVER": market.address, "TRADEWIND_TOKEN_FILE": str(tmp_path / "token")}
    with market.tenant("red") as client, market.client() as admin:
        first = checked(client.post("/v1/quotes", json=priced()))
        checked(admin.post("/v1/sites/oregon", json={"capacity": {"gpu": 3}}))
        said = run_command("accept", first["id"], env=env)
        checked(admin.post("/v1/sites/oregon", json={"capacity": {"gpu": 4}}))
        assert said.returncode != 0
        fresh = said.stdout.split(":")[0]
        assert fresh not in ("", first["id"])
        shown = checked(client.get(f"/v1/quotes/{fresh}"))
        assert shown["job"] == first["job"]
        assert f"  0: {dollars(shown['options'][0]['price_usd'])} USD" in said.stdout
        assert "Traceback" not in said.stdout + said.stderr


def test_a_quote_says_what_its_use_costs_alone_and_the_least_that_it_could_cost() -> None:
    rent = {"oregon": 4.0, "dublin": 1.0}
    nodes = tuple(Node(name=name, capacity_milli=(4000,)) for name in rent)
    tariffs = {(n, 0): Tariff(usd=(usd,)) for n, usd in enumerate(rent.values())}
    setup = Setup(
        resources=("gpu",), nodes=nodes, rent=tariffs, slot_us=1, horizon_us=1, objective="cost_usd"
    )
    own = builders.job(worker=((0, 500),))
    assert list_prices(setup, own, {"oregon": [3.0, 0.0]}) == (0.5 * 3.0 * 4.0, 0.5 * 3.0 * 1.0)
    assert list_prices(replace(setup, rent={}), own, {"oregon": [3.0, 0.0]}) == (None, None)


def test_a_policy_that_charges_when_a_run_ends_is_refused_and_runs_without_payments() -> None:
    raw = yaml.safe_load(Path(__file__).parents[2].joinpath("examples/serve-auction.yaml").read_text())
    with pytest.raises(InputError, match=r"a service has no end; set policy.params to \{payments: none\}"):
        parse({**raw, "policy": {"name": "eris-preemptive", "params": {"payments": "critical"}}}, Path("x"))
    assert parse({**raw, "policy": {"name": "eris-preemptive"}}, Path("x")).spec.charges
