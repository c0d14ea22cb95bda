"""Scenarios for contract tests: small ones of a policy's own system, or made-up clusters with everything in them."""

from __future__ import annotations

import random
from typing import Any

from tests.builders import node, setup
from tradewind.engine.fit import mismatch
from tradewind.model.job import Customer, Fixed, Job
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change
from tradewind.registry import workloads

SMALL: dict[str, Any] = {
    "jobs": 25, "slots": 8, "servers": 5, "sites": 5, "jobs_per_slot": 8.0, "epochs": 2000, "worker_types": 3,
    "server_types": 3, "gpus_per_server": 4, "hours": 6.0, "vary": 0.5, "move_s": 30.0,
}  # fmt: skip
"""Parameters by which generators make small scenarios; each takes those that it has."""

SLOT_US = 1000


def cluster(seed: int, *, public: bool = True, calm: bool = False) -> Scenario:
    """Racks and servers of four gpus, jobs of one to six, tenants, holds, failures and shrinking."""
    draw = random.Random(seed)
    nodes = [node("r1", 10, kind="rack"), node("r2", 99, kind="rack")]
    nodes += [node(f"s{i}", 4, parent=i % 2, kind="server") for i in range(6)]
    where = setup(nodes, slot_us=SLOT_US, horizon_us=90 * SLOT_US, objective="jct_mean_s")
    times = sorted(draw.randrange(0, 30 * SLOT_US, 50) for _ in range(40))
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
    changes = [
        Change(7300, "node_down", 3, 0, 0),
        Change(9100, "node_up", 3, 0, 0),
        Change(12_000, "capacity", 2, 0, 1000),
        Change(15_500, "node_down", 1, 0, 0),
        Change(16_250, "node_up", 1, 0, 0),
        Change(21_000, "capacity", 0, 0, 6000),
        Change(24_000, "capacity", 2, 0, 4000),
    ]
    return Scenario(
        name=f"contract-{seed}",
        setup=where,
        jobs=tuple(jobs),
        customers=tuple(customers),
        changes=() if calm else tuple(changes),
    )


def of_system(name: str, seed: int) -> Scenario:
    """A small scenario of a workload in the catalogue."""
    workload = workloads.find(name)
    given = {key: value for key, value in SMALL.items() if key in workload.params}
    return workloads.generate(name, given, seed)


def for_policy(spec: Spec, seed: int) -> Scenario:
    """A scenario that fits the policy; it is an error where none does, so that no policy goes untested."""
    public = "runtime" in spec.needs or seed % 2 == 0
    made = of_system(spec.system, seed) if spec.system else cluster(seed, public=public)
    assert not mismatch(spec, made), mismatch(spec, made)
    return made
