"""Ray as an engine, through a program of its own (ray_driver) that is started again when it is lost."""

from __future__ import annotations

import json
import select
from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.tasks.ray import RayProgram, check_address
from tradewind.worlds.fleets.engine import EngineGang, EngineUnreachable, Machine

START_S, ANSWER_S = 60.0, 30.0
"""How long the driver may take to find its cluster, and to answer."""


class RayEngine:
    """A Ray cluster by the address of its head, HOST:PORT. command: what runs the driver (`ip netns exec …` in tests)."""

    name = "ray"

    def __init__(self, address: str, command: Sequence[str] = ()) -> None:
        self._argv, self._command = ("tradewind.worlds.fleets.ray_driver", address), tuple(command)
        self._driver: RayProgram | None = None

    def machines(self) -> Sequence[Machine]:
        """All machines, in the order of their names."""
        return [Machine(**each) for each in self._ask("machines")]

    def start(self, gang: EngineGang) -> None:
        """Start one actor per machine of a gang, which runs its ranks."""
        self._ask("start", gang.name, [list(task) for task in gang.tasks])

    def gangs(self, prefix: str) -> Mapping[str, None]:
        """The gangs with this prefix that wait or run."""
        return dict.fromkeys(name.partition("@")[0] for name in self._ask("gangs", prefix))

    def waiting(self, prefix: str) -> Mapping[str, str]:
        """Gangs with this prefix that Ray has not started, and what they ask for."""
        return {name.partition("@")[0]: why for name, why in self._ask("waiting", prefix).items()}

    def cancel(self, name: str) -> None:
        """Remove a gang; nothing happens if it is over."""
        self._ask("cancel", name)

    def close(self) -> None:
        """End the driver; what the cluster runs goes on."""
        if self._driver is not None:
            self._driver.end()
        self._driver = None

    def _ask(self, *request: Any) -> Any:
        patience_s = ANSWER_S
        if self._driver is None or self._driver.process.poll() is not None:
            self.close()
            patience_s = START_S
            self._driver = RayProgram(self._argv, self._command)
        driver, process = self._driver, self._driver.process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise self._lost(driver) from None
        if not select.select([process.stdout], [], [], patience_s)[0]:
            self.close()
            raise EngineUnreachable(f"ray did not answer within {patience_s:.0f} s")
        line = process.stdout.readline()
        if not line:
            raise self._lost(driver)
        answer = json.loads(line)
        if "error" in answer:
            raise EngineUnreachable(f"ray: {answer['error']}")
        return answer["ok"]

    def _lost(self, driver: RayProgram) -> EngineUnreachable:
        """The driver has ended; the last line of what it said."""
        self.close()
        return EngineUnreachable(f"ray: {driver.last_words()}")


def open_engine(address: str) -> RayEngine:
    """The engine of `--fleet ray://HOST:PORT`."""
    check_address("--fleet", address)
    return RayEngine(address)
