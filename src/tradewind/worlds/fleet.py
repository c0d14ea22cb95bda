"""Where ranks run: the protocol that every fleet implements (`tradewind.testing.check_fleet` checks it).

A loop names all launches that it has not closed, and whether each should run. The fleet starts and stops ranks until
that is so, and says what it knows about them. A launch is identified by its job and its number: none of its ranks is
ever started twice, also if the loop dies and another one, with a new fleet object, names the launch again.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from tradewind.model.decision import Route, Step
from tradewind.model.job import Job

STOPPED = 75
"""Exit code of a rank that wrote its checkpoint and wants to be resumed (EX_TEMPFAIL)."""

Capability = Literal["cpu_shares", "latency", "node_inventory", "routes"]
"""cpu_shares: a rank gets no more CPU than its job demands · node_inventory: lost nodes and links, and smaller ones,
are noticed · routes: packets of a job take the paths of its plan, at the reserved rates."""


class Rank(NamedTuple):
    """One process of a job: its role, its node, and its number among the job's ranks on that node."""

    role: str
    node: int
    local: int


def ranks_of(step: Step) -> tuple[Rank, ...]:
    """Ranks of a step: first the parameter server, if any, then workers in the order of the step's nodes.

    A step without workers has no ranks: a parameter server alone trains nothing.
    """
    if not any(step.workers):
        return ()
    ranks: list[Rank] = []
    seen: dict[int, int] = {}
    for role, counts in (("ps", step.servers), ("worker", step.workers)):
        for node, count in zip(step.nodes, counts or (0,) * len(step.nodes), strict=True):
            for _ in range(count):
                ranks.append(Rank(role, node, seen.get(node, 0)))
                seen[node] = seen.get(node, 0) + 1
    return tuple(ranks)


LaunchKey = tuple[int, int]
"""(index of the job, number of the launch)."""


class Launch(NamedTuple):
    """One start of all ranks of a job; `number` counts the launches of the job, `slot` is the one in which it began."""

    job: Job
    number: int
    slot: int
    ranks: tuple[Rank, ...]

    @property
    def key(self) -> LaunchKey:
        """What identifies it."""
        return self.job.index, self.number


class Wanted(NamedTuple):
    """A launch that the loop has not closed.

    run     whether it should run; if not, its ranks are stopped
    routes  of the plan in force; they may change while it runs
    """

    launch: Launch
    run: bool = True
    routes: tuple[Route, ...] = ()


class Exit(NamedTuple):
    """How a rank ended.

    code   exit code of the program, negative for a signal; None if it is gone and nobody recorded a code
    asked  whether it was asked to stop
    how    how it was lost, where there is no code
    notes  what the operator should know, such as "ignored SIGTERM for 10 s and was killed"
    """

    code: int | None
    asked: bool = False
    how: str = "was lost"
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.code is None:
            return self.how
        if self.code < 0:
            return f"was ended by {_signal_name(-self.code)}"
        return f"ended with {self.code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"


class IterationReport(NamedTuple):
    """What a rank reported about an iteration (docs/jobs.md).

    loss, communication_seconds  0: not reported
    processed              names of shards that it has finished with
    accuracy, site_accuracy  on held-out samples, all and those of the rank's site; -1: not reported
    samples                that it processed; -1: not reported
    """

    iteration: int
    seconds: float
    bytes_sent: float
    loss: float
    workers: int
    at: float
    communication_seconds: float = 0.0
    processed: tuple[str, ...] = ()
    accuracy: float = -1.0
    site_accuracy: float = -1.0
    samples: float = -1.0


class LaunchStatus(NamedTuple):
    """What is known about a launch.

    exits        how each rank ended; None for ranks that run, are about to start, or cannot be reached
    unreachable  ranks about which nothing is known at present. That is no evidence of an end.
    reports      (rank, report) pairs that this fleet object has not handed out before
    waiting      why ranks have not been started yet; empty: all have, or nothing is in the way
    """

    exits: tuple[Exit | None, ...]
    unreachable: frozenset[int] = frozenset()
    reports: tuple[tuple[int, IterationReport], ...] = ()
    waiting: str = ""

    @property
    def is_over(self) -> bool:
        """Whether all ranks have ended."""
        return None not in self.exits


class Observations(NamedTuple):
    """What a fleet knows now. The rest, in indices of the setup, only with node_inventory.

    down_nodes, down_links  nodes and links that are down
    limits                  (node, resource) -> thousandths that there are, where that is less than the setup says
    """

    launches: Mapping[LaunchKey, LaunchStatus]
    down_nodes: frozenset[int] = frozenset()
    down_links: frozenset[int] = frozenset()
    limits: Mapping[tuple[int, int], int] = MappingProxyType({})


class Fleet(Protocol):
    """Starts, stops and watches ranks. They keep running when the loop dies, and end by themselves if none follows."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do beyond the rest of this protocol."""

    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Make it so, from now on; repeating it changes nothing.

        Ranks of a launch that should run are started, or found again if an earlier loop started them. A rank that has
        ended is not started again. Ranks of other launches are stopped: SIGTERM, then SIGKILL after a grace period. A
        rank that never started and should not counts as stopped. A launch that is no longer named is closed and
        forgotten.
        """

    def observe(self, timeout_s: float = 0.0) -> Observations:
        """What is known about every launch that was last named; waits up to `timeout_s` for something new.

        An exit is reported only on evidence (an exit code, a process that is gone, a node known to be lost), never
        because something did not answer in time. When all exits of a launch are reported, nothing of it is left.
        """

    def logs(self, job: Job, rank: int) -> str:
        """What a rank of a job wrote; the newest part, where it wrote much."""

    def close(self) -> None:
        """Let go of it: ranks keep running, for the next loop."""
