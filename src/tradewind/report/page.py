"""The report: one self-contained HTML file for one run or many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import shorten

from tradewind.files import atomic
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report import bounds, quantities
from tradewind.report import charts as report_charts
from tradewind.report.figures import comparison
from tradewind.report.figures.comparison import Scenarios
from tradewind.report.figures.data import Series
from tradewind.report.figures.theme import style
from tradewind.report.html import Cell, collapsible, full, section, stylesheet, table, template
from tradewind.report.live import measured
from tradewind.report.summary import Estimate, Group, bill_of, estimate, is_idle
from tradewind.report.summary import measured as measured_metric
from tradewind.report.verdict import sentences

MOST_DETAILED = 8
"""Most policies that get charts of their own in the collapsed part."""


def write(path: str | Path, scenario: Scenarios, runs: Sequence[Run], title: str = "") -> Path:
    """Write the report of runs of one scenario (or of several, one per seed) to `path` and return it."""
    path = Path(path)
    atomic.write_text(path, html(scenario, runs, title))
    return path


def html(scenario: Scenarios, runs: Sequence[Run], title: str = "") -> str:
    """The report as HTML; the same runs give the same text, byte for byte."""
    series = comparison.series_of(scenario, runs)
    first = series[0].data.base.scenario
    with style():
        body = "".join(_sections(series))
    return template("report.html").substitute(
        title=escape(title or _title(series, first)),
        kind="comparison" if len(series) > 1 else "run",
        version=escape(runs[0].version),
        facts=_facts(first, series),
        css=stylesheet(),
        body=body,
        footer=_footer(runs),
    )


def _sections(series: Sequence[Series]) -> list[str]:
    best = series[0]
    place, jobs = report_charts.place(best), report_charts.jobs(best)
    return [
        _verdict(series),
        _cover([s.group for s in series]),
        section("Results", report_charts.grid(report_charts.comparison_charts(series)), note=_which(series)),
        section("Tenants", _bills(series)),
        section("Placement", full(place.whole()) if place else ""),
        section("Jobs", full(jobs.whole()) if jobs else ""),
        *[measured(best.data.base.scenario, run) for run in best.group.runs],
        section("All runs", *[_policy(s, s is not best and i < MOST_DETAILED) for i, s in enumerate(series)]),
    ]


def _bills(series: Sequence[Series]) -> str:
    """What each tenant pays under each policy, mean over seeds, beside its cost alone; empty without bills."""
    bills = [[bill_of(run) for run in s.group.runs] for s in series]
    kept = [(s, runs) for s, runs in zip(series, bills, strict=True) if all(runs)]
    tenants = sorted({tenant for _, runs in kept for run in runs for tenant, _ in run})
    if not kept or tenants == [""]:
        return ""
    heads = ["Tenant", "alone"] + [s.group.label for s, _ in kept]
    rows = []
    for tenant in tenants:
        means = [estimate([run.get((tenant, "alone"), math.nan) for run in kept[0][1]])]
        means += [estimate([run.get((tenant, "pooled"), math.nan) for run in runs]) for _, runs in kept]
        rows.append(("", [escape(tenant or "(none)"), *[_with_interval("cost_usd", mean) for mean in means]]))
    return table(heads, rows, "Bills by tenant and policy", "panel cover")


def _title(series: Sequence[Series], scenario: Scenario) -> str:
    return f"{scenario.name}: {series[0].group.label}" if len(series) == 1 else scenario.name


def _facts(scenario: Scenario, series: Sequence[Series]) -> str:
    setup = scenario.setup
    seeds = max(len(s.group.runs) for s in series)
    parts = [
        _count(len(scenario.jobs), "job"),
        _count(len(setup.hosts), "node"),
        _count(len(setup.links), "link") if setup.links else "",
        f"{_count(len(series), 'policy', 'policies')}",
        _count(seeds, "seed"),
        f"objective: {quantities.better(setup.objective)} {quantities.name(setup.objective)}",
    ]
    return escape(" · ".join(p for p in parts if p))


def _count(number: int, one: str, many: str = "") -> str:
    return f"{quantities.number(number)} {one if number == 1 else many or one + 's'}"


def _which(series: Sequence[Series]) -> str:
    """Note on which seed the curves show, if there are several."""
    if max(len(s.group.runs) for s in series) == 1:
        return ""
    return (
        f"Bars show means over all seeds; curves, maps and job charts show seed {series[0].group.first.seed}."
    )


def _verdict(series: Sequence[Series]) -> str:
    first, *rest = sentences(series)
    label = escape(series[0].group.label)
    lead = escape(first)
    if lead.startswith(label):
        lead = f"<strong>{label}</strong>{lead[len(label) :]}"
    return f'<div class="verdict"><p>{lead}</p><p>{escape(" ".join(rest))}</p></div>'


def _with_interval(metric: str, value: Estimate) -> Cell:
    text = quantities.measure(metric, value.mean)
    if math.isfinite(value.half) and value.half > 0:
        return f"{text} <small>± {quantities.measure(metric, value.half, value.mean)}</small>"
    return text


def _cover(groups: Sequence[Group]) -> str:
    """The main table; empty columns are left out."""
    metric = groups[0].objective
    heads = ["Policy", quantities.name(metric), "vs. best", "ratio to bound"]
    heads += ["jobs accepted", "jobs completed", "audit", "decision time"]
    some = any(_turned_away(g) for g in groups)
    rows = [[_name(g), *_cells(g, groups[0], some)] for g in groups]
    kept = [i for i, head in enumerate(heads) if any(row[i] for row in rows)]
    best = groups[0].value.mean
    body = [
        ("best" if len(groups) > 1 and g.sound and g.value.mean == best else "", [row[i] or quantities.DASH for i in kept])
        for g, row in zip(groups, rows, strict=True)
    ]  # fmt: skip
    return table([heads[i] for i in kept], body, "Results by policy", "panel cover")


def _name(g: Group) -> Cell:
    return f'<i style="background: {report_charts.colour(g.number)}"></i>{escape(g.label)}'


def _cells(g: Group, best: Group, turned_away: bool) -> list[Cell]:
    metric, value, top = g.objective, g.value, best.value.mean
    apart = (value.mean - top) / abs(top) if top else math.nan
    ratio = g.ratio
    broken = sum(len(r.violations) for r in g.runs)
    return [
        _with_interval(metric, value),
        _signed(apart) if math.isfinite(apart) else "",
        f"{ratio.mean:.3f}" if math.isfinite(ratio.mean) else "",
        _tally(g, "jobs_accepted") if turned_away else "",
        _tally(g, "jobs_completed"),
        f'<span class="broken">{_count(broken, "violation")}</span>' if broken else '<span class="ok">passed</span>',
        _decide(g),
    ]  # fmt: skip


def _decide(g: Group) -> Cell:
    """Median and 99th percentile of the time per decision, mean over seeds."""
    timed = [r.timings for r in g.runs if r.timings is not None]
    if not timed:
        return ""
    half, slow = estimate([t.decide_p50 for t in timed]).mean, estimate([t.decide_p99 for t in timed]).mean
    return f"{quantities.duration(half)} <small>p99: {quantities.duration(slow)}</small>"


def _turned_away(g: Group) -> bool:
    """Whether any run accepted fewer jobs than arrived."""
    return any(
        r.metrics.get("jobs_accepted", math.inf) < len(r.tables.get("outcomes", {}).get("job", ()))
        for r in g.runs
    )


def _signed(share: float) -> str:
    if abs(share) < 5e-10:
        return ""
    if share > 2:
        return f"×{quantities.number(1 + share)}"
    return ("+" if share > 0 else "") + quantities.percent(share)


def _tally(g: Group, metric: str) -> Cell:
    mean = g.metric(metric).mean
    if not math.isfinite(mean):
        return ""
    arrived = estimate([len(r.tables.get("outcomes", {}).get("job", ())) for r in g.runs]).mean
    return quantities.number(mean, 4) + (
        f" <small>of {quantities.number(arrived, 4)}</small>" if arrived else ""
    )


def _policy(s: Series, charted: bool) -> str:
    """The collapsed part of one policy: its charts and the metrics of each seed."""
    charts = (
        [c.whole().html() for c in (report_charts.place(s), report_charts.jobs(s)) if c] if charted else []
    )
    runs = s.group.runs
    heads = ["Metric", *[f"seed {r.seed}" for r in runs]]
    aside = (
        f"{quantities.name(s.group.objective)} {quantities.measure(s.group.objective, s.group.value.mean)}"
    )
    return collapsible(
        s.group.label,
        aside,
        *charts,
        table(heads, _metrics(runs), f"Metrics of {s.group.label}"),
        _remarks(s.group),
    )


def _metrics(runs: Sequence[Run]) -> list[tuple[str, list[Cell]]]:
    """One row per metric, the objective first; metrics that are 0 in every run are left out."""
    objective = runs[0].objective
    names = dict.fromkeys((objective, *[m for r in runs for m in r.metrics]))
    rows = []
    for metric in names:
        if metric != objective and is_idle(metric, runs):
            continue
        values = [measured_metric(r, metric) for r in runs]
        if metric == objective or any(value and not math.isnan(value) for value in values):
            title = f"{escape(quantities.name(metric))} <small>{escape(metric)}</small>"
            rows.append(("", [title, *[quantities.measure(metric, v) for v in values]]))
    return rows


def _remarks(g: Group) -> str:
    """Parameters, bound, certificates and audit violations."""
    notes = []
    if g.first.params:
        params = ", ".join(f"{k}={shorten(str(v), 80)}" for k, v in sorted(g.first.params.items()))
        notes.append(f"Parameters: <code>{escape(params)}</code>")
    if bound := g.first.bound:
        value = quantities.measure(g.objective, g.bound.mean)
        notes.append(f"Offline bound ({bound.kind}): {value}")
    if served := [each for run in g.runs if (each := bounds.served_of(run))]:
        least, ratio = (
            estimate([getattr(each, name) for each in served]).mean for name in ("value", "ratio")
        )
        rejected, jobs = (sum(getattr(each, name) for each in served) for name in ("turned_away", "jobs"))
        notes.append(
            f"{rejected} of {jobs} jobs were rejected or not finished. Bound of the served jobs: "
            f"{quantities.measure(g.objective, least)}, ratio {ratio:.3f}. {bounds.FEWER}"
        )
    if certificates := sum(len(r.certificates) for r in g.runs):
        notes.append(f"The run files hold {_count(certificates, 'certificate')}")
    for run in g.runs:
        notes.extend(
            f'<span class="broken">Seed {run.seed}: {escape(str(v))}</span>' for v in run.violations[:10]
        )
    return f'<p class="note">{"<br>".join(notes)}</p>' if notes else ""


def _footer(runs: Sequence[Run]) -> str:
    hashes, seeds = sorted({run.scenario_hash for run in runs}), sorted({run.seed for run in runs})
    named = ", ".join(f'<code title="{escape(h)}">{escape(h[:16])}</code>' for h in hashes[:3])
    more = f" and {len(hashes) - 3} more" if len(hashes) > 3 else ""
    said = (
        ", ".join(map(str, seeds)) if len(seeds) <= 12 else f"{seeds[0]} to {seeds[-1]}, {len(seeds)} in all"
    )
    return f"Tradewind {escape(runs[0].version)} · seed{'s' if len(seeds) > 1 else ''} {said} · scenario {named}{more}"
