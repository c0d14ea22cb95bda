"""Routes of jobs: submit, list, look, cancel, events, logs, why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from tradewind.files import documents, yaml_text
from tradewind.files.schemas_scenario import JobFile
from tradewind.model.errors import InputError
from tradewind.service.app_state import Authorization, Key, service_of
from tradewind.service.errors import ApiError
from tradewind.service.etas import dry_run as forecast_of
from tradewind.service.etas import eta_of
from tradewind.service.feed import document
from tradewind.service.models import DryRun, Eta, EventPage, JobAnswer, JobPage, Why
from tradewind.service.reasons import why_of
from tradewind.service.service import Service, job_document
from tradewind.service.submission import Submission
from tradewind.service.why import lines_of
from tradewind.store.board import Row
from tradewind.worlds.fleets.processes.launch import log_path

routes = APIRouter(prefix="/v1/jobs", tags=["jobs"])
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": JobFile.model_json_schema()} for kind in ("application/json", "application/yaml")
        },
    }
}
"""One job, as in a scenario file, in JSON or YAML."""
ANY_USD = 1e12
"""The budget of a dry run that states no limit."""
Tenant = Annotated[str | None, Query(description="for operators: the tenant for whom the job is submitted")]


async def submission(service: Service, request: Request, tenant: str) -> Submission:
    """The job in the body of a request; ApiError says what is wrong."""
    limit, size, parts = service.config.file.limits.body_bytes, 0, []
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise ApiError("too_large", f"the request has more than {limit} bytes; send less")
        parts.append(part)
    try:
        text = b"".join(parts).decode()
        is_yaml = "yaml" in request.headers.get("content-type", "") or not text.lstrip().startswith("{")
        raw = yaml_text.parse(text) if is_yaml else documents.parse_json(text)
        return service.reader.read(raw, tenant)
    except UnicodeDecodeError:
        raise ApiError("invalid", "the request is not UTF-8") from None
    except InputError as error:
        raise ApiError("invalid", str(error)) from None


@routes.post("", status_code=201, openapi_extra=BODY, responses={200: {"model": DryRun}})
async def submit(
    request: Request,
    response: Response,
    authorization: Authorization = None,
    idempotency_key: Key = "",
    tenant: Tenant = None,
    dry_run: Annotated[bool, Query(description="only say what would become of it")] = False,
) -> JobAnswer | DryRun:
    """Submit a job. It is on disk when this answers; the same Idempotency-Key gives the same answer."""
    service = service_of(request)
    token = service.token(authorization, "write")
    found = await submission(service, request, service.tenant_of(token, tenant))
    customer = found.customer
    declared = (customer.budget_usd, customer.valuation, found.job.utility)
    unlimited = service.config.spec.pricer and not any(each is not None for each in declared)
    if unlimited and not dry_run:
        raise ApiError(
            "invalid",
            "nobody could answer the price: give private.budget_usd, private.valuation or utility, or ask for a quote "
            "(POST /v1/quotes)",
        )
    if dry_run:
        response.status_code = 200
        sites = await service.read(lambda: service.board.rows("board_sites", most=10_000))
        lines = lines_of(service.config, found.job, sites, "submitted")[1:]  # it was not
        if unlimited:
            found = found._replace(customer=replace(customer, budget_usd=ANY_USD))
            lines.append("it states no limit; this is the cheapest offer")
        return await forecast_of(service, found, lines, reckons=token.role != "tenant")
    return JobAnswer(**await service.submit(found, "submit", token, idempotency_key))


@routes.get("")
async def jobs(
    request: Request,
    authorization: Authorization = None,
    status: Annotated[list[str] | None, Query(description="only jobs with one of these")] = None,
    tenant: Annotated[str | None, Query(description="for operators: only jobs of this tenant")] = None,
    before: Annotated[int | None, Query(description="`next` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JobPage:
    """Jobs, newest first."""
    service = service_of(request)
    token = service.token(authorization, "read")
    equal: dict[str, Any] = {} if not status else {"status": status}
    if token.role == "tenant":
        service.tenant_of(token, tenant)
        equal["tenant"] = token.tenant
    elif tenant is not None:
        equal["tenant"] = tenant
    rows = await service.read(lambda: service.board.rows("board_jobs", before=before, most=limit, **equal))
    found = [JobAnswer(**job_document(row)) for row in rows]
    return JobPage(jobs=found, next=rows[-1]["number"] if len(rows) == limit else None)


@routes.get("/{id}")
async def job(
    request: Request,
    id: str,
    authorization: Authorization = None,
    wait_s: Annotated[
        float, Query(ge=0, le=60, description="wait until it is over, at most this long")
    ] = 0.0,
) -> JobAnswer:
    """One job."""
    service = service_of(request)
    token = service.token(authorization, "read")
    row = await service.job(token, id)
    if wait_s and not row["is_over"]:
        number = row["number"]

        def over() -> Row | None:
            return service.board.row("board_jobs", number=number, is_over=True)

        row = await service.until(over, wait_s) or await service.job(token, id)
    return JobAnswer(**job_document(row))


@routes.post("/{id}/cancel")
async def cancel(
    request: Request, id: str, authorization: Authorization = None, idempotency_key: Key = ""
) -> JobAnswer:
    """Cancel a job. The answer comes when the engine has done it; a job that is over stays as it is."""
    service = service_of(request)
    token = service.token(authorization, "write")
    row = await service.job(token, id)
    if not row["is_over"]:
        await service.ask("cancel", row, token, {}, idempotency_key)
        row = await service.until(lambda: service.board.row("board_jobs", id=id, is_over=True), 10.0) or row
    return JobAnswer(**job_document(row))


@routes.get("/{id}/events", response_model=EventPage)
async def events(
    request: Request,
    id: str,
    authorization: Authorization = None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[int | None, Header(description="number of the last event that was seen")] = None,
    after: Annotated[int, Query(ge=0)] = 0,
) -> Any:
    """What happened to a job: JSON, or server-sent events (Accept: text/event-stream) that go on from `after`."""
    service = service_of(request)
    token = service.token(authorization, "read")
    await service.job(token, id)
    after = after if last_event_id is None else last_event_id
    if "text/event-stream" in accept:
        return streamed(service, after, {"id": id})
    rows = await service.read(lambda: service.board.rows("board_events", after=after, most=1000, id=id))
    return {"events": [document(row) for row in rows], "next": rows[-1]["number"] if rows else after}


def streamed(service: Service, after: int, equal: dict[str, Any]) -> StreamingResponse:
    """A stream of server-sent events."""
    return StreamingResponse(
        service.feed.stream(after, equal),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


@routes.get("/{id}/logs", response_class=StreamingResponse)
async def logs(
    request: Request,
    id: str,
    authorization: Authorization = None,
    rank: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    offset: Annotated[int, Query(ge=0, description="bytes to leave out, to resume")] = 0,
    follow: Annotated[bool, Query(description="go on until the job is over")] = False,
) -> StreamingResponse:
    """What a rank of a job wrote."""
    service = service_of(request)
    row = await service.job(service.token(authorization, "read"), id)
    found = _log(service, row, rank, offset, follow)
    return StreamingResponse(found, media_type="text/plain; charset=utf-8")


async def _log(service: Service, row: Row, rank: int, offset: int, follow: bool) -> AsyncIterator[bytes]:
    number, home = row["number"], await service.read(lambda: _home(service, row))
    while True:
        row = await service.read(lambda: service.board.rows("board_jobs", number=number)[0])
        over = bool(row["is_over"])
        if row["job"] is not None:
            path = log_path(service.data / "state", row["job"] if home is None else home, row["id"], rank)
            while part := await service.read(partial(_part, path, offset)):
                offset += len(part)
                yield part
        if over or not follow:
            return
        await asyncio.sleep(0.2)


def _home(service: Service, row: Row) -> int | None:
    """Number under which the directories of a job are, if it was resumed."""
    told = service.board.row("board_events", id=row["id"], kind="arrived")
    found: int | None = json.loads(told["body"]).get("home") if told is not None else None
    return found


def _part(path: Path, offset: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(65_536)
    except FileNotFoundError:
        return b""


@routes.get("/{id}/why")
async def why(request: Request, id: str, authorization: Authorization = None) -> Why:
    """Why a job is where it is: which rule, whose use or which price keeps it, and at which price or when it would run."""
    service = service_of(request)
    return await why_of(service, await service.job(service.token(authorization, "read"), id))


@routes.get("/{id}/eta")
async def eta(request: Request, id: str, authorization: Authorization = None) -> Eta:
    """When a job will start and finish: the policy, simulated forward on what is known; and how such forecasts were kept."""
    service = service_of(request)
    return await eta_of(service, await service.job(service.token(authorization, "read"), id))
