"""Ranks in pods of a real Kubernetes of this machine: the contract of a fleet, and many faults."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tools.kubernetes_build import IMAGE

from tests.builders import job, node, rows, scenario, setup
from tests.fleets.hostile_on import a_cut_changes_nothing, hostile_jobs_hurt_only_themselves
from tests.fleets.kubernetes_bed import DEPLOY, NAMES, KubernetesBed, open_bed
from tests.fleets.kubernetes_cluster import KubernetesCluster, missing
from tests.fleets.live_on import (
    Steps,
    books_are_those_of_processes,
    capacity_follows,
    run_on,
    training_moves_and_grows,
    waits_with_a_reason,
)
from tests.fleets.storm import Storm, faults_at, faults_of
from tests.worlds.live_scenarios import S
from tradewind import api
from tradewind.cli import scheduler
from tradewind.engine.live import LiveSession
from tradewind.model.job import Rounds
from tradewind.model.setup import Setup
from tradewind.testing import check_fleet
from tradewind.testing.fleet_bed import Bed, Faults, MakeFleet
from tradewind.testing.fleet_programs import program
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.engine import EngineUnreachable
from tradewind.worlds.fleets.kubernetes import lease
from tradewind.worlds.fleets.kubernetes.scheduler import Scheduler
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.shared import SharedFleet

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
OPTIONS = ExecutionOptions(grace_s=0.5, patience_s=4.0)  # a loop of a busy machine may be silent for seconds


@pytest.fixture(scope="module")
def bed() -> Iterator[KubernetesBed]:
    with open_bed() as made:
        yield made


@pytest.fixture
def cluster(bed: KubernetesBed) -> KubernetesCluster:
    if bed.own is None:
        pytest.skip("only a cluster of one's own may be broken")
    bed.own.restore()
    bed.own.wait_for_nodes()
    return bed.own


def fleet_of(bed: KubernetesBed, **changes: object) -> MakeFleet:
    def make(state: Path, setup: Setup) -> SharedFleet:
        token = f"{state.name[-6:]}-{os.getpid()}"
        table = {name: [machine] for name, machine in zip("ab", bed.machines, strict=True)}
        return SharedFleet(state, setup, OPTIONS, token, bed.engine(**changes), table)

    return make


def pods(cluster: KubernetesCluster) -> str:
    return cluster.api("get", "pods", "--all-namespaces", "--no-headers")


def test_kubernetes_passes(bed: KubernetesBed, cluster: KubernetesCluster) -> None:
    check_fleet(
        fleet_of(bed), faults_of(cluster, NAMES), seeds=1, patience=3000
    )  # its client is not made for threads
    cluster.wait(lambda: pods(cluster) == "", "the end of all pods")


def test_a_hundred_faults_lose_nothing_and_do_nothing_twice(
    bed: KubernetesBed, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    faults = faults_at(cluster, NAMES, tmp_path, "kubelet", kill=["kube-apiserver", "etcd"], freeze=["relay"])
    storm = Storm(fleet_of(bed), cluster, tmp_path, faults)
    storm.run(faults=100, jobs=5)
    assert sum(storm.done.values()) == 100
    assert len(storm.done) == 4 + len(faults)
    cluster.wait(lambda: pods(cluster) == "", "the end of all pods")


def test_a_loop_that_is_cut_off_loses_nothing(
    bed: KubernetesBed, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    a_cut_changes_nothing(
        bed.engine, tmp_path / "run", lambda: cluster.signal_agent("relay", signal.SIGSTOP),
        lambda: cluster.signal_agent("relay", signal.SIGCONT),
    )  # fmt: skip


def test_nodes_that_are_cordoned_or_shrink_are_changes_of_capacity(
    bed: KubernetesBed, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    cpus = os.cpu_count() or 1
    steps: Steps = [
        (lambda: cluster.api("cordon", "a1"), 500),  # two jobs of 250 run there, and go on
        (lambda: cluster.api("uncordon", "a1"), 1000),
        (lambda: cluster.reserve("a1", cpus - 0.5), 500),
        (lambda: cluster.reserve("a1", 0), 1000),
    ]
    run = capacity_follows(bed.engine(), tmp_path / "run", steps, job_milli=250)
    assert rows(run, "attempts", "why") == [("complete",), ("complete",)]


def test_ranks_of_a_drained_node_move(bed: KubernetesBed, cluster: KubernetesCluster, tmp_path: Path) -> None:
    """What `kubectl drain` evicts is stopped at a checkpoint, and goes on at another node."""
    where = setup(
        [node("a", 1), node("b", 1)],
        resources=("cpu",),
        slot_us=S,
        horizon_us=600 * S,
        objective="jct_mean_s",
    )
    work, command = Rounds(count=60, compute_us=S // 10, comm="none"), program("count", 60, 0.1)
    given = scenario([job(0, work=work, command=command, worker=((0, 250),))], where=where)
    drained: list[str] = []

    def look(session: LiveSession, world: FleetWorld) -> None:
        if not drained and 0 in world.gangs and world.gangs[0].iterations >= 5:
            drained.append("a1")
            threading.Thread(target=cluster.api, args=("drain", "a1", "--force", "--timeout=50s")).start()

    try:
        run = run_on(bed.engine(), given, "las", tmp_path / "run", observer=look, slot_seconds=1.0)
    finally:
        cluster.api("uncordon", "a1")
    assert rows(run, "attempts", "places")[0] == ("1@a",)
    assert rows(run, "attempts", "places", "why")[-1] == ("1@b", "complete")
    # at first what runs there goes on, and nothing new is started
    assert rows(run, "changes", "kind", "a")[-1] == ("node_down", 0)
    (path,) = tmp_path.glob("run/jobs/0000-*/checkpoint/done")
    assert path.read_text().split() == [str(i) for i in range(1, 61)]
    assert api.check(given, run) == ()


def test_hostile_jobs_hurt_only_themselves(
    bed: KubernetesBed, cluster: KubernetesCluster, open_folder: Path
) -> None:
    hostile_jobs_hurt_only_themselves(bed.engine(requests={"cpu": "10m"}), open_folder / "run")


def test_one_loop_at_a_time_changes_what_runs(bed: KubernetesBed, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bed.engine(), bed.engine()
    assert first.gangs("tw-lock-") == {}
    with pytest.raises(EngineUnreachable, match="another loop"):
        second.gangs("tw-lock-")
    monkeypatch.setattr(lease, "DURATION_S", 1)
    monkeypatch.setattr(lease, "RENEW_S", 0)
    time.sleep(1.1)  # and nothing is heard of the first
    assert second.gangs("tw-lock-") == {}
    monkeypatch.setattr(lease, "DURATION_S", 15)
    with pytest.raises(EngineUnreachable, match="another loop"):
        first.gangs("tw-lock-")  # its version is not the newest
    with pytest.raises(EngineUnreachable, match="another loop"):
        first.gangs("tw-lock-")
    second.close()
    assert first.gangs("tw-lock-") == {}
    first.close()


def test_machines_are_read_from_the_cluster(bed: KubernetesBed, cluster: KubernetesCluster) -> None:
    found = bed.engine().machines()
    assert [(each.name, each.labels["topology.kubernetes.io/zone"]) for each in found] == [
        ("a1", "a"),
        ("b1", "b"),
    ]
    assert found[0].capacity["cpu"] == (os.cpu_count() or 0) * 1000


def test_books_are_those_of_processes(bed: KubernetesBed, tmp_path: Path) -> None:
    books_are_those_of_processes(bed.engine, tmp_path, bed.machines)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_training_moves_and_grows(bed: KubernetesBed, tmp_path: Path) -> None:
    training_moves_and_grows(lambda: bed.engine(requests={"cpu": "500m"}), tmp_path, bed.machines)


def test_a_gang_that_is_not_started_says_why(
    bed: KubernetesBed, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    assert cluster.api("taint", "node", "a1", "tests=on:NoSchedule")

    def release() -> None:
        assert cluster.api("taint", "node", "a1", "tests-")

    waits_with_a_reason(bed.engine(), tmp_path / "run", release, "taint")


def test_pods_of_a_tenant_are_in_its_namespace(
    bed: KubernetesBed, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    assert cluster.api("apply", "-k", str(DEPLOY / "tenant"))
    cluster.wait(lambda: pods(cluster) == "", "the end of all pods")
    loop = Bed(fleet_of(bed, tenants={"team-a": "tenant"}), Faults(), tmp_path)
    launch = loop.launch(replace(loop.job(0, "count", 10_000, 0.05), tenant="team-a"), 0, 0)
    loop.until(launch, run=True, holds=loop.counted(launch, 1), what="the first iteration")
    assert cluster.api("get", "pods", "-n", "tenant", "-o", "name").startswith("pod/tw-")
    assert cluster.api("get", "pods", "-n", "tradewind", "-o", "name") == ""
    assert [each.code for each in loop.end(launch, run=False)] == [75]
    loop.tear_down()
    cluster.wait(lambda: pods(cluster) == "", "the end of all pods")


def waiting_pod(name: str, labels: dict[str, str], cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}
    spec = {
        "schedulerName": "tradewind", "containers": [container], "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def test_a_second_scheduler_binds_gangs_whole_and_in_ring_order(
    bed: KubernetesBed, cluster: KubernetesCluster
) -> None:
    def make(document: dict[str, Any]) -> None:
        assert cluster.api("create", "-n", "tradewind", "-f", "-", text=json.dumps(document))

    def where(selector: str) -> list[str]:
        path = "jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName} {end}"
        return sorted(cluster.api("get", "pods", "-n", "tradewind", "-l", selector, "-o", path).split())

    def ring(number: int, size: int, cpu: str) -> None:
        labels = {"tradewind/gang": "ring", "tradewind/size": str(size), "tradewind/rank": str(number)}
        make(waiting_pod(f"ring-{number}", labels, cpu))

    assert cluster.api("apply", "-f", str(DEPLOY / "scheduler.yaml"))
    with mock.patch.dict(os.environ, KUBECONFIG=str(bed.kubeconfig)):
        found = Scheduler("", bed.options)
    cpus = os.cpu_count() or 1
    most = f"{cpus * 600}m"  # one fits on a machine, two do not
    ring(1, 2, most)
    assert scheduler.step(found, "fifo") == 0  # half of it is not there yet
    ring(0, 2, most)
    time.sleep(1.1)  # clusters tell time in seconds
    kueue = {"kueue.x-k8s.io/pod-group-name": "group", "kueue.x-k8s.io/pod-group-total-count": "1"}
    make(waiting_pod("group-0", kueue, most))
    assert scheduler.step(found, "fifo") == 2
    assert where("tradewind/gang=ring") == ["ring-0=a1", "ring-1=b1"]
    assert scheduler.step(found, "fifo") == 0  # no room for the other
    assert cluster.api("delete", "pod", "ring-0", "-n", "tradewind", "--wait=true", "--timeout=60s")
    assert scheduler.step(found, "fifo") == 1
    assert where("kueue.x-k8s.io/pod-group-name=group") == ["group-0=a1"]
    cluster.api("delete", "pod", "ring-1", "group-0", "-n", "tradewind", "--wait=true", "--timeout=60s")


def test_the_service_is_accepted_by_the_cluster(cluster: KubernetesCluster) -> None:
    said = cluster.api("apply", "-k", str(DEPLOY))
    assert "deployment.apps/tradewind created" in said
    assert "unchanged" in cluster.api("apply", "-k", str(DEPLOY))
    assert cluster.api("apply", "-k", str(DEPLOY / "tenant"))

    def made() -> bool:
        path = "jsonpath={.items[*].spec.serviceAccountName}"
        return (
            cluster.api(
                "get", "pods", "-n", "tradewind", "-l", "app.kubernetes.io/name=tradewind", "-o", path
            )
            == "tradewind"
        )

    cluster.wait(made, "the pod of the service")
    may = ["create pods", "list pods", "delete pods", "update leases"]
    may_not = [
        "get secrets",
        "patch pods",
        "create pods --subresource=exec",
        "create deployments",
        "delete nodes",
        "create pods -n default",
    ]
    for words, answer in (*((each, "yes") for each in may), *((each, "no") for each in may_not)):
        options = ("--as=system:serviceaccount:tradewind:tradewind", "-n", "tradewind")
        # it ends with 1 where the answer is no, which is then not shown
        assert (cluster.api("auth", "can-i", *options, *words.split()) or "no").strip() == answer, words
    assert cluster.api("delete", "deployment", "tradewind", "-n", "tradewind", "--wait=true", "--timeout=60s")
