"""The control loop of a live world: the same cycle, but it survives rejected decisions and being killed.

Each instant is written to the store as one record before the world acts on it. A loop that starts on an existing
store replays it: the same events and decisions pass through ledger and audit, the policy gets its saved state back,
and the world then reconciles what runs with what should run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tradewind.engine import delta
from tradewind.engine.journal import Journal
from tradewind.engine.loop import Loop, Progress
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.session import TRIGGER_OF, Answer, Command, Session
from tradewind.engine.state import RunState
from tradewind.engine.stimuli import from_json, to_json
from tradewind.model.codec import read
from tradewind.model.decision import NOTHING, Decision, HeldQuote, Plan, Quote
from tradewind.model.errors import Refused, RunFileError, TradewindError
from tradewind.model.job import Job
from tradewind.model.result import EndedJob, Violation
from tradewind.model.spec import Spec
from tradewind.model.units import US_PER_S, clock
from tradewind.model.view import Event, Policy, World

SEEN = ("seen", None)
OVER = ("finished", "left", "refused", "declined", "cancelled", "ended")
"""Kinds of events that end a job."""
Op = tuple[str, Any]
"""(events | quote | hold | answer | decision | seen, what): one step of an instant, in order, as the journal stores it."""


class Store(Protocol):
    """The records of a live run, in order."""

    def append(self, kind: str, record: Mapping[str, Any], ended: Sequence[EndedJob] = ()) -> None:
        """Add one record, with the jobs that ended with it; it survives a crash once the call returns."""

    def read(self) -> list[dict[str, Any]]:
        """All records so far, each with its `kind`."""


class LiveWorld(World, Protocol):
    """A world that can be stopped, and restored from a journal."""

    stopped: bool

    def replay(self, events: Sequence[Event]) -> Sequence[Event]:
        """Replay an instant without acting; return the events that this world emits for it."""


class DiskJournal(Journal):
    """A journal that collects the steps of the current instant until they are written to disk."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self.promised: dict[int, int] = {}  # job -> completion time that it bought

    def events(self, events: Sequence[Event]) -> None:
        super().events(events)
        self.ops.append(("events", events))

    def decision(self, at_us: int, decision: Decision) -> None:
        super().decision(at_us, decision)
        self.ops.append(("decision", decision))

    def quote(self, at_us: int, quote: Quote, taken: int, *, held: bool = False) -> None:
        super().quote(at_us, quote, taken, held=held)
        if taken >= 0:
            self.promised[quote.job] = quote.offers[taken].finish_us
        self.ops.append(("answer" if held else "quote", (quote, taken)))

    def hold(self, held: HeldQuote) -> None:
        super().hold(held)
        self.ops.append(("hold", held))


