"""The audit: takes every event, checks every quote and decision, keeps its own books, recomputes every result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite

from tradewind.audit import rules_data, rules_form, rules_market, rules_network, rules_work
from tradewind.audit.bills import Bills
from tradewind.audit.books import Books, Claim
from tradewind.audit.record import Case, Record, Rule
from tradewind.audit.results import results
from tradewind.audit.work import WorkBook
from tradewind.model.decision import Decision, Plan, Quote
from tradewind.model.job import Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.result import Violation
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change, Event

RECOUNT_EVERY = 16_384
NONE: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What the audit found in the end: violations, and its own numbers."""

    violations: tuple[Violation, ...]
    metrics: Mapping[str, float]


_PLAIN: tuple[Rule, ...] = (
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
        return _PLAIN
    rules: list[Rule] = list(_PLAIN)
    if job.servers or job.architecture == "ps" or job.server:
        rules.append(rules_form.servers_are_in_number)
    if job.nodes is not None or job.data_nodes is not None:
        rules.append(rules_form.places_are_allowed)
    match job.work:
        case Stream():
            rules += [rules_data.stream_is_processed, rules_data.workers_keep_up_with_the_stream]
        case Dataset():
            rules += [rules_data.chunks_exist, rules_data.workers_keep_up_with_the_chunks]
        case Rounds():
            rules += [rules_network.routes_are_paths, rules_form.pinned_workers_stay]
            if job.work.comm == "flows":
                rules.append(rules_network.every_site_reaches_the_server)
            if job.work.comm == "ring":
                rules.append(rules_network.ring_is_closed)
            if job.work.unit == "worker-slot":
                rules.append(rules_work.worker_slots_are_left)
    if job.caps:
        rules.append(rules_work.caps_are_kept)
    return tuple(rules)


class Audit:
    """Books of its own. `measured` worlds own their progress, so completion times are not predicted there."""

    def __init__(self, scenario: Scenario, *, measured: bool = False) -> None:
        self._scenario, self._setup, self._measured = scenario, scenario.setup, measured
        self._books, self._bills, self._work = (
            Books(scenario.setup),
            Bills(scenario.setup),
            WorkBook(scenario.setup),
        )
        self._has_bills = not self._bills.is_idle or any(job.deploy_usd for job in scenario.jobs)
        self._records: dict[int, Record] = {}
        self._next_arrival = 0
        self._decisions = 0
        self._quote: Quote | None = None
        self._now = 0
        self._streams: set[int] = set()
        self._case = Case(scenario.setup, self._books.down_nodes, self._books.down_links)

    # ------------------------------------------------------------------ events
    def take(self, events: Sequence[Event]) -> tuple[Violation, ...]:
        """Learns what happened; returns what the world did wrong."""
        found: list[Violation] = []
        changed = False
        for event in events:
            kind = event.kind
            if event.at_us < self._now:
                found.append(
                    Violation("time.forward", detail=f"{kind} at {event.at_us} us, after {self._now}")
                )
            if event.at_us != self._now:
                self._now = event.at_us
                self._books.now_slot = event.at_us // self._setup.slot_us
            if kind == "arrived":
                self._arrive(event, found)
            elif kind == "finished":
                self._finish(event, found)
            elif kind == "changed":
                changed = True
                assert isinstance(event.fact, Change)
                self._books.change(event.fact)
                self._bills.change(event.fact)
            elif kind == "slot":
                self._close_slot(event, found)
            elif event.job >= 0:
                self._other(event, found)
        if changed:
            self._after_change(found)
        return tuple(found) if found else NONE

    def _arrive(self, event: Event, found: list[Violation]) -> None:
        jobs = self._scenario.jobs
        if (
            event.job != self._next_arrival
            or event.job >= len(jobs)
            or jobs[event.job].arrive_us != event.at_us
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
        if not self._measured:
            due = self._work.finish_us(record)
            if due != event.at_us:
                detail = f"finished at {event.at_us} us; by its plan the work is done at {due}"
                found.append(
                    Violation("work.finish", record.job.id, slot=self._books.now_slot, detail=detail)
                )
        self._settle(record, event.at_us)
        if record.total is not None:
            record.done = record.total
        record.state, record.finish_us = "finished", event.at_us
        record.steps = ()
        if record.job.hold == "until":
            self._let_go(record)
        if 0 <= record.promise_us < event.at_us:
            detail = f"finished at {event.at_us} us; promised was {record.promise_us}"
            found.append(Violation("market.promise", record.job.id, detail=detail))

    def _other(self, event: Event, found: list[Violation]) -> None:
        record = self._records.get(event.job)
        if record is None:
            found.append(
                Violation("time.event", detail=f"{event.kind} of job {event.job}, which has not arrived")
            )
            return
        match event.kind:
            case "data":
                record.data_slot, record.volumes = event.value, self._volumes(event)
            case "released":
                self._let_go(record)
            case "left":
                self._served(record, (event.at_us - 1) // self._setup.slot_us, found)
                self._settle(record, event.at_us)
                self._let_go(record)
                record.state, record.finish_us = "left", event.at_us
                self._streams.discard(event.job)
            case "voided":
                rules_work.settle_void(self._setup, self._work, self._bills, record, event, found)
                self._let_go(record)
            case "ended":
                self._end(record, event, found)
            case "refused" | "declined":
                asked = (
                    self._quote
                    if self._quote is not None and self._quote.job == event.job
                    else Quote(event.job)
                )
                if (v := rules_market.choice(self._setup, record, asked, -1)) is not None:
                    found.append(v)
                record.state = event.kind
                self._let_go(record)
                self._streams.discard(event.job)

    def _end(self, record: Record, event: Event, found: list[Violation]) -> None:
        """The run is over for an unfinished job: its work is what the steps say, and it was not yet done."""
        if record.is_over:  # finished, its resources not yet released
            self._let_go(record)
            return
        due = None if self._measured else self._work.finish_us(record)
        if due is not None and due < event.at_us:
            detail = f"the work was done at {due} us, but the job never finished"
            found.append(Violation("work.finish", record.job.id, detail=detail))
        if record.data_slot >= 0 and (record.data_slot + 1) * self._setup.slot_us <= event.at_us:
            self._served(record, record.data_slot, found)
        self._settle(record, event.at_us)
        if not self._measured and record.done != event.value:
            detail = f"{event.value} is reported as done; the steps did {record.done}"
            found.append(Violation("work.done", record.job.id, detail=detail))
        self._let_go(record)
        record.state = "unfinished"
        self._streams.discard(event.job)

    def _volumes(self, event: Event) -> tuple[tuple[int, int], ...]:
        rows = self._scenario.volumes
        low, high = rows.slot.searchsorted([event.value, event.value + 1])
        keep = rows.job[low:high] == event.job
        return tuple(
            zip(rows.node[low:high][keep].tolist(), rows.bytes[low:high][keep].tolist(), strict=True)
        )

    def _close_slot(self, event: Event, found: list[Violation]) -> None:
        """The slot before is over for every stream that is still there."""
        for index in sorted(self._streams):
            self._served(self._records[index], event.value - 1, found)

    def _served(self, record: Record, slot: int, found: list[Violation]) -> None:
        """Data of a slot was processed in it: a plan covered the slot, unless a failure cancelled it."""
        size = sum(v for _, v in record.volumes) if record.data_slot == slot else 0
        covered = record.state == "voided" or any(
            s.from_us == slot * self._setup.slot_us for s in record.steps
        )
        if size and not covered:
            detail = "data of the slot was not processed and the job was not turned away"
            found.append(Violation("data.stream_served", record.job.id, "", slot, size, detail))

    def _after_change(self, found: list[Violation]) -> None:
        over = self._books.exceeded(self._books.every_row())
        if over is not None:
            found.append(self._books.describe(over, ""))
        for record in self._records.values():
            if record.holds and not record.is_over:
                plan = Plan(record.job.index, tuple(s for s in record.steps if s.until_us > self._now))
                if (v := rules_form.nodes_are_up(self._case.of(record, plan, self._now))) is not None:
                    found.append(v)

    # ------------------------------------------------------------------ decisions
    def check(self, now_us: int, decision: Decision) -> tuple[Violation, ...]:
        """Checks a decision as a whole; commits it if nothing is wrong, else changes nothing."""
        found: list[Violation] = []
        seen: set[int] = set()
        for plan in decision.plans:
            record = self._records.get(plan.job) if type(plan.job) is int else None
            if record is None or record.is_over or plan.job in seen:
                found.append(
                    Violation(
                        "plan.job", detail=f"a plan for job {plan.job!r}, which is not there or named twice"
                    )
                )
                continue
            seen.add(plan.job)
            self._judge(record, plan, now_us, found)
        for verdict in decision.verdicts:
            record = self._records.get(verdict.job)
            busy = record is not None and any(step.until_us > now_us for step in record.steps)
            if record is None or record.is_over or busy or verdict.job in seen:
                found.append(Violation("plan.verdict", detail=f"job {verdict.job} cannot be turned away now"))
        wake = decision.wake_us
        if wake is not None and (type(wake) is not int or wake <= now_us):
            found.append(
                Violation("plan.wake", detail=f"the timer is set to {wake!r} us; it is {now_us} now")
            )
        if found:
            return tuple(found)
        return self._commit(decision.plans, now_us)

    def _judge(self, record: Record, plan: Plan, now_us: int, found: list[Violation]) -> None:
        case = self._case.of(record, plan, now_us)
        if record.rules is _PLAIN and rules_form.is_plainly_sound(case):
            return
        for rule in record.rules:
            if (broken := rule(case)) is not None:
                found.append(broken)
                return

    def _commit(self, plans: Sequence[Plan], now_us: int) -> tuple[Violation, ...]:
        """Replaces claims all at once; rolls back when a limit breaks."""
        books, records = self._books, self._records
        for plan in plans:
            if holds := records[plan.job].holds:
                books.remove(holds)
        fresh: list[list[Claim]] = []
        for plan in plans:
            claims: list[Claim] = []
            fresh.append(claims)
            job = records[plan.job].job
            for step in plan.steps:
                over = books.enter(job, step, claims)
                if over is not None:
                    for undo in fresh:
                        books.remove(undo)
                    for old in plans:
                        books.add(records[old.job].holds)
                    return (books.describe(over, job.id),)
        for plan, claims in zip(plans, fresh, strict=True):
            record = records[plan.job]
            self._settle(record, now_us)
            record.holds, record.steps, record.committed_us = claims, plan.steps, now_us
            record.since_us = record.unbilled_us = now_us
            record.state = "planned" if plan.steps else "waiting"
        self._decisions += 1
        if self._decisions % RECOUNT_EVERY == 0:
            return self.recount()
        return NONE

    def _settle(self, record: Record, now_us: int) -> None:
        """Books work and bills of the plan so far."""
        if record.steps:
            self._work.accrue(record, now_us)
            if self._has_bills:
                self._bills.post(record, now_us)

    def _let_go(self, record: Record) -> None:
        self._books.remove(record.holds)
        record.holds, record.steps = [], ()

    # ------------------------------------------------------------------ market
    def check_quote(self, now_us: int, quote: Quote) -> tuple[Violation, ...]:
        """Each offer must be able to come true by itself, before the customer is asked."""
        record = self._records.get(quote.job)
        if record is None or record.is_over:
            return (Violation("market.job", detail=f"a quote for job {quote.job}, which is not there"),)
        self._quote = quote
        found: list[Violation] = []
        for offer in quote.offers:
            if (broken := rules_market.offer_is_sound(self._setup, record, offer)) is not None:
                found.append(broken)
                continue
            self._judge(record, offer.plan, now_us, found)
            if found:
                break
            if (broken := rules_market.promise(self._setup, self._work, record, offer, now_us)) is not None:
                found.append(broken)
            claims: list[Claim] = []
            for step in offer.plan.steps:
                if (over := self._books.enter(record.job, step, claims)) is not None:
                    found.append(self._books.describe(over, record.job.id))
                    break
            self._books.remove(claims)
        return tuple(found)

    def accept(self, now_us: int, quote: Quote, taken: int) -> tuple[Violation, ...]:
        """The customer took an offer: was the choice right, and is its plan committed?"""
        record, offer = self._records[quote.job], quote.offers[taken]
        if (broken := rules_market.choice(self._setup, record, quote, taken)) is not None:
            return (broken,)
        if found := self._commit((offer.plan,), now_us):
            return found
        record.paid, record.promise_us = offer.payment_usd, offer.finish_us
        return NONE

    # ------------------------------------------------------------------ the end
    def recount(self) -> tuple[Violation, ...]:
        """Adds all claims up from scratch and compares exactly."""
        fresh = Books(self._setup)
        for record in self._records.values():
            if record.holds:
                fresh.add(record.holds)
        if fresh.open != self._books.open:
            return (Violation("books.recount", detail="the running totals differ from a recount"),)
        for row, book in self._books.booked.items():
            other = fresh.booked.get(row, {})
            if any(amount != other.get(slot, 0) for slot, amount in book.items()):
                return (Violation("books.recount", detail="the booked slots differ from a recount"),)
        return NONE

    def close(self) -> Report:
        """Ends the books: unfinished jobs, recount, and every result recomputed."""
        found = list(self.recount())
        end = self._now
        silent = [record.job.id for record in self._records.values() if not record.is_over]
        found += [
            Violation("time.end", job, detail="the run ended without a word about this job") for job in silent
        ]
        missing = sum(1 for job in self._scenario.jobs[self._next_arrival :] if job.arrive_us <= end)
        if missing:
            found.append(
                Violation("time.arrival", amount=missing, detail="jobs that should have arrived did not")
            )
        metrics = results(self._setup, list(self._records.values()), self._bills.totals())
        return Report(tuple(found), metrics)


def compare(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[Violation, ...]:
    """The audit's numbers against reported ones: equal to 9 digits, or a violation that names both."""
    found = []
    for name, value in sorted(ours.items()):
        other = theirs.get(name)
        same = other is not None and (
            isclose(value, other, rel_tol=1e-9, abs_tol=1e-9) or not (isfinite(value) or isfinite(other))
        )
        if not same:
            found.append(
                Violation("books.metric", detail=f"{name} is reported as {other}; the audit counts {value}")
            )
    return tuple(found)
