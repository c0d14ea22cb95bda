"""`tradewind profile`: measure a training command on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import Json, Out

commands = typer.Typer()


@commands.command(context_settings={"allow_interspersed_args": False})
def profile(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="The training command.")],
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0.1, max=86400, help="How long to measure, after the first report."),
    ] = 60.0,
    ranks: Annotated[int, typer.Option("--ranks", min=1, max=1024, help="Processes, as a ring.")] = 1,
    gpu: Annotated[str, typer.Option("--gpu", help="The GPU type of this machine, to be written down.")] = "",
    patience: Annotated[
        float, typer.Option("--patience", min=0.1, max=86400, help="Seconds to wait for the first report.")
    ] = 120.0,
    output: Out = None,
    as_json: Json = False,
) -> None:
    """Measure a training command here: time of an iteration, checkpoint, restart (docs/jobs.md says what it must do)."""
    from tempfile import TemporaryDirectory

    from tradewind.cli.show import number, table_of
    from tradewind.cli.terminal import open_console, print_json, say
    from tradewind.files.documents import check_suffix
    from tradewind.files.profile_file import as_document, save
    from tradewind.worlds.profile import ProfileOptions, measure

    if output is not None:
        check_suffix(output)
    options = ProfileOptions(seconds=seconds, ranks=ranks, patience_s=patience)
    with TemporaryDirectory(prefix="tradewind-profile-") as folder:
        found = measure(command, Path(folder), options)
    document = as_document(found, command, gpu)
    if output is not None:
        save(output, document)
    if as_json:
        print_json(document)
        return
    table = table_of("", "measured", "value")
    for name, value in document.items():
        if isinstance(value, int | float) and name != "tradewind_profile":
            table.add_row(name, number(value))
    open_console().print(table)
    for note in found.notes:
        say(f"note: {note}")
    if output is not None:
        say(f"profile: {output}")
