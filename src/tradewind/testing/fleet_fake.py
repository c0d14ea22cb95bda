"""A fake fleet: no processes and no sleeping, so that live runs are tested in milliseconds.

    time = FakeTime()
    cluster = FakeCluster(time)
    fleet = cluster.fleet()        # of a first loop; after its death, call it again for the next

Jobs run the programs of `tradewind.testing.fleet_programs`. Faults are injected between two calls: `kill` a rank, `lose`
and `restore` a node, `silence` a node (nothing is heard from it) and let it speak again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tradewind.model.job import Job
from tradewind.model.result import EndedJob
from tradewind.testing.fleet_programs import STEP_S, words
from tradewind.worlds.fleet import (
    STOPPED,
    Capability,
    Exit,
    IterationReport,
    Launch,
    LaunchKey,
    LaunchStatus,
    Observations,
    Wanted,
)

NEVER = float("inf")
LOG_BYTES = 100_000
"""Characters kept of what a rank wrote."""


class FakeTime:
    """Time that passes only when it is told to. The wall clock can be set without any effect on monotonic time."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._wall = 1.8e9

    def monotonic(self) -> float:
        """Seconds since some instant."""
        return self._now

    def wall(self) -> float:
        """Seconds since 1970."""
        return self._wall + self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += max(0.0, seconds)

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._wall += seconds


