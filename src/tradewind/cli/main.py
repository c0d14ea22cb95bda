"""The command line: results on stdout, progress on stderr, exit code 2 on a user's mistake, never a traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.guard import guarded
from tradewind.cli.options import (
    PAGES,
    Bounded,
    ItsScenario,
    Json,
    Out,
    RunFile,
    ScenarioArg,
    Seed,
    Set,
    is_workload,
    must_be_page,
    pairs,
    run_with_scenario,
    scenario_from,
)
from tradewind.cli.testbed import commands as testbed_commands
from tradewind.model.errors import InputError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Places, scales, routes and prices distributed machine-learning training.",
)
app.add_typer(testbed_commands, name="testbed")


@app.command()
def policies(as_json: Json = False) -> None:
    """Lists the policies: what they decide, what they can run, their parameters."""
    from tradewind.cli import show
    from tradewind.registry import policies as catalogue

    show.policies([catalogue.find(name) for name in catalogue.names()], as_json=as_json)


@app.command()
def workloads(as_json: Json = False) -> None:
    """Lists the workloads that `generate` can make, with their parameters."""
    from tradewind.cli import show
    from tradewind.registry import workloads as catalogue

    show.workloads([catalogue.find(name) for name in catalogue.names()], as_json=as_json)


@app.command()
def generate(
    workload: Annotated[str, typer.Argument(help="Name of a workload; see `tradewind workloads`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Scenario file to write (.json or .yaml).")],
    seed: Seed = 0,
    settings: Set = None,
) -> None:
    """Makes a scenario file."""
    from tradewind.files.scenario_file import dump
    from tradewind.registry import workloads as catalogue

    scenario = catalogue.generate(workload, pairs(settings), seed)
    dump(scenario, output)
    setup = scenario.setup
    print(
        f"{output}: {len(scenario.jobs)} jobs, {len(setup.nodes)} nodes, {len(setup.links)} links, {setup.objective}"
    )


@app.command()
def run(
    scenario: ScenarioArg,
    policy: Annotated[str, typer.Option("--policy", help="Name of a policy; see `tradewind policies`.")],
    seed: Seed = 0,
    settings: Set = None,
    bound: Bounded = False,
    output: Out = None,
    as_json: Json = False,
) -> None:
    """Runs a policy on a scenario in the simulated world, audited; -o writes a run file, or a report (.html)."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.registry import policies as catalogue
    from tradewind.report import page as report
    from tradewind.report.bounds import Bounds
    from tradewind.report.progress import bar

    spec = catalogue.get(policy)
    data = scenario_from(scenario, seed)
    with bar(f"{spec.name} on {data.name}", len(data.jobs)) as tell:
        result = api.run(data, spec, seed=seed, params=pairs(settings), progress=tell)
    if bound:
        result = Bounds(data).beside(result)
    if output is not None and output.suffix in PAGES:
        report.write(output, data, [result])
    elif output is not None:
        api.save(result, output)
    show.run(result, data, as_json=as_json, saved=output, bounded=bound)


@app.command()
def live(
    scenario: ScenarioArg,
    policy: Annotated[str, typer.Option("--policy", help="Name of a policy; see `tradewind policies`.")],
    slot_seconds: Annotated[
        float,
        typer.Option("--slot-seconds", min=0, help="Seconds that a slot takes; 0: as the scenario says."),
    ] = 0.0,
    speed: Annotated[float, typer.Option("--speed", min=1e-6, help="How many times faster than that.")] = 1.0,
    seed: Seed = 0,
    settings: Set = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Directory of journal, logs and checkpoints; given again, it goes on."),
    ] = None,
    output: Out = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Where to write the report (.html).")
    ] = None,
    places: Annotated[
        Path | None, typer.Option("--places", help="Site -> network namespace, address, interface.")
    ] = None,
    testbed: Annotated[
        str, typer.Option("--testbed", help="Sites with the names of this testbed's run in it (as root).")
    ] = "",
    first_uid: Annotated[
        int, typer.Option("--first-uid", min=0, help="Job i runs as user number FIRST_UID + i (as root).")
    ] = 0,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="NAME=VALUE", help="memory_bytes=2GB, open_files, …"),
    ] = None,
    grace: Annotated[float, typer.Option("--grace", min=0, help="Seconds from SIGTERM to SIGKILL.")] = 10.0,
    retries: Annotated[int, typer.Option("--retries", min=0, help="Failures in a row without progress.")] = 3,
    stall: Annotated[float, typer.Option("--stall", min=0, help="Silent for so many seconds: hung.")] = 300.0,
    as_json: Json = False,
) -> None:
    """Runs the scenario's commands as processes, as a policy decides, by the wall clock."""
    from tradewind.cli import live as door

    options = door.Options(
        limits=pairs(limit), places=places, testbed=testbed, first_uid=first_uid, grace_s=grace, retries=retries,
        stall_s=stall,
    )  # fmt: skip
    asked = door.Asked(
        policy=policy, params=pairs(settings), seed=seed, slot_seconds=slot_seconds, speed=speed, state=state,
        output=output, report=report, as_json=as_json,
    )  # fmt: skip
    if door.command(scenario_from(scenario, seed), asked, options):
        raise typer.Exit(1)


