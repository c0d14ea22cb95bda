"""Routes on what is recorded: bills, exports, what-ifs."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from tradewind.model.errors import InputError
from tradewind.report.bills import Bill, csv_text
from tradewind.service import periods_work
from tradewind.service.app_state import Authorization, service_of
from tradewind.service.errors import ApiError
from tradewind.service.models import BillAnswer, BillPage, WhatIfAnswer
from tradewind.service.periods import FORMS, Span, span_of
from tradewind.service.service import Service

routes = APIRouter(prefix="/v1", tags=["records"])
PeriodText = Annotated[str | None, Query(max_length=100, description=f"{FORMS}; default: this month")]
WEEK_S = 7 * 86_400.0


def span(text: str | None) -> Span:
    """The period that is asked for; ApiError says what is wrong."""
    try:
        return span_of(text)
    except InputError as error:
        raise ApiError("invalid", str(error)) from None


async def bills_of(service: Service, period: Span, tenant: str | None) -> BillPage:
    """The bills of a period, of one tenant or of all."""
    found = await service.clerk.do(service.engine.record, periods_work.bills, service.source, period)
    names = list(service.config.file.tenants) if tenant is None else [tenant]
    rows = [BillAnswer(**found.get(name, Bill(tenant=name)).document()) for name in names]
    return BillPage(
        period=period.name, from_s=period.from_s, to_s=min(period.to_s, time.time()), market=service.market,
        policy=service.config.spec.name, price_list=await service.read(service.price_list), bills=rows,
    )  # fmt: skip


@routes.get("/bills", responses={200: {"content": {"text/csv": {}}}})
async def bills(
    request: Request,
    response: Response,
    authorization: Authorization = None,
    tenant: Annotated[str | None, Query(description="for operators: only this tenant")] = None,
    period: PeriodText = None,
    format: Annotated[Literal["json", "csv"], Query()] = "json",
) -> BillPage:
    """Bills: usage at list price, the pooled discount and its split, payments, refunds; at the prices of the decisions."""
    service = service_of(request)
    token = service.token(authorization, "read")
    if token.role == "tenant" or tenant is not None:
        tenant = service.tenant_of(token, tenant)
    page = await bills_of(service, span(period), tenant)
    return csv_of(page) if format == "csv" else page  # type: ignore[return-value]


def csv_of(page: BillPage) -> Response:
    """The bills as a table."""
    text = csv_text(each.bill() for each in page.bills)
    name = "".join(c if c.isalnum() or c in "-." else "_" for c in page.period)
    headers = {"Content-Disposition": f'attachment; filename="bill-{name}.csv"'}
    return Response(text, media_type="text/csv", headers=headers)


@routes.get("/export")
async def export(
    request: Request,
    authorization: Authorization = None,
    period: PeriodText = None,
    part: Annotated[Literal["scenario", "run"], Query(description="which of the two files")] = "scenario",
) -> dict[str, Any]:
    """A period as a scenario file (the script of what happened) or as its run file, for `tradewind audit` and `whatif`."""
    service = service_of(request)
    service.token(authorization, "read", "admin", "operator")
    return Response(await export_of(service, period, part), media_type="application/json")  # type: ignore[return-value]


async def export_of(service: Service, period: str | None, part: str) -> bytes:
    """The scenario or the run file of a period."""
    task = (periods_work.export, service.source, span(period))
    found: tuple[bytes, bytes] = await service.clerk.do(service.engine.record, *task)
    return found[part == "run"]


@routes.get("/whatif")
async def whatif(
    request: Request,
    policy: Annotated[str, Query(max_length=200, description="name of another policy")],
    authorization: Authorization = None,
    params: Annotated[str, Query(max_length=2000, description="its parameters, as JSON")] = "{}",
    period: Annotated[
        str | None, Query(max_length=100, description=f"{FORMS}; default: the past week")
    ] = None,
) -> WhatIfAnswer:
    """Another policy on what happened, side by side with the recorded one; nothing changes."""
    service = service_of(request)
    service.token(authorization, "read", "admin", "operator")
    return await whatif_of(service, policy, params, period)


async def whatif_of(service: Service, policy: str, params: str, period: str | None) -> WhatIfAnswer:
    """What a policy had made of a period, by default of the past week."""
    try:
        if not isinstance(json.loads(params), dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise ApiError("invalid", f"params must be a JSON object, such as {{}}: {error}") from None
    now = time.time()
    wanted = span(period) if period else Span(now // 60 * 60 - WEEK_S, now // 60 * 60 + 60, "the past week")
    task = (periods_work.whatif, service.source, wanted, policy, params)
    return WhatIfAnswer(period=wanted.name, **await service.clerk.do(service.engine.record, *task))
