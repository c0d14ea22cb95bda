"""The loop of a live world: the same cycle, but it never stops for a refused decision, and it survives being killed.

Everything that an instant brought is written to disk in one piece before the world acts on it. A loop that starts on an
old journal lives through it again: the same events and decisions pass ledger and audit, the policy gets back the state
it had, and the world then makes true what should be true.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tradewind.audit import Audit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import WAKES, Loop, Progress
from tradewind.engine.statefile import StateFile, revive
from tradewind.model.decision import NOTHING, Decision, Plan, Quote, Verdict
from tradewind.model.errors import PolicyError, Refused, RunFileError
from tradewind.model.job import Job
from tradewind.model.result import Violation
from tradewind.model.spec import Spec
from tradewind.model.view import Event, Policy, World

SEEN = ("seen", None)
Op = tuple[str, Any]
"""(events | quote | decision | seen, what): a thing that an instant did to the books, in its order."""


class LiveWorld(World, Protocol):
    """A world that can be brought back, and that can be asked to stop."""

    stopped: bool

    def recall(self, events: Sequence[Event]) -> Sequence[Event]:
        """Lives through an instant again, without acting."""


class DiskJournal(Journal):
    """A journal that also keeps what the current instant did, until it is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self.promised: dict[int, int] = {}  # job -> completion that was sold to it

    def events(self, events: Sequence[Event]) -> None:
        super().events(events)
        self.ops.append(("events", [event[:4] for event in events]))

    def decision(self, at_us: int, decision: Decision) -> None:
        super().decision(at_us, decision)
        self.ops.append(("decision", decision))

    def quote(self, at_us: int, quote: Quote, taken: int) -> None:
        super().quote(at_us, quote, taken)
        if taken >= 0:
            self.promised[quote.job] = quote.offers[taken].finish_us
        self.ops.append(("quote", (quote, taken)))


