"""`tradewind store`: checks the store of a live run or a service, and exports periods of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import From, Json, To, time_us
from tradewind.cli.terminal import say
from tradewind.model.errors import InputError

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Checks and exports stores: what live runs write, in SQLite files or PostgreSQL databases.",
)
StoreArg = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="A store.db, the state directory it is in, or postgresql://USER:PASSWORD@HOST/DATABASE.",
    ),
]


@commands.command()
def verify(
    store: StoreArg,
    known: Annotated[
        str,
        typer.Option(
            "--known", metavar="HEAD", help="COUNT:HASH that an earlier verify printed; must still hold."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Check every record of a store: that none was deleted, edited, swapped, added or cut off."""
    from tradewind.cli.terminal import print_json
    from tradewind.store.chain import Head
    from tradewind.store.store import Store

    count, sign, text = known.partition(":")
    if known and not (sign and count.isdecimal() and len(text) == 64):
        raise InputError(f"found {known!r}; write COUNT:HASH, as verify prints it", where="--known")
    with Store.open(store) as opened:
        head = opened.verify(Head(int(count), text) if known else None)
    if as_json:
        print_json({"records": head.number, "head": f"{head.number}:{head.hash}"})
    else:
        say(f"ok: {head.number} records, head {head.number}:{head.hash}")


@commands.command()
def export(
    store: StoreArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for scenario.json and run.json.")],
    since: From = "0",
    until: To = "",
    as_json: Json = False,
) -> None:
    """Write a period of a store as a scenario (the script of what happened) and a run file."""
    from tradewind import api
    from tradewind.cli.terminal import print_json

    found = api.period(store, time_us(since, "--from"), time_us(until, "--to") if until else None)
    output.mkdir(parents=True, exist_ok=True)
    api.dump(found.scenario, output / "scenario.json")
    api.save(found.run, output / "run.json")
    setup = found.scenario.setup
    if as_json:
        names = {"scenario": str(output / "scenario.json"), "run": str(output / "run.json")}
        print_json(
            {**names, "jobs": len(found.scenario.jobs), "slots": setup.slots, "notes": list(found.notes)}
        )
        return
    say(f"{output}/scenario.json: {len(found.scenario.jobs)} jobs, {setup.slots} slots")
    say(f"{output}/run.json: {found.run.policy}, {found.run.objective} {found.run.value:g}")
    for note in found.notes:
        say(note)


@commands.command()
def backup(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Data directory of a service or a live run.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", writable=True, help="File for the backup; keep it secret: it has keys."
        ),
    ],
) -> None:
    """Back up a store and its keys while it is used."""
    from tradewind.store.backup import backup as write

    say(f"{output}: {write(data, output)} records")


@commands.command()
def restore(
    archive: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file that `store backup` wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="New data directory.")],
) -> None:
    """Make a data directory of a backup."""
    from tradewind.store.backup import restore as read

    say(f"{data}: {read(archive, data)} records; start the service with --data {data}")
