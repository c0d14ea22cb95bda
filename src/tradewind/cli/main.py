"""The command line: results on stdout, progress on stderr, exit code 2 on a user's mistake, never a traceback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli import author, catalogue, file_commands, lab_commands, run_commands
from tradewind.cli.guard import guarded
from tradewind.cli.options import Json, Out, ScenarioArg, Seed, Set, pairs, scenario_from
from tradewind.cli.testbed import commands as testbed_commands
from tradewind.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Places, scales, routes and prices distributed machine-learning training.",
)
for group in (run_commands, file_commands, catalogue, author, lab_commands):
    app.add_typer(group.commands)
app.add_typer(testbed_commands, name="testbed")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Places, scales, routes and prices distributed machine-learning training."""


@app.command()
def live(  # one parameter per option: typer builds the command line from this signature
    scenario: ScenarioArg,
    policy: Annotated[str, typer.Option("--policy", help="Name of a policy; see `tradewind policies`.")],
    slot_seconds: Annotated[
        float,
        typer.Option("--slot-seconds", min=0, help="Wall-clock seconds per slot; 0: as in the scenario."),
    ] = 0.0,
    speed: Annotated[
        float, typer.Option("--speed", min=1e-6, help="Factor by which slots pass faster than that.")
    ] = 1.0,
    seed: Seed = 0,
    settings: Set = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            help="Directory of journal, logs and checkpoints; an unfinished run in it is continued.",
        ),
    ] = None,
    output: Out = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Where to write the report (.html).")
    ] = None,
    places: Annotated[
        Path | None,
        typer.Option("--places", help="File with the network of each site: namespace, address, interface."),
    ] = None,
    testbed: Annotated[
        str, typer.Option("--testbed", help="Run sites in the namespaces of this testbed (root).")
    ] = "",
    first_uid: Annotated[
        int, typer.Option("--first-uid", min=0, help="Run job i as user FIRST_UID + i (root).")
    ] = 0,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Limit per rank: memory_bytes=2GB, open_files, … (docs/jobs.md).",
        ),
    ] = None,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="Seconds between SIGTERM and SIGKILL.")
    ] = 10.0,
    retries: Annotated[
        int,
        typer.Option(
            "--retries", min=0, help="Consecutive failures without progress before a job is given up."
        ),
    ] = 3,
    stall: Annotated[
        float,
        typer.Option(
            "--stall",
            min=0,
            help="Restart a job that has reported and is then silent for this many seconds; 0: never.",
        ),
    ] = 300.0,
    as_json: Json = False,
) -> None:
    """Runs the commands of a scenario's jobs as processes, in real time, as a policy decides."""
    from tradewind.cli import live as live_command

    rank_options = live_command.RankOptions(
        limits=pairs(limit), places=places, testbed=testbed, first_uid=first_uid, grace_s=grace, retries=retries,
        stall_s=stall,
    )  # fmt: skip
    run_options = live_command.LiveOptions(
        policy=policy, params=pairs(settings), seed=seed, slot_seconds=slot_seconds, speed=speed, state=state,
        output=output, report=report, as_json=as_json,
    )  # fmt: skip
    if live_command.command(scenario_from(scenario, seed), run_options, rank_options):
        raise typer.Exit(1)


@app.command(name="plan-wan")
def plan_wan(
    topology: Annotated[
        str, typer.Argument(help="b4, internet2, or a .graphml, .gml, .json or region-pair .csv file.")
    ] = "",
    model: Annotated[
        str, typer.Option("--model", help="resnet50, resnet152, alexnet, vgg, or a size.")
    ] = "resnet50",
    workers: Annotated[
        str, typer.Option("--workers", help="Worker sites, separated by commas; default: all.")
    ] = "",
    data: Annotated[
        str,
        typer.Option(
            "--data", help="What sites exchange where not the model: SITE=MB,… or a .csv or .json file."
        ),
    ] = "",
    usd_per_gb: Annotated[
        float | None, typer.Option("--default-usd-per-gb", help="Price of links that have none.")
    ] = None,
    transport: Annotated[
        str, typer.Option("--transport", help="store-and-forward, cut-through or chunks:K.")
    ] = "store-and-forward",
    rule: Annotated[
        str, typer.Option("--rule", help="Bandwidth by distance: auto, power, linear, inverse, …")
    ] = "auto",
    min_mbps: Annotated[
        int, typer.Option("--min-mbps", min=1, help="Smallest bandwidth of a drawn link.")
    ] = 500,
    shared: Annotated[
        bool, typer.Option("--shared", help="Both directions of a link share its bandwidth.")
    ] = False,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Picture of the network (stem).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a parameter server's site in a WAN and a route per worker site, with a certified bound."""
    from tradewind.cli.plan_wan import run as plan
    from tradewind.systems.apsp.plan.request import PlanRequest

    request = PlanRequest(
        topology=topology, model=model, workers=workers, data=data, usd_per_gb=usd_per_gb, transport=transport,
        rule=rule, min_mbps=min_mbps, shared=shared, seed=seed,
    )  # fmt: skip
    plan(request, as_json=as_json, output=output)


@app.command(name="version")
def version_command() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    """The `tradewind` command; wrong usage is explained by typer itself (exit code 2)."""
    sys.exit(guarded(app))


if __name__ == "__main__":
    main()
