"""Every market mode end to end: its demonstration in examples/, a real job over HTTP, and the bill that follows."""

from __future__ import annotations

import time
from math import fsum, isclose
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.service.servers import checked, over, running
from tradewind.files.run_file import load_run

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 120.0  # kernels may have to be compiled
MODES = [
    ("serve", "job", "posted prices", "finished"),
    ("serve-brokerage", "job-brokerage", "brokerage", "left"),
    ("serve-auction", "job-auction", "auction", "finished"),
    ("serve-queue", "job-queue", "queue", "finished"),
    ("serve-rings", "job-rings", "queue", "finished"),
    ("serve-mixed", "job-mixed", "brokerage", "finished"),
]


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return found


def sold(client: httpx.Client, id_: str) -> float:
    """The price of a job once it is sold."""
    end = time.monotonic() + PATIENCE_S
    while (found := checked(client.get(f"/v1/jobs/{id_}")))["price_usd"] is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return float(found["price_usd"])


@pytest.mark.parametrize(("config", "example", "market", "end"), MODES)
def test_a_market_mode_runs_its_example_and_bills_as_the_export_does(
    tmp_path: Path, config: str, example: str, market: str, end: str
) -> None:
    settings = {**_read(config), "fleet": {"as_root": True, "grace_s": 1.0}}
    with running(tmp_path, settings) as server, server.client() as admin:
        assert checked(admin.get("/v1/status"))["market"] == market
        tenants = ("research", "product")
        jobs = [
            checked(admin.post("/v1/jobs", json=_read(example), params={"tenant": each})) for each in tenants
        ]
        if market in (
            "posted prices",
            "auction",
        ):  # a sale is on the bill at once, not when something else happens
            price = sold(admin, jobs[1]["id"])
            now = checked(admin.get("/v1/bills", params={"tenant": tenants[1]}, timeout=PATIENCE_S))["bills"]
            assert [each["due_usd"] for each in now] == [price]
        done = [over(admin, each["id"], PATIENCE_S) for each in jobs]
        assert [each["status"] for each in done] == [end, end]
        page = checked(admin.get("/v1/bills", timeout=PATIENCE_S))
        bills = {each["tenant"]: each for each in page["bills"]}
        (tmp_path / "run.json").write_text(
            admin.get("/v1/export", params={"part": "run"}, timeout=PATIENCE_S).text
        )
        run = load_run(tmp_path / "run.json")
        due = {name: bills[name]["due_usd"] for name in tenants}
        if any("rent" in node for node in settings["setup"]["nodes"]):
            assert all(bills[name]["lines"] for name in tenants)
        if config == "serve":  # what a newcomer sees first
            assert min(bills[name]["list_usd"] for name in tenants) > 1
            (quote,) = checked(admin.get("/v1/quotes", params={"limit": 1}))
            assert quote["options"][0]["alone_usd"] == pytest.approx(3.2)
            assert quote["options"][0]["price_usd"] > 3.2  # the floor is above what it costs
        if market in ("posted prices", "auction"):
            assert isclose(fsum(due.values()), run.metrics["payments_usd"])
            assert [each["price_usd"] for each in done] == [due[name] for name in tenants]
        else:
            assert isclose(fsum(due.values()), run.metrics["cost_usd"])
        if market == "brokerage":
            pooled: dict[Any, Any] = dict(
                zip(run.tables["bills"]["tenant"][1::2], run.tables["bills"]["usd"][1::2], strict=True)
            )
            alone: dict[Any, Any] = dict(
                zip(run.tables["bills"]["tenant"][::2], run.tables["bills"]["usd"][::2], strict=True)
            )
            for name in tenants:
                assert isclose(due[name], pooled[name])
                assert isclose(bills[name]["list_usd"], alone[name])
                assert bills[name]["discount_usd"] < 0  # only together do they reach the third tier
