"""Diminishing returns learned from loss curves: `gadget` with curves that are known, fitted while jobs train, or assumed.

A job's worth is its height times the share of its reducible loss that training has removed, x / (x + h) after x
iterations: the curve 1 / (a x + b) + c that is usually fitted to losses. Jobs differ in h. Once per slot a job reports its
loss, with noise. Not in the papers, where every bid states the utility of progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tradewind.engine import bounds
from tradewind.lab.study import Chart, Claim, Effort, Judged, PaperFigure, Part, Pieces, Row, spreads
from tradewind.model.arrays import Floats
from tradewind.model.job import Job, Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.units import MICRO
from tradewind.model.utility import Utility
from tradewind.registry import workloads
from tradewind.systems.gadget.kernels.slot import Slot
from tradewind.systems.gadget.kernels.solve import SlotEffort
from tradewind.systems.gadget.policy import GADGET, Embedding
from tradewind.systems.gadget.shared.choice import RingChoice, RingRecord
from tradewind.systems.gadget.shared.gains import JobGains
from tradewind.systems.gadget.shared.scheduler import RingScheduler
from tradewind.worlds.simulate import simulate

KNOWN, LEARNED, TYPICAL, EVEN = "known", "learned", "typical", "even"
"""The curve of each job; what its losses so far tell; the mean of all curves for every job; no diminishing returns."""
WAYS = (KNOWN, LEARNED, TYPICAL, EVEN)
CASES = {"1 job per slot": 1, "3 jobs per slot": 3, "10 jobs per slot": 10}
FINER = 5
"""Worker-slots per worker-slot of the published workload: jobs that train long enough to have a curve."""
HALVES: Floats = np.geomspace(0.02, 1.0, 25)
"""Values of h as shares of a job's iterations, all equally likely."""
POINTS: Floats = np.concatenate([[0.0], np.geomspace(0.005, 1.0, 32)])
"""Points of a curve, as shares of a job's iterations."""
NOISE = 0.02
"""Standard deviation of a reported loss, as a share of the reducible loss."""
ENOUGH = 0.95
"""Share of what known curves earn that learned ones are to reach."""
SEEDS = 5


def removed(share: float | Floats, half: float | Floats) -> Any:
    """Share of the reducible loss that is gone after a share of the iterations."""
    return share / (share + half)


def iterations(job: Job) -> float:
    """All iterations of a job, in the unit of its utility."""
    assert isinstance(job.work, Rounds)
    return job.work.count * job.work.rate


def curve(job: Job, height: float, values: Floats) -> Utility:
    """The utility that is `height` times the values at POINTS."""
    xy = np.column_stack([POINTS * iterations(job), height * values])
    return Utility(of="progress", shape="piecewise", args=tuple(xy.ravel().tolist()))


class Curves(NamedTuple):
    """(I,) what removing all of the loss is worth, which jobs state, and h, which nobody knows."""

    height: Floats
    half: Floats


def scenario_of(effort: Effort, seed: int, load: int) -> tuple[Scenario, Curves]:
    """A cluster of GADGET's whose jobs have loss curves."""
    servers, slots = effort.pick((12, 20), (20, 60))
    size = {"servers": servers, "slots": slots, "jobs": load * slots, "utility": "sqrt"}
    given = workloads.generate("gadget", size, seed)
    halves = np.random.default_rng((seed, 18)).choice(HALVES, len(given.jobs))
    heights = np.array([job.utility.args[0] if job.utility else 0.0 for job in given.jobs])
    jobs = []
    for job, height, half in zip(given.jobs, heights.tolist(), halves.tolist(), strict=True):
        assert isinstance(job.work, Rounds)
        work = replace(job.work, count=FINER * job.work.count, rate=job.work.rate / FINER)
        longer = replace(job, work=work)
        jobs.append(replace(longer, utility=curve(longer, height, removed(POINTS, half))))
    return replace(given, jobs=tuple(jobs), name=f"{given.name}-loss"), Curves(heights, halves)


class Reports:
    """Losses that jobs report, and what they tell about h: chances of the values HALVES."""

    def __init__(self, curves: Curves, seed: int) -> None:
        self._curves, self._seed = curves, seed
        self._seen: dict[int, set[int]] = {}
        self._log: dict[int, Floats] = {}

    def height(self, job: Job) -> float:
        """What the job states."""
        return float(self._curves.height[job.index])

    def loss(self, job: Job, done: int) -> float:
        """The measured share of the reducible loss that is left after `done` millionths of worker-slots."""
        assert isinstance(job.work, Rounds)
        share = done / MICRO / job.work.count
        noise = np.random.default_rng((self._seed, job.index, done)).normal(0.0, NOISE)
        return float(1.0 - removed(share, float(self._curves.half[job.index])) + noise)

    def chances(self, job: Job, done: int) -> Floats:
        """Chances of HALVES after another report, which counts once."""
        log = self._log.setdefault(job.index, np.zeros(len(HALVES)))
        if done and done not in self._seen.setdefault(job.index, set()):
            self._seen[job.index].add(done)
            assert isinstance(job.work, Rounds)
            expected = 1.0 - removed(done / MICRO / job.work.count, HALVES)
            log -= (self.loss(job, done) - expected) ** 2 / (2 * NOISE**2)
        chance = np.exp(log - log.max())
        found: Floats = chance / chance.sum()
        return found


