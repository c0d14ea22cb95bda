"""A real Ray cluster of this machine, in a network namespace of its own, from which nothing gets out."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.fleets.processes import at_site, descendants, send

PORT = 6401
START_S = 90


def missing() -> str:
    """What is missing for a cluster on this machine; empty: nothing."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed: make test installs it"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "a Ray cluster in a network namespace needs root and ip (iproute2)"
    return ""


class RayCluster:
    """A head without resources, and a node per name. command: runs a program where the cluster can be reached."""

    address = f"127.0.0.1:{PORT}"

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._space = tuple(names), f"ray{secrets.token_hex(3)}"
        self.command = ("ip", "netns", "exec", self._space)
        # short, because paths of sockets are limited
        self._folder = Path(f"/tmp/{self._space}")
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start the head and all nodes."""
        for argv in (("netns", "add", self._space), ("-n", self._space, "link", "set", "lo", "up")):
            subprocess.run(["ip", *argv], check=True)
        self._ray(
            "head", "--head", f"--port={PORT}", "--num-cpus=0", "--include-dashboard=false",
            f"--temp-dir={self._folder}",
        )  # fmt: skip
        for name in self.names:
            self.start_node(name)

    def start_node(self, name: str, cpus: int = 64) -> None:
        """Start a node; its site is the first letter of its name."""
        self._ray(name, f"--address={self.address}", f"--num-cpus={cpus}", f"--labels=site={name[0]}")

    def _ray(self, name: str, *options: str) -> None:
        """Start a node in the foreground, so that everything of it is below one process; wait until it is up."""
        argv = [
            *self.command, str(Path(sys.executable).with_name("ray")), "start", "--block", f"--node-name={name}",
            "--object-store-memory=80000000", "--disable-usage-stats", *options,
        ]  # fmt: skip
        env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
            start_new_session=True,
        )  # fmt: skip
        self._nodes[name] = process
        assert process.stdout is not None
        # ray start waits without end for a head that is gone
        watch = threading.Timer(START_S, os.killpg, (process.pid, signal.SIGKILL))
        watch.start()
        said = []
        try:
            for line in process.stdout:
                said.append(line.decode(errors="replace"))
                if "Ray runtime started" in said[-1]:
                    return
        finally:
            watch.cancel()
        raise RuntimeError(f"ray start --node-name={name} failed:\n{''.join(said[-20:])}")

    def set_network(self, how: str) -> None:
        """Set the network of the cluster up or down: nobody in it hears anybody."""
        subprocess.run(["ip", "-n", self._space, "link", "set", "lo", how], check=True)

    def has(self, name: str, pid: int) -> bool:
        """Whether a process belongs to a node."""
        return pid in descendants(self._nodes[name].pid)

    def is_running(self, name: str) -> bool:
        """Whether a node runs."""
        return self._nodes[name].poll() is None

    def kill_node(self, name: str, state: Path) -> None:
        """Switch a node off: its raylet, its workers, and all ranks of the runs in `state`."""
        self.signal_node(name, state, signal.SIGKILL)
        self._nodes[name].wait()

    def signal_node(self, name: str, state: Path, number: int) -> None:
        """Signal everything on a node."""
        mine = [self._nodes[name].pid, *descendants(self._nodes[name].pid)]
        send([*mine, *at_site(state, name[0])], number)

    def signal_agent(self, name: str, number: int) -> None:
        """Signal the raylet of a node."""
        for pid in descendants(self._nodes[name].pid):
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "raylet":
                    os.kill(pid, number)

    def stop(self) -> None:
        """End everything."""
        for name in (*self.names, "head"):
            if name in self._nodes:
                self.kill_node(name, self._folder)
        subprocess.run(["ip", "netns", "del", self._space], check=False)
        shutil.rmtree(self._folder, ignore_errors=True)
