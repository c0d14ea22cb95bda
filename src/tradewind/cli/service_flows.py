"""Commands on a running service beyond jobs and quotes: bills, forecasts, suspend and resume."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import Json
from tradewind.cli.service_commands import Id, Server, Tenant, TokenFile, _ended, _print, client, read_job
from tradewind.model.units import dollars

commands = typer.Typer()


@commands.command()
def bills(
    tenant: Tenant = None,
    period: Annotated[str | None, typer.Option("--period", help="2026-11, 2026-11-18 or FROM..TO.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="One line per item, as CSV.")] = False,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Print the bills of a running service: usage, list price, discount, payments."""
    from tradewind.report.bills import csv_text, usd_text
    from tradewind.service import calls

    with client(server, token_file) as service:
        page = service.do(calls.bills(tenant, period))
    if as_csv:
        print(csv_text(each.bill() for each in page.bills), end="")
        return
    lines = []
    for each in page.bills:
        paid, back = (sum(p.usd for p in part) for part in (each.payments, each.refunds))
        lines.append(
            f"{each.tenant}, {page.period}: {usd_text(each.due_usd)} due; list price {usd_text(each.list_usd)}, "
            f"discount {usd_text(each.discount_usd)}, paid {usd_text(paid)}, refunds {usd_text(back)}"
        )
        lines += [
            f"  {line.job}: {line.amount:.6g} {line.unit} at {line.where}, {usd_text(line.usd)}"
            for line in each.lines
        ]
    _print(page, lines, as_json)


def _when(at_s: float | None) -> str:
    return "unknown" if at_s is None else time.strftime("%F %T", time.localtime(at_s))


@commands.command()
def eta(id: Id, as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Say when a job will start and finish, and how well such forecasts were kept."""
    from tradewind.service import calls
    from tradewind.service.telling import calibration

    with client(server, token_file) as service:
        found = service.do(calls.eta(id))
    lines = [f"{id}: {found.status}"]
    for name, each in (("start", found.start), ("finish", found.finish)):
        lines.append(f"  {name}: {_when(each.p50_s)}, by {_when(each.p90_s)} with 90%")
    if found.calibration is not None:
        lines.append(f"  {calibration(found.calibration.model_dump())}")
    if found.kept.get("given"):
        lines.append(
            f"  of {found.kept['given']:.0f} earlier forecasts {found.kept['by_p90']:.0%} were kept (p90), "
            f"median miss {found.kept['error_s']:.1f} s"
        )
    _print(found, lines, as_json)


@commands.command()
def dryrun(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="A file with one job.")],
    tenant: Tenant = None, as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Say where, when and at what price a job would run; nothing is submitted."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.dry_run(read_job(job), tenant))
    workers = (
        ", ".join(f"{n} at {site}" for site, n in found.place.get("workers", {}).items()) or "nowhere yet"
    )
    price = "" if found.price_usd is None else f", {dollars(found.price_usd)} USD"
    head = f"{workers}{price}; start {_when(found.start.p50_s)}, finish {_when(found.finish.p50_s)}"
    _print(found, [head, *(f"  {line}" for line in found.lines)], as_json)


@commands.command()
def suspend(id: Id, as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Suspend a job: it writes its checkpoints and ends, until it is resumed."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        _ended(service, service.do(calls.act(id, "suspend")), False, as_json)


@commands.command()
def resume(id: Id, as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Resume a suspended job."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        _ended(service, service.do(calls.act(id, "resume")), False, as_json)


@commands.command()
def change(
    id: Id,
    fields: Annotated[Path, typer.Argument(metavar="FIELDS", help="A file with new values of fields of the job.")],
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Change a job that waits or is suspended: its bid, budget, workers or work."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        _ended(service, service.do(calls.act(id, "change", read_job(fields))), False, as_json)
