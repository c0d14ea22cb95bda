"""Ranks on a real Ray cluster of this machine: the contract of a fleet, and many faults."""

from __future__ import annotations

import importlib.util
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleets.hostile_on import a_cut_changes_nothing, hostile_jobs_hurt_only_themselves
from tests.fleets.live_on import (
    books_are_those_of_processes,
    capacity_follows,
    training_moves_and_grows,
    waits_with_a_reason,
)
from tests.fleets.ray_cluster import START_S, RayCluster, missing
from tests.fleets.storm import Storm, faults_at, faults_of
from tradewind.model.setup import Setup
from tradewind.testing import check_fleet
from tradewind.testing.fleet_bed import MakeFleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.ray import RayEngine
from tradewind.worlds.fleets.shared import SharedFleet

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
NAMES = ("a1", "b1")
OPTIONS = ExecutionOptions(grace_s=0.5, patience_s=4.0)  # a loop of a busy machine may be silent for seconds


@pytest.fixture(name="cluster")
def _cluster(ray_cluster: RayCluster) -> RayCluster:
    ray_cluster.restore()
    ray_cluster.wait_for_nodes()
    return ray_cluster


def fleet_of(cluster: RayCluster) -> MakeFleet:
    def make(state: Path, setup: Setup) -> SharedFleet:
        token = f"check{state.name}-{os.getpid()}"
        return SharedFleet(state, setup, OPTIONS, token, RayEngine(cluster.address, cluster.command), {})

    return make


def test_ray_passes(cluster: RayCluster) -> None:
    check_fleet(fleet_of(cluster), faults_of(cluster, NAMES), seeds=1, at_once=4, patience=3000)


def test_a_hundred_faults_lose_nothing_and_do_nothing_twice(cluster: RayCluster, tmp_path: Path) -> None:
    faults = faults_at(cluster, NAMES, tmp_path, "raylet")
    storm = Storm(fleet_of(cluster), cluster, tmp_path, faults)
    storm.run(faults=100, jobs=5)
    assert sum(storm.done.values()) == 100
    assert len(storm.done) == 4 + len(faults)


def test_machines_are_read_from_the_cluster(cluster: RayCluster) -> None:
    engine = RayEngine(cluster.address, cluster.command)
    try:
        found = {each.name: each for each in engine.machines()}
    finally:
        engine.close()
    assert [found[name].labels["site"] for name in NAMES] == ["a", "b"]
    assert found["a1"].capacity["cpu"] == 64_000


def test_books_are_those_of_processes(cluster: RayCluster, tmp_path: Path) -> None:
    books_are_those_of_processes(lambda: RayEngine(cluster.address, cluster.command), tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_training_moves_and_grows(cluster: RayCluster, tmp_path: Path) -> None:
    training_moves_and_grows(lambda: RayEngine(cluster.address, cluster.command), tmp_path)


HOG = """
import sys, time, ray
ray.init(address=sys.argv[1], log_to_driver=False)

@ray.remote(num_cpus=64, label_selector={"site": "a"})
def take():
    time.sleep(600)

take.remote()
while ray.available_resources().get("CPU", 0) > 64:
    time.sleep(0.1)
print("taken", flush=True)
time.sleep(600)
"""


def test_a_gang_that_is_not_started_says_why(cluster: RayCluster, tmp_path: Path) -> None:
    argv = [*cluster.command, sys.executable, "-c", HOG, cluster.address]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        try:
            assert other.stdout is not None
            assert select.select([other.stdout], [], [], START_S)[0]
            assert other.stdout.readline() == b"taken\n"
            engine = RayEngine(cluster.address, cluster.command)
            waits_with_a_reason(
                engine, tmp_path / "run", other.kill, "it asks for 1 CPU on a1, which has 64 CPU"
            )
        finally:
            other.kill()


def test_a_machine_that_comes_back_with_other_cpus_is_a_change_of_capacity(
    cluster: RayCluster, tmp_path: Path
) -> None:
    def restart(cpus: int) -> None:
        cluster.kill_node("a1", tmp_path)
        cluster.start_node("a1", cpus, wait=False)

    steps = [(lambda: restart(1), 1000), (lambda: restart(64), 4000)]
    capacity_follows(RayEngine(cluster.address, cluster.command), tmp_path / "run", steps)


def test_a_loop_that_is_cut_off_loses_nothing(cluster: RayCluster, tmp_path: Path) -> None:
    a_cut_changes_nothing(
        lambda: RayEngine(cluster.address, cluster.command), tmp_path / "run",
        lambda: cluster.set_network("down"), lambda: cluster.set_network("up"),
    )  # fmt: skip
    assert all(map(cluster.is_running, NAMES))


def test_hostile_jobs_hurt_only_themselves(cluster: RayCluster, open_folder: Path) -> None:
    hostile_jobs_hurt_only_themselves(RayEngine(cluster.address, cluster.command), open_folder / "run")
