"""Routes of quotes: ask for a price, think, accept or decline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from tradewind.model.errors import InputError
from tradewind.service.app_state import Authorization, Key, service_of
from tradewind.service.errors import ApiError
from tradewind.service.models import QuoteAnswer, Receipt
from tradewind.service.routes_jobs import BODY, Tenant, submission
from tradewind.service.service import Service
from tradewind.service.terms import answer, receipt
from tradewind.service.tokens import Token
from tradewind.store.board import Row

routes = APIRouter(prefix="/v1/quotes", tags=["quotes"])
WAIT_S = 20.0
"""How long an answer of the engine is waited for."""


class Choice(BaseModel):
    """Which option is taken."""

    model_config = ConfigDict(extra="forbid")

    option: int = Field(default=0, ge=0, le=1_000_000)


@routes.post("", status_code=201, openapi_extra=BODY)
async def quote(
    request: Request, authorization: Authorization = None, idempotency_key: Key = "", tenant: Tenant = None
) -> QuoteAnswer:
    """Ask for a price. Without a limit of its own (private), the customer may think until the quote expires."""
    service = service_of(request)
    token = service.token(authorization, "write")
    if not service.config.spec.pricer:
        raise ApiError(
            "conflict",
            f"{service.config.spec.name} quotes no prices ({service.market}); submit the job: POST /v1/jobs",
        )
    found = await submission(service, request, service.tenant_of(token, tenant))
    job = await service.submit(found, "quote", token, idempotency_key)
    row = await service.until(lambda: _newest(service, job["id"]), WAIT_S)
    return _pending(job) if row is None else await service.read(lambda: answer(service, row, token))


def _pending(job: Mapping[str, Any]) -> QuoteAnswer:
    """A quote that waits for others to close, or for the engine."""
    return QuoteAnswer(
        id=f"q-{job['id']}", job=job["id"], tenant=job["tenant"], status="pending", made_s=job["submitted_s"],
        expires_s=job["submitted_s"],
    )  # fmt: skip


def _newest(service: Service, job: str) -> Row | None:
    """The newest quote of a job."""
    rows = service.board.rows("board_quotes", job=job, most=1000)
    return max(rows, key=lambda row: row["made_s"]) if rows else None


async def _row(service: Service, token: Token, id_: str) -> Row:
    row = await service.read(lambda: service.board.row("board_quotes", id=id_))
    if row is None and id_.startswith("q-"):  # the name of a quote that was still to come
        row = await service.read(lambda: _newest(service, id_[2:]))
    if row is None or (token.role == "tenant" and row["tenant"] != token.tenant):
        raise ApiError("not_found", f"there is no quote {id_!r}")
    return row


@routes.get("")
async def quotes(
    request: Request,
    authorization: Authorization = None,
    status: Annotated[str | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[QuoteAnswer]:
    """Quotes."""
    service = service_of(request)
    token = service.token(authorization, "read")
    equal: dict[str, Any] = {} if status is None else {"status": status}
    if token.role == "tenant":
        equal["tenant"] = token.tenant
    rows = await service.read(lambda: service.board.rows("board_quotes", most=limit, **equal))
    rows.sort(key=lambda row: -float(row["made_s"]))
    return await service.read(lambda: [answer(service, row, token) for row in rows])


@routes.get("/{id}")
async def one(request: Request, id: str, authorization: Authorization = None) -> QuoteAnswer:
    """One quote."""
    service = service_of(request)
    token = service.token(authorization, "read")
    row = await _row(service, token, id)
    return await service.read(lambda: answer(service, row, token))


@routes.post("/{id}/accept")
async def accept(
    request: Request,
    id: str,
    choice: Annotated[Choice | None, Body()] = None,
    authorization: Authorization = None,
) -> Receipt:
    """Take an option of a quote. Repeating it gives the same receipt; 409 price_moved if it no longer holds."""
    service = service_of(request)
    token = service.token(authorization, "write")
    option = (choice or Choice()).option
    row = await _row(service, token, id)
    if row["status"] == "open":
        options = len(json.loads(row["body"])["options"])
        if option >= options:
            raise ApiError("invalid", f"option is {option}; the quote has options 0 to {options - 1}")
        row = await _answer(service, row, token, option)
    found = json.loads(row["body"])
    if row["status"] != "accepted":
        fresh = await _fresh(service, token, row)
        raise ApiError(
            "price_moved",
            f"quote {id} is {row['status']} and holds no more; "
            + ("ask for a new one: POST /v1/quotes" if fresh is None else "a fresh one is in data"),
            None if fresh is None else fresh.model_dump(),
        )
    if found["taken"] != option:
        raise ApiError("conflict", f"option {found['taken']} of this quote was accepted, not {option}")
    return await service.read(lambda: receipt(service, row, token))


@routes.post("/{id}/decline")
async def decline(request: Request, id: str, authorization: Authorization = None) -> QuoteAnswer:
    """Take no option of a quote; what it holds is free at once."""
    service = service_of(request)
    token = service.token(authorization, "write")
    row = await _row(service, token, id)
    if row["status"] == "open":
        row = await _answer(service, row, token, -1)
    if row["status"] == "accepted":
        raise ApiError("conflict", f"it was accepted; cancel its job: POST /v1/jobs/{row['job']}/cancel")
    return await service.read(lambda: answer(service, row, token))


async def _fresh(service: Service, token: Token, row: Row) -> QuoteAnswer | None:
    """The quote in place of one that holds no more; where it expired, its job is quoted anew, as another job."""
    newest: Row | None = await service.read(lambda: _newest(service, row["job"]))
    while newest is not None and newest["status"] == "expired":
        old = await service.job(token, newest["job"])
        try:
            found = await service.handed_in(old)
            job = await service.submit(found, "quote", token, f"again {newest['id']}")
        except (InputError, ApiError):  # its tenant may not run it any more, or has too many
            return None
        newest = await service.until(partial(_newest, service, job["id"]), WAIT_S)
        if newest is None:
            return _pending(job)
    if newest is None or newest["status"] != "open":
        return None
    return await service.read(partial(answer, service, newest, token))


async def _answer(service: Service, row: Row, token: Token, option: int) -> Row:
    """Tell the engine, and wait until the quote is closed."""
    job = await service.job(token, row["job"])
    body = {"quote": json.loads(row["body"])["quote"], "option": option}
    await service.ask("answer", job, token, body, f"answer {row['id']} {option}")

    def closed() -> Row | None:
        found = service.board.row("board_quotes", id=row["id"])
        return found if found is not None and found["status"] != "open" else None

    found = await service.until(closed, WAIT_S)
    if found is None:
        raise ApiError(
            "unavailable", "the engine has not answered yet; repeat the request, which changes nothing twice"
        )
    return found
