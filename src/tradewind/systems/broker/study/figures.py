"""The figures of the broker's study: savings by source, cost against deadlines, online against offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tradewind.lab.study import Chart, Claim, Effort, PaperFigure, Part, Pieces, Row, Study, spread
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.bound.certified import Effort as Search
from tradewind.systems.broker.bound.certified import solved
from tradewind.systems.broker.bound.problem import whole
from tradewind.systems.broker.policy import BROKER, planned
from tradewind.systems.broker.rivals import CENTRAL, SELFISH, SKYPILOT
from tradewind.systems.broker.shared.plan import cost
from tradewind.systems.broker.study import claims as judge
from tradewind.systems.broker.study.savings import SOURCES
from tradewind.systems.broker.workload.generator import BROKER as MARKET
from tradewind.worlds.simulate import simulate

FAMILIES = ("F", "Fo", "E", "D", "Bs", "Bm", "C")
FACTORS = (1.0, 1.5, 2.0, 3.0)
POLICIES = (BROKER, SELFISH, CENTRAL, SKYPILOT)


Make = Callable[[Effort, str], list[Row]]
"""(effort, family) -> rows."""


def market(effort: Effort, family: str, seed: int, arrivals: str = "family") -> Scenario:
    """A market of a family, small in a quick study."""
    size = effort.pick({"jobs": 8, "regions": 6, "slots": 72}, {"jobs": 50})
    return MARKET.make({"family": family, "arrivals": arrivals, **size}, seed)


def families(effort: Effort) -> tuple[str, ...]:
    found: tuple[str, ...] = effort.pick(("Fo", "D", "Bm"), FAMILIES)
    return found


def _seeds(effort: Effort) -> range:
    return range(1, 1 + min(effort.seeds, effort.pick(1, 5)))


def savings(effort: Effort, family: str) -> list[Row]:
    """What a plan without a freedom costs more, in percent, value of jobs not served included.

    All options stay: those that the best plan leaves out are what a plan without a freedom has to use.
    """
    rows: list[Row] = []
    for seed in _seeds(effort):
        found, rounds = whole(market(effort, family, seed), every=True), effort.pick(20, 200)
        ours = cost(found.problem, planned(found.market, found.problem, found.before, rounds))
        for source, without in SOURCES.items():
            more = 100 * (cost(found.problem, without(found, rounds)) / ours - 1)
            rows.append({"family": family, "source": source, "more": more})
    return spread(rows, ("family", "source"), "more")


def deadlines(effort: Effort, family: str) -> list[Row]:
    """The bill per job with deadlines as drawn and later, beside that of deadlines as drawn."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        given, first = market(effort, family, seed), 0.0
        for factor in FACTORS:
            later = replace(given, jobs=tuple(_later(job, factor, given.setup.slots) for job in given.jobs))
            found = whole(later)
            usd = cost(
                found.problem, planned(found.market, found.problem, found.before, effort.pick(20, 200))
            )
            first = first or usd
            rows.append({"family": family, "factor": factor, "cost": usd / first})
    return spread(rows, ("family", "factor"), "cost")


def _later(job: Job, factor: float, slots: int) -> Job:
    """The job with so many times as long until its deadline, within the run."""
    assert job.utility is not None
    last, worth, end, rest = job.utility.args
    most = slots - job.arrive_us // 3_600_000_000
    later = min(float(round(end * factor)), float(most))
    return replace(job, utility=replace(job.utility, args=(later - (end - last), worth, later, rest)))


def online(effort: Effort, family: str) -> list[Row]:
    """Policies that see no future beside the offline bound, jobs arriving over 60% of the run."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        given = market(effort, family, seed, "spread")
        answer = solved(whole(given), effort.pick(Search(20, 100, 10, 5), Search()))
        rows.append({"family": family, "policy": "offline plan", "ratio": answer.usd / answer.bound})
        for policy in POLICIES:
            usd = simulate(given, policy).metrics["total_usd"]
            rows.append({"family": family, "policy": policy.name, "ratio": usd / answer.bound})
    return spread(rows, ("family", "policy"), "ratio")


def _of(make: Make, family: str, effort: Effort) -> list[Row]:
    return make(effort, family)


def _parts(make: Make, effort: Effort) -> tuple[Part, ...]:
    return tuple(Part(name=family, rows=partial(_of, make, family)) for family in families(effort))


def _join(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    del effort
    return [row for part in parts for row in part]


def _figure(name: str, title: str, make: Make, chart: Chart, *aims: Claim) -> PaperFigure:
    pieces = Pieces(parts=partial(_parts, make), join=_join)
    return PaperFigure(
        name=name,
        title=title,
        rows=lambda effort: _join(effort, [part.rows(effort) for part in pieces.parts(effort)]),
        chart=chart,
        claims=aims,
        pieces=pieces,
    )


STUDY = Study(
    system="broker",
    title="Broker: batch training at the lowest bill",
    figures=(
        _figure(
            "savings", "What each freedom saves", savings,
            Chart(x="source", y="more", series="family", kind="bar", low="low", high="high", x_label="without",
                  y_label="dearer by %"),
            judge.aim("each saves", "every freedom saves in some family, beyond chance.", judge.each_freedom_saves),
        ),
        _figure(
            "deadlines", "What later deadlines save", deadlines,
            Chart(x="factor", y="cost", series="family", low="low", high="high", x_label="time until the deadline, times",
                  y_label="bill, as drawn = 1"),
            judge.aim("later is cheaper", "later deadlines never cost more, in any family.", judge.later_is_cheaper),
        ),
        _figure(
            "online", "What not knowing the future costs", online,
            Chart(x="family", y="ratio", series="policy", kind="bar", low="low", high="high", x_label="family",
                  y_label="cost / offline bound"),
            judge.aim("near the bound", f"online, in the mean at most {judge.near()} of the offline bound.",
                      judge.near_the_bound),
            judge.aim("never dearer", "online, in no family dearer than a rival in the mean.", judge.never_dearer),
        ),
    ),
    remarks=(
        "Ours, not a paper's: what is judged are our aims.",
        "Costs count the value of jobs that are not served. `skypilot-rule` is our model of SkyPilot, not its code.",
    ),
)  # fmt: skip
