"""The contract of a fleet (tradewind.worlds.fleet): one suite that every fleet passes.

Each check is a function of a bed that raises CheckFailed. Beds run the programs of `tradewind.testing.fleet_programs`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tradewind.testing.contract import CheckFailed
from tradewind.testing.fleet_bed import LARGEST_LOG, PATIENCE, Bed, Faults, MakeFleet, require
from tradewind.testing.fleet_kills import KillSwitch, LoopKilled
from tradewind.worlds.fleet import (
    STOPPED,
    Wanted,
)

Check = Callable[[Bed], None]


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


# ---------------------------------------------------------------------- checks
def runs_to_the_end(bed: Bed) -> None:
    """Ranks start, report and end with 0"""
    launch = bed.launch(bed.job(0, "count", 4, 0.05), 0, 0, 1)
    codes = [each.code for each in bed.end(launch, run=True)]
    require(codes == [0, 0], f"two ranks that end with 0 were reported as {codes}")
    found, other = bed.iterations(launch), bed.iterations(launch, 1)
    require(found == [1, 2, 3, 4], f"rank 0 reported {found}; it did iterations 1 to 4")
    # it begins at the checkpoint of rank 0, which may be ahead
    require(other == [1, 2, 3, 4][4 - len(other) :], f"rank 1 reported {other}; each was done once, up to 4")


def stops(bed: Bed) -> None:
    """Ranks that should not run are asked to stop"""
    launch = bed.both_count(0, 0)  # a rank that has not begun ends by the signal
    exits = bed.end(launch, run=False)
    require([e.code for e in exits] == [STOPPED] * 2, f"asked to stop, ranks ended with {exits}")
    require(all(each.asked for each in exits), f"exits of stopped ranks do not say so: {exits}")
    before = bed.iterations(launch)
    for _ in range(5):
        bed.round([Wanted(launch, False)])
    require(bed.iterations(launch) == before, "a rank went on after its end was reported")


def never_starts_what_should_not_run(bed: Bed) -> None:
    """A launch that never ran and should not counts as stopped, for good"""
    launch = bed.launch(bed.job(0, "count", 3, 0.05), 0, 0)
    exits = bed.end(launch, run=False)
    require(exits[0].code == STOPPED and exits[0].asked, f"it was reported as {exits}")
    again = bed.end(launch, run=True)
    require(again[0].code == STOPPED and not bed.iterations(launch), "it ran after it was stopped")


def starts_nothing_again(bed: Bed) -> None:
    """A rank that has ended is not started again, by no loop"""
    launch = bed.launch(bed.job(0, "count", 3, 0.05), 0, 0)
    first = bed.end(launch, run=True)
    for _ in range(5):
        bed.round([Wanted(launch, True)])
    bed.die()
    again = bed.end(launch, run=True)
    require(again == first, f"the next loop was told {again}; the first {first}")
    require(bed.iterations(launch) == [1, 2, 3], f"it counted {bed.iterations(launch)}, not 1 to 3")


def moves_and_resizes(bed: Bed) -> None:
    """A stopped job goes on elsewhere, with more ranks, from its checkpoint"""
    job = bed.job(0, "count", 12, 0.05)
    first = bed.launch(job, 0, 0)
    bed.until(first, run=True, holds=bed.counted(first, 2), what="the second iteration")
    bed.end(first, run=False)
    second = bed.launch(job, 1, 1, 0, 1)
    codes = [each.code for each in bed.end(second, run=True)]
    require(codes == [0, 0, 0], f"three ranks that end with 0 were reported as {codes}")
    found = bed.iterations(second)
    require(
        found == list(range(13 - len(found), 13)) and 0 < len(found) < 11,
        f"after {bed.iterations(first)} it did {found}; checkpoints must be kept, and reports told once",
    )


def reports_a_crash(bed: Bed) -> None:
    """A rank that is killed is reported as such, and the next launch continues"""
    job = bed.job(0, "crash", 6, 3)
    first = bed.launch(job, 0, 0)
    codes = [each.code for each in bed.end(first, run=True)]
    require(codes == [-9], f"a rank killed by SIGKILL was reported as {codes}")
    second = bed.launch(job, 1, 1)
    codes = [each.code for each in bed.end(second, run=True)]
    require(codes == [0], f"the next launch ended with {codes}")
    require(bed.iterations(second) == [4, 5, 6], f"it did {bed.iterations(second)}, not 4 to 6")


def reports_exit_codes(bed: Bed) -> None:
    """Exit codes are those of the program"""
    launch = bed.launch(bed.job(0, "fail", 3), 0, 0)
    (found,) = bed.end(launch, run=True)
    require(found.code == 3 and not found.asked, f"a program that ended with 3 was reported as {found}")


def finds_ranks_again(bed: Bed) -> None:
    """Ranks go on without a loop, and the next loop finds them"""
    launch = bed.launch(bed.job(0, "count", 15, 0.05), 0, 0, 1)
    bed.until(launch, run=True, holds=bed.counted(launch, 2), what="the second iteration")
    bed.die()
    codes = [each.code for each in bed.end(launch, run=True)]
    require(codes == [0, 0], f"the next loop was told {codes}")
    found = bed.iterations(launch)
    require(found == list(range(1, 16)), f"rank 0 did {found}, not 1 to 15, once each")


def stops_what_the_next_loop_does_not_name(bed: Bed) -> None:
    """What a loop does not name does not run"""
    launch = bed.launch(bed.job(0, "count", 10_000, 0.05), 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 2), what="the second iteration")
    bed.die()
    for _ in range(20):
        bed.round([])
    bed.die()
    (found,) = bed.end(launch, run=True)
    require(found.code == STOPPED and found.asked, f"a rank that nobody named was reported as {found}")


def stops_stubborn_ranks(bed: Bed) -> None:
    """A rank that ignores SIGTERM is killed, and the operator is told"""
    launch = bed.launch(bed.job(0, "stubborn"), 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 1), what="its report")
    (found,) = bed.end(launch, run=False)
    require(found.code == -9 and found.asked, f"it was reported as {found}")
    require(bool(found.notes), "no note says that it had to be killed")


def bounds_logs(bed: Bed) -> None:
    """A rank that writes without end fills no disk, and the end of its log is kept"""
    job = bed.job(0, "noisy", 20_000_000)
    (found,) = bed.end(bed.launch(job, 0, 0), run=True)
    require(found.code == 0, f"it was reported as {found}")
    text = bed.fleet.logs(job, 0)
    require(len(text) <= LARGEST_LOG, f"{len(text)} characters are kept")
    require("the end" in text, "the last line is lost")
    require(bool(found.notes), "no note says that output was dropped")


def ignores_lies(bed: Bed) -> None:
    """Reports that cannot be read are ignored, and a rank that lies is stopped like any other"""
    launch = bed.launch(bed.job(0, "liar"), 0, 0)
    bed.until(launch, run=True, holds=bed.counted(launch, 1), what="the report that can be read")
    bed.end(launch, run=False)
    found = bed.iterations(launch)
    require(found == [10**17], f"reports {found} were told; only one can be read")


def reports_a_lost_node(bed: Bed) -> None:
    """A lost node is told with its ranks; the others go on"""
    if "node_inventory" not in bed.fleet.capabilities:
        return
    lose, restore = bed.faults.lose, bed.faults.restore
    require(
        lose is not None and restore is not None,
        "a fleet with node_inventory is checked with lose and restore",
    )
    assert lose is not None
    assert restore is not None
    launch = bed.both_count(0, 1)
    lose(bed.folder, 1)
    status = bed.until(
        launch, run=True, holds=lambda s: s.exits[1] is not None, what="the end of a lost rank"
    )
    require(status.exits[0] is None, f"the rank of another node was reported as {status.exits[0]}")
    require(1 in bed.round([Wanted(launch, True)]).down_nodes, "the node is not in down_nodes")
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
    launch = bed.both_count(0, 1)
    silence(bed.folder, 1)
    status = bed.until(launch, run=True, holds=lambda s: 1 in s.unreachable, what="rank 1 unreachable")
    require(status.exits[1] is None, f"a rank that cannot be reached was reported as {status.exits[1]}")
    last = bed.iterations(launch, 1)[-1]
    speak(bed.folder, 1)
    heard = bed.counted(launch, last + 1, 1)
    status = bed.until(launch, run=True, holds=heard, what="an iteration of the rank that was silent")
    require(status.exits == (None, None), f"both go on, but were reported as {status.exits}")
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
    require(found.code == 0 and number < 3, f"with space again, it ended with {found}")
    require(bed.iterations(launch)[-1:] == [5], f"it did {bed.iterations(launch)}")


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
        require(not first and status.is_over, "the program did not end")
        codes = [each.code for each in status.exits if each is not None]
        require(codes == [0, 0, 0], f"the second launch ended with {codes}")
        bed.die()
        bed.end(two, run=True)
        found = bed.iterations(two)
        # a rank may be stopped between its checkpoint and its report
        require(
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
