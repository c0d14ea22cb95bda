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
    from tradewind import registry
    from tradewind.cli import show_catalogue

    if name:
        show_catalogue.policy(registry.policies.get(name), name, as_json=as_json)
        return
    show_catalogue.policies(registry.policies.all(), as_json=as_json)


@commands.command()
def workloads(
    name: Annotated[str, typer.Argument(help="Show only this one, with its parameters and an example.")] = "",
    as_json: Json = False,
) -> None:
    """List the workloads that `generate` can make, or show one with its parameters."""
    from tradewind import registry
    from tradewind.cli import show_catalogue

    if name:
        show_catalogue.workload(registry.workloads.get(name), name, as_json=as_json)
        return
    show_catalogue.workloads(registry.workloads.all(), as_json=as_json)
