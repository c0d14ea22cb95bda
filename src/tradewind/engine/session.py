"""A session: policy, ledger, audit and journal of one run, driven by events. No clock, no input or output, no scenario.

A driver (simulation, live run, service) calls `handle` with everything that happened at an instant, carries out the
commands that it returns, and calls `handle` again with what these caused. A customer may get time to answer a quote: the
driver then learns of it from `quotes` or a command, and hands in `answered`, or `expired` at the expiry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, MutableSequence, Sequence
from time import perf_counter
from typing import Literal, NamedTuple, cast

from tradewind.engine import snapshot
from tradewind.engine.quotes import QuoteTerms, at_once, sold
from tradewind.engine.state import RunState
from tradewind.model.decision import NOTHING, Decision, HeldQuote, Quote
from tradewind.model.errors import PolicyError, Refused, TradewindError, raised
from tradewind.model.job import Job
from tradewind.model.result import Violation
from tradewind.model.spec import Spec
from tradewind.model.view import Change, Charger, Event, EventKind, Policy, Pricer

TRIGGER_OF = {
    "arrived": "arrival",
    "finished": "completion",
    "left": "completion",
    "released": "completion",
    "cancelled": "completion",
    "voided": "change",
    "changed": "change",
    "slot": "slot",
    "timer": "timer",
}
"""Event kind -> trigger that calls a policy."""
UNREADABLE = (TypeError, AttributeError, ValueError, ArithmeticError, LookupError)
"""What reading a decision that is none may raise."""
RECENT = 1_000
"""Number of decision times that a session keeps that drops what is over."""
Answer = Callable[[Quote], int]
"""A customer's answer to a quote: the number of an offer, or -1."""


class Command(NamedTuple):
    """A decision for the driver to carry out, once per number.

    answered  the session has already recorded the event that ends the jobs it refuses
    held      a quote to hand out; the driver must report `expired` at its expiry
    """

    number: int
    decision: Decision
    answered: bool = False
    held: HeldQuote | None = None


