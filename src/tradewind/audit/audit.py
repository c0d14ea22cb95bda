"""The audit: checks every event, quote and decision against its own ledgers and recomputes every result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isclose, isfinite

from tradewind.audit import rules_form, rules_market, rules_posted
from tradewind.audit.capacity import CapacityLedger, Claim
from tradewind.audit.events import NONE, EventAudit
from tradewind.audit.held import differs
from tradewind.audit.record import OVER, Record
from tradewind.audit.results import outcome, quantiles, utilisation
from tradewind.audit.rules import PLAIN
from tradewind.audit.saved import AuditState, restore_records, save_records
from tradewind.model.decision import Charge, Decision, HeldQuote, Plan, Quote
from tradewind.model.job import Job, Stream
from tradewind.model.result import Violation
from tradewind.model.scenario import Script
from tradewind.model.setup import Setup

RECOUNT_EVERY = 16_384
"""Decisions between two recounts of the capacity ledger."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Result of an audit: violations, and the metrics as the audit computes them."""

    violations: tuple[Violation, ...]
    metrics: Mapping[str, float]


class Audit(EventAudit):
    """Checks events (`take`), quotes and decisions; commits those that break no rule.

    script    what a world that plays a scenario must report; None for a run whose events nobody knows beforehand
    measured  completion and progress are measured, not computed
    binding   a plan that was bought must not be replaced
    """

    def __init__(
        self, setup: Setup, script: Script | None = None, *, measured: bool = False, binding: bool = False
    ) -> None:
        super().__init__(setup, script, measured=measured)
        self._decisions, self._binding = 0, binding

    # ------------------------------------------------------------------ decisions
    def check(self, now_us: int, decision: Decision) -> tuple[Violation, ...]:
        """Check a decision as a whole. Commit it if no rule is broken; otherwise change nothing."""
        found: list[Violation] = []
        seen: set[int] = set()
        records, held = self._records, self._held.of_job
        for plan in decision.plans:
            job = plan.job
            record = records.get(job) if type(job) is int else None
            if record is None or record.state in OVER or job in seen or job in held:
                found.append(
                    Violation(
                        "plan.job",
                        detail=f"a plan for job {job!r}, which is not active, has an open quote or is named twice",
                    )
                )
                continue
            seen.add(job)
            if self._binding and (broken := rules_market.bought_plan_stays(record, now_us)) is not None:
                found.append(broken)
                continue
            self._check_plan(record, plan, now_us, found)
        for verdict in decision.verdicts:
            record = self._records.get(verdict.job) if type(verdict.job) is int else None
            if record is None or verdict.job in seen or not _may_be_refused(record, now_us):
                name = "" if record is None else record.job.id
                detail = f"job {verdict.job!r} cannot be refused now"
                found.append(
                    Violation("plan.verdict", name, "", now_us // self._setup.slot_us, detail=detail)
                )
                continue
            seen.add(verdict.job)
        wake = decision.wake_us
        if wake is not None and (type(wake) is not int or wake <= now_us):
            found.append(
                Violation(
                    "plan.wake",
                    detail=f"the timer is set to {wake!r} us; it must be later than now, {now_us}",
                )
            )
        elif wake is not None and self._timer <= now_us:
            self._missed(now_us + 1, found)
        if refused := tuple(found) if found else self._commit(decision.plans, now_us):
            return refused
        for verdict in decision.verdicts:
            self._awaited[verdict.job] = ("refused", 0)
        if wake is not None:
            self._set_timer(wake)
        return NONE

    def _check_plan(self, record: Record, plan: Plan, now_us: int, found: list[Violation]) -> None:
        """Append the first rule that a plan breaks, capacity aside."""
        case = self._case.of(record, plan, now_us)
        if record.rules is PLAIN and rules_form.is_plainly_sound(case):
            return
        for rule in record.rules:
            if (broken := rule(case)) is not None:
                found.append(broken)
                return

    def _commit(self, plans: Sequence[Plan], now_us: int) -> tuple[Violation, ...]:
        """Replace the claims of all plans at once; roll back if a limit is exceeded."""
        capacity, records = self._capacity, self._records
        slot, spend = now_us // self._setup.slot_us, self._spend
        if spend is not None and (too_much := spend.exceeded(records, plans, slot)):
            return too_much
        for plan in plans:
            if claims := records[plan.job].claims:
                capacity.remove(claims)
        fresh: list[list[Claim]] = []
        for index, steps in plans:
            claims = []
            fresh.append(claims)
            job = records[index].job
            for step in steps:
                if (over := capacity.enter(job, step, claims)) is not None:
                    for undo in fresh:
                        capacity.remove(undo)
                    for old in plans:
                        capacity.add(records[old.job].claims)
                    return (capacity.describe(over, job.id),)
        if spend is not None:
            spend.enter(records, plans, slot)
        for (index, steps), claims in zip(plans, fresh, strict=True):
            record = records[index]
            if record.steps:
                self._settle(record, now_us)
            record.claims, record.steps = claims, steps
            record.number = self._decisions
            record.since_us = record.unbilled_us = now_us
            record.state = "planned" if steps else "waiting"
        self._decisions += 1
        if self._decisions % RECOUNT_EVERY == 0:
            return self.recount()
        return NONE

    # ------------------------------------------------------------------ market
    def check_quote(self, now_us: int, quote: Quote) -> tuple[Violation, ...]:
        """Check that each offer can be carried out on its own, before the customer is asked."""
        record = self._records.get(quote.job)
        if record is None or record.is_over:
            return (Violation("market.job", detail=f"a quote for job {quote.job}, which is not active"),)
        self._quote = quote
        found: list[Violation] = []
        for offer in quote.offers:
            if (broken := rules_market.offer_is_sound(self._setup, record, offer)) is not None:
                found.append(broken)
                continue
            self._check_plan(record, offer.plan, now_us, found)
            if found:
                break
            if (broken := rules_market.promise(self._setup, self._work, record, offer, now_us)) is not None:
                found.append(broken)
            if not found and quote.posted is not None:
                broken = rules_posted.payment_adds_up(self._capacity, record, offer, quote.posted)
                found += [] if broken is None else [broken]
            claims: list[Claim] = []
            for step in offer.plan.steps:
                if (over := self._capacity.enter(record.job, step, claims)) is not None:
                    found.append(self._capacity.describe(over, record.job.id))
                    break
            self._capacity.remove(claims)
        if not found:
            self._awaited[quote.job] = ("declined" if quote.offers else "refused", 0)
        return tuple(found)

    def accept(self, now_us: int, quote: Quote, taken: int) -> tuple[Violation, ...]:
        """Check the customer's choice and commit the plan of the offer taken."""
        record = self._records[quote.job]
        if not 0 <= taken < len(quote.offers):
            detail = f"took offer {taken}; {len(quote.offers)} were made"
            return (Violation("market.choice", record.job.id, detail=detail),)
        held = self._held.of_job.get(quote.job)
        if self._script is not None and held is None:  # who thinks about a quote is bound by no script
            broken = rules_market.choice(self._setup, record, quote, taken)
            if broken is not None:
                return (broken,)
        offer = quote.offers[taken]
        if held is not None:
            if found := self._check_sale(record, held, quote, taken, now_us):
                return found
        elif found := self._commit((offer.plan,), now_us):
            return found
        record.paid, record.promise_us = offer.payment_usd, offer.finish_us
        self._awaited[quote.job] = ("accepted", taken)
        self._quote = None
        return NONE

    def hold(self, held: HeldQuote) -> None:
        """Hold a checked quote: nobody else gets what its offers need until it is closed."""
        job = held.quote.job
        self._held.open(held, self._records[job].job)
        self._awaited[job] = ("quoted", held.expires_us)
        self._quote = None
        self._set_deadline()

    def _check_sale(
        self, record: Record, held: HeldQuote, quote: Quote, taken: int, now_us: int
    ) -> tuple[Violation, ...]:
        """A late answer buys what was quoted, which fits because it was held; commit it."""
        offer = quote.offers[taken]
        late = now_us - held.at_us
        wrong = (
            differs(held.quote.offers[taken], offer, late)
            if taken < len(held.quote.offers)
            else "no such offer"
        )
        if now_us > held.expires_us:
            wrong = f"quote {held.id} expired at {held.expires_us} us"
        elif late and self._awaited.get(quote.job) != ("acceptance", taken):
            wrong = (
                f"offer {taken} of quote {held.id} is sold, but no `answered` event of its customer says so"
            )
        if wrong:
            return (Violation("market.sale", record.job.id, detail=wrong),)
        found: list[Violation] = []
        self._check_plan(record, offer.plan, now_us, found)
        broken = rules_market.promise(self._setup, self._work, record, offer, now_us)
        if found or broken is not None:
            return (*found, *(() if broken is None else (broken,)))
        claims = self._held.release(held.quote.job)
        if over := self._commit((offer.plan,), now_us):
            self._held.restore(held.quote.job, claims)
            return over
        return NONE

    def check_charges(self, charges: Sequence[Charge]) -> tuple[Violation, ...]:
        """Check payments made after the run: one per complete job, at most the value stated in its bid."""
        if charges and self.forget is not None:
            detail = "jobs that are over were forgotten, so payments for them cannot be checked"
            return (Violation("market.charge", detail=detail),)
        found: list[Violation] = []
        for charge in charges:
            record = self._records.get(charge.job) if type(charge.job) is int else None
            if (broken := rules_market.charge_is_due(self._setup, record, charge)) is not None:
                found.append(broken)
            elif record is not None:
                record.paid = charge.usd
        return tuple(found)

    # ------------------------------------------------------------------ saving
    def save(self) -> AuditState:
        """The state, between two instants. Jobs are named by index; whoever restores it has them."""
        capacity, spend = self._capacity, self._spend
        records, waiting = save_records(self._records.values())
        return AuditState(
            now_us=self._now,
            next_arrival=self._next_arrival,
            next_change=self._next_change,
            found_changes=self._found,
            next_slot=self._next_slot,
            timer_us=self._timer,
            slot_due_us=self._slot_due,
            decisions=self._decisions,
            has_costs=self._has_costs,
            awaited=dict(self._awaited),
            first_slot=capacity.first_slot,
            limit=tuple(capacity.limit),
            down_nodes=frozenset(capacity.down_nodes),
            down_links=frozenset(capacity.down_links),
            used=tuple(self._work.used),
            costs=self._costs.save(),
            spent=() if spend is None else spend.save(),
            totals=self._totals,
            records=records,
            waiting=waiting,
            held=tuple(self._held.of_job.values()),
            quotes=tuple((id_, *row) for id_, row in self._held.made.items()),
        )

    def restore(self, state: AuditState, jobs: Mapping[int, Job]) -> None:
        """Continue from what `save` returned, in a new audit of the same setup and script."""
        capacity = self._capacity
        self._now, self._decisions = state.now_us, state.decisions
        self._next_arrival, self._next_change = state.next_arrival, state.next_change
        self._found = state.found_changes
        self._next_slot, self._timer, self._slot_due = state.next_slot, state.timer_us, state.slot_due_us
        self._has_costs, self._awaited, self._totals = state.has_costs, state.awaited, state.totals
        capacity.now_slot, capacity.first_slot = state.now_us // self._setup.slot_us, state.first_slot
        capacity.limit = list(state.limit)
        capacity.down_nodes.update(state.down_nodes)
        capacity.down_links.update(state.down_links)
        self._work.used = list(state.used)
        self._costs.restore(state.costs)
        if self._spend is not None:
            self._spend.restore(state.spent)
        self._records = restore_records(state, jobs, capacity, self._fresh)
        for held in state.held:
            self._held.open(held, jobs[held.quote.job])
        self._held.made = {id_: (job, expires_us) for id_, job, expires_us in state.quotes}
        self._streams = {
            index
            for index, record in self._records.items()
            if isinstance(record.job.work, Stream) and not record.is_over
        }
        self._interrupted = {
            index
            for index, record in self._records.items()
            if record.paid is not None and record.cancelled_slot >= 0 and not record.is_over
        }
        self._set_deadline()

    # ------------------------------------------------------------------ certificates
    def free_bps(self, job: int) -> list[list[int]]:
        """Bit/s of every link, in both directions, that the other jobs leave to this one after the last decision."""
        return self._capacity.free_bps(self._records[job].claims if job in self._records else ())

    # ------------------------------------------------------------------ the end
    def recount(self) -> tuple[Violation, ...]:
        """Sum all claims from scratch and compare with the running totals."""
        fresh = CapacityLedger(self._setup)
        fresh.first_slot = self._capacity.first_slot
        for record in self._records.values():
            if record.claims:
                fresh.add(record.claims)
        self._held.count(fresh)
        if fresh.open != self._capacity.open:
            return (Violation("ledger.recount", detail="the running totals differ from a recount"),)
        kept, counted = (
            {(row, slot): n for row, slots in ledger.booked.items() for slot, n in slots.items() if n}
            for ledger in (self._capacity, fresh)
        )
        if kept != counted:
            return (Violation("ledger.recount", detail="the booked slots differ from a recount"),)
        return NONE

    def close(self) -> AuditReport:
        """Close the ledgers: check unfinished jobs, recount, and recompute every result.

        Where jobs were forgotten, the quantiles are left out: `results.quantiles` of all outcomes gives them.
        """
        found = [*self.recount(), *self._costs.overspent]
        end = self._now
        for record in self._records.values():
            if record.state not in OVER:
                detail = "the run ended without an event that ends this job"
                found.append(Violation("time.end", record.job.id, detail=detail))
            elif record.claims:
                detail = "its resources were never released"
                found.append(Violation("time.release", record.job.id, detail=detail))
        self._unanswered(found)
        if self._deadline <= end:
            self._missed(end + 1, found)
        found += [] if self.attempts is None else self.attempts.close()
        missing = 0 if self._script is None else self._script.missing(self._next_arrival)
        if missing and not self._measured:
            found.append(
                Violation("time.arrival", amount=missing, detail="jobs that should have arrived did not")
            )
        rows = [outcome(self._setup, record) for record in self._records.values()]
        totals = self._totals.plus(rows)
        metrics = totals.metrics(self._costs.totals())
        if self._setup.objective == "total_usd":
            metrics["total_usd"] = metrics["cost_usd"] + fsum(totals.lost_usd)
        if self.forget is None:
            metrics |= quantiles(rows)
        metrics |= utilisation(self._setup, self._work.used, end)
        return AuditReport(tuple(found), metrics)


def _may_be_refused(record: Record, now_us: int) -> bool:
    """Whether a job may be refused: nothing is planned for it, and if it has paid, a failure cancelled its plan."""
    busy = any(step.until_us > now_us for step in record.steps)
    return not record.is_over and not busy and (record.paid is None or record.cancelled_slot >= 0)


def compare(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[Violation, ...]:
    """Compare reported metrics with the audit's own, to 9 digits."""
    found = []
    for name, value in sorted(ours.items()):
        other = theirs.get(name)
        same = other is not None and (
            isclose(value, other, rel_tol=1e-9, abs_tol=1e-9) or not (isfinite(value) or isfinite(other))
        )
        if not same:
            found.append(
                Violation("ledger.metric", detail=f"{name} is reported as {other}; the audit counts {value}")
            )
    return tuple(found)
