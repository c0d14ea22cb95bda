"""Clients that never give up while a service is hurt, and what must be true afterwards.

python -m tests.chaos.storm [SECONDS] [SEED] [STORE]      # the long version: faults at random; STORE: sqlite, postgresql

Connections are cut all the time; server, engine, ranks and database are killed, and a standby takes over. Half of the
time clients submit jobs to a queue, half of the time they buy in a market.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.proxy import Proxy, cutting
from tests.service.servers import QUEUE, Server, checked, job, over
from tests.service.test_market import POSTED, priced
from tests.store.postgres import Server as Postgres
from tests.store.postgres import server as postgres_server
from tradewind import api
from tradewind.store.board import Board
from tradewind.store.store import Store

FLEET = {**QUEUE["fleet"], "retries": 1000}
LIMITS = {"requests_per_s": 1e6, "burst": 1_000_000}
RENTED = [{**node, "rent": {"gpu": 3.6}} for node in QUEUE["setup"]["nodes"]]
CONFIG = {
    **QUEUE, "setup": {**QUEUE["setup"], "nodes": RENTED}, "fleet": FLEET, "limits": LIMITS,
    "tenants": {"red": {"commands": [["sleep"], ["sh", "-c"]]}},
}  # fmt: skip
MARKET = {**POSTED, "fleet": FLEET, "limits": LIMITS}
PATIENCE_S = 300.0


class Client:
    """Submits jobs with keys, each again and again until it is answered; remembers key -> job."""

    def __init__(self, port: int, secret: str, name: str) -> None:
        self._http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {secret}"}, timeout=30
        )
        self._name, self.answers, self.repeats = name, dict[str, str](), 0

    def submit(self, number: int) -> None:
        """Submit one job; the same key until there is an answer."""
        key = f"{self._name} {number}"
        body = job("sh", "-c", "echo ran >> $TRADEWIND_CHECKPOINT_DIR/../ran")
        answer = self.ask("POST", "/v1/jobs", body, key)
        assert answer.status_code == 201, answer.text
        self.answers[key] = answer.json()["id"]

    def ask(self, method: str, path: str, body: object = None, key: str = "") -> httpx.Response:
        """The answer to a request that is repeated until there is one that is not the server's failure."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                answer = self._http.request(method, path, json=body, headers={"Idempotency-Key": key})
                if answer.status_code < 500:
                    return answer
            except httpx.TransportError:
                pass
            self.repeats += 1
            time.sleep(0.05)
        raise AssertionError(f"{method} {path} {key}: no answer in {PATIENCE_S} s")


class Buyer(Client):
    """Asks for prices and accepts them; remembers job -> price, of receipts."""

    def __init__(self, port: int, secret: str, name: str) -> None:
        super().__init__(port, secret, name)
        self.paid: dict[str, float] = {}

    def submit(self, number: int) -> None:
        """Buy one job; where a price does not hold until it is accepted, another one is asked for."""
        for again in range(100):
            key = f"{self._name} {number} {again}"
            quote = self.ask("POST", "/v1/quotes", priced(), key).json()
            while quote["status"] == "pending":
                time.sleep(0.05)
                found = self.ask("GET", f"/v1/quotes/{quote['id']}")
                quote = found.json() if found.status_code == 200 else quote
            answer = self.ask("POST", f"/v1/quotes/{quote['id']}/accept", {"option": 0})
            if answer.status_code == 200:
                receipt = answer.json()
                assert receipt["price_usd"] == quote["options"][0]["price_usd"]
                self.answers[key] = quote["job"]
                self.paid[quote["job"]] = receipt["price_usd"]
                return
            assert answer.status_code == 409, answer.text
        raise AssertionError(f"{self._name} {number}: no price held")


def storm(
    server: Server, port: int, jobs: int, faults: Sequence[Callable[[], None]], kind: type[Client] = Client
) -> list[Client]:
    """Let clients submit jobs while faults happen, one after the other, spread over the submissions."""
    secret, clients = server.secret("tenant", "red"), 3
    crowd = [kind(port, secret, f"c{number}") for number in range(clients)]
    threads = [threading.Thread(target=_work, args=(each, jobs)) for each in crowd]
    for each in threads:
        each.start()
    for number, fault in enumerate(faults, 1):
        wanted = number * clients * jobs // (len(faults) + 1)
        while sum(len(each.answers) for each in crowd) < wanted and any(t.is_alive() for t in threads):
            time.sleep(0.01)
        fault()
    for each in threads:
        each.join()
    assert all(len(each.answers) == jobs for each in crowd)
    return crowd


def _work(client: Client, jobs: int) -> None:
    for number in range(jobs):
        client.submit(number)


