"""What people are told of a quote beside its price: when it starts and ends, what it saves, the gap to the bound."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import fsum
from typing import Any

from tradewind.model.codec import compact
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.service.durations import MOST, quantile
from tradewind.service.errors import ApiError
from tradewind.service.models import Interval, JobAnswer, OptionAnswer, QuoteAnswer, Receipt
from tradewind.service.service import Service, job_document
from tradewind.service.tokens import Token
from tradewind.store.board import Row

FRESH_S = 1.0
"""How promises were kept is looked up again after this time."""
RULES = {
    "posted prices": "the posted price, agreed on acceptance; it does not change",
    "auction": "a price that does not depend on the bid, agreed on acceptance; it does not change",
    "brokerage": "list price less the part of the pooled discount, by use",
    "queue": "list price of the use less the part of the pooled discount",
}
"""Market -> how what a job pays comes about."""


@dataclass(slots=True)
class Kept:
    """How late jobs that bought a plan started and finished, in seconds after what it said."""

    at_s: float = 0.0
    start_s: list[float] = field(default_factory=list)
    finish_s: list[float] = field(default_factory=list)

    def late(self, of: str) -> float:
        """What nine of ten jobs were not later than."""
        values = getattr(self, f"{of}_s")
        return max(0.0, quantile(values, 0.9)) if values else 0.0


def kept(service: Service) -> Kept:
    """How promises were kept, of the quotes that were accepted last."""
    known: Kept | None = service.known.get("kept")
    if known is not None and time.monotonic() - known.at_s < FRESH_S:
        return known
    found, board = Kept(at_s=time.monotonic()), service.board
    rows = board.rows("board_quotes", status="accepted", most=MOST)
    ids = [row["job"] for row in rows]
    jobs = (
        {row["id"]: row for row in board.rows("board_jobs", id=ids, status="finished", most=MOST)}
        if ids
        else {}
    )
    for row in rows:
        if (job := jobs.get(row["job"])) is None or job["started_s"] is None:
            continue
        body = json.loads(row["body"])
        option = body["options"][body["taken"]]
        found.start_s.append(job["started_s"] - option["steps"][0]["from_s"])
        found.finish_s.append(job["ended_s"] - option["finish_s"])
    service.known["kept"] = found
    return found


def answer(service: Service, row: Row, token: Token) -> QuoteAnswer:
    """A quote as people see it; how the seller reckons a price is not for tenants, why there is none is."""
    names = ("id", "job", "tenant", "status", "made_s", "expires_s")
    body = json.loads(row["body"])
    if token.role == "tenant" and body["options"]:
        body["why"] = ""
    shown = service.board.row("board_jobs", id=row["job"])
    job = None if shown is None else service.reader.build(job_document(shown)["job"], 0, row["job"], 0).job
    options = [_option(service, job, each) for each in body.pop("options")]
    return QuoteAnswer(**{name: row[name] for name in names}, **body, options=options)


def _option(service: Service, job: Job | None, option: Mapping[str, Any]) -> OptionAnswer:
    late, start_s, finish_s = kept(service), option["steps"][0]["from_s"], option["finish_s"]
    alone, bound = (
        (None, None) if job is None else list_prices(service.config.setup, job, option.get("hours", {}))
    )
    price = option["price_usd"]
    return OptionAnswer(
        **{key: value for key, value in option.items() if key != "hours"},
        expected_usd=price,
        maximum_usd=price,
        start=Interval(p50_s=start_s, p90_s=start_s + late.late("start")),
        finish=Interval(p50_s=finish_s, p90_s=finish_s + late.late("finish")),
        kept=len(late.finish_s),
        alone_usd=alone,
        saves_usd=None if alone is None else alone - price,
        bound_usd=bound,
        gap=None if not bound else price / bound - 1,
    )


def list_prices(
    setup: Setup, job: Job, hours: Mapping[str, Sequence[float]]
) -> tuple[float | None, float | None]:
    """What the use of a plan costs by itself at list price, and the least that the same use could cost at any site.

    hours: site -> hours of its workers and of its servers. None where something that it uses has no list price.
    """
    demand = (dict(job.worker), dict(job.server))
    whole, least = [], []
    for site, counts in hours.items():
        node = setup.node_index[site]
        for per_unit, count in zip(demand, counts, strict=True):
            for resource, milli in per_unit.items():
                prices = [t.usd for (_, r), t in setup.rent.items() if r == resource]
                if not count:
                    continue
                if (tariff := setup.rent.get((node, resource))) is None or not prices:
                    return None, None
                units = count * milli / MILLI
                whole.append(units * tariff.usd[0])
                least.append(units * min(min(usd) for usd in prices))
    return (fsum(whole), fsum(least)) if whole else (None, None)


def receipt(service: Service, row: Row, token: Token) -> Receipt:
    """What was agreed, with what is needed to check it."""
    found, shown = json.loads(row["body"]), service.board.row("board_jobs", id=row["job"])
    if shown is None:
        raise ApiError("not_found", f"there is no job {row['job']!r}")
    option = found["options"][found["taken"]]
    return Receipt(
        quote=answer(service, row, token),
        job=JobAnswer(**job_document(shown)),
        mode=service.market,
        price_usd=option["price_usd"],
        payment_rule=RULES[service.market],
        discount_usd=0.0,
        certificate={
            "price_list": found["price_list"],
            "policy": found["policy"],
            "option_sha256": sha256(compact(option).encode()).hexdigest(),
            "posted": found.get("posted"),
        },
    )
