"""What the figures of GADGET share: scenarios, audited runs and measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from tradewind.engine.intervals import effective, end_us, ints, texts
from tradewind.lab.study import Chart, Claims, Effort, Part, Pieces, Row
from tradewind.model.arrays import Ints
from tradewind.model.job import Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.fabric import allowed_sizes, read_fabric, slot_of, whole_capacity
from tradewind.systems.gadget.kernels.gains import gains
from tradewind.systems.gadget.kernels.slot import Slot
from tradewind.worlds.simulate import simulate

RIVALS = ("ring-fifo", "ring-drf", "ring-las")
claim = Claims("gadget-paper", "gadget")


class OneSeed(Protocol):
    """A function that makes the rows of a figure for one seed."""

    def __call__(self, effort: Effort, seed: int) -> list[Row]: ...


def made(effort: Effort, seed: int, **params: Any) -> Scenario:
    """A scenario of the study's size: 50 servers, 200 slots (quick: 20 servers, 30 slots)."""
    size = effort.pick({"servers": 20, "slots": 30, "jobs": 120}, {"servers": 50, "slots": 200, "jobs": 1500})
    return workloads.generate("gadget", size | params, seed)


def played(scenario: Scenario, name: str, seed: int, params: Mapping[str, Any] | None = None) -> Run:
    """One audited run."""
    return simulate(scenario, policies.find(name), params, seed=seed)


def seeds_of(effort: Effort, most: int = 3, quick: int = 2) -> range:
    """Seeds from 1: at most `quick` or `most` of them (the paper's Figures 5 and 6 average three trials)."""
    return range(1, 1 + min(effort.seeds, effort.pick(quick, most)))


def by_seed(
    one: OneSeed, join: Callable[[Effort, Sequence[Sequence[Row]]], list[Row]], most: int = 3, quick: int = 2
) -> Pieces:
    """A figure computed seed by seed, so that an interruption loses at most one."""

    def parts(effort: Effort) -> list[Part]:
        return [
            Part(name=f"seed-{seed}", rows=partial(one, seed=seed)) for seed in seeds_of(effort, most, quick)
        ]

    return Pieces(parts=parts, join=join)


def embedded_ratio(scenario: Scenario, run: Run) -> float:
    """Jobs with a ring / jobs that arrived and have work left, averaged over the slots with active jobs.

    A refused job counts as active: it found no ring.
    """
    slot, end = scenario.setup.slot_us, end_us(run)
    spans, gone = effective(run, end), _gone(scenario, run)
    arrive = np.array([job.arrive_us for job in scenario.jobs])
    ratios = []
    for t in range(0, end, slot):
        active = int(((arrive <= t) & (gone > t)).sum())
        if active:
            ratios.append(len(set(spans.job[(spans.from_us <= t) & (spans.until_us > t)].tolist())) / active)
    return float(np.mean(ratios)) if ratios else 0.0


def ring_shares(scenario: Scenario, run: Run) -> tuple[float, float]:
    """(Share of rings on one server among the rings of several workers of jobs with a bandwidth above the median;
    rings over several servers / active jobs), over all slots.
    """
    slot, end = scenario.setup.slot_us, end_us(run)
    spans = effective(run, end)
    steps = len(run.tables["steps"]["plan"])
    servers = np.bincount(ints(run, "places", "step"), minlength=steps)
    workers = np.bincount(ints(run, "places", "step"), ints(run, "places", "workers"), steps)
    band = np.array([job.ring_bps for job in scenario.jobs])
    arrive, gone = np.array([job.arrive_us for job in scenario.jobs]), _gone(scenario, run)
    inside = wide = several = active = 0
    for t in range(0, end, slot):
        now = (spans.from_us <= t) & (spans.until_us > t)
        step, mine = spans.step[now], band[spans.job[now]]
        ring = workers[step] > 1
        wide += int((ring & (mine > np.median(band))).sum())
        inside += int((ring & (mine > np.median(band)) & (servers[step] == 1)).sum())
        several += int((servers[step] > 1).sum())
        active += int(((arrive <= t) & (gone > t)).sum())
    return inside / max(1, wide), several / max(1, active)


def _gone(scenario: Scenario, run: Run) -> Ints:
    """(I,) when each job was over; the end of the run for jobs that were refused."""
    gone = np.full(len(scenario.jobs), end_us(run))
    over = np.isin(texts(run, "events", "kind"), ("finished", "ended"))
    gone[ints(run, "events", "job")[over]] = ints(run, "events", "at_us")[over]
    return gone


def moved_share(scenario: Scenario, run: Run) -> float:
    """Share of jobs whose servers changed, among those that run in two consecutive slots."""
    slot = scenario.setup.slot_us
    spans = effective(run, end_us(run))
    members: dict[int, set[int]] = {}
    where = zip(ints(run, "places", "step").tolist(), ints(run, "places", "node").tolist(), strict=True)
    for step, node in where:
        members.setdefault(step, set()).add(node)
    before: dict[int, frozenset[int]] = {}
    stays = moves = 0
    for t in range(0, end_us(run), slot):
        rows = np.flatnonzero((spans.from_us <= t) & (spans.until_us > t))
        now = {int(spans.job[r]): frozenset(members[int(spans.step[r])]) for r in rows}
        for job in now.keys() & before.keys():
            stays += now[job] == before[job]
            moves += now[job] != before[job]
        before = now
    return moves / max(1, stays + moves)


def quickly(name: str) -> dict[str, Any]:
    """Parameters with less search, for figures where the last percent does not matter."""
    return {"rounds": 500, "enough": 0.99} if name == "gadget" else {}


def first_slot(scenario: Scenario) -> Slot:
    """A slot with all jobs of a scenario, none of which has done any work."""
    gain = allowed_sizes(scenario.jobs)
    for i, job in enumerate(scenario.jobs):
        assert isinstance(job.work, Rounds)
        assert job.utility is not None
        values = np.array([job.utility.value(job.work.rate * x) for x in range(job.work.count + 1)])
        gain[i, : job.workers_max + 1] = gains(values, job.workers_max)
        gain[i, 1 : job.workers_min] = -np.inf
    fabric = read_fabric(scenario.setup)
    whole = whole_capacity(scenario.setup, fabric)
    return possible(slot_of(fabric, whole, scenario.jobs, gain))


def chart_of(x: str, y: str, series: str, **more: Any) -> Chart:
    """A chart with confidence intervals."""
    return Chart(x=x, y=y, series=series, low="low", high="high", **more)
