"""Commands of the laboratory: reproduce, tour, gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import Jobs, Json, On

commands = typer.Typer()


@commands.command()
def reproduce(
    system: Annotated[str, typer.Argument(help="A system with a study, or all.")],
    figure: Annotated[
        str, typer.Option("--figure", help="One figure only, for example 5, fig-5 or table-4.")
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Smaller instances and fewer seeds.")] = False,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=0, max=1000, help="Number of seeds; default: 3 with --quick, else 10."),
    ] = 0,
    arrivals: Annotated[
        str,
        typer.Option(
            "--arrivals",
            help="google:FILE takes the arrivals of mlBroker, DPS, GADGET and Eris from a trace.",
        ),
    ] = "drawn",
    jobs: Jobs = 0,
    on: On = "",
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of CSV, pictures and index.html.")
    ] = Path("out/reproduce"),
    as_json: Json = False,
) -> None:
    """Compute the figures of the papers: the claim, our numbers, and whether the claim holds."""
    from tradewind.cli import show
    from tradewind.lab.reproduce import reproduce as compute
    from tradewind.lab.study import Effort
    from tradewind.registry import studies
    from tradewind.tasks.pool import Where

    systems = list(studies.names()) if system == "all" else [system]
    for name in systems:
        studies.find(name)
    name = f"fig-{figure}" if figure.isdecimal() else figure
    effort = Effort(quick=quick, seeds=seeds or (3 if quick else 10), arrivals=arrivals)
    results = compute(systems, output, figure=name, effort=effort, where=Where(jobs, on))
    show.reproduction(results, output, as_json=as_json)
    if any(r.failed for r in results):
        raise typer.Exit(1)


@commands.command()
def tour(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the reports.")] = Path("out"),
    pictures: Annotated[
        Path | None, typer.Option("--pictures", help="Also write the pictures of the docs into this folder.")
    ] = None,
) -> None:
    """Run one small scenario per system: our policies, the papers' algorithms and the baselines."""
    from tradewind.lab.tour import tour as run_tour

    run_tour(output, pictures)


@commands.command()
def gallery(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the docs.")] = Path("docs"),
    work: Annotated[Path, typer.Option("--work", help="Folder of the reproduction.")] = Path("out/reproduce"),
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=64, help="Processes.")] = 2,
) -> None:
    """Write the gallery of the docs from a quick reproduction of all papers."""
    from tradewind.lab.gallery import PICKED
    from tradewind.lab.gallery import gallery as write
    from tradewind.registry import studies

    print(write(work, output, [name for name in studies.names() if name in PICKED], jobs))