class LiveSession(Session):
    """A session that never ends for a rejected decision or a failing policy: it keeps the plans in force and alarms."""

    journal: DiskJournal

    def __init__(
        self,
        state: RunState,
        policy: Policy,
        spec: Spec,
        answer: Answer,
        store: Store,
        terms: QuoteTerms | None = None,
    ) -> None:
        super().__init__(state, policy, spec, answer, terms)
        self.store = store
        self.alarms: list[dict[str, Any]] = []
        self.violations: list[Violation] = []
        self.saved = policy.save()
        self._window: tuple[Event, ...] = ()
        if TRIGGER_OF["finished"] in spec.triggers:
            self.wakes |= {"ended"}  # a job that was given up frees resources

    def charge(self) -> None:
        try:
            super().charge()
        except TradewindError as error:
            self.alarm(self.ledger.now_us, -1, f"no customer was charged: {error}")

    def _restore_policy(self, state: bytes) -> None:
        super()._restore_policy(state)
        self.saved = state

    def alarm(self, at_us: int, job: int, text: str) -> None:
        """Raise an alarm for the operator and record it at once."""
        record = {"at_us": at_us, "job": job, "text": text}
        self.alarms.append(record)
        self.store.append("alarm", record)

    def changed_state(self) -> Any:
        """The policy's state as JSON data if it changed since the last call, else None, as where it cannot be saved."""
        try:
            state = self.policy.save()
        except Exception as error:  # a policy may fail in any way
            self.alarm(self.ledger.now_us, -1, f"the policy's state was not saved: {error}")
            return None
        found = delta.pack(self.saved, state) if state != self.saved else None
        self.saved = state
        return found

    def _observe(self, events: Sequence[Event]) -> None:
        """Record violations of a measured world and continue; what has happened cannot be rejected."""
        if found := self.state.observe(events):
            self.violations += found
            for violation in found:
                self.alarm(events[0].at_us, -1, f"audit violation: {violation}")
        for event in events:
            if event.kind not in ("finished", "ended", "cancelled", "refused"):
                continue
            due = self.journal.promised.pop(event.job, -1)
            late_us = event.at_us - due
            if event.kind in ("finished", "ended") and due >= 0 and late_us > self.ledger.setup.slot_us:
                late = (
                    f"{late_us / 1e6:.3g} s"
                    if late_us < 100 * US_PER_S
                    else clock(late_us // US_PER_S * US_PER_S)
                )
                self.alarm(event.at_us, event.job, f"{event.kind} {late} later than promised")

    def _decide(self) -> Decision:
        """Keep the plans in force if the policy fails; commands of this instant, such as sales, stand."""
        if (
            not self.ledger.active and not self.ledger.forgets
        ):  # without an end, what is over is dropped when it is seen
            return NOTHING
        self._window = tuple(self.ledger.events)
        try:
            decision = super()._decide()
        except TradewindError as error:
            self.alarm(self.ledger.now_us, -1, f"{error}; plans in force continue")
            self._roll_back()
            return NOTHING
        self.journal.ops.append(SEEN)
        return decision

    def _roll_back(self) -> None:
        """Restore the policy's state and return the instant's events to its window.

        A pricer keeps its state, because its customers already have their answers.
        """
        if self.spec.pricer:
            return
        try:
            self.policy.restore(self.saved)
        except Exception as error:  # a policy may fail in any way
            self.alarm(self.ledger.now_us, -1, f"the policy's last state was not restored: {error}")
        if SEEN in self.journal.ops:
            self.journal.ops.remove(SEEN)
        if not self.ledger.events:
            self.ledger.return_events(self._window)

    def _checked_quote(self, at_us: int, job: Job) -> Quote | None:
        """Make no offer if the policy fails to quote or the audit rejects the quote."""
        try:
            return super()._checked_quote(at_us, job)
        except Refused as error:
            self.alarm(at_us, job.index, f"the audit rejected a quote for {job.id}: {error.violations[0]}")
        except TradewindError as error:
            self.alarm(at_us, job.index, f"no quote for {job.id}: {error}")
        return self._no_offer(at_us, job.index, "the audit rejected the quote")

    def _unsold(self, at_us: int, quote: Quote, found: tuple[Violation, ...]) -> Quote:
        """Refuse a customer whose acceptance the audit rejects, and raise an alarm."""
        self.alarm(at_us, quote.job, f"the audit rejected an accepted offer: {found[0]}")
        return self._no_offer(at_us, quote.job, "the audit rejected the accepted offer")

    def _no_offer(self, at_us: int, job: int, why: str) -> Quote:
        quote = Quote(job, (), "audit", why)
        self.audit.check_quote(at_us, quote)
        return quote

    def _carry_out(self, at_us: int, decision: Decision, commands: list[Command]) -> None:
        """Ignore a rejected decision: plans in force continue, and plans that end now are extended."""
        try:
            super()._carry_out(at_us, decision, commands)
        except TradewindError as error:
            self.alarm(
                at_us,
                -1,
                f"rejected a decision of {self.spec.name} ({error}); the last accepted plans continue",
            )
            self._roll_back()
            self._extend_plans(at_us, commands)

    def _extend_plans(self, at_us: int, commands: list[Command]) -> None:
        """Extend plans that end now by one slot; drop any that the audit rejects."""
        ledger = self.ledger
        until = at_us + ledger.setup.slot_us
        plans = {}
        for index, job in ledger.active.items():
            last = ledger.last_step(index)
            if last is not None and last.until_us == at_us:
                plans[job.id] = Plan(index, (last._replace(from_us=at_us, until_us=until),))
        while plans:
            decision = Decision(
                plans=tuple(plans.values()), why="last accepted allocation, extended by one slot"
            )
            try:
                super()._carry_out(at_us, decision, commands)
                break
            except Refused as error:
                if plans.pop(error.violations[0].job, None) is None:
                    break

    # ------------------------------------------------------------------ recovery
    def replay(self, record: Mapping[str, Any], world: LiveWorld) -> None:
        """Replay one instant of the journal, which needs no scenario."""
        at, first = record["at_us"], True
        for kind, what in record["ops"]:
            if kind == "events":
                events = [from_json(row) for row in what]
                if first:
                    _check_replay(events, world.replay(events))
                first = False
                self.violations += self.state.observe(events)
                self.quotes.waiting += [
                    e.job for e in events if e.kind in ("arrived", "withdrawn") and self.spec.pricer
                ]
            elif kind in ("quote", "answer"):
                quote, taken = read(Quote, what[0], "quote"), what[1]
                if kind == "quote" or quote.refused:
                    self.violations += self.audit.check_quote(at, quote)
                found, decision = self.state.answer(at, quote, taken)
                self.violations += found
                self.quotes.quoted(quote.job)
                world.apply(self._command(decision).number, decision)
            elif kind == "hold":
                held = read(HeldQuote, what, "quote")
                self.violations += self.audit.check_quote(at, held.quote)
                self.state.hold(held.quote, at, held.expires_us)
                self.quotes.quoted(held.quote.job)
                self._command(NOTHING)
            elif kind == "decision":
                decision = read(Decision, what, "decision")
                self.violations += self.state.decide(at, decision)
                world.apply(self._command(decision).number, decision)
            else:
                self.ledger.clear_events()
        self.journal.ops = []
        if record["policy"] is not None:
            self.saved = delta.unpack(self.saved, record["policy"])

    def finish_replay(self) -> None:
        """Restore the policy's last saved state, after the whole journal has been replayed."""
        self.policy.restore(self.saved)


def _check_replay(recorded: Sequence[Event], replayed: Sequence[Event]) -> None:
    if sorted(event[:4] for event in recorded) != sorted(event[:4] for event in replayed):
        raise RunFileError(
            f"the journal records {[e.kind for e in recorded]} at {recorded[0].at_us} us, but replaying it gives "
            f"{[e.kind for e in replayed]}. It was probably written by another version: start with a new --state."
        )


class LiveLoop(Loop):
    """Drives a live world. Each instant is on disk before the world acts on it; `wall` is the time recorded with it."""

    session: LiveSession
    world: LiveWorld

    def __init__(self, world: LiveWorld, session: LiveSession, wall: Callable[[], float]) -> None:
        super().__init__(world, session)
        self._wall = wall

    def run(self, progress: Progress | None = None) -> None:
        """Run cycles until the world has no more events. The final instant of an interrupted run is not recorded."""
        over = 0
        while events := self.world.wait():
            self.cycle(events)
            if not self.world.stopped:
                self.write(events[0].at_us)
            if progress is not None:
                over += sum(1 for e in events if e.kind in ("finished", "left"))
                progress(events[-1].at_us, over)
        if not self.world.stopped:
            self.session.charge()
            at_us = self.session.ledger.now_us
            self.session.store.append(
                "closed", {"at_us": at_us, "charges": self.session.journal.tables["charges"]}
            )

    def write(self, at_us: int) -> None:
        """Write what was done at an instant."""
        session = self.session
        ops = [
            (kind, [to_json(event) for event in what] if kind == "events" else what)
            for kind, what in session.journal.ops
        ]
        record = {"at_us": at_us, "wall": self._wall(), "ops": ops, "policy": session.changed_state()}
        session.store.append("instant", record, self._ended(ops))
        session.journal.ops = []

    def _ended(self, ops: Sequence[Op]) -> list[EndedJob]:
        """Rows of the jobs that ended in an instant."""
        found = []
        for what in (each for kind, each in ops if kind == "events"):
            for event in what:
                if event["kind"] in OVER:
                    job = self.session.ledger.job(event["job"])
                    row = (job.index, job.id, job.tenant, job.arrive_us, event["at_us"], event["kind"])
                    found.append(EndedJob(*row))
        return found
