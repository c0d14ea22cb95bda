"""What the commands print about runs: tables, or one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tradewind.api import remarks
from tradewind.cli.options import PAGES
from tradewind.cli.terminal import open_console, print_json, say
from tradewind.model.errors import InputError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.report import bounds
from tradewind.report.audited import Audited
from tradewind.report.optimum import why_none
from tradewind.report.summary import (
    Estimate,
    Group,
    bill_of,
    estimate,
    group,
    is_idle,
    measured,
    metrics_of,
    ranked,
)

if TYPE_CHECKING:
    from tradewind.api import Comparison, Explained
    from tradewind.lab.reproduce_page import Result
    from tradewind.report.optimum import Optimum
    from tradewind.systems.gadget.ranks import RankList

MOST_REASONS = 5  # refusals that are printed after a run
FIRST = (
    "cost_usd",
    "profit_usd",
    "welfare_usd",
    "utility",
    "epoch_s",
    "jct_mean_s",
    "makespan_s",
    "jobs_completed",
)


WORDS = frozenset(("machine", "machines", "region", "from", "to", "moved", "next best", "misses"))
"""Columns of text."""


def table_of(title: str, *columns: str) -> RichTable:
    """A table whose first column is text."""
    table = RichTable(title=title or None, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 or column in WORDS else "right")
    return table


def number(value: float) -> str:
    """A number with as many digits as a reader needs."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"


def same_decimals(values: Sequence[float], spreads: Sequence[float] = ()) -> list[str]:
    """Numbers of one column with the same number of decimals; spreads: half widths of their intervals, where known.

    As many decimals as the largest number needs for four digits, at least two; none where all are whole, and no more than
    the narrowest interval needs for two digits.
    """
    found = [abs(value) for value in values if math.isfinite(value)]
    widths = [abs(spread) for spread in spreads if math.isfinite(spread)]
    if all(value == int(value) for value in [*found, *widths]):
        places = 0
    else:
        places = max(2, 3 - _size(max([*found, *widths])))
        if known := [width for width in widths if width > 0]:
            places = min(places, max(0, 1 - _size(min(known))))
    return [f"{value:,.{places}f}" if math.isfinite(value) else "–" for value in values] + [
        f"{spread:,.{places}f}" if math.isfinite(spread) else "" for spread in spreads
    ]


def _size(value: float) -> int:
    """Decimal exponent of a positive number."""
    return math.floor(math.log10(value))


def as_object(run: Run, scenario: Scenario | None = None) -> dict[str, Any]:
    """The --json object of a run (docs/formats.md); scenario: given if a bound was asked for."""
    bound, timings, served = run.bound, run.timings, bounds.served_of(run)
    return {
        "policy": run.policy,
        "params": dict(run.params),
        "seed": run.seed,
        "scenario": {"name": run.scenario_name, "hash": run.scenario_hash},
        "objective": {"name": run.objective, "value": metrics_of(run)[run.objective]},
        "metrics": metrics_of(run),
        "audit": {"ok": not run.violations, "violations": [v._asdict() for v in run.violations]},
        "bound": None
        if bound is None
        else {
            "value": bound.value,
            "sense": bound.sense,
            "ratio": bound.ratio if math.isfinite(bound.ratio) else None,
            "kind": bound.kind,
        },
        "bound_of_served": None if served is None else asdict(served),
        "bound_note": (bounds.note(scenario, run) if scenario is not None else "") or None,
        "seconds": None
        if timings is None
        else {"total": timings.total, "decide_p50": timings.decide_p50, "decide_p99": timings.decide_p99},
    }


