"""Ranks on a real Slurm of this machine: the contract of a fleet, and many faults."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fleets.slurm_cluster import SlurmCluster, missing
from tradewind.model.setup import Setup
from tradewind.testing import Faults, check_fleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Launcher
from tradewind.worlds.fleets.shared import SharedFleet
from tradewind.worlds.fleets.sites import Sites
from tradewind.worlds.fleets.slurm import SlurmEngine

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
NAMES = ("a1", "b1")
OPTIONS = ExecutionOptions(grace_s=0.5, patience_s=3.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        made = SlurmCluster(Path(folder) / "s", NAMES)
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = str(made.conf)
        try:
            made.start()
            yield made
        finally:
            made.stop()
            os.environ.pop("SLURM_CONF")
            if before is not None:
                os.environ["SLURM_CONF"] = before


def make_fleet(state: Path, setup: Setup) -> SharedFleet:
    engine = SlurmEngine()
    token = f"check{state.name}-{os.getpid()}"
    return SharedFleet(state, setup, OPTIONS, token, engine, Sites(setup, {}, engine.machines()))


def test_slurm_passes(cluster: SlurmCluster) -> None:
    def restore(state: Path, node: int) -> None:
        with suppress(KeyError):
            if not cluster.is_running(NAMES[node]):
                cluster.start_node(NAMES[node])

    faults = Faults(
        kill_points=((Launcher, "spec"), (Launcher, "prepare")),
        lose=lambda state, node: cluster.kill_node(NAMES[node]),
        restore=restore,
        silence=lambda state, node: cluster.signal_node(NAMES[node], signal.SIGSTOP),
        speak=lambda state, node: cluster.signal_node(NAMES[node], signal.SIGCONT),
    )
    check_fleet(make_fleet, faults, seeds=4)
    assert cluster.call("squeue", "--noheader") == ""


def test_machines_are_read_from_the_controller(cluster: SlurmCluster) -> None:
    found = SlurmEngine().machines()
    assert [(each.name, each.is_up, each.labels["site"]) for each in found] == [
        ("a1", True, "a"),
        ("b1", True, "b"),
    ]
    assert found[0].capacity == {"cpu": 64_000, "memory_gb": 8_000}
