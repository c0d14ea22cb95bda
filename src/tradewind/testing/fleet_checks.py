"""The contract of a fleet (tradewind.worlds.fleet): one suite that every fleet passes.

Each check is a function of a bed that raises CheckFailed. Beds run the programs of `tradewind.testing.fleet_programs`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tradewind.model.job import Fixed, Job
from tradewind.model.node import Node
from tradewind.model.setup import Setup
from tradewind.testing.contract import CheckFailed
from tradewind.testing.fleet_kills import KillSwitch, LoopKilled, Point
from tradewind.testing.fleet_programs import program
from tradewind.worlds.fleet import (
    STOPPED,
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


def check_fleet(
    make_fleet: MakeFleet, faults: Faults | None = None, *, seeds: int = 6, at_once: int = 1, patience: int = PATIENCE
) -> None:  # fmt: skip
    """Runs every check in a folder of its own and raises CheckFailed with all that failed.

    seeds     random deaths of loops
    at_once   checks that break nothing may run beside each other, so many at a time
    patience  rounds of ROUND_S after which something that should have happened has not
    """
    with tempfile.TemporaryDirectory(prefix="tradewind-fleet-") as folder:

        def failure(numbered: tuple[int, Check]) -> str:
            number, check = numbered
            bed = Bed(make_fleet, faults or Faults(), Path(folder) / str(number), patience)
            bed.folder.mkdir()
            try:
                check(bed)
            except CheckFailed as error:
                return f"  {check.__doc__}: {error}"
            except Exception as error:  # of the fleet
                return f"  {check.__doc__}: {type(error).__name__}: {error}"
            finally:
                bed.tear_down()
            return ""

        last = len(_GENTLE)
        with ThreadPoolExecutor(at_once) as pool:
            said = list(pool.map(failure, enumerate(_GENTLE)))
        said += map(failure, enumerate([*_ROUGH, *map(_random_deaths, range(seeds))], last))
    if failed := list(filter(None, said)):
        raise CheckFailed(f"{len(failed)} checks of a fleet failed:\n" + "\n".join(failed))


Check = Callable[["Bed"], None]


def _require(holds: bool, detail: str) -> None:
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
            _require(launch.key in seen, f"observe() says nothing about launch {launch.key}, which is named")
            status = seen[launch.key]
            _require(
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

    def both_count(self) -> Launch:
        """A launch with a rank on each node that counts without end, when both have begun."""
        launch = self.launch(self.job(0, "count", 10_000, 0.05), 0, 0, 1)
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


# ---------------------------------------------------------------------- checks
def runs_to_the_end(bed: Bed) -> None:
    """Ranks start, report and end with 0"""
    launch = bed.launch(bed.job(0, "count", 4, 0.05), 0, 0, 1)
    codes = [each.code for each in bed.end(launch, run=True)]
    _require(codes == [0, 0], f"two ranks that end with 0 were reported as {codes}")
    found, other = bed.iterations(launch), bed.iterations(launch, 1)
    _require(found == [1, 2, 3, 4], f"rank 0 reported {found}; it did iterations 1 to 4")
    # it begins at the checkpoint of rank 0, which may be ahead
    _require(other == [1, 2, 3, 4][4 - len(other) :], f"rank 1 reported {other}; each was done once, up to 4")


def stops(bed: Bed) -> None:
    """Ranks that should not run are asked to stop"""
    launch = bed.launch(bed.job(0, "count", 10_000, 0.05), 0, 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 2), what="the second iteration")
    exits = bed.end(launch, run=False)
    _require([e.code for e in exits] == [STOPPED] * 2, f"asked to stop, ranks ended with {exits}")
    _require(all(each.asked for each in exits), f"exits of stopped ranks do not say so: {exits}")
    before = bed.iterations(launch)
    for _ in range(5):
        bed.round([Wanted(launch, False)])
    _require(bed.iterations(launch) == before, "a rank went on after its end was reported")


def never_starts_what_should_not_run(bed: Bed) -> None:
    """A launch that never ran and should not counts as stopped, for good"""
    launch = bed.launch(bed.job(0, "count", 3, 0.05), 0, 0)
    exits = bed.end(launch, run=False)
    _require(exits[0].code == STOPPED and exits[0].asked, f"it was reported as {exits}")
    again = bed.end(launch, run=True)
    _require(again[0].code == STOPPED and not bed.iterations(launch), "it ran after it was stopped")


def starts_nothing_again(bed: Bed) -> None:
    """A rank that has ended is not started again, by no loop"""
    launch = bed.launch(bed.job(0, "count", 3, 0.05), 0, 0)
    first = bed.end(launch, run=True)
    for _ in range(5):
        bed.round([Wanted(launch, True)])
    bed.die()
    again = bed.end(launch, run=True)
    _require(again == first, f"the next loop was told {again}; the first {first}")
    _require(bed.iterations(launch) == [1, 2, 3], f"it counted {bed.iterations(launch)}, not 1 to 3")


def moves_and_resizes(bed: Bed) -> None:
    """A stopped job goes on elsewhere, with more ranks, from its checkpoint"""
    job = bed.job(0, "count", 12, 0.05)
    first = bed.launch(job, 0, 0)
    bed.until(first, run=True, holds=bed.counted(first, 2), what="the second iteration")
    bed.end(first, run=False)
    second = bed.launch(job, 1, 1, 0, 1)
    codes = [each.code for each in bed.end(second, run=True)]
    _require(codes == [0, 0, 0], f"three ranks that end with 0 were reported as {codes}")
    found = bed.iterations(second)
    _require(
        found == list(range(13 - len(found), 13)) and 0 < len(found) < 11,
        f"after {bed.iterations(first)} it did {found}; checkpoints must be kept, and reports told once",
    )


def reports_a_crash(bed: Bed) -> None:
    """A rank that is killed is reported as such, and the next launch continues"""
    job = bed.job(0, "crash", 6, 3)
    first = bed.launch(job, 0, 0)
    codes = [each.code for each in bed.end(first, run=True)]
    _require(codes == [-9], f"a rank killed by SIGKILL was reported as {codes}")
    second = bed.launch(job, 1, 1)
    codes = [each.code for each in bed.end(second, run=True)]
    _require(codes == [0], f"the next launch ended with {codes}")
    _require(bed.iterations(second) == [4, 5, 6], f"it did {bed.iterations(second)}, not 4 to 6")


def reports_exit_codes(bed: Bed) -> None:
    """Exit codes are those of the program"""
    launch = bed.launch(bed.job(0, "fail", 3), 0, 0)
    (found,) = bed.end(launch, run=True)
    _require(found.code == 3 and not found.asked, f"a program that ended with 3 was reported as {found}")


def finds_ranks_again(bed: Bed) -> None:
    """Ranks go on without a loop, and the next loop finds them"""
    launch = bed.launch(bed.job(0, "count", 15, 0.05), 0, 0, 1)
    bed.until(launch, run=True, holds=bed.counted(launch, 2), what="the second iteration")
    bed.die()
    codes = [each.code for each in bed.end(launch, run=True)]
    _require(codes == [0, 0], f"the next loop was told {codes}")
    found = bed.iterations(launch)
    _require(found == list(range(1, 16)), f"rank 0 did {found}, not 1 to 15, once each")


def stops_what_the_next_loop_does_not_name(bed: Bed) -> None:
    """What a loop does not name does not run"""
    launch = bed.launch(bed.job(0, "count", 10_000, 0.05), 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 2), what="the second iteration")
    bed.die()
    for _ in range(20):
        bed.round([])
    bed.die()
    (found,) = bed.end(launch, run=True)
    _require(found.code == STOPPED and found.asked, f"a rank that nobody named was reported as {found}")


def stops_stubborn_ranks(bed: Bed) -> None:
    """A rank that ignores SIGTERM is killed, and the operator is told"""
    launch = bed.launch(bed.job(0, "stubborn"), 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 1), what="its report")
    (found,) = bed.end(launch, run=False)
    _require(found.code == -9 and found.asked, f"it was reported as {found}")
    _require(bool(found.notes), "no note says that it had to be killed")


def bounds_logs(bed: Bed) -> None:
    """A rank that writes without end fills no disk, and the end of its log is kept"""
    job = bed.job(0, "noisy", 20_000_000)
    (found,) = bed.end(bed.launch(job, 0, 0), run=True)
    _require(found.code == 0, f"it was reported as {found}")
    text = bed.fleet.logs(job, 0)
    _require(len(text) <= LARGEST_LOG, f"{len(text)} characters are kept")
    _require("the end" in text, "the last line is lost")
    _require(bool(found.notes), "no note says that output was dropped")


def ignores_lies(bed: Bed) -> None:
    """Reports that cannot be read are ignored, and a rank that lies is stopped like any other"""
    launch = bed.launch(bed.job(0, "liar"), 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 1), what="the report that can be read")
    bed.end(launch, run=False)
    found = bed.iterations(launch)
    _require(found == [10**17], f"reports {found} were told; only one can be read")


def reports_a_lost_node(bed: Bed) -> None:
    """A lost node is told with its ranks; the others go on"""
    if "node_inventory" not in bed.fleet.capabilities:
        return
    lose, restore = bed.faults.lose, bed.faults.restore
    _require(
        lose is not None and restore is not None,
        "a fleet with node_inventory is checked with lose and restore",
    )
    assert lose is not None
    assert restore is not None
    launch = bed.both_count()
    lose(bed.folder, 1)
    status = bed.until(
        launch, run=True, holds=lambda s: s.exits[1] is not None, what="the end of a lost rank"
    )
    _require(status.exits[0] is None, f"the rank of another node was reported as {status.exits[0]}")
    _require(1 in bed.round([Wanted(launch, True)]).down_nodes, "the node is not in down_nodes")
    restore(bed.folder, 1)
    for _ in range(bed.patience):
        if not bed.round([Wanted(launch, True)]).down_nodes:
            break
    else:
        raise CheckFailed("a node that came back stays in down_nodes")
    bed.end(launch, run=False)


def reports_no_end_without_evidence(bed: Bed) -> None:
    """Unreachable is not failed: a rank that is not heard of has not ended"""
    silence, speak = bed.faults.silence, bed.faults.speak
    if silence is None or speak is None:
        return
    launch = bed.both_count()
    silence(bed.folder, 1)
    status = bed.until(launch, run=True, holds=lambda s: 1 in s.unreachable, what="rank 1 unreachable")
    _require(status.exits[1] is None, f"a rank that cannot be reached was reported as {status.exits[1]}")
    last = bed.iterations(launch, 1)[-1]
    speak(bed.folder, 1)
    heard = bed.counted(launch, last + 1, 1)
    status = bed.until(launch, run=True, holds=heard, what="an iteration of the rank that was silent")
    _require(status.exits == (None, None), f"both go on, but were reported as {status.exits}")
    bed.end(launch, run=False)


def survives_a_full_disk(bed: Bed) -> None:
    """After a full disk, everything works again, and nothing ran twice"""
    if bed.faults.full_disk is None:
        return
    job = bed.job(0, "count", 5, 0.05)
    launch = bed.launch(job, 0, 0)
    with bed.faults.full_disk(bed.folder), suppress(OSError):
        for _ in range(10):
            bed.round([Wanted(launch, True)])
    bed.die()
    (found,) = bed.end(launch, run=True)
    number = 0
    while found.code != 0 and number < 3:  # a rank may fail on a full disk, but not afterwards
        number += 1
        launch = bed.launch(job, number, 0)
        (found,) = bed.end(launch, run=True)
    _require(found.code == 0 and number < 3, f"with space again, it ended with {found}")
    _require(bed.iterations(launch)[-1:] == [5], f"it did {bed.iterations(launch)}")


def _random_deaths(seed: int) -> Check:
    def check(bed: Bed) -> None:
        draw = random.Random(seed)
        job, first = bed.job(0, "count", 12, 0.05), True
        one, two = bed.launch(job, 0, 0, 1), bed.launch(job, 1, 1, 1, 0)
        wanted, deaths, ended = [Wanted(one, True)], 0, 0
        for _ in range(bed.patience):
            switch = KillSwitch(draw.randint(1, 12) if deaths < 12 else 10**9)
            try:
                with switch.armed([*bed.faults.kill_points, (Bed, "round")]):
                    seen = bed.round(wanted)
            except LoopKilled:
                deaths += 1
                bed.die()
                continue
            status = seen.launches[wanted[0].launch.key]
            if first and (status.is_over or draw.random() < 0.1):
                wanted = [Wanted(one, False)]
                if status.is_over:
                    ended, first = max(bed.iterations(one), default=0), False
                    wanted = [Wanted(two, True)]
            elif not first and status.is_over:
                break
        _require(not first and status.is_over, "the program did not end")
        codes = [each.code for each in status.exits if each is not None]
        _require(codes == [0, 0, 0], f"the second launch ended with {codes}")
        bed.die()
        bed.end(two, run=True)
        found = bed.iterations(two)
        # a rank may be stopped between its checkpoint and its report
        _require(
            found == list(range(found[0] if found else 13, 13))
            and (not found or found[0] in (ended + 1, ended + 2)),
            f"after {ended} iterations of the first launch, the second did {found}; each must be done once",
        )

    check.__doc__ = f"Loops die at random points and nothing is lost or done twice (seed {seed})"
    return check


_GENTLE: Sequence[Check] = (
    runs_to_the_end, stops, never_starts_what_should_not_run, starts_nothing_again, moves_and_resizes,
    reports_a_crash, reports_exit_codes, finds_ranks_again, stops_what_the_next_loop_does_not_name,
    stops_stubborn_ranks, bounds_logs, ignores_lies,
)  # fmt: skip
_ROUGH: Sequence[Check] = (reports_a_lost_node, reports_no_end_without_evidence, survives_a_full_disk)
"""What these do is felt by all jobs of a cluster."""
