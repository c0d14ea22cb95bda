"""The loop, the same in every world: wait, quote, decide, audit, apply."""

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

WAKES = {
    "arrived": "arrival",
    "finished": "completion",
    "left": "completion",
    "released": "completion",
    "voided": "change",
    "changed": "change",
    "slot": "slot",
    "timer": "timer",
}


class Progress(Protocol):
    """Is told how far the run is; the command line shows a bar."""

    def __call__(self, now_us: int, jobs_over: int) -> None: ...


class Loop:
    """One run: the world, the two sets of books, the journal and the policy."""

    def __init__(
        self, world: World, ledger: Ledger, audit: Audit, journal: Journal, policy: Policy, spec: Spec
    ) -> None:
        self.world, self.ledger, self.audit, self.journal = world, ledger, audit, journal
        self.policy, self.spec = policy, spec
        self.decide_s: list[float] = []
        self._number = 0
        self._wakes = frozenset(kind for kind, trigger in WAKES.items() if trigger in spec.triggers)

    def run(self, progress: Progress | None = None) -> None:
        """Cycles until the world has nothing more to say."""
        over = 0
        while events := self.world.wait():
            self.cycle(events)
            if progress is not None:
                over += sum(1 for e in events if e.kind in ("finished", "left"))
                progress(events[-1].at_us, over)
        self.charge()

    def charge(self) -> None:
        """Asks for the payments of a market that settles when the run is over."""
        if not self.spec.charges:
            return
        try:
            charges = cast(Charger, self.policy).charges(self.ledger)
        except TradewindError:
            raise
        except Exception as error:
            raise self._blame(error) from error
        try:
            found = self.audit.check_charges(charges)
        except (TypeError, AttributeError, ValueError) as error:
            raise PolicyError(f"{self.spec.name} answered something that is no charge: {error}") from error
        if found:
            raise Refused(found)
        self.journal.charges(charges)

    def cycle(self, events: Sequence[Event]) -> None:
        """One instant: everything in `events` happened at the same time."""
        now = events[0].at_us
        self._learn(events)
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

    def _learn(self, events: Sequence[Event]) -> None:
        if found := self.audit.take(events):
            raise Refused(found)
        self.ledger.take(events)
        self.journal.events(events)

    def _trade(self, now: int, index: int) -> None:
        """Quote, audit the offers, ask the customer, commit what was taken."""
        job = self.ledger.job(index)
        quote = self._quote(job)
        try:
            found = self.audit.check_quote(now, quote)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._no_plan(error) from error
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
        self._learn((answer,))

    def _decide(self) -> Decision:
        begin = perf_counter()
        try:
            decision = self.policy.decide(self.ledger)
        except TradewindError:
            raise
        except Exception as error:
            raise self._blame(error) from error
        self.decide_s.append(perf_counter() - begin)
        self.ledger.seen()
        if not isinstance(decision, Decision):
            raise PolicyError(f"{self.spec.name} decided {type(decision).__name__}; it must be a Decision")
        return decision

    def _quote(self, job: Job) -> Quote:
        begin = perf_counter()
        try:
            quote = cast(Pricer, self.policy).quote(self.ledger, job)
        except TradewindError:
            raise
        except Exception as error:
            raise self._blame(error) from error
        self.decide_s.append(perf_counter() - begin)
        if not isinstance(quote, Quote) or quote.job != job.index:
            raise PolicyError(
                f"{self.spec.name} answered job {job.id} with {type(quote).__name__}; it must be a Quote for this job"
            )
        return quote

    def _blame(self, error: Exception) -> PolicyError:
        """Whatever a policy raises becomes an error that names it and the instant."""
        at = f"{self.ledger.now_us} us (slot {self.ledger.slot})"
        return PolicyError(f"{self.spec.name} failed at {at}: {type(error).__name__}: {error}")

    def _no_plan(self, error: Exception) -> PolicyError:
        """What the audit cannot even read is no decision."""
        return PolicyError(f"{self.spec.name} answered something that is no plan: {error}")

    def _carry_out(self, now: int, decision: Decision) -> None:
        try:
            found = self.audit.check(now, decision)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._no_plan(error) from error
        if found:
            raise Refused(found)
        self._number += 1
        after = self.world.apply(self._number, decision)
        self.ledger.commit(decision)
        self.journal.decision(now, decision)
        if after:
            self._learn(after)