def run(result: Run, scenario: Scenario, *, as_json: bool, saved: Path | None, bounded: bool = False) -> None:
    """Print one run; bounded: with its bound, or why there is none."""
    if as_json:
        print_json(as_object(result, scenario if bounded else None))
        return
    console = open_console()
    table = table_of(f"{result.policy} on {scenario.name}", "metric", "value")
    objective = result.objective
    value = measured(result, objective)
    table.add_row(f"{objective} ({SENSE[objective]})", Text(_value(value, number(value)), style="bold"))
    if result.bound is not None:
        b = result.bound
        table.add_row(f"bound ({b.kind})", number(b.value))
        table.add_row("ratio to bound", f"{b.ratio:.4f}")
    if served := bounds.served_of(result):
        table.add_row("bound of the served jobs (certified)", number(served.value))
        table.add_row("ratio to bound of the served jobs", f"{served.ratio:.4f}")
    for name, value in result.metrics.items():
        if name != objective and value and not is_idle(name, [result]):
            table.add_row(name, number(value))
    console.print(table)
    if bounded and (note := bounds.note(scenario, result)):
        console.print(note, markup=False, highlight=False)
    _costs_by_tenant(console, {"USD": [result]})
    _turned_away(console, result, scenario)
    _remarks(console, result, scenario)
    seconds = result.timings
    if seconds is not None:
        pace = result.metrics["jobs"] / seconds.total if seconds.total else 0.0
        console.print(
            f"audit: {_found(result)} · {seconds.total:.2f} s, "
            f"{pace:,.0f} jobs/s, decide p99 {seconds.decide_p99 * 1e3:.2f} ms"
        )
    if saved is not None:
        console.print(f"{'report' if saved.suffix in ('.html', '.htm') else 'run file'}: {saved}")


def _found(result: Run) -> str:
    """Result of the audit; only live runs can have violations, because a simulation ends with the first."""
    return f"{len(result.violations)} violations" if result.violations else "ok"


def _costs_by_tenant(console: Console, runs: Mapping[str, Sequence[Run]]) -> None:
    """What tenants pay: a column for each list of runs that have bills, means over its runs."""
    bills = {label: [bill_of(run) for run in each] for label, each in runs.items()}
    bills = {label: each for label, each in bills.items() if all(each)}
    if not bills:
        return
    table = table_of("bills by tenant", "tenant", "kind", *bills)
    rows = list(dict.fromkeys(row for each in bills.values() for bill in each for row in bill))
    columns = [
        same_decimals([fmean(bill.get(row, 0.0) for bill in each) for row in rows]) for each in bills.values()
    ]
    for (tenant, kind), *amounts in zip(rows, *columns, strict=True):
        table.add_row(tenant or "(none)", kind, *amounts)
    console.print(table)


def _turned_away(console: Console, result: Run, scenario: Scenario) -> None:
    """Print the first few refusals with their reasons."""
    verdicts = result.tables["verdicts"]
    refused = [(j, why) for j, why in zip(verdicts["job"], verdicts["reason"], strict=True) if why]
    for job, why in refused[:MOST_REASONS]:
        console.print(f"refused: {scenario.jobs[cast(int, job)].id}: {why}", markup=False, highlight=False)
    if len(refused) > MOST_REASONS:
        console.print(f"… and {len(refused) - MOST_REASONS} more (table verdicts of the run file)")


def _remarks(console: Console, result: Run, scenario: Scenario) -> None:
    """Print the first few remarks of the system about a run."""
    sentences = remarks(scenario, result)
    for sentence in sentences[:MOST_REASONS]:
        console.print(sentence, markup=False, highlight=False)
    if len(sentences) > MOST_REASONS:
        console.print(f"… and {len(sentences) - MOST_REASONS} more")


def audit(audited: Audited, *, as_json: bool) -> None:
    """What the audit of a file found, and what it did not check."""
    found = audited.violations
    if as_json:
        violations = [v._asdict() for v in found]
        print_json({"ok": not found, "violations": violations, "not_checked": dict(audited.unchecked)})
        return
    if found:
        say(f"audit: {len(found)} violation{'s' if len(found) > 1 else ''}")
        for violation in found:
            say(f"  {violation}")
        return
    say("audit: ok: every rule holds for the events and decisions, and they give these metrics")
    names: dict[str, list[str]] = {}
    for name, why in audited.unchecked.items():
        names.setdefault(why, []).append(name)
    for why, fields in names.items():
        say(f"  not checked: {', '.join(fields)} ({why})")


def _value(value: float, shown: str) -> str:
    """An objective as shown; a time of completion is nan where no job was completed."""
    return "none completed" if math.isnan(value) else shown


