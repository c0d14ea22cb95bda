"""Writes the engine's records together with the rows that people see, one transaction each."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tradewind.model.result import EndedJob
from tradewind.service.intake import Intake
from tradewind.service.projector import Projector
from tradewind.service.sites import Sites
from tradewind.store.rows import Put
from tradewind.store.store import Entry, Store
from tradewind.worlds.fleet import Fleet, Wanted


class Recorder:
    """The store of a live session (engine.live.Store). `told` is called after every transaction.

    What is recorded between two instants waits for `flush`, and an instant is written with it: one transaction.
    """

    def __init__(
        self, store: Store, projector: Projector, intake: Intake, sites: Sites, told: Callable[[], None]
    ) -> None:
        self.store, self._projector, self._intake = store, projector, intake
        self._sites, self._told = sites, told
        self._entries: list[Entry] = []
        self._rows: list[Put] = []
        self.alarms = 0

    def append(self, kind: str, record: Mapping[str, Any], ended: Sequence[EndedJob] = ()) -> None:
        """Take one record with its rows. Instants and requests are on disk when this returns, all else after `flush`."""
        projector, intake = self._projector, self._intake
        if kind == "instant":
            record = {**record, "taken": intake.taken, "next_job": intake.next_job}
            self._rows += [*projector.instant(record, intake.fresh), *self._sites.changed()]
            intake.fresh = {}
            for each in ended:
                intake.over(each.id, each.job)
        elif kind in ("attempt", "over"):
            self._rows += (projector.attempt if kind == "attempt" else projector.over)(record)
        elif kind == "alarm":
            self.alarms += 1
            self._rows += projector.alarm(record)
        elif kind == "taken":
            record = {**record, "taken": intake.taken, "next_job": intake.next_job}
        self._rows += intake.operations.puts
        intake.operations.puts = []
        for request, why in intake.rejected:
            self._rows += projector.rejected(request, why, time.time())
        intake.rejected = []
        self._entries.append(Entry(kind, record, record.get("at_us", 0), ended))
        if kind in ("instant", "taken"):
            self.flush()

    def flush(self) -> None:
        """Write what was taken; it is on disk when this returns."""
        if self._entries:
            entries, rows = self._entries, self._rows
            self._entries, self._rows = [], []
            self.store.write(entries, rows)
            self._told()

    def read(self) -> list[dict[str, Any]]:
        """All records so far."""
        return self.store.read()


class RecordedFleet:
    """A fleet that is told nothing before it is on disk."""

    def __init__(self, fleet: Fleet, recorder: Recorder) -> None:
        self._recorder = recorder
        self.capabilities, self.observe, self.logs, self.close = (
            fleet.capabilities, fleet.observe, fleet.logs, fleet.close
        )  # fmt: skip
        self._reconcile = fleet.reconcile

    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Write, then make it so."""
        self._recorder.flush()
        self._reconcile(wanted)
