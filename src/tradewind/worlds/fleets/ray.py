"""Ray as an engine, through a program of its own (ray_driver) that is started again when it is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from typing import IO, Any

from tradewind.model.errors import InputError
from tradewind.worlds.fleets.engine import EngineGang, EngineUnreachable, Machine

START_S, ANSWER_S = 60.0, 30.0
"""How long the driver may take to find its cluster, and to answer."""


class RayEngine:
    """A Ray cluster by the address of its head, HOST:PORT. command: what runs the driver (`ip netns exec …` in tests)."""

    name = "ray"

    def __init__(self, address: str, command: Sequence[str] = ()) -> None:
        self._argv = [*command, sys.executable, "-m", "tradewind.worlds.fleets.ray_driver", address]
        self._driver: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def machines(self) -> Sequence[Machine]:
        """All machines, in the order of their names."""
        return [Machine(**each) for each in self._ask("machines")]

    def start(self, gang: EngineGang) -> None:
        """Start one actor per machine of a gang, which runs its ranks."""
        self._ask("start", gang.name, [list(task) for task in gang.tasks])

    def gangs(self, prefix: str) -> Collection[str]:
        """Names of the gangs with this prefix that wait or run."""
        return {name.partition("@")[0] for name in self._ask("gangs", prefix)}

    def cancel(self, name: str) -> None:
        """Remove a gang; nothing happens if it is over."""
        self._ask("cancel", name)

    def close(self) -> None:
        """End the driver; what the cluster runs goes on."""
        if self._driver is not None:
            self._driver.kill()
            self._driver.communicate()
        self._driver = None

    def _ask(self, *request: Any) -> Any:
        patience_s = ANSWER_S
        if self._driver is None or self._driver.poll() is not None:
            self.close()
            patience_s = START_S
            env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 kept as long as the driver
            self._driver = subprocess.Popen(
                self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=env
            )
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        try:
            self._driver.stdin.write(json.dumps(request).encode() + b"\n")
            self._driver.stdin.flush()
        except OSError:
            raise self._lost() from None
        if not select.select([self._driver.stdout], [], [], patience_s)[0]:
            self.close()
            raise EngineUnreachable(f"ray did not answer within {patience_s:.0f} s")
        line = self._driver.stdout.readline()
        if not line:
            raise self._lost()
        answer = json.loads(line)
        if "error" in answer:
            raise EngineUnreachable(f"ray: {answer['error']}")
        return answer["ok"]

    def _lost(self) -> EngineUnreachable:
        """The driver has ended; the last line of what it said."""
        self.close()
        assert self._said is not None
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        return EngineUnreachable(f"ray: {said[-1] if said else 'the driver ended'}")


def open_engine(address: str) -> RayEngine:
    """The engine of `--fleet ray://HOST:PORT`."""
    if importlib.util.find_spec("ray") is None:
        raise InputError("--fleet ray needs Ray, which is not installed: pip install 'tradewind[ray]'")
    if not address:
        raise InputError("--fleet ray needs the address of the head of a cluster: --fleet ray://HOST:6379")
    return RayEngine(address)
