"""Ranks on a real Slurm of this machine: the contract of a fleet, and many faults."""

from __future__ import annotations

import importlib.util
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import rows
from tests.fleets.hostile_on import a_cut_changes_nothing, hostile_jobs_hurt_only_themselves
from tests.fleets.live_on import (
    books_are_those_of_processes,
    capacity_follows,
    data_goes_through_the_shared_directory,
    training_moves_and_grows,
    waits_with_a_reason,
)
from tests.fleets.slurm_cluster import SlurmCluster, missing
from tests.fleets.storm import Storm, faults_at, faults_of
from tradewind.model.setup import Setup
from tradewind.testing import check_fleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.shared import SharedFleet
from tradewind.worlds.fleets.slurm import SlurmEngine

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
NAMES = ("a1", "b1")
OPTIONS = ExecutionOptions(grace_s=0.5, patience_s=4.0)  # a loop of a busy machine may be silent for seconds


@pytest.fixture(name="cluster")
def _cluster(shared_cluster: SlurmCluster) -> SlurmCluster:
    shared_cluster.restore()
    shared_cluster.wait_for_nodes()
    return shared_cluster


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[SlurmCluster]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, pytest.MonkeyPatch.context() as patch:
        made = SlurmCluster(Path(folder) / "s", NAMES)
        patch.setenv("SLURM_CONF", str(made.loop_conf))
        try:
            made.start()
            yield made
        finally:
            made.stop()


def make_fleet(state: Path, setup: Setup) -> SharedFleet:
    token = f"check{state.name}-{os.getpid()}"
    return SharedFleet(state, setup, OPTIONS, token, SlurmEngine(), {})


def test_slurm_passes(cluster: SlurmCluster) -> None:
    check_fleet(make_fleet, faults_of(cluster, NAMES), seeds=2, at_once=4, patience=3000)
    cluster.wait(lambda: cluster.call("squeue", "--noheader") == "", "an empty queue")


def test_a_hundred_faults_lose_nothing_and_do_nothing_twice(cluster: SlurmCluster, tmp_path: Path) -> None:
    faults = faults_at(cluster, NAMES, tmp_path, "slurmd", kill=["slurmctld"], freeze=["slurmctld", "relay"])
    storm = Storm(make_fleet, cluster, tmp_path, faults)
    storm.run(faults=100, jobs=5)
    assert sum(storm.done.values()) == 100
    assert len(storm.done) == 4 + len(faults)
    cluster.wait(lambda: cluster.call("squeue", "--noheader") == "", "an empty queue")


def test_machines_are_read_from_the_controller(cluster: SlurmCluster) -> None:
    found = SlurmEngine().machines()
    assert [(each.name, each.labels["site"]) for each in found] == [("a1", "a"), ("b1", "b")]
    assert found[0].capacity == {"cpu": 64_000, "memory_gb": 8_000}


def test_data_goes_through_the_shared_directory(cluster: SlurmCluster, tmp_path: Path) -> None:
    data_goes_through_the_shared_directory(SlurmEngine(), tmp_path / "s")


def test_books_are_those_of_processes(cluster: SlurmCluster, tmp_path: Path) -> None:
    books_are_those_of_processes(SlurmEngine, tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_training_moves_and_grows(cluster: SlurmCluster, tmp_path: Path) -> None:
    training_moves_and_grows(SlurmEngine, tmp_path)


@pytest.mark.parametrize(
    ("state", "reason"), [("DOWN", "PartitionDown"), ("DRAIN", "Required partition not available")]
)
def test_a_gang_that_is_not_started_says_why(
    cluster: SlurmCluster, tmp_path: Path, state: str, reason: str
) -> None:
    def set_partition(state: str) -> None:
        cluster.call("scontrol", "update", "PartitionName=all", f"State={state}")

    set_partition(state)
    try:
        waits_with_a_reason(SlurmEngine(), tmp_path / "run", lambda: set_partition("UP"), reason)
    finally:
        set_partition("UP")


def test_a_drained_machine_goes_on_with_what_it_runs_and_gets_nothing_new(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    def update(*words: str) -> None:
        cluster.call("scontrol", "update", "NodeName=a1", *words)

    steps = [(lambda: update("State=DRAIN", "Reason=test"), 2000), (lambda: update("State=RESUME"), 4000)]
    try:
        # two CPUs are in use when it is drained: the others are gone, and nothing is stopped
        run = capacity_follows(SlurmEngine(), tmp_path / "run", steps)
    finally:
        update("State=RESUME")
    assert rows(run, "attempts", "why") == [("complete",), ("complete",)]


def test_a_loop_that_is_cut_off_loses_nothing(cluster: SlurmCluster, tmp_path: Path) -> None:
    a_cut_changes_nothing(
        SlurmEngine, tmp_path / "run", lambda: cluster.signal_agent("relay", signal.SIGSTOP),
        lambda: cluster.signal_agent("relay", signal.SIGCONT),
    )  # fmt: skip
    cluster.wait(lambda: cluster.call("squeue", "--noheader") == "", "an empty queue")


def test_hostile_jobs_hurt_only_themselves(cluster: SlurmCluster, open_folder: Path) -> None:
    hostile_jobs_hurt_only_themselves(SlurmEngine(), open_folder / "run")
    cluster.wait(lambda: cluster.call("squeue", "--noheader") == "", "an empty queue")
