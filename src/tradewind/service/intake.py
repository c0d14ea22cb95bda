"""Takes requests into the engine: each becomes an event of the present instant, once, in the order of their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tradewind.engine.ledger import Ledger
from tradewind.model.errors import InputError
from tradewind.model.job import NO_PRIVATE_DATA, Customer, Job
from tradewind.model.view import Event
from tradewind.service.config import Config
from tradewind.service.operations import SUSPENDED, Operations
from tradewind.service.seal import Seal
from tradewind.service.submission import Reader, customer_of
from tradewind.store.board import Board, Row
from tradewind.worlds.fleet_world import FleetWorld

BATCH = 1000
"""Requests that are taken at one instant, at most."""
Prepare = Callable[[Job, Customer], tuple[Job, Customer]]


def _as_it_is(job: Job, customer: Customer) -> tuple[Job, Customer]:
    return job, customer


class Intake:
    """Called by the world before every instant.

    taken     number of the last request that was taken
    next_job  index of the next job
    known     id of a job -> its index, of jobs that are not over
    fresh     jobs taken since the last record: index -> row of the request
    record    writes a record without an instant: requests were taken at which nothing happens
    """

    world: FleetWorld
    record: Callable[[str, dict[str, Any]], None]

    def __init__(self, config: Config, board: Board, seal: Seal, ledger: Ledger) -> None:
        self._board, self._seal, self._reader = board, seal, Reader(config)
        self.operations = Operations(board, ledger, sells=config.spec.pricer)
        self._hold_us = int(config.file.quotes.hold_s * 1e6 * config.file.speed)
        self.taken = self.next_job = 0
        self.known: dict[str, int] = {}
        self.fresh: dict[int, Row] = {}
        self.rejected: list[tuple[Row, str]] = []
        self._thinking: set[int] = set()
        self._pending_us = -1

    def __call__(self, at_us: int) -> None:
        if self.world.now_us < self._pending_us:  # what was taken before is not recorded yet
            return
        happens, before = self.operations.before(self, at_us), self.taken
        for row in self._requests():
            if self.known.get(row["job"]) in self.fresh:
                break  # its job arrives at this instant; this comes after it
            try:
                happens = self._take(row, json.loads(row["body"]), at_us) or happens
            except InputError as error:
                self.rejected.append((row, str(error)))
            self.taken = row["number"]
        if happens:
            self._pending_us = at_us
        elif self.taken > before:
            self.record("taken", {"at_us": max(0, self.world.now_us)})

    def _requests(self) -> list[Row]:
        return self._board.rows("requests", after=self.taken, most=BATCH)

    def _take(self, row: Row, body: dict[str, Any], at_us: int) -> bool:
        """Take a request; whether something happens at this instant."""
        agenda, kind = self.world.agenda, row["kind"]
        if kind in ("submit", "quote", "resume", "change") and self.operations.is_switching:
            return self._later(row)
        if kind in ("submit", "quote"):
            self.arrive(row, at_us, _as_it_is)
        elif kind == "cancel" and row["job"] in self.known:
            agenda.report(Event(at_us, "cancelled", self.known[row["job"]]))
        elif kind == "answer" and row["job"] in self.known:
            answer = Event(at_us, "answered", self.known[row["job"]], body["option"], body["quote"])
            agenda.report(answer)
        else:
            return self.operations.take(self, row, body, at_us)
        return True

    def _later(self, row: Row) -> bool:
        """While policy or sites change nothing arrives; nothing happens at this instant."""
        if row["kind"] in ("submit", "quote"):
            self.operations.put_off(row)
        else:  # a job that is suspended; one that waited is suspended by now
            self.operations.owned(row["job"], "switch")
        return False

    def arrive(self, row: Row, at_us: int, prepare: Prepare) -> None:
        """Let the job of a request arrive now."""
        index = self.next_job
        found = self._reader.build(json.loads(row["body"]), index, row["job"], at_us)
        job, customer = prepare(replace(found.job, tenant=row["tenant"]), self._customer(row))
        self.next_job += 1
        self.known[job.id], self.fresh[index] = index, row
        self._note(index, row)
        self.world.submit(job, customer, found.volumes)

    def _customer(self, row: Row) -> Customer:
        return NO_PRIVATE_DATA if row["sealed"] is None else customer_of(self._seal.open(row["sealed"]))

    def _note(self, index: int, row: Row) -> None:
        """Note whether the customer of a job thinks about its quote."""
        customer = self._customer(row)
        if row["kind"] == "quote" and customer.budget_usd is None and customer.valuation is None:
            self._thinking.add(index)

    def hold_us(self, job: Job) -> int:
        """How long the customer of a job may think."""
        return self._hold_us if job.index in self._thinking else 0

    def over(self, job: str, index: int) -> None:
        """Forget a job that is over."""
        if self.known.get(job) == index:
            del self.known[job]
        self._thinking.discard(index)

    def remember(self, rows: list[Row]) -> None:
        """Know again what is private of jobs that are not over; rows: of the board (`Board.private`)."""
        for row in rows:
            if row["status"] != SUSPENDED:
                self._note(row["index"], row)
                self.world.remember(row["index"], self._customer(row))
