"""Pages of those who operate the service: the audit, and what they change."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from tradewind.service.feed import document
from tradewind.service.pages import MOST_ROWS, Visit, sites_of, told_to
from tradewind.service.routes_sites import prices_of

routes = APIRouter(include_in_schema=False)


@routes.get("/audit")
async def audit(request: Request) -> HTMLResponse:
    """Who changed what, and what raised an alarm."""
    visit = Visit(request)
    visit.needs("admin", "operator")
    board = visit.service.board
    actions = await visit.service.read(lambda: board.rows("actions", most=MOST_ROWS))
    alarms = await visit.service.read(
        lambda: board.rows("board_events", most=MOST_ROWS, kind=["alarm", "violation", "failed"])
    )
    kinds = ["planned", "verdict", "quoted", "accepted", "declined"]
    decided = await visit.service.read(lambda: board.rows("board_events", most=30, kind=kinds))
    told = [document(row) for row in alarms]
    return await visit.page(
        "audit.html", actions=actions, alarms=told, decisions=await told_to(visit, decided, reckons=True),
        violations=sum("audit violation" in str(each["body"].get("text", "")) for each in told),
    )  # fmt: skip


def _short_list(tariffs: dict[str, Any]) -> dict[str, Any]:
    """Tariffs as short as a price list may say them."""
    return {
        name: each["usd"][0]
        if len(each["usd"]) == 1
        else {key: value for key, value in each.items() if value != "graduated"}
        for name, each in tariffs.items()
    }


@routes.get("/admin")
async def admin(request: Request) -> HTMLResponse:
    """Tokens and sites."""
    visit = Visit(request)
    visit.needs("admin", "operator")
    service, tokens = visit.service, None
    if visit.token.role == "admin":
        tokens = [{**token.document(), "state": token.state} for token in service.tokens.all()]
    capacity, found = dict.fromkeys(service.config.setup.resources, 4), await prices_of(service)
    rent = ",\n".join(
        f" {json.dumps(site)}: {json.dumps(_short_list(each))}" for site, each in found.rent.items()
    )
    joining = json.dumps({"nodes": [{"name": "new-site", "kind": "server", "capacity": capacity}]})
    shown = {"tokens": tokens, "list": found, "joining": joining, "rent": rent}
    return await visit.page("admin.html", sites=await sites_of(service), **shown)
