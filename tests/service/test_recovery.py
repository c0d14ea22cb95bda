"""A service that ends, or is killed, goes on where it was."""

from __future__ import annotations

from pathlib import Path

from tests.service.servers import QUEUE, checked, job, over, running, until


def test_it_goes_on_after_ctrl_c_and_after_kills_of_server_and_engine(tmp_path: Path) -> None:
    count = job("sh", "-c", "while test ! -e $TRADEWIND_CHECKPOINT_DIR/go; do sleep 0.1; done; echo done")
    with running(tmp_path, QUEUE) as server:
        secret = server.secret("tenant", "red")
        with server.client(secret) as client:
            ids = [checked(client.post("/v1/jobs", json={**count, "workers": 2}))["id"] for _ in range(3)]
            for each in ids[:2]:
                until(client, each, "running")
            until(client, ids[2], "waiting")
            server.kill(server.engine())
            late = checked(
                client.post("/v1/jobs", json=job("sleep", "0"), headers={"Idempotency-Key": "late"})
            )
            until(client, ids[0], "running")
        assert server.stop() == 0
        server.start()
        server.kill()
        server.start()
        with server.client(secret) as client:
            again = checked(
                client.post("/v1/jobs", json=job("sleep", "0"), headers={"Idempotency-Key": "late"})
            )
            assert again["id"] == late["id"]
            for number in range(2):
                until(client, ids[number], "running")
            for folder in (server.data / "state" / "jobs").iterdir():
                (folder / "checkpoint" / "go").touch()
            assert over(client, ids[0])["status"] == "finished"
            until(client, ids[2], "running")
            for folder in (server.data / "state" / "jobs").iterdir():
                (folder / "checkpoint").mkdir(exist_ok=True)
                (folder / "checkpoint" / "go").touch()
            assert [over(client, each)["status"] for each in (*ids, late["id"])] == ["finished"] * 4
            assert len(checked(client.get("/v1/jobs"))["jobs"]) == 4
            logs = [client.get(f"/v1/jobs/{each}/logs").text for each in ids]
            assert [text.count("done\n") for text in logs] == [1, 1, 1]
