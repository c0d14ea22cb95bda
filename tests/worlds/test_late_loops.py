"""Loops that are late by any time, killed, and stopped, on a cluster that fails: what they record is what they did."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import job, node, scenario, setup
from tests.worlds.live_scenarios import S, broker, market, rings
from tradewind import api
from tradewind.model.job import Fixed, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.testing.fleet_fake import FakeCluster, FakeTime, MemoryStore
from tradewind.testing.fleet_programs import program
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, drive

PROGRAMS = (program("fail", 1), program("sleep"), program("count", 3, 0.3), program("crash", 9, 4))


class LateTime(FakeTime):
    """Time that also passes between any two looks at it: mostly little, sometimes several slots."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._draw, self._most_s = draw, draw.choice((0.0, 0.1, 1.0, 3.0))

    def monotonic(self) -> float:
        if self._draw.random() < 0.2:
            self.advance(self._draw.random() ** 4 * self._most_s)
        return super().monotonic()


class Killed(Exception):
    """The loop was killed."""


def batch(command: Sequence[str]) -> tuple[Scenario, str]:
    """Fixed jobs and rounds, some with two ranks, on two nodes."""
    work: list[Any] = [Rounds(count=4, compute_us=10), Fixed(runtime_us=2 * S)]
    jobs = [
        job(i, arrive_us=i * S, work=work[i % 2], command=tuple(command), workers_min=n, workers_max=n)
        for i, n in enumerate((1, 2, 1, 2))
    ]
    where = setup([node("a", 2), node("b", 1)], slot_us=S, horizon_us=20 * S, objective="jct_mean_s")
    return scenario(jobs, where=where), "fifo"


def crowd(command: Sequence[str]) -> tuple[Scenario, str]:
    """Many jobs at once, of which some fail and others complete: beginnings and ends fall together."""
    programs = (tuple(command), *PROGRAMS)
    jobs = [
        job(i, work=Rounds(count=4, compute_us=10), command=programs[i % len(programs)]) for i in range(12)
    ]
    return scenario(jobs, where=setup([node("a", 64), node("b", 1)], slot_us=S, horizon_us=20 * S)), "fifo"


def late_run(made: Callable[[Sequence[str]], tuple[Scenario, str]], seed: int) -> tuple[Scenario, Run]:
    """A run whose loop is late; in every second one nodes fail, ranks are killed, and the loop is killed or stopped."""
    draw = random.Random(seed)
    given, policy = made(draw.choice(PROGRAMS))
    time = LateTime(draw)
    cluster, store, chance = FakeCluster(time), MemoryStore(), 0.05 * (seed % 2)
    options = ExecutionOptions(backoff_s=draw.choice((0.0, 0.1)), retries=seed % 3, stall_s=2.0)
    request = LiveRequest(
        scenario=given, spec=policies.find(policy), seed=1, state=Path("/nowhere"), time=time, options=options
    )

    def disturb(session: Any, world: Any) -> None:
        if draw.random() < chance:
            number = draw.randrange(2)
            match draw.choice(("kill", "lose", "restore", "restart", "stop" if draw.random() < 0.2 else "")):
                case "kill":
                    cluster.kill(draw.randrange(2), number)
                case "lose":
                    cluster.lose(number)
                case "restore":
                    cluster.restore(number)
                case "restart":
                    raise Killed
                case "stop":
                    world.interrupt()

    while True:
        try:
            return given, drive(request, store, lambda token: cluster.fleet(), disturb)
        except Killed:
            continue


@pytest.mark.parametrize("made", [broker, market, rings, batch, crowd])
def test_the_audit_accepts_every_run_of_a_late_loop(made: Any) -> None:
    for seed in (*range(40), 461):  # the last: one is stopped when jobs complete
        given, run = late_run(made, seed)
        assert run.violations == (), seed
        assert api.check(given, run) == (), seed
