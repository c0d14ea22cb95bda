"""Capacity in columns: at every instant and node, what plans take is at most what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.columns import whole
from tradewind.model.job_columns import JobColumns
from tradewind.model.result import Table, Violation
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED

ROWS = 1 << 21
"""Places that are looked at together, at least those of one node."""


def exceeded(
    setup: Setup, jobs: JobColumns, tables: Mapping[str, Table], until_us: Ints
) -> Iterator[Violation]:
    """sum over jobs of l_r * y_s <= C_s^r at every node and all above it; until_us: when each plan ends, by its row."""
    node, workers = whole(tables["places"]["node"]), whole(tables["places"]["workers"])
    plan = whole(tables["steps"]["plan"])[whole(tables["places"]["step"])]
    begin, end = whole(tables["plans"]["at_us"])[plan], until_us[plan]
    del plan
    deepest = max(len(setup.lineage[host]) for host in setup.hosts)
    for depth in range(deepest):
        above = np.full(len(setup.nodes), -1, np.int64)
        for host in setup.hosts:
            if depth < len(setup.lineage[host]):
                above[host] = setup.lineage[host][depth]
        at = above[node]
        rows = np.argsort(at.astype(np.int32), kind="stable")
        rows = rows[int((at < 0).sum()) :]
        yield from _sweep(setup, _limits(setup, jobs), at[rows], (begin[rows], end[rows]), workers[rows])


def _limits(setup: Setup, jobs: JobColumns) -> Ints:
    """Workers that each node holds (nodes,): the least over the resources that a worker needs."""
    capacity = np.array([node.capacity_milli for node in setup.nodes], np.int64)
    found = np.full(len(setup.nodes), UNLIMITED, np.int64)
    for resource, milli in jobs.demand:
        found = np.minimum(found, capacity[:, resource] // milli)
    return found


def _sweep(
    setup: Setup, limit: Ints, node: Ints, times: tuple[Ints, Ints], workers: Ints
) -> Iterator[Violation]:
    """Go through the places by node and time: room that ends at an instant is free for what begins then.

    Rows are sorted by node and, at each node, by begin. Node and time make one key, so that one sort per part is enough.
    """
    bits = (setup.horizon_us + 1).bit_length()
    cuts = np.flatnonzero(np.diff(node, prepend=-1))  # first row of every node
    first = 0
    while first < len(cuts):
        last = max(first + 1, int(np.searchsorted(cuts, cuts[first] + ROWS)))
        last = min(last, first + (1 << (62 - bits)), len(cuts))
        rows = slice(int(cuts[first]), int(cuts[last]) if last < len(cuts) else len(node))
        number = (
            np.repeat(np.arange(last - first), np.diff(np.append(cuts[first:last], rows.stop))).astype(
                np.int64
            )
            << bits
        )
        starts, stops, size = number + times[0][rows], number + times[1][rows], workers[rows]
        order = np.argsort(stops)
        given = np.append(0, np.cumsum(size[order]))
        used = np.cumsum(size) - given[np.searchsorted(stops[order], starts, side="right")]
        over = used > limit[node[rows]]
        if over.any():
            row = int(np.argmax(over))
            name, slot = setup.nodes[int(node[rows][row])].name, int(times[0][rows][row]) // setup.slot_us
            detail = f"{used[row]} workers are there; it holds {limit[node[rows][row]]}"
            yield Violation(
                "capacity.node", "", name, slot, float(used[row] - limit[node[rows][row]]), detail
            )
            return
        first = last
