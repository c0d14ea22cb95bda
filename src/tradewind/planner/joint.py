"""Plans of all jobs together, and the policies that they are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tradewind.api import run
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.planner.quotes import Quote, Quotes
from tradewind.registry import load, systems
from tradewind.report.placements import placements
from tradewind.worlds.planned import planned

JOINT: Final = "broker"
OTHERS: Final = {
    "broker-selfish": "every job bought alone",
    "skypilot-rule": "SkyPilot's rule (our model of it)",
}
"""Policies that a plan is held against, and how they are called."""
CENT: Final = 0.005
EFFORT: Final = 1
"""Of the offline plan."""


def improved(scenario: Scenario, alone: Run) -> tuple[Run, float]:
    """The cheapest of the given plan and those of `broker`, as it decides and with all jobs known, and the broker's bound.

    All jobs are in time. Another plan than the given one has to save a cent or more. The bound is 0 where there is none.
    """
    offline = load(systems()[JOINT].offline)(scenario, EFFORT)
    others = [run(scenario, JOINT), *([] if offline is None else [run(scenario, planned(JOINT, offline))])]
    best = alone
    for found in others:
        if not missed(found) and found.metrics["total_usd"] < best.metrics["total_usd"] - CENT:
            best = found
    return best, 0.0 if offline is None or offline.bound is None else offline.bound


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
        nodes = tuple(number[place.node] for place in first.places)
        machines = tuple(place.workers for place in first.places)
        quote = next(q for q in each.all if (q.nodes, q.machines) == (nodes, machines))
        taken.append(replace(quote, start_us=first.from_us, finish_us=int(finish[job])))
    return taken
