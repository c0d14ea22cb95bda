"""What was carried out: which job ran where and when, what moved for it, and its part of the cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tradewind.engine.costs import interval_costs
from tradewind.engine.instants import read_steps
from tradewind.engine.intervals import effective, end_us, floats, ints, texts
from tradewind.model.decision import Step
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import GB


class Place(NamedTuple):
    """Workers and parameter servers at a node."""

    node: str
    workers: int
    servers: int

    def __str__(self) -> str:
        parts = [str(self.workers)] if self.workers else []
        parts += ["server" if self.servers == 1 else f"{self.servers} servers"] if self.servers else []
        return f"{self.node} {' + '.join(parts) or '0'}"


class Move(NamedTuple):
    """Data that a step brings from one node to another."""

    src: str
    dst: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.src} → {self.dst} {self.bytes / GB:.4g} GB"


class Placement(NamedTuple):
    """A job for a while: [from_us, until_us), in ring order.

    usd  its part of the cost: of every line of the bill in proportion to what it used of it
    why  the reason that the policy gave for the decision
    """

    job: str
    from_us: int
    until_us: int
    places: tuple[Place, ...]
    moves: tuple[Move, ...]
    usd: float
    why: str

    def slots(self, slot_us: int) -> tuple[int, int]:
        """First and last slot that it touches."""
        return self.from_us // slot_us, (self.until_us - 1) // slot_us


CSV_COLUMNS = (
    "job", "from_us", "until_us", "first_slot", "last_slot", "node", "workers", "servers", "moved_in_gb", "moved_from",
    "usd", "paid_usd", "why",
)  # fmt: skip


def placements(scenario: Scenario, run: Run, job: int | None = None) -> list[Placement]:
    """Everything that was carried out, of one job or of all, by time and job."""
    intervals = effective(run, end_us(run))
    usd = interval_costs(scenario, run, intervals) if run.tables["costs"]["usd"] else {}
    steps, names = read_steps(run.tables), [node.name for node in scenario.setup.nodes]
    plan, decision = ints(run, "steps", "plan"), ints(run, "plans", "decision")
    whys = texts(run, "decisions", "why")
    order = np.lexsort((intervals.job, intervals.from_us)).tolist()
    found = []
    for number in order:
        index, row = int(intervals.job[number]), int(intervals.step[number])
        if job is not None and index != job:
            continue
        by, begin = int(decision[plan[row]]), int(intervals.from_us[number])
        found.append(
            Placement(
                job=scenario.jobs[index].id,
                from_us=begin,
                until_us=int(intervals.until_us[number]),
                places=_places(names, steps[row]),
                moves=_moves(names, steps[row]) if begin == steps[row].from_us else (),
                usd=usd.get(number, 0.0),
                why=str(whys[by]) if by >= 0 else "",
            )
        )
    return found


def _places(names: Sequence[str], step: Step) -> tuple[Place, ...]:
    servers = step.servers or (0,) * len(step.nodes)
    rows = zip(step.nodes, step.workers, servers, strict=True)
    return tuple(Place(names[node], workers, ps) for node, workers, ps in rows)


def _moves(names: Sequence[str], step: Step) -> tuple[Move, ...]:
    return tuple(
        Move(names[flow.src], names[flow.dst], flow.bytes) for flow in step.flows if flow.src != flow.dst
    )


def joined(rows: Iterable[Placement]) -> list[Placement]:
    """Rows of the same job with the same places, one right after the other, as one; what moved is summed."""
    found: dict[int, Placement] = {}
    last: dict[str, int] = {}  # job -> its last row in found
    for row in rows:
        at = last.get(row.job, -1)
        before = found.get(at)
        if before is not None and before.until_us == row.from_us and before.places == row.places:
            moves = {(m.src, m.dst): 0 for m in (*before.moves, *row.moves)}
            for src, dst, size in (*before.moves, *row.moves):
                moves[src, dst] += size
            summed = tuple(Move(src, dst, size) for (src, dst), size in moves.items())
            found[at] = before._replace(until_us=row.until_us, moves=summed, usd=before.usd + row.usd)
        else:
            last[row.job] = len(found)
            found[len(found)] = row
    return list(found.values())


def csv_rows(scenario: Scenario, run: Run, rows: Iterable[Placement]) -> list[dict[str, Any]]:
    """One row per node of a placement; its cost is in the first of them, so that the column adds up to the whole.

    What a job paid is in its first row. Data moved to a site is at the first node of the placement that lies in it.
    """
    slot_us, above = scenario.setup.slot_us, _above(scenario)
    bills = zip(ints(run, "payments", "job"), floats(run, "payments", "usd"), strict=True)
    paid = {scenario.jobs[job].id: float(usd) for job, usd in bills}
    found: list[dict[str, Any]] = []
    for row in rows:
        slots, left = row.slots(slot_us), list(row.moves)
        for number, place in enumerate(row.places):
            into = [move for move in left if move.dst in above[place.node]]
            left = [move for move in left if move not in into]
            sources = " ".join(move.src for move in into)
            moved = sum(move.bytes for move in into) / GB
            cells = (
                row.job, row.from_us, row.until_us, *slots, *place, moved, sources, 0.0 if number else row.usd,
                paid.pop(row.job, 0.0), row.why,
            )  # fmt: skip
            found.append(dict(zip(CSV_COLUMNS, cells, strict=True)))
    return found


def _above(scenario: Scenario) -> dict[str, set[str]]:
    """Node -> itself and all nodes above it, by name."""
    nodes = scenario.setup.nodes
    found: dict[str, set[str]] = {}
    for node in nodes:
        names, at = {node.name}, node.parent
        while at >= 0:
            names.add(nodes[at].name)
            at = nodes[at].parent
        found[node.name] = names
    return found
