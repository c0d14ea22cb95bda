"""Commands that talk to a running service: TRADEWIND_SERVER and TRADEWIND_TOKEN_FILE say which one and who asks.

Exit codes with --wait: 0 finished or left, 1 failed, 3 refused, 4 declined, 5 cancelled.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tradewind.cli.needs import extra
from tradewind.cli.options import Json
from tradewind.cli.terminal import open_console, say
from tradewind.model.errors import InputError
from tradewind.model.units import dollars

if TYPE_CHECKING:
    from tradewind.service.client import Client
    from tradewind.service.models import JobAnswer, QuoteAnswer

commands = typer.Typer()
tokens = typer.Typer(help="Who may use a service.", no_args_is_help=True)
commands.add_typer(tokens, name="tokens")
EXIT_OF = {"finished": 0, "left": 0, "failed": 1, "refused": 3, "declined": 4, "cancelled": 5}
Server = Annotated[
    str,
    typer.Option("--server", envvar="TRADEWIND_SERVER", help="Address of the service.", show_default=False),
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", envvar="TRADEWIND_TOKEN_FILE", help="File that has the token.")
]
JobFileArg = Annotated[
    Path, typer.Argument(metavar="JOB", help="A file with one job, as in a scenario file.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the job.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="For operators: the tenant for whom it is.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until the job is over; the exit code says how it ended.")
]


def client(server: str, token_file: Path | None) -> Client:
    """A client of the service that is meant."""
    extra("serve", "httpx")
    from tradewind.service.client import Client

    return Client(server or None, token_file=token_file)


def read_job(path: Path) -> Mapping[str, Any]:
    """The job of a file."""
    from tradewind.files import documents

    found = documents.read(path)
    if not isinstance(found, dict):
        raise InputError("a job must be an object", where=str(path))
    return found


def _print(found: Any, lines: list[str], as_json: bool) -> None:
    if as_json:
        data = [each.model_dump() for each in found] if isinstance(found, list) else found.model_dump()
        print(json.dumps(data, indent=1))
    else:
        for line in lines:
            say(line)


def _ended(client: Client, job: JobAnswer, wait: bool, as_json: bool) -> None:
    """Print a job, wait for its end if that is wanted, and exit as it did."""
    if wait and not job.is_over:
        job = client.wait(job.id)
    price = "" if job.price_usd is None else f", {dollars(job.price_usd)} USD"
    _print(job, [f"{job.id}: {job.status}{price}" + (f" ({job.reason})" if job.reason else "")], as_json)
    if wait and (code := EXIT_OF.get(job.status, 1)):
        raise typer.Exit(code)


def _at(at_s: float) -> str:
    return time.strftime("%F %T", time.localtime(at_s))


@commands.command()
def submit(
    job: JobFileArg, tenant: Tenant = None, key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same key submits once.")
    ] = None, wait: Wait = False, as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Submit a job to a running service."""
    with client(server, token_file) as service:
        _ended(service, service.submit(read_job(job), tenant=tenant, key=key), wait, as_json)


def _than(saves_usd: float) -> str:
    return f"{dollars(abs(saves_usd))} USD {'less' if saves_usd >= 0 else 'more'} than"


def _menu(quote: QuoteAnswer) -> list[str]:
    lines = [f"{quote.id}: {quote.status}" + (f" ({quote.refused} {quote.why})" if quote.refused else "")]
    for each in quote.options:
        start, done, late = (each.start.p50_s, each.finish.p50_s, each.finish.p90_s)
        when = f"starts in {(start or 0) - quote.made_s:.0f} s, done in {(done or 0) - quote.made_s:.0f} s"
        when += f" ({(late or 0) - quote.made_s:.0f} s with 90%)" if each.kept else ""
        saves = "" if each.saves_usd is None else f", {_than(each.saves_usd)} alone"
        gap = "" if each.gap is None else f", {each.gap:+.1%} from the bound"
        lines.append(f"  {each.option}: {dollars(each.price_usd)} USD{saves}{gap}, {when}: {each.plan}")
    if quote.status == "open":
        left = quote.expires_s - time.time()
        lines.append(f"take one within {left:.0f} s: tradewind accept {quote.id} --option 0")
    return lines


