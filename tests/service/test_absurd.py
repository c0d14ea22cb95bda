"""Absurd numbers, names and shapes get a clear answer, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.servers import QUEUE, Server, checked, job, over, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("absurd"), QUEUE) as server:
        yield server


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


ABSURD: dict[str, Any] = {
    "workers": job("sleep", "0", workers=400_000_000),
    "workers_max": job("sleep", "0", workers_min=1, workers_max=400_000_000),
    "workers that never fit": job("sleep", "0", workers=1_000_000),
    "a worker that never fits": job("sleep", "0", worker={"gpu": 3}),
    "workers, a fraction": job("sleep", "0", workers=1e300),
    "servers": job("sleep", "0", servers=400_000_000, architecture="ps", server={"gpu": 1}),
    "negative": job("sleep", "0", workers=-1),
    "demand": job("sleep", "0", worker={"gpu": 1e300}),
    "demand beyond 64 bits": job("sleep", "0", worker={"gpu": 10**30}),
    "model_bytes": job("sleep", "0", model_bytes=10**40),
    "runtime": job("sleep", "0", work={"kind": "fixed", "runtime_us": 10**30}),
    "count": job("sleep", "0", work={"kind": "rounds", "count": 10**18, "compute_us": 10**18}),
    "a million digits": '{"worker": {"gpu": 1}, "command": ["sleep", "0"], "workers": 1'
    + "0" * 100_000
    + "}",
    "not a number": '{"worker": {"gpu": NaN}, "command": ["sleep", "0"]}',
    "infinite": '{"worker": {"gpu": Infinity}, "command": ["sleep", "0"]}',
    "deep": json.dumps(job("sleep", "0", tags=1)).replace("1}", "[" * 50_000 + "]" * 50_000 + "}"),
    "deep YAML": "[" * 20_000,
    "deep values": job("sleep", "0", caps=nested(900)),
    "id": job("sleep", "0", id="a\x1b[2Jb"),
    "id, a new line": job("sleep", "0", id="a\nb"),
    "id, null": job("sleep", "0", id="a\x00b"),
    "id, direction": job("sleep", "0", id="a\u202eb"),
    "id, half a character": '{"worker": {"gpu": 1}, "command": ["sleep", "0"], "id": "\\ud800"}',
    "id, long": job("sleep", "0", id="x" * 100_000),
    "id, no text": job("sleep", "0", id={"a": 1}),
    "path as id": job("sleep", "0", id="../../etc"),
    "command, null": job("sleep", "a\x00b"),
    "command, half a character": '{"worker": {"gpu": 1}, "command": ["sleep", "\\ud800"]}',
    "command, no list": {"worker": {"gpu": 1}, "command": "sleep 1"},
    "too much": job("sleep", "x" * 5_000_000),
    "a list": [1, 2],
    "nothing": "",
    "null": "null",
    "no UTF-8": b"\xff\xfe",
}


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs?dry_run=true", "/v1/quotes"])
def test_absurd_jobs_are_refused_in_words_and_change_nothing(server: Server, path: str) -> None:
    with server.tenant("red") as client, server.client() as admin:
        before = checked(admin.get("/v1/status"))
        for what, body in ABSURD.items():
            text = body if isinstance(body, str | bytes) else json.dumps(body)
            answer = client.post(path, content=text, headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500, (what, answer.text[:300])
            message = answer.json()["error"]["message"]
            assert message.isprintable(), (what, message)
            assert len(message) < 1000, (what, message)
        after = checked(admin.get("/v1/status"))
        assert (after["ready"], after["jobs"]) == (True, before["jobs"])
        done = over(client, checked(client.post("/v1/jobs", json=job("sleep", "0")))["id"], 120.0)
        assert done["status"] == "finished"
