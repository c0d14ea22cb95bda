"""The control loop, the same for every world: wait, quote, decide, audit, apply."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol, cast

from tradewind.audit import Audit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.model.decision import NOTHING, Decision, Quote, Verdict
from tradewind.model.errors import PolicyError, Refused, TradewindError
from tradewind.model.job import Job
from tradewind.model.spec import Spec
from tradewind.model.view import Charger, Event, Policy, Pricer, World

TRIGGER_OF = {
    "arrived": "arrival",
    "finished": "completion",
    "left": "completion",
    "released": "completion",
    "voided": "change",
    "changed": "change",
    "slot": "slot",
    "timer": "timer",
}
"""Event kind -> trigger that calls a policy."""


class Progress(Protocol):
    """Callback that receives the progress of a run."""

    def __call__(self, now_us: int, jobs_over: int) -> None: ...


class Loop:
    """One run of a policy in a world, with its ledger, audit and journal."""

    def __init__(
        self, world: World, ledger: Ledger, audit: Audit, journal: Journal, policy: Policy, spec: Spec
    ) -> None:
        self.world, self.ledger, self.audit, self.journal = world, ledger, audit, journal
        self.policy, self.spec = policy, spec
        self.decide_s: list[float] = []
        self._number = 0
        self._wakes = frozenset(kind for kind, trigger in TRIGGER_OF.items() if trigger in spec.triggers)

    def run(self, progress: Progress | None = None) -> None:
        """Handle instants until the world reports no more events."""
        over = 0
        while events := self.world.wait():
            self.cycle(events)
            if progress is not None:
                over += sum(1 for e in events if e.kind in ("finished", "left"))
                progress(events[-1].at_us, over)
        self.charge()

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
            found = self.audit.check_charges(charges)
        except (TypeError, AttributeError, ValueError) as error:
            raise PolicyError(f"{self.spec.name} returned charges that cannot be read: {error}") from error
        if found:
            raise Refused(found)
        self.journal.charges(charges)

    def cycle(self, events: Sequence[Event]) -> None:
        """Handle one instant; all `events` have the same time."""
        now = events[0].at_us
        self._observe(events)
        if self.spec.pricer:
            for event in events:
                if event.kind == "arrived":
                    self._trade(now, event.job)
        wakes = self._wakes
        for event in events:
            if event.kind in wakes:
                break
        else:
            return
        decision = self._decide()
        if decision is not NOTHING and decision != NOTHING:
            self._carry_out(now, decision)

    def _observe(self, events: Sequence[Event]) -> None:
        """Pass events to audit, ledger and journal; raise Refused if the world broke a rule."""
        if found := self.audit.take(events):
            raise Refused(found)
        self.ledger.take(events)
        self.journal.events(events)

    def _trade(self, now: int, index: int) -> None:
        """Quote a job, audit the offers, ask the customer and commit the offer taken."""
        job = self.ledger.job(index)
        quote = self._quote(job)
        try:
            found = self.audit.check_quote(now, quote)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._unreadable(error) from error
        if found:
            raise Refused(found)
        taken = self.world.ask(quote) if quote.offers else -1
        self.journal.quote(now, quote, taken)
        if taken >= 0:
            decision = Decision(plans=(quote.offers[taken].plan,))
            if found := self.audit.accept(now, quote, taken):
                raise Refused(found)
            self._number += 1
            self.world.apply(self._number, decision)
            self.ledger.commit(decision)
            answer = Event(now, "accepted", index, taken)
        else:
            self._number += 1
            self.world.apply(self._number, Decision(verdicts=(Verdict(index, quote.refused or "declined"),)))
            answer = Event(now, "declined" if quote.offers else "refused", index)
        self._observe((answer,))

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
        return PolicyError(f"{self.spec.name} failed at {at}: {type(error).__name__}: {error}")

    def _unreadable(self, error: Exception) -> PolicyError:
        """An error for a decision or quote that the audit cannot read."""
        return PolicyError(f"{self.spec.name} returned a plan that cannot be read: {error}")

    def _carry_out(self, now: int, decision: Decision) -> None:
        """Audit a decision, apply it in the world and record it."""
        try:
            found = self.audit.check(now, decision)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._unreadable(error) from error
        if found:
            raise Refused(found)
        self._number += 1
        after = self.world.apply(self._number, decision)
        self.ledger.commit(decision)
        self.journal.decision(now, decision)
        if after:
            self._observe(after)
