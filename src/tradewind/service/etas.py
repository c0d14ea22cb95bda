"""When jobs will start and finish, and what would become of a job: answers made of forecasts."""

from __future__ import annotations

import json
import time
from typing import Any

from tradewind.service import forecast
from tradewind.service.durations import MOST, kept
from tradewind.service.forecast import Future, Place
from tradewind.service.models import Calibration, DryRun, Eta, Interval
from tradewind.service.service import Service
from tradewind.service.submission import Submission, sealed_text
from tradewind.store.board import Row
from tradewind.store.desk import Writing

FRESH_S = 5.0
"""A forecast is made again after this time."""


def _place(service: Service) -> Place:
    return Place(config=service.config.path, data=service.data, asked=int(time.time() / FRESH_S))


def _interval(found: dict[str, Future], of: str, job: str) -> Interval:
    p50, p90 = (getattr(found[name], of).get(job) for name in ("p50", "p90"))
    return Interval(p50_s=p50, p90_s=None if p50 is None or p90 is None else max(p50, p90))


async def eta_of(service: Service, row: Row) -> Eta:
    """The forecast of a job; the first one is kept, so that it can be compared with what comes."""
    id_, start, finish, measured, known = row["id"], Interval(), Interval(), 0, None
    if row["is_over"]:
        start = Interval(p50_s=row["started_s"], p90_s=row["started_s"])
        finish = Interval(p50_s=row["ended_s"], p90_s=row["ended_s"])
        told = await service.read(lambda: service.board.row("board_events", id=id_, kind="measured"))
        known = None if told is None else json.loads(told["body"])
    else:
        found = await service.clerk.do(service.engine.record, forecast.futures, _place(service))
        start, finish = _interval(found, "start_s", id_), _interval(found, "finish_s", id_)
        measured, known = found["p50"].measured, found["p50"].calibration.get(id_)
        if row["started_s"] is not None:
            start = Interval(p50_s=row["started_s"], p90_s=row["started_s"])
        await _note(service, row, finish)
    return Eta(
        id=id_,
        status=row["status"],
        start=start,
        finish=finish,
        measured=measured,
        calibration=None if known is None else Calibration(**known),
        kept=await kept_of(service),
    )


async def _note(service: Service, row: Row, finish: Interval) -> None:
    """Keep the first forecast of a job."""
    if finish.p50_s is None or finish.p90_s is None:
        return
    if await service.read(lambda: service.board.row("board_events", id=row["id"], kind="eta")) is not None:
        return
    body = json.dumps({"p50_s": finish.p50_s, "p90_s": finish.p90_s})

    def task(writing: Writing) -> None:
        writing.insert(
            "board_events", id=row["id"], tenant=row["tenant"], at_s=time.time(), kind="eta", body=body
        )

    await service.write(task)


async def kept_of(service: Service) -> dict[str, float]:
    """How well forecasts were kept, of the jobs that finished last."""

    def look() -> dict[str, float]:
        rows = service.board.rows("board_jobs", status="finished", most=MOST)
        ended = {row["id"]: row["ended_s"] for row in rows}
        told = service.board.rows("board_events", kind="eta", id=list(ended), most=MOST) if ended else []
        return dict(kept(told, ended))

    return await service.read(look)


async def dry_run(service: Service, found: Submission, lines: list[str], *, reckons: bool) -> DryRun:
    """What would become of a job that is submitted now: where, at what price, when; reckons: say how the seller reckons."""
    added, private = json.dumps(found.document), sealed_text(found.customer) or ""
    task = (forecast.futures, _place(service), added, private, found.job.tenant)
    made = await service.clerk.do(service.engine.record, *task)
    new: dict[str, Any] = made["p50"].new
    quote, taken = new.get("quote", {}), new.get("taken", -1)
    if new.get("refused"):
        lines = [
            *lines,
            f"it would be {new['refused']}"
            + (f": {quote['refused']} {quote['why']}".rstrip() if quote.get("refused") else ""),
        ]
    if quote.get("options") and not reckons:
        quote = {**quote, "why": ""}
    return DryRun(
        valid=True, lines=lines, place=new.get("place", {}), quote=quote,
        price_usd=quote["options"][taken]["price_usd"] if quote and taken >= 0 else None,
        start=_interval(made, "start_s", "this"), finish=_interval(made, "finish_s", "this"),
    )  # fmt: skip