class LiveLoop(Loop):
    """Drives a live world; `file` is the journal on disk, `wall` tells the time that is written beside each instant."""

    journal: DiskJournal
    world: LiveWorld

    def __init__(
        self, world: LiveWorld, books: tuple[Ledger, Audit], policy: Policy, spec: Spec, file: StateFile
    ) -> None:
        super().__init__(world, *books, DiskJournal(), policy, spec)
        self._file = file
        self.alarms: list[dict[str, Any]] = []
        self.violations: list[Violation] = []
        self.wall: Callable[[], float] = lambda: 0.0
        self._kept = policy.save()
        self._window: tuple[Event, ...] = ()
        if WAKES["finished"] in spec.triggers:
            self._wakes |= {"ended"}  # a job that was given up leaves room behind

    # ------------------------------------------------------------------ going on
    def run(self, progress: Progress | None = None) -> None:
        """Cycles until the world has nothing more to say. What an interruption ends is not written down."""
        over = 0
        while events := self.world.wait():
            self.cycle(events)
            if not self.world.stopped:
                self._write(events[0].at_us)
            if progress is not None:
                over += sum(1 for e in events if e.kind in ("finished", "left"))
                progress(events[-1].at_us, over)
        if not self.world.stopped:
            self.charge()
            self._file.append("closed", {})

    def charge(self) -> None:
        try:
            super().charge()
        except (Refused, PolicyError) as error:
            self.alarm(self.ledger.now_us, -1, f"nobody is charged: {error}")

    def close(self) -> None:
        """Gives the journal back."""
        self._file.close()

    def cycle(self, events: Sequence[Event]) -> None:
        try:
            super().cycle(events)
        except PolicyError as error:
            self.alarm(events[0].at_us, -1, f"{error}; what is in force goes on")
            self._forget()

    def alarm(self, at_us: int, job: int, text: str) -> None:
        """Something that a person should know, on disk at once."""
        record = {"at_us": at_us, "job": job, "text": text}
        self.alarms.append(record)
        self._file.append("alarm", record)

    def _write(self, at_us: int) -> None:
        state = self.policy.save()
        text = base64.b64encode(zlib.compress(state)).decode() if state != self._kept else None
        self._kept = state
        record = {"at_us": at_us, "wall": self.wall(), "ops": self.journal.ops, "policy": text}
        self._file.append("instant", record)
        self.journal.ops = []

    def _learn(self, events: Sequence[Event]) -> None:
        """A world that is measured cannot be refused: what it did wrong is written down and the run goes on."""
        if found := self.audit.take(events):
            self.violations += found
            for violation in found:
                self.alarm(events[0].at_us, -1, f"the audit found: {violation}")
        self.ledger.take(events)
        self.journal.events(events)
        for event in events:
            due = self.journal.promised.get(event.job, -1)
            if event.kind in ("finished", "ended") and 0 <= due < event.at_us:
                self.alarm(event.at_us, event.job, f"promised for {due} us, {event.kind} at {event.at_us} us")

    def _decide(self) -> Decision:
        if not self.ledger.active:
            return NOTHING
        self._window = tuple(self.ledger.events)
        decision = super()._decide()
        self.journal.ops.append(SEEN)
        return decision

    def _forget(self) -> None:
        """The policy never decided this: it has its old state back, and hears of this instant again.

        A pricer keeps what it has learned: its customers have their answers.
        """
        if not self.spec.pricer:
            self.policy.restore(self._kept)
            if SEEN in self.journal.ops:
                self.journal.ops.remove(SEEN)
                self.ledger.unsee(self._window)

    def _quote(self, job: Job) -> Quote:
        """A quote that the audit refuses, or that a policy fails to make, is no offer."""
        now = self.ledger.now_us
        try:
            quote = super()._quote(job)
            found = self.audit.check_quote(now, quote)
        except (PolicyError, TypeError, AttributeError, ValueError) as error:
            self.alarm(now, job.index, f"no quote for {job.id}: {error}")
        else:
            if not found:
                return quote
            self.alarm(now, job.index, f"the audit refused a quote for {job.id}: {found[0]}")
        return Quote(job.index, (), "audit", "the quote was refused by the audit")

    def _carry_out(self, now: int, decision: Decision) -> None:
        """A refused decision changes nothing; what was in force goes on, and what just ended is held on to."""
        try:
            super()._carry_out(now, decision)
        except (Refused, PolicyError) as error:
            self.alarm(
                now, -1, f"refused: a decision of {self.spec.name} ({error}); the last good plan goes on"
            )
            self._forget()
            self._hold_on(now)

    def _hold_on(self, now: int) -> None:
        """The allocation of the slot before, once more, for jobs whose plan ends now; without what would be unlawful."""
        until = now + self.ledger.setup.slot_us
        plans = {}
        for index, job in self.ledger.active.items():
            last = self.ledger.last_step(index)
            if last is not None and last.until_us == now:
                plans[job.id] = Plan(index, (last._replace(from_us=now, until_us=until),))
        while plans:
            decision = Decision(plans=tuple(plans.values()), why="the last good allocation, held on to")
            try:
                super()._carry_out(now, decision)
                break
            except Refused as error:
                if plans.pop(error.violations[0].job, None) is None:
                    break

    # ------------------------------------------------------------------ coming back
    def recall(self, record: Mapping[str, Any], restore: Callable[[Event], Event]) -> None:
        """Lives through one instant of the journal. `restore` gives events the facts that the file does not repeat."""
        at, first = record["at_us"], True
        for kind, what in record["ops"]:
            if kind == "events":
                events = [restore(Event(*row)) for row in what]
                if first:
                    self._check(events, self.world.recall(events))
                first = False
                self.violations += self.audit.take(events)
                self.ledger.take(events)
                self.journal.events(events)
            elif kind == "quote":
                self._recall_quote(at, revive(Quote, what[0]), what[1])
            elif kind == "decision":
                decision = revive(Decision, what)
                self.violations += self.audit.check(at, decision)
                self._number += 1
                self.world.apply(self._number, decision)
                self.ledger.commit(decision)
                self.journal.decision(at, decision)
            else:
                self.ledger.seen()
        self.journal.ops = []
        if record["policy"] is not None:
            self._kept = zlib.decompress(base64.b64decode(record["policy"]))

    def _recall_quote(self, at: int, quote: Quote, taken: int) -> None:
        self.violations += self.audit.check_quote(at, quote)
        self.journal.quote(at, quote, taken)
        self._number += 1
        if taken >= 0:
            decision = Decision(plans=(quote.offers[taken].plan,))
            self.violations += self.audit.accept(at, quote, taken)
            self.world.apply(self._number, decision)
            self.ledger.commit(decision)
        else:
            turned = Decision(verdicts=(Verdict(quote.job, quote.refused or "declined"),))
            self.world.apply(self._number, turned)

    @staticmethod
    def _check(told: Sequence[Event], again: Sequence[Event]) -> None:
        if sorted(event[:4] for event in told) != sorted(event[:4] for event in again):
            raise RunFileError(
                f"the journal tells of {[e.kind for e in told]} at {told[0].at_us} us; this scenario makes "
                f"{[e.kind for e in again]} of it. Was it written by another version?"
            )

    def restored(self) -> None:
        """The whole journal has been read: the policy goes on where it stood."""
        self.policy.restore(self._kept)
