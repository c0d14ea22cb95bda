"""Ranks on a real Ray cluster of this machine: the contract of a fleet, and many faults."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleets.live_on import books_are_those_of_processes, training_moves_and_grows
from tests.fleets.ray_cluster import RayCluster, missing
from tests.fleets.storm import Storm, faults_of
from tradewind.model.setup import Setup
from tradewind.testing import check_fleet
from tradewind.testing.fleet_checks import MakeFleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.ray import RayEngine
from tradewind.worlds.fleets.shared import SharedFleet

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
NAMES = ("a1", "b1")
OPTIONS = ExecutionOptions(grace_s=0.5, patience_s=2.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    made = RayCluster(NAMES)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def fleet_of(cluster: RayCluster) -> MakeFleet:
    def make(state: Path, setup: Setup) -> SharedFleet:
        token = f"check{state.name}-{os.getpid()}"
        return SharedFleet(state, setup, OPTIONS, token, RayEngine(cluster.address, cluster.command), {})

    return make


def test_ray_passes(cluster: RayCluster) -> None:
    check_fleet(fleet_of(cluster), faults_of(cluster, NAMES), seeds=2)


def test_a_hundred_faults_lose_nothing_and_do_nothing_twice(cluster: RayCluster, tmp_path: Path) -> None:
    frozen: set[str] = set()

    def kill_agent(draw: random.Random) -> None:
        name = draw.choice(NAMES)
        cluster.signal_agent(name, signal.SIGKILL)
        frozen.discard(name)

    def freeze(draw: random.Random) -> None:
        name = draw.choice(NAMES)
        cluster.signal_agent(name, signal.SIGSTOP)
        frozen.add(name)

    def switch_off(draw: random.Random) -> None:
        name = draw.choice(NAMES)
        if cluster.is_running(name):
            cluster.kill_node(name, tmp_path)
            frozen.discard(name)

    def recover() -> None:
        for name in frozen:
            cluster.signal_agent(name, signal.SIGCONT)
        frozen.clear()
        for name in NAMES:
            if not cluster.is_running(name):
                cluster.start_node(name)

    storm = Storm(
        fleet_of(cluster), tmp_path, seed=1, recover=recover,
        faults={"raylet killed": kill_agent, "raylet frozen": freeze, "node switched off": switch_off},
    )  # fmt: skip
    storm.run(faults=100, jobs=5)
    assert sum(storm.done.values()) == 100
    assert len(storm.done) == 7


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
