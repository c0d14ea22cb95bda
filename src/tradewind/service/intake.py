"""Takes requests into the engine: each becomes an event of the present instant, once, in the order of their numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.job import NO_PRIVATE_DATA, Customer, Job
from tradewind.model.view import Change, Event
from tradewind.service.config import Config
from tradewind.service.seal import Seal
from tradewind.service.submission import Reader, customer_of
from tradewind.store.board import Board, Row
from tradewind.worlds.fleet_world import FleetWorld

BATCH = 1000
"""Requests that are taken at one instant, at most."""


class Intake:
    """Called by the world before every instant.

    taken     number of the last request that was taken
    next_job  index of the next job
    known     id of a job -> its index, of jobs that are not over
    fresh     jobs taken since the last record: index -> row of the request
    """

    world: FleetWorld

    def __init__(self, config: Config, board: Board, seal: Seal) -> None:
        self._board, self._seal, self._reader = board, seal, Reader(config)
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
        for row in self._board.rows("requests", after=self.taken, most=BATCH):
            if (
                self.known.get(row["job"]) in self.fresh
            ):  # its job arrives at this instant; this comes after it
                return
            try:
                self._take(row, json.loads(row["body"]), at_us)
            except InputError as error:
                self.rejected.append((row, str(error)))
            self.taken, self._pending_us = row["number"], at_us

    def _take(self, row: Row, body: dict[str, Any], at_us: int) -> None:
        agenda, kind = self.world.agenda, row["kind"]
        if kind in ("submit", "quote"):
            index = self.next_job
            found = self._reader.build(body, index, row["job"], at_us)
            job = replace(found.job, tenant=row["tenant"])
            self.next_job += 1
            self.known[job.id], self.fresh[index] = index, row
            self._note(index, row)
            self.world.submit(job, self._customer(row), found.volumes)
        elif kind == "cancel" and row["job"] in self.known:
            agenda.report(Event(at_us, "cancelled", self.known[row["job"]]))
        elif kind == "answer" and row["job"] in self.known:
            answer = Event(at_us, "answered", self.known[row["job"]], body["option"], body["quote"])
            agenda.report(answer)
        elif kind == "change":
            agenda.change(Change(at_us, body["kind"], body["a"], body["b"], body["value"]))

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
        self.known.pop(job, None)
        self._thinking.discard(index)

    def remember(self, rows: list[Row]) -> None:
        """Know the jobs of a store again that are not over, with what is private; rows: of the board (`Board.active`)."""
        for row in rows:
            self.known[row["id"]] = row["job"]
            if row["sealed"] is not None or row["kind"] == "quote":
                self._note(row["job"], row)
                self.world.remember(row["job"], self._customer(row))
