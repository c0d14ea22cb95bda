"""Real server processes for tests, and clients that speak HTTP to them."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.service.forked import Forked

SITES = [{"name": "oregon", "capacity": {"gpu": 2}}, {"name": "dublin", "capacity": {"gpu": 2}}]
QUEUE: Mapping[str, Any] = {
    "tradewind_service": 1,
    "name": "test",
    "setup": {"objective": "jct_mean_s", "slot_us": "1 s", "resources": ["gpu"], "nodes": SITES},
    "policy": {"name": "fifo-backfill"},
    "fleet": {"as_root": True, "grace_s": 1.0, "retries": 1},
    "tenants": {"red": {"commands": [["sleep"], ["sh", "-c"]]}, "blue": {"commands": [["sleep"]]}},
}
"""Two sites with room for four workers, a queue, two tenants."""
START_S = 600.0
"""How long a start may take: kernels may have to be compiled before it is ready."""


def job(*command: str, **more: Any) -> dict[str, Any]:
    """A small job."""
    return {"worker": {"gpu": 1}, "command": list(command), **more}


class Server:
    """A service in a process of its own; `start` again continues it."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder, self.data = folder, folder / "data"
        self.config = folder / "config.yaml"
        self.config.write_text(yaml.safe_dump(dict(config)))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.verify: ssl.SSLContext | bool = True

    def start(self, standby: bool = False, anew: bool = False) -> None:
        """Start it and wait until it is ready; a standby only once it waits for its turn. anew: in a new Python."""
        args = ["serve", str(self.config), "--port", str(self.port), "--data", str(self.data)]
        args += ["--standby"] * standby
        if anew:
            with open(self.folder / "log", "ab") as log:
                command = [sys.executable, "-m", "tradewind.cli.main", *args]
                self.process = subprocess.Popen(command, stderr=log, stdout=log)
        else:
            self.process = Forked(args, self.folder / "log")
        if not standby:
            self.ready()
            return
        end = time.monotonic() + START_S
        while "stands by" not in self.log:
            assert time.monotonic() < end
            time.sleep(0.05)

    def ready(self) -> None:
        """Wait until it is ready."""
        assert self.process is not None
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log
            if self.answers():
                return
            time.sleep(0.05)
        raise AssertionError(f"not ready in {START_S} s: {self.log}")

    def answers(self) -> bool:
        """Whether it takes jobs."""
        try:
            return httpx.get(f"{self.address}/readyz", verify=self.verify).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.folder / "log").read_text()

    def engine(self) -> int:
        """The process of the engine."""
        assert self.process is not None
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(found[0])

    def kill(self, who: int | None = None) -> None:
        """Kill -9 the server, or another process of it."""
        assert self.process is not None
        os.kill(self.process.pid if who is None else who, signal.SIGKILL)
        if who is None:
            self.process.wait()

    def stop(self) -> int:
        """Ctrl-C; the exit code."""
        if self.process is None or self.process.poll() is not None:
            return 0
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=120)

    def client(self, secret: str | None = None) -> httpx.Client:
        """A client with a token, by default the admin's."""
        secret = secret or (self.data / "admin.token").read_text().strip()
        return httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {secret}"}, timeout=120)

    def secret(self, role: str, tenant: str = "", **more: Any) -> str:
        """A new token."""
        with self.client() as admin:
            body = {"role": role, "tenant": tenant, **more}
            return str(checked(admin.post("/v1/tokens", json=body))["secret"])

    def tenant(self, name: str) -> httpx.Client:
        """A client of a tenant."""
        return self.client(self.secret("tenant", name))


def checked(answer: httpx.Response) -> Any:
    """The JSON of an answer that is no error."""
    assert answer.is_success, f"{answer.status_code} {answer.text}"
    return answer.json()


def over(client: httpx.Client, id_: str, timeout_s: float = 120.0) -> dict[str, Any]:
    """A job once it is over."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        found: dict[str, Any] = checked(client.get(f"/v1/jobs/{id_}", params={"wait_s": 5}))
        if found["is_over"]:
            return found
    raise AssertionError(f"{id_} is {found['status']} after {timeout_s} s")


def until(client: httpx.Client, id_: str, status: str, timeout_s: float = 120.0) -> dict[str, Any]:
    """A job once it has a status."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        found: dict[str, Any] = checked(client.get(f"/v1/jobs/{id_}"))
        if found["status"] == status:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{id_} is {found['status']} after {timeout_s} s, not {status}")


@contextmanager
def running(folder: Path, config: Mapping[str, Any], anew: bool = False) -> Iterator[Server]:
    """A server that is ready, and ended at the end."""
    server = Server(folder, config)
    try:
        server.start(anew=anew)
        yield server
    finally:
        server.stop()
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
