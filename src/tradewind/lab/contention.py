"""Rings that contend for links instead of reserving them. Not in the papers: GADGET reserves b_i on every hop of a ring.

Placements are those of audited runs; speeds are recomputed. Without reservation all rings that are active share the links
max-min: a ring has one rate on all of its legs, and its ring time follows from equation (1) with that rate instead of b_i.
Later decisions do not know of the other speeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tradewind.engine.intervals import Intervals, effective, end_us, ints
from tradewind.lab.study import Chart, Claim, Effort, Judged, PaperFigure, Part, Pieces, Row, spreads
from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.job import Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.worlds.simulate import simulate

RESERVED, SPARE, BLIND = "reserved", "reserved, idle bandwidth shared", "links ignored, all shared"
FAMILIES, UTILITIES = ("paper", "tight", "vtight"), ("sqrt", "sigmoid")
SCARCE = ("tight", "vtight")
"""Families with narrow links."""
LESS = {"rounds": 500, "enough": 0.99}
"""Parameters of gadget with less search: the last percent does not matter here."""
WIDE = 1 << 50
"""Bit/s of links that are never full."""
Shares = Callable[[Floats, Floats, Floats], Floats]
"""(bandwidth (D,), legs over each direction (R, D), reserved (R,)) -> bit/s of each ring (R,)."""


def reserve(bps: Floats, legs: Floats, asked: Floats) -> Floats:
    """Every ring has what it reserved."""
    del bps, legs
    return asked


def max_min(bps: Floats, legs: Floats, asked: Floats) -> Floats:
    """Every ring has the same until a direction is full; the rings on it keep that, the others go on."""
    rate, left, rising = np.full(len(asked), np.inf), bps.copy(), legs.any(axis=1)
    while rising.any():
        load = legs[rising].sum(axis=0)
        level = np.divide(left, load, out=np.full(len(bps), np.inf), where=load > 0)
        full = int(level.argmin())
        stops = rising & (legs[:, full] > 0)
        rate[stops] = max(0.0, level[full])
        left = left - legs[stops].sum(axis=0) * rate[stops][0]
        rising &= ~stops
    return rate


def top_up(bps: Floats, legs: Floats, asked: Floats) -> Floats:
    """Every ring has what it reserved, and its share of what is idle."""
    return asked + max_min(np.maximum(0.0, bps - asked @ legs), legs, asked)


class Rings(NamedTuple):
    """The steps of a run: workers (S,), legs over every direction of every link (S, D)."""

    workers: Floats
    legs: Floats


def rings_of(scenario: Scenario, run: Run) -> Rings:
    """Workers and legs of all steps."""
    links, steps = scenario.setup.links, len(run.tables["steps"]["plan"])
    workers = np.bincount(ints(run, "places", "step"), ints(run, "places", "workers"), steps).astype(
        np.float64
    )
    paths: dict[int, list[int]] = {}
    for path, link in zip(
        ints(run, "paths", "path").tolist(), ints(run, "paths", "link").tolist(), strict=True
    ):
        paths.setdefault(path, []).append(link)
    legs = np.zeros((steps, 2 * len(links)))
    columns = (ints(run, "routes", name).tolist() for name in ("step", "src", "path"))
    for step, at, path in zip(*columns, strict=True):
        for number in paths.get(path, ()):
            back = at != links[number].a
            legs[step, 2 * number + back] += 1
            at = links[number].a if back else links[number].b
    return Rings(workers, legs)


def done_of(scenario: Scenario, run: Run, shares: Shares) -> tuple[Floats, float]:
    """(I,) iterations of every job if bandwidth is shared so, and the share of the rings' time below what they reserve."""
    rings, spans = rings_of(scenario, run), effective(run, end_us(run))
    bps = np.array([b for link in scenario.setup.links for b in (link.ab_bps, link.ba_bps)], dtype=np.float64)
    asked = np.array([job.ring_bps for job in scenario.jobs], dtype=np.float64)
    done, below, whole = np.zeros(len(scenario.jobs)), 0.0, 0.0
    for begin, end in _stretches(spans):
        now = np.flatnonzero((spans.from_us <= begin) & (spans.until_us > begin))
        step, job = spans.step[now], spans.job[now]
        rate, many = shares(bps, rings.legs[step], asked[job]), rings.legs[step].sum(axis=1) > 0
        round_us = _round_us(scenario, job, rings.workers[step], many, rate)
        np.add.at(done, job, rings.workers[step] * (end - begin) / round_us)
        whole += float(many.sum()) * (end - begin)
        below += float((many & (rate < 0.999 * asked[job])).sum()) * (end - begin)
    count = np.array(
        [job.work.count for job in scenario.jobs if isinstance(job.work, Rounds)], dtype=np.float64
    )
    return np.minimum(done, count), below / whole if whole else 0.0


def _stretches(spans: Intervals) -> Sequence[tuple[int, int]]:
    """Stretches of time in which the same steps are carried out."""
    ends = np.unique(np.concatenate([spans.from_us, spans.until_us])).tolist()
    return list(pairwise(ends))