@commands.command()
def quote(
    job: JobFileArg, tenant: Tenant = None, as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Ask a running service for a price; a job that states a budget (private.budget_usd) takes it at once if it fits."""
    with client(server, token_file) as service:
        found = service.quote(read_job(job), tenant=tenant)
        _print(found, _menu(found), as_json)


@commands.command()
def quotes(
    id: Annotated[str, typer.Argument(metavar="[QUOTE]", help="Only this quote, such as one that is pending.")] = "",
    status: Annotated[str | None, typer.Option("--status", help="Only quotes with this status, such as open.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Quotes at most.")] = 100,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """List the quotes of a running service, newest first, or look at one."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = [service.do(calls.get_quote(id))] if id else service.do(calls.quotes(status, limit))
    _print(found, [line for each in found for line in _menu(each)], as_json)


@commands.command()
def accept(
    quote: Annotated[str, typer.Argument(metavar="QUOTE", help="Id of the quote.")],
    option: Annotated[int, typer.Option("--option", min=0, help="Which option is taken.")] = 0,
    wait: Wait = False, as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Take an option of a quote."""
    from tradewind.service.calls import ServiceError
    from tradewind.service.models import QuoteAnswer

    with client(server, token_file) as service:
        try:
            receipt = service.accept(quote, option)
        except ServiceError as error:
            if error.code == "price_moved" and error.data and not as_json:
                for line in _menu(QuoteAnswer.model_validate(error.data)):
                    say(line)
            raise
        if not wait:
            price = "no price" if receipt.price_usd is None else f"{dollars(receipt.price_usd)} USD"
            line = f"{receipt.job.id}: {price} ({receipt.mode}: {receipt.payment_rule})"
            _print(receipt, [line], as_json)
            return
        _ended(service, receipt.job, wait, as_json)


@commands.command()
def decline(
    quote: Annotated[str, typer.Argument(metavar="QUOTE", help="Id of the quote.")],
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Take no option of a quote; what it holds is free at once."""
    with client(server, token_file) as service:
        found = service.decline(quote)
    _print(found, [f"{found.id}: {found.status}"], as_json)


@commands.command()
def jobs(
    status: Annotated[str | None, typer.Option("--status", help="Only jobs with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Jobs at most.")] = 100,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """List the jobs of a running service, newest first."""
    with client(server, token_file) as service:
        page = service.jobs(status=status, limit=limit)
    if as_json:
        print(json.dumps(page.model_dump(), indent=1))
        return
    from rich.table import Table

    table = Table("job", "tenant", "status", "submitted", "workers", "USD")
    for each in page.jobs:
        when = _at(each.submitted_s)
        places = ", ".join(f"{n} at {name}" for name, n in each.places.get("workers", {}).items())
        price = "" if each.price_usd is None else dollars(each.price_usd)
        table.add_row(each.id, each.tenant, each.status, when, places, price)
    open_console().print(table)


@commands.command(name="job")
def one(
    id: Id, wait: Wait = False, as_json: Json = False, server: Server = "", token_file: TokenFile = None
) -> None:
    """Show a job of a running service."""
    with client(server, token_file) as service:
        _ended(service, service.job(id), wait, as_json)


@commands.command()
def logs(
    id: Id,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job is over.")] = False,
    rank: Annotated[int, typer.Option("--rank", min=0, help="Number of the rank.")] = 0,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Print what a rank of a job wrote; --json: every piece as a string in a line of its own."""
    from tradewind.model.text import shown

    with client(server, token_file) as service:
        for text in service.logs(id, rank=rank, follow=follow):
            print(json.dumps(text) + "\n" if as_json else shown(text), end="", flush=True)


@commands.command()
def why(id: Id, as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Say why a job waits, and what for."""
    with client(server, token_file) as service:
        found = service.why(id)
    _print(
        found,
        [f"{id}: {found.status}", f"  rule: {found.rule}", *(f"  {line}" for line in found.lines)],
        as_json,
    )


@commands.command()
def cancel(id: Id, as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Cancel a job of a running service."""
    with client(server, token_file) as service:
        _ended(service, service.cancel(id), False, as_json)


@commands.command()
def tenants(as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """List the tenants of a running service."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.tenants())
    lines = [
        f"{each.name}: " + (", ".join(f"{n} {s}" for s, n in each.jobs.items()) or "no jobs")
        for each in found
    ]
    _print(found, lines, as_json)


@tokens.command(name="list")
def list_tokens(as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """List tokens, without their secrets."""
    from rich.table import Table

    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.tokens())
    if as_json:
        _print(found, [], as_json)
        return
    table = Table("id", "role", "tenant", "name", "may", "used", "expires", "state")
    for each in found:
        used, expires = ("never" if at is None else _at(at) for at in (each.used_s, each.expires_s))
        may = ", ".join(each.scopes) or "all"
        table.add_row(each.id, each.role, each.tenant, each.name, may, used, expires, each.state)
    open_console().print(table)


@tokens.command(name="make")
def make_token(
    role: Annotated[str, typer.Option("--role", help="admin, operator or tenant.")] = "tenant",
    tenant: Annotated[str, typer.Option("--tenant", help="Of the role tenant.")] = "",
    name: Annotated[str, typer.Option("--name", help="Whose it is, for the audit log.")] = "",
    valid: Annotated[float | None, typer.Option("--valid", min=1, help="Seconds until it expires.")] = None,
    scope: Annotated[list[str] | None, typer.Option("--scope", help="read or write; several times; default: both.")] = None,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Make a token and print its secret, once."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.make_token(role, tenant, name, valid, scope or ()))
    _print(found, [str(found.secret)], as_json)


@tokens.command(name="revoke")
def revoke_token(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the token.")],
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Revoke a token."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.revoke_token(id))
    _print(found, [f"{found.id}: revoked"], as_json)