def believed(way: str, reports: Reports, job: Job, done: int) -> Utility:
    """The curve that a scheduler takes for the job's."""
    if way == EVEN:
        return curve(job, reports.height(job), POINTS)
    flat = np.full(len(HALVES), 1 / len(HALVES))
    chance = reports.chances(job, done) if way == LEARNED else flat
    return curve(job, reports.height(job), removed(POINTS[:, None], HALVES[None, :]) @ chance)


class BelievedGains(JobGains):
    """Gains by curves that are believed, not by those that the jobs have."""

    def __init__(self, of: Callable[[Job, int], Utility], setup: Setup, total: Floats) -> None:
        super().__init__("ahead", setup, total)
        self._of = of
        self._last: dict[int, Utility] = {}

    def gains(self, jobs: Sequence[Job], done: Sequence[int], left: int, *, inside: bool = False) -> Floats:
        """As the jobs' own, with other utilities."""
        seen = []
        for job, work in zip(jobs, done, strict=True):
            utility = self._of(job, work)
            if self._last.get(job.index) != utility:
                self.forget(job.index)
                self._last[job.index] = utility
            seen.append(replace(job, utility=utility))
        return super().gains(seen, done, left, inside=inside)


class NoProof(Embedding):
    """Rings without the certificate, which would be one for the believed curves."""

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        return RingChoice(rings=super().choose(slot, jobs, records, number).rings)


class BelievingScheduler(RingScheduler):
    """`gadget` with believed curves."""

    def __init__(self, setup: Setup, chooser: Embedding, of: Callable[[Job, int], Utility]) -> None:
        self._of = of
        super().__init__(setup, chooser)

    def _new_gains(self) -> JobGains:
        return BelievedGains(self._of, self._setup, self._whole.room.astype(np.float64).sum(axis=0))


def spec_of(way: str, curves: Curves, seed: int) -> Spec:
    """The policy of a way."""
    if way == KNOWN:
        return GADGET

    def factory(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> BelievingScheduler:
        effort = SlotEffort(rounds=int(params["rounds"]), enough=float(params["enough"]))
        chooser = NoProof(effort, setup.slot_us, sticky=True, seed=int(rng.integers(1 << 30)))
        return BelievingScheduler(setup, chooser, partial(believed, way, Reports(curves, seed)))

    return replace(GADGET, name=f"gadget-{way}", factory=factory)


def rows_of(effort: Effort, seed: int) -> list[Row]:
    """Utility of every way as share of the bound, and over that of known curves, one seed."""
    rows: list[Row] = []
    for case, load in CASES.items():
        given, curves = scenario_of(effort, seed, load)
        top = bounds.bound(given)
        assert top is not None
        params = {"rounds": effort.pick(0, 300)}
        earned = {way: simulate(given, spec_of(way, curves, seed), params, seed=seed).value for way in WAYS}
        rows += [
            {"case": case, "way": way, "of known": value / earned[KNOWN], "over typical": value / earned[TYPICAL],
             "of bound": value / top.value}
            for way, value in earned.items()
        ]  # fmt: skip
    return rows


def join(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows = [row for part in parts for row in part]
    return spreads(rows, ("case", "way"), "of known", "over typical", "of bound")


def parts(effort: Effort) -> list[Part]:
    """One per seed."""
    seeds = range(1, 1 + min(effort.seeds, effort.pick(3, SEEDS)))
    return [Part(name=f"seed-{seed}", rows=partial(rows_of, seed=seed)) for seed in seeds]


def rows(effort: Effort) -> list[Row]:
    """The whole table."""
    return join(effort, [part.rows(effort) for part in parts(effort)])


def _every(table: Sequence[Row], column: str, low: str, least: float) -> Judged:
    """The lower end of what learned curves earn is above a limit in every case."""
    mine = [r for r in table if r["way"] == LEARNED]
    text = ", ".join(
        f"{r['case']} {float(r[column]):.3f} ({float(r[low]):.3f} to {float(r[low.replace('low', 'high')]):.3f})"
        for r in mine
    )
    return Judged(all(float(r[low]) > least for r in mine), text)


def pays(table: Sequence[Row], policy: str) -> Judged:
    """Learned curves earn more than one typical curve for all, beyond chance seed by seed, at every load."""
    del policy
    return _every(table, "over typical", "over typical low", 1.0)


def nearly_known(table: Sequence[Row], policy: str) -> Judged:
    """Learned curves earn at least 95% of what known ones do, with the interval, at every load."""
    del policy
    return _every(table, "of known", "low", ENOUGH)


FIGURE = PaperFigure(
    name="loss-curves",
    title="Diminishing returns learned from loss curves",
    claims=(
        Claim(
            name="learning pays",
            words="Ours: curves fitted to the losses that jobs report earn more than one typical curve for all jobs.",
            holds=pays,
            ours="gadget",
        ),
        Claim(
            name="nearly known",
            words="Ours: fitted curves earn at least 95% of what known ones do.",
            holds=nearly_known,
            ours="gadget",
        ),
    ),
    rows=rows,
    pieces=Pieces(parts=parts, join=join),
    chart=Chart(x="case", y="of known", series="way", low="low", high="high", kind="bar"),
)
