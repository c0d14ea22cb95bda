"""Data behind the figures, computed from a scenario and a run: arrays only, no drawing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradewind.engine.intervals import (
    GONE,
    Intervals,
    Pieces,
    Usage,
    effective,
    end_us,
    floats,
    ints,
    texts,
    usage,
)
from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.job import Demand, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI, UNLIMITED, US_PER_S
from tradewind.report.summary import Group

MOST_KINDS = 6
"""Most resource kinds that a figure shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Resources grouped by kind: if there are many, `worker-1`, `worker-2`, … become one kind.

    names  (G,);  of  kind of each resource (R,); -1 means not shown
    """

    names: tuple[str, ...]
    of: tuple[int, ...]


def kinds(resources: Sequence[str]) -> Kinds:
    """One kind per resource up to MOST_KINDS, else one per name without its trailing number."""
    stems = list(resources)
    if len(stems) > MOST_KINDS:
        stems = [re.sub(r"[-_ .]?\d+$", "", name) or name for name in stems]
    names = list(dict.fromkeys(stems))[:MOST_KINDS]
    return Kinds(names=tuple(names), of=tuple(names.index(s) if s in names else -1 for s in stems))


def _demand_table(demands: Sequence[Demand], of: Sequence[int], count: int) -> Floats:
    """Units of each kind that one worker (or server) needs, shape (jobs, kinds)."""
    table = np.zeros((len(demands), count))
    for j, demand in enumerate(demands):
        for resource, milli in demand:
            if of[resource] >= 0:
                table[j, of[resource]] += milli / MILLI
    return table


class ScenarioData:
    """Data that all runs of a scenario share."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.setup = scenario.setup
        self.kinds = kinds(scenario.setup.resources)

    @cached_property
    def arrive_us(self) -> Ints:
        """Arrival of each job, shape (J,)."""
        return np.fromiter((job.arrive_us for job in self.scenario.jobs), np.int64, len(self.scenario.jobs))

    @cached_property
    def demand(self) -> tuple[Floats, Floats]:
        """Units that one worker and one server need, each (J, G)."""
        of, count = self.kinds.of, len(self.kinds.names)
        jobs = self.scenario.jobs
        return (
            _demand_table([j.worker for j in jobs], of, count),
            _demand_table([j.server for j in jobs], of, count),
        )

    @cached_property
    def node_capacity(self) -> Floats:
        """Units of each kind at each node before any change, (N, G); inf if unlimited."""
        table = np.zeros((len(self.setup.nodes), len(self.kinds.names)))
        for n, node in enumerate(self.setup.nodes):
            for resource, milli in enumerate(node.capacity_milli):
                kind = self.kinds.of[resource]
                if kind >= 0:
                    table[n, kind] += np.inf if milli >= UNLIMITED else milli / MILLI
        return table

    def capacity(self, edges: Floats) -> Floats:
        """Total capacity in each bin, (G, B), after failures and changes; inf if unlimited."""
        setup = self.setup
        moving = [c for c in self.scenario.changes if c.kind in ("capacity", "node_down", "node_up")]
        amount = np.array(
            [[np.inf if m >= UNLIMITED else m / MILLI for m in node.capacity_milli] for node in setup.nodes]
        )
        up = np.ones(len(setup.nodes), dtype=bool)
        times, totals = [0.0], [self._total(amount, up)]
        for change in moving:
            if change.kind == "capacity":
                amount[change.a, change.b] = change.value / MILLI
            else:
                up[change.a] = change.kind == "node_up"
            times.append(float(change.at_us))
            totals.append(self._total(amount, up))
        if len(times) == 1:
            return np.repeat(totals[0][:, None], len(edges) - 1, axis=1)
        middle = (edges[1:] + edges[:-1]) / 2
        at = np.searchsorted(np.array(times), middle, side="right") - 1
        return np.stack(totals, axis=1)[:, at]

    def _total(self, amount: Floats, up: Bools) -> Floats:
        """Capacity by kind (G,): that of a parent is the smaller of its own limit and the sum of its children."""
        held = np.where(up[:, None], amount, 0.0)
        for level in self._levels:
            parents = np.unique(self._parent[level])
            below = np.zeros_like(held)
            np.add.at(below, self._parent[level], held[level])
            held[parents] = np.minimum(held[parents], below[parents])
        whole = held[self._parent < 0].sum(axis=0)
        total = np.zeros(len(self.kinds.names))
        for amount_held, kind in zip(whole, self.kinds.of, strict=True):
            if kind >= 0:
                total[kind] += amount_held
        return total

    @cached_property
    def _parent(self) -> Ints:
        return np.array([node.parent for node in self.setup.nodes], dtype=np.int64)

    @cached_property
    def _levels(self) -> list[Ints]:
        """Nodes with a parent, deepest level first."""
        depth, at = np.zeros(len(self._parent), dtype=np.int64), self._parent.copy()
        while (at >= 0).any():
            depth[at >= 0] += 1
            at = np.where(at >= 0, self._parent[at], -1)
        return [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=0)), 0, -1)]


