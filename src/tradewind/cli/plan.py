"""`tradewind plan`: where, on what, with how many GPUs and when jobs run at the lowest bill."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tradewind.cli.options import Json, must_be_page, options_of, time_us
from tradewind.cli.prices import ContractFile, EgressFile, Prices
from tradewind.cli.wan import WanFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tradewind.planner.plan import Plan, Planned

commands = typer.Typer()
SHOWN_OPTIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJobsArguments:
    """Arguments of `plan`."""

    jobs: Annotated[Path, typer.Argument(metavar="JOBS", help="Jobs (.yaml or .json); docs/plan.md.")]
    prices: Prices = "catalogue"
    egress: EgressFile = "catalogue"
    contract: ContractFile = ""
    wan: WanFile = "catalogue"
    by: Annotated[str, typer.Option("--by", metavar="TIME", help="Deadline of all jobs: 36 h, 2 d.")] = ""
    budget: Annotated[
        float | None, typer.Option("--budget", min=0, help="USD that all jobs together may cost.")
    ] = None
    spot: Annotated[
        str,
        typer.Option(
            "--spot",
            metavar="N:RATE",
            help="All jobs may use spot: machines per offer, interruptions per hour.",
        ),
    ] = ""
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if", metavar="NAME=VALUE", help="Bill under by=1 d, spot=4:0.05, spot=none, regions=eu."
        ),
    ] = None
    on_demand: Annotated[bool, typer.Option("--on-demand", help="No spot machines.")] = False
    explain: Annotated[str, typer.Option("--explain", metavar="JOB", help="Explain the plan of a job.")] = ""
    scenario: Annotated[
        Path | None,
        typer.Option("--scenario", writable=True, help="Where to write the jobs and offers as a scenario."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", writable=True, help="Where to write the plan as a run file."),
    ] = None
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", writable=True, help="Where to write a page with map, timeline and costs (.html)."
        ),
    ] = None
    as_json: Json = False


@commands.command()
@options_of(PlanJobsArguments)
def plan(given: PlanJobsArguments) -> None:
    """Plan jobs at the lowest bill: regions, machines, numbers of GPUs, times; with what the next best would cost."""
    from tradewind.cli.prices import load as load_list
    from tradewind.cli.terminal import print_json, say
    from tradewind.files.atomic import write_text
    from tradewind.files.jobs_file import load_jobs
    from tradewind.files.price_files import load_wan
    from tradewind.files.run_file import save
    from tradewind.files.scenario_file import dump
    from tradewind.model.errors import InputError
    from tradewind.planner.plan import Overrides, make
    from tradewind.planner.what_if import what_if, with_spot

    if given.page is not None:
        must_be_page(given.page, "--page")
    if given.spot and given.on_demand:
        raise InputError("--spot and --on-demand contradict each other; leave one of them out")
    file, profiles = load_jobs(given.jobs)
    if given.spot:
        file = with_spot(file, given.spot, "--spot")
    overrides = Overrides(
        until_us=time_us(given.by, "--by") if given.by else None,
        spot=not given.on_demand,
        budget_usd=given.budget,
    )
    prices = load_list(given.prices, given.egress, given.contract)
    found = make(file, profiles, prices, load_wan(given.wan), overrides)
    others = tuple(what_if(file, profiles, found, overrides, text) for text in given.what_if or ())
    found = replace(found, compared=(*found.compared, *others))
    if given.scenario is not None:
        dump(found.scenario, given.scenario)
    if given.output is not None:
        save(found.run, given.output)
    if given.page is not None:
        from tradewind.planner.page import html

        write_text(given.page, html(found))
    if given.as_json:
        print_json(found.as_json())
    elif given.explain:
        _explain(found, found.of(given.explain))
    else:
        _show(found)
    for what, path in (("scenario", given.scenario), ("run", given.output), ("page", given.page)):
        if path is not None and not given.as_json:
            say(f"{what}: {path}")


def _show(found: Plan) -> None:
    from tradewind.cli.show import table_of
    from tradewind.cli.terminal import open_console, say

    table = table_of("", "job", "region", "machines", "start", "finish", "slack", "moved", "USD", "next best")
    for row in found.jobs:
        table.add_row(
            row.id, row.region, row.what, hours(row.start_h), hours(row.finish_h), hours(row.slack_h), row.moved,
            f"{row.usd:,.2f}", row.next_best,
        )  # fmt: skip
    open_console().print(table)
    late = f" and {found.late_usd:,.2f} USD lost by delays" if found.late_usd else ""
    say(
        f"total {found.usd:,.2f} USD{late}; certified: no plan that serves all jobs costs less than "
        f"{found.least_usd:,.2f} USD"
    )
    say(f"gap: at most {found.gap_percent:.2f}%")
    for line in (found.by_tenant, *found.compared):
        if line:
            say(line)
    _footer(found, found.jobs)


def _footer(found: Plan, rows: Sequence[Planned]) -> None:
    from tradewind.cli.terminal import say

    for row in rows:
        if row.assumed:
            say(f"assumed for {row.id}: {'; '.join(row.assumed)}")
    for note in found.notes:
        say(note)
    prices, wan = found.prices, found.wan
    say(f"prices: {prices.name} of {prices.date}, hash {prices.hash[:12]}")
    say(f"bandwidth: {wan.name} of {wan.date}, hash {wan.hash[:12]}")


def _explain(found: Plan, row: Planned) -> None:
    from tradewind.cli.show import table_of
    from tradewind.cli.terminal import open_console, say

    say(f"{row.id}: {row.what} in {row.region} for {row.usd:,.2f} USD")
    say(f"done after {hours(row.finish_h)}; the deadline is after {hours(row.until_h)}")
    say(f"{row.work}; {len(row.options)} options, {row.fitting} of which keep deadline and budget")
    for title, options in (("cheapest", row.options[:SHOWN_OPTIONS]), ("cost against finish", row.front)):
        misses = [each.why_not for each in options]
        heads = ("machines", "region", "start", "finish", "rent USD", "egress USD", "USD")
        table = table_of(title, *heads, *(["misses"] if any(misses) else []))
        for each in options:
            table.add_row(
                each.what, each.region, hours(each.start_h), hours(each.finish_h), f"{each.rent_usd:,.2f}",
                f"{each.egress_usd:,.2f}", f"{each.usd:,.2f}", *([each.why_not] if any(misses) else []),
            )  # fmt: skip
        open_console().print(table)
    _footer(found, (row,))


def hours(value: float) -> str:
    """Hours, or days and hours, or minutes or seconds."""
    if 0 < abs(value) < 2 / 60:
        return f"{value * 3600:.0f} s"
    if 0 < abs(value) < 1:
        return f"{value * 60:.0f} min"
    if abs(value) < 48:
        return f"{value:.1f} h"
    days, rest = divmod(round(value), 24)
    return f"{days} d {rest} h"