def _intervals(values: Sequence[Estimate]) -> list[str]:
    """Means with their intervals, as one column."""
    shown = same_decimals([value.mean for value in values], [value.half for value in values])
    means, halves = shown[: len(values)], shown[len(values) :]
    return [f"{mean} ± {half}" if half else mean for mean, half in zip(means, halves, strict=True)]


def _ratio(value: Estimate) -> str:
    return f"{value.mean:.4f}" + (f" ± {value.half:.4f}" if value.n > 1 else "")


def comparison(result: Comparison, *, as_json: bool, saved: Path | None, added: Sequence[str] = ()) -> None:
    """Several policies side by side; added: those that nobody named, but that their system always shows."""
    groups = group(result.runs)
    if as_json:
        runs = [as_object(run, scenario if result.bounded else None) for scenario, run in result.pairs]
        print_json({"runs": runs, "summary": [_summary(g) for g in groups]})
        return
    objective = groups[0].objective
    shown = [
        m
        for m in FIRST
        if m != objective and any(run.metrics.get(m) for run in result.runs) and not is_idle(m, result.runs)
    ]
    has_bound = any(run.bound is not None or bounds.served_of(run) is not None for run in result.runs)
    head = [
        "policy",
        f"{objective} ({SENSE[objective]})",
        *(["ratio to bound"] if has_bound else []),
        *shown,
        "s",
    ]
    table = table_of(result.scenarios[0].name, *head)
    best = next((g for g in ranked(groups)[:1] if not math.isnan(g.value.mean)), None)
    values = _intervals([g.value for g in groups])
    metrics = zip(*(_intervals([g.metric(m) for g in groups]) for m in shown), strict=True)
    for g, value, others in zip(groups, values, metrics if shown else [()] * len(groups), strict=True):
        cells = [_value(g.value.mean, value), *([_ratios(g)] if has_bound else []), *others]
        seconds = [r.timings.total for r in g.runs if r.timings]
        cells.append(f"{sum(seconds) / max(1, len(seconds)):.2f}")
        table.add_row(g.label, *cells, style="bold" if g is best else None)
    console = open_console()
    console.print(table)
    if result.bounded:
        for line in bounds.comparison_notes(result.pairs, groups):
            console.print(line, markup=False, highlight=False)
    elif lost := bounds.not_served(result.pairs, groups):
        console.print(f"{lost} {bounds.APART}", markup=False, highlight=False)
    _costs_by_tenant(console, {f"{g.label}, USD": g.runs for g in groups})
    _sold_nothing(console, result, groups)
    if added:
        say(f"always shown beside policies of this system: {', '.join(added)}")
    if saved is not None:
        say(f"{'report' if saved.suffix in PAGES else 'table'}: {saved}")


def _sold_nothing(console: Console, result: Comparison, groups: Sequence[Group]) -> None:
    """Say of each policy that served no job in any run why, where its system can say so."""
    scenario_of = {id(run): scenario for scenario, run in result.pairs}
    for g in groups:
        if any(run.metrics.get("jobs_accepted", 0.0) for run in g.runs):
            continue
        for sentence in remarks(scenario_of[id(g.first)], g.first)[:1]:
            console.print(f"{g.label}: {sentence}", markup=False, highlight=False)


def optimum(found: Optimum, scenario: Scenario, *, as_json: bool, saved: Path | None) -> None:
    """What an offline solver found, and whether no run can be better."""
    value = None if found.run is None else found.run.value
    if as_json:
        plain = {
            "objective": scenario.setup.objective,
            "value": value,
            "bound": found.bound,
            "gap": found.gap,
        }
        print_json({**plain, "proven": found.proven})
        return
    name = f"{scenario.setup.objective} ({SENSE[scenario.setup.objective]})"
    if value is None:
        say(f"{name}: {why_none(scenario)}; `compare --bound` shows how near policies come")
    else:
        say(f"{name}: {value:,.10g}{' (saved: ' + str(saved) + ')' if saved else ''}")
    say("certified bound: " + ("none" if found.bound is None else f"{found.bound:,.10g}"))
    if found.proven:
        say("proven: no run can be better")
    elif found.gap is not None:
        say(f"not proven: the gap is {100 * found.gap:.3g}%; --effort searches longer")


