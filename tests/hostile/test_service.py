"""Hostile jobs of one tenant hurt neither the service nor the jobs of another tenant."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.programs import PYTHON, SHELL, program
from tests.service.servers import QUEUE, Server, checked, job, over, running
from tradewind.store.store import Store
from tradewind.worlds.fleets.processes.handles import marked_processes

PATIENCE_S = 200.0
SHARED = ("it signals all that it can", "it forks without end", "it takes all memory that it gets")
"""What would also hurt jobs of other tests that have the same user, or needs a limit; fleets are tested with these, and
users of their own."""
FLOOD = 'yes \'{"iteration":1}\' | head -c 20000000 >> "$TRADEWIND_REPORT"; touch ../did; exec sleep 1000'
COMMANDS = [*(program(name) for name in (*SHELL, *PYTHON) if name not in SHARED), ("sh", "-c", FLOOD)]
CONFIG = {
    **QUEUE,
    "setup": {**QUEUE["setup"], "nodes": [{"name": "oregon", "capacity": {"gpu": 64}}]},
    "fleet": {"grace_s": 0.5, "retries": 1},
    "tenants": {"red": {"any_command": True}, "blue": {"any_command": True}},
}


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="tradewind-hostile-"))
    folder.chmod(0o711)
    try:
        with running(folder, CONFIG) as found:
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="separate users need root")
def test_hostile_jobs_of_a_tenant_hurt_only_themselves(server: Server) -> None:
    work = {"kind": "rounds", "count": 1000, "compute_us": 10}
    with server.tenant("red") as red, server.tenant("blue") as blue:
        first = checked(blue.post("/v1/jobs", json=job("sh", "-c", "echo fine", id="first")))["id"]
        bad = [checked(red.post("/v1/jobs", json=job(*each, work=work)))["id"] for each in COMMANDS]
        end = time.monotonic() + PATIENCE_S
        while len(done := list(server.data.glob("state/jobs/*/did"))) < len(COMMANDS):
            assert time.monotonic() < end, f"only {sorted(each.parent.name for each in done)} did their deed"
            time.sleep(0.1)
        last = checked(blue.post("/v1/jobs", json=job("sh", "-c", "echo fine", id="last")))["id"]
        for id_ in (first, last):
            assert over(blue, id_)["status"] == "finished"
            assert "fine" in blue.get(f"/v1/jobs/{id_}/logs").text
        for id_ in bad:
            assert red.get(f"/v1/jobs/{id_}/logs").status_code == 200
            assert red.post(f"/v1/jobs/{id_}/cancel").status_code in (200, 409)  # 409: it is over
        states = {over(red, id_, PATIENCE_S)["status"] for id_ in bad}
        assert "finished" not in states
    with Store.open(server.data) as store:
        store.verify()
        token = str(store.read()[0]["token"])
    assert server.stop() == 0
    while left := marked_processes(token):
        assert time.monotonic() < end + PATIENCE_S, f"{left} are left"
        time.sleep(0.1)
    server.start()  # and it comes back
    with server.tenant("blue") as blue:
        assert checked(blue.get(f"/v1/jobs/{last}"))["status"] == "finished"
