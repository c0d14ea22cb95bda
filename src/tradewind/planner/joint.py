"""Plans of all jobs together, and the policies that they are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tradewind.api import run
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.planner.quotes import Quote, Quotes
from tradewind.report.placements import placements

JOINT: Final = "broker"
OTHERS: Final = {
    "broker-selfish": "every job bought alone",
    "skypilot-rule": "SkyPilot's rule (our model of it)",
}
"""Policies that a plan is held against, and how they are called."""
CENT: Final = 0.005


def improved(scenario: Scenario, alone: Run) -> Run:
    """The plan of the policy `broker` where it serves all jobs in time and saves a cent or more, else the given one."""
    found = run(scenario, JOINT)
    return (
        found if not missed(found) and found.metrics["cost_usd"] < alone.metrics["cost_usd"] - CENT else alone
    )


def missed(result: Run) -> int:
    """Jobs that were not done, or done too late to be worth anything."""
    return sum(not value for value in result.tables["outcomes"]["value_usd"])


def as_quotes(scenario: Scenario, result: Run, found: Sequence[Quotes]) -> list[Quote]:
    """The quotes that a run carried out, at the times at which it did."""
    number = {node.name: index for index, node in enumerate(scenario.setup.nodes)}
    finish = result.tables["outcomes"]["finish_us"]
    taken = []
    for job, each in enumerate(found):
        (first, *_) = placements(scenario, result, job)
        (place,) = first.places
        quote = next(q for q in each.all if (q.node, q.machines) == (number[place.node], place.workers))
        taken.append(replace(quote, start_us=first.from_us, finish_us=int(finish[job])))
    return taken
