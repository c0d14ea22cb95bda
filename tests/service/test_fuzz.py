"""The API fuzzed from its own OpenAPI document, and jobs and quotes by a state machine against a model.

More examples: TRADEWIND_TESTS=full pytest tests/service/test_fuzz.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, rule, run_state_machine_as_test
from schemathesis.checks import not_a_server_error

from tests.effort import tries
from tests.service.servers import QUEUE, Server, checked, job, over, running
from tests.service.test_market import POSTED, priced
from tradewind.service.app import create_app

EXAMPLES = tries(6, 60)
SLOW = tuple(hypothesis.HealthCheck)
FAST = {"burst": 1_000_000, "requests_per_s": 1e6}
document = create_app().openapi()
document["paths"] = {path: each for path, each in document["paths"].items() if path.startswith("/v1")}
schema = schemathesis.openapi.from_dict(document)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without limits of requests; one tenant may do nothing that costs anything."""
    with running(tmp_path_factory.mktemp("fuzz"), {**QUEUE, "limits": FAST}) as found:
        yield found


@pytest.fixture(scope="module")
def secret(server: Server) -> str:
    """A token whose jobs may only sleep."""
    return server.secret("tenant", "blue")


@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=SLOW, derandomize=True, database=None
)
def test_no_request_breaks_the_server(case: schemathesis.Case[Any], server: Server, secret: str) -> None:
    case.headers["Authorization"] = f"Bearer {secret}"
    for name in ("wait_s", "follow"):  # they only make it slow
        if case.query:
            case.query.pop(name, None)
    answer = case.call(base_url=server.address, timeout=120)
    case.validate_response(answer, checks=[not_a_server_error])
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert error["code"]
        assert error["message"]
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("number", [2**63, -(2**70), 10**30])
def test_numbers_beyond_64_bits_are_compared_as_they_are(server: Server, secret: str, number: int) -> None:
    with server.client(secret) as client:
        assert client.get("/v1/jobs", params={"before": number}).status_code == 200
        assert client.get("/v1/events", params={"after": number}).status_code == (200 if number > 0 else 422)


def test_no_text_as_a_job_breaks_the_server(server: Server, secret: str) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
        ),
        max_leaves=10,
    )

    @hypothesis.given(values, st.sampled_from(FIELDS))
    @hypothesis.settings(
        max_examples=10 * EXAMPLES, deadline=None, suppress_health_check=SLOW, derandomize=True, database=None
    )
    def check(value: Any, name: str) -> None:
        text = json.dumps({**job("sleep", "0"), name: value}).encode()
        answer = client.post("/v1/jobs", content=text, params={"dry_run": True})
        assert answer.status_code in (200, 422), answer.text

    with server.client(secret) as client:
        check()


FIELDS = (
    "id", "worker", "command", "workers", "work", "private", "architecture", "servers", "server", "model_bytes", "hold",
    "utility", "priority", "budget_usd", "kind", "gpu", "runtime_us", "count",
)  # fmt: skip


class Jobs(RuleBasedStateMachine):
    """Jobs of one tenant against a model: key -> id, and which are cancelled."""

    client: httpx.Client
    ids: Bundle[str] = Bundle("ids")
    run = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).run += 1
        self.by_key: dict[str, tuple[str, str]] = {}
        self.cancelled: set[str] = set()

    @rule(target=ids, key=st.integers(0, 3), seconds=st.sampled_from(["0", "30"]))
    def submit(self, key: int, seconds: str) -> str:
        """The same key and job: the same answer; the same key and another job: a conflict."""
        name = f"{self.run} {key}"
        answer = self.client.post("/v1/jobs", json=job("sleep", seconds), headers={"Idempotency-Key": name})
        known = self.by_key.get(name)
        if known is not None and known[0] != seconds:
            assert answer.status_code == 409
            return known[1]
        id_ = str(checked(answer)["id"])
        assert known is None or known[1] == id_
        assert known is not None or id_ not in [each[1] for each in self.by_key.values()]
        self.by_key[name] = (seconds, id_)
        return id_

    @rule(id_=ids)
    def cancel(self, id_: str) -> None:
        """It is over, and stays what it was."""
        before = checked(self.client.get(f"/v1/jobs/{id_}"))
        after = checked(self.client.post(f"/v1/jobs/{id_}/cancel"))
        assert after["is_over"]
        assert (
            after["status"] == before["status"]
            if before["is_over"]
            else after["status"] in ("cancelled", "finished")
        )
        self.cancelled.add(id_)

    @rule(id_=ids)
    def look(self, id_: str) -> None:
        """Jobs that were cancelled are over; the list has each job once."""
        found = checked(self.client.get(f"/v1/jobs/{id_}"))
        assert found["is_over"] or id_ not in self.cancelled
        listed = [each["id"] for each in checked(self.client.get("/v1/jobs", params={"limit": 1000}))["jobs"]]
        mine = [each[1] for each in self.by_key.values()]
        assert [listed.count(each) for each in mine] == [1] * len(mine)

    def teardown(self) -> None:
        for _, id_ in self.by_key.values():
            self.client.post(f"/v1/jobs/{id_}/cancel")


class Quotes(RuleBasedStateMachine):
    """Quotes of one tenant against a model: what was accepted or declined stays so, at its price."""

    client: httpx.Client
    open: Bundle[str] = Bundle("open")
    closed: Bundle[tuple[str, float | None]] = Bundle("closed")

    @rule(target=open)
    def ask(self) -> str:
        return str(checked(self.client.post("/v1/quotes", json=priced()))["id"])

    @rule(target=closed, id_=consumes(open))
    def accept(self, id_: str) -> tuple[str, float | None]:
        """At the price of the quote, or not at all."""
        quote = checked(self.client.get(f"/v1/quotes/{id_}"))
        answer = self.client.post(f"/v1/quotes/{id_}/accept", json={"option": 0})
        if answer.status_code == 409:
            assert answer.json()["error"]["code"] == "price_moved"
            return id_, None
        price = checked(answer)["price_usd"]
        assert price == quote["options"][0]["price_usd"]
        return id_, float(price)

    @rule(target=closed, id_=consumes(open))
    def decline(self, id_: str) -> tuple[str, float | None]:
        assert checked(self.client.post(f"/v1/quotes/{id_}/decline"))["status"] != "open"
        return id_, None

    @rule(found=closed)
    def again(self, found: tuple[str, float | None]) -> None:
        """The same answer, however often."""
        answer = self.client.post(f"/v1/quotes/{found[0]}/accept", json={"option": 0})
        if found[1] is None:
            assert answer.status_code == 409
        else:
            receipt = checked(answer)
            assert receipt["price_usd"] == found[1]
            assert over(self.client, receipt["job"]["id"], 60.0)["price_usd"] == found[1]


def _play(machine: type[RuleBasedStateMachine], server: Server) -> None:
    with server.client(server.secret("tenant", "red")) as client:
        machine.client = client
        settings = hypothesis.settings(
            max_examples=max(3, EXAMPLES // 2), stateful_step_count=12, deadline=None, suppress_health_check=SLOW,
            derandomize=True, database=None,
        )  # fmt: skip
        run_state_machine_as_test(machine, settings=settings)


def test_jobs_do_what_the_model_does(server: Server) -> None:
    _play(Jobs, server)


def test_quotes_do_what_the_model_does(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("market"), {**POSTED, "limits": FAST}) as server:
        with server.tenant("red") as client:  # the policy is compiled with its first quote
            first = checked(client.post("/v1/quotes", json=priced()))
            if first["status"] == "pending":
                over(client, first["job"], 120.0)
        _play(Quotes, server)
