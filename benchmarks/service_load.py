"""A service under load: a server in a process of its own, light clients, stores with many jobs, an engine without ranks."""

from __future__ import annotations

import asyncio
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import yaml

from tradewind.model.job import Job
from tradewind.service import config as configs
from tradewind.service.current import header_of, prepare, store_address
from tradewind.service.engine import Engine
from tradewind.service.process import EngineProcess
from tradewind.service.seal import Seal
from tradewind.service.service import Service
from tradewind.service.tokens import FILE
from tradewind.store.board import Board
from tradewind.store.store import Store
from tradewind.worlds.fleet import STOPPED, Capability, Exit, LaunchKey, LaunchStatus, Observations, Wanted

CLIENTS, TOGETHER, LEAST = 16, 500, 500
"""Clients that submit at once; jobs that `fill` hands in at once; admissions that are measured, however slow they are."""
JOB: dict[str, Any] = {
    "worker": {"gpu": 1},
    "command": ["sleep", "100000"],
    "work": {"kind": "fixed", "runtime_us": "1 min"},
}


def config(policy: str = "fifo-backfill", gpus: int = 3, store: str = "") -> dict[str, Any]:
    """A service without limits of requests; store: of PostgreSQL, else a file."""
    nodes = [{"name": f"n{i}", "capacity": {"gpu": min(8, gpus)}} for i in range(max(1, gpus // 8))]
    setup = {"objective": "jct_mean_s", "slot_us": "1 min", "resources": ["gpu"], "nodes": nodes}
    return {
        "tradewind_service": 1, "setup": setup, "policy": {"name": policy}, "fleet": {"as_root": True},
        "tenants": {"load": {"commands": [["sleep"]]}},
        "limits": {"requests_per_s": 1e6, "burst": 1_000_000, "streams": 100_000}, **({"store": store} if store else {}),
    }  # fmt: skip


def stored(folder: Path) -> str:
    """Where the store of the service in a folder is."""
    return store_address(configs.load(folder / "config.yaml"), folder / "data")


class Connection:
    """HTTP on a socket of its own: a client library would take more time than the server."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"

    def ask(self, method: str, path: str, body: bytes = b"", key: str = "") -> int:
        """Send a request and read the whole answer; its status."""
        named = f"Idempotency-Key: {key}\r\n" if key else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{named}Content-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._read()
        top, _, rest = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in top.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(rest) < length:
            rest += self._read()
        return int(top.split()[1])

    def listen(self, path: str) -> socket.socket:
        """Ask for a stream of events; the socket on which it comes."""
        head = f"GET {path} HTTP/1.1\r\n{self._head}Accept: text/event-stream\r\n\r\n"
        self._socket.sendall(head.encode())
        return self._socket

    def _read(self) -> bytes:
        part = self._socket.recv(65_536)
        if not part:
            raise ConnectionError("the server closed the connection")
        return part


class Server:
    """`tradewind serve` on a folder; `ready_s`: seconds from its start until it was ready."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ready_s = folder, 0.0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    def start(self) -> None:
        """Start it, and wait until it takes jobs."""
        begin = time.monotonic()
        command = [sys.executable, "-m", "tradewind.cli.main", "serve", str(self.folder / "config.yaml")]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), "--data", str(self.folder / "data")],
            stderr=subprocess.DEVNULL,
        )
        while self.process.poll() is None:
            try:
                if Connection(self.port, "").ask("GET", "/readyz") == 200:
                    self.ready_s = time.monotonic() - begin
                    return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the server did not start")

    def kill(self) -> None:
        """Kill -9."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Ctrl-C, and wait until its engine has ended its ranks."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def connect(self) -> Connection:
        """A connection with the admin's token."""
        return Connection(self.port, (self.folder / "data" / FILE).read_text().strip())

    def cpu_s(self) -> tuple[float, float]:
        """CPU seconds of the API and of the engine so far."""
        own = self.process.pid
        engine = Path(f"/proc/{own}/task/{own}/children").read_text().split()[0]
        return _cpu_s(own), _cpu_s(int(engine))


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(folder: Path, store: str = "") -> Iterator[Server]:
    """A server that is ready, and ended at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config(store=store)))
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def submit(server: Server, seconds: float, least: int = 0) -> int:
    """Submissions of several clients at once, each with a key and durable before its answer; how many.

    least: goes on beyond the time until there are so many, for what is a mean over them on a machine that is busy.
    """
    counts, body = [0] * CLIENTS, json.dumps(JOB).encode()
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        connection = server.connect()
        while time.monotonic() < end or sum(counts) < least:
            key = f"{number} {counts[number]} {end}"
            assert connection.ask("POST", "/v1/jobs?tenant=load", body, key) == 201
            counts[number] += 1

    threads = [Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(counts)


def listeners(server: Server, count: int) -> float:
    """Seconds until an event has reached all of many clients on streams."""
    selector, waiting = selectors.DefaultSelector(), set()
    last = Board(stored(server.folder)).last("board_events")
    for number in range(count):
        found = server.connect().listen(f"/v1/events?after={last}")
        selector.register(found, selectors.EVENT_READ, number)
        waiting.add(number)
    seen = dict.fromkeys(waiting, b"")

    def until(text: bytes) -> None:
        left = set(waiting)
        while left:
            for key, _ in selector.select(60.0):
                part = key.fileobj.recv(65_536)  # type: ignore[union-attr]
                assert part, "the server closed a stream"
                seen[key.data] += part
                if text in seen[key.data]:
                    left.discard(key.data)

    until(b": connected")
    begin = time.monotonic()
    assert server.connect().ask("POST", "/v1/jobs?tenant=load", json.dumps(JOB).encode()) == 201
    until(b"event: submitted")
    return time.monotonic() - begin


def fill(
    folder: Path, jobs: int, policy: str = "fifo-backfill", gpus: int = 3, store: str = ""
) -> configs.Config:
    """Hand in jobs of three sizes as the API does, without HTTP."""
    folder.mkdir(parents=True, exist_ok=True)
    path, data = folder / "config.yaml", folder / "data"
    path.write_text(yaml.safe_dump(config(policy, gpus, store)))
    found = configs.load(path)
    prepare(found, data)

    async def run() -> None:
        service = Service(found, data, EngineProcess(path, data))
        service.tokens.make_admin(data / FILE)
        token = service.tokens.all()[0]
        sizes = [service.reader.read({**JOB, "workers": n}, "load") for n in (1, 2, 3)]
        for first in range(0, jobs, TOGETHER):
            numbers = range(first, min(jobs, first + TOGETHER))
            await asyncio.gather(*(service.submit(sizes[n % 3], "submit", token, "") for n in numbers))
        service.close()

    asyncio.run(run())
    return found


class TimedFleet:
    """Ranks that only take time: what is measured is the engine."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, seconds: float) -> None:
        self._seconds, self.started = seconds, 0
        self._launches: dict[LaunchKey, tuple[float, int, bool]] = {}

    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Let launches begin."""
        now, before = time.monotonic(), self._launches
        self._launches = {}
        for launch, run, _ in wanted:
            self.started += launch.key not in before
            begin = before[launch.key][0] if launch.key in before else now
            self._launches[launch.key] = (begin, len(launch.ranks), run)

    def observe(self, timeout_s: float = 0.0) -> Observations:
        """Launches end after their time."""
        time.sleep(timeout_s)
        end = time.monotonic() - self._seconds
        found = {}
        for key, (begin, ranks, run) in self._launches.items():
            over = Exit(STOPPED, asked=True) if not run else Exit(0) if begin <= end else None
            found[key] = LaunchStatus((over,) * ranks)
        return Observations(found)

    def logs(self, job: Job, rank: int) -> str:
        """Nothing."""
        return ""

    def close(self) -> None:
        """Nothing to do."""


@contextmanager
def engine(found: configs.Config, data: Path, fleet: TimedFleet) -> Iterator[Engine]:
    """The engine of a service in this process, as it is after all requests were taken."""
    address = store_address(found, data)
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(io.StringIO()))
        store = stack.enter_context(Store.open(address, write=True))
        header_of(found, store)
        board = stack.enter_context(Board(address))
        made = Engine(found, store, board, Seal.of(data / "seal.key"), fleet)
        made.recover()
        yield made


def admit(policy: str, jobs: int, seconds: float, folder: Path, store: str = "") -> Mapping[str, float]:
    """Jobs that begin per second through policy, audit and store, while `jobs` others wait; CPU seconds of each."""
    found, fleet = fill(folder, jobs, policy, gpus=1600, store=store), TimedFleet(1.0)
    with engine(found, folder / "data", fleet) as made:
        last = Board(stored(folder)).last("requests")
        while made.intake.taken < last:
            made.step()
        guard = Timer(10 * seconds + 60, made.world.interrupt)
        guard.start()
        count, cpu_s, begin = fleet.started, time.process_time(), time.monotonic()
        while (time.monotonic() < begin + seconds or fleet.started < count + LEAST) and made.step():
            pass
        guard.cancel()
        passed, admitted = time.monotonic() - begin, fleet.started - count
        alarms = made.recorder.alarms
    return {
        "rate": admitted / passed,
        "cpu_s": (time.process_time() - cpu_s) / max(1, admitted),
        "alarms": alarms,
    }


def pass_through(jobs: int, rounds: int, folder: Path, store: str = "") -> list[float]:
    """Megabytes of the engine's process after each round of jobs that arrived, ran and ended."""
    sizes, fleet = [], TimedFleet(0.0)
    found = fill(folder, 0, gpus=1600, store=store)
    with engine(found, folder / "data", fleet) as made:
        for number in range(rounds):
            fill(folder, jobs, gpus=1600, store=store)
            while fleet.started < (number + 1) * jobs or made.intake.known:
                made.step()
            sizes.append(
                int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            )
    return sizes
