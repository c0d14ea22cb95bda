"""The instants of a recorded run, and the work that its jobs had done by any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from tradewind.engine.journal import instants
from tradewind.engine.live import OVER
from tradewind.engine.quotes import sold
from tradewind.model.decision import Decision, HeldQuote, Plan, Quote
from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import MICRO, OPEN
from tradewind.model.view import Event
from tradewind.worlds.progress import Progress


class Moment(NamedTuple):
    """An instant in which quotes are answered at once; `after` has the answers."""

    at_us: int
    events: tuple[Event, ...]
    quotes: tuple[tuple[Quote, int], ...]
    decision: Decision | None
    after: tuple[Event, ...]


def moments(scenario: Scenario, run: Run) -> Iterator[Moment]:
    """The instants of a run; a quote that was held counts as made, without price list, when it was answered."""
    held: dict[int, HeldQuote] = {}
    for at_us, events, trades, decision, rest in instants(scenario, run.tables):
        quotes, after = [], []
        for event, quote, taken in trades:
            if quote is not None and event is not None and event.kind == "quoted":
                held[event.job] = HeldQuote(0, quote, at_us, event.value)
                continue
            if quote is None:
                continue
            if (before := held.pop(quote.job, None)) is not None and not quote.offers:
                quote = sold(before, at_us)._replace(refused=quote.refused, why=quote.why, posted=None)
            quotes.append((quote, taken))
            after += [] if event is None else [event]
        kept = tuple(event for event in events if event.kind not in ("answered", "expired"))
        yield Moment(at_us, kept, tuple(quotes), decision, (*after, *rest))


def work_left(job: Job, done: int, chunks: Mapping[int, int], used: Mapping[int, int], slot_us: int) -> Job:
    """A job with the work that is left of it."""
    work = job.work
    if isinstance(work, Fixed) and work.runtime_us is not None:
        work = replace(work, runtime_us=max(1, work.runtime_us - done))
    elif isinstance(work, Rounds):
        work = replace(work, count=max(1, -(-(work.total - done) // MICRO)))
    elif isinstance(work, Dataset):
        rest = tuple((node, n - chunks.get(node, 0)) for node, n in work.chunks)
        work = replace(work, chunks=tuple((node, n) for node, n in rest if n > 0))
    caps = tuple((r, max(0, cap - used.get(r, 0) // slot_us)) for r, cap in job.caps)
    return replace(job, work=work, caps=caps)


def total_work(job: Job, customer: Customer) -> int | None:
    """All work of a job, if its end depends on it; the runtime may be private."""
    return customer.runtime_us if isinstance(job.work, Fixed) and job.work.total is None else job.work.total


class WorkDone:
    """The work done by jobs, as the model computes it from the recorded plans; recorded events overrule it."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._progress = Progress(scenario.setup, failures=False)
        self._alive: dict[int, int] = {}  # job -> work where the model has it done already
        self._now = -1

    def to(self, at_us: int) -> None:
        """Go on to an instant."""
        while (due := self._progress.next_us()) <= at_us:
            self._progress.advance(due, [])
        self._now = max(self._now, at_us)

    def take(self, instant: Moment) -> None:
        """Follow an instant."""
        self.to(instant.at_us)
        active, at = self._progress.active, instant.at_us
        for event in (*instant.events, *instant.after):
            if event.kind == "arrived":
                job = self._scenario.jobs[event.job]
                self._alive[event.job] = 0
                self._progress.add(job, total_work(job, self._scenario.customers[event.job]))
            elif event.kind in OVER:
                active.pop(event.job, None)
                self._alive.pop(event.job, None)
            elif event.kind == "voided" and event.job in active:
                self._progress.void(event.job, False, at)
                self._progress.report(event.job, event.value)
        for quote, taken in instant.quotes:
            if taken >= 0 and quote.job in active:
                self._progress.replace(quote.offers[taken].plan, 0, at)
        for plan in instant.decision.plans if instant.decision else ():
            if plan.job in active:
                self._progress.replace(plan, 0, at)

    def done(self, job: int, at_us: int) -> int:
        """Work done by an instant; a little less than all where the model has a job done that went on."""
        state = self._progress.active.get(job)
        if state is not None:
            return state.progress(at_us)
        total = self._scenario.jobs[job].work.total or self._scenario.customers[job].runtime_us or 1
        return max(0, total - 1)

    def is_whole(self, job: int, at_us: int) -> bool:
        """Whether the work left can be stated exactly, so that its completion can be computed from it."""
        state, work = self._progress.active.get(job), self._scenario.jobs[job].work
        if state is None or state.since_us > at_us:
            return False
        if isinstance(work, Rounds):
            begun = state.start_us if state.start_us >= 0 else at_us
            return not (
                state.progress(at_us) % MICRO
                or (work.whole_slots and (at_us - begun) % self._scenario.setup.slot_us)
            )
        return True


def completion_us(setup: Setup, job: Job, total: int | None, plan: Plan) -> int | None:
    """When a plan that begins at 0 completes a job; None if it does not."""
    progress, events = Progress(setup, failures=False), list[Event]()
    progress.add(job, total)
    progress.replace(plan, 0, 0)
    while not events and (due := progress.next_us()) < OPEN:
        progress.advance(due, events)
    return events[0].at_us if events else None
