"""Studies: figures of a paper with its claims, our rows, and verdicts on the paper's algorithm and on ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tradewind.report.figures.theme import Theme
from tradewind.report.summary import estimate
from tradewind.traces.arrivals import DRAWN

Row = Mapping[str, str | float]
"""One row of a figure's data; all rows of a figure have the same keys."""
Word = Literal["reproduced", "partly reproduced", "not reproduced", "not tested"]
"""Verdict on the paper's claims: all, some or none of them hold, or none was judged."""
OursWord = Literal["holds", "holds in part", "does not hold", "not tested"]
"""The same for our policy, which reproduces nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much to compute, and with which arrivals.

    quick     keeps a whole study within a minute or two
    seeds     number of evaluation seeds
    arrivals  arrivals of the workloads that draw them (`traces.arrivals`)
    """

    quick: bool
    seeds: int
    arrivals: str = DRAWN

    def pick(self, quick: Any, full: Any) -> Any:
        """One value for a quick study, another for a full one."""
        return quick if self.quick else full


class Judged(NamedTuple):
    """Whether a claim holds, and what was found, with our numbers."""

    holds: bool
    found: str


Holds = Callable[[Sequence[Row], str], Judged]
"""Whether a claim holds on the rows for the policy named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement that rows can satisfy or violate.

    name   short, unique within the figure
    words  what the paper says, with its numbers and where it says so
    holds  predicate over the rows for the policy named by the second argument; None: printed as "no judge".
           It looks at intervals over seeds (columns low, high), not only at means: endless ones must not satisfy it.
           A printed number of a claim counts as reached if the interval reaches it; where many settings are searched, if
           the mean does
    paper  the policy judged as the paper's
    ours   our policy, judged by the same predicate in a second column

    A claim that names neither is about the rivals alone and counts for the paper (`holds` gets ""). A claim that names only
    ours is an aim of ours and does not count for the paper.
    """

    name: str
    words: str
    holds: Holds | None
    paper: str = ""
    ours: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """Makes the claims of a study: about its printed algorithm, with ours beside it, unless other names are given."""

    paper: str
    ours: str

    def __call__(
        self, name: str, words: str, holds: Holds | None, paper: str | None = None, ours: str | None = None
    ) -> Claim:
        """A claim."""
        both = (self.paper if paper is None else paper, self.ours if ours is None else ours)
        return Claim(name=name, words=words, holds=holds, paper=both[0], ours=both[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A claim with what was found for the paper's policy and for ours; None where it was not judged."""

    claim: Claim
    paper: Judged | None
    ours: Judged | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcomes of all claims of a figure, and what its rows show besides."""

    outcomes: tuple[Outcome, ...]
    summary: str = ""

    @property
    def paper(self) -> Word:
        """Whether the paper's claims are reproduced."""
        held = [o.paper.holds for o in self.outcomes if o.paper]
        if not held:
            return "not tested"
        return "reproduced" if all(held) else "partly reproduced" if any(held) else "not reproduced"

    @property
    def ours(self) -> OursWord:
        """Whether the claims hold for our policy."""
        held = [o.ours.holds for o in self.outcomes if o.ours]
        if not held:
            return "not tested"
        return "holds" if all(held) else "holds in part" if any(held) else "does not hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How to draw rows: y over x, one line or group of bars per value of `series`; low and high name interval columns."""

    x: str
    y: str
    series: str = ""
    kind: Literal["line", "bar"] = "line"
    low: str = ""
    high: str = ""
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a figure that is computed and saved separately; `rows` is a module-level function or a partial of one."""

    name: str
    rows: Callable[[Effort], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The parts of a figure, and how to join their rows (in the order of the parts)."""

    parts: Callable[[Effort], Sequence[Part]]
    join: Callable[[Effort, Sequence[Sequence[Row]]], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure or table of a paper.

    name     "fig-5", "table-4": also the stem of its files
    claims   what the paper reports, statement by statement; none where the figure is ours and states no aim
    rows     computes our data; equal effort gives equal rows
    summary  what the rows show besides the claims
    pieces   if given, `rows` is computed in these parts, and an interruption loses at most one
    paint    if given, draws the rows instead of `chart`: (rows, theme, width in CSS pixels) -> figure
    """

    name: str
    title: str
    rows: Callable[[Effort], list[Row]]
    chart: Chart
    claims: tuple[Claim, ...] = ()
    summary: Callable[[Sequence[Row]], str] | None = None
    pieces: Pieces | None = None
    paint: Callable[[Sequence[Row], Theme, float], Any] | None = None

    def judge(self, rows: Sequence[Row]) -> Verdict:
        """Every claim judged on the rows; those of a single seed have endless intervals."""
        wide = [_endless(row) if row.get("n") == 1 else row for row in rows]
        note = "" if wide == list(rows) else "; one seed, so no intervals"

        def judged(claim: Claim, policy: str, wanted: bool) -> Judged | None:
            found = claim.holds(wide, policy) if claim.holds and wanted else None
            return found and Judged(found.holds, found.found + note)

        return Verdict(
            outcomes=tuple(
                Outcome(
                    claim=c,
                    paper=judged(c, c.paper, bool(c.paper) or not c.ours),
                    ours=judged(c, c.ours, bool(c.ours)),
                )
                for c in self.claims
            ),
            summary=self.summary(rows) if self.summary else "",
        )


def _endless(row: Row) -> Row:
    """The row with intervals that say nothing; drawn, those of a single seed have no length."""
    ends = {"low": -math.inf, "high": math.inf}
    return {name: ends.get(name.rpartition(" ")[2], value) for name, value in row.items()}


class Instance(NamedTuple):
    """A theorem on an instance: its constant computed there, the ratio that was measured, and whether it is within.

    Both are written as the theorem writes them: for a share of the optimum the constant is a lower limit.
    """

    name: str
    constant: float
    measured: float
    within: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """A guarantee of the paper: what it says, and its constant on the instances that were studied."""

    name: str
    words: str
    instances: Callable[[Effort], Iterable[Instance]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All figures and theorems of one paper, and remarks that apply to all of them."""

    system: str
    title: str
    figures: tuple[PaperFigure, ...]
    remarks: tuple[str, ...] = ()
    theorems: tuple[Theorem, ...] = ()


def spread(rows: Iterable[Row], by: Sequence[str], value: str) -> list[Row]:
    """Mean and 95% interval of `value`, grouped by the columns `by`: columns value, low, high, n."""
    groups: dict[tuple[str | float, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[b] for b in by), []).append(float(row[value]))
    found: list[Row] = []
    for key, values in groups.items():
        e = estimate(values)
        half = e.half if math.isfinite(e.half) else 0.0
        found.append(
            {
                **dict(zip(by, key, strict=True)),
                value: e.mean,
                "low": e.mean - half,
                "high": e.mean + half,
                "n": e.n,
            }
        )
    return found


def spreads(rows: Sequence[Row], by: Sequence[str], *values: str) -> list[Row]:
    """Mean and 95% interval of several columns: the first has the columns low and high, another one `V low` and `V high`."""
    found = spread(rows, by, values[0])
    for value in values[1:]:
        more = spread(rows, by, value)
        found = [
            {**r, value: m[value], f"{value} low": m["low"], f"{value} high": m["high"]}
            for r, m in zip(found, more, strict=True)
        ]
    return found


def mean_of(rows: Iterable[Row], value: str, **where: str | float) -> float:
    """Mean of a column over the rows that have these values in other columns; nan if there are none."""
    found = [float(r[value]) for r in rows if all(r[key] == want for key, want in where.items())]
    return math.fsum(found) / len(found) if found else math.nan


def region(rows: Sequence[Row], knobs: Sequence[str], *, largest: bool = True) -> str:
    """Where a claim holds among settings: rows with a column per knob, `measured`, and `holds` ("yes" or "no").

    Says which values of each knob the settings have in which it holds, or that none was found and how near one comes
    (`largest`: a larger `measured` is nearer).
    """
    held = [row for row in rows if row["holds"] == "yes"]

    def text(value: str | float) -> str:
        return value if isinstance(value, str) else f"{value:g}"

    def values(some: Sequence[Row], knob: str) -> list[str]:
        there = {text(row[knob]) for row in some}
        return [value for value in dict.fromkeys(text(row[knob]) for row in rows) if value in there]

    if not held:
        best = (max if largest else min)(rows, key=lambda row: float(row["measured"]))
        where = ", ".join(f"{knob} {text(best[knob])}" for knob in knobs)
        return f"holds in none of {len(rows)} settings; the nearest is {float(best['measured']):.4g} with {where}"
    limits = [
        f"{knob} {', '.join(v for v in values(rows, knob) if v in values(held, knob))} (of {', '.join(values(rows, knob))})"
        for knob in knobs
        if len(values(held, knob)) < len(values(rows, knob))
    ]
    return f"holds in {len(held)} of {len(rows)} settings" + (
        f", all with {'; '.join(limits)}" if limits else ""
    )
