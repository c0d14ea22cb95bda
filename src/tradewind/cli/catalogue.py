"""Commands that list what is registered: policies and workloads."""

from __future__ import annotations

from typing import Annotated

import typer

from tradewind.cli.options import Json

commands = typer.Typer()


@commands.command()
def policies(
    name: Annotated[str, typer.Argument(help="Show only this one, with its parameters and an example.")] = "",
    as_json: Json = False,
) -> None:
    """List the policies, or show one: what it decides, what it can run, its parameters."""
    from tradewind.cli import listing, show_catalogue

    if not name:
        show_catalogue.policies(listing.policy_rows(), as_json=as_json)
        return
    from tradewind import registry

    show_catalogue.policy(listing.policy_row(registry.policies.get(name)), name, as_json=as_json)


@commands.command()
def workloads(
    name: Annotated[str, typer.Argument(help="Show only this one, with its parameters and an example.")] = "",
    as_json: Json = False,
) -> None:
    """List the workloads that `generate` can make, or show one with its parameters."""
    from tradewind.cli import listing, show_catalogue

    if not name:
        show_catalogue.workloads(listing.workload_rows(), as_json=as_json)
        return
    from tradewind import registry

    show_catalogue.workload(listing.workload_row(registry.workloads.get(name)), name, as_json=as_json)
