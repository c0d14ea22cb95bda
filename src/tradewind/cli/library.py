"""`tradewind library`: named instances with best known values and bounds, and what a run is worth to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tradewind.cli.options import Json, RunFile
from tradewind.cli.terminal import open_console, say
from tradewind.model.errors import LookupFailed

if TYPE_CHECKING:
    from tradewind.lab.library.table import Instance, Library
    from tradewind.lab.library.verdict import Verdict

commands = typer.Typer(
    invoke_without_command=True,
    help="Named instances with best known values and bounds; check whether a run is a new best.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="An instance of the library.")]
TableFile = Annotated[
    Path | None, typer.Option("--table", help="Another table; default: the one that ships.")
]
Out = Annotated[Path, typer.Option("-o", "--output", writable=True, help="File to write (.json or .yaml).")]


@commands.callback()
def listing(
    context: typer.Context,
    only: Annotated[str, typer.Option("--only", help="Only names that contain this text.")] = "",
    as_json: Json = False,
) -> None:
    """List the instances: best known value, who or what found it, certified bound and gap."""
    if context.invoked_subcommand is not None:
        return
    from tradewind.lab.library.table import read

    library = read()
    rows = [each for each in library.instances if only in each.name]
    if not rows:
        raise LookupFailed(
            "instance of the library, or part of a name,", only, [i.name for i in library.instances]
        )
    if as_json:
        print(json.dumps({"version": library.version, "instances": [_plain(i) for i in rows]}, indent=2))
        return
    _print(library, rows)


def _plain(row: Instance) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(row), "sense": row.sense, "gap": row.gap, "closed": row.closed}


def _print(library: Library, rows: list[Instance]) -> None:
    from rich.table import Table

    shown = Table(title=f"Library, version {library.version}", title_justify="left")
    for head in ("instance", "jobs", "objective", "best known", "found by", "bound", "gap"):
        shown.add_column(head, justify="right" if head in ("jobs", "best known", "bound", "gap") else "left")
    for row in rows:
        best, bound = ("–" if v is None else f"{v:,.6g}" for v in (row.value, row.bound))
        objective = f"{row.objective} ({row.sense})"
        shown.add_row(row.name, str(row.jobs), objective, best, row.found_by, bound, gap_words(row))
    open_console().print(shown)
    closed = sum(row.closed for row in rows)
    say(f"closed, which means proven optimal: {closed} of {len(rows)}")


def gap_words(row: Instance) -> str:
    """`closed`, a percentage, or a dash where value or bound is missing."""
    if row.closed:
        return "closed"
    return "–" if row.gap is None else f"{100 * row.gap:.3g}%"


@commands.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show an instance: how it is generated, its hash, best known value and bound."""
    from tradewind.lab.library.table import read

    row = read().find(name)
    if as_json:
        print(json.dumps(_plain(row), indent=2))
        return
    settings = "".join(f" --set {each}" for each in row.settings.split())
    say(f"{row.name}: {row.jobs} jobs; {row.objective}, {row.sense}imise")
    say(f"  made by     tradewind generate {row.workload}{settings} --seed {row.seed} -o FILE")
    say(f"  hash        {row.hash}")
    say(f"  best known  {'–' if row.value is None else repr(row.value)}, found by {row.found_by or 'nobody'}")
    say(
        f"  bound       {'–' if row.bound is None else repr(row.bound)}, proved by {row.bound_by or 'nobody'}"
    )
    say(f"  gap         {gap_words(row)}")


@commands.command()
def generate(name: Name, output: Out) -> None:
    """Write the scenario of an instance, for anybody to solve."""
    from tradewind.files.scenario_file import dump
    from tradewind.lab.library.table import read

    dump(read().find(name).scenario(), output)
    say(f"{output}: {name}")


@commands.command()
def solve(name: Name, output: Out) -> None:
    """Write the best known run of an instance, made again."""
    from tradewind.files.run_file import save
    from tradewind.lab.library.search import again, remade
    from tradewind.lab.library.table import read

    row = read().find(name)
    run = again(row)
    save(run, output)
    say(f"{output}: {row.objective} {run.value!r}, by {row.found_by}")
    if note := remade(row, run):
        say(note)


@commands.command()
def check(
    name: Name,
    run_file: RunFile,
    by: Annotated[
        str, typer.Option("--by", metavar="WHO", help="Enter a new best into the table, found by WHO.")
    ] = "",
    table: TableFile = None,
    as_json: Json = False,
) -> None:
    """Check a run file of an instance: new best, equal, worse, or refused with the reason (exit code 1)."""
    from dataclasses import replace

    from tradewind.files.run_file import load_run
    from tradewind.lab.library.table import TABLE, read, write
    from tradewind.lab.library.verdict import judge

    library = read(table or TABLE)
    row = library.find(name)
    found = judge(row, row.scenario(), load_run(run_file))
    if as_json:
        print(
            json.dumps({"word": found.word, "value": found.value, "gap": found.gap, "reasons": found.reasons})
        )
    else:
        _say(row, found)
    if found.word == "refused":
        raise typer.Exit(1)
    if by and found.word == "new best":
        write(library.with_row(replace(row, value=found.value, found_by=by)), table or TABLE)
        say(f"entered into {table or TABLE}")


def _say(row: Instance, found: Verdict) -> None:
    if found.word == "refused":
        for reason in found.reasons:
            say(f"{row.name}: refused: {reason}")
        return
    known = "none was known" if row.value is None else f"best known {row.value!r}, by {row.found_by}"
    say(f"{row.name}: {found.word}: {row.objective} {found.value!r} ({known}); the audit passed")
    if found.gap is not None:
        say(f"  within the bound {row.bound!r}; gap {100 * max(found.gap, 0.0):.4g}%")


@commands.command()
def improve(
    level: Annotated[
        int,
        typer.Option(
            "--level", min=1, max=3, help="1: policies as they are; 2, 3: parameters, seeds, more effort."
        ),
    ] = 1,
    only: Annotated[str, typer.Option("--only", help="Only names that contain this text.")] = "",
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=64, help="Processes.")] = 1,
    work: Annotated[Path, typer.Option("--work", help="Folder of what was tried.")] = Path("out/library"),
    table: TableFile = None,
    new_version: Annotated[
        bool,
        typer.Option("--new-version", help="Instances or generators changed: raise the table's version."),
    ] = False,
) -> None:
    """Search for better values and bounds; no row gets worse, and an interrupted search goes on."""
    from tradewind.lab.library.search import improve as search
    from tradewind.lab.library.table import TABLE, read, write

    path = table or TABLE
    if new_version:
        write(read(path, checked=False).renewed(), path)

    def tell(before: Instance, after: Instance) -> None:
        better = " (better)" if before.value is not None and after.value != before.value else ""
        say(f"{after.name}: {after.value} by {after.found_by}{better}; gap {gap_words(after)}")

    library, failed = search(work, table=path, level=level, only=only, jobs=jobs, tell=tell)
    for each in failed:
        say(f"failed: {each}")
    say(f"{sum(i.closed for i in library.instances)} of {len(library.instances)} instances are closed")
    if failed:
        raise typer.Exit(1)


@commands.command()
def page(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the docs.")] = Path("docs"),
) -> None:
    """Write library.md and its picture from the table."""
    from tradewind.lab.library.page import write_page
    from tradewind.lab.library.table import read

    say(write_page(read(), output))
