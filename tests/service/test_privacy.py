"""Every route with every role, a planted secret searched everywhere, TLS, and limits of one token that are not another's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import zlib
from base64 import b64decode
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from benchmarks.service_load import TimedFleet, engine

from tests.service.servers import QUEUE, Server, checked, job, over, running, until
from tests.service.test_roles import BODIES, ONLY_ADMIN
from tradewind.service import config as configs
from tradewind.service import protocol
from tradewind.service.app import create_app
from tradewind.service.pages import COOKIE
from tradewind.service.seal import Seal
from tradewind.service.submission import Reader, sealed_text
from tradewind.store.board import Board

SECRET = 7651.432117

ON_RECORDS = ("/v1/export", "/v1/whatif")
"""Routes that refuse where nothing is recorded yet, or without parameters."""


def routes(method: str) -> list[str]:
    """Paths of the API and of the pages that take a method."""
    found = set()
    pending = list(create_app().routes)
    while pending:
        route: Any = pending.pop()
        pending += getattr(getattr(route, "original_router", None), "routes", [])
        if method in (getattr(route, "methods", None) or ()):
            found.add(route.path)
    found |= {path for path, each in create_app().openapi()["paths"].items() if method.lower() in each}
    return sorted(found)


def test_a_reader_changes_nothing_and_only_an_admin_manages_tokens_on_every_route(queue: Server) -> None:
    with ExitStack() as stack:
        reader = stack.enter_context(queue.client(queue.secret("tenant", "red", scopes=["read"])))
        operator = stack.enter_context(queue.client(queue.secret("operator")))
        for method in ("POST", "DELETE", "PUT", "PATCH"):
            for path in (each for each in routes(method) if each.startswith("/v1")):
                body = BODIES.get(path, {})
                answer = reader.request(method, path.replace("{id}", "x"), json=body)
                assert answer.status_code in (403, 404, 405, 422), (method, path, answer.text)
                assert answer.status_code != 422 or "{" in path or path in ("/v1/jobs", "/v1/quotes"), path
                if (method, path) in ONLY_ADMIN:
                    assert operator.request(method, path.replace("{id}", "x"), json=body).status_code == 403
        for path in (each for each in routes("GET") if each.startswith("/v1") and "{" not in each):
            right = (403,) if ("GET", path) in ONLY_ADMIN else (200, 422) if path in ON_RECORDS else (200,)
            assert operator.get(path).status_code in right, path


def test_a_planted_budget_is_in_no_answer_page_event_table_file_or_snapshot(tmp_path: Path) -> None:
    seen: list[str] = []
    with running(tmp_path, QUEUE) as server, ExitStack() as stack:
        red = stack.enter_context(server.tenant("red"))
        block = checked(red.post("/v1/jobs", json=job("sleep", "600", workers=4)))["id"]
        body = job("sleep", "0", private={"budget_usd": SECRET})
        wrong = red.post("/v1/jobs", json={**body, "worker": {"tpu": 1}})  # what is wrong is said without it
        assert wrong.status_code == 422
        hidden = checked(red.post("/v1/jobs", json=body, headers={"Idempotency-Key": "once"}))["id"]
        until(red, block, "running")
        until(red, hidden, "waiting")
        who = [red, server.tenant("blue"), server.client(server.secret("operator")), server.client()]
        for client in who:
            stack.callback(client.close)
            client.cookies.set(COOKIE, client.headers["Authorization"].removeprefix("Bearer "))
            for path in routes("GET"):
                if path.endswith("}") and "{id}" not in path:
                    continue
                address = path.replace("{id}", hidden)
                seen.append(client.get(address, params={"limit": 1000}).text)
        seen += [wrong.text, server.log]
        server.stop()
        with engine(configs.load(server.config), server.data, TimedFleet(600.0)) as made:
            made.snapshot()
        with Board(server.data) as board:
            seen += list(board.text())
            for row in board.rows("snapshots", most=10):
                text = zlib.decompress(row["state"]).decode()
                session = text.split('"session":"', 1)[1].split('"', 1)[0]
                seen += [text, zlib.decompress(b64decode(session)).decode()]
        files = [each for each in server.data.rglob("*") if each.is_file()]
        seen += [each.read_bytes().decode("latin-1") for each in files]
        assert any(hidden in text for text in seen)  # the search finds what is there
        assert any(hidden in text and "<html" in text for text in seen)
        assert not [text[:300] for text in seen if "7651.43" in text]
        found = Reader(configs.load(server.config)).read(body, "red")  # nor can all likely budgets be tried:
        guess = f"submit\n{json.dumps(found.document)}\n{sealed_text(found.customer)}".encode()
        assert not [text[:300] for text in seen if sha256(guess).hexdigest() in text]
        key = (server.data / "seal.key").read_bytes()
        assert [text for text in seen if Seal(key).digest(guess.decode()) in text]


def test_tls_by_certificate_files(tmp_path: Path) -> None:
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
    ]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([*make, *name, *files], check=True, capture_output=True)
    listen = {"certificate": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
    server = Server(tmp_path, {**QUEUE, "listen": listen})
    server.address = server.address.replace("http:", "https:")
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    server.verify = trusted
    try:
        server.start()
        assert httpx.get(f"{server.address}/healthz", verify=trusted).status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.address}/healthz")
    finally:
        server.stop()


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/tokens", "/v1/quotes/x/accept", "/login"])
def test_nobody_makes_the_server_read_more_than_the_limit(queue: Server, path: str) -> None:
    long = b" " * 1_000_001
    answer = httpx.post(queue.address + path, content=long)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    answer = httpx.post(queue.address + path, content=iter([long[:500_000]] * 40))  # without saying how much
    assert answer.status_code in (400, 401, 413, 422)


def test_nobody_makes_the_server_keep_headers_without_end(queue: Server) -> None:
    sent = 0
    with socket.create_connection(("127.0.0.1", queue.port)) as stranger:
        stranger.settimeout(60)
        stranger.sendall(b"GET /v1/jobs HTTP/1.1\r\nX: ")
        with contextlib.suppress(ConnectionError):  # it is answered and closed meanwhile
            while sent < 50_000_000:
                sent += stranger.send(b"a" * 100_000)
    assert sent < 50_000_000
    assert httpx.get(f"{queue.address}/healthz").status_code == 200


def test_a_connection_that_asks_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.2)

    async def serve() -> list[bytes]:
        server = uvicorn.Server(
            uvicorn.Config(_never, port=0, log_level="error", lifespan="off", http=protocol.BoundedProtocol)
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        address = server.servers[0].sockets[0].getsockname()
        found = []
        for begin in (b"", b"GET / HTTP/1.1\r\nX", b"GET / HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(begin)
            found.append(await asyncio.wait_for(reader.read(), 60))
            writer.close()
        server.should_exit = True
        await serving
        return found

    nothing, part, whole = asyncio.run(serve())
    assert nothing == part == b""
    assert whole.startswith(b"HTTP/1.1 204")


async def _never(scope: Any, receive: Any, send: Any) -> None:
    """Answers after more time than a request may take to be known."""
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 204, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": b""})


def test_limits_are_of_one_token_and_count_open_streams(tmp_path: Path) -> None:
    limits = {"requests_per_s": 0.1, "burst": 30, "streams": 3}
    with running(tmp_path, {**QUEUE, "limits": limits}) as server, ExitStack() as stack:
        red, blue = (stack.enter_context(server.tenant(name)) for name in ("red", "blue"))
        headers, lines = {"Accept": "text/event-stream"}, []
        for _ in range(3):
            stream = stack.enter_context(red.stream("GET", "/v1/events", headers=headers))
            assert stream.status_code == 200
            lines.append(stream.iter_lines())
            assert next(lines[-1]) == ": connected"
        full = red.get("/v1/jobs")
        assert (full.status_code, full.json()["error"]["code"]) == (429, "too_many")
        assert "end a stream" in full.json()["error"]["message"]
        assert [blue.get("/v1/jobs").status_code for _ in range(35)].count(429) > 0
        fresh = stack.enter_context(server.tenant("red"))
        id_ = checked(fresh.post("/v1/jobs", json=job("sleep", "0")))["id"]
        assert over(fresh, id_)["status"] == "finished"
