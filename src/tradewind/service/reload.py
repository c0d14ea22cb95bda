"""CONFIG read again, and sites that join: what of it can be in force without a new start."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from tradewind.engine.fit import check_fit
from tradewind.files.messages import sentence
from tradewind.model.codec import plain
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.service import config as configs
from tradewind.service.changes import named, of_config
from tradewind.service.config import Config, ServiceFile, SitesFile
from tradewind.service.errors import ApiError
from tradewind.service.growth import grown
from tradewind.service.models import ReloadAnswer
from tradewind.service.operations import OWN, kept_value
from tradewind.service.service import CHANGE_S, Service
from tradewind.service.tokens import Token
from tradewind.store.board import Row


def _added(service: Service) -> list[dict[str, Any]]:
    """Sites that joined by API, as they were handed in."""
    kept = kept_value(service.board, OWN["setup"]) or {}
    return list(kept.get("added", ()))


async def join(service: Service, token: Token, sites: dict[str, Any]) -> list[str]:
    """Let sites (`SitesFile`) join; InputError if they cannot, ApiError if that takes longer than one waits."""
    config = service.config
    try:
        file = SitesFile.model_validate(sites)
    except ValidationError as error:
        raise InputError(sentence(error, SitesFile, sites)) from None
    for node in file.nodes:
        if node.name in config.setup.node_index:
            raise InputError(f"{node.name!r} is a site already; change it: POST /v1/sites/{node.name}")
    added = [*await service.read(lambda: _added(service)), sites]
    return await _join(service, token, config, added)


async def _join(service: Service, token: Token, wanted: Config, added: list[dict[str, Any]]) -> list[str]:
    before = service.config.setup
    scenario = configs.scenario_of(wanted.file, wanted.path, added)
    setup = grown(before, scenario.setup)
    check_fit(service.config.spec, scenario)
    names = [node.name for node in setup.nodes[len(before.nodes) :]]
    if not names:
        return []
    body = {
        "setup": plain(setup),
        "added": added,
        "fresh": await service.read(lambda: _fresh(service, setup)),
    }
    sites = [plain(node) for node in setup.nodes[len(before.nodes) :]]
    await service.noted(token, "site.join", ", ".join(names), None, sites)
    if not await service.switch("setup", token, body):
        raise ApiError(
            "unavailable", f"{', '.join(names)} will join when what was sold has run; GET /v1/sites shows it"
        )
    await service.until(lambda: service.board.row("board_sites", node=names[0]), CHANGE_S)
    return names


def _fresh(service: Service, setup: Setup) -> list[int]:
    """Nodes that were not there when the service began."""
    kept = kept_value(service.board, OWN["setup"])
    first = min(kept["fresh"]) if kept else len(service.config.setup.nodes)
    return list(range(first, len(setup.nodes)))


def differences(one: ServiceFile, other: ServiceFile) -> dict[str, Any]:
    """Tenants and limits of one CONFIG that are not so in another; null where there is no such tenant."""
    a, b = one.model_dump(), other.model_dump()
    names = [
        name for name in {**a["tenants"], **b["tenants"]} if a["tenants"].get(name) != b["tenants"].get(name)
    ]
    found: dict[str, Any] = {"tenants": {name: a["tenants"].get(name) for name in names}} if names else {}
    if a["limits"] != b["limits"]:
        found["limits"] = {name: each for name, each in a["limits"].items() if each != b["limits"][name]}
    return found


def _in_force(rows: list[Row]) -> dict[str, float]:
    """Capacities and price factors of sites, by name."""
    found: dict[str, float] = {}
    for row in rows:
        where = f"{row['node']}.{row['resource']}"
        found[f"capacity of {where}"] = row["capacity_milli"] / MILLI
        found[f"price of {where}"] = row["price_factor"]
    return found


async def reload(service: Service, token: Token) -> ReloadAnswer:
    """Read CONFIG again: tenants and limits, capacities and prices, sites that join."""
    wanted = configs.load(service.config.path)
    joined = await _join(service, token, wanted, await service.read(lambda: _added(service)))
    before, kept = service.config, await service.read(service.reload)
    rows = await service.read(lambda: service.board.rows("board_sites", most=100_000))
    changes = of_config(before, wanted, rows)
    old, new = differences(before.file, wanted.file), differences(wanted.file, before.file)
    if changes:
        old["sites"], new["sites"] = _in_force(rows), named(before.setup, changes)
        old["sites"] = {name: old["sites"].get(name) for name in new["sites"]}
    if old or new:
        await service.noted(token, "config.reload", str(wanted.path.name), old, new)
    if changes:
        await service.change_sites(token, {"changes": changes})
    return ReloadAnswer(joined=joined, changes=len(changes), with_the_next_start=kept)
