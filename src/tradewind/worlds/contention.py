"""Links on which the traffic of jobs may meet although every plan fits.

The law counts what jobs push apart from what they pull, as if all jobs pushed at the same time. What one job pushes over a
link may then meet what another pulls, and together they may exceed its rate.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.engine.instants import read_steps
from tradewind.engine.intervals import effective, end_us
from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup

Way = tuple[int, int]
"""A link, and a direction of it."""


class Meeting(NamedTuple):
    """A link that may have to carry `share` times its rate in one direction, from an instant on."""

    at_us: int
    share: float
    source: int
    goal: int

    def text(self, setup: Setup) -> str:
        """What to tell the operator."""
        names = f"{setup.nodes[self.source].name} > {setup.nodes[self.goal].name}"
        return (
            f"what jobs push may meet what others pull: the link {names} may have to carry {self.share:.2f} times its rate, "
            "and then iterations take longer than planned; routes that are reserved push-pull do not meet"
        )


def worst_meeting(scenario: Scenario, run: Run) -> Meeting | None:
    """The most that plans in force at once may have of a link, if that is more than its rate."""
    setup, steps, found = scenario.setup, read_steps(run.tables), effective(run, end_us(run))
    turns: list[tuple[int, int, int, int]] = []  # instant, end before beginning, job, row
    rows = zip(*(c.tolist() for c in (found.job, found.step, found.from_us, found.until_us)), strict=True)
    for job, row, begin, until in rows:
        if steps[row].routes:
            turns += [(begin, 1, job, row), (until, -1, job, row)]
    loads: dict[Way, int] = {}
    worst: Meeting | None = None
    for at_us, sign, job, row in sorted(turns):
        for (number, way), bps in ways_of(setup, scenario.jobs[job], steps[row]).items():
            loads[number, way] = loads.get((number, way), 0) + sign * bps
            link = setup.links[number]
            share = loads[number, way] / (link.ba_bps if way else link.ab_bps)
            if share > max(1.0, worst.share if worst else 0.0):
                worst = Meeting(at_us, share, *((link.b, link.a) if way else (link.a, link.b)))
    return worst


def ways_of(setup: Setup, job: Job, step: Step) -> dict[Way, int]:
    """The most that a job sends at a time over each direction of links with two rates; it does not push and pull at once."""
    push: dict[Way, int] = {}
    pull: dict[Way, int] = {}
    for route in step.routes:
        at = route.src
        for number in route.path:
            link = setup.links[number]
            way = int(link.a != at)
            at = link.a if way else link.b
            if link.shared:
                continue  # one rate for all, by law
            push[number, way] = push.get((number, way), 0) + route.bps
            if job.pulls_back or route.duplex == "push-pull":
                pull[number, 1 - way] = pull.get((number, 1 - way), 0) + route.bps
    return {key: max(push.get(key, 0), pull.get(key, 0)) for key in sorted(push.keys() | pull.keys())}