@app.command()
def audit(
    scenario: ScenarioArg,
    run_file: RunFile,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Checks a run file again from scratch; exit code 1 on a violation."""
    from tradewind import api
    from tradewind.cli import show

    found = api.check(scenario_from(scenario, seed), api.load_run(run_file))
    show.audit(found, as_json=as_json)
    if found:
        raise typer.Exit(1)


@app.command()
def compare(
    scenario: ScenarioArg,
    policies: Annotated[str, typer.Option("--policies", help="Names, separated by commas.")],
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="How many seeds (0, 1, …).")] = 1,
    settings: Set = None,
    bound: Bounded = False,
    output: Out = None,
    as_json: Json = False,
) -> None:
    """Runs several policies side by side; a workload's name makes a new scenario for every seed."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.registry import policies as catalogue
    from tradewind.report import page as report
    from tradewind.report.progress import bar

    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names:
        raise InputError("--policies is empty; name at least one, for example --policies fifo,las")
    specs = catalogue.with_rivals(names)
    if output is not None:
        must_be_page(output)
    given = pairs(settings)
    made = is_workload(scenario)
    if given and not made:
        raise InputError("--set goes with a workload's name here; a scenario file has its parameters in it")
    data = [scenario_from(scenario, seed, given) for seed in range(seeds if made else 1)]
    scenarios = data if made else data * seeds
    with bar("comparing", len(specs) * seeds, unit="runs") as tell:
        done = 0

        def one_more(_policy: str, _seed: int) -> None:
            nonlocal done
            if tell is not None:
                tell(0, done)
            done += 1

        result = api.compare(scenarios, specs, seeds=range(seeds), bound=bound, progress=one_more)
    if output is not None:
        report.write(output, data, result.runs)
    show.comparison(result, as_json=as_json, saved=output)


@app.command(name="report")
def report_command(
    run_files: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run files of one scenario.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")],
    scenario: ItsScenario = "",
    seed: Seed = 0,
) -> None:
    """Makes the report of run files that are there already, without running anything again."""
    from tradewind.model.hash import scenario_hash
    from tradewind.report import page as report

    must_be_page(output)
    found = [run_with_scenario(path, scenario, seed) for path in run_files]
    for path, (whole, one) in zip(run_files, found, strict=True):
        if scenario_hash(whole) != one.scenario_hash:
            raise InputError(f"it is no run of {scenario}; name the scenario that was run", where=str(path))
    report.write(output, [whole for whole, _ in found], [one for _, one in found])
    print(output)


@app.command()
def replay(
    run_file: RunFile,
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Rebuilds the final state from the journal in a run file and compares the books."""
    from tradewind import api
    from tradewind.cli import show

    data, result = run_with_scenario(run_file, scenario, seed)
    ledger, again = api.replay(data, result)
    show.replay(result, again, sorted(data.jobs[j].id for j in ledger.active), as_json=as_json)
    if dict(again.metrics) != dict(result.metrics):
        raise typer.Exit(1)


@app.command()
def explain(
    run_file: RunFile,
    job: Annotated[str, typer.Option("--job", help="Id of a job.")],
    slot: Annotated[
        int, typer.Option("--slot", min=-1, help="Number of a slot; -1: the menu that the job was offered.")
    ] = -1,
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Says why a job is where it is in a slot (sites, next best, tiers), or in a market what it was offered or charged."""
    from tradewind import api
    from tradewind.cli import show

    data, result = run_with_scenario(run_file, scenario, seed)
    show.explanation(api.explain(data, result, job, slot), as_json=as_json)


@app.command()
def ranks(
    run_file: RunFile,
    slot: Annotated[int, typer.Option("--slot", min=0, help="Number of a slot.")],
    job: Annotated[str, typer.Option("--job", help="Id of a job; default: all that run.")] = "",
    form: Annotated[
        str, typer.Option("--form", help="table, or for one job hostfile or rankfile.")
    ] = "table",
    scenario: ItsScenario = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Lists the rings of a slot as hosts in rank order, with time and narrowest link, or as a launcher reads them."""
    from tradewind.cli import show
    from tradewind.systems.gadget.ranks import ranks_in

    data, result = run_with_scenario(run_file, scenario, seed)
    show.rank_lists(ranks_in(data, result, slot, job), form, as_json=as_json)


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
    """Chooses the parameter server's site and a route per worker site in a WAN, with a certified bound."""
    from tradewind.cli.plan_wan import run as plan
    from tradewind.systems.apsp.plan import Request

    request = Request(
        topology=topology, model=model, workers=workers, data=data, usd_per_gb=usd_per_gb, transport=transport,
        rule=rule, min_mbps=min_mbps, shared=shared, seed=seed,
    )  # fmt: skip
    plan(request, as_json=as_json, output=output)


@app.command()
def schema(which: Annotated[str, typer.Argument(help="scenario or run")]) -> None:
    """Prints the JSON Schema of a file format."""
    from tradewind.files.schemas import schema as make

    print(json.dumps(make(which), indent=2))


@app.command()
def reproduce(
    system: Annotated[str, typer.Argument(help="A system with a study, or all.")],
    figure: Annotated[
        str, typer.Option("--figure", help="Only this one, for example 5, fig-5 or table-4.")
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller instances and fewer seeds.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", min=0, max=1000, help="0: 3 when quick, else 10.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=64, help="Processes.")] = 1,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of CSV, pictures and index.html.")
    ] = Path("out/reproduce"),
    as_json: Json = False,
) -> None:
    """Computes the figures of the papers: the claim beside our numbers, and whether it holds."""
    from tradewind.cli import show
    from tradewind.lab.reproduce import reproduce as compute
    from tradewind.lab.study import Effort
    from tradewind.registry import studies

    systems = list(studies.names()) if system == "all" else [system]
    for name in systems:
        studies.find(name)
    name = f"fig-{figure}" if figure.isdecimal() else figure
    effort = Effort(quick=quick, seeds=seeds or (3 if quick else 10))
    results = compute(systems, output, figure=name, effort=effort, jobs=jobs)
    show.reproduction(results, output, as_json=as_json)
    if any(r.failed for r in results):
        raise typer.Exit(1)


@app.command()
def tour(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the reports.")] = Path("out"),
    pictures: Annotated[
        Path | None, typer.Option("--pictures", help="Also write the pictures of the docs into this folder.")
    ] = None,
) -> None:
    """Runs one small scenario per system: ours, the papers' algorithms and the baselines, side by side."""
    from tradewind.lab.tour import tour as run_tour

    run_tour(output, pictures)


@app.command()
def gallery(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the docs.")] = Path("docs"),
    work: Annotated[Path, typer.Option("--work", help="Folder of the reproduction.")] = Path("out/reproduce"),
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=64, help="Processes.")] = 2,
) -> None:
    """Writes the gallery of the docs from a quick reproduction of all papers."""
    from tradewind.lab.gallery import PICKED
    from tradewind.lab.gallery import gallery as write
    from tradewind.registry import studies

    print(write(work, output, [name for name in studies.names() if name in PICKED], jobs))


@app.command(name="version")
def version_command() -> None:
    """Prints the version."""
    from tradewind.version import __version__

    print(__version__)


def main() -> None:
    """The `tradewind` command; wrong usage is explained by typer itself (exit code 2)."""
    sys.exit(guarded(app))


if __name__ == "__main__":
    main()
