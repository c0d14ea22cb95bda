"""The state of a run: ledger, audit and journal, which take every instant together and in the same order.

Simulation, live runs, recovery, `tradewind audit` and `tradewind replay` all apply instants through this one object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tradewind.audit import Audit
from tradewind.engine.instants import Instant, Trade
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.quotes import Quotes, sold
from tradewind.model.decision import NOTHING, Charge, Decision, HeldQuote, Quote, Verdict
from tradewind.model.result import Outcome, Violation
from tradewind.model.view import Event


class RunState:
    """What is known and committed. Each method returns the violations; a decision or offer that has any is not applied.

    tolerant  events that break a rule are recorded and followed all the same: what was measured has happened
    forget    drop what is over, so that memory does not grow with the number of jobs: gets what came of each job, once.
              The journal is the driver's to drain.
    """

    def __init__(
        self,
        ledger: Ledger,
        audit: Audit,
        journal: Journal,
        *,
        tolerant: bool = False,
        forget: Callable[[Outcome], None] | None = None,
    ) -> None:
        self.ledger, self.audit, self.journal, self.tolerant = ledger, audit, journal, tolerant
        audit.forget = forget
        ledger.forgets = forget is not None
        self.quotes = Quotes()

    def observe(self, events: Sequence[Event]) -> tuple[Violation, ...]:
        """Take in events, unless they break a rule and the state is not tolerant."""
        found = self.audit.take(events)
        if not found or self.tolerant:
            self.ledger.take(events)
            self.journal.events(events)
            quotes = self.quotes
            if quotes.open or quotes.waiting:
                self._drop_quotes(events)
        return found

    def _drop_quotes(self, events: Sequence[Event]) -> None:
        """Close the quotes of jobs that are over, and those that no longer stand."""
        for event in events:
            if event.kind in ("cancelled", "ended", "withdrawn"):
                if (held := self.quotes.of_job(event.job)) is not None:
                    self.ledger.free_hold(held)
                self.quotes.forget(event.job)

    def answer(self, at_us: int, quote: Quote, taken: int) -> tuple[tuple[Violation, ...], Decision]:
        """Commit a customer's answer to a checked or held quote; return what the world has to carry out."""
        if taken >= 0 and (found := self.audit.accept(at_us, quote, taken)):
            return found, NOTHING
        held = self.quotes.of_job(quote.job)
        if held is not None:
            self.quotes.remove(held)
            self.ledger.free_hold(held)
        self.journal.quote(at_us, quote, taken, held=held is not None)
        if taken < 0:
            return (), Decision(verdicts=(Verdict(quote.job, quote.refused or "declined"),))
        decision = Decision(plans=(quote.offers[taken].plan,))
        self.ledger.commit(decision)
        return (), decision

    def decide(self, at_us: int, decision: Decision) -> tuple[Violation, ...]:
        """Commit a decision if it breaks no rule."""
        found = self.audit.check(at_us, decision)
        if not found:
            self.ledger.commit(decision)
            self.journal.decision(at_us, decision)
        return found

    def charge(self, charges: Sequence[Charge]) -> tuple[Violation, ...]:
        """Record payments that are due after the run, if they break no rule."""
        found = self.audit.check_charges(charges)
        if not found:
            self.journal.charges(charges)
        return found

    def hold(self, quote: Quote, at_us: int, expires_us: int) -> HeldQuote:
        """Hold a checked quote for an answer."""
        held = self.quotes.add(quote, at_us, expires_us)
        self.audit.hold(held)
        self.ledger.hold(held)
        self.journal.hold(held)
        return held

    def replay(self, instant: Instant) -> tuple[Violation, ...]:
        """Apply a recorded instant, up to the first broken rule; a tolerant state applies everything that it can."""
        at, found = instant.at_us, self.observe(instant.events)
        for step in instant.trades:
            if not found or self.tolerant:
                found += self._replay_trade(at, step)
        if instant.decision is not None and (not found or self.tolerant):
            found += self.decide(at, instant.decision)
        found += self.observe(instant.after)
        self.ledger.clear_events()
        return found

    def _replay_trade(self, at_us: int, trade: Trade) -> tuple[Violation, ...]:
        """Apply what became of a quote, with the event that says so."""
        event, quote, taken = trade
        found: tuple[Violation, ...] = ()
        held = None if event is None else self.quotes.of_job(event.job)
        if held is not None and event is not None and event.kind in ("accepted", "declined"):
            found = self.answer(at_us, sold(held, at_us), taken)[0]
        elif quote is not None:
            found = self.audit.check_quote(at_us, quote)
            if found and not self.tolerant:
                return found
            if event is not None and event.kind == "quoted":
                self.hold(quote, at_us, event.value)
            else:
                found += self.answer(at_us, quote, taken)[0]
        return found if event is None else found + self.observe((event,))
