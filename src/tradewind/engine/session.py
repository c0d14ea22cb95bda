"""A session: policy, ledger, audit and journal of one run, driven by events. No clock, no input or output, no scenario.

A driver (simulation, live run, service) calls `handle` with everything that happened at an instant, carries out the
commands that it returns, and calls `handle` again with what these caused.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, MutableSequence, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, cast

from tradewind.engine import snapshot
from tradewind.engine.state import RunState
from tradewind.model.decision import NOTHING, Decision, Quote
from tradewind.model.errors import PolicyError, Refused, TradewindError
from tradewind.model.job import Job
from tradewind.model.result import Violation
from tradewind.model.spec import Spec
from tradewind.model.view import Charger, Event, Policy, Pricer

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
RECENT = 10_000
"""Number of decision times that a session keeps that drops what is over."""
Answer = Callable[[Quote], int]
"""A customer's answer to a quote: the number of an offer, or -1."""


class Command(NamedTuple):
    """A decision for the driver to carry out, once per number.

    answered  the session has already recorded the event that ends the jobs it refuses
    """

    number: int
    decision: Decision
    answered: bool = False


class Session:
    """One run of a policy. `handle` is a function of the events so far: same events, same commands."""

    def __init__(self, state: RunState, policy: Policy, spec: Spec, answer: Answer) -> None:
        self.state, self.policy, self.spec, self.answer = state, policy, spec, answer
        self.ledger, self.audit, self.journal = state.ledger, state.audit, state.journal
        # without end, only recent times are kept
        self.decide_s: MutableSequence[float] = deque(maxlen=RECENT) if state.ledger.forgets else []
        self.number = 0
        self.wakes = frozenset(kind for kind, trigger in TRIGGER_OF.items() if trigger in spec.triggers)

    def handle(self, at_us: int, events: Sequence[Event]) -> list[Command]:
        """Handle one instant; all `events` have the same time. Raise Refused where a rule is broken."""
        commands: list[Command] = []
        self._observe(events)
        if self.spec.pricer:
            for event in events:
                if event.kind == "arrived":
                    self._trade(at_us, event.job, commands)
        wakes = self.wakes
        for event in events:
            if event.kind in wakes:
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
            self.state, self.spec.name, {"number": self.number, "policy": snapshot.text(self.policy.save())}
        )

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot, in a session that has handled nothing; InputError where it does not fit."""
        own = snapshot.unpack(self.state, self.spec.name, data)
        self.number = own["number"]
        self.policy.restore(snapshot.state_of(own["policy"]))

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
        except (TypeError, AttributeError, ValueError) as error:
            raise PolicyError(f"{self.spec.name} returned charges that cannot be read: {error}") from error
        _require(found)

    def _command(self, decision: Decision, answered: bool = False) -> Command:
        self.number += 1
        return Command(self.number, decision, answered)

    def _observe(self, events: Sequence[Event]) -> None:
        """Record events; raise Refused if the world broke a rule."""
        _require(self.state.observe(events))

    def _trade(self, at_us: int, index: int, commands: list[Command]) -> None:
        """Quote a job, audit the offers, ask the customer and commit the offer taken."""
        quote = self._checked_quote(at_us, self.ledger.job(index))
        taken = self.answer(quote) if quote.offers else -1
        found, decision = self.state.answer(at_us, quote, taken)
        if found:
            quote, taken = self._unsold(at_us, quote, found), -1
            _, decision = self.state.answer(at_us, quote, taken)
        commands.append(self._command(decision, answered=True))
        if taken >= 0:
            self._observe((Event(at_us, "accepted", index, taken),))
        else:
            self._observe((Event(at_us, "declined" if quote.offers else "refused", index),))

    def _unsold(self, at_us: int, quote: Quote, found: tuple[Violation, ...]) -> Quote:
        """What takes the place of a quote whose acceptance the audit rejects; raises Refused unless overridden."""
        raise Refused(found)

    def _checked_quote(self, at_us: int, job: Job) -> Quote:
        """The policy's quote, after the audit has checked every offer."""
        quote = self._quote(job)
        try:
            found = self.audit.check_quote(at_us, quote)
        except (TypeError, AttributeError, ValueError) as error:
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
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        return PolicyError(f"{self.spec.name} failed at {at}: {type(error).__name__}: {error} ({where})")

    def _unreadable(self, error: Exception) -> PolicyError:
        """An error for a decision or quote that the audit cannot read."""
        return PolicyError(f"{self.spec.name} returned a plan that cannot be read: {error}")

    def _carry_out(self, at_us: int, decision: Decision, commands: list[Command]) -> None:
        """Audit and record a decision, and hand it to the driver."""
        try:
            found = self.state.decide(at_us, decision)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._unreadable(error) from error
        _require(found)
        commands.append(self._command(decision))


def _require(found: tuple[Violation, ...]) -> None:
    if found:
        raise Refused(found)
