"""The service under load: submissions per second, the time of a list, recovery. `python -m benchmarks service`."""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

import yaml

from benchmarks.measure import Row

CLIENTS, SECONDS = 16, 10.0
CONFIG = {
    "tradewind_service": 1,
    "setup": {
        "objective": "jct_mean_s", "slot_us": "1 min", "resources": ["gpu"],
        "nodes": [{"name": "one", "capacity": {"gpu": 1}}],
    },
    "policy": {"name": "fifo-backfill"},
    "fleet": {"as_root": True},
    "tenants": {"load": {"commands": [["sleep"]]}},
    "limits": {"requests_per_s": 1e6, "burst": 1000000},
}  # fmt: skip
JOB = b'{"worker":{"gpu":1},"command":["sleep","100000"]}'


class Connection:
    """HTTP on a socket of its own: a client library would take more time than the server."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"

    def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request and read the whole answer; its status."""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
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

    def _read(self) -> bytes:
        part = self._socket.recv(65_536)
        if not part:
            raise ConnectionError("the server closed the connection")
        return part


def start(folder: Path, port: int) -> tuple[subprocess.Popen[bytes], float]:
    """A server that is ready, and the seconds until then."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tradewind.cli.main", "serve", str(folder / "config.yaml"), "--port", str(port),
         "--data", str(folder / "data")], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None:
        try:
            if Connection(port, "").ask("GET", "/readyz") == 200:
                return process, time.monotonic() - begin
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server did not start")


def submit(port: int, token: str, seconds: float) -> int:
    """Submissions of several clients at once, each durable before its answer; how many."""
    counts = [0] * CLIENTS
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        connection = Connection(port, token)
        while time.monotonic() < end:
            assert connection.ask("POST", "/v1/jobs?tenant=load", JOB) == 201
            counts[number] += 1

    threads = [Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(counts)


def rows() -> list[Row]:
    """Figures of one server on SQLite, with one client process on the same machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        process, _ = start(folder, port)
        try:
            token = (folder / "data" / "admin.token").read_text().strip()
            count = submit(port, token, SECONDS)
            p99_s = listed(port, token)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            process, again_s = start(folder, port)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    note = f"{count} jobs"
    return [
        {"name": "submissions", "measured": count / SECONDS, "unit": "/s", "target": 500, "better": "higher",
         "note": f"{CLIENTS} clients, each durable before its answer"},
        {"name": "list of 100 jobs, p99", "measured": 1000 * p99_s, "unit": "ms", "target": 50, "better": "lower",
         "note": note},
        {"name": "ready after kill -9", "measured": again_s, "unit": "s", "target": 5, "better": "lower",
         "note": f"{note} waiting; start of Python included"},
    ]  # fmt: skip


def listed(port: int, token: str) -> float:
    """Seconds within which 99 of 100 lists are answered."""
    connection, times = Connection(port, token), []
    for _ in range(200):
        begin = time.perf_counter()
        assert connection.ask("GET", "/v1/jobs?limit=100") == 200
        times.append(time.perf_counter() - begin)
    return statistics.quantiles(times, n=100)[98]
