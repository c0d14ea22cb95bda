"""Changes at run time: suspend and resume, other fields, sites, prices, CONFIG read again, another policy; backups."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import tries
from tests.service.servers import Server, checked, over, running, until
from tests.service.test_modes import _read
from tradewind.model.errors import InputError
from tradewind.model.view import Change
from tradewind.service.changes import of_prices, of_site
from tradewind.service.config import PricesFile, in_force, parse, price_hash
from tradewind.store.backup import backup, restore
from tradewind.store.store import Store

CONFIG: dict[str, Any] = {**_read("serve-queue"), "fleet": {"as_root": True, "grace_s": 1.0}}
OREGON: dict[str, Any] = CONFIG["setup"]["nodes"][0]
SCRIPT = (
    "cd $TRADEWIND_CHECKPOINT_DIR; i=$(cat n 2>/dev/null || echo 0); "
    "while [ $i -lt 30 ]; do i=$((i+1)); echo $i > new; mv new n; echo at $i; sleep 0.1; done"
)
COUNT = {
    "id": "count", "worker": {"gpu": 1}, "work": {"kind": "fixed", "runtime_us": "3 s"}, "command": ["sh", "-c", SCRIPT],
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("changes"), CONFIG) as found:
        yield found


def eventually(check: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 120
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def test_a_suspended_job_frees_its_site_can_be_changed_and_goes_on_from_its_checkpoint(
    server: Server,
) -> None:
    with server.tenant("research") as client:
        id_ = checked(client.post("/v1/jobs", json=COUNT))["id"]
        until(client, id_, "running")
        eventually(lambda: "at 3" in client.get(f"/v1/jobs/{id_}/logs").text, "it counts")
        refused = client.post(f"/v1/jobs/{id_}/change", json={"workers": 2})
        assert "suspend it first" in refused.json()["error"]["message"]
        assert checked(client.post(f"/v1/jobs/{id_}/suspend"))["status"] == "suspended"
        assert checked(client.post(f"/v1/jobs/{id_}/suspend"))["status"] == "suspended"  # again
        assert {row["used_milli"] for row in checked(client.get("/v1/sites"))} == {0}
        work = {"kind": "fixed", "runtime_us": "9 s"}
        assert checked(client.post(f"/v1/jobs/{id_}/change", json={"work": work}))["job"]["work"] == work
        assert "cannot be changed" in client.post(f"/v1/jobs/{id_}/change", json={"id": "x"}).text
        again = {"Idempotency-Key": f"resume {id_}"}
        assert checked(client.post(f"/v1/jobs/{id_}/resume", headers=again))["status"] != "suspended"
        assert checked(client.post(f"/v1/jobs/{id_}/resume", headers=again))["id"] == id_  # sent once more
        assert client.post(f"/v1/jobs/{id_}/resume").status_code == 409
        assert over(client, id_)["status"] == "finished"
        lines = [
            line for line in client.get(f"/v1/jobs/{id_}/logs").text.splitlines() if line.startswith("at")
        ]
        assert len(lines) <= 32  # it did not begin again; a rank may be cut off while it counts
        assert lines[-1] == "at 30"
        bill = checked(client.get("/v1/bills", timeout=60))["bills"][0]
        assert {line["job"] for line in bill["lines"]} == {id_, f"{id_}#2"}


def test_a_change_that_is_repeated_with_its_key_changes_nothing_twice(server: Server) -> None:
    with server.tenant("research") as client:
        first = checked(client.post("/v1/jobs", json={**COUNT, "command": ["sleep", "600"]}))["id"]
        until(client, first, "running")
        id_ = checked(client.post("/v1/jobs", json={**COUNT, "workers": 8}))["id"]  # all that there is
        until(client, id_, "waiting")
        where, once = f"/v1/jobs/{id_}/change", {"Idempotency-Key": f"change {id_}"}
        one, two = {"env": {"A": "1"}, "private": {"runtime_us": "4 s"}}, {"env": {"A": "2"}}
        assert checked(client.post(where, json=one, headers=once))["job"]["env"] == one["env"]
        assert checked(client.post(where, json=two))["job"]["env"] == two["env"]
        assert (
            checked(client.post(where, json=one, headers=once))["job"]["env"] == two["env"]
        )  # sent once more
        arrived = [each["kind"] for each in checked(client.get(f"/v1/jobs/{id_}/events"))["events"]]
        assert arrived.count("altered") == 2
        other = client.post(where, json=two, headers=once)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
        for each in (id_, first):
            assert checked(client.post(f"/v1/jobs/{each}/cancel"))["status"] == "cancelled"
        assert checked(client.post(where, json=one, headers=once))["status"] == "cancelled"
        assert client.post(where, json=one).status_code == 409


def test_a_suspended_job_can_be_cancelled(server: Server) -> None:
    with server.tenant("research") as client:
        id_ = checked(client.post("/v1/jobs", json=COUNT))["id"]
        until(client, id_, "running")
        checked(client.post(f"/v1/jobs/{id_}/suspend"))
        assert checked(client.post(f"/v1/jobs/{id_}/cancel"))["status"] == "cancelled"


def test_sites_and_prices_change_while_it_runs_and_config_is_read_again(server: Server) -> None:
    with server.client() as admin, server.tenant("research") as client:
        assert client.post("/v1/sites/oregon", json={"state": "leave"}).status_code == 403
        id_ = checked(admin.post("/v1/jobs", json=COUNT, params={"tenant": "research"}))["id"]
        site = next(iter(until(admin, id_, "running")["places"]["workers"]))
        drained = checked(admin.post(f"/v1/sites/{site}", json={"state": "drain"}))
        assert drained[0]["capacity_milli"] == drained[0]["used_milli"] == 1000  # what runs goes on
        assert over(admin, id_)["status"] == "finished"
        name = f"/v1/sites/{site}"
        eventually(lambda: next(r for r in checked(admin.get("/v1/sites")) if r["node"] == site)["capacity_milli"] == 0,
                   "a site that drains gives up what becomes free")  # fmt: skip
        assert (
            checked(admin.post(name, json={"state": "join", "capacity": {"gpu": 8}}))[0]["capacity_milli"]
            == 8000
        )
        first = checked(admin.get("/v1/prices"))["price_list"]
        second = checked(admin.post("/v1/prices", json={"rent": {"oregon": {"gpu": 4.0}}}))
        assert second["history"][0]["price_list"] != first

        def in_force() -> bool:
            found = checked(admin.get("/v1/prices"))
            is_so: bool = found["rent"]["oregon"]["gpu"]["usd"] == [4.0]
            return is_so and bool(found["price_list"] == second["history"][0]["price_list"])

        eventually(in_force, "the list is in force with the next slot")
        nodes = [
            {"name": "oregon", "capacity": {"gpu": 6}, "rent": {"gpu": 6.0}},
            CONFIG["setup"]["nodes"][1],
        ]
        tenants = {**CONFIG["tenants"], "late": {"any_command": True}}
        server.config.write_text(
            yaml.safe_dump({**CONFIG, "tenants": tenants, "setup": {**CONFIG["setup"], "nodes": nodes}})
        )
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: "read again: 2 changes" in server.log or "read again: 1 changes" in server.log, "SIGHUP"
        )

        def is_so() -> bool:
            oregon = next(row for row in checked(admin.get("/v1/sites")) if row["node"] == "oregon")
            return (oregon["capacity_milli"], oregon["price_factor"]) == (6000, 2.0)

        eventually(is_so, "capacity and price of CONFIG")
        assert "late" in [each["name"] for each in checked(admin.get("/v1/tenants"))]
        noted = next(each for each in checked(admin.get("/v1/actions")) if each["action"] == "config.reload")
        assert noted["actor"] == "service"  # it was a signal
        assert noted["before"]["tenants"] == {"late": None}
        assert noted["after"]["tenants"]["late"]["any_command"]
        assert noted["after"]["sites"]["price of oregon.gpu"] == 2.0
        assert noted["before"]["sites"]["price of oregon.gpu"] == 4 / 3
        late = server.secret("tenant", "late")
        server.config.write_text(yaml.safe_dump({**CONFIG, "setup": {**CONFIG["setup"], "nodes": nodes}}))
        checked(admin.post("/v1/reload"))
        noted = checked(admin.get("/v1/actions", params={"limit": 1}))[0]
        assert (noted["before"]["tenants"]["late"]["any_command"], noted["after"]["tenants"]) == (
            True,
            {"late": None},
        )
        with server.client(late) as gone:
            answer = gone.post("/v1/jobs", json=COUNT)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
            assert "no tenant of this service any more" in answer.json()["error"]["message"]


PRICES = st.decimals("0.0001", 9999, places=4).map(float)


def listed(usd: Any, node: str = "oregon") -> PricesFile:
    """A price list of one price."""
    return PricesFile.model_validate({"rent": {node: {"gpu": usd}}})


@given(PRICES, PRICES)
@settings(max_examples=tries(50, 1000), deadline=None)
def test_a_price_that_is_put_into_force_is_in_force_to_the_last_digit(old: float, new: float) -> None:
    setup = parse(
        {**CONFIG, "setup": {**CONFIG["setup"], "nodes": [{**OREGON, "rent": {"gpu": old}}]}}, Path()
    ).setup
    change = Change(0, *of_prices(setup, listed(new))[0])
    factors = {(change.a, change.b): change.factor}
    assert in_force(setup, factors)[0, 0].usd == (new,)
    began = parse(
        {**CONFIG, "setup": {**CONFIG["setup"], "nodes": [{**OREGON, "rent": {"gpu": new}}]}}, Path()
    ).setup
    assert price_hash(setup, factors) == price_hash(began, {})  # the same list, however it came about


def test_tiers_change_by_one_factor_and_the_error_says_to_what() -> None:
    rent = {"gpu": {"starts": [0, 3], "usd": [3.0, 2.0]}}
    nodes = [{**OREGON, "rent": rent}]
    setup = parse({**CONFIG, "setup": {**CONFIG["setup"], "nodes": nodes}}, Path()).setup
    fits = {"starts": [0, 3], "usd": [4.0, 2.666666667]}
    assert of_prices(setup, listed(fits))[0][3:] == (4000, 3000)
    with pytest.raises(InputError, match=r"rent.oregon.gpu: .* one factor .*here to \[4.0, 2.666666667\]"):
        of_prices(setup, listed({**fits, "usd": [4.0, 2.7]}))
    with pytest.raises(InputError, match="too many times"):
        of_prices(setup, listed({**fits, "usd": [3e14, 2e14]}))
    with pytest.raises(InputError, match="at most nine decimals"):
        of_prices(setup, listed({**fits, "usd": [1e-12, 1e-12]}))


def test_a_capacity_that_cannot_be_counted_is_refused_and_not_rounded() -> None:
    setup = parse(CONFIG, Path()).setup
    assert of_site(setup, "oregon", None, {"gpu": 0.5})["changes"][0][3] == 500
    with pytest.raises(InputError, match=r"capacity of oregon.gpu: 0.0001 has more than three decimals"):
        of_site(setup, "oregon", None, {"gpu": 0.0001})


def test_prices_of_a_site_without_a_limit_change_too_and_are_billed_as_they_are_listed(
    tmp_path: Path,
) -> None:
    nodes = [{"name": "oregon", "rent": {"gpu": 3.0}}]
    config = {**_read("serve-brokerage"), "fleet": {"as_root": True, "grace_s": 1.0}}
    config["setup"] = {**config["setup"], "slot_us": "1 s", "nodes": nodes}
    with running(tmp_path, config) as server, server.client() as admin:
        assert checked(admin.get("/v1/sites"))[0]["list_usd"] == 3.0
        checked(admin.post("/v1/prices", json={"rent": {"oregon": {"gpu": 4.0}}}))
        eventually(
            lambda: checked(admin.get("/v1/prices"))["rent"]["oregon"]["gpu"]["usd"] == [4.0], "it is listed"
        )
        stream = _read("job-brokerage")
        stream["work"] = {**stream["work"], "stay_us": "4 s"}
        whose = {"tenant": "research"}
        tried = checked(admin.post("/v1/jobs", json=stream, params={**whose, "dry_run": "1"}))
        assert "oregon: room for 8 of its workers, of 8 at most" in tried["lines"]
        id_ = checked(admin.post("/v1/jobs", json=stream, params=whose))["id"]
        assert over(admin, id_)["status"] == "left"
        lines = checked(admin.get("/v1/bills", params=whose, timeout=60))["bills"][0]["lines"]
        rents = [line for line in lines if line["kind"] == "rent"]
        assert rents
        assert all(line["usd"] == pytest.approx(4 * line["amount"], rel=1e-12) for line in rents)
        server.config.write_text(
            yaml.safe_dump(
                {**config, "setup": {**config["setup"], "nodes": [{**nodes[0], "rent": {"gpu": 5.0}}]}}
            )
        )
        assert checked(admin.post("/v1/reload"))["changes"] == 1
        eventually(
            lambda: checked(admin.get("/v1/prices"))["rent"]["oregon"]["gpu"]["usd"] == [5.0], "it is read"
        )


def test_the_policy_is_changed_after_a_what_if_and_stays_changed(server: Server) -> None:
    with server.client() as admin:
        script = "cd $TRADEWIND_CHECKPOINT_DIR; while [ ! -e go ]; do sleep 0.1; done"
        held = {**COUNT, "command": ["sh", "-c", script]}
        id_ = checked(admin.post("/v1/jobs", json=held, params={"tenant": "research"}))["id"]
        until(admin, id_, "running")
        asked = checked(admin.post("/v1/policy", json={"name": "srtf"}, timeout=60))
        assert (asked["applied"], asked["policy"]) == (False, "fifo-backfill")
        assert [run["name"] for run in asked["whatif"]["runs"]][-1] == "srtf"
        made = checked(admin.post("/v1/policy", json={"name": "srtf"}, params={"apply": True}, timeout=90))
        assert (made["applied"], made["policy"]) == (True, "srtf")
        until(admin, id_, "running", 40)
        folder = next(each for each in (server.data / "state" / "jobs").iterdir() if each.name.endswith(id_))
        (folder / "checkpoint" / "go").touch()
        assert over(admin, id_)["status"] == "finished"
        kinds = [each["kind"] for each in checked(admin.get(f"/v1/jobs/{id_}/events"))["events"]]
        assert kinds.count("arrived") == 2  # it was resumed under the other policy
        assert server.stop() == 0
        server.start()
        assert checked(admin.get("/v1/status"))["policy"] == "srtf"
        with Store.open(server.data) as store:
            store.verify()


def test_a_backup_of_a_running_service_starts_as_another_service(server: Server, tmp_path: Path) -> None:
    with server.client() as admin:
        id_ = checked(admin.post("/v1/jobs", json=COUNT, params={"tenant": "research"}))["id"]
        until(admin, id_, "running")
        assert backup(server.data, tmp_path / "backup.tar") > 1
        over(admin, id_)
    other = Server(tmp_path, CONFIG)
    other.config.write_text(server.config.read_text())
    assert restore(tmp_path / "backup.tar", other.data) > 1
    try:
        other.start()
        with other.client() as admin:  # with the same token
            assert over(admin, id_, 40)["status"] == "finished"  # it was running; it is started again
    finally:
        other.stop()
