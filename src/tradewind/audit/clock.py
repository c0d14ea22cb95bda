"""The audit's ledgers and its clock: time moves forward, and what is due at an instant is reported at it."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.audit.attempts import AttemptLedger
from tradewind.audit.capacity import CapacityLedger
from tradewind.audit.costs import CostLedger
from tradewind.audit.fidelity import Fidelity
from tradewind.audit.held import HeldQuotes
from tradewind.audit.record import Case, Record
from tradewind.audit.results import Totals
from tradewind.audit.spend import SpendLedger
from tradewind.audit.work import WorkLedger
from tradewind.model.decision import Quote
from tradewind.model.result import Outcome, Violation
from tradewind.model.scenario import Script
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Event


class AuditClock:
    """The state of an audit.

    forget    gets what came of each job that is over, whose record is then dropped; None: every record is kept
    measured  the world runs real programs. Completion and progress of fixed jobs and rounds come from measurements, and
              any job may finish or be given up early; nodes and links may fail without a script. All else is the same.
    attempts  what a measured run recorded of its ranks, where it is over: what ended early must follow from it
    """

    def __init__(self, setup: Setup, script: Script | None = None, *, measured: bool = False) -> None:
        self._setup, self._measured = setup, measured
        self._script = None if script is None else Fidelity(setup, script)
        self._capacity, self._costs = CapacityLedger(setup), CostLedger(setup)
        self._work = WorkLedger(setup)
        self._spend = SpendLedger(setup, self._costs) if setup.spend_caps else None
        self._has_costs = not self._costs.is_idle
        self._records: dict[int, Record] = {}
        self.forget: Callable[[Outcome], None] | None = None
        self.attempts: AttemptLedger | None = None
        self._totals = Totals()  # of the jobs whose records were dropped
        self._failures = self._script is None or measured or self._script.has_failures
        self._now = 0
        self._next_arrival = self._next_change = self._next_slot = 0
        self._found = 0  # changes without a script
        self._timer = OPEN
        self._slot_due = 0 if self._script is not None and self._script.has_volumes else OPEN
        self._quote: Quote | None = None
        self._awaited: dict[int, tuple[str, int]] = {}  # job -> (kind, value) of the event due now
        self._held = HeldQuotes(self._capacity)
        self._streams: set[int] = set()
        self._volumes: dict[int, tuple[tuple[int, int], ...]] = {}  # of this slot, not reported yet
        self._cancelled: dict[int, bool] = {}  # job whose plan is cancelled now -> whether something failed
        self._case = Case(setup, self._capacity.down_nodes, self._capacity.down_links)
        self._interrupted: set[int] = set()  # jobs that paid and whose plan a failure cancelled
        self._set_deadline()

    def _check_clock(self, event: Event, found: list[Violation]) -> None:
        """Time moves forward and skips nothing that the world had to report."""
        at = event.at_us
        if at < self._now:
            found.append(Violation("time.forward", detail=f"{event.kind} at {at} us, after {self._now}"))
        if at > self._deadline:
            self._missed(at, found)
        if self.attempts is not None:
            found += self.attempts.before(self._now, at, self._records)
        self._unanswered(found)

    def _set_deadline(self) -> None:
        """Set the next instant at which the world must report something: a change, a timer or a slot."""
        due = OPEN if self._script is None else self._script.change_due_us(self._next_change)
        self._due = min(due, self._slot_due, self._held.due_us)  # all but the timer
        self._set_timer(self._timer)

    def _set_timer(self, at_us: int) -> None:
        self._timer = at_us
        self._deadline = at_us if at_us < self._due else self._due

    def _missed(self, at_us: int, found: list[Violation]) -> None:
        if self._script is not None and self._script.change_due_us(self._next_change) < at_us:
            found.append(
                Violation("time.change", detail=f"change {self._next_change} was not reported by {at_us} us")
            )
        if self._slot_due < at_us:
            found.append(
                Violation("time.slot", slot=self._next_slot, detail="the start of this slot was not reported")
            )
        if self._held.due_us < at_us:
            detail = f"a quote expired at {self._held.due_us} us; this was not reported by {at_us}"
            found.append(Violation("time.quote", detail=detail))
        if self._timer < at_us:
            found.append(
                Violation("time.timer", detail=f"the timer set for {self._timer} us did not fire by {at_us}")
            )

    def _timer_fired(self, event: Event, found: list[Violation]) -> None:
        if event.at_us != self._timer:
            found.append(
                Violation("time.timer", detail=f"a timer fired at {event.at_us} us; none was set for it")
            )
        self._set_timer(OPEN)

    def _unanswered(self, found: list[Violation]) -> None:
        """A quoted or refused job gets its event at the same instant."""
        for job, (kind, _) in self._awaited.items():
            name = self._records[job].job.id
            found.append(
                Violation("time.answer", name, detail=f"the event {kind} is missing at {self._now} us")
            )
        self._awaited.clear()
