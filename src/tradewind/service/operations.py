"""Requests that change jobs, sites or the policy of a running engine.

A job is suspended by taking it from the policy, as if it were cancelled, and resumed as a new job that goes on in the same
directories with the work that is left; so every policy supports it. A job that waits is changed likewise. Another policy or
further sites begin with a slot: all jobs are suspended and resumed then, but what was sold runs to its end first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tradewind.engine.ledger import Ledger
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Job, Stream
from tradewind.model.units import UNLIMITED
from tradewind.model.view import Change, Event
from tradewind.store.board import Board, Row
from tradewind.store.rows import Put
from tradewind.worlds.period_work import work_left
from tradewind.worlds.progress import is_measured

if TYPE_CHECKING:
    from tradewind.service.intake import Intake
    from tradewind.worlds.fleet_world import FleetWorld

OWN = {name: {"tenant": "", "key": name} for name in ("policy", "setup")}
"""Keys of the rows of `replies` that say which policy decides and which sites there are, once that was changed."""
DRAINED = {"tenant": "", "key": "drained"}
"""Key of the row of `replies` with the sites that take no more work."""
PENDING = {"tenant": "", "key": "prices"}
"""Key of the row of `replies` with the prices that come into force with a slot."""
SUSPENDED = "suspended"


def kept_value(board: Board, key: dict[str, str]) -> Any:
    """A value that the service keeps for itself; None if there is none."""
    row = board.row("replies", **key)
    return None if row is None else json.loads(row["body"])


def keep_value(board: Board, key: dict[str, str], value: Any) -> Put:
    """The row that keeps a value."""
    body = {"request": "", "body": json.dumps(value)}
    return Put("replies", body, key) if board.row("replies", **key) else Put("replies", {**key, **body})


class Operations:
    """Carries out such requests.

    suspending    job -> why it is taken from the policy now: owner, change or switch
    wanted        policy, setup: what is to be from `wanted_us` on, each with the number of its request
    is_switching  jobs are suspended for that, and those that come are put off
    puts          rows to be written with the next record
    """

    def __init__(self, board: Board, ledger: Ledger, *, sells: bool) -> None:
        self._board, self._ledger, self._sells = board, ledger, sells
        self.suspending: dict[int, str] = {}
        self.wanted: dict[str, dict[str, Any]] = {}
        self.wanted_us = 0
        self.is_switching = False
        self.puts: list[Put] = []
        self._drained: set[int] = set(kept_value(board, DRAINED) or ())
        self._capacity: dict[tuple[int, int], int] = {}

    def take(self, intake: Intake, row: Row, body: dict[str, Any], at_us: int) -> bool:
        """Carry out a request; whether something happens at this instant."""
        kind, world = row["kind"], intake.world
        index = intake.known.get(row["job"])
        if kind == "suspend" and index is not None:
            self.suspending[index] = "owner"
            world.agenda.report(Event(at_us, "cancelled", index))
        elif kind == "resume":
            return self._resume(intake, row, at_us)
        elif kind == "change" and index is not None:
            self.suspending[index] = "change"
            world.agenda.report(Event(at_us, "cancelled", index))
            job = self._ledger.job(index)
            info = {"home": job.home, "done": 0, "ran_us": 0}
            self._submit(intake, row, info, at_us)
        elif kind == "suspend" and self.is_switching:
            self.owned(row["job"], "owner")
            return False
        elif kind == "cancel":  # of a job that is suspended
            values = {"status": "cancelled", "is_over": True, "ended_s": row["at_s"], "places": "{}"}
            self.puts.append(Put("board_jobs", values, {"id": row["job"], "status": SUSPENDED}))
            return False
        elif kind == "sites":
            slot = self._ledger.setup.slot_us
            changes = [Change(at_us, *each) for each in body["changes"]]
            prices = [
                each._replace(at_us=(at_us // slot + 1) * slot) for each in changes if each.kind == "price"
            ]
            others = [each for each in changes if each.kind != "price"]
            for change in (*others, *prices):
                world.agenda.change(change)
            if prices:  # they begin with the next slot; until then only this row knows of them
                self.puts.append(keep_value(self._board, PENDING, prices))
            self._drain(body.get("drain", ()), body.get("undrain", ()))
            return bool(others)
        elif kind in OWN:
            slot = self._ledger.setup.slot_us
            self.wanted[kind], self.wanted_us = {**body, "request": row["number"]}, -(-at_us // slot) * slot
            return False
        else:
            return False
        return True

    def put_off(self, row: Row) -> None:
        """Let a job that comes now arrive once the policy or the sites have changed."""
        info = {SUSPENDED: {"by": "switch", "home": None, "done": 0, "ran_us": 0}}
        values = {"status": SUSPENDED, "places": json.dumps(info)}
        self.puts.append(Put("board_jobs", values, {"number": row["number"]}))

    def owned(self, job: str, by: str) -> None:
        """Say for whom a suspended job is suspended: its owner, or the switch, which resumes it."""
        shown = self._board.row("board_jobs", id=job)
        if shown is not None and shown["status"] == SUSPENDED:
            info = json.loads(shown["places"])[SUSPENDED]
            values = {"places": json.dumps({SUSPENDED: {**info, "by": by}})}
            self.puts.append(Put("board_jobs", values, {"number": shown["number"]}))

    def restore(self, world: FleetWorld, taken: int) -> None:
        """Know again what was asked for and has not come into force: prices, another policy, further sites.

        A site that has joined is down, as the session knows it, until this says that it is up.
        """
        for kind, key in OWN.items():
            asked, made = self._board.row("requests", kind=kind), kept_value(self._board, key)
            if asked is not None and taken >= asked["number"] > (made["request"] if made else 0):
                self.wanted[kind] = {**json.loads(asked["body"]), "request": asked["number"]}
        for node in (kept_value(self._board, OWN["setup"]) or {}).get("fresh", ()):
            if self._ledger.is_down(node) and not any(
                c.kind == "node_up" and c.a == node for c in world.agenda.found
            ):
                world.agenda.change(Change(max(0, world.now_us) + 1, "node_up", node, 0, 0))
        for each in kept_value(self._board, PENDING) or ():
            if (change := Change(*each)).at_us > world.now_us:
                world.agenda.change(change)

    # ------------------------------------------------------------------ suspend and resume
    def taken_away(self, index: int, done: int, at_us: int) -> str | None:
        """Note that a job was taken from the policy; what has to be known to resume it, None where it was cancelled."""
        by = self.suspending.pop(index, None)
        if by is None or by == "change":
            return None if by is None else ""
        job = self._ledger.job(index)
        return json.dumps(
            {SUSPENDED: {"by": by, "home": job.home, "done": done, "ran_us": at_us - job.arrive_us}}
        )

    def _resume(self, intake: Intake, row: Row, at_us: int) -> bool:
        shown = self._board.row("board_jobs", id=row["job"])
        if shown is None or shown["status"] != SUSPENDED:
            return False
        self._submit(intake, row, json.loads(shown["places"])[SUSPENDED], at_us)
        return True

    def _submit(self, intake: Intake, row: Row, info: dict[str, Any], at_us: int) -> None:
        """Let a job arrive again, with the work that is left and under the number that it has for people."""
        shown = self._board.row("board_jobs", id=row["job"])
        if shown is None:
            raise InputError(f"there is no job {row['job']!r}")
        first = self._board.row("requests", number=shown["number"])
        assert first is not None
        intake.arrive(
            {**first, "started_s": shown["started_s"]}, at_us, lambda j, c: _rest(j, c, info, self._ledger)
        )

    # ------------------------------------------------------------------ sites
    def _drain(self, names: Sequence[int], back: Sequence[int]) -> None:
        before = set(self._drained)
        self._drained = (self._drained | set(names)) - set(back)
        if self._drained != before:
            self.puts.append(keep_value(self._board, DRAINED, sorted(self._drained)))

    def before(self, intake: Intake, at_us: int) -> bool:
        """What is due before requests are taken: sites that drain give up what is free; jobs are suspended for a switch."""
        found = False
        for node in self._drained:
            for resource in range(len(self._ledger.setup.resources)):
                if (least := self._unused(node, resource)) > 0:
                    left = self._ledger.capacity(node, resource) - least
                    intake.world.agenda.change(Change(at_us, "capacity", node, resource, left))
                    found = True
        if self.wanted and at_us >= self.wanted_us and not self.is_switching:
            self.is_switching = True
            for index in self._ledger.active:
                plan = self._ledger.plan(index) if self._sells else None
                if plan is not None and plan.steps:
                    continue  # it was sold
                self.suspending[index] = "switch"
                intake.world.agenda.report(Event(at_us, "cancelled", index))
                found = True
        return found

    def _unused(self, node: int, resource: int) -> int:
        """What of a site is free now and in all slots that may be booked."""
        ledger = self._ledger
        if ledger.is_down(node) or ledger.capacity(node, resource) >= UNLIMITED:
            return 0
        slots = range(ledger.slot + 1, ledger.slot + 1 + (ledger.setup.window_slots or 1))
        return min([ledger.free(node, resource), *(ledger.free(node, resource, slot) for slot in slots)])


def _rest(job: Job, customer: Customer, info: dict[str, Any], ledger: Ledger) -> tuple[Job, Customer]:
    """A job with the work that is left of it; rounds that ranks count go on from their checkpoint."""
    if isinstance(job.work, Stream) and customer.runtime_us is not None:
        customer = replace(customer, runtime_us=max(1, customer.runtime_us - info["ran_us"]))
    elif not is_measured(job) or (job.work.total is not None and not hasattr(job.work, "count")):
        job = work_left(ledger.setup, job, info["done"])
    return replace(job, continues=info["home"]), customer
