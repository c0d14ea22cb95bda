"""Small scenarios to check policies on: of the policy's own system, or a contended cluster with failures."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tradewind.engine.fit import mismatch
from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds, Stream, Work
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.view import Change
from tradewind.registry import systems, workloads

SMALL: dict[str, Any] = {
    "jobs": 25, "slots": 8, "servers": 5, "sites": 5, "jobs_per_slot": 8.0, "epochs": 2000, "worker_types": 3,
    "server_types": 3, "gpus_per_server": 4, "hours": 6.0, "vary": 0.5, "move_s": 30.0,
}  # fmt: skip
"""Parameters that keep a generated scenario small; each workload takes those that it has."""
SLOT_US = 1000


def contended_cluster(seed: int, *, public: bool = True, calm: bool = False) -> Scenario:
    """Racks and servers of four GPUs, jobs of one to six workers, tenants, and (unless calm) failures and lost capacity.

    public: runtimes are known to the policy.
    """
    draw = random.Random(seed)
    nodes = [_node("r1", 10, "rack"), _node("r2", 99, "rack")]
    nodes += [_node(f"s{i}", 4, "server", parent=i % 2) for i in range(6)]
    where = Setup(
        resources=("gpu",), nodes=tuple(nodes), slot_us=SLOT_US, horizon_us=90 * SLOT_US, objective="jct_mean_s"
    )  # fmt: skip
    bursts = [draw.randrange(0, 20 * SLOT_US, 50) for _ in range(12)]  # jobs arrive together and queue up
    times = sorted(draw.choice(bursts) for _ in range(60))
    jobs, customers = [], []
    for index, at in enumerate(times):
        size = draw.choice((1, 1, 1, 2, 4, 6))
        runtime = draw.randrange(100, 5000, 50)
        jobs.append(
            Job(
                index=index,
                id=f"j{index}",
                arrive_us=at,
                work=Fixed(runtime_us=runtime if public else None),
                worker=((0, 1000),),
                workers_min=size,
                workers_max=size,
                tenant=draw.choice("xyz"),
                hold=draw.choice(("until", "until", "through")),
            )
        )
        customers.append(Customer(budget_usd=draw.random() * 10, runtime_us=None if public else runtime))
    changes = (
        Change(7300, "node_down", 3, 0, 0),
        Change(9100, "node_up", 3, 0, 0),
        Change(12_000, "capacity", 2, 0, 1000),
        Change(15_500, "node_down", 1, 0, 0),
        Change(16_250, "node_up", 1, 0, 0),
        Change(21_000, "capacity", 0, 0, 6000),
        Change(24_000, "capacity", 2, 0, 4000),
    )
    return Scenario(
        name=f"contended-cluster-{seed}",
        setup=where,
        jobs=tuple(jobs),
        customers=tuple(customers),
        changes=() if calm else changes,
    )


def _node(name: str, gpus: int, kind: Any, parent: int = -1) -> Node:
    return Node(name=name, kind=kind, parent=parent, capacity_milli=(1000 * gpus,))


def generated(workload: str, seed: int) -> Scenario:
    """A small scenario of a registered workload."""
    params = workloads.find(workload).params
    return workloads.generate(workload, {k: v for k, v in SMALL.items() if k in params}, seed)


def fitting_scenarios(spec: Spec, seed: int) -> Iterator[Scenario]:
    """Generated scenarios that the policy supports; those of its own system first."""
    for made in _candidates(spec, seed):
        if not mismatch(spec, made):
            yield made


def _candidates(spec: Spec, seed: int) -> Iterator[Scenario]:
    yield contended_cluster(seed, public="runtime" in spec.needs or seed % 2 == 0)
    own = systems()[spec.system].workloads if spec.system in systems() else ()
    for name in (*own, *(name for name in workloads.names() if name not in own)):
        if _can_generate(name):
            yield generated(name, seed)


def _can_generate(workload: str) -> bool:
    """Whether a workload needs no file."""
    return "file" not in workloads.find(workload).params


def unsupported_scenario(spec: Spec) -> Scenario | None:
    """A scenario with one job of a kind of work that the policy does not take; None where it takes every kind."""
    kinds: dict[str, Work] = {
        "stream": Stream(bytes_per_worker_slot=1),
        "dataset": Dataset(chunks=((0, 1),), chunk_bytes=1, epochs=1, chunk_epochs_per_worker_slot_milli=1),
        "rounds": Rounds(count=1, compute_us=1),
        "fixed": Fixed(runtime_us=1),
        "rounds/machines": Rounds(count=1, compute_us=1, comm="machines"),
    }
    taken = {work if work == "rounds/machines" else work.partition("/")[0] for work in spec.works}
    kind = next((kind for kind in kinds if kind not in taken), None)
    if kind is None:
        return None
    where = Setup(
        resources=("gpu",),
        nodes=(_node("a", 4, "site"),),
        slot_us=100,
        horizon_us=10_000,
        objective=min(spec.objectives),
    )
    machines: dict[str, Any] = {"gpus": (1,), "gpu_speeds": (("gpu", 1000),)} if "/" in kind else {}
    job = Job(index=0, id="j0", arrive_us=0, work=kinds[kind], worker=((0, 1000),), **machines)
    return Scenario(name="unsupported", setup=where, jobs=(job,), customers=(Customer(runtime_us=5),))
