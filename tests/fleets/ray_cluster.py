"""A real Ray cluster of this machine: every node in a network namespace of its own, joined by a switch.

`python -m tests.fleets.ray_cluster a1 b1` starts one and prints how to use it; Ctrl-C ends it.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.fleets.processes import at_site, descendants, send

PORT = 6401
START_S = 120.0
HEAD = "head"
PROBED = "8.8.8.8"
"""Ray asks which address leads there, and sends nothing. With a default route PyTorch would wait for name servers."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_period_ms": "1000", "RAY_health_check_timeout_ms": "30000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "300", "RAY_raylet_start_wait_time_s": "90",
    "RAY_worker_niceness": "0",
}  # fmt: skip
"""A machine whose raylet is gone is down after seconds; one that cannot be reached is kept for minutes, and ranks are not
nicer than others: by default Ray's go behind everything else on a busy machine (docs/fleets.md)."""


def missing() -> str:
    """What is missing for a cluster on this machine; empty: nothing."""
    if importlib.util.find_spec("ray") is None:
        return "Ray is not installed: make test installs it"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "a Ray cluster in a network namespace needs root and ip (iproute2)"
    return ""


class RayCluster:
    """A head without resources, and a node per name. command: runs a program on the head, where loops are."""

    address = f"10.99.0.1:{PORT}"

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._space = tuple(names), f"ray{secrets.token_hex(3)}"
        self.command = self._on(HEAD)
        # short, because paths of sockets are limited; a folder per node, because nodes that start at once collide in one
        self._folder = Path(f"/tmp/{self._space}")
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def _on(self, name: str) -> tuple[str, ...]:
        """Runs a program in the network namespace of a node."""
        return ("ip", "netns", "exec", f"{self._space}-{name}")

    def start(self) -> None:
        """Make the network, and start the head and all nodes."""
        switch = self._space
        self._folder.mkdir()
        for words in (
            f"netns add {switch}", f"-n {switch} link add switch type bridge", f"-n {switch} link set switch up",
            f"-n {switch} addr add 10.99.0.254/24 dev switch",
        ):  # fmt: skip
            subprocess.run(["ip", *words.split()], check=True)
        for number, name in enumerate((HEAD, *self.names), 1):
            mine = f"{switch}-{name}"
            for words in (
                f"netns add {mine}", f"-n {mine} link set lo up",
                f"-n {mine} link add net type veth peer name {name} netns {switch}",
                f"-n {mine} addr add 10.99.0.{number}/24 dev net", f"-n {mine} link set net up",
                f"-n {switch} link set {name} master switch", f"-n {switch} link set {name} up",
                f"-n {mine} route add {PROBED} via 10.99.0.254",
            ):  # fmt: skip
                subprocess.run(["ip", *words.split()], check=True)
        self.start_head()
        for name in self.names:
            self.start_node(name, wait=False)
        self.wait_for_nodes()

    def start_head(self) -> None:
        """Start the head."""
        self._ray(HEAD, "--head", f"--port={PORT}", "--num-cpus=0", "--include-dashboard=false")
        self._wait_for(HEAD)

    def start_node(self, name: str, cpus: int = 64, *, wait: bool = True) -> None:
        """Start a node; its site is the first letter of its name. wait: until it is up."""
        self._ray(name, f"--address={self.address}", f"--num-cpus={cpus}", f"--labels=site={name[0]}")
        if wait:
            self._wait_for(name)

    def restore(self) -> None:
        """Bring everything back that a test may have taken away; nodes that start are not waited for."""
        self.set_network("up")
        for name in self.names:
            if self.is_running(name):
                self.signal_agent(name, signal.SIGCONT)
            else:
                self.start_node(name, wait=False)

    def wait_for_nodes(self) -> None:
        """Wait until all nodes are up."""
        for name in self.names:
            try:
                self._wait_for(name)
            except RuntimeError:  # something happened to it while it started
                self.kill_node(name, self._folder)
                self.start_node(name)

    def _ray(self, name: str, *options: str) -> None:
        """Start a node in the foreground, so that everything of it is below one process."""
        number = 1 + (HEAD, *self.names).index(name)
        argv = [
            *self._on(name), str(Path(sys.executable).with_name("ray")), "start", "--block", f"--node-name={name}",
            f"--node-ip-address=10.99.0.{number}", "--object-store-memory=80000000", "--disable-usage-stats",
            "--include-log-monitor=false", f"--temp-dir={self._folder / name[0]}", *options,
        ]  # fmt: skip
        with self._said(name).open("wb") as out:
            self._nodes[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env={**os.environ, **SETTINGS}, start_new_session=True,
            )  # fmt: skip

    def _said(self, name: str) -> Path:
        """What the program that started a node wrote."""
        return self._folder / f"{name}.out"

    def _wait_for(self, name: str) -> None:
        """Wait until a node is up. `ray start` itself waits without end for a head that is gone."""
        until = time.monotonic() + START_S
        while "Ray runtime started" not in (said := self._said(name).read_text(errors="replace")):
            if not self.is_running(name) or time.monotonic() > until:
                raise RuntimeError(f"ray start --node-name={name} failed:\n{said[-2000:]}")
            time.sleep(0.1)

    def set_network(self, how: str) -> None:
        """Set the connection between the head, with its loops, and the nodes up or down."""
        subprocess.run(["ip", "-n", self._space, "link", "set", HEAD, how], check=True)

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
        for name in (*self.names, HEAD):
            if name in self._nodes:
                self.kill_node(name, self._folder)
            subprocess.run(["ip", "netns", "del", f"{self._space}-{name}"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self._space], check=False, capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    made = RayCluster(sys.argv[1:] or ["a1", "b1"])
    try:
        made.start()
        print(f"{' '.join(made.command)} tradewind inventory --fleet ray://{made.address}", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        made.stop()
