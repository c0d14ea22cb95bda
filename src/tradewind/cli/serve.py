"""`tradewind serve`: the service, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command()
def serve(
    config: Annotated[Path, typer.Argument(help="CONFIG.yaml: sites, prices, policy, fleet, tenants.")],
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Where to listen.")] = 8642,
    data: Annotated[
        Path,
        typer.Option(
            "--data", help="Directory of store, tokens, logs and checkpoints; continued if it exists."
        ),
    ] = Path("out/serve"),
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Wait until no other service writes to the store, then take over."),
    ] = False,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve: take jobs over HTTP, decide, run, explain (docs/service.md). Ctrl-C ends it; the same command goes on."""
    from tradewind.cli.needs import extra

    extra("serve", "fastapi", "uvicorn", "prometheus_client")
    from tradewind.service.start import run

    run(config, data.resolve(), port, standby, browse)