def _ratios(g: Group) -> str:
    """Ratio to bound over the seeds that served all jobs; marked *: ratio to the bound of the served jobs."""
    part = estimate([served.ratio for run in g.runs if (served := bounds.served_of(run))])
    shown = [*([_ratio(g.ratio)] if g.ratio.n else []), *([f"{_ratio(part)} *"] if part.n else [])]
    return ", ".join(shown) or "–"


def _summary(g: Group) -> dict[str, Any]:
    names: list[str] = list(g.first.metrics)
    values: Mapping[str, Estimate] = {name: g.metric(name) for name in names}
    return {
        "policy": g.label,
        "seeds": [r.seed for r in g.runs],
        "objective": {"name": g.objective, **_estimate(g.value)},
        "ratio": _estimate(g.ratio) if g.ratio.n else None,
        "metrics": {name: _estimate(value) for name, value in values.items()},
    }


def _estimate(value: Estimate) -> dict[str, float | None]:
    half = value.half if math.isfinite(value.half) else None
    return {
        "mean": value.mean if math.isfinite(value.mean) else None,
        "low95": None if half is None else value.mean - half,
        "high95": None if half is None else value.mean + half,
    }


def replay(result: Run, again: Run, still_there: Sequence[str], *, as_json: bool) -> None:
    """A replayed journal beside the books of its run file."""
    same = dict(again.metrics) == dict(result.metrics)
    if as_json:
        print_json({"same": same, "metrics": dict(again.metrics), "jobs_left": list(still_there)})
        return
    count = len(result.tables["events"]["at_us"])
    say(
        f"replayed {count} events; {len(still_there)} jobs left; the books are {'the same' if same else 'DIFFERENT'}"
    )
    for name in again.metrics:
        if again.metrics[name] != result.metrics.get(name):
            say(f"  {name}: {result.metrics.get(name)} in the file, {again.metrics[name]} by the journal")


def reproduction(results: Sequence[Result], out: Path, *, as_json: bool) -> None:
    """Verdicts, one line per figure."""
    if as_json:
        print_json(
            [
                {
                    "system": r.system,
                    "figure": r.figure.name,
                    "verdict": r.word,
                    "ours": r.verdict.ours,
                    "summary": r.error or r.verdict.summary,
                    "claims": [
                        {k: v for k, v in c.items() if k not in ("system", "figure")} for c in r.verdicts()
                    ],
                    "rows": [dict(row) for row in r.rows],
                }
                for r in results
            ]
        )
        return
    table = RichTable("system", "figure", "the paper's algorithm", "ours", "claims")
    for r in results:
        word = "FAILED" if r.failed else r.word
        table.add_row(r.system, r.figure.title, word, r.verdict.ours, r.short())
    open_console().print(table)
    for r in results:
        for line in r.unjudged():
            say(f"{r.system}/{r.figure.name}: {line}")
    say(f"page: {out / 'index.html'}")


def explanation(found: Explained, *, as_json: bool) -> None:
    """Why a job is where it is, what it was offered, or what it was charged."""
    if as_json:
        print_json(found.as_json())
    else:
        say("\n".join(found.lines))


def rank_lists(found: Sequence[RankList], form: str, *, as_json: bool) -> None:
    """Rings as hosts in rank order."""
    if form not in ("table", "hostfile", "rankfile"):
        raise InputError(f"found {form!r}; allowed are table, hostfile, rankfile", where="--form")
    if form != "table" and len(found) != 1:
        raise InputError(
            f"a {form} describes one ring, and {len(found)} run in the slot; choose one with --job"
        )
    if as_json:
        print_json([each.as_json() for each in found])
    elif form == "table":
        table = table_of("", "job", "ranks", "iteration, s", "narrowest link", "Gbit/s")
        for each in found:
            narrow = (each.bottleneck, number(each.bottleneck_bps / 1e9)) if each.bottleneck else ("–", "–")
            hosts = " ".join(each.hosts)
            table.add_row(each.job, hosts, number(each.iteration_us / 1e6), *narrow)
        open_console().print(table)
    else:
        print(found[0].hostfile() if form == "hostfile" else found[0].rankfile(), end="")
