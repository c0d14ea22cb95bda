"""Clients that never give up while a service is hurt, and what must be true afterwards.

python -m tests.chaos.storm [SECONDS] [SEED]      # the long version: all faults in turn, on SQLite
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from tests.chaos.proxy import cutting
from tests.service.servers import QUEUE, Server, job, over, running
from tradewind.store.board import Board
from tradewind.store.store import Store

CONFIG = {**QUEUE, "tenants": {"red": {"commands": [["sleep"], ["sh", "-c"]]}}}
PATIENCE_S = 90.0


class Client:
    """Submits jobs with keys, each again and again until it is answered; remembers key -> job."""

    def __init__(self, port: int, secret: str, name: str) -> None:
        self._http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {secret}"}, timeout=10
        )
        self._name, self.answers, self.repeats = name, dict[str, str](), 0

    def submit(self, number: int) -> None:
        """Submit one job; the same key until there is an answer."""
        key, end = f"{self._name} {number}", time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                body = job("sh", "-c", "echo ran >> $TRADEWIND_CHECKPOINT_DIR/../ran")
                answer = self._http.post("/v1/jobs", json=body, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                self.repeats += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 201:
                self.answers[key] = answer.json()["id"]
                return
            assert answer.status_code >= 500, answer.text
            self.repeats += 1
            time.sleep(0.1)
        raise AssertionError(f"{key}: no answer in {PATIENCE_S} s")


def storm(
    server: Server, port: int, jobs: int, faults: Sequence[Callable[[], None]], clients: int = 3
) -> list[Client]:
    """Let clients submit jobs while faults happen, one after the other, spread over the submissions."""
    secret = server.secret("tenant", "red")
    crowd = [Client(port, secret, f"c{number}") for number in range(clients)]
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
    """No job was lost, none is there twice, each ran to its end once, and the records are whole."""
    ids = [id_ for each in crowd for id_ in each.answers.values()]
    assert len(set(ids)) == len(ids)
    with server.client() as client:
        for id_ in ids:
            assert over(client, id_, PATIENCE_S)["status"] == "finished"
    address = store or str(server.data)
    with Board(address) as board:
        assert sorted(row["id"] for row in board.rows("board_jobs", most=100_000)) == sorted(ids)
        assert board.count("requests", kind="submit") == len(ids)
        for id_ in ids:
            kinds = [row["kind"] for row in board.rows("board_events", after=0, id=id_)]
            assert (kinds.count("arrived"), kinds.count("finished")) == (1, 1), kinds
    assert server.stop() == 0
    with Store.open(address) as found:
        found.verify()


def main(seconds: float, seed: int) -> None:
    """Random faults for a while."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name, running(Path(name), CONFIG) as server:

        def fault() -> None:
            time.sleep(chance.uniform(0.5, 3.0))
            if chance.random() < 0.5:
                server.kill(server.engine())
            else:
                server.kill()
                server.start()

        with cutting(server.port, 2.0, seed) as proxy:
            count = max(2, int(seconds / 6))
            crowd = storm(server, proxy.port, 20 * count, [fault] * count)
        check(server, crowd)
        repeats = sum(each.repeats for each in crowd)
        print(
            f"{60 * count} jobs, {count} kills, {proxy.cuts} cuts, {repeats} repeated requests: none lost, none twice"
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
