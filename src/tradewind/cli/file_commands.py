"""Commands that read run files: audit, report, replay, explain, ranks; and the schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import (
    ItsScenario,
    Json,
    RunFile,
    ScenarioArg,
    Seed,
    must_be_page,
    run_with_scenario,
    scenario_from,
)
from tradewind.cli.terminal import say
from tradewind.model.errors import InputError

commands = typer.Typer()
Key = Annotated[Path, typer.Option("--key", help="File with the key: 32 random bytes or more, mode 600.")]


@commands.command()
def audit(
    scenario: ScenarioArg,
    run_file: RunFile,
    seed: Seed = 0,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Run the policy again and compare everything.")
    ] = False,
    bound: Annotated[
        bool, typer.Option("--bound", help="Compute the bound again, where the run has one.")
    ] = False,
    bills: Annotated[bool, typer.Option("--bills", help="Compute the tenants' bills again.")] = False,
    policy: Annotated[
        str, typer.Option("--policy", help="FILE.py:NAME of the policy, where it is not registered.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Check a run file from scratch, and say what was not checked; exit code 1 on a violation."""
    from tradewind import api
    from tradewind.cli import show

    data, result = scenario_from(scenario, seed), api.load_run(run_file)
    found = api.audit(data, result, policy, rerun=rerun, bound=bound, bills=bills)
    show.audit(found, as_json=as_json)
    if found.violations:
        raise typer.Exit(1)


@commands.command()
def sign(run_file: RunFile, key: Key) -> None:
    """Sign a run file with a key that is shared by those who verify it; writes RUN.sig.json."""
    from tradewind.files.signature import sign as make

    say(make(run_file, key))


@commands.command()
def verify(run_file: RunFile, key: Key) -> None:
    """Check that a run file is as it was signed; exit code 1 if it is not."""
    from tradewind.files.signature import is_signed

    if not is_signed(run_file, key):
        say(f"{run_file}: changed after it was signed, or signed with another key")
        raise typer.Exit(1)
    say(f"{run_file}: as it was signed")


@commands.command(name="report")
def report_command(
    run_files: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run files of one scenario.")],
    output: Annotated[Path, typer.Option("-o", "--output", writable=True, help="HTML file to write.")],
    scenario: ItsScenario = "",
    seed: Seed = 0,
) -> None:
    """Write the report of existing run files; nothing is run again."""
    from tradewind.model.hash import scenario_hash
    from tradewind.report import page as report

    must_be_page(output)
    found = [run_with_scenario(path, scenario, seed) for path in run_files]
    for path, (whole, one) in zip(run_files, found, strict=True):
        if scenario_hash(whole) != one.scenario_hash:
            raise InputError(
                f"it is not a run of {scenario}; name the scenario that was run", where=str(path)
            )
    first = found[0][0]
    for path, (whole, _) in zip(run_files, found, strict=True):
        ours, others = whole.setup, first.setup
        if (ours.objective, ours.resources) != (others.objective, others.resources):
            raise InputError(
                f"it is a run of {whole.name!r} ({ours.objective}), and {run_files[0]} of {first.name!r} "
                f"({others.objective}); a report is about runs of one scenario, or of what a workload made with several "
                "seeds. Write one for each",
                where=str(path),
            )
    given: dict[tuple[object, ...], Path] = {}
    for path, (_, one) in zip(run_files, found, strict=True):
        key = (one.policy, repr(sorted(one.params.items())), one.seed, one.scenario_hash)
        if one.world == "simulated" and key in given:
            raise InputError(
                f"it has the policy, parameters and seed of {given[key]}; in a report they would look like two seeds. "
                "Leave one out, or give the policies different names",
                where=str(path),
            )
        given[key] = path
    report.write(output, [whole for whole, _ in found], [one for _, one in found])
    say(output)


@commands.command()
def replay(
    run_file: RunFile,
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Rebuild the final state from the journal of a run file and compare the metrics."""
    from tradewind import api
    from tradewind.cli import show

    data, result = run_with_scenario(run_file, scenario, seed)
    ledger, again = api.replay(data, result)
    show.replay(result, again, sorted(data.jobs[j].id for j in ledger.active), as_json=as_json)
    if dict(again.metrics) != dict(result.metrics):
        raise typer.Exit(1)


@commands.command()
def explain(
    run_file: RunFile,
    job: Annotated[str, typer.Option("--job", help="Id of a job.")],
    slot: Annotated[
        int, typer.Option("--slot", min=-1, help="Number of a slot; -1 shows the whole life of the job.")
    ] = -1,
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Show the life of a job (offers, where it ran, what it cost), or explain its placement in a slot."""
    from tradewind import api
    from tradewind.cli import show

    data, result = run_with_scenario(run_file, scenario, seed)
    show.explanation(api.explain(data, result, job, slot), as_json=as_json)


@commands.command(name="show")
def show_command(
    run_file: RunFile,
    job: Annotated[str, typer.Option("--job", help="Id of a job; default: all jobs.")] = "",
    slot: Annotated[int, typer.Option("--slot", min=-1, help="Number of a slot; -1: all slots.")] = -1,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", writable=True, help="CSV file to write, one row per job, time and node."
        ),
    ] = None,
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Show what ran where and when, what moved for it and what it cost, as a table, CSV or JSON.

    The id of a job instead of a file shows that job of a running service, as `tradewind job` does.
    """
    if not run_file.suffix and not run_file.exists():
        from tradewind.cli.service_commands import one

        one(str(run_file), as_json=as_json)
        return
    from tradewind.cli import show_placements
    from tradewind.engine.menu import check_slot, job_index
    from tradewind.report.placements import placements

    data, result = run_with_scenario(run_file, scenario, seed)
    rows = placements(data, result, job_index(data, job) if job else None)
    if slot >= 0:
        check_slot(data, slot)
        first, last = slot * data.setup.slot_us, (slot + 1) * data.setup.slot_us
        rows = [row for row in rows if row.from_us < last and row.until_us > first]
    if output is not None:
        show_placements.write(output, data, result, rows)
    else:
        show_placements.table(data, result, rows, whole=not job and slot < 0, as_json=as_json)


@commands.command()
def ranks(
    run_file: RunFile,
    slot: Annotated[int, typer.Option("--slot", min=0, help="Number of a slot.")],
    job: Annotated[str, typer.Option("--job", help="Id of a job; default: all running jobs.")] = "",
    form: Annotated[
        str, typer.Option("--form", help="table; or hostfile or rankfile, for one job.")
    ] = "table",
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """List the rings of a slot in rank order, with time and bottleneck link, or as host or rank files."""
    from tradewind.cli import show
    from tradewind.systems.gadget.ranks import ranks_in

    data, result = run_with_scenario(run_file, scenario, seed)
    show.rank_lists(ranks_in(data, result, slot, job), form, as_json=as_json)


@commands.command()
def schema(which: Annotated[str, typer.Argument(help="scenario or run")]) -> None:
    """Print the JSON Schema of a file format."""
    from tradewind.files.schemas import schema as make

    print(json.dumps(make(which), indent=2))
