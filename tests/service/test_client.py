"""The clients of Python and of the command line, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

import tradewind
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


def test_the_asynchronous_client_does_the_same(queue: Server) -> None:
    secret = queue.secret("tenant", "red")

    async def run() -> str:
        async with tradewind.AsyncClient(queue.address, token=secret) as client:
            ids = [(await client.submit(job("sleep", "0"))).id for _ in range(3)]
            return " ".join(each.status for each in await asyncio.gather(*map(client.wait, ids)))

    assert asyncio.run(run()) == "finished finished finished"


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
        return subprocess.run(
            [sys.executable, "-m", "tradewind.cli.main", *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    good = command("submit", str(tmp_path / "good.yaml"), "--wait", "--json")
    assert good.returncode == 0, good.stderr
    id_ = json.loads(good.stdout)["id"]
    assert "fine" in command("logs", id_, "-f").stdout
    assert command("submit", str(tmp_path / "bad.yaml"), "--wait").returncode == 1
    missing = command("job", "nothing")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "there is no job 'nothing'" in missing.stderr
