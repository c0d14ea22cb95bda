"""`tradewind prices`: list, search, show, compare and import prices of machines and egress."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tradewind.cli.options import Json, Out, options_of
from tradewind.model.errors import InputError, LookupFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tradewind.prices.listing import ListedMachine, PriceList

commands = typer.Typer(
    invoke_without_command=True, help="Prices of machines and egress: list, search, compare."
)
Prices = Annotated[str, typer.Option("--prices", help="The list: catalogue (built in), or a CSV file.")]
EgressFile = Annotated[str, typer.Option("--egress", help="Egress prices: catalogue, or a CSV file.")]
ContractFile = Annotated[
    str, typer.Option("--contract", help="Own terms on top of the list (.yaml or .json).")
]
Day = Annotated[
    str, typer.Option("--date", help="The date of the file's facts: 2026-08-31, 2026-08 or 2026.")
]
MOST_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ListArguments:
    """Arguments of `prices`."""

    context: typer.Context
    gpu: Annotated[str, typer.Option("--gpu", help="GPU types, separated by commas: H100,A100.")] = ""
    region: Annotated[
        str, typer.Option("--region", help="Regions: a continent or eu, us, a cloud, a name, a pattern us-*.")
    ] = ""
    gpus: Annotated[int, typer.Option("--gpus", min=0, help="At least so many GPUs per machine.")] = 0
    spot: Annotated[bool, typer.Option("--spot", help="Only machines with a spot price, sorted by it.")] = (
        False
    )
    cheapest: Annotated[bool, typer.Option("--cheapest", help="Only the cheapest machine of each GPU.")] = (
        False
    )
    prices: Prices = "catalogue"
    egress: EgressFile = "catalogue"
    contract: ContractFile = ""
    output: Out = None
    as_json: Json = False


@commands.callback()
@options_of(ListArguments)
def list_prices(given: ListArguments) -> None:
    """List machines with their prices, cheapest per GPU first; `show`, `diff` and `import` do more."""
    if given.context.invoked_subcommand:
        return
    from tradewind.cli.terminal import print_json, say
    from tradewind.files.atomic import write_text
    from tradewind.prices.search import Search
    from tradewind.prices.table import machines_csv

    found = load(given.prices, given.egress, given.contract)
    search = Search(
        gpu=given.gpu, region=given.region, gpus=given.gpus, spot=given.spot, cheapest=given.cheapest
    )
    machines = search.find(found)
    if not machines:
        raise InputError("no machine of the list has all of that; ask for less")
    if given.output is not None:
        write_text(given.output, machines_csv(found, machines))
    if given.as_json:
        print_json({**about(found), "machines": [asdict(machine) for machine in machines]})
        return
    _table(machines)
    footer(found)
    if given.output is not None:
        say(f"{_counted(machines)}: {given.output}")


def about(prices: PriceList) -> dict[str, Any]:
    """What a list is, as plain data."""
    return {
        "list": prices.name, "date": prices.date, "hash": prices.hash, "source": prices.source,
        "notes": list(prices.notes), "egress_date": prices.egress.date, "egress_notes": list(prices.egress.notes),
    }  # fmt: skip


def load(prices: str, egress: str, contract: str, day: str = "") -> PriceList:
    """A list; warns on stderr if it is old."""
    from tradewind.files.price_files import load_prices

    found = load_prices(prices, egress=egress, contract=contract, day=day)
    warn(found.stale(date.today()))
    return found


def warn(sentences: Sequence[str]) -> None:
    """Print warnings on stderr."""
    from tradewind.cli.terminal import say

    for sentence in sentences:
        say(f"tradewind: {sentence}", file=sys.stderr)


def footer(prices: PriceList) -> None:
    """Date, hash and notes of a list."""
    from tradewind.cli.terminal import say

    say(f"{prices.name}: prices of {prices.date}, egress of {prices.egress.date}, hash {prices.hash[:12]}")
    say(f"source: {prices.source}")


def _table(machines: Sequence[ListedMachine]) -> None:
    from tradewind.cli.show import table_of
    from tradewind.cli.terminal import open_console, say

    table = table_of(
        "",
        "machine",
        "region",
        "GPUs",
        "GPU GB",
        "vCPUs",
        "memory GB",
        "USD/h",
        "USD/GPU-h",
        "spot from USD/h",
    )
    for each in machines[:MOST_ROWS]:
        table.add_row(
            each.machine,
            each.place + (f" {each.zone}" if each.zone else ""),
            f"{each.gpus} {each.gpu}",
            *map(_number, (each.gpu_gb, each.vcpus, each.memory_gb)),
            f"{each.usd_per_hour:.3f}",
            f"{each.usd_per_gpu_hour():.3f}",
            _usd(each.spot_usd_per_hour),
        )
    open_console().print(table)
    if len(machines) > MOST_ROWS:
        say(f"the first {MOST_ROWS} of {len(machines)}; --json or -o FILE.csv gives all")


def _counted(machines: Sequence[ListedMachine]) -> str:
    return f"{len(machines)} {'machine' if len(machines) == 1 else 'machines'}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@commands.command()
def show(
    name: Annotated[str, typer.Argument(metavar="REGION|MACHINE", help="A region or a machine type.")],
    prices: Prices = "catalogue",
    egress: EgressFile = "catalogue",
    contract: ContractFile = "",
    as_json: Json = False,
) -> None:
    """Show a region (its machines, egress to others) or a machine type (where it costs what)."""
    from tradewind.cli.show import table_of
    from tradewind.cli.terminal import open_console, print_json, say

    found = load(prices, egress, contract)
    machines = [each for each in found.machines if name in (each.machine, each.region, each.place)]
    machines.sort(key=lambda each: (each.usd_per_gpu_hour(), each.key))
    if not machines:
        known = {word for each in found.machines for word in (each.machine, each.region)}
        raise LookupFailed("region or machine of the list", name, known)
    place = machines[0].place if name in (machines[0].region, machines[0].place) else ""
    routes = sorted((pair[1], price) for pair, price in found.egress.prices.items() if pair[0] == place)
    if as_json:
        egress_rows = [{"to": to, **price._asdict()} for to, price in routes]
        print_json({**about(found), "machines": [asdict(each) for each in machines], "egress": egress_rows})
        return
    _table(machines)
    if routes:
        table = table_of(f"egress from {place}", "to", "USD/GB", "")
        groups: dict[tuple[str, float, bool], list[str]] = {}
        for to, price in routes:
            groups.setdefault((to.partition(":")[0], *price), []).append(to.partition(":")[2])
        for (cloud, usd, filled), regions in sorted(groups.items()):
            table.add_row(f"{cloud}: {', '.join(regions)}", f"{usd:g}", "estimated" if filled else "")
        open_console().print(table)
        for start, factor in found.egress.tiers.get(machines[0].cloud, ())[1:]:
            say(f"to other clouds, from {start:,.0f} GB per month on: x {factor:g}")
    elif place:
        say(f"no egress price from {place} is known; jobs whose data must leave it need --egress FILE")
    footer(found)


@commands.command(name="diff")
def diff_lists(
    old: Annotated[str, typer.Argument(metavar="A", help="A list: catalogue, or a CSV file.")],
    new: Annotated[str, typer.Argument(metavar="B", help="Another list.")],
    as_json: Json = False,
) -> None:
    """Compare two lists: machines that are changed, new or gone."""
    from collections import Counter

    from tradewind.cli.show import table_of
    from tradewind.cli.terminal import open_console, print_json, say
    from tradewind.files.price_files import load_prices
    from tradewind.prices.search import diff

    a, b = load_prices(old), load_prices(new)
    changes = diff(a, b)
    if as_json:
        rows = [
            {"kind": each.kind, "machine": each.machine.machine, "region": each.machine.place, "zone": each.machine.zone,
             "old_usd_per_hour": each.old_usd, "new_usd_per_hour": each.new_usd,
             "old_spot_usd_per_hour": each.old_spot, "new_spot_usd_per_hour": each.new_spot}
            for each in changes
        ]  # fmt: skip
        print_json({"old": about(a), "new": about(b), "changes": rows})
        return
    table = table_of("", "machine", "region", "", "USD/h before", "after", "by", "spot before", "after")
    for each in changes[:MOST_ROWS]:
        by = f"{100 * (each.new_usd / each.old_usd - 1):+.1f}%" if each.old_usd and each.new_usd else ""
        table.add_row(
            each.machine.machine, each.machine.place, each.kind, _usd(each.old_usd), _usd(each.new_usd), by,
            _usd(each.old_spot), _usd(each.new_spot),
        )  # fmt: skip
    if changes:
        open_console().print(table)
    counts = Counter(each.kind for each in changes)
    say(f"{counts['changed']} changed, {counts['new']} new, {counts['gone']} gone")
    say(f"A: {a.name} of {a.date}, hash {a.hash[:12]}; B: {b.name} of {b.date}, hash {b.hash[:12]}")


@commands.command(name="import")
def import_list(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file of another catalogue.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", writable=True, help="Where to write the list (.csv).")
    ],
    form: Annotated[
        str, typer.Option("--from", help="skypilot, gpuhunt, or csv: the columns of this list.")
    ] = "csv",
    cloud: Annotated[
        str, typer.Option("--cloud", help="skypilot, gpuhunt: the cloud whose file it is.")
    ] = "",
    day: Day = "",
) -> None:
    """Read prices of SkyPilot's catalogue, of gpuhunt or of a plain CSV file, check them, and write a list."""
    from tradewind.cli.terminal import say
    from tradewind.files.atomic import write_text
    from tradewind.files.price_files import import_prices
    from tradewind.prices.table import machines_csv

    found = import_prices(file, form=form, cloud=cloud, day=day)
    write_text(output, machines_csv(found))
    for note in found.notes:
        say(note)
    warn(found.stale_machines(date.today()))
    say(f"{_counted(found.machines)} of {found.date}: {output}")
