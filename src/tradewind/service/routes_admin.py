"""Routes of operators and admins: status, tenants, tokens, the audit log, sites; and health for machines."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.service.app_state import Authorization, service_of
from tradewind.service.config import Role
from tradewind.service.errors import ApiError
from tradewind.service.feed import document
from tradewind.service.models import (
    ActionAnswer,
    EventPage,
    StatusAnswer,
    TenantAnswer,
    TokenAnswer,
)
from tradewind.service.routes_jobs import streamed
from tradewind.service.tokens import Token
from tradewind.version import __version__

routes = APIRouter(prefix="/v1", tags=["operation"])
health = APIRouter(tags=["health"])


class TokenRequest(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    tenant: str = Field(default="", max_length=200, description="for the role tenant")
    scopes: list[Literal["read", "write"]] = Field(default_factory=list, description="none: all")
    name: str = Field(default="", max_length=200, description="whose it is, for the audit log")
    valid_s: float | None = Field(
        default=None, gt=0, le=1e10, description="seconds until it expires; null: never"
    )


@health.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether this process answers."""
    return {"status": "ok"}


@health.get("/readyz")
async def readyz(request: Request, response: Response) -> dict[str, str]:
    """Whether jobs are taken and run."""
    ready = service_of(request).engine.ready
    response.status_code = 200 if ready else 503
    return {"status": "ready" if ready else "the engine is not ready"}


@routes.get("/status")
async def status(request: Request, authorization: Authorization = None) -> StatusAnswer:
    """The service as a whole; a tenant sees its own jobs counted."""
    service = service_of(request)
    token = service.token(authorization, "read")
    equal: dict[str, Any] = {"tenant": token.tenant} if token.role == "tenant" else {}
    counts = await service.read(lambda: service.board.counts("board_jobs", "status", **equal))
    return StatusAnswer(
        name=service.config.file.name, version=__version__, policy=service.config.spec.name, market=service.market,
        ready=service.engine.ready, jobs=counts, record=service.engine.record if token.role != "tenant" else 0,
    )  # fmt: skip


@routes.get("/events", response_model=EventPage)
async def events(
    request: Request,
    authorization: Authorization = None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[int | None, Header(description="number of the last event that was seen")] = None,
    after: Annotated[int, Query(ge=0)] = 0,
) -> Any:
    """Everything that happened, as far as the token may see it: JSON, or server-sent events."""
    service = service_of(request)
    token = service.token(authorization, "read")
    equal: dict[str, Any] = {"tenant": token.tenant} if token.role == "tenant" else {}
    after = after if last_event_id is None else last_event_id
    if "text/event-stream" in accept:
        return streamed(service, after, equal)
    rows = await service.read(lambda: service.board.rows("board_events", after=after, most=1000, **equal))
    return {"events": [document(row) for row in rows], "next": rows[-1]["number"] if rows else after}


@routes.get("/tenants")
async def tenants(request: Request, authorization: Authorization = None) -> list[TenantAnswer]:
    """Tenants; a tenant sees itself."""
    service = service_of(request)
    token = service.token(authorization, "read")
    found = []
    for name, each in service.config.file.tenants.items():
        if token.role == "tenant" and name != token.tenant:
            continue
        counts = await service.read(partial(service.board.counts, "board_jobs", "status", tenant=name))
        found.append(
            TenantAnswer(name=name, jobs=counts, commands=each.commands, any_command=each.any_command)
        )
    return found


@routes.post("/tokens", status_code=201)
async def make_token(
    request: Request, body: TokenRequest, authorization: Authorization = None
) -> TokenAnswer:
    """Make a token; its secret is in this answer and nowhere else."""
    service = service_of(request)
    actor = service.token(authorization, "write", "admin").actor
    if (body.role == "tenant") != bool(body.tenant):
        raise ApiError("invalid", "a token of the role tenant names its tenant, and no other does")
    if body.tenant and body.tenant not in service.config.file.tenants:
        known = ", ".join(service.config.file.tenants)
        raise ApiError("invalid", f"tenant is {body.tenant!r}; known are {known}")
    expires = None if body.valid_s is None else time.time() + body.valid_s
    secret, token = await service.read(
        lambda: service.tokens.make(body.role, body.tenant, tuple(body.scopes), body.name, expires, actor)
    )
    return _shown(token, secret)


@routes.get("/tokens")
async def tokens(request: Request, authorization: Authorization = None) -> list[TokenAnswer]:
    """All tokens, without their secrets."""
    service = service_of(request)
    service.token(authorization, "read", "admin")
    return [_shown(token) for token in service.tokens.all()]


@routes.delete("/tokens/{id}")
async def revoke(request: Request, id: str, authorization: Authorization = None) -> TokenAnswer:
    """Revoke a token."""
    service = service_of(request)
    actor = service.token(authorization, "write", "admin").actor
    token = await service.read(lambda: service.tokens.revoke(id, actor))
    return _shown(token)


def _shown(token: Token, secret: str | None = None) -> TokenAnswer:
    return TokenAnswer(**token.document(), state=token.state, secret=secret)


@routes.get("/actions")
async def actions(
    request: Request,
    authorization: Authorization = None,
    before: Annotated[int | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[ActionAnswer]:
    """The audit log, newest first: who changed what; a tenant sees what concerns it."""
    service = service_of(request)
    token = service.token(authorization, "read")
    equal: dict[str, Any] = {"tenant": token.tenant} if token.role == "tenant" else {}
    rows = await service.read(lambda: service.board.rows("actions", before=before, most=limit, **equal))
    return [
        ActionAnswer(**{**row, "before": json.loads(row["before"]), "after": json.loads(row["after"])})
        for row in rows
    ]
