"""Commands on a running service beyond jobs and quotes: bills, forecasts, suspend and resume, sites, prices, the policy."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from tradewind.cli.options import Json, Set, pairs
from tradewind.cli.service_commands import Id, Server, Tenant, TokenFile, _ended, _print, client, read_job
from tradewind.cli.terminal import say

commands = typer.Typer()


@commands.command()
def bills(
    tenant: Tenant = None,
    period: Annotated[str | None, typer.Option("--period", help="2026-11, 2026-11-18 or FROM..TO.")] = None,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Print the bills of a running service: usage, list price, discount, payments."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        page = service.do(calls.bills(tenant, period))
    lines = []
    for each in page.bills:
        lines.append(
            f"{each.tenant}, {page.period}: {each.due_usd:.6g} USD due; list price {each.list_usd:.6g}, "
            f"discount {each.discount_usd:.6g}, paid {sum(p.usd for p in each.payments):.6g}, "
            f"refunds {sum(p.usd for p in each.refunds):.6g}"
        )
        lines += [
            f"  {line.job}: {line.amount:.6g} {line.unit} at {line.where}, {line.usd:.6g} USD"
            for line in each.lines
        ]
    _print(page, lines, as_json)


def _when(at_s: float | None) -> str:
    return "unknown" if at_s is None else time.strftime("%F %T", time.localtime(at_s))


@commands.command()
def eta(id: Id, as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Say when a job will start and finish, and how well such forecasts were kept."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.eta(id))
    lines = [f"{id}: {found.status}"]
    for name, each in (("start", found.start), ("finish", found.finish)):
        lines.append(f"  {name}: {_when(each.p50_s)}, by {_when(each.p90_s)} with 90%")
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
    price = "" if found.price_usd is None else f", {found.price_usd:.4g} USD"
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


@commands.command()
def site(
    name: Annotated[str, typer.Argument(metavar="SITE", help="Name of the site.")],
    state: Annotated[str | None, typer.Option("--state", help="join, drain or leave.")] = None,
    capacity: Annotated[str, typer.Option("--capacity", help='As JSON: {"gpu": 8}.')] = "{}",
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Let a site join, drain or leave, or change its capacity."""
    from tradewind.model.errors import InputError
    from tradewind.service import calls

    try:
        units = {str(key): float(value) for key, value in json.loads(capacity).items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(
            f'found {capacity!r}; write an object such as {{"gpu": 8}}', where="--capacity"
        ) from None
    with client(server, token_file) as service:
        rows = service.do(calls.set_site(name, state, units))
    if as_json:
        print(json.dumps(rows, indent=1))
    for row in () if as_json else rows:
        say(
            f"{row['node']} {row['resource']}: {row['capacity_milli'] / 1000:g}, {row['used_milli'] / 1000:g} in use"
        )


@commands.command()
def pricelist(
    prices: Annotated[Path, typer.Argument(metavar="PRICES", help="A file with rent: node -> resource -> tariff.")],
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Put a price list into force on a running service."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.set_prices(read_job(prices)))
    _print(found, [f"price list {found.price_list} is in force"], as_json)


@commands.command()
def policy(
    name: Annotated[str, typer.Argument(metavar="POLICY", help="Name of the policy.")],
    settings: Set = None,
    apply: Annotated[bool, typer.Option("--apply", help="Change to it at the next slot; without it, only compare.")] = False,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Compare another policy on the past week of a running service, and change to it."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.policy(name, pairs(settings), apply))
    lines = []
    if found.whatif is not None:
        of = found.whatif.objective
        lines = [f"{run['name']}: {of} {run['metrics'].get(of, 0.0):.6g}" for run in found.whatif.runs]
        lines += found.whatif.notes
    _print(found, [*lines, f"{found.policy} decides"], as_json)
