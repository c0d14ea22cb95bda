"""The operator's costs: rent by mean amount per slot, transfer and traffic by bytes per slot, deployment."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from math import fsum

import numpy as np

from tradewind.engine.instants import read_steps
from tradewind.engine.intervals import Intervals
from tradewind.model.arrays import Ints
from tradewind.model.decision import Step
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import comm_us, machine_rate
from tradewind.model.result import Column, Run, Table
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MICRO, MILLI, OPEN, US_PER_HOUR, US_PER_S

Key = tuple[int, int, int]
Row = tuple[int, str, int, int, float, float]
"""(slot, kind, a, b, amount, USD), as in the table `costs`."""


class _Past:
    """What was last seen of each job: (until when, at which nodes), and of those at two sites the run: (until when, places,
    when its warm-up was over)."""

    def __init__(self) -> None:
        self.present: dict[int, tuple[int, frozenset[int]]] = {}
        self.runs: dict[int, tuple[int, tuple[tuple[int, int], ...], int]] = {}


class _Meter:
    """Resources used and bytes moved, by slot."""

    def __init__(self, scenario: Scenario, past: _Past | None = None) -> None:
        self.setup = scenario.setup
        self.rent: dict[Key, int] = defaultdict(int)  # (slot, node, resource) -> milli-unit-microseconds
        self.transfer: dict[Key, int] = defaultdict(int)  # (slot, source, destination) -> bytes
        self.traffic: dict[Key, int] = defaultdict(int)  # (slot, source, destination) -> byte-microseconds
        self.routed: dict[Key, float] = defaultdict(float)  # (slot, source, destination) -> USD
        self.routed_gb: dict[Key, float] = defaultdict(float)
        self.deployed: dict[Key, int] = defaultdict(int)  # (slot, node, job) -> times
        self._links = any(link.usd_per_gb for link in self.setup.links)
        self._past = _Past() if past is None else past

    def add(self, job: Job, step: Step, begin: int, end: int) -> None:
        """Add one interval of one job."""
        setup, site = self.setup, self.setup.site_of
        servers = step.servers or (0,) * len(step.nodes)
        if job.deploy_usd:
            here = frozenset(n for n, w, s in zip(step.nodes, step.workers, servers, strict=True) if w or s)
            before_us, before = self._past.present.get(job.index, (-1, frozenset()))
            for node in here - before if before_us == begin else here:
                self.deployed[begin // setup.slot_us, node, job.index] += 1
            self._past.present[job.index] = (end, here)
        is_across = job.sync_every > 0 and len(step.nodes) == 2
        warm_us = self._warm_us(job, step, begin, end) if is_across else 0
        if begin == step.from_us:
            for flow in step.flows:
                if site[flow.src] != site[flow.dst]:
                    self.transfer[begin // setup.slot_us, site[flow.src], site[flow.dst]] += flow.bytes
        at = begin
        while at < end:
            slot = at // setup.slot_us
            until = min(end, (slot + 1) * setup.slot_us)
            self._rent(job, step, servers, slot, until - at)
            self._traffic(job, step, servers, slot, until - at)
            if is_across:
                self._exchange(job, step, slot, until - max(at, warm_us))
            if self._links and isinstance(job.work, Rounds):
                self._routes(job, step, slot, until - at)
            at = until

    def _rent(self, job: Job, step: Step, servers: tuple[int, ...], slot: int, span: int) -> None:
        rent = self.setup.rent
        if not rent:
            return
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            for demand, count in ((job.worker, workers), (job.server, ps)):
                for resource, milli in demand:
                    payer = node
                    while payer >= 0 and (payer, resource) not in rent:
                        payer = self.setup.nodes[payer].parent
                    if count and payer >= 0:
                        self.rent[slot, payer, resource] += milli * count * span

    def _traffic(self, job: Job, step: Step, servers: tuple[int, ...], slot: int, span: int) -> None:
        total, size, site = sum(servers), job.traffic_bytes_per_worker_slot, self.setup.site_of
        if not total or not size:
            return
        for node, workers in zip(step.nodes, step.workers, strict=True):
            for other, ps in zip(step.nodes, servers, strict=True):
                if ps and workers and site[node] != site[other]:
                    self.traffic[slot, site[node], site[other]] += size * workers * ps * span // total

    def _warm_us(self, job: Job, step: Step, begin: int, end: int) -> int:
        """When a run does work: after the warm-up, unless it continues the last one."""
        until, places, warm_us = self._past.runs.get(job.index, (-1, (), 0))
        here = tuple(zip(step.nodes, step.workers, strict=True))
        if until != begin or places != here:
            warm_us = begin + job.warmup_us
        self._past.runs[job.index] = (end, here, warm_us)
        return warm_us

    def _exchange(self, job: Job, step: Step, slot: int, span: int) -> None:
        """Parameters that two sites send each other every sync_every rounds."""
        done, us = machine_rate(self.setup, job, step)
        a, b = (self.setup.site_of[node] for node in step.nodes)
        if span > 0 and done:
            amount = job.model_bytes * self.setup.slot_us * span * done // (us * MICRO * job.sync_every)
            self.traffic[slot, a, b] += amount
            self.traffic[slot, b, a] += amount

    def _routes(self, job: Job, step: Step, slot: int, span: int) -> None:
        work = job.work
        assert isinstance(work, Rounds)
        n = sum(step.workers)
        share = 2 * ((n - 1) / n if work.comm == "ring" and n else 1)
        rounds = span / max(1, work.compute_us + comm_us(self.setup, job, step))
        for route in step.routes:
            gb = rounds * share * job.bytes_of(route.src) / GB
            usd = sum(self.setup.links[link].usd_per_gb for link in route.path)
            self.routed[slot, route.src, route.dst] += gb * usd
            self.routed_gb[slot, route.src, route.dst] += gb


class _Factors:
    """Price factors by slot."""

    def __init__(self, scenario: Scenario) -> None:
        self._steps: dict[tuple[str, int, int], list[tuple[int, float]]] = defaultdict(list)
        for change in scenario.changes:
            if change.kind in ("price", "egress"):
                key = (change.kind, change.a, change.b)
                self._steps[key].append((change.at_us // scenario.setup.slot_us, change.factor))

    def at(self, kind: str, a: int, b: int, slot: int) -> float:
        """Factor on a tariff in a slot."""
        steps = self._steps.get((kind, a, b))
        if not steps:
            return 1.0
        place = bisect_right(steps, (slot, OPEN)) - 1
        return steps[place][1] if place >= 0 else 1.0


def cost_table(scenario: Scenario, run: Run, intervals: Intervals) -> Table:
    """The table `costs`, sorted by slot, kind and place."""
    setup = scenario.setup
    priced = setup.rent or setup.egress or any(link.usd_per_gb for link in setup.links)
    columns: dict[str, Column] = {name: [] for name in ("slot", "kind", "a", "b", "amount", "usd")}
    if not priced and (scenario.columns is not None or not any(job.deploy_usd for job in scenario.jobs)):
        return columns
    meter = _Meter(scenario)
    for _, job, begin, end, step in _carried_out(run, intervals):
        meter.add(scenario.jobs[job], step, begin, end)
    found = sorted(_rows(scenario, meter))
    for name, values in zip(columns, zip(*found, strict=True), strict=False):
        columns[name] = list(values)
    return columns


def _carried_out(run: Run, intervals: Intervals) -> Iterator[tuple[int, int, int, int, Step]]:
    """(number of the interval, job, begin, end, step) by job and time."""
    steps = read_steps(run.tables)
    columns = (intervals.job, intervals.from_us, intervals.until_us, intervals.step)
    rows = zip(*(column.tolist() for column in columns), range(len(intervals.job)), strict=True)
    for job, begin, end, step, number in sorted(rows):
        yield number, job, begin, end, steps[step]


def job_costs(scenario: Scenario, run: Run, intervals: Intervals) -> dict[int, float]:
    """Job -> its part of the cost in USD: of every line of the bill in proportion to what the job used of it."""
    return _shares(scenario, run, intervals, intervals.job)


def interval_costs(scenario: Scenario, run: Run, intervals: Intervals) -> dict[int, float]:
    """Number of an interval -> its part of the cost in USD, as in `job_costs`."""
    return _shares(scenario, run, intervals, np.arange(len(intervals.job)))


def rows_alone(scenario: Scenario, run: Run, intervals: Intervals) -> dict[int, list[Row]]:
    """Job -> its lines at list price, as if it had rented by itself: no tier is shared, and no pool gives a discount."""
    return {
        job: sorted((*_tariff_rows(scenario, meter), *_other_rows(scenario, meter)))
        for job, meter in _metered(scenario, _carried_out(run, intervals), intervals.job)
    }


def _metered(
    scenario: Scenario, carried: Iterable[tuple[int, int, int, int, Step]], owners: Ints
) -> Iterator[tuple[int, _Meter]]:
    """(owner, what it used), one after the other: intervals of an owner follow each other."""
    past = _Past()
    for owner, rows in groupby(carried, lambda row: int(owners[row[0]])):
        meter = _Meter(scenario, past)
        for _, job, begin, end, step in rows:
            meter.add(scenario.jobs[job], step, begin, end)
        yield owner, meter


def _shares(scenario: Scenario, run: Run, intervals: Intervals, owners: Ints) -> dict[int, float]:
    """Owner -> its part of the cost in USD; owners: whose each interval is, shape (intervals,)."""
    whole, carried = _Meter(scenario), list(_carried_out(run, intervals))
    for _, job, begin, end, step in carried:
        whole.add(scenario.jobs[job], step, begin, end)
    lines = _tariff_rows(scenario, whole)
    shares = _Pools(scenario.setup, lines).shares()
    usd = {row[:4]: row[5] / row[4] * shares.get(row[:4], 1.0) for row in lines if row[4]}
    found = {}
    for owner, meter in _metered(scenario, carried, owners):
        parts = [row[4] * usd.get(row[:4], 0.0) for row in _tariff_rows(scenario, meter)]
        parts += meter.routed.values()
        parts += [times * scenario.jobs[job].deploy_usd for (_, _, job), times in meter.deployed.items()]
        found[owner] = fsum(parts)
    return found


def _rows(scenario: Scenario, meter: _Meter) -> list[Row]:
    rows = _tariff_rows(scenario, meter)
    rows += _Pools(scenario.setup, rows).rows()
    return rows + _other_rows(scenario, meter)


def _other_rows(scenario: Scenario, meter: _Meter) -> list[Row]:
    """What has a price of its own: bytes over links, and starts."""
    rows: list[Row] = [
        (s, "traffic", a, b, meter.routed_gb[s, a, b], usd) for (s, a, b), usd in meter.routed.items() if usd
    ]
    for (slot, node, job), times in meter.deployed.items():
        rows.append((slot, "deploy", node, job, float(times), times * scenario.jobs[job].deploy_usd))
    return rows


class _Pools:
    """Lines of the bill by pool and period."""

    def __init__(self, setup: Setup, lines: list[Row]) -> None:
        self._setup = setup
        pool_of = {("rent", *key): number for number, pool in enumerate(setup.pools) for key in pool.rent}
        pool_of |= {
            ("egress", *key): number for number, pool in enumerate(setup.pools) for key in pool.egress
        }
        self._lines: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for line in lines if pool_of else ():
            number = pool_of.get(("rent" if line[1] == "rent" else "egress", line[2], line[3]))
            if number is not None:
                period = line[0] * setup.slot_us // setup.pools[number].period_us
                self._lines[number, period].append(line)

    def rows(self) -> list[Row]:
        """One line per pool and period, in the slot where the period begins: what the tariff changes."""
        found: list[Row] = []
        for (number, period), lines in self._lines.items():
            pool, spent = self._setup.pools[number], fsum(line[5] for line in lines)
            slot = period * pool.period_us // self._setup.slot_us
            found.append((slot, "discount", number, period, spent, pool.bill(spent, period) - spent))
        return found

    def shares(self) -> dict[tuple[int, str, int, int], float]:
        """Line -> the part of its USD that is paid."""
        found: dict[tuple[int, str, int, int], float] = {}
        for (number, period), lines in self._lines.items():
            spent = fsum(line[5] for line in lines)
            share = self._setup.pools[number].bill(spent, period) / spent if spent else 1.0
            found |= {line[:4]: share for line in lines}
        return found


def _tariff_rows(scenario: Scenario, meter: _Meter) -> list[Row]:
    """What is priced by a tariff, that is by the amount of all jobs together."""
    setup, factors = scenario.setup, _Factors(scenario)
    rows: list[Row] = []
    for (slot, node, resource), amount in meter.rent.items():
        units = amount / setup.slot_us / MILLI
        usd = setup.rent[node, resource].cost(units) * setup.slot_us / US_PER_HOUR
        rows.append((slot, "rent", node, resource, units, usd * factors.at("price", node, resource, slot)))
    for slot, a, b in meter.transfer.keys() | meter.traffic.keys():
        moved, exchanged = (
            meter.transfer.get((slot, a, b), 0) / GB,
            meter.traffic.get((slot, a, b), 0) / setup.slot_us / GB,
        )
        total = moved + exchanged
        usd = (
            setup.egress[a, b].cost(total) * factors.at("egress", a, b, slot)
            if (a, b) in setup.egress
            else 0.0
        )
        # one tariff for both, shared in proportion to their bytes
        for kind, part in (("transfer", moved), ("traffic", exchanged)):
            if part:
                rows.append((slot, kind, a, b, part, usd * (part / total)))
    return rows


def epoch_s(scenario: Scenario, run: Run, intervals: Intervals) -> float:
    """Mean communication time of a round in seconds, weighted by running time; 0 if nothing ran."""
    sums = comm_times(scenario, run, intervals).values()
    total, span = (sum(column) for column in zip(*sums, strict=True)) if sums else (0, 0)
    return total / span / US_PER_S if span else 0.0


def comm_times(scenario: Scenario, run: Run, intervals: Intervals) -> dict[int, tuple[int, int]]:
    """Job with communication -> (communication time of a round times running time, running time), summed, in us."""
    if scenario.columns is not None:
        return {}
    wanted = [
        isinstance(j.work, Rounds) and j.work.comm != "none" and j.work.unit != "worker-slot"
        for j in scenario.jobs
    ]
    found: dict[int, tuple[int, int]] = {}
    if not any(wanted):
        return found
    for _, job, begin, end, step in _carried_out(run, intervals):
        if wanted[job]:
            total, span = found.get(job, (0, 0))
            comm = comm_us(scenario.setup, scenario.jobs[job], step)
            found[job] = (total + (end - begin) * comm, span + end - begin)
    return found