class RunData:
    """Data of one run, ready to plot."""

    def __init__(self, base: ScenarioData, run: Run) -> None:
        self.base = base
        self.run = run

    @cached_property
    def end_us(self) -> int:
        return end_us(self.run)

    @cached_property
    def shown_us(self) -> int:
        """End of time axes: a long tail with little activity is cut.

        The cut is where usage and queue stay below 5% of their peaks, and applies only if it more than halves the axis.
        """
        edges = bins(self.end_us, 1000)
        used = self.used(edges)
        alive = np.zeros(len(edges) - 1, dtype=bool)
        for curve in (*used, self.queue(edges)):
            alive |= curve > 0.05 * max(float(curve.max()), 1e-12)
        last = int(np.flatnonzero(alive)[-1]) + 1 if alive.any() else len(alive)
        cut = int(1.04 * edges[min(last, len(edges) - 1)])
        return cut if 2 * cut < self.end_us else self.end_us

    @cached_property
    def changes_us(self) -> Floats:
        """Instants at which what is used, waits or is available may change, ascending."""
        b, changes = self.busy, self.base.scenario.changes
        when = (
            self.usage.from_us,
            self.usage.until_us,
            b.from_us,
            b.until_us,
            self.base.arrive_us,
            self.gone_us,
        )
        moved = np.array([change.at_us for change in changes], dtype=np.int64)
        return np.unique(np.concatenate((*when, moved))).astype(np.float64)

    @cached_property
    def intervals(self) -> Intervals:
        return effective(self.run, self.end_us)

    @cached_property
    def usage(self) -> Usage:
        return usage(self.run, self.intervals)

    @cached_property
    def busy(self) -> Intervals:
        """Intervals in which a job has workers; the others only reserve bandwidth or move data."""
        got = np.zeros(len(self.intervals.step), dtype=bool)
        got[self.usage.interval[self.usage.workers > 0]] = True
        all_ = self.intervals
        return Intervals(
            step=all_.step[got], job=all_.job[got], from_us=all_.from_us[got], until_us=all_.until_us[got]
        )

    def units(self, kind: int) -> Floats:
        """Units of a resource kind used by each row of `usage`, (P,)."""
        worker, server = self.base.demand
        u = self.usage
        taken: Floats = u.workers * worker[u.job, kind] + u.servers * server[u.job, kind]
        return taken

    def used(self, edges: Floats) -> Floats:
        """Mean units of each kind in use, (G, B)."""
        u = self.usage
        rows = [
            Pieces(from_us=u.from_us, until_us=u.until_us, weight=self.units(g)).mean_per_bin(edges)[0]
            for g in range(len(self.base.kinds.names))
        ]
        return np.stack(rows)

    def used_by_node(self, kind: int, edges: Floats) -> Floats:
        """Mean units of a kind in use at each node, without its children, (N, B)."""
        u = self.usage
        pieces = Pieces(
            from_us=u.from_us, until_us=u.until_us, weight=self.units(kind),
            row=u.node, rows=len(self.base.setup.nodes),
        )  # fmt: skip
        return pieces.mean_per_bin(edges)

    def servers_by_node(self) -> Floats:
        """Mean number of parameter servers at each node over the whole run, (N,)."""
        u = self.usage
        held = u.servers * (u.until_us - u.from_us) / self.end_us
        return _sums(u.node, held, len(self.base.setup.nodes))

    @cached_property
    def arrived(self) -> Ints:
        """Jobs that arrived."""
        jobs = ints(self.run, "outcomes", "job")
        return jobs if len(jobs) else np.arange(len(self.base.scenario.jobs))

    @cached_property
    def gone_us(self) -> Ints:
        """When each job finished, was rejected or given up, (J,); the end of the run if none of that happened."""
        gone = np.full(len(self.base.scenario.jobs), self.end_us, dtype=np.int64)
        rows = np.flatnonzero(np.isin(texts(self.run, "events", "kind"), (*GONE, "ended")))
        np.minimum.at(gone, ints(self.run, "events", "job")[rows], ints(self.run, "events", "at_us")[rows])
        finish = ints(self.run, "outcomes", "finish_us")
        done = finish >= 0
        np.minimum.at(gone, ints(self.run, "outcomes", "job")[done], finish[done])
        return gone

    @cached_property
    def may_wait(self) -> Ints:
        """Jobs that arrived and want workers until they are done; streams without data need none."""
        jobs = self.base.scenario.jobs
        wants = np.array([not isinstance(jobs[j].work, Stream) for j in self.arrived], dtype=bool)
        wanting: Ints = self.arrived[wants]
        return wanting

    def queue(self, edges: Floats) -> Floats:
        """Mean number of jobs that have arrived and have no workers, (B,); streams do not count."""
        arrive, gone = self.base.arrive_us[self.may_wait], self.gone_us[self.may_wait]
        here = Pieces(from_us=arrive, until_us=gone, weight=np.ones(len(arrive))).mean_per_bin(edges)[0]
        b = self.busy
        counts = np.isin(b.job, self.may_wait)
        # a job that holds resources after its completion (hold: through) does not wait
        from_us, until = b.from_us[counts], np.minimum(b.until_us, self.gone_us[b.job])[counts]
        running = Pieces(from_us=from_us, until_us=until, weight=np.ones(len(until))).mean_per_bin(edges)[0]
        waiting: Floats = np.maximum(0.0, here - running)
        waiting[waiting < 1e-9 * max(1.0, float(here.max(initial=0.0)))] = 0.0
        return waiting

    @cached_property
    def completion_s(self) -> Floats:
        """Seconds from arrival to completion of finished jobs, ascending, (F,)."""
        finish, job = ints(self.run, "outcomes", "finish_us"), ints(self.run, "outcomes", "job")
        done = finish >= 0
        return np.sort(finish[done] - self.base.arrive_us[job[done]]) / US_PER_S

    @cached_property
    def worker_seconds(self) -> Floats:
        """Worker-seconds that each job received, (J,)."""
        u = self.usage
        weight = u.workers * (u.until_us - u.from_us) / US_PER_S
        return _sums(u.job, weight, len(self.base.scenario.jobs))

    @cached_property
    def wait_mean_s(self) -> float:
        """Mean seconds that a job waited without workers; streams do not count."""
        if not len(self.may_wait):
            return 0.0
        edges = np.array([0.0, float(self.end_us)])
        return float(self.queue(edges)[0]) * self.end_us / US_PER_S / len(self.may_wait)

    @cached_property
    def main_kind(self) -> int:
        """Resource kind with the highest utilisation; if all are unlimited, the first one used."""
        edges = np.array([0.0, float(self.end_us)])
        used, capacity = self.used(edges)[:, 0], self.base.capacity(edges)[:, 0]
        limited = np.isfinite(capacity) & (capacity > 0)
        if limited.any():
            share = np.where(limited, used / np.where(limited, capacity, 1.0), -1.0)
            return int(share.argmax())
        return int(np.flatnonzero(used)[0]) if used.any() else 0

    @cached_property
    def load(self) -> float:
        """Mean utilisation of the main kind; nan if it is unlimited."""
        edges = np.array([0.0, float(self.end_us)])
        capacity = float(self.base.capacity(edges)[self.main_kind, 0])
        used = float(self.used(edges)[self.main_kind, 0])
        return used / capacity if np.isfinite(capacity) and capacity > 0 else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The runs of one policy, with the data of the first of them."""

    group: Group
    data: RunData

    @property
    def number(self) -> int:
        return self.group.number


def _sums(index: Ints, weight: Floats, count: int) -> Floats:
    """Sum of weights per index, shape (count,)."""
    return np.bincount(index, weight, count).astype(np.float64)


def bins(end: int, count: int) -> Floats:
    """Edges of `count` equal bins from 0 to `end` microseconds."""
    return np.linspace(0.0, float(end), count + 1)


def moved_bytes(data: RunData) -> tuple[Ints, Ints, Floats, NDArray[np.bool_]]:
    """Bytes moved between pairs of different nodes, largest first: src, dst, bytes, whether they are parameters, each (F,).

    Counts the data of flows and, as parameters, the training traffic between workers and servers (from the costs table).
    """
    run = data.run
    lived = np.zeros(len(ints(run, "steps", "plan")), dtype=bool)
    lived[data.intervals.step] = True
    kept = lived[ints(run, "flows", "step")]
    kind = texts(run, "costs", "kind") == "traffic"
    src = np.concatenate((ints(run, "flows", "src")[kept], ints(run, "costs", "a")[kind]))
    dst = np.concatenate((ints(run, "flows", "dst")[kept], ints(run, "costs", "b")[kind]))
    size = np.concatenate((floats(run, "flows", "bytes")[kept], floats(run, "costs", "amount")[kind] * 1e9))
    count = len(data.base.setup.nodes)
    traffic = np.repeat([0, 1], [int(kept.sum()), int(kind.sum())])
    key, inverse = np.unique((traffic * count + src) * count + dst, return_inverse=True)
    total = np.bincount(inverse, size, len(key))
    order = np.argsort(-total, kind="stable")
    src, dst, traffic = key // count % count, key % count, key // count // count
    order = order[(src[order] != dst[order]) & (total[order] > 0)]
    return src[order], dst[order], total[order], traffic[order] > 0


def link_bps(data: RunData) -> Floats:
    """Mean reserved bit/s on each link over the whole run, both directions together, (L,)."""
    run, count = data.run, len(data.base.setup.links)
    span = np.zeros(len(ints(run, "steps", "plan")))
    span[data.intervals.step] = data.intervals.until_us - data.intervals.from_us
    path, link = ints(run, "paths", "path"), ints(run, "paths", "link")
    order = np.argsort(path, kind="stable")
    path, link = path[order], link[order]
    routes = ints(run, "routes", "path")
    load = floats(run, "routes", "bps") * span[ints(run, "routes", "step")] / data.end_us
    first, last = np.searchsorted(path, routes), np.searchsorted(path, routes, side="right")
    length = last - first
    offset = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    link = link[np.repeat(first, length) + offset]
    # push-pull uses both directions; on a shared link they count once
    both = np.repeat(texts(run, "routes", "duplex") == "push-pull", length)
    own = np.array([not found.shared for found in data.base.setup.links], dtype=bool)
    return _sums(link, np.repeat(load, length) * np.where(both & own[link], 2.0, 1.0), count)
