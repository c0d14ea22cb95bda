"""The clients of Python and of the command line, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml

import tradewind
from tests.chaos.proxy import cutting
from tests.command import tradewind as run_command
from tests.service.servers import Server, job
from tradewind.service.calls import ServiceError


def test_the_client_submits_waits_and_reads(queue: Server) -> None:
    with tradewind.Client(queue.address, token=queue.secret("tenant", "red")) as client:
        found = client.submit(job("sh", "-c", "echo here"), key="once")
        assert client.submit(job("sh", "-c", "echo here"), key="once").id == found.id
        assert client.wait(found.id).status == "finished"
        assert "here" in "".join(client.logs(found.id))
        assert found.id in [each.id for each in client.jobs().jobs]
        assert client.status().market == "queue"
        with pytest.raises(ServiceError, match="quotes no prices") as caught:
            client.quote(job("sleep", "1"))
        assert caught.value.status == 409


def test_what_a_stream_is_refused_for_is_said(queue: Server) -> None:
    with tradewind.Client(queue.address, token=queue.secret("tenant", "red")) as client:
        for stream in (client.logs("nobodys"), client.events("nobodys")):
            with pytest.raises(ServiceError, match="there is no job") as caught:
                list(stream)
            assert (caught.value.status, caught.value.code) == (404, "not_found")

    async def run() -> None:
        async with tradewind.AsyncClient(queue.address, token="wrong") as client:
            with pytest.raises(ServiceError, match="not valid"):
                [part async for part in client.logs("nobodys")]
            with pytest.raises(ServiceError, match="not valid"):
                [event async for event in client.events()]

    asyncio.run(run())


def test_tokens_are_made_with_scopes_and_listed_with_their_state(queue: Server) -> None:
    env = {
        **os.environ,
        "TRADEWIND_SERVER": queue.address,
        "TRADEWIND_TOKEN_FILE": str(queue.data / "admin.token"),
    }

    def told(*words: str) -> str:
        found = run_command("tokens", *words, env=env)
        assert found.returncode == 0, found.stderr
        return found.stdout

    secret = told("make", "--tenant", "red", "--name", "looks", "--scope", "read").strip()
    with queue.client(secret) as looks:
        assert looks.get("/v1/jobs").status_code == 200
        assert looks.post("/v1/jobs", json=job("sleep", "0")).status_code == 403
    queue.secret("tenant", "red", name="late", valid_s=1e-6)
    listed = {each["name"]: each for each in json.loads(told("list", "--json"))}
    assert (listed["looks"]["state"], listed["looks"]["scopes"]) == ("valid", ["read"])
    assert listed["late"]["state"] == "expired"
    assert "expired" in told("list")


def test_the_asynchronous_client_does_the_same(queue: Server) -> None:
    secret = queue.secret("tenant", "red")

    async def run() -> str:
        async with tradewind.AsyncClient(queue.address, token=secret) as client:
            ids = [(await client.submit(job("sleep", "0"))).id for _ in range(3)]
            return " ".join(each.status for each in await asyncio.gather(*map(client.wait, ids)))

    assert asyncio.run(run()) == "finished finished finished"


def test_both_clients_have_the_same_calls() -> None:
    def calls(of: type) -> set[str]:
        return {name for name in vars(of) if not name.startswith("_")}

    assert calls(tradewind.Client) == calls(tradewind.AsyncClient)
    assert {
        "quote",
        "accept",
        "decline",
        "dry_run",
        "suspend",
        "resume",
        "change",
        "why",
        "eta",
        "bills",
    } <= calls(tradewind.Client)


def test_logs_and_events_go_on_where_a_connection_broke(queue: Server) -> None:
    secret, script = (
        queue.secret("tenant", "red"),
        "for i in 1 2 3 4 5 6 7 8 9; do echo öl $i; sleep 0.2; done",
    )
    with cutting(queue.port, every_s=0.4) as proxy, tradewind.Client(queue.address, token=secret) as direct:
        through = f"http://127.0.0.1:{proxy.port}"
        id_ = direct.submit(job("sh", "-c", script)).id
        seen, text = [], ""
        with tradewind.Client(through, token=secret) as client:
            for part in client.logs(id_, follow=True):
                text += part
            assert [line for line in text.splitlines() if line.startswith("öl")] == [
                f"öl {i}" for i in range(1, 10)
            ]
            for event in client.events(id_):
                seen.append(event)
                if event.kind == "finished":
                    break

        async def run() -> tuple[str, list[str]]:
            async with tradewind.AsyncClient(through, token=secret) as client:
                whole = "".join([part async for part in client.logs(id_, follow=True)])
                kinds = []
                async for each in client.events(id_):
                    kinds.append(each.kind)
                    if each.kind == "finished":
                        break
                with pytest.raises(ServiceError, match="there is no job"):
                    await client.why("nobody's")
                return whole, kinds

        assert asyncio.run(run()) == (text, [each.kind for each in seen])
        assert len({each.number for each in seen}) == len(seen)
        assert proxy.cuts


def test_a_server_refuses_clients_of_another_version(queue: Server) -> None:
    answer = httpx.get(f"{queue.address}/v1/jobs", headers={"Tradewind-Api": "2"})
    assert answer.status_code == 400
    assert "update the older one" in answer.json()["error"]["message"]
    assert httpx.get(f"{queue.address}/healthz").headers["Tradewind-Api"] == "1"


def test_the_command_line_submits_waits_and_says_how_it_ended(queue: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(queue.secret("tenant", "red"))
    for name, script in (("good", "echo fine"), ("bad", "exit 1")):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(job("sh", "-c", script)))
    env = {**os.environ, "TRADEWIND_SERVER": queue.address, "TRADEWIND_TOKEN_FILE": str(tmp_path / "token")}

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return run_command(*words, env=env, timeout=60)

    good = command("submit", str(tmp_path / "good.yaml"), "--wait", "--json")
    assert good.returncode == 0, good.stderr
    id_ = json.loads(good.stdout)["id"]
    assert "fine" in command("logs", id_, "-f").stdout
    assert command("submit", str(tmp_path / "bad.yaml"), "--wait").returncode == 1
    missing = command("job", "nothing")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "there is no job 'nothing'" in missing.stderr


def test_operators_use_sites_prices_export_and_whatif_from_the_command_line_with_a_file_of_settings(
    queue: Server, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text((queue.data / "admin.token").read_text())
    (tmp_path / "client.yaml").write_text(f"server: {queue.address}\ntoken_file: {tmp_path / 'token'}\n")
    free = {name: value for name, value in os.environ.items() if not name.startswith("TRADEWIND_")}
    env = {**free, "TRADEWIND_CLIENT": str(tmp_path / "client.yaml")}

    def told(*words: str, wrong: bool = False) -> str:
        found = run_command(*words, env=env)
        assert (found.returncode != 0) == wrong, found.stderr
        return found.stderr if wrong else found.stdout

    with tradewind.Client(queue.address, token=queue.secret("tenant", "red")) as client:
        done = client.wait(client.submit(job("sleep", "0")).id)
    assert {each["node"] for each in json.loads(told("sites", "--json"))} == {"oregon", "dublin"}
    assert "of 2 in use" in told("sites")
    assert "2 gpu" in told("sites", "oregon", "--capacity", '{"gpu": 2}') or "of 2 in use" in told(
        "sites", "oregon"
    )
    assert json.loads(told("prices", "service", "--json"))["rent"] == {}
    assert done.id in told("show", done.id)
    assert json.loads(told("reload", "--json"))["changes"] == 0
    paths = json.loads(told("export", "-o", str(tmp_path / "out"), "--json"))
    told("audit", paths["scenario"], paths["run"])
    assert "las" in told("whatif", "--policy", "las")
    assert told("bills", "--csv").startswith("tenant,kind,job")
    (tmp_path / "client.yaml").write_text("address: x\n")
    assert "server and token_file are known" in told("jobs", wrong=True)


def test_both_clients_read_the_same_answers_and_ignore_fields_that_they_do_not_know() -> None:
    from tradewind.service import calls

    text = json.dumps({"id": "a", "status": "waiting", "lines": [], "field_of_a_later_version": 1})
    assert calls.why("a").read(200, text).status == "waiting"
    assert calls.API_VERSION == __import__("tradewind.service.app", fromlist=["x"]).API_VERSION