class MemoryStore:
    """The records of a live run, kept in memory as text."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def append(self, kind: str, record: Mapping[str, Any], ended: Sequence[EndedJob] = ()) -> None:
        """Add one record."""
        self.lines.append(json.dumps({"kind": kind, **record}, default=_jsonable))

    def read(self) -> list[dict[str, Any]]:
        """All records so far."""
        return [json.loads(line) for line in self.lines]


def _jsonable(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else dict(value)


@dataclass(slots=True)
class FakeRank:
    """A rank on a machine of the fake cluster."""

    launch: Launch
    number: int
    begin_s: float
    first: int  # iterations in the checkpoint when it began
    name: str
    values: tuple[float, ...]
    slow: float = 1.0
    asked_s: float = NEVER
    killed_s: float = NEVER
    exit: Exit | None = None
    end_s: float = NEVER
    done: int = 0
    reports: list[IterationReport] = field(default_factory=list)

    @property
    def node(self) -> int:
        """Where it runs."""
        return self.launch.ranks[self.number].node


RankKey = tuple[int, int, int]
"""(job, number of the launch, rank)."""


class FakeCluster:
    """Machines whose ranks keep running when a loop dies, and stop by themselves `patience_s` after the last sign of one.

    done   job -> numbers of the iterations that its rank 0 did, in order
    twice  what must not happen: a rank that was started again, or while another launch of its job ran
    """

    def __init__(self, time: FakeTime, *, grace_s: float = 1.0, patience_s: float = 60.0) -> None:
        self.time, self.grace_s, self.patience_s = time, grace_s, patience_s
        self.ranks: dict[RankKey, FakeRank] = {}
        self.blocked: set[RankKey] = set()
        self.checkpoints: dict[int, int] = {}
        self.done: dict[int, list[int]] = {}
        self.twice: list[str] = []
        self.down: set[int] = set()
        self.limits: dict[
            tuple[int, int], int
        ] = {}  # (node, resource) -> what there is, where it is less than it should be
        self.silent: set[int] = set()
        self.slow: dict[int, float] = {}  # node -> factor on the time of an iteration
        self._crashed: set[tuple[int, int]] = set()
        self._heard_s = time.monotonic()

    def fleet(self) -> FakeFleet:
        """A fleet for a new loop."""
        return FakeFleet(self)

    # ------------------------------------------------------------------ faults
    def kill(self, job: int, rank: int) -> None:
        """Kill a running rank of a job."""
        self.settle()
        for each in self.running(job):
            if each.number == rank:
                each.killed_s = self.time.monotonic()
        self.settle()

    def lose(self, node: int) -> None:
        """Lose a node with everything that runs on it, for certain."""
        self.settle()
        self.down.add(node)
        for rank in self.ranks.values():
            if rank.exit is None and rank.node == node:
                rank.exit = Exit(None, how="was lost with its node")

    def restore(self, node: int) -> None:
        """Bring a node back, empty."""
        self.down.discard(node)

    def silence(self, node: int) -> None:
        """Hear nothing of a node; its ranks go on."""
        self.silent.add(node)

    def speak(self, node: int) -> None:
        """Hear of a node again."""
        self.silent.discard(node)

    # ------------------------------------------------------------------ ranks
    def running(self, job: int) -> list[FakeRank]:
        """Ranks of a job that run."""
        return [rank for rank in self.ranks.values() if rank.launch.job.index == job and rank.exit is None]

    def start(self, launch: Launch, number: int) -> None:
        """Start a rank."""
        key, now = (*launch.key, number), self.time.monotonic()
        others = [each for each in self.running(launch.job.index) if each.launch.number != launch.number]
        if key in self.ranks or others:
            self.twice.append(f"rank {number} of launch {launch.key} at {now}")
        name, values = words(launch.job.command)
        first = self.checkpoints.get(launch.job.index, 0)
        node = launch.ranks[number].node
        rank = FakeRank(launch, number, now, first, name, values, self.slow.get(node, 1.0), done=first)
        self.ranks[key] = rank
        if node in self.down:
            rank.exit = Exit(None, how="was lost with its node")

    def stop(self, rank: FakeRank) -> None:
        """Ask a rank to stop."""
        rank.asked_s = min(rank.asked_s, self.time.monotonic())

    def hear(self) -> None:
        """A loop shows that it is alive."""
        self.settle()
        self._heard_s = self.time.monotonic()

    def settle(self) -> None:
        """Let all ranks do what they did until now."""
        now = self.time.monotonic()
        if now - self._heard_s > self.patience_s:
            for rank in self.ranks.values():
                rank.asked_s = min(rank.asked_s, self._heard_s + self.patience_s)
        for rank in sorted(self.ranks.values(), key=lambda each: each.begin_s):
            if rank.exit is None:
                self._run(rank, now)

    def next_end_s(self) -> float:
        """When the next rank ends by itself, as things are."""
        return min((self._end(r)[0] for r in self.ranks.values() if r.exit is None), default=NEVER)

    def _run(self, rank: FakeRank, now: float) -> None:
        end_s, found = self._end(rank)
        job, step = rank.launch.job.index, self._step_s(rank)
        last = int((min(now, end_s) - rank.begin_s) / step + 1e-6) if step else 0
        most = int(rank.values[0]) if step else 0
        while rank.done < min(rank.first + last, most):
            rank.done += 1
            rank.reports.append(IterationReport(rank.done, step, 10.0, 1.0, 1, 0.0))
            if rank.number == 0:
                self.done.setdefault(job, []).append(rank.done)
                self.checkpoints[job] = rank.done
        if rank.name in ("liar", "stubborn") and not rank.reports:
            iteration = 10**17 if rank.name == "liar" else 1
            rank.reports.append(IterationReport(iteration, 0.0, 0.0, 0.0, 0, 0.0))
        if end_s <= now:
            rank.exit, rank.end_s = found, end_s
            if rank.name == "crash" and found.code == -9 and rank.done == rank.values[1]:
                self._crashed.add((job, rank.number))

    @staticmethod
    def _step_s(rank: FakeRank) -> float:
        seconds = {"count": rank.values[-1] if rank.values else 0.0, "crash": STEP_S}.get(rank.name, 0.0)
        return seconds * rank.slow

    def _end(self, rank: FakeRank) -> tuple[float, Exit]:
        """When and how a rank ends, as things are."""
        ends = [(rank.killed_s, Exit(-9))]
        if rank.name == "stubborn":
            note = f"ignored SIGTERM for {self.grace_s:g} s and was killed"
            ends.append((rank.asked_s + self.grace_s, Exit(-9, asked=True, notes=(note,))))
        else:
            code = STOPPED if rank.name in ("count", "crash") else -15
            ends.append((rank.asked_s, Exit(code, asked=True)))
        if step := self._step_s(rank):
            ends.append((rank.begin_s + max(0.0, rank.values[0] - rank.first) * step, Exit(0)))
            crashed = (rank.launch.job.index, rank.number) in self._crashed
            if rank.name == "crash" and not crashed and rank.values[1] > rank.first:
                ends.append((rank.begin_s + (rank.values[1] - rank.first) * step, Exit(-9)))
        elif rank.name == "fail":
            ends.append((rank.begin_s + 0.001, Exit(int(rank.values[0]))))
        elif rank.name == "noisy":
            notes = (f"wrote more than its log limit ({LOG_BYTES} bytes); the oldest output was dropped",)
            ends.append((rank.begin_s + 0.001, Exit(0, notes=notes if rank.values[0] > LOG_BYTES else ())))
        return min(ends, key=lambda each: each[0])


class FakeFleet:
    """A fleet on a fake cluster. `observe` lets the fake time pass."""

    capabilities: frozenset[Capability] = frozenset({"node_inventory"})

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self._named: dict[LaunchKey, Launch] = {}
        self._told: dict[RankKey, int] = {}  # reports handed out

    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Start and stop ranks (worlds.fleet)."""
        cluster = self.cluster
        cluster.hear()
        runs = {each.launch.key for each in wanted if each.run}
        self._named = {each.launch.key: each.launch for each in wanted}
        for key, rank in cluster.ranks.items():
            if rank.exit is None and key[:2] not in runs and rank.node not in cluster.silent:
                cluster.stop(rank)
        for launch, run, _ in wanted:
            for number, place in enumerate(launch.ranks):
                key = (*launch.key, number)
                if key in cluster.ranks or key in cluster.blocked:
                    continue
                if not run:
                    cluster.blocked.add(key)
                elif place.node not in cluster.silent:
                    cluster.start(launch, number)

    def observe(self, timeout_s: float = 0.0) -> Observations:
        """What is known now; waits until a rank ends or time is up."""
        cluster, time = self.cluster, self.cluster.time
        time.advance(min(timeout_s, cluster.next_end_s() - time.monotonic()))
        cluster.hear()
        launches = {key: self._status(launch) for key, launch in self._named.items()}
        return Observations(launches, frozenset(cluster.down), limits=dict(cluster.limits))

    def _status(self, launch: Launch) -> LaunchStatus:
        exits: list[Exit | None] = []
        reports: list[tuple[int, IterationReport]] = []
        silent = [number for number, rank in enumerate(launch.ranks) if rank.node in self.cluster.silent]
        for number in range(len(launch.ranks)):
            key = (*launch.key, number)
            rank = self.cluster.ranks.get(key)
            if number in silent or rank is None:
                blocked = key in self.cluster.blocked
                exits.append(Exit(STOPPED, asked=True) if blocked else None)
                continue
            exits.append(rank.exit)
            reports += [(number, report) for report in rank.reports[self._told.get(key, 0) :]]
            self._told[key] = len(rank.reports)
        unreachable = frozenset(number for number in silent if exits[number] is None)
        return LaunchStatus(tuple(exits), unreachable, tuple(reports))

    def logs(self, job: Job, rank: int) -> str:
        """What a rank of a job wrote."""
        found = [
            r for r in self.cluster.ranks.values() if r.launch.job.index == job.index and r.number == rank
        ]
        text = "".join("y\n" * int(r.values[0] / 2) + "the end\n" if r.name == "noisy" else "" for r in found)
        return text[-LOG_BYTES:]

    def close(self) -> None:
        """Let go of it; ranks keep running."""
