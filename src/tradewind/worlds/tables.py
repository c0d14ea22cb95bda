"""Tables of a live run: attempts with measured and predicted times, alarms, and changes that no script has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.model.progress import iteration_us
from tradewind.model.result import Column, Run, Table
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tables import TABLES, UNMOVED
from tradewind.worlds import measured
from tradewind.worlds.contention import worst_meeting
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.gang import QUOTE, Attempt

UNPINNED = "this fleet cannot carry out the routes of plans: packets take default paths, and no bandwidth is reserved"
UNDELAYED = "this fleet does not delay packets as the links of the scenario do: measured times lack latency"


def live_tables(
    scenario: Scenario, world: FleetWorld, run: Run, alarms: Sequence[Mapping[str, Any]], pace: float
) -> dict[str, Table]:
    """The tables `attempts` and `alarms`, and others where there is something to say.

    run: what was decided; pace: scenario microseconds per second
    """
    attempts = [attempt for _, gang in sorted(world.gangs.items()) for attempt in gang.attempts]
    rows = [_row(scenario.setup, attempt, pace) for attempt in attempts]
    texts = [(alarm["at_us"], alarm["job"], alarm["text"]) for alarm in alarms]
    routed = [attempt.at_us for attempt in attempts if attempt.step.routes]
    if routed and "routes" not in world.fleet.capabilities:
        texts = sorted([*texts, (min(routed), -1, UNPINNED)])
    if (
        routed
        and "latency" not in world.fleet.capabilities
        and any(k.latency_us for k in scenario.setup.links)
    ):
        texts = sorted([*texts, (min(routed), -1, UNDELAYED)])
    if (
        routed
        and "routes" in world.fleet.capabilities
        and (meeting := worst_meeting(scenario, run)) is not None
    ):
        texts = sorted([*texts, (meeting.at_us, -1, meeting.text(scenario.setup))])
    shards = world.data.rows()
    carried = [row[3] for row in shards if row[4] != row[5]]
    if carried and world.data.depot is not None and world.data.depot.instead:
        texts = sorted([*texts, (min(carried), -1, world.data.depot.instead)])
    unmoved = [a.at_us for a in attempts if a.launch.job.data is not None and world.data.depot is None]
    if unmoved:
        texts = sorted([*texts, (min(unmoved), -1, UNMOVED)])
    found: dict[str, Table] = {"attempts": _columns("attempts", rows), "alarms": _columns("alarms", texts)}
    measurements = measured.rows(attempts, lambda attempt: predicted_us(scenario.setup, attempt), pace)
    if measurements:
        found["measurements"] = _columns("measurements", measurements)
    if shards:
        found["shards"] = _columns("shards", shards)
    if world.agenda.found:
        found["changes"] = _columns("changes", world.agenda.found)
    return found


def _columns(table: str, rows: Sequence[Sequence[Any]]) -> dict[str, Column]:
    columns: dict[str, Column] = {name: [] for name in TABLES[table]}
    for name, values in zip(columns, zip(*rows, strict=True), strict=False):
        columns[name] = list(values)
    return columns


def given_up(run: Run) -> list[int]:
    """Jobs that were given up in a live run."""
    alarms: Any = run.tables["alarms"]
    pairs = zip(alarms["job"], alarms["text"], strict=True)
    said = ((job, text.partition(QUOTE)[0]) for job, text in pairs)  # what a log says does not count
    return [job for job, text in said if text.startswith("attempt ") and text.endswith("; given up")]


def _row(setup: Setup, attempt: Attempt, pace: float) -> tuple[Any, ...]:
    """Row of one attempt."""
    launch, tally = attempt.launch, attempt.tally
    return (
        launch.job.index,
        launch.number,
        launch.slot,
        attempt.at_us,
        attempt.ended_us,
        sum(attempt.step.workers),
        placement(setup, attempt),
        attempt.why or "running",
        tally.iterations,
        tally.measured_s,
        predicted_us(setup, attempt) / pace,
        tally.bytes_sent,
        tally.loss,
    )


def placement(setup: Setup, attempt: Attempt) -> str:
    """Sites of the ranks, in rank order: `ps@a 2@b`."""
    found: list[str] = []
    step = attempt.step
    for node, servers in zip(step.nodes, step.servers or (0,) * len(step.nodes), strict=True):
        found += [f"ps@{setup.nodes[node].name}"] * servers
    found += [
        f"{workers}@{setup.nodes[node].name}"
        for node, workers in zip(step.nodes, step.workers, strict=True)
        if workers
    ]
    return " ".join(found)


def predicted_us(setup: Setup, attempt: Attempt) -> int:
    """Predicted time of an iteration in scenario microseconds; 0 for fixed, stream and dataset work."""
    return iteration_us(setup, attempt.launch.job, attempt.step)
