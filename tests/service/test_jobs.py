"""Jobs over HTTP, on a real server with real processes."""

from __future__ import annotations

import json

import httpx

from tests.service.servers import Server, checked, job, over, until


def test_a_job_runs_and_its_log_and_events_can_be_read(queue: Server) -> None:
    with queue.tenant("red") as client:
        found = checked(client.post("/v1/jobs", json=job("sh", "-c", "echo hello", id="first")))
        assert found["status"] == "submitted"
        assert found["id"].startswith("first-")
        assert over(client, found["id"])["status"] == "finished"
        assert "hello" in client.get(f"/v1/jobs/{found['id']}/logs").text
        kinds = [each["kind"] for each in checked(client.get(f"/v1/jobs/{found['id']}/events"))["events"]]
        assert kinds == ["submitted", "arrived", "planned", "started", "stopped", "finished"]


def test_yaml_is_read_as_json_is(queue: Server) -> None:
    with queue.tenant("red") as client:
        text = "worker: {gpu: 1}\ncommand: [sh, -c, 'exit 0']\n"
        answer = client.post("/v1/jobs", content=text, headers={"Content-Type": "application/yaml"})
        assert over(client, checked(answer)["id"])["status"] == "finished"


def test_the_same_key_gives_the_same_job_and_another_request_with_it_is_refused(queue: Server) -> None:
    with queue.tenant("red") as client:
        headers = {"Idempotency-Key": "k1"}
        first = checked(client.post("/v1/jobs", json=job("sleep", "0"), headers=headers))
        again = checked(client.post("/v1/jobs", json=job("sleep", "0"), headers=headers))
        assert again == first
        other = client.post("/v1/jobs", json=job("sleep", "1"), headers=headers)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")


def test_a_running_and_a_waiting_job_can_be_cancelled(queue: Server) -> None:
    with queue.tenant("red") as client:
        ids = [checked(client.post("/v1/jobs", json=job("sleep", "60", workers=2)))["id"] for _ in range(3)]
        for each in ids[:2]:
            until(client, each, "running")
        waits = until(client, ids[2], "waiting")
        lines = checked(client.get(f"/v1/jobs/{waits['id']}/why"))["lines"]
        assert any("of others have room now" in line for line in lines)  # whose use keeps it waiting
        assert any("room for 0 of its workers, of 2 at most" in line for line in lines)
        assert any("2 more of its workers" in line for line in lines)
        for each in reversed(ids):
            assert checked(client.post(f"/v1/jobs/{each}/cancel"))["status"] == "cancelled"
        assert checked(client.post(f"/v1/jobs/{ids[0]}/cancel"))["status"] == "cancelled"  # again


def test_a_job_whose_ranks_fail_is_given_up_and_says_so(queue: Server) -> None:
    with queue.tenant("red") as client:
        found = checked(client.post("/v1/jobs", json=job("sh", "-c", "echo no; exit 3")))
        assert over(client, found["id"])["status"] == "failed"
        events = checked(client.get(f"/v1/jobs/{found['id']}/events"))["events"]
        alarms = [each["body"]["text"] for each in events if each["kind"] == "alarm"]
        assert any("given up" in text for text in alarms)


def test_what_is_wrong_with_a_job_is_said(queue: Server) -> None:
    with queue.tenant("blue") as client:
        for body, words in (
            ({"worker": {"gpu": 1}}, "command is missing"),
            (job("sh", "-c", "x"), "not allowed for blue; commands must begin with: sleep"),
            (job("sleep", "1", wrokers=2), "wrokers is not a known field. Did you mean 'workers'?"),
            ({"worker": {"tpu": 1}, "command": ["sleep"]}, "unknown resource, 'tpu'"),
            (job("sleep", "1", tenant="red"), "tenant is set by the service"),
            ([1], "a job must be an object"),
        ):
            answer = client.post("/v1/jobs", json=body)
            assert answer.status_code == 422
            assert words in answer.json()["error"]["message"]


def test_a_dry_run_changes_nothing(queue: Server) -> None:
    with queue.tenant("blue") as client:
        before = checked(client.get("/v1/jobs"))
        found = checked(client.post("/v1/jobs", json=job("sleep", "1"), params={"dry_run": True}))
        assert found["valid"]
        assert found["lines"][0] == "it needs 1 worker with 1 gpu each"
        assert checked(client.get("/v1/jobs")) == before


def test_pages_go_on_where_the_one_before_ended(queue: Server) -> None:
    with queue.tenant("blue") as client:
        ids = [checked(client.post("/v1/jobs", json=job("sleep", "0")))["id"] for _ in range(5)]
        first = checked(client.get("/v1/jobs", params={"limit": 3}))
        second = checked(client.get("/v1/jobs", params={"limit": 3, "before": first["next"]}))
        seen = [each["id"] for page in (first, second) for each in page["jobs"]]
        assert seen[:5] == ids[::-1]
        for each in ids:
            over(client, each)


def test_a_stream_of_events_resumes_by_number(queue: Server) -> None:
    with queue.tenant("red") as client:
        id_ = checked(client.post("/v1/jobs", json=job("sleep", "0.3")))["id"]
        whole = _stream(client, id_, 0, "finished")
        assert [kind for kind, _ in whole][-1] == "finished"
        rest = _stream(client, id_, whole[1][1], "finished")
        assert rest == whole[2:]


def _stream(client: httpx.Client, id_: str, after: int, last: str) -> list[tuple[str, int]]:
    found = []
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with client.stream("GET", f"/v1/jobs/{id_}/events", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line[6:])
                found.append((event["kind"], event["number"]))
                if event["kind"] == last:
                    break
    return found


def test_a_followed_log_ends_with_the_job(queue: Server) -> None:
    with queue.tenant("red") as client:
        id_ = checked(client.post("/v1/jobs", json=job("sh", "-c", "echo a; sleep 0.5; echo b")))["id"]
        text = client.get(f"/v1/jobs/{id_}/logs", params={"follow": True}).text
        assert text.index("a\n") < text.index("b\n")
        rest = client.get(f"/v1/jobs/{id_}/logs", params={"offset": text.index("b\n")}).text
        assert rest == text[text.index("b\n") :]
