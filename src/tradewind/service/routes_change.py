"""Routes that change what runs: jobs (suspend, resume, change) and the policy."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from tradewind.model.errors import InputError, TradewindError
from tradewind.service.app_state import Authorization, Key, service_of
from tradewind.service.current import with_policy
from tradewind.service.errors import ApiError
from tradewind.service.models import JobAnswer, PolicyAnswer
from tradewind.service.routes_records import whatif_of
from tradewind.service.service import Service, job_document
from tradewind.service.submission import sealed_text
from tradewind.service.tokens import note
from tradewind.store.board import Row
from tradewind.store.desk import Writing

routes = APIRouter(prefix="/v1", tags=["changes"])
WAIT_S = 15.0
"""How long an answer of the engine is waited for."""
CHANGED = ("utility", "private", "workers", "workers_min", "workers_max", "nodes", "work", "env")
"""Fields of a job that can be changed while it waits."""


class PolicyRequest(BaseModel):
    """The policy that decides from the next slot on."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=200)
    params: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(default=0, ge=0, le=2**53)


async def _settled(service: Service, id_: str, old: Row) -> JobAnswer:
    """The job once its status or its place in the engine has changed."""

    def moved() -> Row | None:
        row = service.board.row("board_jobs", id=id_)
        return row if row is not None and (row["status"], row["job"]) != (old["status"], old["job"]) else None

    row = await service.until(moved, WAIT_S)
    if row is None:
        raise ApiError(
            "unavailable", "the engine has not answered yet; look at the job, or repeat the request"
        )
    return JobAnswer(**job_document(row))


def _not_sold(service: Service, what: str) -> None:
    if service.config.spec.pricer:
        raise ApiError(
            "conflict",
            f"what was sold cannot be {what}: its price is for its slots; cancel it, or let it run",
        )


@routes.post("/jobs/{id}/suspend")
async def suspend(
    request: Request, id: str, authorization: Authorization = None, idempotency_key: Key = ""
) -> JobAnswer:
    """Suspend a job: its ranks write their checkpoints and end, and it keeps its place for people until it is resumed."""
    service = service_of(request)
    token = service.token(authorization, "write")
    row = await service.job(token, id)
    if row["status"] == "suspended" or await service.repeats("suspend", row, {}, idempotency_key):
        return JobAnswer(**job_document(row))
    _not_sold(service, "suspended")
    if row["is_over"] or row["status"] == "submitted":
        raise ApiError("conflict", f"it is {row['status']}; jobs that wait or run can be suspended")
    await service.ask("suspend", row, token, {}, idempotency_key)
    return await _settled(service, id, row)


@routes.post("/jobs/{id}/resume")
async def resume(
    request: Request, id: str, authorization: Authorization = None, idempotency_key: Key = ""
) -> JobAnswer:
    """Resume a suspended job: it goes on from its checkpoints, with the work that is left."""
    service = service_of(request)
    token = service.token(authorization, "write")
    row = await service.job(token, id)
    if await service.repeats("resume", row, {}, idempotency_key):
        return JobAnswer(**job_document(row))
    if row["status"] != "suspended":
        raise ApiError("conflict", f"it is {row['status']}; only suspended jobs can be resumed")
    await service.ask("resume", row, token, {}, idempotency_key)
    return await _settled(service, id, row)


@routes.post("/jobs/{id}/change")
async def change(
    request: Request,
    id: str,
    authorization: Authorization = None,
    idempotency_key: Key = "",
    fields: Annotated[dict[str, Any] | None, Body(description=f"new values of: {', '.join(CHANGED)}")] = None,
) -> JobAnswer:
    """Change a job that waits or is suspended: its bid with its deadline (utility), budget (private), workers or work."""
    service, given = service_of(request), fields or {}
    token = service.token(authorization, "write")
    row = await service.job(token, id)
    if await service.repeats("change", row, given, idempotency_key):
        return JobAnswer(**job_document(row))
    _not_sold(service, "changed")
    if wrong := [name for name in given if name not in CHANGED]:
        raise ApiError("invalid", f"{wrong[0]} cannot be changed; {', '.join(CHANGED)} can")
    if row["status"] not in ("waiting", "suspended"):
        raise ApiError("conflict", f"it is {row['status']}; suspend it first, then change and resume it")
    try:
        found = service.reader.read({**job_document(row)["job"], **given}, row["tenant"])
    except InputError as error:
        raise ApiError("invalid", str(error)) from None
    body, private = json.dumps(found.document), sealed_text(found.customer)

    def task(writing: Writing) -> None:
        values: dict[str, Any] = {"body": body}
        if "private" in given:
            values["sealed"] = None if private is None else service.seal(private)
        writing.update("requests", {"number": row["number"]}, **values)
        writing.update("board_jobs", {"number": row["number"]}, body=body)
        shown = {name: value for name, value in given.items() if name != "private"}
        before = {name: job_document(row)["job"].get(name) for name in shown}
        note(writing, token.actor, row["tenant"], "job.change", id, before, shown)
        if row["status"] != "suspended":  # a suspended job is read again when it is resumed
            service.request(writing, "change", row, token, {})

    await service.write(task, service.once("change", row, given, idempotency_key))
    if row["status"] == "suspended":
        return JobAnswer(**job_document(await service.job(token, id)))
    return await _settled(service, id, row)


# ---------------------------------------------------------------------- the policy
@routes.post("/policy")
async def policy(
    request: Request,
    body: PolicyRequest,
    authorization: Authorization = None,
    apply: Annotated[
        bool, Query(description="false: only say what it would have made of the past week")
    ] = False,
) -> PolicyAnswer:
    """Change the policy at the beginning of the next slot, after a what-if on the past week. Jobs go on from checkpoints."""
    service = service_of(request)
    token = service.token(authorization, "write", "admin")
    wanted = body.model_dump()
    try:
        with_policy(service.config, wanted)
    except TradewindError as error:
        raise ApiError("invalid", str(error)) from None
    try:
        found = await whatif_of(service, body.name, json.dumps(body.params), None)
    except ApiError as error:
        if "nothing was recorded" not in str(error):
            raise
        found = None
    if not apply:
        return PolicyAnswer(policy=service.config.spec.name, whatif=found, applied=False)
    before = {"name": service.config.spec.name, "params": dict(service.config.file.policy.params)}
    await service.noted(token, "policy.change", body.name, before, wanted)
    done = await service.switch("policy", token, wanted)
    return PolicyAnswer(policy=service.config.spec.name, whatif=found, applied=done)