def check(server: Server, crowd: Sequence[Client], store: str = "") -> None:
    """No job was lost, none is there twice, each ran to its end once, bills are right, and the records are whole."""
    ids = [id_ for each in crowd for id_ in each.answers.values()]
    paid = {id_: usd for each in crowd if isinstance(each, Buyer) for id_, usd in each.paid.items()}
    assert len(set(ids)) == len(ids)
    with server.client() as client:
        for id_ in ids:
            done = over(client, id_, PATIENCE_S)
            assert (done["status"], done["price_usd"]) == ("finished", paid.get(id_)), done
        check_bill(client, ids, paid)
    address = store or str(server.data)
    with Board(address) as board:
        rows = board.rows("board_jobs", most=100_000)
        others = {
            row["status"] for row in rows if row["id"] not in ids
        }  # their prices did not hold long enough
        assert others <= {"declined", "refused"}, others
        assert (
            len({row["id"] for row in rows}) == len(rows) == board.count("requests", kind=["submit", "quote"])
        )
        assert {row["id"] for row in rows} >= set(ids)
        assert paid or len(rows) == len(ids)
        for id_ in ids:
            kinds = [row["kind"] for row in board.rows("board_events", after=0, id=id_)]
            assert (kinds.count("arrived"), kinds.count("finished")) == (1, 1), kinds
    assert server.stop() == 0
    with Store.open(address) as found:
        found.verify()


def check_bill(client: httpx.Client, ids: Sequence[str], paid: Mapping[str, float]) -> None:
    """The bill has each job at its accepted price, once; in a queue it is what the audit reckons from the records."""
    (bill,) = checked(client.get("/v1/bills", params={"tenant": "red"}))["bills"]
    assert {each["job"]: each["usd"] for each in bill["payments"]} == paid
    assert len(bill["payments"]) == len(paid)
    assert not bill["refunds"]
    assert bill["due_usd"] == (fsum(paid.values()) if paid else bill["list_usd"] + bill["discount_usd"])
    assert {line["job"] for line in bill["lines"]} <= set(ids)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.json" for part in ("scenario", "run")]
        for file in files:
            file.write_bytes(client.get("/v1/export", params={"part": file.stem}).content)
        scenario, run = api.load(files[0]), api.load_run(files[1])
    audited = api.audit(scenario, run, bills=True)
    assert not audited.violations, audited.violations[:3]


class Site:
    """A service of which one process or another is killed, and which others take over."""

    def __init__(self, folder: Path, config: Mapping[str, Any], postgres: Postgres | None) -> None:
        self._folder, self._config, self._postgres = folder, config, postgres
        self.store = str(config.get("store", ""))
        self.server, self.done = Server(folder, config), Counter[str]()

    def fault(self, chance: random.Random, proxy: Proxy) -> None:
        """Something bad, after a while."""
        time.sleep(chance.uniform(0.5, 3.0))
        faults = [self.engine, self.restart, self.takeover, self.ranks]
        faults += [self.database] if self._postgres is not None else []
        chosen = chance.choice(faults)
        chosen()
        self.done[chosen.__name__] += 1
        proxy.target = self.server.port

    def engine(self) -> None:
        """Kill the engine."""
        with contextlib.suppress(IndexError):  # it is not there: it was killed a moment ago
            self.server.kill(self.server.engine())

    def restart(self) -> None:
        """Kill the server, and start it again."""
        self.server.kill()
        self.server.start()

    def takeover(self) -> None:
        """Kill server and engine while a standby waits; it goes on."""
        other = Server(self._folder, self._config)
        other.start(standby=True)
        self.engine()
        self.server.kill()
        self.server = other
        other.ready()

    def ranks(self) -> None:
        """Kill processes of jobs and those that watch over them."""
        own = {self.server.process.pid if self.server.process else 0}
        with contextlib.suppress(IndexError):
            own.add(self.server.engine())
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and int(folder.name) not in own:
                    words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                    if str(self.server.data / "state").encode() in words:
                        os.kill(int(folder.name), signal.SIGKILL)

    def database(self) -> None:
        """Let the database crash and come back."""
        assert self._postgres is not None
        self._postgres.stop(signal.SIGQUIT)
        self._postgres.start()


def main(seconds: float, seed: int, store: str) -> None:
    """Random faults for a while, on a queue and on a market."""
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(postgres_server()) if store == "postgresql" else None
        for kind, config in ((Client, CONFIG), (Buyer, MARKET)):
            place = {} if postgres is None else {"store": postgres.database()}
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            play(seconds / 2, random.Random(seed), Site(folder, {**config, **place}, postgres), kind)


def play(seconds: float, chance: random.Random, site: Site, kind: type[Client]) -> None:
    """One storm."""
    count = max(2, int(seconds / 6))
    try:
        site.server.start()
        with cutting(site.server.port, 2.0) as proxy:
            fault = partial(site.fault, chance, proxy)
            crowd = storm(
                site.server, proxy.port, (20 if kind is Client else 4) * count, [fault] * count, kind
            )
        check(site.server, crowd, site.store)
    finally:
        site.server.stop()
    jobs, repeats = sum(len(each.answers) for each in crowd), sum(each.repeats for each in crowd)
    print(
        f"{kind.__name__}: {jobs} jobs, {dict(site.done)}, {proxy.cuts} cuts, {repeats} repeated requests: none lost, none "
        "twice, no price changed, bills right",
        flush=True,
    )


if __name__ == "__main__":
    given = [*sys.argv[1:], *("60", "1", "sqlite")[len(sys.argv) - 1 :]]
    main(float(given[0]), int(given[1]), given[2])
