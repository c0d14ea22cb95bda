"""Claims about sessions without end: memory does not grow with the number of jobs, and what is kept per job is found."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from typing import Any

import pytest

from tradewind import api
from tradewind.audit import AuditReport
from tradewind.model.decision import Decision
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.registry import policies
from tradewind.testing.endless import endless_run, repeated

ROUND = 1000
"""Jobs after which the template begins again: readings at the same point of it are comparable."""
BYTES_PER_JOB = 4.0
"""Half a pointer: less than a place in any container."""
CLUSTER: dict[str, Any] = {"jobs": ROUND, "servers": 10, "load": 0.7}
MARKET: dict[str, Any] = {"jobs": ROUND, "slots": ROUND, "servers": 10, "worker_types": 3, "server_types": 3}


def containers() -> int:
    """Bytes of all containers: whatever is kept per job takes a place in one."""
    gc.collect()
    return sum(map(sys.getsizeof, gc.get_objects()))


def growth(spec: Spec, template: Scenario, rounds: tuple[int, int]) -> float:
    """Bytes by which containers grow per job, between two points of an endless run."""
    over, readings = 0, list[int]()
    due = [ROUND * number for number in rounds]

    def count(_: object) -> None:
        nonlocal over
        over += 1

    for state in endless_run(spec, template, ROUND * (rounds[1] + 1), count):
        if due and over >= due[0]:
            due.pop(0)
            readings.append(containers())
        if isinstance(state, AuditReport):
            assert over == ROUND * (rounds[1] + 1) == state.metrics["jobs"]
    return (readings[1] - readings[0]) / (ROUND * (rounds[1] - rounds[0]))


@pytest.mark.parametrize(
    ("name", "workload", "params", "rounds"),
    [
        ("fifo-backfill", "cluster", CLUSTER, (5, 19)),
        ("dps", "dps", MARKET, (2, 6)),
    ],
)
def test_memory_does_not_grow_with_the_number_of_jobs(
    name: str, workload: str, params: dict[str, Any], rounds: tuple[int, int]
) -> None:
    assert growth(policies.find(name), api.generate(workload, **params), rounds) < BYTES_PER_JOB


class Hoarder:
    """A policy that keeps the number of every job that finished."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.kept = inner, list[int]()

    def decide(self, view: Any) -> Decision:
        self.kept += [event.job for event in view.events if event.kind == "finished"]
        return self.inner.decide(view)  # type: ignore[no-any-return]

    def save(self) -> bytes:
        return bytes(self.inner.save())

    def restore(self, state: bytes) -> None:
        self.inner.restore(state)


def test_a_policy_that_keeps_every_job_is_found() -> None:
    fifo = policies.find("fifo")
    hoarder = replace(fifo, factory=lambda *given: Hoarder(fifo.factory(*given)))
    assert growth(hoarder, api.generate("cluster", **CLUSTER), (1, 3)) > BYTES_PER_JOB


def test_a_repeated_scenario_goes_on_where_its_template_ends() -> None:
    template = api.generate("cluster", **CLUSTER)
    given = repeated(template, 2500)
    assert [len(given.jobs), len(given.customers)] == [2500, 2500]
    times = [job.arrive_us for job in given.jobs]
    assert times == sorted(times)
    assert list(given.jobs[:ROUND]) == [replace(job, id=f"job-{job.index}") for job in template.jobs]
    assert given.jobs[2001].work == template.jobs[1].work
    assert given.setup.horizon_us > times[-1]
