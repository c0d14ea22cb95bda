"""Print a plan of `tradewind plan-wan` as text and tables."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from tradewind.cli.terminal import open_console
from tradewind.model.text import shown


def show(found: dict[str, Any]) -> None:
    """Print a plan."""
    console = open_console()
    where = Text(shown(f"Parameter server at {found['server']}"), style="bold")
    console.print(where, f"({found['topology']}, {found['transport']})")
    ratio = "optimal" if found["ratio"] == 1.0 else f"at most {100 * (found['ratio'] - 1):.2f}% above it"
    console.print(
        f"An epoch's communication takes {found['epoch_s']:.4g} s with latency, {found['transfer_s']:.4g} s without; "
        f"certified lower bound {found['bound_s']:.4g} s: {ratio} (certificate checked)."
    )
    for note in found["notes"]:
        console.print(f"Note: {note}.")
    priced = bool(found["pareto"])
    table = _table("worker site", "path", "Mbit/s", "latency ms", *(["USD/epoch"] if priced else []))
    for flow in found["flows"]:
        cells = [
            flow["site"],
            " > ".join(flow["path"][1:]),
            f"{flow['mbps']:.1f}",
            f"{flow['latency_ms']:.1f}",
        ]
        table.add_row(*cells, *([_money(flow["usd_per_epoch"])] if priced else []))
    console.print(table)
    if found["runners_up"] and found["epoch_s"] > 0:
        others = _table("other site", "epoch s", "slower by")
        for row in found["runners_up"]:
            slower = f"{100 * (row['epoch_s'] / found['epoch_s'] - 1):.0f}%"
            others.add_row(row["server"], f"{row['epoch_s']:.4g}", slower)
        console.print(others)
    ways = _table("alternative", "epoch s", "how")
    for row in found["alternatives"]:
        ways.add_row(row["way"], f"{row['epoch_s']:.4g}", row["detail"])
    if found["alternatives"]:
        console.print(ways)
    if found["pareto"]:
        costs = _table("server, by cost", "epoch s", "USD/epoch")
        for row in found["pareto"]:
            costs.add_row(row["server"], f"{row['epoch_s']:.4g}", f"{row['usd_per_epoch']:.4f}")
        console.print(costs)
    if out := found["pareto_without"]:
        console.print(
            f"Time against cost leaves out {len(out)} worker sites that no priced link reaches ({', '.join(out)}); "
            "--default-usd-per-gb includes them."
        )
    for path in found.get("pictures", ()):
        console.print(f"picture: {path}")


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.4f}"


def _table(*columns: str) -> Table:
    table = Table()
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 or column in ("path", "how") else "right")
    return table
