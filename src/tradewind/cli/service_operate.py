"""Commands of those who operate a service: sites, price lists, the policy, CONFIG read again, what is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tradewind.cli.options import Json, Set, pairs
from tradewind.cli.service_commands import Server, TokenFile, _print, client, read_job
from tradewind.cli.terminal import say
from tradewind.model.errors import InputError
from tradewind.model.units import MILLI, UNLIMITED

if TYPE_CHECKING:
    from tradewind.service.models import SiteAnswer, WhatIfAnswer

commands = typer.Typer()
Period = Annotated[str | None, typer.Option("--period", help="2026-11, 2026-11-18 or FROM..TO.")]


@commands.command()
def sites(
    name: Annotated[str, typer.Argument(metavar="[SITE]", help="A site to change; without it, all are listed.")] = "",
    state: Annotated[str | None, typer.Option("--state", help="join, drain or leave.")] = None,
    capacity: Annotated[str, typer.Option("--capacity", help='As JSON: {"gpu": 8}.')] = "{}",
    join: Annotated[Path | None, typer.Option("--join", help="A file with nodes (links, egress) that join.")] = None,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """List the sites of a running service, change one, or let new ones join."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        if join is not None:
            found = service.do(calls.join_sites(read_job(join)))
        elif name:
            found = service.do(calls.set_site(name, state, _units(capacity)))
        else:
            found = service.do(calls.sites())
    _print(found, [_site(each) for each in found], as_json)


def _units(text: str) -> dict[str, float]:
    try:
        return {str(key): float(value) for key, value in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(
            f'found {text!r}; write an object such as {{"gpu": 8}}', where="--capacity"
        ) from None


def _site(each: SiteAnswer) -> str:
    price = "" if each.list_usd is None else f", {each.list_usd * each.price_factor:g} USD per unit-hour"
    down = ", down" if each.is_down else ""
    most = "" if each.capacity_milli >= UNLIMITED else f" of {each.capacity_milli / MILLI:g}"
    return f"{each.node} {each.resource}: {each.used_milli / MILLI:g}{most} in use{price}{down}"


def service_prices(
    prices: Annotated[Path | None, typer.Argument(metavar="[PRICES]", help="rent: node -> resource -> tariff.")] = None,
    as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Show the price list of a running service, or put another one into force with the next slot."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.prices() if prices is None else calls.set_prices(read_job(prices)))
    lines = [f"price list {found.price_list}" + (" until the next slot" if prices is not None else "")]
    for node, tariffs in found.rent.items():
        for resource, tariff in tariffs.items():
            tiers = ", ".join(
                f"{usd:g} from {start:g}" for start, usd in zip(tariff["starts"], tariff["usd"], strict=True)
            )
            lines.append(f"  {node} {resource}: USD per unit-hour {tiers}")
    _print(found, lines, as_json)


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
    lines = [] if found.whatif is None else compared(found.whatif)
    _print(found, [*lines, f"{found.policy} decides"], as_json)


def compared(found: WhatIfAnswer) -> list[str]:
    """Runs of a what-if in lines."""
    of = found.objective
    values = [(run["name"], run["metrics"].get(of)) for run in found.runs]
    lines = [f"{name}: {of} {'–' if value is None else f'{value:.6g}'}" for name, value in values]
    lines += [
        f"  {each['job']}: {each['score']:+.4g}; {'; '.join(each['reasons'])}" for each in found.different
    ]
    return [*lines, *found.notes]


def whatif_of_service(
    policy: str, settings: list[str] | None, period: str | None, as_json: bool
) -> None:  # fmt: skip
    """Ask a running service what another policy would have made of a period."""
    from tradewind.service import calls

    with client("", None) as service:
        found = service.do(calls.whatif(policy, pairs(settings), period))
    _print(found, compared(found), as_json)


@commands.command()
def export(
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for scenario.json and run.json.")],
    period: Period = None, as_json: Json = False, server: Server = "", token_file: TokenFile = None,
) -> None:  # fmt: skip
    """Write a period of a running service as a scenario and its run file, for `tradewind audit`, `whatif` and `compare`."""
    from tradewind.files.atomic import write_text
    from tradewind.service import calls

    with client(server, token_file) as service:
        parts: dict[str, Any] = {part: service.do(calls.export(period, part)) for part in ("scenario", "run")}
    output.mkdir(parents=True, exist_ok=True)
    paths = {part: output / f"{part}.json" for part in parts}
    for part, found in parts.items():
        write_text(paths[part], json.dumps(found))
    if as_json:
        print(json.dumps({part: str(path) for part, path in paths.items()}))
        return
    for path in paths.values():
        say(str(path))


@commands.command()
def reload(as_json: Json = False, server: Server = "", token_file: TokenFile = None) -> None:
    """Let a running service read its CONFIG again."""
    from tradewind.service import calls

    with client(server, token_file) as service:
        found = service.do(calls.reload())
    lines = [f"{found.changes} changes of capacities and prices"]
    lines += [f"joined: {', '.join(found.joined)}"] if found.joined else []
    lines += (
        [f"with the next start: {', '.join(found.with_the_next_start)}"] if found.with_the_next_start else []
    )
    _print(found, lines, as_json)
