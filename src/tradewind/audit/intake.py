"""The audit's ears: every event of the world, held against the scenario and the plans that were committed."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.audit import rules_data, rules_form, rules_market, rules_network, rules_work
from tradewind.audit.bills import Bills
from tradewind.audit.books import Books
from tradewind.audit.record import Case, Record, Rule
from tradewind.audit.spend import Spend
from tradewind.audit.voids import victims
from tradewind.audit.work import WorkBook
from tradewind.model.decision import Plan, Quote
from tradewind.model.job import Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.result import Violation
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.view import Event

NONE: tuple[Violation, ...] = ()

PLAIN: tuple[Rule, ...] = (
    rules_form.form_is_sound,
    rules_form.time_is_sound,
    rules_form.workers_are_in_range,
    rules_form.nodes_are_up,
)


def rules_for(job: Job) -> tuple[Rule, ...]:
    """The rules that apply to a job, fixed at its arrival."""
    if (
        type(job.work) is Fixed
        and not job.server
        and job.architecture == "ring"
        and job.nodes is None
        and not job.caps
    ):
        return PLAIN
    rules: list[Rule] = list(PLAIN)
    if job.servers or job.architecture == "ps" or job.server:
        rules.append(rules_form.servers_are_in_number)
    if job.nodes is not None or job.data_nodes is not None:
        rules.append(rules_form.places_are_allowed)
    match job.work:
        case Stream():
            rules += [rules_data.stream_is_processed, rules_data.workers_keep_up_with_the_stream]
        case Dataset():
            rules += [rules_data.chunks_exist, rules_data.workers_keep_up_with_the_chunks]
            if job.unservable_reason:
                rules.append(rules_data.bid_makes_sense)
        case Rounds():
            rules.append(rules_form.pinned_workers_stay)
            if job.work.comm == "flows":
                rules.append(rules_network.every_site_reaches_the_server)
            if job.work.comm == "ring":
                rules.append(rules_network.ring_is_closed)
            if job.work.unit == "worker-slot":
                rules.append(rules_work.worker_slots_are_left)
    if job.caps:
        rules.append(rules_work.caps_are_kept)
    return tuple(rules)


class Intake:
    """Books of its own.

    measured  the world runs programs and measures them: when a fixed job or a job of rounds is done, and how far it is, only
              its ranks can say; any job may be done, or given up, before its time. All else holds as it does elsewhere.
    """

    def __init__(self, scenario: Scenario, *, measured: bool = False) -> None:
        self._scenario, self._setup, self._measured = scenario, scenario.setup, measured
        self._books, self._bills, self._work = (
            Books(scenario.setup),
            Bills(scenario.setup),
            WorkBook(scenario.setup),
        )
        self._spend = Spend(scenario.setup, self._bills) if scenario.setup.spend_caps else None
        self._has_bills = not self._bills.is_idle or any(job.deploy_usd for job in scenario.jobs)
        self._records: dict[int, Record] = {}
        self._failures = any(change.kind in ("node_down", "link_down") for change in scenario.changes)
        self._now = 0
        self._next_arrival = self._next_change = self._next_slot = 0
        self._timer = OPEN
        self._slot_due = 0 if len(scenario.volumes) else OPEN
        self._quote: Quote | None = None
        self._awaited: dict[int, tuple[str, int]] = {}  # job -> the answer that must come at this instant
        self._streams: set[int] = set()
        self._volumes: dict[int, tuple[tuple[int, int], ...]] = {}  # of this slot, still to be told
        self._voids: dict[int, bool] = {}  # plans that must be cancelled now, and whether something failed
        self._case = Case(scenario.setup, self._books.down_nodes, self._books.down_links)
        self._set_alarm()

    # ------------------------------------------------------------------ time
    def take(self, events: Sequence[Event]) -> tuple[Violation, ...]:
        """Learns what happened; returns what the world did wrong."""
        found: list[Violation] = []
        fresh_limits = changed = False
        for event in events:
            kind = event.kind
            at = event.at_us
            if at != self._now:
                if at < self._now or at > self._alarm or self._awaited:
                    self._look_back(event, found)
                if (
                    at > self._setup.horizon_us
                ):  # nothing happens there, and slots without end would have to be billed
                    detail = f"{kind} at {at} us; the run ends at {self._setup.horizon_us}"
                    found.append(Violation("time.horizon", detail=detail))
                    break
                self._now = at
                self._books.now_slot = at // self._setup.slot_us
            if kind == "changed":
                fresh_limits = self._change(event, found) or fresh_limits
                continue
            if fresh_limits:
                self._voids = victims(self._books, self._case, self._records.values(), self._now)
                fresh_limits, changed = False, True
            if kind == "arrived":
                self._arrive(event, found)
            elif kind == "finished":
                self._finish(event, found)
            elif event.job >= 0:
                self._other(event, found)
            elif kind == "slot":
                self._close_slot(event, found)
            elif kind == "timer":
                self._ring(event, found)
        if fresh_limits or changed:
            self._after_change(found)
        if self._volumes:
            self._untold(found)
        return tuple(found) if found else NONE

    def _look_back(self, event: Event, found: list[Violation]) -> None:
        """The clock moves: forward, and over nothing that the world should have reported."""
        at = event.at_us
        if at < self._now:
            found.append(Violation("time.forward", detail=f"{event.kind} at {at} us, after {self._now}"))
        if at > self._alarm:
            self._missed(at, found)
        self._unanswered(found)

    def _set_alarm(self) -> None:
        """The next instant at which the world must say something by itself."""
        changes = self._scenario.changes
        due = changes[self._next_change].at_us if self._next_change < len(changes) else OPEN
        self._alarm = min(due, self._timer, self._slot_due)

    def _missed(self, at_us: int, found: list[Violation]) -> None:
        changes = self._scenario.changes
        if self._next_change < len(changes) and changes[self._next_change].at_us < at_us:
            found.append(
                Violation("time.change", detail=f"change {self._next_change} has not been told by {at_us} us")
            )
        if self._slot_due < at_us:
            found.append(Violation("time.slot", slot=self._next_slot, detail="this slot never began"))
        if self._timer < at_us:
            found.append(
                Violation("time.timer", detail=f"the timer of {self._timer} us has not rung by {at_us}")
            )

    def _ring(self, event: Event, found: list[Violation]) -> None:
        if event.at_us != self._timer:
            found.append(Violation("time.timer", detail=f"a timer at {event.at_us} us, which nobody set"))
        self._timer = OPEN
        self._set_alarm()

    def _unanswered(self, found: list[Violation]) -> None:
        """Whoever was quoted or turned away hears of it at the same instant."""
        for job, (kind, _) in self._awaited.items():
            name = self._records[job].job.id
            found.append(Violation("time.answer", name, detail=f"no word at {self._now} us that it {kind}"))
        self._awaited.clear()

    # ------------------------------------------------------------------ arrival and completion
    def _arrive(self, event: Event, found: list[Violation]) -> None:
        jobs = self._scenario.jobs
        if (
            event.job != self._next_arrival
            or event.job >= len(jobs)
            or jobs[event.job].arrive_us != event.at_us
            or (event.fact is not jobs[event.job] and event.fact != jobs[event.job])
        ):
            found.append(
                Violation("time.arrival", detail=f"job {event.job} arrived at {event.at_us} us, out of turn")
            )
            return
        job, customer = jobs[event.job], self._scenario.customers[event.job]
        self._next_arrival += 1
        total = customer.runtime_us if job.kind == "fixed" and job.work.total is None else job.work.total
        self._records[event.job] = Record(job, customer, total, rules_for(job))
        if isinstance(job.work, Stream):
            self._streams.add(event.job)

    def _finish(self, event: Event, found: list[Violation]) -> None:
        record = self._records.get(event.job)
        if record is None or record.is_over:
            found.append(Violation("time.finish", detail=f"job {event.job} finished without being there"))
            return
        if not self._is_measured(record):
            due = self._work.finish_us(record)
            early = self._measured and (due is None or event.at_us < due)
            if due != event.at_us and not early:
                detail = f"finished at {event.at_us} us; by its plan the work is done at {due}"
                amount = 0 if due is None else (event.at_us - due) / 1e6
                found.append(
                    Violation("work.finish", record.job.id, "", self._books.now_slot, amount, detail)
                )
        self._settle(record, event.at_us)
        if record.total is not None:
            record.done = record.total
        record.state, record.finish_us = "finished", event.at_us
        record.steps = ()
        if record.job.hold == "until":
            self._let_go(record)
        if 0 <= record.promise_us < event.at_us and record.void_slot < 0 and not self._measured:
            detail = f"finished at {event.at_us} us; promised was {record.promise_us}"
            found.append(Violation("market.promise", record.job.id, detail=detail))

    def _other(self, event: Event, found: list[Violation]) -> None:
        record = self._records.get(event.job)
        over = record is not None and record.is_over and event.kind not in ("released", "ended")
        if record is None or over:
            detail = f"{event.kind} of job {event.job}, which is not there"
            found.append(Violation("time.event", detail=detail))
            return
        match event.kind:
            case "data":
                self._data(record, event, found)
            case "released":
                self._release(record, event, found)
            case "left":
                self._leave(record, event, found)
            case "voided":
                self._void(record, event, found)
            case "ended":
                self._end(record, event, found)
            case "accepted" | "refused" | "declined":
                self._answer(record, event, found)

    def _release(self, record: Record, event: Event, found: list[Violation]) -> None:
        due = record.finish_us + 1 if record.state == "finished" and record.job.hold == "through" else None
        if event.at_us != due or not record.holds:
            detail = f"released at {event.at_us} us; its resources come free at {due}"
            found.append(Violation("time.release", record.job.id, detail=detail))
        self._let_go(record)

    def _leave(self, record: Record, event: Event, found: list[Violation]) -> None:
        due = self._leaves_us(record)
        early = self._measured and (due is None or event.at_us < due)
        if event.at_us != due and not early:
            detail = f"left at {event.at_us} us; it leaves at {due}"
            found.append(Violation("time.left", record.job.id, detail=detail))
        self._served(record, (event.at_us - 1) // self._setup.slot_us, found)
        self._settle(record, event.at_us)
        self._let_go(record)
        record.state, record.finish_us = "left", event.at_us
        self._streams.discard(event.job)

    def _leaves_us(self, record: Record) -> int | None:
        stays = record.customer.runtime_us if isinstance(record.job.work, Stream) else None
        return None if stays is None else record.job.arrive_us + stays

    def _answer(self, record: Record, event: Event, found: list[Violation]) -> None:
        """Accepted, declined or refused: what was awaited, and the choice was right."""
        kind, value = self._awaited.pop(event.job, ("", 0))
        if kind != event.kind or (kind == "accepted" and value != event.value):
            detail = f"{event.kind} {event.value}; {f'{kind} {value}' if kind else 'nothing'} was awaited"
            found.append(Violation("time.answer", record.job.id, detail=detail))
        if event.kind == "accepted":
            return
        mine = self._quote if self._quote is not None and self._quote.job == event.job else Quote(event.job)
        if (v := rules_market.choice(self._setup, record, mine, -1)) is not None:
            found.append(v)
        self._settle(record, event.at_us)
        self._check_done(record, event.value, found)
        record.state = event.kind
        self._let_go(record)
        self._streams.discard(event.job)

    def _end(self, record: Record, event: Event, found: list[Violation]) -> None:
        """The run is over for an unfinished job: its work is what the steps say, and it was not yet done."""
        if event.at_us != self._setup.horizon_us and not self._measured:
            detail = f"ended at {event.at_us} us; the horizon is {self._setup.horizon_us}"
            found.append(Violation("time.end", record.job.id, detail=detail))
        if record.is_over:  # finished, its resources not yet released
            self._let_go(record)
            return
        due = self._work.finish_us(record) if not self._measured else None
        if due is not None and due <= event.at_us:
            detail = f"the work was done at {due} us, but the job never finished"
            found.append(Violation("work.finish", record.job.id, detail=detail))
        leaves = self._leaves_us(record)
        if leaves is not None and leaves <= event.at_us:
            found.append(
                Violation("time.left", record.job.id, detail=f"it leaves at {leaves} us, but never did")
            )
        if 0 <= record.promise_us <= event.at_us and record.void_slot < 0 and not self._measured:
            detail = f"promised for {record.promise_us} us, but never finished"
            found.append(Violation("market.promise", record.job.id, detail=detail))
        self._served(
            record, event.at_us // self._setup.slot_us - 1, found
        )  # earlier slots were closed in time
        self._settle(record, event.at_us)
        self._check_done(record, event.value, found)
        self._let_go(record)
        record.state = "unfinished"
        self._streams.discard(event.job)

    def _is_measured(self, record: Record) -> bool:
        """Whether only the job's ranks know how far it is; worker-slots and chunks are counted by the plan."""
        work = record.job.work
        return self._measured and (
            isinstance(work, Fixed) or (isinstance(work, Rounds) and work.unit == "round")
        )

    def _check_done(self, record: Record, value: int, found: list[Violation]) -> None:
        """Work done is what the steps did; where it is measured, anything from nothing to all."""
        if self._is_measured(record):
            most = value if record.total is None else record.total
            if not 0 <= value <= most:
                detail = f"{value} is measured as done; there is {most} to do"
                found.append(Violation("work.done", record.job.id, amount=value - most, detail=detail))
            record.done = value
        elif record.done != value:
            detail = f"{value} is reported as done; the steps did {record.done}"
            found.append(Violation("work.done", record.job.id, detail=detail))

    # ------------------------------------------------------------------ slots and data
    def _close_slot(self, event: Event, found: list[Violation]) -> None:
        """A slot begins: in its turn, at its time; the slot before is over for every stream that is still there."""
        slot, slot_us = event.value, self._setup.slot_us
        if slot != self._next_slot or event.at_us != slot * slot_us:
            detail = f"slot {slot} at {event.at_us} us; the next is slot {self._next_slot}"
            found.append(Violation("time.slot", slot=slot, detail=detail))
        self._next_slot = slot + 1
        self._slot_due = self._next_slot * slot_us if self._next_slot < self._setup.slots else OPEN
        self._set_alarm()
        for index in sorted(self._streams):
            self._served(self._records[index], slot - 1, found)
        self._volumes = self._volumes_of(slot)

    def _volumes_of(self, slot: int) -> dict[int, tuple[tuple[int, int], ...]]:
        """What the scenario says of a slot, for the streams that are there."""
        rows = self._scenario.volumes
        low, high = rows.slot.searchsorted([slot, slot + 1])
        told: dict[int, list[tuple[int, int]]] = {}
        columns = (rows.job[low:high].tolist(), rows.node[low:high].tolist(), rows.bytes[low:high].tolist())
        for job, node, size in zip(*columns, strict=True):
            if job in self._streams:
                told.setdefault(job, []).append((node, size))
        return {job: tuple(pairs) for job, pairs in told.items()}

    def _data(self, record: Record, event: Event, found: list[Violation]) -> None:
        """A stream hears what the scenario says, once, when the slot begins."""
        told = self._volumes.pop(event.job, None)
        if told is None or event.fact != told or event.value != self._next_slot - 1:
            detail = f"{event.fact} is told; the scenario has {told}"
            found.append(Violation("time.data", record.job.id, slot=event.value, detail=detail))
        record.data_slot, record.volumes = self._next_slot - 1, told or ()

    def _untold(self, found: list[Violation]) -> None:
        for job in self._volumes:
            name = self._records[job].job.id
            found.append(
                Violation("time.data", name, slot=self._books.now_slot, detail="its data is not told")
            )
        self._volumes = {}

    def _served(self, record: Record, slot: int, found: list[Violation]) -> None:
        """Data of a slot was processed in it: a plan covered the slot, unless a failure cancelled it."""
        size = sum(v for _, v in record.volumes) if record.data_slot == slot else 0
        covered = record.void_slot == slot or any(
            s.from_us == slot * self._setup.slot_us for s in record.steps
        )
        if size and not covered:
            detail = "data of the slot was not processed and the job was not turned away"
            found.append(Violation("data.stream_served", record.job.id, "", slot, size, detail))

    # ------------------------------------------------------------------ changes
    def _change(self, event: Event, found: list[Violation]) -> bool:
        """A row of the scenario's changes, in its turn, at its time; says whether limits are concerned."""
        row, changes = self._next_change, self._scenario.changes
        if (
            event.value != row
            or row >= len(changes)
            or changes[row].at_us != event.at_us
            or event.fact != changes[row]
        ):
            detail = f"change {event.value} at {event.at_us} us; the next is {row}"
            found.append(Violation("time.change", detail=detail))
            return False
        self._next_change += 1
        self._set_alarm()
        self._books.change(changes[row])
        self._bills.change(changes[row])
        return changes[row].kind not in ("price", "egress")

    def _void(self, record: Record, event: Event, found: list[Violation]) -> None:
        """A plan is cancelled: it had to be, and the job keeps what it did until the slot began (failure) or all."""
        now, failed = event.at_us, self._voids.pop(event.job, None)
        if failed is None:
            found.append(Violation("time.void", record.job.id, detail="its plan could have gone on"))
        self._work.mark(record, now)
        self._settle(record, now)
        kept = record.mark_done if failed and not isinstance(record.job.work, Dataset) else record.done
        if self._is_measured(record) and 0 <= event.value <= (record.total or event.value):
            kept = event.value
        elif event.value != kept:
            detail = f"work kept is {event.value}; it was {kept}"
            found.append(
                Violation(
                    "work.kept",
                    record.job.id,
                    slot=self._books.now_slot,
                    amount=event.value - kept,
                    detail=detail,
                )
            )
        record.done, record.state, record.void_slot = kept, "voided", self._books.now_slot
        self._let_go(record)

    def _after_change(self, found: list[Violation]) -> None:
        """What is still planned fits and runs on what is up."""
        self._voids = {}
        over = self._books.exceeded(self._books.every_row())
        if over is not None:
            found.append(self._books.describe(over, ""))
        for record in self._records.values():
            if record.holds and not record.is_over:
                plan = Plan(record.job.index, tuple(s for s in record.steps if s.until_us > self._now))
                if (v := rules_form.nodes_are_up(self._case.of(record, plan, self._now))) is not None:
                    found.append(v)

    # ------------------------------------------------------------------ books
    def _settle(self, record: Record, now_us: int) -> None:
        """Books work and bills of the plan so far."""
        if record.steps:
            if self._failures:
                self._work.mark(record, now_us)
            self._work.accrue(record, now_us)
            if self._has_bills:
                self._bills.post(record, now_us)

    def _let_go(self, record: Record) -> None:
        self._books.remove(record.holds)
        record.holds, record.steps = [], ()
