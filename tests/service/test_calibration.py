"""Measured beside predicted times over HTTP: told, shown, followed by forecasts and by policies that use them."""

from __future__ import annotations

import time
from math import exp, isclose
from pathlib import Path
from typing import Any

import httpx

from tests.service.servers import QUEUE, SITES, checked, job, over, running, until
from tradewind.files.run_file import load_run
from tradewind.model.estimate import Estimate
from tradewind.service.durations import factor_at
from tradewind.service.pages import COOKIE

RINGS: dict[str, Any] = {
    **QUEUE,
    "setup": {
        "objective": "utility", "slot_us": "1 s",
        "nodes": [{"name": "core", "kind": "switch"}, {"name": "a1", "kind": "server", "capacity": {"gpu": 2}}],
        "links": [{"a": "a1", "b": "core", "bps": "10 Gbit/s"}],
    },
    "policy": {"name": "gadget", "params": {"estimates": "measured"}},
}  # fmt: skip
PREDICTED_S, TRUE_S, COUNT = 0.05, 0.15, 60
STEPS = (
    f"i=0; while [ $i -lt {COUNT} ]; do i=$((i+1)); sleep {TRUE_S}; "
    f'echo "{{\\"iteration\\": $i, \\"seconds\\": {TRUE_S}}}" >> $TRADEWIND_REPORT; done'
)
"""A real job whose iterations take three times as long as it declares."""


def slow() -> dict[str, Any]:
    work = {"kind": "rounds", "comm": "ring", "count": COUNT, "compute_us": f"{PREDICTED_S} s"}
    value = {"of": "progress", "shape": "sqrt", "args": [20, 1000]}
    return job("sh", "-c", STEPS, work=work, architecture="ring", ring_bps="1 Gbit/s", utility=value)


def told(client: httpx.Client, id_: str) -> list[dict[str, Any]]:
    events = checked(client.get(f"/v1/jobs/{id_}/events"))["events"]
    return [each["body"] for each in events if each["kind"] == "measured"]


def test_the_factor_of_a_forecast_follows_from_its_uncertainty() -> None:
    estimate = Estimate(2.0, 0.1)
    assert factor_at(estimate, 0.5) == 2.0
    assert isclose(factor_at(estimate, 0.9), 2.0 * exp(1.2815515655 * 0.1), rel_tol=1e-9)


def test_forecasts_follow_what_a_job_measured_of_itself(tmp_path: Path) -> None:
    with running(tmp_path, RINGS) as server, server.tenant("red") as client:
        id_ = checked(client.post("/v1/jobs", json=slow()))["id"]
        until(client, id_, "running")
        found: dict[str, Any] = {}
        while (
            not found.get("calibration") or found["finish"]["p90_s"] is None
        ):  # no answer in time on a busy machine
            found = checked(client.get(f"/v1/jobs/{id_}/eta", timeout=60))
            assert found["status"] not in ("finished", "failed"), (
                "it ended before a forecast knew its measurements"
            )
            time.sleep(0.2)
        known = found["calibration"]
        assert abs(known["predicted_s"] - PREDICTED_S) < 1e-9  # a mean over iterations
        assert abs(known["measured_s"] - TRUE_S) < 1e-9
        assert 2.5 < known["factor"] < 3.1  # the last part of the way from what jobs usually are
        assert 0 < known["factor_error"] < 0.3
        assert found["finish"]["p50_s"] <= found["finish"]["p90_s"]
        done = over(client, id_)
        assert done["status"] == "finished"
        declared_s = done["started_s"] + COUNT * PREDICTED_S
        missed_s = abs(found["finish"]["p50_s"] - done["ended_s"])
        assert missed_s < abs(declared_s - done["ended_s"]) / 2
        last = told(client, id_)[-1]
        assert last["iterations"] > COUNT / 2
        assert len(told(client, id_)) <= 6  # not one of every slot
        after = checked(client.get(f"/v1/jobs/{id_}/eta"))["calibration"]
        assert after == last
        client.cookies.set(COOKIE, client.headers["Authorization"].removeprefix("Bearer "))
        page = client.get(f"/jobs/{id_}").text
        assert "an iteration takes 0.15" in page
        assert "3 times the prediction of 0.05 s" in page
        assert "times the prediction of 0.05 s" in client.get(f"/charts/iterations?job={id_}").text
        with server.client() as admin:
            (tmp_path / "run.json").write_text(admin.get("/v1/export", params={"part": "run"}).text)
        table = load_run(tmp_path / "run.json").tables["estimates"]
        assert table["iterations"][-1] == last["iterations"]


def test_a_policy_of_config_decides_by_what_was_measured(tmp_path: Path) -> None:
    """Jobs of red take far longer than they declare: the longer declaration of blue goes first."""
    policy = {"name": "srtf", "params": {"estimates": "measured"}}
    setup = {**QUEUE["setup"], "nodes": [{**SITES[0], "capacity": {"gpu": 1}}]}

    def fixed(stated: str, real_s: float) -> dict[str, Any]:
        return job("sleep", str(real_s), work={"kind": "fixed", "runtime_us": stated})

    with (
        running(tmp_path, {**QUEUE, "setup": setup, "policy": policy}) as server,
        server.tenant("red") as red,
        server.tenant("blue") as blue,
    ):
        for _ in range(2):
            over(red, checked(red.post("/v1/jobs", json=fixed("100 ms", 2)))["id"])
        before = checked(blue.post("/v1/jobs", json=fixed("3 s", 3)))["id"]
        until(blue, before, "running")
        first = checked(red.post("/v1/jobs", json=fixed("4 s", 0.1)))["id"]
        second = checked(blue.post("/v1/jobs", json=fixed("4.5 s", 0.1)))["id"]
        ended = [over(client, each) for client, each in ((red, first), (blue, second))]
        assert ended[1]["started_s"] < ended[0]["started_s"]
