"""The state of a run: ledger, audit and journal, which take every instant together and in the same order.

Simulation, live runs, recovery, `tradewind audit` and `tradewind replay` all apply instants through this one object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tradewind.audit import Audit
from tradewind.engine.journal import Instant, Journal
from tradewind.engine.ledger import Ledger
from tradewind.model.decision import NOTHING, Charge, Decision, Quote, Verdict
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

    def observe(self, events: Sequence[Event]) -> tuple[Violation, ...]:
        """Take in events, unless they break a rule and the state is not tolerant."""
        found = self.audit.take(events)
        if not found or self.tolerant:
            self.ledger.take(events)
            self.journal.events(events)
        return found

    def answer(self, at_us: int, quote: Quote, taken: int) -> tuple[tuple[Violation, ...], Decision]:
        """Commit a customer's answer to a checked quote; return what the world has to carry out."""
        if taken < 0:
            self.journal.quote(at_us, quote, taken)
            return (), Decision(verdicts=(Verdict(quote.job, quote.refused or "declined"),))
        if found := self.audit.accept(at_us, quote, taken):
            return found, NOTHING
        decision = Decision(plans=(quote.offers[taken].plan,))
        self.journal.quote(at_us, quote, taken)
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

    def replay(self, instant: Instant) -> tuple[Violation, ...]:
        """Apply a recorded instant, up to the first broken rule; a tolerant state applies everything that it can."""
        at, found = instant.at_us, self.observe(instant.events)
        answers = list(instant.after)
        for quote, taken in instant.quotes:
            found += self.audit.check_quote(at, quote)
            if not found or self.tolerant:
                found += self.answer(at, quote, taken)[0]
            mine = [event for event in answers if event.job == quote.job]
            answers = [event for event in answers if event.job != quote.job]
            found += self.observe(mine)
        if instant.decision is not None and (not found or self.tolerant):
            found += self.decide(at, instant.decision)
        found += self.observe(answers)
        self.ledger.clear_events()
        return found
