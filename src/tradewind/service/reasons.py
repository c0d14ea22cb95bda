"""The whole answer to why a job waits: the rule, whose use, which price, and when it would run."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence

from tradewind.service.errors import ApiError
from tradewind.service.etas import eta_of
from tradewind.service.models import Interval, Why
from tradewind.service.service import Service, job_document
from tradewind.service.why import lines_of
from tradewind.store.board import Row

PATIENCE_S = 4.0
"""How long a forecast is waited for; why a job waits is said without it, too."""
WAITING = ("submitted", "waiting")


async def why_of(service: Service, row: Row, *, forecast: bool = True) -> Why:
    """Why a job is where it is; forecast: simulate when it would start."""
    sites = await service.read(lambda: service.board.rows("board_sites", most=10_000))
    job = service.reader.build(job_document(row)["job"], 0, row["id"], 0).job
    said = lines_of(service.config, job, sites, row["status"], row["reason"])
    found = Why(
        id=row["id"], status=row["status"], rule=f"{service.config.spec.name}: {service.config.spec.summary}", lines=said
    )  # fmt: skip
    if row["status"] in ("quoted", "declined"):
        found.price_usd = await service.read(lambda: _lowest(service, row["id"]))
        if found.price_usd is not None:
            price = f"{found.price_usd:.6g} USD"
            found.lines.append(
                f"the lowest price is {price}, for whoever takes it while the quote is open"
                if row["status"] == "quoted"
                else f"the lowest price was {price}; ask for a new quote to take it, or state a higher limit"
            )
    if row["status"] in WAITING:
        found.lines += await service.read(lambda: _use(service, row, sites))
        found.start = await _start(service, row) if forecast else Interval()
        if found.start.p50_s is not None:
            after = f"in {max(0.0, found.start.p50_s - time.time()):.0f} s"
            late = (
                ""
                if found.start.p90_s is None
                else f", and with 90% in {max(0.0, found.start.p90_s - time.time()):.0f} s"
            )
            found.lines.append(f"simulated forward, the policy starts it {after}{late}")
    return found


def _use(service: Service, row: Row, sites: Sequence[Row]) -> list[str]:
    """Whose use keeps it waiting: its tenant's own jobs, or those of others, who are not named."""
    board = service.board
    own = board.count("board_jobs", tenant=row["tenant"], status=["running", "scheduled"])
    others = board.count("board_jobs", status=["running", "scheduled"]) - own
    ahead = board.count("board_jobs", status=list(WAITING), before=row["number"])
    if not own and not others and not ahead:
        return []
    return [
        f"{own} jobs of {row['tenant']} and {others} of others have room now; {ahead} that came before it wait, too"
    ]


def _lowest(service: Service, id_: str) -> float | None:
    rows = service.board.rows("board_quotes", job=id_, most=20)
    newest = max(rows, key=lambda row: float(row["made_s"])) if rows else None
    prices = [option["price_usd"] for option in json.loads(newest["body"])["options"]] if newest else []
    return min(prices) if prices else None


async def _start(service: Service, row: Row) -> Interval:
    """When it would start; nothing if the forecast takes too long."""
    task = asyncio.ensure_future(eta_of(service, row))
    done, _ = await asyncio.wait({task}, timeout=PATIENCE_S)
    task.add_done_callback(lambda each: each.cancelled() or each.exception())  # nobody waits for it any more
    if not done:
        return Interval()
    try:
        return task.result().start
    except ApiError:
        return Interval()
