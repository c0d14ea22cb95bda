"""The page of a plan: the table, a map, a timeline, and cost against finish of every job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tradewind.planner.plan import Plan, Planned
from tradewind.report import charts
from tradewind.report.charts import ChartSpec
from tradewind.report.figures import comparison
from tradewind.report.figures.curves import CLEAR, single
from tradewind.report.figures.theme import THEMED, axes_title, style, style_axes
from tradewind.report.html import full, section, stylesheet, table, template

MOST_CURVES = 6
"""Jobs whose front is drawn: the dearest."""
HEADS = ("Job", "USD", "Region", "Machines", "Start h", "Finish h", "Slack h", "Moved", "Next best")
WORDS = frozenset(("Region", "Machines", "Moved", "Next best"))


def html(plan: Plan) -> str:
    """The page as HTML; the same plan gives the same text."""
    (series,) = comparison.series_of(plan.scenario, [plan.run])
    with style():
        place, jobs = charts.place(series), charts.jobs(series)
        body = [
            _total(plan),
            section(
                "Plan",
                table(HEADS, [("", _cells(row)) for row in plan.jobs], "Plan by job", "panel cover", WORDS),
                *_assumed(plan),
            ),
            section("Cost against finish", full(front(plan.jobs).whole())),
            section("Placement", full(place.whole()) if place else ""),
            section("Jobs", full(jobs.whole()) if jobs else ""),
        ]
    facts = " · ".join(
        f"{what} of {each.date}, hash {each.hash[:12]}"
        for what, each in (("prices", plan.prices), ("bandwidth", plan.wan))
    )
    count = len(plan.jobs)
    return template("report.html").substitute(
        title=f"Plan of {count} {'job' if count == 1 else 'jobs'}", kind="plan", version=escape(plan.run.version),
        facts=escape(facts), css=stylesheet(), body="".join(body),
        footer=escape(" · ".join((f"Tradewind {plan.run.version}", *plan.notes))),
    )  # fmt: skip


def _total(plan: Plan) -> str:
    late = f" and {plan.late_usd:,.2f} USD lost by delays" if plan.late_usd else ""
    said = (
        f"{plan.usd:,.2f} USD in total{late}; no plan costs less than {plan.least_usd:,.2f} USD (certified, gap "
        f"{plan.gap_percent:.2f}%)."
    )
    lines = [line for line in (plan.by_tenant, *plan.compared) if line]
    beside = "".join(f"<li>{escape(each[:1].upper() + each[1:])}</li>" for each in lines)
    return f'<div class="verdict"><p>{escape(said)}</p><ul>{beside}</ul></div>'


def _assumed(plan: Plan) -> Iterator[str]:
    """What was assumed of each job."""
    for row in plan.jobs:
        if row.assumed:
            yield f'<p class="note">Assumed for {escape(row.id)}: {escape("; ".join(row.assumed))}.</p>'


def _cells(row: Planned) -> list[str]:
    times = (f"{row.start_h:.1f}", f"{row.finish_h:.1f}", f"{row.slack_h:.1f}")
    machines, gpus = row.what.rsplit(", ", 1)
    return [
        *map(escape, (row.id, f"{row.usd:,.2f}", row.region)),
        f"{escape(machines)}<small>{escape(gpus)}</small>",
        *map(escape, times),
        *map(escape, (row.moved, row.next_best)),
    ]


def front(rows: Sequence[Planned]) -> ChartSpec:
    """Cost against finish of the dearest jobs; a dot marks the plan."""
    shown = sorted(rows, key=lambda row: (-row.usd, row.id))[:MOST_CURVES]

    def draw(width: float) -> Any:
        figure, axes = single(width, 300.0)
        for i, row in enumerate(shown):
            colour = THEMED.series[i % len(THEMED.series)]
            hours, usd = [each.finish_h for each in row.front], [each.usd for each in row.front]
            axes.step(hours, usd, where="post", color=colour, linewidth=1.6)
            axes.plot([row.finish_h], [row.usd], marker="o", markersize=6, color=colour, linestyle="none")
        axes.set_xlabel("finish, hours from now")
        axes.set_ylim(bottom=0)
        axes.tick_params(axis="x", pad=CLEAR)
        style_axes(axes, THEMED)
        axes_title(axes, "USD", THEMED)
        return figure

    return ChartSpec(
        name="front",
        heading="What it costs to be done earlier",
        label="Cost in USD against the finish in hours, one curve per job",
        draw=draw,
        entries=[(row.id, charts.colour(i)) for i, row in enumerate(shown)],
        caption="Each curve: the cheapest way to be done by then, alone. Dots: the plan.",
    )
