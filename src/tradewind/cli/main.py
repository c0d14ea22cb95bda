"""The command line: results on stdout, progress on stderr, exit code 2 on a user's mistake, never a traceback."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tradewind.cli import (
    author,
    catalogue,
    file_commands,
    lab_commands,
    plan,
    profile,
    run_commands,
    serve,
    service_commands,
    service_flows,
    service_operate,
    wan,
    whatif,
    world_commands,
)
from tradewind.cli.guard import guarded
from tradewind.cli.help import with_help
from tradewind.cli.library import commands as library_commands
from tradewind.cli.overwriting import keeping_inputs
from tradewind.cli.prices import commands as price_commands
from tradewind.cli.store_commands import commands as store_commands
from tradewind.cli.testbed import commands as testbed_commands
from tradewind.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Places, scales, routes and prices distributed machine-learning training.",
)
for group in (
    run_commands,
    file_commands,
    whatif,
    catalogue,
    wan,
    profile,
    plan,
    author,
    world_commands,
    serve,
    service_commands,
    service_flows,
    service_operate,
    lab_commands,
):
    app.add_typer(group.commands)
app.add_typer(library_commands, name="library")
price_commands.command(name="service")(service_operate.service_prices)
app.add_typer(price_commands, name="prices")
app.add_typer(testbed_commands, name="testbed")
app.add_typer(store_commands, name="store")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Places, scales, routes and prices distributed machine-learning training."""


@app.command(name="version")
def version_command() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    """The `tradewind` command; wrong usage is explained by typer itself (exit code 2).

    Listings without options do not go through typer, which would import what reads options and take as long again.
    """
    if sys.argv[1:] == ["policies"]:
        sys.exit(guarded(catalogue.policies))
    if sys.argv[1:] == ["workloads"]:
        sys.exit(guarded(catalogue.workloads))
    sys.exit(guarded(keeping_inputs(with_help(app))))


if __name__ == "__main__":
    main()
