"""Commands that make runs: generate, run, compare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import (
    PAGES,
    Bounded,
    Given,
    Isolate,
    Jobs,
    Json,
    On,
    Out,
    ScenarioArg,
    Seed,
    Set,
    for_all,
    is_workload,
    pairs,
    scenario_from,
)
from tradewind.cli.terminal import say
from tradewind.model.errors import InputError

commands = typer.Typer()


@commands.command()
def generate(
    workload: Annotated[str, typer.Argument(help="A workload (see `tradewind workloads`), or FILE.py:NAME.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", writable=True, help="Scenario file to write (.json or .yaml).")
    ],
    seed: Seed = 0,
    settings: Set = None,
) -> None:
    """Generate a scenario file."""
    from tradewind.files.scenario_file import dump
    from tradewind.registry import workloads as catalogue

    scenario = catalogue.generate(workload, pairs(settings), seed)
    dump(scenario, output)
    setup = scenario.setup
    say(
        f"{output}: {len(scenario.jobs)} jobs, {len(setup.nodes)} nodes, {len(setup.links)} links, {setup.objective}"
    )
    left_out = scenario.origin.get("rows_left_out")
    if isinstance(left_out, Mapping) and left_out:
        say(f"rows left out: {', '.join(f'{count:,} {why}' for why, count in left_out.items())}")


@commands.command()
def run(
    scenario: ScenarioArg,
    policy: Annotated[
        str, typer.Option("--policy", help="A policy (see `tradewind policies`), or FILE.py:NAME.")
    ],
    seed: Seed = 0,
    settings: Set = None,
    given: Given = None,
    bound: Bounded = False,
    isolate: Isolate = False,
    fast: Annotated[
        bool | None,
        typer.Option(
            "--fast/--loop",
            help="Fixed jobs by the policy's compiled path, or through the loop; the same run. Large scenarios choose.",
        ),
    ] = None,
    output: Out = None,
    as_json: Json = False,
) -> None:
    """Simulate a policy on a scenario, audited; -o writes a run file, or a report (.html)."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.engine.isolation.policy import isolated
    from tradewind.files.run_file import note_source
    from tradewind.registry import policies as catalogue
    from tradewind.report.bounds import Bounds
    from tradewind.report.progress import bar

    spec = isolated(policy) if isolate else catalogue.get(policy)
    data = scenario_from(scenario, seed, pairs(given))
    with bar(f"{spec.name} on {data.name}", len(data.jobs)) as tell:
        result = api.run(data, spec, seed=seed, params=pairs(settings), progress=tell, fast=fast)
    if bound:
        result = Bounds(data).attach(result)
    if output is not None and output.suffix in PAGES:
        from tradewind.report import page as report  # draws: half a second to import

        report.write(output, data, [result])
    elif output is not None:
        api.save(result, output)
        note_source(output, scenario if is_workload(scenario) else Path(scenario), pairs(given))
    show.run(result, data, as_json=as_json, saved=output, bounded=bound)


@commands.command()
def optimum(
    scenario: ScenarioArg,
    seed: Seed = 0,
    given: Given = None,
    effort: Annotated[int, typer.Option("--effort", min=1, max=9, help="How much the solver searches.")] = 1,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", writable=True, help="Run file to write.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan a small scenario with the future known: the best value found, the certified bound, and whether they meet."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.report.optimum import why_none

    data = scenario_from(scenario, seed, pairs(given))
    found = api.optimum(data, effort=effort)
    if output is not None and found.run is None:
        raise InputError(f"-o {output}: there is no plan to write; {why_none(data)}")
    if output is not None and found.run is not None:
        api.save(found.run, output)
    show.optimum(found, data, as_json=as_json, saved=output)


@commands.command()
def compare(
    scenario: ScenarioArg,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            help="Policies or FILE.py:NAME, separated by commas; parameters and settings side by side: "
            "las,las:limits=100,900:tick_s=5.",
        ),
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="How many seeds (0, 1, …).")] = 1,
    settings: Set = None,
    given: Given = None,
    bound: Bounded = False,
    isolate: Isolate = False,
    jobs: Jobs = 0,
    on: On = "",
    output: Out = None,
    as_json: Json = False,
) -> None:
    """Compare policies on the same scenarios; a workload makes a new scenario for every seed."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.engine.isolation.policy import isolated
    from tradewind.registry import policies as catalogue
    from tradewind.report import comparison_file
    from tradewind.report.progress import bar
    from tradewind.tasks.pool import Where

    names = catalogue.split(policies)
    if not names:
        raise InputError("--policies is empty; name at least one, for example --policies fifo,las")
    chosen = catalogue.with_rivals(names, isolated if isolate else None)
    if output is not None:
        comparison_file.must_be_one(output)
    made = is_workload(scenario)
    data = [scenario_from(scenario, seed, pairs(given)) for seed in range(seeds if made else 1)]
    scenarios = data if made else data * seeds
    with bar("comparing", len(chosen) * seeds, unit="runs") as tell:
        done = 0

        def one_more(_policy: str, _seed: int) -> None:
            nonlocal done
            done += 1
            if tell is not None:
                tell(0, done)

        result = api.compare(
            scenarios, names, seeds=range(seeds), params=for_all(pairs(settings), chosen), bound=bound,
            isolate=isolate, progress=one_more, where=Where(jobs, on),
        )  # fmt: skip
    if output is not None:
        comparison_file.write(output, result)
    added = [setting.spec.name for setting in chosen if not setting.asked]
    show.comparison(result, as_json=as_json, saved=output, added=added)
