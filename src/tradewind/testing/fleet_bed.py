"""A fleet under test: what can be done to it, and what its loops see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tradewind.model.job import Fixed, Job
from tradewind.model.node import Node
from tradewind.model.setup import Setup
from tradewind.testing.contract import CheckFailed
from tradewind.testing.fleet_kills import Point
from tradewind.testing.fleet_programs import program
from tradewind.worlds.fleet import (
    Exit,
    Fleet,
    IterationReport,
    Launch,
    LaunchKey,
    LaunchStatus,
    Observations,
    Rank,
    Wanted,
)

MakeFleet = Callable[[Path, Setup], Fleet]
"""(state directory of a run, its two nodes) -> the fleet of a new loop; the loop before it is dead."""
ROUND_S = 0.05
PATIENCE = 600
LARGEST_LOG = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What can be done to a fleet from outside; each is left out where it cannot be provoked.

    kill_points           methods of the fleet before and after which a loop may die
    lose, restore         a node (state directory, number of the node): lost for certain, and back again
    silence, speak        a node of which nothing is heard, and is heard again
    full_disk             (state directory) -> a context in which nothing can be written there
    """

    kill_points: Sequence[Point] = ()
    lose: Callable[[Path, int], None] | None = None
    restore: Callable[[Path, int], None] | None = None
    silence: Callable[[Path, int], None] | None = None
    speak: Callable[[Path, int], None] | None = None
    full_disk: Callable[[Path], AbstractContextManager[None]] | None = None


def require(holds: bool, detail: str) -> None:
    """Raise CheckFailed with a detail unless something holds."""
    if not holds:
        raise CheckFailed(detail)


@dataclass
class Bed:
    """A fleet under test, loop after loop, and what the current loop has seen."""

    make_fleet: MakeFleet
    faults: Faults
    folder: Path
    patience: int = PATIENCE
    launches: list[Launch] = field(default_factory=list)
    reports: dict[LaunchKey, list[tuple[int, IterationReport]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = tuple(Node(name=name, kind="site", capacity_milli=(64_000,)) for name in "ab")
        self.setup = Setup(
            resources=("gpu",), nodes=nodes, slot_us=1_000_000, horizon_us=10**12, objective="cost_usd"
        )
        self._fleet: Fleet | None = None
        self._over: set[LaunchKey] = set()

    @property
    def fleet(self) -> Fleet:
        """The fleet of the current loop."""
        if self._fleet is None:
            self._fleet = self.make_fleet(self.folder, self.setup)
        return self._fleet

    def die(self) -> None:
        """Let the loop die; the next call uses the fleet of a new one, which has seen nothing."""
        if self._fleet is not None:
            self._fleet.close()
        self._fleet, self.reports = None, {}

    def job(self, index: int, name: str, *values: float) -> Job:
        """A job that runs a program."""
        command = program(name, *values)
        return Job(
            index=index, id=f"j{index}", arrive_us=0, work=Fixed(runtime_us=1), worker=((0, 1000),), command=command
        )  # fmt: skip

    def launch(self, job: Job, number: int, *nodes: int) -> Launch:
        """A launch with a worker on each of some nodes."""
        ranks = tuple(Rank("worker", node, nodes[:i].count(node)) for i, node in enumerate(nodes))
        made = Launch(job, number, 0, ranks)
        self.launches.append(made)
        return made

    def round(self, wanted: Sequence[Wanted]) -> Observations:
        """Say what should run, and look."""
        self.fleet.reconcile(wanted)
        seen = self.fleet.observe(ROUND_S)
        for key, status in seen.launches.items():
            self.reports.setdefault(key, []).extend(status.reports)
            if status.is_over:
                self._over.add(key)
        return seen

    def until(
        self, launch: Launch, *, run: bool, holds: Callable[[LaunchStatus], bool], what: str
    ) -> LaunchStatus:
        """Wait until something holds for a launch."""
        status = LaunchStatus(())
        for _ in range(self.patience):
            seen = self.round([Wanted(launch, run)]).launches
            require(launch.key in seen, f"observe() says nothing about launch {launch.key}, which is named")
            status = seen[launch.key]
            require(
                len(status.exits) == len(launch.ranks),
                f"observe() reports {len(status.exits)} exits of a launch with {len(launch.ranks)} ranks",
            )
            if holds(status):
                return status
        log = self.fleet.logs(launch.job, 0)[-500:]
        raise CheckFailed(f"{what} did not happen; the last status was {status.exits}; rank 0 wrote: {log!r}")

    def end(self, launch: Launch, *, run: bool) -> tuple[Exit, ...]:
        """Wait for the end of a launch."""
        what = "the end of the program" if run else "the end of stopped ranks"
        exits = self.until(launch, run=run, holds=lambda status: status.is_over, what=what).exits
        return tuple(each for each in exits if each is not None)

    def iterations(self, launch: Launch, rank: int = 0) -> list[int]:
        """Iterations that a rank reported to this loop, in order."""
        return [r.iteration for number, r in self.reports.get(launch.key, []) if number == rank]

    def counted(self, launch: Launch, least: int, rank: int = 0) -> Callable[[LaunchStatus], bool]:
        """Whether a rank has reported an iteration as high as that."""
        return lambda status: max(self.iterations(launch, rank), default=0) >= least

    def both_count(self, *nodes: int) -> Launch:
        """A launch with a rank on each of two nodes that counts without end, when both have begun."""
        launch = self.launch(self.job(0, "count", 10_000, 0.05), 0, *nodes)
        for rank in (0, 1):
            what = f"the first iteration of rank {rank}"
            self.until(launch, run=True, holds=self.counted(launch, 1, rank), what=what)
        return launch

    def tear_down(self) -> None:
        """Stop everything that the check left."""
        with suppress(CheckFailed, OSError):
            for node in range(2):
                for undo in (self.faults.restore, self.faults.speak):
                    if undo is not None:
                        undo(self.folder, node)
            left = [Wanted(launch, False) for launch in self.launches if launch.key not in self._over]
            for _ in range(self.patience if left else 0):
                if all(status.is_over for status in self.round(left).launches.values()):
                    break
        self.die()
