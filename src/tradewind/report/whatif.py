"""Two runs of one scenario side by side: which jobs differ most in the objective, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tradewind.engine.costs import comm_times, job_costs
from tradewind.engine.intervals import Usage, effective, end_us, ints, texts, usage
from tradewind.model.arrays import Floats, Ints
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Objective
from tradewind.model.units import US_PER_S, dollars

MOST_OTHERS = 3
"""Jobs that are named as those that ran first."""
SMALL = 0.01
"""A cause that explains less than this part of a difference is left out."""
COMPLETION = "completion"


class JobFacts(NamedTuple):
    """What came of a job in one run.

    delay_us  from arrival to completion; to the end of the run where it was not completed
    run_us    time with workers
    workers   mean number while it ran
    places    names of the nodes with its workers, most used first; servers: with its parameter servers
    round_s   communication time of a round
    why       the reason why it was refused, or why there was no offer
    """

    state: str
    start_us: int
    finish_us: int
    delay_us: int
    run_us: int
    workers: float
    steps: int
    places: tuple[str, ...]
    servers: tuple[str, ...]
    round_s: float
    paid_usd: float
    cost_usd: float
    value_usd: float
    why: str

    @property
    def is_served(self) -> bool:
        """Whether it was completed."""
        return self.state in ("finished", "left")


class JobDifference(NamedTuple):
    """A job that does differently in the two runs; score: by how much, in the unit of `Difference.of`."""

    job: str
    score: float
    before: JobFacts
    after: JobFacts
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The jobs that differ most, and by what.

    of      what the scores are: completion or time of a round (s), cost, total, profit or welfare (USD), or utility
    jobs    how many jobs differ at all
    """

    of: str
    jobs: int
    largest: tuple[JobDifference, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        rows = [
            {**each._asdict(), "before": each.before._asdict(), "after": each.after._asdict()}
            for each in self.largest
        ]
        return {"of": self.of, "jobs": self.jobs, "largest": rows}


_SCORES: Mapping[Objective, tuple[str, Callable[[JobFacts], float]]] = {
    "jct_mean_s": (COMPLETION, lambda facts: facts.delay_us / US_PER_S),
    "makespan_s": (COMPLETION, lambda facts: facts.delay_us / US_PER_S),
    "epoch_s": ("time of a round", lambda facts: facts.round_s),
    "cost_usd": ("cost", lambda facts: facts.cost_usd),
    "total_usd": ("cost and worth lost", lambda facts: facts.cost_usd - facts.value_usd),
    "profit_usd": ("profit", lambda facts: facts.paid_usd - facts.cost_usd),
    "welfare_usd": ("welfare", lambda facts: facts.value_usd - facts.cost_usd),
    "utility": ("utility", lambda facts: facts.value_usd),
}


def difference(scenario: Scenario, before: Run, after: Run, most: int = 5) -> Difference:
    """The jobs that differ most in the scenario's objective; in their completion where that is equal for all."""
    sides = (_Side(scenario, before), _Side(scenario, after))
    both = [job for job in sides[0].facts if job in sides[1].facts]
    for of, score in (_SCORES[scenario.setup.objective], _SCORES["jct_mean_s"]):
        name = of
        scores = {job: score(sides[1].facts[job]) - score(sides[0].facts[job]) for job in both}
        found = [job for job in both if abs(scores[job]) > 1e-9]
        if found:
            break
    found.sort(key=lambda job: (-abs(scores[job]), job))
    largest = tuple(
        JobDifference(
            scenario.jobs[job].id, scores[job], sides[0].facts[job], sides[1].facts[job], _reasons(sides, job)
        )
        for job in found[:most]
    )
    return Difference(of=name, jobs=len(found), largest=largest)


class _Side:
    """One of the two runs: the facts of its jobs, and who used what when."""

    def __init__(self, scenario: Scenario, run: Run) -> None:
        self.scenario, self.policy = scenario, run.policy
        self.end_us = end_us(run)
        intervals = effective(run, self.end_us)
        self.used: Usage = usage(run, intervals)
        costs = job_costs(scenario, run, intervals) if run.tables["costs"]["usd"] else {}
        paid: dict[Any, Any] = dict(
            zip(*(run.tables["payments"][name] for name in ("job", "usd")), strict=True)
        )
        whys, comm = _refusals(run), comm_times(scenario, run, intervals)
        order = np.argsort(intervals.job, kind="stable")
        cuts = np.searchsorted(intervals.job[order], np.arange(len(scenario.jobs) + 1))
        spans = (intervals.until_us - intervals.from_us)[order]
        rows = np.argsort(self.used.job, kind="stable")
        limits = np.searchsorted(self.used.job[rows], np.arange(len(scenario.jobs) + 1))
        self.facts: dict[int, JobFacts] = {}
        columns = [
            run.tables["outcomes"][name] for name in ("job", "state", "start_us", "finish_us", "value_usd")
        ]
        for job, state, start, finish, value in zip(*columns, strict=True):
            own = rows[limits[job] : limits[job + 1]]
            run_us = int(spans[cuts[job] : cuts[job + 1]].sum())
            worker_us = self.used.workers[own] * (self.used.until_us - self.used.from_us)[own]
            summed, span = comm.get(job, (0, 1))
            over = finish if finish >= 0 else self.end_us
            self.facts[job] = JobFacts(
                state, start, finish, over - scenario.jobs[job].arrive_us, run_us,
                float(worker_us.sum()) / run_us if run_us else 0.0, int(cuts[job + 1] - cuts[job]),
                self._places(own, self.used.workers), self._places(own, self.used.servers), summed / span / US_PER_S,
                paid.get(job, 0.0), costs.get(job, 0.0), value, whys.get(job, ""),
            )  # fmt: skip

    def _places(self, rows: Ints, amounts: Ints) -> tuple[str, ...]:
        """Names of the nodes of these rows of `used` that have any of the amounts, by amount and time."""
        spent: dict[int, int] = {}
        for node, count, span in zip(
            self.used.node[rows].tolist(),
            amounts[rows].tolist(),
            (self.used.until_us - self.used.from_us)[rows].tolist(),
            strict=True,
        ):
            spent[node] = spent.get(node, 0) + count * span
        return tuple(
            self.scenario.setup.nodes[n].name for n in sorted(spent, key=lambda n: (-spent[n], n)) if spent[n]
        )

    def worker_us(self, begin_us: int, end_us: int) -> Floats:
        """Worker-microseconds of each job between two instants, shape (jobs,)."""
        span = np.minimum(self.used.until_us, end_us) - np.maximum(self.used.from_us, begin_us)
        weight = (np.maximum(span, 0) * self.used.workers).astype(np.float64)
        found: Floats = np.bincount(self.used.job, weight, len(self.scenario.jobs)).astype(np.float64)
        return found


def _refusals(run: Run) -> dict[int, str]:
    """Job -> why it was refused."""
    answers: Any = run.tables["answers"]
    offers: Any = run.tables["offers"]
    found = dict(
        zip(ints(run, "verdicts", "job").tolist(), texts(run, "verdicts", "reason").tolist(), strict=True)
    )
    for job, short, why in zip(answers["job"], answers["refused"], answers["why"], strict=True):
        if short:
            found[job] = f"{short}: {why}" if why else short
    cheapest: dict[int, float] = {}
    for job, usd in zip(offers["job"], offers["payment_usd"], strict=True):
        cheapest[job] = min(cheapest.get(job, usd), usd)
    kinds, jobs = texts(run, "events", "kind"), ints(run, "events", "job")
    for job in jobs[kinds == "declined"].tolist() if len(kinds) else ():
        found[job] = f"the cheapest offer was {dollars(cheapest[job])} USD" if job in cheapest else "no offer"
    return found


# ---------------------------------------------------------------------- reasons
def _reasons(sides: tuple[_Side, _Side], job: int) -> tuple[str, ...]:
    """Why a job does differently in the second run, in short clauses; the most important first."""
    before, after = sides[0].facts[job], sides[1].facts[job]
    found = _ends(sides, before, after)
    if before.run_us and after.run_us:
        found += _times(sides, job, before, after)
    found += _amounts(before, after)
    return tuple(found) or ("has the same plan; only its value differs",)


def _ends(sides: tuple[_Side, _Side], before: JobFacts, after: JobFacts) -> list[str]:
    """It ended in another way."""
    if before.state == after.state:
        return []
    found = []
    for side, facts in zip(sides, (before, after), strict=True):
        if not facts.is_served:
            never = " and never started" if facts.state == "unfinished" and not facts.run_us else ""
            found.append(f"{facts.state}{never} under {side.policy}{f' ({facts.why})' if facts.why else ''}")
    return found


def _times(sides: tuple[_Side, _Side], job: int, before: JobFacts, after: JobFacts) -> list[str]:
    """It waits, or runs, longer or shorter."""
    found = []
    least = max(1, int(SMALL * abs(after.delay_us - before.delay_us)))
    if abs(late := after.start_us - before.start_us) >= least:
        word = "later" if late > 0 else "earlier"
        found.append(f"starts {_seconds(late)} {word}{_others(sides, job, before.start_us, after.start_us)}")
    if abs(longer := after.run_us - before.run_us) >= least:
        found.append(f"runs {_seconds(longer)} {'longer' if longer > 0 else 'shorter'}")
    idle = [
        facts.delay_us - (facts.start_us - _arrival(sides, job)) - facts.run_us for facts in (before, after)
    ]
    if abs(idle[1] - idle[0]) >= least and (before.steps > 1 or after.steps > 1):
        found.append(f"is stopped for {_seconds(idle[1])} instead of {_seconds(idle[0])} after its start")
    return found


def _arrival(sides: tuple[_Side, _Side], job: int) -> int:
    return sides[0].scenario.jobs[job].arrive_us


def _others(sides: tuple[_Side, _Side], job: int, before_us: int, after_us: int) -> str:
    """Who had the resources while the job waited in one run and ran in the other."""
    late, early = (sides[1], sides[0]) if after_us > before_us else (sides[0], sides[1])
    begin, end = sorted((before_us, after_us))
    more = late.worker_us(begin, end) - early.worker_us(begin, end)
    more[job] = 0
    who = [int(other) for other in np.argsort(-more, kind="stable")[:MOST_OTHERS] if more[other] > 0]
    if not who:
        return ""
    names = ", ".join(late.scenario.jobs[other].id for other in who)
    return f" ({names} {'runs' if len(who) == 1 else 'run'} first under {late.policy})"


def _amounts(before: JobFacts, after: JobFacts) -> list[str]:
    """It has other places, workers, steps, payment or cost."""
    found = []
    if before.places and after.places and set(before.places) != set(after.places):
        found.append(f"is at {_list(after.places)} instead of {_list(before.places)}")
    if before.servers and after.servers and set(before.servers) != set(after.servers):
        found.append(f"has its parameter server at {_list(after.servers)} instead of {_list(before.servers)}")
    if before.round_s and after.round_s and abs(after.round_s - before.round_s) > SMALL * before.round_s:
        found.append(f"exchanges a round in {after.round_s:.4g} instead of {before.round_s:.4g} s")
    if before.run_us and after.run_us and abs(after.workers - before.workers) > 0.005 * before.workers:
        found.append(f"has {after.workers:.3g} instead of {before.workers:.3g} workers")
    if before.run_us and after.run_us and before.steps != after.steps:
        found.append(f"runs in {after.steps} instead of {before.steps} steps")
    for word, old, new in (
        ("pays", before.paid_usd, after.paid_usd),
        ("costs", before.cost_usd, after.cost_usd),
    ):
        if abs(new - old) > 1e-9 * max(abs(new), abs(old)):
            found.append(f"{word} {dollars(new)} instead of {dollars(old)} USD")
    return found


def _list(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _seconds(us: int) -> str:
    seconds = abs(us) / US_PER_S
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