def _round_us(scenario: Scenario, job: Ints, workers: Floats, many: Bools, rate: Floats) -> Floats:
    """Equation (1) with a given bandwidth: computation, sending twice where there are several servers, and adding up."""
    mine = [scenario.jobs[j] for j in job.tolist()]
    compute = np.array([j.work.compute_us for j in mine if isinstance(j.work, Rounds)], dtype=np.float64)
    bits = np.array([8e6 * j.model_bytes for j in mine]) * (workers - 1) / np.maximum(workers, 1)
    add = np.array([1 / j.reduce_bps if j.reduce_bps else 0.0 for j in mine])
    return np.asarray(np.maximum(1.0, compute + bits * (np.where(many, 2 / rate, 0.0) + add)))


def worth(scenario: Scenario, done: Floats) -> float:
    """Utility of the iterations."""
    total = 0.0
    for job, x in zip(scenario.jobs, done.tolist(), strict=True):
        assert isinstance(job.work, Rounds)
        assert job.utility is not None
        total += job.utility.value(job.work.rate * x)
    return total


def without_links(scenario: Scenario) -> Scenario:
    """The same with links that are never full."""
    links = tuple(replace(link, ab_bps=WIDE, ba_bps=WIDE) for link in scenario.setup.links)
    return replace(scenario, setup=replace(scenario.setup, links=links))


def one_seed(effort: Effort, seed: int) -> list[Row]:
    """Utility under each way of sharing links, over that with reservations, for every family and utility."""
    rows: list[Row] = []
    size = effort.pick({"servers": 20, "slots": 20, "jobs": 100}, {"servers": 50, "slots": 60, "jobs": 600})
    for family in FAMILIES:
        for utility in UTILITIES:
            params = {**size, "family": family, "utility": utility, "ring_time": True}
            given = workloads.generate("gadget", params, seed)
            free = without_links(given)
            careful, blind = (
                simulate(each, policies.find("gadget"), LESS, seed=seed) for each in (given, free)
            )
            found = {
                RESERVED: done_of(given, careful, reserve),
                SPARE: done_of(given, careful, top_up),
                BLIND: done_of(given, blind, max_min),
            }
            value = {way: worth(given, done) for way, (done, _) in found.items()}
            rows += [
                {"case": f"{family} {utility}", "family": family, "way": way, "of reserved": value[way] / value[RESERVED],
                 "below": found[way][1]}
                for way in value
            ]  # fmt: skip
    return rows


def parts(effort: Effort) -> list[Part]:
    """One per seed."""
    return [
        Part(name=f"seed-{seed}", rows=partial(one_seed, seed=seed))
        for seed in range(1, 1 + min(effort.seeds, effort.pick(3, 5)))
    ]


def join(effort: Effort, found: Sequence[Sequence[Row]]) -> list[Row]:
    """Means and intervals over the seeds."""
    del effort
    return spreads([row for part in found for row in part], ("case", "family", "way"), "of reserved", "below")


def rows(effort: Effort) -> list[Row]:
    """The whole table."""
    return join(effort, [part.rows(effort) for part in parts(effort)])


def _text(some: Sequence[Row]) -> str:
    return ", ".join(
        f"{r['case']} {float(r['of reserved']):.3f} ({float(r['low']):.3f} to {float(r['high']):.3f})"
        for r in some
    )


def idle_pays(table: Sequence[Row], policy: str) -> Judged:
    """Sharing what is idle earns more in every case, beyond the interval over seeds."""
    del policy
    mine = [r for r in table if r["way"] == SPARE]
    return Judged(
        all(float(r["low"]) > 1 for r in mine), f"utility over that with reservations: {_text(mine)}"
    )


def reserving_pays(table: Sequence[Row], policy: str) -> Judged:
    """Where links are narrow, rings that ignore them earn less than with reservations, beyond the interval over seeds."""
    del policy
    mine = [r for r in table if r["way"] == BLIND]
    slow = ", ".join(f"{r['case']} {float(r['below']):.0%}" for r in mine)
    return Judged(
        all(float(r["high"]) < 1 for r in mine if r["family"] in SCARCE),
        f"utility over that with reservations: {_text(mine)}; slower than b_i for {slow} of the time of rings over "
        "several servers",
    )


FIGURE = PaperFigure(
    name="contention",
    title="Rings that contend for links instead of reserving them",
    claims=(
        Claim(
            name="reserving pays",
            words="Ours: where links are narrow, rings placed without looking at them, which contend, earn less than "
            "rings that reserve.",
            holds=reserving_pays,
            ours="gadget",
        ),
        Claim(
            name="idle bandwidth pays",
            words="Ours: rings that reserve and also share what is idle earn more than rings that only reserve.",
            holds=idle_pays,
            ours="gadget",
        ),
    ),
    rows=rows,
    pieces=Pieces(parts=parts, join=join),
    chart=Chart(
        x="case",
        y="of reserved",
        series="way",
        kind="bar",
        low="low",
        high="high",
        y_label="utility / reserved",
    ),
)
