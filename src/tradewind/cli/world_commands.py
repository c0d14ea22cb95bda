"""Commands for real machines and networks: live, inventory, manifests, plan-wan."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import (
    Isolate,
    ItsScenario,
    Json,
    Out,
    RunFile,
    ScenarioArg,
    Seed,
    Set,
    options_of,
    pairs,
    run_with_scenario,
    scenario_from,
)

commands = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveArguments:
    """Arguments of `live`."""

    scenario: ScenarioArg
    policy: Annotated[str, typer.Option("--policy", help="Name of a policy; see `tradewind policies`.")]
    slot_seconds: Annotated[
        float,
        typer.Option("--slot-seconds", min=0, help="Wall-clock seconds per slot; 0: as in the scenario."),
    ] = 0.0
    speed: Annotated[
        float, typer.Option("--speed", min=1e-6, help="Factor by which slots pass faster than that.")
    ] = 1.0
    data_scale: Annotated[
        float, typer.Option("--data-scale", help="Bytes of files per byte of data in the scenario.")
    ] = 1.0
    seed: Seed = 0
    settings: Set = None
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            help="Directory of store, logs and checkpoints; an unfinished run in it is continued.",
        ),
    ] = None
    store: Annotated[
        str,
        typer.Option(
            "--store", help="Where to keep the run: postgresql://…, or a file; default: store.db in --state."
        ),
    ] = ""
    output: Out = None
    report: Annotated[
        Path | None, typer.Option("--report", writable=True, help="Where to write the report (.html).")
    ] = None
    places: Annotated[
        Path | None,
        typer.Option("--places", help="File with the network of each site: namespace, address, interface."),
    ] = None
    testbed: Annotated[
        str, typer.Option("--testbed", help="Run sites in the namespaces of this testbed (root).")
    ] = ""
    first_uid: Annotated[
        int,
        typer.Option("--first-uid", min=0, help="Run job i as user FIRST_UID + i (root); 0: from 61184 on."),
    ] = 0
    as_root: Annotated[
        bool, typer.Option("--as-root", help="Run jobs as root if this is root, instead of as other users.")
    ] = False
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Limit per rank: memory_bytes=2GB, open_files, … (docs/jobs.md).",
        ),
    ] = None
    grace: Annotated[float, typer.Option("--grace", min=0, help="Seconds between SIGTERM and SIGKILL.")] = (
        10.0
    )
    retries: Annotated[
        int,
        typer.Option(
            "--retries",
            min=0,
            help="Failures in a row without progress before a job is given up; with progress, 5 x (N + 1) within an hour.",
        ),
    ] = 3
    stall: Annotated[
        float,
        typer.Option(
            "--stall",
            min=0,
            help="Restart a job that has reported and is then silent for this many seconds; 0: never.",
        ),
    ] = 300.0
    isolate: Isolate = False
    fleet: Annotated[
        str,
        typer.Option(
            "--fleet",
            help="Where ranks run: processes (of this machine), slurm, ray://HOST:PORT or kubernetes[:CONTEXT].",
        ),
    ] = "processes"
    sites: Annotated[
        Path | None,
        typer.Option(
            "--sites", help="File with the machines of each node, where names and labels do not say."
        ),
    ] = None
    as_json: Json = False


@commands.command()
@options_of(LiveArguments)
def live(given: LiveArguments) -> None:
    """Run the commands of a scenario's jobs as processes, in real time, as a policy decides."""
    from tradewind.cli import live as live_command

    rank_options = live_command.RankOptions(
        limits=pairs(given.limit), places=given.places, testbed=given.testbed, first_uid=given.first_uid,
        as_root=given.as_root, grace_s=given.grace, retries=given.retries, stall_s=given.stall,
    )  # fmt: skip
    run_options = live_command.LiveOptions(
        policy=given.policy, params=pairs(given.settings), seed=given.seed, slot_seconds=given.slot_seconds,
        speed=given.speed, data_scale=given.data_scale, state=given.state,
        store=given.store, output=given.output, report=given.report,
        as_json=given.as_json, isolate=given.isolate, fleet=given.fleet, sites=given.sites,
    )  # fmt: skip
    if code := live_command.command(scenario_from(given.scenario, given.seed), run_options, rank_options):
        raise typer.Exit(code)


