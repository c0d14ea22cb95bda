"""Pages on what is recorded: bills to look at and to download, and what another policy would have made of it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from tradewind.model.errors import TradewindError
from tradewind.model.spec import Spec
from tradewind.registry import policies
from tradewind.service.current import with_policy
from tradewind.service.errors import ApiError
from tradewind.service.pages import Visit
from tradewind.service.routes_records import bills_of, csv_of, export_of, span, whatif_of
from tradewind.service.service import Service

routes = APIRouter(include_in_schema=False)
Period = Annotated[str, Query(max_length=100)]
Policy = Annotated[str, Query(max_length=200)]


@routes.get("/bills")
async def bills(request: Request, period: Period = "") -> HTMLResponse:
    """Bills of a period."""
    visit = Visit(request)
    wanted = span(period or None)
    page = await bills_of(visit.service, wanted, visit.own.get("tenant"))
    return await visit.page("bills.html", page=page, period=wanted.name)


@routes.get("/parts/bills")
async def bills_part(request: Request) -> HTMLResponse:
    """What every tenant owes this month: list price, its part of the pooled discount, what is due."""
    visit = Visit(request)
    page = await bills_of(visit.service, span(None), visit.own.get("tenant"))
    saved = -sum(bill.discount_usd for bill in page.bills)
    return visit.part("tenants_bills.html", page=page, saved=saved, prices=visit.service.config.spec.pricer)


@routes.get("/bills.csv")
async def bills_file(request: Request, period: Period = "") -> Response:
    """Bills of a period as a file."""
    visit = Visit(request)
    return csv_of(await bills_of(visit.service, span(period or None), visit.own.get("tenant")))


@routes.get("/export/{part}.json")
async def export_file(request: Request, part: Literal["scenario", "run"], period: Period = "") -> Response:
    """A period as a scenario file, or as its run file."""
    visit = Visit(request)
    visit.needs("admin", "operator")
    return Response(await export_of(visit.service, period or None, part), media_type="application/json")


def _runs(service: Service, spec: Spec) -> bool:
    """Whether a policy can decide for this service."""
    if not spec.works >= service.config.spec.works:
        return False
    try:
        with_policy(service.config, {"name": spec.name, "params": {}, "seed": 0})
    except TradewindError:
        return False
    return True


@routes.get("/whatif")
async def whatif(request: Request, policy: Policy = "", period: Period = "") -> HTMLResponse:
    """Another policy on what happened."""
    visit = Visit(request)
    visit.needs("admin", "operator")
    service, found, wrong = visit.service, None, ""
    if policy:
        try:
            found = await whatif_of(service, policy, "{}", period or None)
        except ApiError as error:
            wrong = str(error)
    runnable = await service.read(lambda: [each.name for each in policies.all() if _runs(service, each)])
    known = sorted(runnable, key=lambda name: (name == service.config.spec.name, name))  # another one first
    return await visit.page(
        "whatif.html", found=found, wrong=wrong, known=known, chosen=policy, period=period
    )
