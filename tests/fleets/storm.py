"""Many faults at random: jobs that count go on through all of them, and every number is counted once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.fleets.processes import Program, descendants, programs
from tradewind.model.job import Fixed, Job
from tradewind.testing.fleet_bed import Bed, Faults, MakeFleet
from tradewind.testing.fleet_programs import program
from tradewind.worlds.fleet import Launch, LaunchStatus, Rank, Wanted
from tradewind.worlds.fleets.processes.launch import Launcher

RESTORE_EVERY_S = 5.0
LIMIT_S = 480.0
"""A busy machine takes long; a minute is usual."""
Fault = Callable[[random.Random], None]


class Cluster(Protocol):
    """A cluster of this machine whose nodes can be switched off, frozen and started again."""

    def is_running(self, name: str) -> bool: ...
    def start_node(self, name: str) -> None: ...
    def kill_node(self, name: str, state: Path) -> None: ...
    def signal_node(self, name: str, state: Path, number: int) -> None: ...
    def signal_agent(self, name: str, number: int) -> None: ...
    def restore(self) -> None: ...


def faults_of(cluster: Cluster, names: Sequence[str]) -> Faults:
    """What check_fleet can do to a cluster, and the points at which its loops die."""

    def restore(state: Path, node: int) -> None:
        if not cluster.is_running(names[node]):
            cluster.start_node(names[node])

    return Faults(
        kill_points=((Launcher, "spec"), (Launcher, "prepare")),
        lose=lambda state, node: cluster.kill_node(names[node], state),
        restore=restore,
        silence=lambda state, node: cluster.signal_node(names[node], state, signal.SIGSTOP),
        speak=lambda state, node: cluster.signal_node(names[node], state, signal.SIGCONT),
    )


def faults_at(
    cluster: Cluster, names: Sequence[str], state: Path, agent: str, *, kill: Sequence[str] = (), freeze: Sequence[str] = ()
) -> dict[str, Fault]:  # fmt: skip
    """What happens to nodes and their agents, and to other parts of the cluster that are killed or frozen."""

    def signalled(parts: Sequence[str], number: int) -> Fault:
        def fault(draw: random.Random) -> None:
            name = draw.choice(parts)
            if cluster.is_running(name):
                cluster.signal_agent(name, number)

        return fault

    def switch_off(draw: random.Random) -> None:
        name = draw.choice(names)
        if cluster.is_running(name):
            cluster.kill_node(name, state)

    return {
        f"{agent} killed": signalled(names, signal.SIGKILL),
        f"{agent} frozen": signalled(names, signal.SIGSTOP),
        "node switched off": switch_off,
        **{f"{part} killed": signalled([part], signal.SIGKILL) for part in kill},
        **{f"{part} frozen": signalled([part], signal.SIGSTOP) for part in freeze},
    }


@dataclass
class StormJob:
    """A job that counts; it is launched again, elsewhere and with another number of ranks, until it ends with 0."""

    job: Job
    launch: Launch
    over: bool = False
    stopping: bool = False


@dataclass
class Storm:
    """Jobs on a fleet under faults.

    faults   what can be done to its cluster
    done     how often each kind of fault happened
    """

    make_fleet: MakeFleet
    cluster: Cluster
    state: Path
    faults: Mapping[str, Fault]
    seed: int = 1
    count: int = 40
    done: dict[str, int] = field(default_factory=dict)

    def run(self, faults: int, jobs: int) -> None:
        """Let so many faults happen to so many jobs, and wait until all have counted to the end."""
        draw = random.Random(self.seed)
        self.bed = Bed(self.make_fleet, Faults(), self.state)
        mine = [self._job(index, draw) for index in range(jobs)]
        until, next_s, left = time.monotonic() + LIMIT_S, time.monotonic() + 1.0, faults
        kinds = {"loop": lambda _: self.bed.die(), **self._kills(), **self.faults}
        while not all(each.over for each in mine) or left:
            assert time.monotonic() < until, (
                f"{[each for each in mine if not each.over]} did not end; {self.done}"
            )
            wanted = [Wanted(each.launch, not each.stopping) for each in mine if not each.over]
            seen = self.bed.round(wanted)
            for each in mine:
                if not each.over:
                    self._next(each, seen.launches[each.launch.key], draw)
            if left and time.monotonic() >= next_s:
                left -= 1
                next_s = time.monotonic() + draw.uniform(0.1, 0.4)
                name = draw.choice(sorted(kinds))
                kinds[name](draw)
                self.done[name] = self.done.get(name, 0) + 1
                if draw.random() < 0.3:
                    self.cluster.restore()
            elif not left and time.monotonic() >= next_s:  # a node may have been hit while it started
                next_s = time.monotonic() + RESTORE_EVERY_S
                self.cluster.restore()
            if left and all(each.over for each in mine):
                mine = [self._job(each.job.index + jobs, draw) for each in mine]
        self.bed.die()
        for index in range(mine[-1].job.index + 1):
            path = next(self.state.glob(f"jobs/{index:04d}-*")) / "checkpoint" / "done"
            counted = path.read_text().split()
            assert counted == [str(i) for i in range(1, self.count + 1)], f"job {index} counted {counted}"

    def _job(self, index: int, draw: random.Random) -> StormJob:
        job = Job(
            index=index, id=f"j{index}", arrive_us=0, work=Fixed(runtime_us=1), worker=((0, 1000),),
            command=program("count", self.count, 0.05),
        )  # fmt: skip
        return StormJob(job, self._launch(job, 0, draw))

    def _launch(self, job: Job, number: int, draw: random.Random) -> Launch:
        nodes = [draw.randrange(2) for _ in range(draw.randint(1, 3))]
        ranks = tuple(Rank("worker", node, nodes[:i].count(node)) for i, node in enumerate(nodes))
        return Launch(job, number, 0, ranks)

    def _next(self, each: StormJob, status: LaunchStatus, draw: random.Random) -> None:
        """As a loop does: if a rank is lost, stop the others; when all have ended, begin again or be done."""
        ended = [found for found in status.exits if found is not None]
        if status.is_over:
            each.over = all(found.code == 0 for found in ended)
            each.stopping = False
            if not each.over:
                each.launch = self._launch(each.job, each.launch.number + 1, draw)
        elif any(found.code != 0 for found in ended) or draw.random() < 0.003:
            each.stopping = True

    def _kills(self) -> dict[str, Fault]:
        def kill(what: str) -> Fault:
            def fault(draw: random.Random) -> None:
                found = sorted(programs(self.state))
                chosen = [
                    each for each in found if each.name == ("starter" if what == "starter" else "supervisor")
                ]
                if chosen:
                    with suppress(ProcessLookupError):
                        os.kill(self._pid(draw.choice(chosen), what), signal.SIGKILL)

            return fault

        return {what: kill(what) for what in ("rank", "supervisor", "starter")}

    @staticmethod
    def _pid(chosen: Program, what: str) -> int:
        """The process to kill; a rank is what its supervisor runs."""
        return next(iter(descendants(chosen.pid)), chosen.pid) if what == "rank" else chosen.pid