@commands.command()
def inventory(
    fleet: Annotated[
        str, typer.Option("--fleet", help="The cluster: slurm, ray://HOST:PORT or kubernetes[:CONTEXT].")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", writable=True, help="Where to write a scenario with these nodes (.yaml)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the machines of a cluster as the nodes of a scenario."""
    from tradewind.cli import inventory as inventory_command

    inventory_command.command(fleet, output, as_json)


@commands.command()
def manifests(
    run_file: RunFile,
    slot: Annotated[int, typer.Option("--slot", min=0, help="Number of a slot.")],
    state: Annotated[
        Path, typer.Option("--state", help="The directory of the run that the machines share.")
    ] = Path("/shared/run"),
    sites: Annotated[
        Path | None, typer.Option("--sites", help="File with the machines of each node.")
    ] = None,
    scenario: ItsScenario = "",
    seed: Seed = 0,
) -> None:
    """Print the pods that Kubernetes would be given for a slot of a run, as YAML."""
    from tradewind.cli import manifests as manifests_command
    from tradewind.cli.live import read_sites

    data, result = run_with_scenario(run_file, scenario, seed)
    manifests_command.command(data, result, slot, state, read_sites(sites))


@commands.command()
def scheduler(
    policy: Annotated[
        str, typer.Option("--policy", help="Policy for jobs of fixed length.")
    ] = "fifo-backfill",
    context: Annotated[str, typer.Option("--context", help="A context of KUBECONFIG.")] = "",
) -> None:
    """Bind pods of Kubernetes with schedulerName: tradewind, gang by gang, as a policy decides."""
    from tradewind.cli import scheduler as scheduler_command
    from tradewind.worlds.fleets.kubernetes import open_scheduler

    scheduler_command.command(open_scheduler(context), policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """Arguments of `plan-wan`: the fields of PlanRequest, and what becomes of the plan."""

    topology: Annotated[
        str, typer.Argument(help="b4, internet2, or a .graphml, .gml, .json or region-pair .csv file.")
    ] = ""
    model: Annotated[str, typer.Option("--model", help="resnet50, resnet152, alexnet, vgg, or a size.")] = (
        "resnet50"
    )
    workers: Annotated[
        str, typer.Option("--workers", help="Worker sites, separated by commas; default: all.")
    ] = ""
    data: Annotated[
        str,
        typer.Option(
            "--data", help="What sites exchange where not the model: SITE=MB,… or a .csv or .json file."
        ),
    ] = ""
    usd_per_gb: Annotated[
        float | None, typer.Option("--default-usd-per-gb", help="Price of links that have none.")
    ] = None
    transport: Annotated[
        str, typer.Option("--transport", help="store-and-forward, cut-through or chunks:K.")
    ] = "store-and-forward"
    rule: Annotated[
        str, typer.Option("--rule", help="Bandwidth by distance: auto, power, linear, inverse, …")
    ] = "auto"
    min_mbps: Annotated[
        int, typer.Option("--min-mbps", min=1, help="Smallest bandwidth of a drawn link.")
    ] = 500
    shared: Annotated[
        bool, typer.Option("--shared", help="Both directions of a link share its bandwidth.")
    ] = False
    seed: Seed = 0
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Picture of the network (stem).")] = (
        None
    )
    as_json: Json = False


@commands.command(name="plan-wan")
@options_of(PlanArguments)
def plan_wan(given: PlanArguments) -> None:
    """Choose a parameter server's site in a WAN and a route per worker site, with a certified bound."""
    from tradewind.cli.plan_wan import run
    from tradewind.systems.apsp.plan.request import PlanRequest

    asked = {field.name: getattr(given, field.name) for field in fields(given)}
    as_json, output = asked.pop("as_json"), asked.pop("output")
    run(PlanRequest(**asked), as_json=as_json, output=output)
