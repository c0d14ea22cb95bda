"""A market over HTTP: quotes that are held, accepted, declined and expire; declared limits; nothing private anywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.servers import QUEUE, Server, checked, job, over, running
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
        assert quote["options"][0]["plan"] == "1 worker at oregon; server at oregon"
        path = f"/v1/quotes/{quote['id']}/accept"
        receipt = checked(client.post(path, json={"option": 0}))
        assert receipt["price_usd"] == quote["options"][0]["price_usd"]
        assert checked(client.post(path, json={"option": 0}))["price_usd"] == receipt["price_usd"]
        done = over(client, quote["job"], PATIENCE_S)
        assert (done["status"], done["price_usd"]) == ("finished", receipt["price_usd"])


def test_a_declined_and_an_expired_quote_hold_nothing_and_cannot_be_accepted(market: Server) -> None:
    with market.tenant("red") as client:
        first = checked(client.post("/v1/quotes", json=priced()))
        assert checked(client.post(f"/v1/quotes/{first['id']}/decline"))["status"] == "declined"
        late = checked(client.post("/v1/quotes", json=priced()))
        expired = time.monotonic() + PATIENCE_S
        while checked(client.get(f"/v1/quotes/{late['id']}"))["status"] == "open":
            assert time.monotonic() < expired
            time.sleep(0.1)
        answer = client.post(f"/v1/quotes/{late['id']}/accept", json={"option": 0})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "price_moved")
        assert checked(client.get(f"/v1/quotes/{late['id']}"))["status"] == "expired"
        assert {row["used_milli"] for row in checked(client.get("/v1/sites"))} == {0}


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
    assert not [text[:200] for text in seen if "7651.43" in text]
    assert any(json.dumps("sold")[1:-1] in text for text in seen)  # the search finds what is there
