"""`tradewind wan`: measured bandwidth between regions."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tradewind.cli.options import Json
from tradewind.cli.prices import Day, warn

if TYPE_CHECKING:
    from tradewind.prices.wan import Wan

commands = typer.Typer()
WanFile = Annotated[str, typer.Option("--wan", help="The table: catalogue (built in), or a CSV file.")]


@commands.command()
def wan(
    src: Annotated[str, typer.Argument(metavar="[FROM]", help="A region; without one all are listed.")] = "",
    dst: Annotated[str, typer.Argument(metavar="[TO]", help="Another region.")] = "",
    table: WanFile = "catalogue",
    day: Day = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", writable=True, help="Write the whole table, checked (.csv)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measured bandwidth and round-trip time between regions: all, from one, or of a pair."""
    from statistics import median

    from tradewind.cli.show import table_of
    from tradewind.cli.terminal import open_console, print_json, say
    from tradewind.files.atomic import write_text
    from tradewind.files.price_files import load_wan

    found = load_wan(table, day=day)
    warn(found.stale(date.today()))
    pairs = _pairs(found, src, dst)
    if output is not None:
        write_text(output, found.csv())
    if as_json:
        rows = [{"src": a, "dst": b, **found.path(a, b)._asdict()} for a, b in pairs]
        head = {"table": found.name, "date": found.date, "hash": found.hash, "source": found.source}
        print_json({**head, "notes": list(found.notes), "paths": rows})
        return
    if src:
        shown = table_of("", "from", "to", "Gbit/s", "RTT ms")
        for a, b in pairs:
            path = found.path(a, b)
            shown.add_row(a, b, f"{path.gbps:.3f}", "–" if path.rtt_ms is None else f"{path.rtt_ms:g}")
    else:
        shown = table_of("", "region", "regions reached", "median Gbit/s out", "slowest", "fastest")
        for place in found.places:
            out = [found.path(a, b).gbps for a, b in pairs if a == place]
            if out:
                shown.add_row(place, str(len(out)), *(f"{f(out):.3f}" for f in (median, min, max)))
    open_console().print(shown)
    say(f"{found.name}: {len(found.places)} regions, measured {found.date}, hash {found.hash[:12]}")
    say(f"source: {found.source}")
    if output is not None:
        say(f"{len(found.paths)} pairs: {output}")


def _pairs(wan: Wan, src: str, dst: str) -> list[tuple[str, str]]:
    """The pairs that are asked for; of two regions both directions, which must be known."""
    if not src:
        return sorted(wan.paths)
    a = wan.full_name(src)
    if not dst:
        return sorted((pair for pair in wan.paths if pair[0] == a), key=lambda pair: -wan.paths[pair].gbps)
    b = wan.full_name(dst)
    for pair in ((a, b), (b, a)):
        wan.path(*pair)
    return [(a, b), (b, a)]
