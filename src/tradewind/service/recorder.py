"""Writes the engine's records together with the rows that people see, one transaction each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tradewind.model.result import EndedJob
from tradewind.service.intake import Intake
from tradewind.service.projector import Projector
from tradewind.service.sites import Sites
from tradewind.store.store import Entry, Store


class Recorder:
    """The store of a live session (engine.live.Store). `told` is called after every transaction."""

    def __init__(
        self, store: Store, projector: Projector, intake: Intake, sites: Sites, told: Callable[[], None]
    ) -> None:
        self.store, self._projector, self._intake = store, projector, intake
        self._sites, self._told = sites, told
        self.alarms = 0

    def append(self, kind: str, record: Mapping[str, Any], ended: Sequence[EndedJob] = ()) -> None:
        """Write one record with its rows; it is on disk when this returns."""
        projector, intake = self._projector, self._intake
        if kind == "instant":
            record = {**record, "taken": intake.taken, "next_job": intake.next_job}
            rows = [*projector.instant(record, intake.fresh), *self._sites.changed()]
            intake.fresh = {}
            for each in ended:
                intake.over(each.id, each.job)
        elif kind in ("attempt", "over"):
            rows = (projector.attempt if kind == "attempt" else projector.over)(record)
        elif kind == "alarm":
            self.alarms += 1
            rows = projector.alarm(record)
        else:
            rows = []
            if kind == "taken":
                record = {**record, "taken": intake.taken, "next_job": intake.next_job}
        rows += intake.operations.puts
        intake.operations.puts = []
        for request, why in intake.rejected:
            rows += projector.rejected(request, why, time.time())
        intake.rejected = []
        self.store.write([Entry(kind, record, record.get("at_us", 0), ended)], rows)
        self._told()

    def read(self) -> list[dict[str, Any]]:
        """All records so far."""
        return self.store.read()
