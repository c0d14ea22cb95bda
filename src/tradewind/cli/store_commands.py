"""`tradewind store`: checks the store of a live run or a service."""

from __future__ import annotations

from typing import Annotated

import typer

from tradewind.cli.options import Json
from tradewind.model.errors import InputError

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Checks stores: what live runs write, in SQLite files or PostgreSQL databases.",
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
    from tradewind.cli.show import print_json
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
        print(f"ok: {head.number} records, head {head.number}:{head.hash}")
