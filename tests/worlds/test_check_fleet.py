"""`tradewind.testing.check_fleet` passes for the fake fleet and for processes, and finds fleets that are broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tradewind.model.setup import Setup
from tradewind.testing import CheckFailed, FakeCluster, FakeTime, Faults, check_fleet
from tradewind.testing.fleet_fake import FakeFleet
from tradewind.worlds.fleet import STOPPED, Exit, Fleet, Observations, Wanted
from tradewind.worlds.fleets.processes.fleet import ProcessFleet
from tradewind.worlds.fleets.processes.handles import RankHandle, marked_processes
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Launcher


class Clusters:
    """A fake cluster for every state directory."""

    def __init__(self, kind: Callable[[FakeCluster], Fleet] = FakeFleet) -> None:
        self._kind, self._made = kind, dict[Path, FakeCluster]()

    def of(self, state: Path) -> FakeCluster:
        if state not in self._made:
            self._made[state] = FakeCluster(FakeTime(), grace_s=0.5)
        return self._made[state]

    def fleet(self, state: Path, setup: Setup) -> Fleet:
        return self._kind(self.of(state))

    def faults(self) -> Faults:
        return Faults(
            kill_points=((FakeCluster, "start"), (FakeCluster, "stop")),
            lose=lambda state, node: self.of(state).lose(node),
            restore=lambda state, node: self.of(state).restore(node),
            silence=lambda state, node: self.of(state).silence(node),
            speak=lambda state, node: self.of(state).speak(node),
        )


def test_the_fake_fleet_passes() -> None:
    clusters = Clusters()
    check_fleet(clusters.fleet, clusters.faults(), seeds=200)
    assert all(cluster.twice == [] for cluster in clusters._made.values())


# ---------------------------------------------------------------------- processes
def mounted(folder: Path) -> bool:
    """Whether a small file system could be mounted there."""
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    return (
        os.geteuid() == 0
        and shutil.which("mount") is not None
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )


def mounts() -> bool:
    """Whether this machine lets us mount."""
    with tempfile.TemporaryDirectory() as folder:
        found = mounted(Path(folder))
        if found:
            subprocess.run(["umount", folder], check=True)
    return found


class Processes:
    """Process fleets; state directories can be filled up where a file system may be mounted."""

    token = f"check-fleet-{os.getpid()}"

    def __init__(self) -> None:
        self.full = 0

    def fleet(self, state: Path, setup: Setup) -> Fleet:
        options = ExecutionOptions(grace_s=0.5, patience_s=30.0)
        return ProcessFleet(state, setup, options, self.token)

    @contextmanager
    def full_disk(self, state: Path) -> Iterator[None]:
        """A small file system with nothing free; a file on it is removed when there should be space again."""
        if not mounted(state):
            yield
            return
        self.full += 1
        try:
            ballast = state / "ballast"
            with ballast.open("wb", buffering=0) as file:
                for size in (4096, 1):
                    try:
                        while True:
                            file.write(b"x" * size)
                    except OSError:
                        pass
            yield
            ballast.unlink()
        finally:
            inside = state.with_name(state.name + "-kept")
            shutil.copytree(state, inside, symlinks=True)
            subprocess.run(["umount", "--lazy", str(state)], check=True)
            shutil.copytree(inside, state, symlinks=True, dirs_exist_ok=True)


def test_processes_pass() -> None:
    made = Processes()
    faults = Faults(
        kill_points=((Launcher, "start"), (RankHandle, "stop"), (Launcher, "prepare")),
        full_disk=made.full_disk,
    )
    check_fleet(made.fleet, faults, seeds=4)
    assert marked_processes(made.token) == []
    assert made.full or os.geteuid() != 0 or not mounts()


# ---------------------------------------------------------------------- broken fleets
class StartsAgain(FakeFleet):
    """Starts every rank that does not run."""

    def reconcile(self, wanted: Collection[Wanted]) -> None:
        for launch, run, _ in wanted:
            for number in range(len(launch.ranks)):
                rank = self.cluster.ranks.get((*launch.key, number))
                if run and rank is not None and rank.exit is not None:
                    del self.cluster.ranks[(*launch.key, number)]
        super().reconcile(wanted)


class Forgets(FakeFleet):
    """Does not find the ranks of an earlier loop."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(cluster)
        cluster.ranks = {}


class Deaf(FakeFleet):
    """Stops nothing."""

    def reconcile(self, wanted: Collection[Wanted]) -> None:
        super().reconcile([Wanted(each.launch, True) for each in wanted])


class Hasty(FakeFleet):
    """Takes what it does not hear of for lost."""

    def observe(self, timeout_s: float = 0.0) -> Observations:
        seen = super().observe(timeout_s)
        return seen._replace(
            launches={
                key: status._replace(
                    exits=tuple(
                        Exit(None) if number in status.unreachable else each
                        for number, each in enumerate(status.exits)
                    )
                )
                for key, status in seen.launches.items()
            }
        )


class Polite(FakeFleet):
    """Reports every end as a proper stop."""

    def observe(self, timeout_s: float = 0.0) -> Observations:
        seen = super().observe(timeout_s)
        return seen._replace(
            launches={
                key: status._replace(exits=tuple(e and Exit(STOPPED, asked=True) for e in status.exits))
                for key, status in seen.launches.items()
            }
        )


class Repeats(FakeFleet):
    """Hands out all reports every time."""

    def observe(self, timeout_s: float = 0.0) -> Observations:
        self._told = {}
        return super().observe(timeout_s)


class Blind(FakeFleet):
    """Has an inventory of nodes, but never sees one fail."""

    def observe(self, timeout_s: float = 0.0) -> Observations:
        return super().observe(timeout_s)._replace(down_nodes=frozenset())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (StartsAgain, "is not started again"),
        (Forgets, "the next loop finds them"),
        (Deaf, "are asked to stop"),
        (Hasty, "Unreachable is not failed"),
        (Polite, "Exit codes are those of the program"),
        (Repeats, "Ranks start, report and end"),
        (Blind, "not in down_nodes"),
    ],
)
def test_a_broken_fleet_fails(kind: Any, words: str) -> None:
    clusters = Clusters(kind)
    with pytest.raises(CheckFailed, match=words):
        check_fleet(clusters.fleet, clusters.faults(), seeds=2)
