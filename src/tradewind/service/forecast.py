"""Forecasts: the production policy itself, with the state that it has now, simulated forward on what is known.

The engine is recovered from its records in another process, as after a crash, but on no fleet. From there on progress is
computed instead of reported, with run times as measured of earlier jobs. A job that is only thought of can be added, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tradewind.engine.loop import Loop
from tradewind.model.decision import Decision, HeldQuote, Quote
from tradewind.model.estimate import Estimate
from tradewind.model.job import Customer, Job, Rounds, Stream
from tradewind.model.progress import rate
from tradewind.model.units import OPEN
from tradewind.model.view import Event
from tradewind.service.config import Config
from tradewind.service.current import current_config, store_address
from tradewind.service.durations import MOST, Durations, calibration_document, factor_at
from tradewind.service.engine import Engine
from tradewind.service.plans import quote_document, step_document
from tradewind.service.seal import Seal
from tradewind.service.submission import Reader, customer_of
from tradewind.store.board import Board
from tradewind.store.store import Store
from tradewind.worlds.fleet import Observations
from tradewind.worlds.progress import is_measured

PARTS = {"p50": 0.5, "p90": 0.9}
"""Forecasts that are made: all run times at this quantile."""
INSTANTS = 5_000
"""Instants that are simulated, at most."""


class NoFleet:
    """A fleet that runs nothing."""

    capabilities: frozenset[str] = frozenset()

    def reconcile(self, wanted: Any) -> None:
        """Start nothing."""

    def observe(self, wait_s: float = 0.0) -> Observations:
        """See nothing."""
        return Observations({})

    def logs(self, *_: Any) -> str:
        """Nothing was written."""
        return ""

    def close(self) -> None:
        """Nothing to close."""


class _Unwritten:
    """Alarms of a simulation are nobody's."""

    def append(self, kind: str, record: Mapping[str, Any], ended: Any = ()) -> None:
        """Drop a record."""

    def read(self) -> list[dict[str, Any]]:
        """There are none."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The service whose future is asked for. asked: which five seconds it is, for those who keep answers."""

    config: Path
    data: Path
    asked: int


@dataclass(slots=True)
class Future:
    """What becomes of jobs, in seconds since 1970; new: the job that was added; calibration: of jobs that were measured."""

    start_s: dict[str, float] = field(default_factory=dict)
    finish_s: dict[str, float] = field(default_factory=dict)
    new: dict[str, Any] = field(default_factory=dict)
    measured: int = 0
    calibration: dict[str, dict[str, Any]] = field(default_factory=dict)


def futures(place: Place, added: str = "", private: str = "", tenant: str = "") -> dict[str, Future]:
    """`p50` and `p90` -> the future, of all jobs; added: a job (JSON) that is submitted now, with its private part."""
    config = current_config(place.config, place.data)
    customer, now_s = customer_of(private) if private else None, time.time()
    return {
        name: _Simulation(config, place, part, now_s).run(
            json.loads(added) if added else None, customer, tenant
        )
        for name, part in PARTS.items()
    }


