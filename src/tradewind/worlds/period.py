"""A period [from, to) of a run as a scenario and a run of their own, which the audit accepts and any policy can be run on.

Jobs that are active at the start arrive then, with the work that is left, and keep their plans. Plans that reach beyond the
end are carried out: the run goes on without new arrivals until the last booked slot is over. The rest is in docs/store.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from tradewind.engine.accounts import settle
from tradewind.engine.instants import Instant, Trade, read_charges
from tradewind.engine.journal import Journal
from tradewind.engine.live import OVER
from tradewind.model.decision import NOTHING, Decision, HeldQuote, Offer, Plan, Quote, Step, Verdict
from tradewind.model.errors import InputError
from tradewind.model.hash import scenario_hash
from tradewind.model.job import Customer, Job, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.tenant import EVERY_TENANT
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event
from tradewind.worlds.period_quotes import PeriodQuotes
from tradewind.worlds.period_work import (
    WorkDone,
    all_events,
    arranged,
    completion_us,
    read_instants,
    spent,
    steps_left,
    total_work,
    with_copies,
    with_leaves,
    work_left,
)

BEFORE = (*OVER, "voided", "released", "changed", "answered", "expired")
"""Events of the first instant that belong to the time before it."""
LIMITS = ("capacity", "bandwidth", "node_down", "link_down")
"""Changes that can cancel plans, the oldest first."""
SOLD_BEFORE, LOST = "sold before the period", "had lost the plan that it paid for: its payment is left out"
"""Why a job has a quote again at the start of a period, or none."""
NOT_AT_END = ("arrived", "slot", "data", "timer", "answered", "expired", "ended")
"""Events of the last instant that belong to the time after it, or come last."""


class Period(NamedTuple):
    """Scenario and run of a period, and what has to be known to read them."""

    scenario: Scenario
    run: Run
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Active:
    """A job at the start of the period: work done, plan in force, payment for the offer that it took.

    age      number of the decision that made the plan, at made_us; higher is newer
    thought  whether the customer took its time to answer
    voided   whether a failure cancelled a plan of it
    """

    job: Job
    steps: tuple[Step, ...] = ()
    age: int = 0
    made_us: int = 0
    paid: float | None = None
    unit_usd: tuple[tuple[int, float], ...] = ()
    done: int = 0
    thought: bool = False
    voided: bool = False


def cut(scenario: Scenario, run: Run, from_us: int, to_us: int) -> Period:
    """Cut a period out of a run; `from_us` is the start of a slot."""
    setup = scenario.setup
    if from_us % setup.slot_us or not 0 <= from_us < min(to_us, setup.horizon_us):
        raise InputError(
            f"the period from {from_us / 1e6:g} s to {to_us / 1e6:g} s: it must begin at the start of a slot of "
            f"{setup.slot_us / 1e6:g} s, at 0 or later, before the run's end at {setup.horizon_us / 1e6:g} s, and end after "
            "that"
        )
    return _Cut(scenario, run, from_us, min(to_us, setup.horizon_us)).period()


class _Cut:
    def __init__(self, scenario: Scenario, run: Run, from_us: int, to_us: int) -> None:
        self.old, self.run, self.from_us, self.to_us = scenario, run, from_us, to_us
        self.slot = from_us // scenario.setup.slot_us
        self.exact = run.world == "simulated"
        self.instants = list(read_instants(scenario, run))
        self.work = WorkDone(scenario)
        self.active: dict[int, _Active] = {}
        self.held: dict[int, HeldQuote] = {}  # job -> its open quote, numbered as in the whole run
        self.quotes, self.decisions = 0, 0  # held and made so far
        self.timer = OPEN
        self.changes: dict[tuple[str, int, int], Change] = {}
        self.notes: list[str] = []

    def period(self) -> Period:
        """Read up to the start, then write what follows."""
        rest = self._read_before()
        self._order(rest)
        index = {old: new for new, old in enumerate(self.active)}
        for instant in rest:
            for event in instant.events:
                if event.kind == "arrived" and event.at_us < self.to_us:
                    index[event.job] = len(index)
        end_us = self._end(rest, index)
        rest = with_leaves(self.old, self.active, [each for each in rest if each.at_us <= end_us], end_us)
        scenario = self._scenario(index, rest, end_us)
        journal = self._journal(scenario, index, rest, end_us)
        charges = [c for c in read_charges(self.run.tables) if c.job in index]
        done = set(journal.tables["events"]["job"])
        journal.charges([c._replace(job=index[c.job]) for c in charges if index[c.job] in done])
        cut_run = replace(
            self.run, scenario_hash=scenario_hash(scenario), scenario_name=scenario.name, tables=journal.tables,
            certificates=(), bound=None, violations=(), timings=None, world="simulated" if self.exact else "processes",
        )  # fmt: skip
        return Period(scenario, settle(scenario, cut_run), tuple(self.notes))

    # ------------------------------------------------------------------ before the period
    def _read_before(self) -> list[Instant]:
        """Follow the run up to the start; return the instants of the period, without what ends at its very start."""
        for number, instant in enumerate(self.instants):
            if instant.at_us >= self.from_us:
                rest = self.instants[number:]
                break
            self._follow(instant)
        else:
            rest = []
        if rest and rest[0].at_us == self.from_us:
            first = rest[0]
            kept = tuple(
                event for event in first.events if event.kind not in BEFORE and event.kind != "timer"
            )
            gone = tuple(event for event in first.events if event.kind in BEFORE)
            closed = tuple(trade for trade in first.trades if self._closes(trade))
            fresh = tuple(trade for trade in first.trades if not self._closes(trade))
            self._follow(Instant(first.at_us, gone, closed, None, ()))
            rest[0] = first._replace(events=kept, trades=fresh)
        self.work.to(self.from_us)
        before = spent(self.old, self.run, self.active, self.from_us)
        for index, state in self.active.items():
            state.done = self.work.done(index, self.from_us)
            self.exact = self.exact and self.work.is_whole(index, self.from_us)
            own, plan = before[index], (state.made_us, state.steps)
            state.job = work_left(self.old.setup, state.job, state.done, own)
            state.job = with_copies(self.old.setup, state.job, own, plan, self.from_us)
        return rest

    def _closes(self, trade: Trade) -> bool:
        """Whether a trade of the first instant closes a quote that was made before."""
        return trade.event is not None and trade.event.kind != "quoted" and trade.event.job in self.held

    def _order(self, rest: Sequence[Instant]) -> None:
        """Jobs stay in order of arrival, but those come first whose sales and quotes are made again at the start, and where
        plans may be cancelled, which is done by their age, older plans come first."""
        facts = [event.fact for instant in rest for event in instant.events if event.kind == "changed"]
        by_age = any(isinstance(fact, Change) and fact.kind in LIMITS for fact in facts)
        fresh = rest[0].decision.plans if rest and rest[0].at_us == self.from_us and rest[0].decision else ()
        newest = {plan.job for plan in fresh}

        def place(job: int) -> tuple[bool, bool, bool, int, int]:
            state = self.active[job]
            is_sold, is_last = state.paid is not None and bool(state.steps), job in newest or not state.steps
            return not is_sold, by_age and is_last, job not in self.held, state.age if by_age else 0, job

        self.active = {job: self.active[job] for job in sorted(self.active, key=place)}
        self.held = {job: self.held[job] for job in self.active if job in self.held}

    def _follow(self, instant: Instant) -> None:
        self.work.take(instant)
        for event in all_events(instant):
            if event.kind == "arrived":
                self.active[event.job] = _Active(self.old.jobs[event.job])
            elif event.kind in OVER:
                self.active.pop(event.job, None)
            elif event.kind == "voided" and (state := self.active.get(event.job)):
                state.steps, state.voided = (), True
            elif event.kind == "timer":
                self.timer = OPEN
            elif isinstance(event.fact, Change):
                change = event.fact
                kind = change.kind.removesuffix("_down").removesuffix("_up")
                self.changes.pop((kind, change.a, change.b), None)
                self.changes[kind, change.a, change.b] = change
        for told, quote, taken in instant.trades:
            if told is not None and quote is not None and told.kind == "quoted":
                self.held[quote.job] = HeldQuote(self.quotes, quote, instant.at_us, told.value)
                self.quotes += 1
                continue
            thought = told is not None and self.held.pop(told.job, None) is not None
            if quote is not None and taken >= 0 and (state := self.active.get(quote.job)):
                offer = quote.offers[taken]
                self.decisions += 1
                state.age, state.made_us, state.thought = self.decisions, instant.at_us, thought
                state.steps, state.unit_usd = offer.plan.steps, offer.unit_usd
                state.paid = offer.payment_usd
        self.held = {job: held for job, held in self.held.items() if job in self.active}
        self.decisions += 1
        for plan in instant.decision.plans if instant.decision else ():
            if state := self.active.get(plan.job):
                state.steps, state.age, state.made_us = plan.steps, self.decisions, instant.at_us
        if instant.decision and instant.decision.wake_us is not None:
            self.timer = instant.decision.wake_us

    def _end(self, rest: Sequence[Instant], index: Mapping[int, int]) -> int:
        """The end of the period, or of the last slot that is booked in it for one of its jobs."""
        end = self.to_us
        plans = [Plan(job, state.steps) for job, state in self.active.items()]
        plans += [offer.plan for held in self.held.values() for offer in held.quote.offers]
        for instant in rest:
            if instant.at_us >= end:
                break
            plans += [offer.plan for _, quote, _ in instant.trades if quote for offer in quote.offers]
            plans += instant.decision.plans if instant.decision else ()
            last = [s.until_us for p in plans if p.job in index for s in p.steps if s.until_us != OPEN]
            end, plans = max([end, *last]), []
        end = min(end, self.old.setup.horizon_us)
        if end > self.to_us:
            self.notes.append(
                f"plans made before {self.to_us / 1e6:g} s reach until {end / 1e6:g} s; the run goes on until then"
            )
        return end

    # ------------------------------------------------------------------ the scenario
    def _scenario(self, index: Mapping[int, int], rest: Sequence[Instant], end_us: int) -> Scenario:
        old, shift = self.old, self.from_us
        jobs, customers = [], []
        for before, after in index.items():
            state = self.active.get(before)
            job = state.job if state else old.jobs[before]
            bid = None if job.bid_from_us is None else job.bid_from_us - shift
            arrive = max(0, job.arrive_us - shift)
            jobs.append(replace(job, index=after, arrive_us=arrive, bid_from_us=bid))
            customers.append(self._customer(before, state, rest))
        changes = [c._replace(at_us=0) for c in self.changes.values() if not c.kind.endswith("_up")]
        for instant in rest:
            changes += [
                e.fact._replace(at_us=e.at_us - shift) for e in instant.events if isinstance(e.fact, Change)
            ]
        tenants = {job.tenant for job in jobs}
        caps = {t: cap for t, cap in old.setup.spend_caps.items() if t == EVERY_TENANT or t in tenants}
        setup = replace(old.setup, horizon_us=end_us - shift, spend_caps=caps)
        name = f"{old.name} from {shift / 1e6:g} to {self.to_us / 1e6:g} s"
        return Scenario(
            name=name, setup=setup, jobs=tuple(jobs), customers=tuple(customers), changes=tuple(changes),
            volumes=self._volumes(index, setup.slots), origin={"period_of": old.name, "from_us": shift, "to_us": self.to_us},
        )  # fmt: skip

    def _customer(self, job: int, state: _Active | None, rest: Sequence[Instant]) -> Customer:
        """The private part; a stream that was cancelled left then."""
        customer, own = self.old.customers[job], self.old.jobs[job]
        stays = customer.runtime_us
        if isinstance(own.work, Stream):
            start = max(own.arrive_us, self.from_us)
            ends = [e for i in rest for e in i.events if e.job == job and e.kind in ("left", "cancelled")]
            stays = (
                ends[0].at_us - start if ends else None if stays is None else own.arrive_us + stays - start
            )
        elif state is not None and stays is not None:
            stays = max(1, stays - state.done)
        return replace(customer, runtime_us=stays)

    def _volumes(self, index: Mapping[int, int], slots: int) -> Volumes:
        v = self.old.volumes
        slot = v.slot - self.slot
        keep = np.isin(v.job, list(index)) & (slot >= 0) & (slot < slots)
        job = np.array([index[j] for j in v.job[keep].tolist()], dtype=np.int64)
        return Volumes(job=job, slot=slot[keep], node=v.node[keep], bytes=v.bytes[keep])

    # ------------------------------------------------------------------ the run
    def _journal(
        self, scenario: Scenario, index: Mapping[int, int], rest: Sequence[Instant], end_us: int
    ) -> Journal:
        journal = Journal()
        quotes = PeriodQuotes(journal, lambda quote: self._quote(quote, index), self.from_us, self.quotes)
        first = rest[0] if rest and rest[0].at_us == self.from_us else Instant(self.from_us, (), (), None, ())
        begun = enumerate(change for change in scenario.changes if change.at_us == 0)
        before = [Event(0, "changed", -1, row, change) for row, change in begun]
        changes = len(before)
        before += [Event(0, "arrived", index[job], 0, scenario.jobs[index[job]]) for job in self.active]
        alive = dict.fromkeys(self.active, False)  # job -> whether it is over and only holds resources
        plans, again = self._carried(scenario, index)
        named = {plan.job for plan in first.decision.plans} if first.decision else set()
        decision = first.decision or NOTHING
        kept = tuple(plan for job, plan in plans.items() if job not in named)
        wake = decision.wake_us if decision.wake_us is not None else self.timer
        wake_us = wake - self.from_us if self.from_us < wake < OPEN else None
        early = self._is_called_early(rest, index)
        ended: list[Event] = []
        for instant in [first, *(i for i in rest if i.at_us > self.from_us)]:
            at, events = instant.at_us - self.from_us, list[Event]()
            for event in instant.events:
                if event.kind == "changed":
                    events.append(Event(at, "changed", -1, changes, scenario.changes[changes]))
                    changes += 1
                elif (moved := self._event(event, index, quotes)) is not None:
                    events.append(moved)
                    if event.kind == "arrived":
                        alive[event.job] = False
            at_end = instant.at_us == end_us
            over = {e.job for e in (instant.events if at_end else all_events(instant)) if e.kind in OVER}
            if at_end:
                ended = [e for e in events if e.kind == "ended"]
                events = [e for e in events if e.kind not in NOT_AT_END]
            # what is decided at the end comes after it
            self.work.take(instant._replace(trades=(), decision=None, after=()) if at_end else instant)
            if at == 0:
                events = before + events
            elif at == 1 and early:
                events = [Event(1, "timer")]
            if events:
                journal.events(arranged(events))
            answers = self._start(again, quotes) if at == 0 else []
            for trade in instant.trades:
                told = self._event(trade.event, index, quotes) if trade.event else None
                inside = told is not None and (not at_end or trade.quote is None)
                quotes.take(at, trade, inside=inside)
                answers += [told] if told is not None and inside else []
            made = NOTHING if at_end else self._decision(instant.decision or NOTHING, index)
            if at == 0:
                made = made._replace(plans=(*kept, *made.plans), wake_us=1 if early else wake_us)
            elif at == 1 and early and made.wake_us is None:
                made = made._replace(wake_us=wake_us)
            if made != NOTHING:
                journal.decision(at, made)
            for event in () if at_end else instant.after:
                answers += [moved] if (moved := self._event(event, index, quotes)) is not None else []
            if answers:
                journal.events(answers)
            for job in over:
                alive.pop(job, None)
            for event in instant.events:
                if (
                    event.kind == "finished"
                    and event.job in index
                    and self.old.jobs[event.job].hold == "through"
                ):
                    alive[event.job] = True  # its resources are held for another microsecond
                elif event.kind in ("released", "ended"):
                    alive.pop(event.job, None)
        for job, holds in alive.items():
            done = 0 if holds else self._done(job, end_us)
            ended.append(Event(end_us - self.from_us, "ended", index[job], done))
        journal.events(arranged(ended))
        return journal

    def _is_called_early(self, rest: Sequence[Instant], index: Mapping[int, int]) -> bool:
        """Whether all that happened a microsecond after the start is that a job of before released its resources.

        A timer then takes the place of that event.
        """
        second = next((instant for instant in rest if instant.at_us == self.from_us + 1), None)
        if second is None or self._decision(second.decision or NOTHING, index) == NOTHING:
            return False
        return all(event.kind == "released" and event.job not in index for event in second.events)

    def _start(self, again: Sequence[tuple[Quote, bool]], quotes: PeriodQuotes) -> list[Event]:
        """Sales and open quotes from before the period, made again at its start."""
        found = [event for quote, thought in again for event in quotes.sell_again(quote, thought=thought)]
        return found + quotes.open_again(self.held.values())

    def _done(self, job: int, at_us: int) -> int:
        """Work done in the period."""
        self.work.to(at_us)
        state = self.active.get(job)
        return max(0, self.work.done(job, at_us) - (state.done if state else 0))

    def _carried(
        self, scenario: Scenario, index: Mapping[int, int]
    ) -> tuple[dict[int, Plan], list[tuple[Quote, bool]]]:
        """Plans of jobs that were active, and quotes that sold them; True: to a person who thought."""
        plans, again = {}, []
        payments = self.run.tables["payments"]
        owed = dict(zip(payments["job"], cast(list[float], payments["usd"]), strict=True))
        for job, state in self.active.items():
            steps = steps_left(state.job, state.steps, self.from_us)
            if not steps:
                if state.paid is not None:
                    self.notes.append(f"{state.job.id} {LOST}")
                continue
            plan = self._plan(Plan(job, steps), index)
            own, customer = scenario.jobs[index[job]], scenario.customers[index[job]]
            due = completion_us(scenario.setup, own, total_work(own, customer), plan)
            if state.paid is None or due is None:
                plans[job] = plan
                continue
            offer = Offer(state.paid, due, plan, state.unit_usd)
            if state.voided:  # what it owes depends on a promise of before, which this plan need not keep
                offer = Offer(owed.get(job, 0.0), due, plan)
            again.append((Quote(index[job], (offer,), why=SOLD_BEFORE), state.thought))
        return plans, again

    def _event(self, event: Event, index: Mapping[int, int], quotes: PeriodQuotes) -> Event | None:
        """An event in the period's time and numbers; None if it belongs to a job or a closed quote outside it."""
        at = event.at_us - self.from_us
        if event.job < 0:
            return event._replace(
                at_us=at, value=event.value - self.slot if event.kind == "slot" else event.value
            )
        if event.job not in index:
            return None
        value, state = event.value, self.active.get(event.job)
        if event.kind == "data":
            value -= self.slot
        elif event.kind == "quoted":
            value -= self.from_us
        elif event.kind in ("expired", "withdrawn"):
            value = quotes.number(value)
            if event.kind == "expired" and value < 0:
                return None
        elif event.kind in ("voided", "refused", "cancelled", "ended", "measured") and state is not None:
            value = max(0, value - state.done)
        return event._replace(at_us=at, job=index[event.job], value=value)

    def _plan(self, plan: Plan, index: Mapping[int, int]) -> Plan:
        steps = tuple(
            s._replace(
                from_us=s.from_us - self.from_us,
                until_us=s.until_us if s.until_us == OPEN else s.until_us - self.from_us,
            )
            for s in plan.steps
        )
        return Plan(index[plan.job], steps)

    def _quote(self, quote: Quote, index: Mapping[int, int]) -> Quote:
        offers = tuple(
            o._replace(finish_us=o.finish_us - self.from_us, plan=self._plan(o.plan, index))
            for o in quote.offers
        )
        return quote._replace(job=index[quote.job], offers=offers)

    def _decision(self, decision: Decision, index: Mapping[int, int]) -> Decision:
        wake = decision.wake_us
        return decision._replace(
            plans=tuple(self._plan(plan, index) for plan in decision.plans if plan.job in index),
            verdicts=tuple(Verdict(index[v.job], v.reason) for v in decision.verdicts if v.job in index),
            wake_us=None if wake is None else wake - self.from_us,
            certificate=None,
        )
