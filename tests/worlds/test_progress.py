"""Work of active jobs, computed from the rates of their plans."""

from __future__ import annotations

from tradewind.model.decision import Plan, Step
from tradewind.model.job import Fixed, Job
from tradewind.model.node import Node
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Event
from tradewind.worlds.progress import Progress


def test_a_job_that_finishes_at_the_very_end_ends_without_work_of_its_own() -> None:
    """Its resources are held for another microsecond, so it is still there; its work was told when it finished."""
    setup = Setup(
        resources=("gpu",),
        nodes=(Node(name="a", kind="site", capacity_milli=(1000,)),),
        slot_us=10,
        horizon_us=100,
        objective="profit_usd",
    )
    job = Job(
        index=0, id="j", arrive_us=0, work=Fixed(runtime_us=80), worker=((0, 1000),), hold="through"
    )  # fmt: skip
    progress, events = Progress(setup, failures=False), list[Event]()
    progress.add(job, 80)
    progress.replace(Plan(0, (Step(0, OPEN, (0,), (1,)),)), 0, 0)
    progress.replace(Plan(0, (Step(20, OPEN, (0,), (1,)),)), 1, 20)  # 20 are done and counted
    assert progress.next_us() == 80
    progress.finish(0, "finished", 100, events)
    progress.end(100, events)
    assert [(event.kind, event.value) for event in events] == [("finished", 0), ("ended", 0)]
