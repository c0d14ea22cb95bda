"""Who may do what: every route with every role; tokens; limits; nothing private anywhere."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.servers import QUEUE, Server, checked, job, over, running
from tradewind.service.app import create_app
from tradewind.store.board import Board

OPEN = {"/healthz", "/readyz", "/metrics", "/v1/openapi.json"}
"""Routes that answer without a token."""
ONLY_ADMIN = {
    ("POST", "/v1/tokens"), ("GET", "/v1/tokens"), ("DELETE", "/v1/tokens/{id}"), ("POST", "/v1/policy"),
    ("POST", "/v1/sites"), ("POST", "/v1/reload"),
}  # fmt: skip
NOT_TENANTS = ONLY_ADMIN | {
    ("POST", "/v1/sites/{id}"), ("POST", "/v1/prices"), ("GET", "/v1/export"), ("GET", "/v1/whatif"),
}  # fmt: skip
BODIES: dict[str, Any] = {"/v1/tokens": {"role": "operator"}, "/v1/policy": {"name": "srtf"}}
FOREIGN = "{id}"


def _routes() -> list[tuple[str, str]]:
    document = create_app().openapi()
    return sorted((method.upper(), path) for path, each in document["paths"].items() for method in each)


def test_every_route_asks_for_a_token(queue: Server) -> None:
    assert len(_routes()) > 15
    for method, path in _routes():
        answer = httpx.request(method, queue.address + path.replace("{id}", "x"), json={})
        if path in OPEN:
            assert answer.status_code == 200, path
        else:
            assert answer.status_code in (401, 422), path
            bad = {"Authorization": "Bearer tw_wrong"}
            body: Any = BODIES.get(path, {})
            params = {"policy": "srtf"} if path == "/v1/whatif" else {}
            url = queue.address + path.replace("{id}", "x")
            answer = httpx.request(method, url, json=body, headers=bad, params=params)
            assert answer.status_code == 401, path


def test_a_tenant_sees_and_changes_nothing_of_another_on_any_route(queue: Server) -> None:
    with queue.tenant("red") as red, queue.tenant("blue") as blue, queue.client() as admin:
        secret = "only-red-knows"
        id_ = checked(red.post("/v1/jobs", json=job("sh", "-c", f"echo {secret}", id=secret)))["id"]
        over(red, id_)
        token = next(each["id"] for each in checked(admin.get("/v1/tokens")) if each["tenant"] == "red")
        for method, path in _routes():
            target = token if "/tokens" in path else f"q-{id_}" if "/quotes" in path else id_
            body: Any = BODIES.get(path, {})
            params = {"policy": "srtf"} if path == "/v1/whatif" else {}
            answer = blue.request(method, path.replace("{id}", target), json=body, params=params)
            assert secret not in answer.text.replace(f"'{id_}'", "").replace(f"'q-{id_}'", ""), path
            if FOREIGN in path and (method, path) not in NOT_TENANTS:
                assert answer.status_code in (404, 422), path
            elif (method, path) in NOT_TENANTS:
                assert answer.status_code == 403, path
        assert checked(red.get(f"/v1/jobs/{id_}"))["status"] == "finished"
        assert blue.get("/v1/jobs", params={"tenant": "red"}).status_code == 403


def test_only_an_admin_manages_tokens_and_operators_see_all_jobs(queue: Server) -> None:
    with queue.client(queue.secret("operator", name="olga")) as operator, queue.tenant("red") as red:
        id_ = checked(red.post("/v1/jobs", json=job("sleep", "0")))["id"]
        assert checked(operator.get(f"/v1/jobs/{id_}"))["id"] == id_
        assert operator.post("/v1/tokens", json={"role": "admin"}).status_code == 403
        mine = checked(operator.post("/v1/jobs", json=job("sleep", "0"), params={"tenant": "blue"}))
        assert mine["tenant"] == "blue"
        actions = checked(operator.get("/v1/actions", params={"limit": 5}))
        assert ("operator:olga", "job.submit", mine["id"]) in [
            (a["actor"], a["action"], a["subject"]) for a in actions
        ]
        over(red, id_)
        over(operator, mine["id"])


def test_tokens_have_scopes_expire_and_are_revoked(queue: Server) -> None:
    with queue.client(queue.secret("tenant", "red", scopes=["read"])) as reader:
        assert reader.get("/v1/jobs").status_code == 200
        assert reader.post("/v1/jobs", json=job("sleep", "0")).status_code == 403
    with queue.client(queue.secret("tenant", "red", valid_s=0.2)) as short:
        time.sleep(0.3)
        assert short.get("/v1/jobs").status_code == 401
    with queue.client() as admin:
        made = checked(admin.post("/v1/tokens", json={"role": "tenant", "tenant": "red", "name": "lost"}))
        with queue.client(made["secret"]) as lost:
            assert lost.get("/v1/jobs").status_code == 200
            assert checked(admin.delete(f"/v1/tokens/{made['id']}"))["revoked_s"] is not None
            assert lost.get("/v1/jobs").status_code == 401
        listed = {each["id"]: each for each in checked(admin.get("/v1/tokens"))}
        assert listed[made["id"]]["used_s"] is not None
        assert listed[made["id"]]["secret"] is None


def test_the_admins_token_is_its_owners_alone(queue: Server) -> None:
    for name in ("admin.token", "seal.key"):
        assert os.stat(queue.data / name).st_mode & 0o777 == 0o600


def test_requests_are_limited_in_size_and_rate(tmp_path: Path) -> None:
    limits = {"body_bytes": 1000, "requests_per_s": 0.1, "burst": 20}
    with running(tmp_path, {**QUEUE, "limits": limits}) as server, server.tenant("red") as client:
        big = client.post("/v1/jobs", json=job("sleep", "x" * 2000))
        assert (big.status_code, big.json()["error"]["code"]) == (413, "too_large")
        codes = [client.get("/v1/jobs").status_code for _ in range(40)]
        assert 429 in codes
        assert codes[0] == 200


def test_it_does_not_listen_elsewhere_while_only_the_first_admin_has_a_token(tmp_path: Path) -> None:
    server = Server(tmp_path, {**QUEUE, "listen": {"host": "0.0.0.0"}})
    with pytest.raises(AssertionError, match="which others can reach"):
        server.start()


def cells(server: Server) -> list[str]:
    """Every cell of every table."""
    with Board(server.data) as board:
        return list(board.text())
