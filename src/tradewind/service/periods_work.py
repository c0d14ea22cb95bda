"""What is made of a period of the records: bills, exports, what-ifs. Tasks of the clerk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tradewind import api
from tradewind.engine.snapshot import without_collections
from tradewind.model.errors import InputError
from tradewind.registry import policies
from tradewind.report.bills import Bill, bills_of
from tradewind.report.summary import metrics_of
from tradewind.service.periods import Span, us_at
from tradewind.store.board import Board
from tradewind.worlds.period import Period

MOST_DIFFERENT = 8
"""Jobs that a what-if names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The records of a service: address of its store, and the length of a slot."""

    store: str
    slot_us: int


def period_of(source: Source, span: Span) -> Period | None:
    """A period of the records, in whole slots; None where nothing was recorded in it."""
    with Board(source.store) as board:
        begin, end = us_at(board, span.from_s), us_at(board, span.to_s)
    if begin is None:
        return None
    slot = source.slot_us
    try:
        first, last = begin // slot * slot, None if end is None else end // slot * slot
        return api.period(source.store, first, last) if last is None or first < last else None
    except InputError as error:
        if "nothing is recorded" in str(error):
            return None
        raise


@without_collections()
def bills(source: Source, span: Span) -> dict[str, Bill]:
    """Tenant -> bill."""
    found = period_of(source, span)
    return {} if found is None else bills_of(found, policies.get(found.run.policy))


@without_collections()
def export(source: Source, span: Span) -> tuple[bytes, bytes]:
    """Scenario file and run file of a period."""
    found = _needed(source, span)
    with TemporaryDirectory() as folder:
        scenario, run = Path(folder) / "scenario.json", Path(folder) / "run.json"
        api.dump(found.scenario, scenario)
        api.save(api.with_bills(found.scenario, found.run, policies.get(found.run.policy)), run)
        return scenario.read_bytes(), run.read_bytes()


def whatif(source: Source, span: Span, policy: str, params: str) -> dict[str, Any]:
    """Another policy on a period, beside what happened; params: JSON."""
    found = _needed(source, span)
    compared = api.whatif(found.scenario, found.run, policy, params=json.loads(params), most=MOST_DIFFERENT)
    names = [name for name in compared.runs[0].metrics if all(name in run.metrics for run in compared.runs)]
    return {
        "objective": compared.recorded.objective,
        "jobs": len(found.scenario.jobs),
        "runs": [
            {"name": name, "metrics": {key: metrics_of(run)[key] for key in names}}
            for name, run in zip(compared.names, compared.runs, strict=True)
        ],
        "notes": [*found.notes, *compared.notes],
        "different": [
            {"job": each.job, "score": each.score, "reasons": list(each.reasons)}
            for each in compared.difference.largest
        ],
    }


def _needed(source: Source, span: Span) -> Period:
    found = period_of(source, span)
    if found is None:
        raise InputError(f"nothing was recorded in {span.name}; name another period")
    return found