class _Simulation:
    def __init__(self, config: Config, place: Place, part: float, now_s: float) -> None:
        self.config, self.part, self.now_s = config, part, now_s
        self.pace = 1e6 * config.file.speed
        address = store_address(config, place.data)
        with Store.open(address) as store, Board(address) as board:
            seal = Seal.of(place.data / "seal.key")
            self.engine = Engine(config, store, board, seal, NoFleet())  # type: ignore[arg-type]
            self.engine.recover()
            last = board.row("records", kind="instant")
            rows = board.rows("board_jobs", status="finished", most=MOST)
        wall = json.loads(last["body"])["wall"] if last else self.now_s
        self.now_s = max(
            self.now_s, wall
        )  # something may have been recorded since the forecast was asked for
        passed = (self.now_s - wall) * self.pace
        self.now_us = max(0, self.engine.world.now_us) + int(passed)
        reader = Reader(config)
        jobs = [reader.build(json.loads(row["body"]), 0, row["id"], 0).job for row in rows]
        self.durations = Durations(rows, jobs, self.pace)
        self.names = {index: job.id for index, job in self.engine.session.ledger.active.items()}
        self.future = Future(measured=self.durations.measured)
        self.new = -1

    def wall(self, at_us: int) -> float:
        """Seconds since 1970 of an instant."""
        return self.now_s + (at_us - self.now_us) / self.pace

    def run(self, added: dict[str, Any] | None, customer: Customer | None, tenant: str) -> Future:
        """Simulate until all jobs that can end have."""
        engine = self.engine
        session, timeline = engine.session, engine.world.timeline
        session.store = _Unwritten()
        timeline.progress.compute(self._totals(), self.now_us)
        if added is not None:
            self._add(added, customer, tenant)
        loop = Loop(self, session)
        for _ in range(INSTANTS):
            due = timeline.next_us()
            if due is None or not (timeline.progress.active or timeline.agenda.arrival_us < OPEN):
                break
            if events := timeline.process(due):
                self._before(events)
                loop.cycle(events)
                self._after(due, events)
        return self.future

    def _add(self, added: dict[str, Any], customer: Customer | None, tenant: str) -> None:
        self.new = self.engine.intake.next_job
        found = Reader(self.config).build(added, self.new, "this", self.now_us + 1)
        job = replace(found.job, tenant=tenant)
        private = customer or found.customer
        if job.work.total is None and private.runtime_us is None and is_measured(job):
            runs = self.durations.of(job, self.part)
            private = replace(private, runtime_us=None if runs is None else int(runs))
        self.names[self.new] = "this"
        self.engine.world.submit(job, private, found.volumes)

    def _totals(self) -> dict[int, int]:
        """All work of the jobs whose ranks report it, with what was measured of earlier jobs."""
        found, world = {}, self.engine.world
        for index, state in world.timeline.progress.active.items():
            job, gang = state.job, world.gangs.get(index)
            if not is_measured(job):
                continue
            ran = 0 if gang is None else gang.running_us(self.now_us)
            whole = self.durations.of(job, self.part)
            if isinstance(job.work, Rounds):
                step = next((s for s in state.steps if s.from_us <= self.now_us < s.until_us), None)
                num, den = rate(world.timeline.progress.setup, job, step) if step is not None else (0, 1)
                stated, done = job.work.count * job.work.compute_us, ran * num // den
                factor = whole / stated if whole is not None and stated else None
                if (estimate := self._estimate(job)) is not None:
                    factor, since_us = factor_at(estimate, self.part), max(0, self.now_us - estimate.at_us)
                    done = estimate.done + int(since_us / estimate.factor) * num // den
                state.done = min(max(state.done, done), job.work.total - 1)
                if not self.config.spec.binding and factor is not None:
                    found[index] = state.done + max(1, int((job.work.total - state.done) * factor))
            else:
                state.done = ran
                if whole is not None:
                    found[index] = max(ran + 1, int(whole))
        return found

    def _estimate(self, job: Job) -> Estimate | None:
        """What the job's own measurements say, if it has any."""
        found = self.engine.session.ledger.estimate(job)
        if not found.measured:
            return None
        self.future.calibration[job.id] = calibration_document(found.measured[0], found)
        return found

    def _before(self, events: Any) -> None:
        for event in events:
            if event.kind in ("finished", "left") and event.job in self.names:
                self.future.finish_s[self.names[event.job]] = self.wall(event.at_us)

    def _after(self, at_us: int, events: Any) -> None:
        session, active = self.engine.session, self.engine.world.timeline.progress.active
        for index, state in active.items():
            start_us = state.start_us
            if start_us < 0 and isinstance(state.job.work, Stream):  # its work has no beginning, its plan has
                start_us = next((step.from_us for step in state.steps if step.from_us <= at_us), -1)
            if start_us >= 0 and index in self.names:
                self.future.start_s.setdefault(self.names[index], self.wall(start_us))
        for kind, what in session.journal.ops:
            if kind in ("quote", "hold") and self.new >= 0:
                quote: Quote = what[0] if kind == "quote" else what.quote
                if quote.job == self.new:
                    self.future.new["quote"] = quote_document(self.config.setup, quote, self.wall)
                    self.future.new["taken"] = what[1] if kind == "quote" else -1
            elif kind == "events":
                for event in what:
                    if event.job == self.new and event.kind in ("refused", "declined"):
                        self.future.new["refused"] = event.kind
        plan = session.ledger.plan(self.new) if self.new in active else None
        if plan is not None and plan.steps and "place" not in self.future.new:
            self.future.new["place"] = step_document(self.config.setup, plan.steps[0], self.wall)
        session.journal.ops.clear()
        session.journal.drain()

    # ------------------------------------------------------------------ the world of the loop
    def wait(self) -> tuple[Event, ...]:
        """Not asked: `run` takes instants one by one."""
        return ()

    def ask(self, quote: Quote) -> int:
        """The customer's choice."""
        return self.engine.world.ask(quote)

    def hold(self, held: HeldQuote) -> None:
        """Nobody answers: it expires."""
        self.engine.world.hold(held)

    def apply(self, number: int, decision: Decision) -> Any:
        """Apply a decision."""
        return self.engine.world.timeline.apply(number, decision)
