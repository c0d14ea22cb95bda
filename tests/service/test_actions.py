"""What the audit log says of jobs, and which tokens count before a service listens elsewhere."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from benchmarks.service_load import fill

from tests.service.servers import Server, checked, job, until
from tradewind.model.errors import InputError
from tradewind.service.process import EngineProcess
from tradewind.service.server import check_address
from tradewind.service.service import Service

ELSEWHERE = "192.0.2.1"


def test_the_audit_log_says_who_did_what_to_a_job_before_and_after(queue: Server) -> None:
    secret = queue.secret("tenant", "blue", name="bea")
    with queue.client(secret) as blue, queue.client() as admin, queue.tenant("red") as red:
        once = {"Idempotency-Key": f"submitted at {time.time()}"}
        id_ = checked(blue.post("/v1/jobs", json=job("sleep", "600"), headers=once))["id"]
        assert checked(blue.post("/v1/jobs", json=job("sleep", "600"), headers=once))["id"] == id_
        until(blue, id_, "running")
        checked(blue.post(f"/v1/jobs/{id_}/suspend"))
        until(blue, id_, "suspended")
        checked(blue.post(f"/v1/jobs/{id_}/resume"))
        until(blue, id_, "running")
        checked(admin.post(f"/v1/jobs/{id_}/cancel"))
        until(blue, id_, "cancelled")
        for client in (blue, admin):
            mine = [each for each in checked(client.get("/v1/actions")) if each["subject"] == id_]
            assert {each["tenant"] for each in mine} == {"blue"}
            told = [(each["actor"], each["action"], each["before"], each["after"]) for each in mine]
            assert told[::-1] == [
                ("tenant:bea", "job.submit", None, {"status": "submitted"}),
                ("tenant:bea", "job.suspend", {"status": "running"}, {"status": "suspended"}),
                ("tenant:bea", "job.resume", {"status": "suspended"}, {"status": "waiting"}),
                ("admin:first", "job.cancel", {"status": "running"}, {"status": "cancelled"}),
            ]
        assert id_ not in {each["subject"] for each in checked(red.get("/v1/actions"))}


def test_tokens_that_expired_or_were_revoked_do_not_let_it_listen_elsewhere(tmp_path: Path) -> None:
    config = fill(tmp_path, 0)
    data = tmp_path / "data"
    service = Service(config, data, EngineProcess(tmp_path / "config.yaml", data))
    try:
        tokens = service.tokens
        tokens.make("operator", "", (), "late", time.time() - 1, "test")
        with pytest.raises(InputError, match="no tokens but the first admin's"):
            check_address(ELSEWHERE, service)
        made = tokens.make("operator", "", (), "now", time.time() + 600, "test")[1]
        check_address(ELSEWHERE, service)
        tokens.revoke(made.id, "test")
        with pytest.raises(InputError, match="no tokens but the first admin's"):
            check_address(ELSEWHERE, service)
        check_address("127.0.0.1", service)
    finally:
        service.close()