class Session:
    """One run of a policy. `handle` is a function of the events so far: same events, same commands."""

    def __init__(
        self,
        state: RunState,
        policy: Policy,
        spec: Spec,
        answer: Answer,
        terms: QuoteTerms | None = None,
    ) -> None:
        self.state, self.policy, self.spec, self.answer = state, policy, spec, answer
        self.terms, self.quotes = terms or QuoteTerms(), state.quotes
        self.ledger, self.audit, self.journal = state.ledger, state.audit, state.journal
        # without end, only recent times are kept
        self.decide_s: MutableSequence[float] = deque(maxlen=RECENT) if state.ledger.forgets else []
        self.number, self._trades = 0, spec.pricer
        self.wakes = frozenset(kind for kind, trigger in TRIGGER_OF.items() if trigger in spec.triggers)

    def handle(self, at_us: int, events: Sequence[Event]) -> list[Command]:
        """Handle one instant; all `events` have the same time. Raise Refused where a rule is broken."""
        self._observe(events)
        commands: list[Command] = []
        if self._trades:
            self._trade(at_us, events, commands)
        wakes = self.wakes
        for event in events:
            if event[1] in wakes:
                break
        else:
            return commands
        decision = self._decide()
        if decision is not NOTHING and decision != NOTHING:
            self._carry_out(at_us, decision, commands)
        return commands

    def snapshot(self) -> bytes:
        """Everything that the session knows, between two instants; the journal is the driver's to keep."""
        return snapshot.pack(
            self.state,
            self.spec.name,
            {
                "number": self.number,
                "policy": snapshot.text(self.policy.save()),
                "next_quote": self.quotes.next_id,
                "waiting": self.quotes.waiting,
            },
        )

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot, in a session that has handled nothing; InputError where it does not fit."""
        own = snapshot.unpack(self.state, self.spec.name, data)
        self.number = own["number"]
        for held in self.ledger.held.values():
            self.quotes.put(held)
        self.quotes.next_id, self.quotes.waiting = own["next_quote"], list(own["waiting"])
        self._restore_policy(snapshot.state_of(own["policy"]))

    def _restore_policy(self, state: bytes) -> None:
        self.policy.restore(state)

    def charge(self) -> None:
        """Collect the payments of a policy that charges after the run."""
        if not self.spec.charges:
            return
        try:
            charges = cast(Charger, self.policy).charges(self.ledger)
        except TradewindError:
            raise
        except Exception as error:
            raise self._failure(error) from error
        try:
            found = self.state.charge(charges)
        except UNREADABLE as error:
            raise PolicyError(f"{self.spec.name} returned charges that cannot be read: {error}") from error
        _require(found)

    def cannot_answer(self, event: Event) -> str:
        """Why an `answered` event cannot be taken, or ""."""
        held = self.quotes.open.get(event.fact) if isinstance(event.fact, int) else None
        if held is None or held.quote.job != event.job or event.at_us > held.expires_us:
            return f"quote {event.fact} is not open: it was answered, withdrawn or has expired, or never was"
        if not -1 <= event.value < len(held.quote.offers):
            return f"quote {held.id} has offers 0 to {len(held.quote.offers) - 1}; found {event.value}"
        return ""

    def _command(
        self, decision: Decision, *, answered: bool = False, held: HeldQuote | None = None
    ) -> Command:
        self.number += 1
        return Command(self.number, decision, answered, held)

    def _observe(self, events: Sequence[Event]) -> None:
        """Record events; raise Refused if the world broke a rule."""
        if found := self.state.observe(events):
            raise Refused(found)

    # ------------------------------------------------------------------ quotes
    def _trade(self, at_us: int, events: Sequence[Event], commands: list[Command]) -> None:
        """Close quotes that no longer stand, were answered or expired; then quote jobs in order of arrival."""
        quotes = self.quotes
        jobs = [event.job for event in events if event.kind == "arrived"]
        if not quotes.idle:
            if quotes.open and any(_changes_limits(event) for event in events):
                self._withdraw(at_us)  # first: what was offered may be gone when it is answered
            for event in events:
                self._hear(at_us, event, commands)
            jobs = quotes.waiting + jobs
            quotes.waiting = []
        for place, index in enumerate(jobs):
            found = self._quote_job(at_us, index, commands)
            if found != "done":
                quotes.waiting.append(index)
            if found == "blocked":
                quotes.waiting += jobs[place + 1 :]
                break

    def _quote_job(
        self, at_us: int, index: int, commands: list[Command]
    ) -> Literal["done", "later", "blocked"]:
        """Quote a job, and have the quote answered or hold it.

        later: the job waits. blocked: it waits for open quotes to close, and so do the jobs behind it.
        """
        job = self.ledger.job(index)
        expires_us = self._expiry(at_us, job)
        if expires_us is None:
            return "later"
        answer_by_us = self._answer_by(at_us, expires_us)
        if answer_by_us > at_us:
            self.ledger.quote_until(answer_by_us)
        quote = self._checked_quote(at_us, job)
        if answer_by_us > at_us:
            self.ledger.quote_until(0)
        if quote is None:
            return "blocked"
        if quote.offers and expires_us > at_us:
            held = self.state.hold(quote, at_us, expires_us)
            commands.append(self._command(NOTHING, answered=True, held=held))
            self._observe((Event(at_us, "quoted", index, expires_us),))
        else:
            self._sell(at_us, quote, self.answer(quote) if quote.offers else -1, commands)
        return "done"

    def _expiry(self, at_us: int, job: Job) -> int | None:
        """When a quote made now expires: now, if it is answered at once; None if it cannot be made yet.

        Serial quotes are opened and closed within a slot. As whatever is sold in a slot begins in the next one, a customer
        who answers at once and has to wait for an open quote loses nothing by it.
        """
        hold_us = self.terms.hold_us(job)
        if hold_us <= 0:
            return at_us
        mine = sum(self.ledger.job(held.quote.job).tenant == job.tenant for held in self.quotes.open.values())
        if mine >= self.terms.per_tenant:
            return None
        if self.spec.serial_quotes:
            slot_us = self.ledger.setup.slot_us
            hold_us = max(1, min(hold_us, slot_us // 2))
            if at_us % slot_us + hold_us >= slot_us:
                return None
        return at_us + hold_us

    def _answer_by(self, at_us: int, expires_us: int) -> int:
        """Before when a plan that is quoted now must not begin."""
        if not self.spec.serial_quotes or self.terms.hold_us is at_once:
            return expires_us
        slot_us = self.ledger.setup.slot_us
        return (at_us // slot_us + 1) * slot_us

    def _hear(self, at_us: int, event: Event, commands: list[Command]) -> None:
        """Close a quote that is answered in time or expires; other answers change nothing."""
        if event.kind == "answered" and isinstance(event.fact, int):
            held = self.quotes.open.get(event.fact)
            if held is not None and not self.cannot_answer(event):
                self._sell(at_us, sold(held, at_us), event.value, commands)
        elif event.kind == "expired":
            held = self.quotes.open.get(event.value)
            if held is not None:
                self._sell(at_us, held.quote, -1, commands)

    def _sell(self, at_us: int, quote: Quote, taken: int, commands: list[Command]) -> None:
        """Commit a customer's answer."""
        found, decision = self.state.answer(at_us, quote, taken)
        if found:
            quote, taken = self._unsold(at_us, quote, found), -1
            _, decision = self.state.answer(at_us, quote, taken)
        commands.append(self._command(decision, answered=True))
        kind: EventKind = "accepted" if taken >= 0 else "declined" if quote.offers else "refused"
        self._observe((Event(at_us, kind, quote.job, max(taken, 0)),))

    def _withdraw(self, at_us: int) -> None:
        """Withdraw all open quotes after a change of limits; their jobs are quoted again."""
        for held in tuple(self.quotes.open.values()):
            self._observe((Event(at_us, "withdrawn", held.quote.job, held.id),))
            self.quotes.waiting.append(held.quote.job)
        self.quotes.waiting.sort()

    def _unsold(self, at_us: int, quote: Quote, found: tuple[Violation, ...]) -> Quote:
        """What takes the place of a quote whose acceptance the audit rejects; raises Refused unless overridden."""
        raise Refused(found)

    def _checked_quote(self, at_us: int, job: Job) -> Quote | None:
        """The policy's quote, after the audit has checked every offer; None if it has to wait for open quotes."""
        quote = self._quote(job)
        if self.spec.serial_quotes and self.quotes.open:
            self.ledger.count_holds(False)
            try:
                bare = self._quote(job)
            finally:
                self.ledger.count_holds(True)
            if bare != quote:
                return None
        try:
            found = self.audit.check_quote(at_us, quote)
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        _require(found)
        return quote

    def _decide(self) -> Decision:
        begin = perf_counter()
        try:
            decision = self.policy.decide(self.ledger)
        except TradewindError:
            raise
        except Exception as error:
            raise self._failure(error) from error
        self.decide_s.append(perf_counter() - begin)
        self.ledger.clear_events()
        if not isinstance(decision, Decision):
            raise PolicyError(
                f"{self.spec.name}.decide returned {type(decision).__name__}; it must return a Decision"
            )
        return decision

    def _quote(self, job: Job) -> Quote:
        begin = perf_counter()
        try:
            quote = cast(Pricer, self.policy).quote(self.ledger, job)
        except TradewindError:
            raise
        except Exception as error:
            raise self._failure(error) from error
        self.decide_s.append(perf_counter() - begin)
        if not isinstance(quote, Quote) or quote.job != job.index:
            raise PolicyError(
                f"{self.spec.name}.quote returned {type(quote).__name__} for job {job.id}; it must return a Quote for it"
            )
        return quote

    def _failure(self, error: Exception) -> PolicyError:
        """An exception of the policy as an error that names the policy and the instant."""
        at = f"{self.ledger.now_us} us (slot {self.ledger.slot})"
        return PolicyError(f"{self.spec.name} failed at {at}: {raised(error)}")

    def _unreadable(self, error: Exception) -> PolicyError:
        """An error for a decision or quote that the audit cannot read."""
        return PolicyError(f"{self.spec.name} returned a plan that cannot be read: {error}")

    def _carry_out(self, at_us: int, decision: Decision, commands: list[Command]) -> None:
        """Audit and record a decision, and hand it to the driver."""
        try:
            found = self.state.decide(at_us, decision)
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        _require(found)
        commands.append(self._command(decision))


def _changes_limits(event: Event) -> bool:
    return isinstance(event.fact, Change) and event.fact.kind not in ("price", "egress")


def _require(found: tuple[Violation, ...]) -> None:
    if found:
        raise Refused(found)
