"""`tradewind whatif`: another policy on what happened, side by side with what the recorded one made of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tradewind.cli.options import (
    From,
    ItsScenario,
    Jobs,
    Json,
    On,
    Set,
    To,
    is_store,
    options_of,
    pairs,
    run_with_scenario,
    time_us,
)
from tradewind.cli.terminal import open_console, print_json
from tradewind.model.errors import InputError

if TYPE_CHECKING:
    from tradewind.api import WhatIf
    from tradewind.worlds.period import Period

commands = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfArguments:
    """Arguments of `whatif`."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="[STORE|RUN]",
            help="A store (store.db, its directory, postgresql://…) or a run file; without it, a service is asked.",
        ),
    ] = ""
    policy: Annotated[
        str, typer.Option("--policy", help="The other policy (see `tradewind policies`), or FILE.py:NAME.")
    ] = ""
    settings: Set = None
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=2**53, help="Seed of the other policy; default: the run's."),
    ] = None
    since: From = ""
    until: To = ""
    scenario: ItsScenario = ""
    most: Annotated[int, typer.Option("--most", min=0, help="How many jobs to show.")] = 5
    jobs: Jobs = 0
    on: On = ""
    as_json: Json = False


@commands.command()
@options_of(WhatIfArguments)
def whatif(given: WhatIfArguments) -> None:
    """Re-run what happened under another policy; show both side by side, and why the largest differences."""
    if not given.policy:
        raise InputError("name the other policy: --policy NAME (tradewind policies)")
    if not given.source:
        from tradewind.cli.service_operate import whatif_of_service

        period = f"{given.since}..{given.until}" if given.since or given.until else None
        whatif_of_service(given.policy, given.settings, period, given.as_json)
        return
    from tradewind import api
    from tradewind.registry import policies
    from tradewind.tasks.pool import Where

    spec = policies.get(given.policy)
    part = _period(given)
    found = api.whatif(
        part.scenario,
        part.run,
        spec,
        params=pairs(given.settings),
        seed=given.seed,
        most=given.most,
        where=Where(given.jobs, given.on),
    )
    _show(replace(found, notes=(*part.notes, *found.notes)), as_json=given.as_json)


def _period(given: WhatIfArguments) -> Period:
    """The period that is asked for, of a store or of a run file."""
    from tradewind import api
    from tradewind.worlds.period import Period, cut

    from_us = time_us(given.since, "--from") if given.since else 0
    to_us = time_us(given.until, "--to") if given.until else None
    if is_store(given.source):
        return api.period(given.source, from_us, to_us)
    scenario, recorded = run_with_scenario(Path(given.source), given.scenario, given.seed or 0)
    if not given.since and not given.until:
        return Period(scenario, recorded, ())
    return cut(scenario, recorded, from_us, scenario.setup.horizon_us if to_us is None else to_us)


def _show(found: WhatIf, *, as_json: bool) -> None:
    from tradewind.cli import show
    from tradewind.model.setup import SENSE
    from tradewind.report.summary import is_idle, measured

    if as_json:
        print_json(
            {
                "runs": [show.as_object(run) for run in found.runs],
                "difference": found.difference.as_json(),
                "notes": list(found.notes),
            }
        )
        return
    console = open_console()
    table = show.table_of(found.scenario.name, "metric", *found.names, "difference")
    first, last = found.recorded, found.other
    objective = first.objective
    names = [objective, *(name for name in first.metrics if name != objective)]
    names += [name for name in last.metrics if name not in first.metrics]
    for name in names:
        if name != objective and is_idle(name, found.runs):
            continue
        values = [measured(run, name) if name in run.metrics else 0.0 for run in found.runs]
        if any(value and not math.isnan(value) for value in values):
            label = f"{name} ({SENSE[objective]})" if name == objective else name
            change = _change(values[0], values[-1])
            table.add_row(
                label, *map(show.number, values), change, style="bold" if name == objective else None
            )
    console.print(table)
    for note in found.notes:
        console.print(note, markup=False, highlight=False)
    _show_jobs(found)


def _change(before: float, after: float) -> str:
    from tradewind.cli.show import number

    if math.isnan(before) or math.isnan(after):
        return number(math.nan)
    part = f" ({(after - before) / abs(before):+.1%})" if before else ""
    return f"{'+' if after > before else ''}{number(after - before)}{part}" if after != before else "0"


def _show_jobs(found: WhatIf) -> None:
    """The jobs that differ most, with the reasons."""
    from tradewind.cli import show

    console, what = open_console(), found.difference
    if not what.jobs:
        console.print("no job does differently")
        return
    unit = {"completion": "s", "time of a round": "s", "utility": ""}.get(what.of, "USD")
    console.print(
        f"{what.jobs} jobs differ in {what.of}; the largest differences, {found.names[-1]} against {found.names[0]}:"
    )
    for each in what.largest:
        head = f"  {each.job}: {'+' if each.score > 0 else ''}{show.number(each.score)} {unit}".rstrip()
        console.print(f"{head}: {'; '.join(each.reasons)}", markup=False, highlight=False)
