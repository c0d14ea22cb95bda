"""`tradewind testbed`: builds a wide area network on this machine and compares its traffic with the model."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tradewind.cli.options import options_of
from tradewind.cli.terminal import say

if TYPE_CHECKING:
    from rich.table import Table

    from tradewind.lab.testbed.check import Check

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Builds a wide area network on this machine from network namespaces (root), and measures traffic on it.",
)

Name = Annotated[str, typer.Option("--name", help="Name of the testbed; several can exist.")]
Topology = Annotated[
    str, typer.Argument(help="mesh, b4, internet2, or a .graphml, .gml, .json or region-pair .csv file.")
]
Scale = Annotated[float, typer.Option("--scale", help="Factor on the real rates.")]
Sites = Annotated[
    int, typer.Option("--sites", min=0, max=200, help="Number of sites to keep; 0: all (mesh: 4).")
]
Rule = Annotated[str, typer.Option("--rule", help="Bandwidth by distance: auto, power, linear, inverse, …")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**53, help="Seed of random bandwidths.")]
Latency = Annotated[
    str,
    typer.Option(
        "--latency", help="Of links: none, real (as stated, or by length), or milliseconds for all."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

SCALE = 0.01
TOLERANCE = 0.1


@commands.command()
def up(
    topology: Topology,
    name: Name = "main",
    scale: Scale = SCALE,
    sites: Sites = 0,
    rule: Rule = "auto",
    seed: Seed = 0,
    latency: Latency = "none",
    as_json: Json = False,
) -> None:
    """Builds the network, after removing leftovers of a crash under the same name."""
    from tradewind.lab.testbed.networks import network
    from tradewind.worlds.testbed import network as testbed
    from tradewind.worlds.testbed.state import check_not_owned

    check_not_owned(name)
    testbed.up(network(topology, scale=scale, sites=sites, rule=rule, seed=seed, latency=latency), name)
    _status(name, as_json)


@commands.command()
def down(name: Name = "main", as_json: Json = False) -> None:
    """Removes the network and ends everything that runs in it, also after a crash."""
    from tradewind.worlds.testbed import network as testbed

    removed = testbed.down(name)
    if as_json:
        print(json.dumps({"name": name, "removed": removed}))
        return
    say(
        f"testbed {name}: removed {len(removed)} namespaces"
        if removed
        else f"testbed {name}: nothing to remove"
    )


@commands.command()
def status(
    name: Annotated[str, typer.Option("--name", help="Show this testbed with its sites and links.")] = "",
    as_json: Json = False,
) -> None:
    """Lists all testbeds of this machine, or shows one."""
    from tradewind.worlds.testbed import network as testbed

    if name:
        _status(name, as_json)
        return
    found = [
        {"name": n, "state": testbed.state_of(n), "processes": len(testbed.processes(n))}
        for n in testbed.names()
    ]
    if as_json:
        print(json.dumps(found, indent=2))
        return
    if not found:
        say("no testbeds; create one with `tradewind testbed up b4`")
    for row in found:
        hint = (
            "" if row["state"] == "up" else f"; clean up with `tradewind testbed down --name {row['name']}`"
        )
        say(f"{row['name']}: {row['state']}, {row['processes']} processes inside{hint}")


def _status(name: str, as_json: bool) -> None:
    """Print sites with namespace and address, links with rate and bytes sent."""
    from tradewind.worlds.testbed import network as testbed

    bed = testbed.find(name)
    wan, sent = bed.wan, bed.sent_bytes()
    places = [
        {
            "site": site,
            "namespace": bed.namespace(k),
            "address": bed.address(k),
            "interface": testbed.INTERFACE,
        }
        for k, site in enumerate(wan.sites)
    ]
    links = [
        {
            "from": wan.sites[a], "to": wan.sites[b], "mbps": bps / 1e6, "latency_ms": 1000 * wan.latency_s((a, b)),
            "sent_mb": sent[a, b] / 1e6,
        }
        for (a, b), bps in wan.rates().items()
    ]  # fmt: skip
    if as_json:
        data = {"name": name, "network": wan.name, "delay": bed.delay, "sites": places, "links": links}
        print(json.dumps(data, indent=2))
        return
    delay = f", latency by {bed.delay}" if bed.delay else ""
    say(f"testbed {name}: {wan.name}, {len(wan.sites)} sites, {len(wan.links)} links{delay}")
    _print(_table([("site", "left"), ("namespace", "left"), ("address", "left")], [
        [str(p["site"]), str(p["namespace"]), str(p["address"])] for p in places
    ]))  # fmt: skip
    _print(_table([("from", "left"), ("to", "left"), ("Mbit/s", "right"), ("latency ms", "right"), ("sent MB", "right")], [
        [str(x["from"]), str(x["to"]), f"{x['mbps']:.1f}", f"{x['latency_ms']:g}", f"{x['sent_mb']:.1f}"] for x in links
    ]))  # fmt: skip
    say(f"run a command at a site: ip netns exec {bed.namespace(0)} COMMAND")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyArguments:
    """Arguments of `verify`."""

    topology: Topology = "mesh"
    sites: Sites = 0
    scale: Scale = SCALE
    rule: Rule = "auto"
    seed: Seed = 0
    latency: Latency = "none"
    model: Annotated[
        str,
        typer.Option(
            "--model", help="Model size, such as '2 MB'; default: so that a round takes about a second."
        ),
    ] = ""
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Timed rounds per exchange.")] = 3
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for verify.csv, .svg and .png.")] = (
        Path("out/testbed")
    )
    as_json: Json = False


@commands.command()
@options_of(VerifyArguments)
def verify(given: VerifyArguments) -> None:
    """Time real traffic on a temporary testbed and compare it with the model; exit code 1 if they differ."""
    from tradewind.lab.testbed import check as testbed_check
    from tradewind.lab.testbed.networks import exchanges, network
    from tradewind.report.progress import bar
    from tradewind.systems.apsp.workload.sizes import model_bytes
    from tradewind.worlds.testbed import network as testbed
    from tradewind.worlds.testbed.state import own_name

    wan = network(
        given.topology,
        scale=given.scale,
        sites=given.sites,
        rule=given.rule,
        seed=given.seed,
        latency=given.latency,
    )
    name = own_name("verify")
    try:
        bed = testbed.up(wan, name)
        with bar(f"measuring on {wan.name}", len(exchanges(wan)), unit="exchanges") as progress:
            found = testbed_check.check(
                bed,
                model_bytes=model_bytes(given.model) if given.model else 0,
                rounds=given.rounds,
                tell=None if progress is None else lambda done: progress(0, done),
            )
    finally:
        if os.geteuid() == 0:
            testbed.down(name)
    files = _write(found, given.output)
    _show(found, files, given.as_json)
    if found.worst > TOLERANCE or not all(found.best(kind)[2] for kind in ("server", "ring")):
        raise typer.Exit(1)


def _write(found: Check, output: Path) -> list[str]:
    from tradewind.files import atomic
    from tradewind.files.row_tables import csv_cell
    from tradewind.lab.testbed import check as testbed_check

    output.mkdir(parents=True, exist_ok=True)
    rows, text = testbed_check.rows(found), io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows({name: csv_cell(cell) for name, cell in row.items()} for row in rows)
    atomic.write_text(output / "verify.csv", text.getvalue())
    drawn = testbed_check.save_picture(found, output / "verify")
    return [str(path) for path in (output / "verify.csv", *drawn)]


def _show(found: Check, files: list[str], as_json: bool) -> None:
    from tradewind.lab.testbed import check as testbed_check

    rows = testbed_check.rows(found)
    best: dict[str, dict[str, Any]] = {}
    for kind in ("server", "ring"):
        predicted, measured, same = found.best(kind)
        best[kind] = {
            "predicted": predicted.exchange.label,
            "measured": measured.exchange.label,
            "same": same,
        }
    if as_json:
        data = {
            "network": found.network, "carrier": found.carrier, "model_bytes": found.model_bytes, "rows": rows, "best": best,
            "worst_percent": 100 * found.worst, "files": files,
        }  # fmt: skip
        print(json.dumps(data, indent=2, allow_nan=False))
        return
    say(f"{found.network}: {found.model_bytes / 1e6:.3g} MB per exchange, carried by {found.carrier}")
    columns = [("kind", "left"), ("where", "left"), ("sharing a link", "right"), ("predicted s", "right")]
    columns += [("measured s", "right"), ("difference", "right")]
    _print(_table(columns, [
        [
            str(r["kind"]), str(r["where"]), str(r["sharing"]), f"{float(r['predicted_s']):.3f}",
            f"{float(r['measured_s']):.3f}", f"{float(r['difference_percent']):+.1f}%",
        ]
        for r in rows
    ]))  # fmt: skip
    for kind, words in (("server", "best server site"), ("ring", "best ring")):
        pair = best[kind]
        outcome = "the same" if pair["predicted"] == pair["measured"] else str(pair["measured"])
        if pair["predicted"] != pair["measured"]:
            outcome += " (predicted to be as fast)" if pair["same"] else " (NOT the same)"
        say(f"{words}: predicted {pair['predicted']}; measured {outcome}")
    say(f"largest difference: {100 * found.worst:.1f}%")
    for path in files:
        say(f"wrote {path}")


def _table(columns: list[tuple[str, str]], rows: list[list[str]]) -> Table:
    from rich.table import Table

    table = Table()
    for title, side in columns:
        table.add_column(title, justify="right" if side == "right" else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _print(table: Table) -> None:
    from tradewind.cli.terminal import open_console

    open_console().print(table)
