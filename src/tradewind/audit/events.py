"""Checks of events: every event of the world against the committed plans and, where there is one, the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from tradewind.audit import rules_form, rules_market
from tradewind.audit.cancelled import cancelled_plans
from tradewind.audit.clock import AuditClock
from tradewind.audit.dropped import is_served, note_idle
from tradewind.audit.fidelity import Volumes
from tradewind.audit.measured import is_bound, wrong_measurement
from tradewind.audit.record import NOT_RUN, OVER, Record
from tradewind.audit.results import drop_over
from tradewind.audit.rules import PLAIN, rules_for
from tradewind.model.decision import Plan, Quote
from tradewind.model.job import DECLARED, NO_PRIVATE_DATA, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.result import Outcome, Violation
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event

NONE: tuple[Violation, ...] = ()


class EventAudit(AuditClock):
    """The audit's ledgers, updated and checked event by event."""

    # ------------------------------------------------------------------ time
    def take(self, events: Sequence[Event]) -> tuple[Violation, ...]:
        """Take in the events of an instant; return the rules that the world broke."""
        found: list[Violation] = []
        fresh_limits = changed = False
        for event in events:
            at, kind, job, _, _ = event
            if at != self._now:
                if at < self._now or at > self._deadline or self._awaited or self.attempts is not None:
                    self._check_clock(event, found)
                if at > self._setup.horizon_us:  # stop here: every slot on the way would have to be billed
                    detail = f"{kind} at {at} us; the run ends at {self._setup.horizon_us}"
                    found.append(Violation("time.horizon", detail=detail))
                    break
                self._now = at
                self._capacity.now_slot = at // self._setup.slot_us
            if kind == "changed":
                fresh_limits = self._change(event, found) or fresh_limits
                continue
            if fresh_limits:
                records = self._records.values()
                self._cancelled = cancelled_plans(self._capacity, self._case, records, self._now)
                fresh_limits, changed = False, True
            if kind == "arrived":
                self._arrive(event, found)
            elif kind == "finished":
                self._finish(event, found)
            elif job >= 0:
                self._other(event, found)
            elif kind == "slot":
                self._close_slot(event, found)
            elif kind == "timer":
                self._timer_fired(event, found)
        if fresh_limits or changed:
            self._after_change(found)
        if self._volumes:
            self._missing_data(found)
        if self.forget is not None:
            self._forget(events, self.forget)
        return tuple(found) if found else NONE

    # ------------------------------------------------------------------ arrival and completion
    def _arrive(self, event: Event, found: list[Violation]) -> None:
        at_us, _, index, _, job = event
        if not isinstance(job, Job) or not index == job.index == self._next_arrival or job.arrive_us != at_us:
            detail = f"job {index} arrived at {at_us} us; it is not the next arrival"
            found.append(Violation("time.arrival", detail=detail))
            return
        script = self._script
        if script is not None and (broken := script.arrival(event, self._next_arrival)) is not None:
            found.append(broken)
            return
        self._next_arrival += 1
        self._has_costs = self._has_costs or job.deploy_usd > 0
        self._records[index] = self._fresh(job)
        if type(job.work) is Stream:
            self._streams.add(index)

    def _fresh(self, job: Job) -> Record:
        """The record of a job that arrives."""
        customer = NO_PRIVATE_DATA if self._script is None else self._script.customers[job.index]
        total = job.work.total
        if total is None and type(job.work) is Fixed:
            total = customer.runtime_us
        rules = rules_for(job)
        fixed = rules is PLAIN or (type(job.work) is Fixed and not job.servers and not job.caps)
        plain = fixed and not job.restart_us and job.restarts is None and customer.pace_milli == DECLARED
        return Record(job, customer, total, rules, plain)

    def _finish(self, event: Event, found: list[Violation]) -> None:
        at_us, _, index, _, _ = event
        record = self._records.get(index)
        if record is None or record.state in OVER:
            found.append(Violation("time.finish", detail=f"job {index} finished, but is not active"))
            return
        due = self._work.finish_us(record)
        if due != at_us and not self._may_finish(record, event, due):
            detail = f"finished at {at_us} us; by its plan the work is done at {due}"
            if self._measured:
                detail += ", and its ranks had not all ended with 0"
            amount = 0 if due is None else (at_us - due) / 1e6
            found.append(Violation("work.finish", record.job.id, "", self._capacity.now_slot, amount, detail))
        self._settle(record, at_us)
        if record.total is not None:
            record.done = record.total
        record.state, record.finish_us = "finished", at_us
        record.steps = ()
        if record.job.hold == "until":
            self._release_claims(record)
        if 0 <= record.promise_us < at_us and is_bound(record, is_measured=self._measured):
            detail = f"finished at {at_us} us; the offer promised {record.promise_us}"
            found.append(Violation("market.promise", record.job.id, detail=detail))

    def _may_finish(self, record: Record, event: Event, due_us: int | None) -> bool:
        """Whether a job may finish at another time than its plan says: measured, early in a measured world, or unknown."""
        if self._is_measured(record) or (self._measured and (due_us is None or event.at_us < due_us)):
            return self._is_complete(event)
        return self._script is None and record.total is None  # a private runtime, which no script tells

    def _other(self, event: Event, found: list[Violation]) -> None:
        record = self._records.get(event.job)
        if record is None or (record.is_over and event.kind not in ("released", "ended")):
            detail = f"{event.kind} for job {event.job}, which is not active"
            found.append(Violation("time.event", detail=detail))
            return
        match event.kind:
            case "data":
                self._data(record, event, found)
            case "measured":
                found += wrong_measurement(self._work, record, event, is_measured=self._measured)
            case "released":
                self._release(record, event, found)
            case "left":
                self._leave(record, event, found)
            case "voided":
                self._void(record, event, found)
            case "ended":
                self._end(record, event, found)
            case "cancelled":
                self._cancel(record, event, found)
            case "accepted" | "refused" | "declined":
                self._answer(record, event, found)
            case "quoted" | "withdrawn":
                self._expect(record, event, found)
                if event.kind == "withdrawn":
                    self._close_quote(event.job)
            case "answered" | "expired":
                self._quote_ends(record, event, found)

    def _release(self, record: Record, event: Event, found: list[Violation]) -> None:
        due = record.finish_us + 1 if record.state == "finished" and record.job.hold == "through" else None
        if event.at_us != due or not record.claims:
            detail = f"released at {event.at_us} us; its resources are due for release at {due}"
            found.append(Violation("time.release", record.job.id, detail=detail))
        self._release_claims(record)

    def _leave(self, record: Record, event: Event, found: list[Violation]) -> None:
        due = self._leaves_us(record)
        early = self._measured and (due is None or event.at_us < due) and self._is_complete(event)
        if self._script is not None and event.at_us != due and not early:
            detail = f"left at {event.at_us} us; it is due to leave at {due}"
            found.append(Violation("time.left", record.job.id, detail=detail))
        self._served(record, (event.at_us - 1) // self._setup.slot_us, found)
        self._settle(record, event.at_us)
        self._release_claims(record)
        record.state, record.finish_us = "left", event.at_us
        self._streams.discard(event.job)

    def _leaves_us(self, record: Record) -> int | None:
        stays = record.customer.runtime_us if isinstance(record.job.work, Stream) else None
        return None if stays is None else record.job.arrive_us + stays

    def _answer(self, record: Record, event: Event, found: list[Violation]) -> None:
        """Check that an answer is the one expected and that the customer chose its best offer."""
        self._expect(record, event, found)
        self._close_quote(event.job)
        if event.kind == "accepted":
            return
        mine = self._quote if self._quote is not None and self._quote.job == event.job else Quote(event.job)
        if self._script is not None and (v := rules_market.choice(self._setup, record, mine, -1)) is not None:
            found.append(v)
        self._settle(record, event.at_us)
        self._check_done(record, event.value, found)
        record.state = event.kind
        self._release_claims(record)
        self._streams.discard(event.job)

    def _expect(self, record: Record, event: Event, found: list[Violation]) -> None:
        """Check that this event of a quote is the one expected now."""
        kind, value = self._awaited.pop(event.job, ("", 0))
        if kind != event.kind or (kind not in ("declined", "refused") and value != event.value):
            detail = f"{event.kind} {event.value}; expected was {f'{kind} {value}' if kind else 'no answer'}"
            found.append(Violation("time.answer", record.job.id, detail=detail))

    def _quote_ends(self, record: Record, event: Event, found: list[Violation]) -> None:
        """A held quote is answered in time, or expires when it is due; other answers change nothing."""
        held = self._held.of_job.get(event.job)
        if event.kind == "expired" and self._held.made.get(event.value) != (event.job, event.at_us):
            detail = f"quote {event.value} expired at {event.at_us} us; no quote to this job is due then"
            found.append(Violation("time.quote", record.job.id, detail=detail))
        if held is None or held.id != (event.fact if event.kind == "answered" else event.value):
            return
        if event.job in self._awaited:  # limits changed now, or it is answered twice: the first counts
            return
        if event.kind == "expired":
            self._awaited[event.job] = ("declined", 0)
        elif event.at_us <= held.expires_us and -1 <= event.value < len(held.quote.offers):
            self._awaited[event.job] = ("declined", 0) if event.value < 0 else ("acceptance", event.value)

    def _close_quote(self, job: int) -> None:
        if job in self._held.of_job:
            self._held.close(job)
            self._set_deadline()

    def _cancel(self, record: Record, event: Event, found: list[Violation]) -> None:
        """Its owner withdrew a job; it keeps nothing, and its work so far is reported."""
        self._awaited.pop(event.job, None)
        self._close_quote(event.job)
        self._served(record, event.at_us // self._setup.slot_us - 1, found)
        self._settle(record, event.at_us)
        self._check_done(record, event.value, found)
        self._release_claims(record)
        record.state = "cancelled"
        self._streams.discard(event.job)

    def _end(self, record: Record, event: Event, found: list[Violation]) -> None:
        """Check an unfinished job at the end of the run: its work is what its steps did, and less than all of it."""
        early = self._measured and (self.attempts is None or self.attempts.may_end(event.job, event.at_us))
        if event.at_us != self._setup.horizon_us and not early:
            detail = f"ended at {event.at_us} us; the horizon is {self._setup.horizon_us}"
            found.append(Violation("time.end", record.job.id, detail=detail))
        if record.is_over:  # finished, but its resources are still held
            if not record.claims:
                found.append(Violation("time.end", record.job.id, detail="it was over and held nothing"))
            if event.value and not self._measured:
                detail = f"{event.value} is reported as done after it was over; it must be 0"
                found.append(Violation("work.done", record.job.id, amount=event.value, detail=detail))
            self._release_claims(record)
            return
        due = self._work.finish_us(record) if not self._measured else None
        if due is not None and due <= event.at_us:
            detail = f"the work was done at {due} us, but `finished` was not reported"
            found.append(Violation("work.finish", record.job.id, detail=detail))
        leaves = self._leaves_us(record)
        if leaves is not None and leaves <= event.at_us:
            detail = f"it was due to leave at {leaves} us, but `left` was not reported"
            found.append(Violation("time.left", record.job.id, detail=detail))
        if 0 <= record.promise_us <= event.at_us and is_bound(record, is_measured=self._measured):
            detail = f"the offer promised completion at {record.promise_us} us, but the job did not finish"
            found.append(Violation("market.promise", record.job.id, detail=detail))
        if (dropped := is_served(record)) is not None:
            found.append(dropped)
        if self.attempts is not None and self.attempts.is_complete(event.job, event.at_us):
            detail = "its ranks had all ended with 0, but `finished` was not reported"
            found.append(Violation("work.finish", record.job.id, detail=detail))
        self._close_quote(event.job)
        last = event.at_us // self._setup.slot_us - 1  # earlier slots were closed in time
        self._served(record, last, found)
        self._settle(record, event.at_us)
        self._check_done(record, event.value, found)
        self._release_claims(record)
        record.state = "unfinished"
        self._streams.discard(event.job)

    def _is_complete(self, event: Event) -> bool:
        """Whether a job may end early now; while its run goes on, the loop is believed."""
        return self.attempts is None or self.attempts.is_complete(event.job, event.at_us)

    def _is_measured(self, record: Record) -> bool:
        """Whether progress is measured; worker-slots and chunks are always counted by the plan."""
        work = record.job.work
        return self._measured and (
            isinstance(work, Fixed) or (isinstance(work, Rounds) and work.unit == "round")
        )

    def _check_done(self, record: Record, value: int, found: list[Violation]) -> None:
        """Reported work equals what the steps did; measured work lies between nothing and all."""
        if self._is_measured(record):
            most = value if record.total is None else record.total
            if not 0 <= value <= most:
                detail = f"{value} is measured as done; it must lie between 0 and {most}"
                found.append(Violation("work.done", record.job.id, amount=value - most, detail=detail))
            record.done = value
        elif record.done != value:
            detail = f"{value} is reported as done; by the steps it is {record.done}"
            found.append(Violation("work.done", record.job.id, detail=detail))

    # ------------------------------------------------------------------ slots and data
    def _close_slot(self, event: Event, found: list[Violation]) -> None:
        """A slot begins in its turn and on time; close the slot before for every active stream."""
        slot, slot_us = event.value, self._setup.slot_us
        if slot != self._next_slot or event.at_us != slot * slot_us:
            detail = f"slot {slot} at {event.at_us} us; slot {self._next_slot} is next, at {self._next_slot * slot_us}"
            found.append(Violation("time.slot", slot=slot, detail=detail))
        self._next_slot = slot + 1
        self._slot_due = self._next_slot * slot_us if self._next_slot < self._setup.slots else OPEN
        self._set_deadline()
        for index in sorted(self._streams):
            self._served(self._records[index], slot - 1, found)
        self._volumes = {} if self._script is None else self._script.volumes_of(slot, self._streams)
        if self._interrupted and not self._measured:
            kept = {job for job in self._interrupted if job in self._records}
            self._interrupted = {job for job in kept if not self._records[job].is_over}
            for job in self._interrupted:
                note_idle(self._capacity, self._records[job], event.at_us)

    def _data(self, record: Record, event: Event, found: list[Violation]) -> None:
        """The volumes of a stream are reported once, when the slot begins, as the script has them."""
        slot = self._next_slot - 1
        expected = self._volumes.pop(event.job, None)
        if self._script is None and event.job in self._streams and record.data_slot < slot:
            expected = cast(Volumes, event.fact)
        if expected is None or event.fact != expected or event.value != slot:
            detail = f"the reported volumes are {event.fact}; expected were {expected}"
            found.append(Violation("time.data", record.job.id, slot=event.value, detail=detail))
        record.data_slot, record.volumes = slot, expected or ()

    def _missing_data(self, found: list[Violation]) -> None:
        """Name the streams whose volumes were not reported at the start of the slot."""
        for job in self._volumes:
            name = self._records[job].job.id
            found.append(
                Violation(
                    "time.data", name, slot=self._capacity.now_slot, detail="its volumes were not reported"
                )
            )
        self._volumes = {}

    def _served(self, record: Record, slot: int, found: list[Violation]) -> None:
        """The data of a slot was processed in it: a plan covered the slot, unless it was cancelled."""
        size = sum(v for _, v in record.volumes) if record.data_slot == slot else 0
        covered = record.cancelled_slot == slot or any(
            s.from_us == slot * self._setup.slot_us for s in record.steps
        )
        if size and slot > record.served_slot:
            self._count_served(record, slot, size)
        if size and not covered and not record.job.may_skip_slots:
            detail = "the data of the slot was not processed and the job was not refused"
            found.append(Violation("data.stream_served", record.job.id, "", slot, size, detail))

    def _count_served(self, record: Record, slot: int, size: int) -> None:
        """Add the value of a slot with data: of all its GB where its step ran to the end, else of 0."""
        record.served_slot = slot
        worth = record.customer.valuation if record.customer.valuation is not None else record.job.utility
        if worth is None or worth.of != "served":
            return
        begin = slot * self._setup.slot_us
        ran = record.cancelled_slot != slot and any(s.from_us == begin for s in record.steps)
        record.served_usd += worth.value(size / 1e9 if ran else 0.0)

    # ------------------------------------------------------------------ changes
    def _change(self, event: Event, found: list[Violation]) -> bool:
        """Check and apply a change; return whether it changes limits."""
        change, script, turn = event.fact, self._script, self._next_change
        if not isinstance(change, Change) or change.at_us != event.at_us:
            found.append(Violation("time.change", detail=f"change {event.value} is not of {event.at_us} us"))
            return False
        if self._measured and script is not None and script.is_next_failure(event.value, change, self._found):
            self._found += 1
        elif event.value != turn or (script is not None and not script.is_next(change, turn)):
            detail = f"change {event.value} at {event.at_us} us; change {turn} is next"
            found.append(Violation("time.change", detail=detail))
            return False
        else:
            self._next_change += 1
        self._set_deadline()
        self._capacity.change(change)
        self._costs.change(change)
        if change.kind in ("price", "egress"):
            return False
        for job, held in self._held.of_job.items():
            self._held.release(job)
            self._awaited[job] = ("withdrawn", held.id)
        return True

    def _void(self, record: Record, event: Event, found: list[Violation]) -> None:
        """A plan had to be cancelled; the job keeps its work up to the start of the slot (failure) or all of it."""
        now, first = event.at_us, next(iter(self._cancelled), None)
        failed = self._cancelled.pop(event.job, None)
        if failed is None:
            found.append(Violation("time.void", record.job.id, detail="its plan was cancelled without cause"))
        elif first != event.job:
            detail = f"its plan was cancelled before that of job {first}, which is older"
            found.append(Violation("time.order", record.job.id, detail=detail))
        self._work.mark(record, now)
        self._settle(record, now)
        kept = record.mark_done if failed and not isinstance(record.job.work, Dataset) else record.done
        if self._is_measured(record) and 0 <= event.value <= (record.total or event.value):
            kept = event.value
        elif event.value != kept:
            detail = f"the work kept is reported as {event.value}; it is {kept}"
            found.append(
                Violation(
                    "work.kept",
                    record.job.id,
                    slot=self._capacity.now_slot,
                    amount=event.value - kept,
                    detail=detail,
                )
            )
        record.done, record.state, record.cancelled_slot = kept, "voided", self._capacity.now_slot
        record.ran, record.starts = NOT_RUN, 0
        self._release_claims(record)
        if record.paid is not None:
            self._interrupted.add(event.job)

    def _after_change(self, found: list[Violation]) -> None:
        """The remaining plans fit and use nothing that is down."""
        self._cancelled = {}
        over = self._capacity.exceeded(self._capacity.every_row())
        if over is not None:
            found.append(self._capacity.describe(over, ""))
        for record in self._records.values():
            if record.claims and not record.is_over:
                plan = Plan(record.job.index, tuple(s for s in record.steps if s.until_us > self._now))
                if (v := rules_form.nodes_are_up(self._case.of(record, plan, self._now))) is not None:
                    found.append(v)

    # ------------------------------------------------------------------ ledgers
    def _settle(self, record: Record, now_us: int) -> None:
        """Post the work and costs of the plan so far."""
        if record.steps:
            if self._failures:
                self._work.mark(record, now_us)
            self._work.accrue(record, now_us)
            if self._has_costs:
                self._costs.post(record, now_us)

    def _forget(self, events: Sequence[Event], sink: Callable[[Outcome], None]) -> None:
        """Drop the jobs that are over and hand out what came of them; close the slots that are past."""
        if rows := drop_over(self._setup, self._records, events):
            self._totals = self._totals.plus(rows)
            for row in rows:
                sink(row)
        if self._capacity.now_slot > self._capacity.first_slot:
            self._capacity.forget_slots()
            if self._has_costs:
                self._costs.close_slots(self._records.values(), self._capacity.now_slot)

    def _release_claims(self, record: Record) -> None:
        self._capacity.remove(record.claims)
        record.claims, record.steps = [], ()
