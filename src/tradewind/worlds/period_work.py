"""The instants of a recorded run, and the work that its jobs had done by any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tradewind.engine.instants import Instant, instants, read_steps
from tradewind.engine.intervals import effective
from tradewind.engine.live import OVER
from tradewind.engine.quotes import sold
from tradewind.model.decision import HeldQuote, Plan, Step
from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import MICRO, OPEN, US_PER_S
from tradewind.model.view import Event
from tradewind.worlds.progress import Progress


def read_instants(scenario: Scenario, run: Run) -> Iterator[Instant]:
    """The instants of a run; a held quote that is closed has its offers as an answer at that time buys them."""
    held: dict[int, HeldQuote] = {}
    for instant in instants(scenario, run.tables):
        trades = []
        for trade in instant.trades:
            event, quote, _ = trade
            if event is not None and quote is not None and event.kind == "quoted":
                held[event.job] = HeldQuote(0, quote, instant.at_us, event.value)
            elif event is not None and quote is None:
                held.pop(event.job, None)  # withdrawn
            elif quote is not None and (before := held.pop(quote.job, None)) is not None:
                bought = sold(before, instant.at_us)._replace(refused=quote.refused, why=quote.why)
                trade = trade._replace(quote=bought)
            trades.append(trade)
        yield instant._replace(trades=tuple(trades))


def all_events(instant: Instant) -> tuple[Event, ...]:
    """The events of an instant, with those that say what became of quotes."""
    return (*instant.events, *(trade.event for trade in instant.trades if trade.event), *instant.after)


class Spent(NamedTuple):
    """By a job before an instant: site -> chunks processed, resource -> milli-unit-microseconds, parts that were moved."""

    chunks: dict[int, int]
    used: dict[int, int]
    brought: set[tuple[int, int]]


NONE = Spent({}, {}, set())


def work_left(setup: Setup, job: Job, done: int, before: Spent = NONE) -> Job:
    """A job with the work that is left of it."""
    work = job.work
    if isinstance(work, Fixed) and work.runtime_us is not None:
        work = replace(work, runtime_us=max(1, work.runtime_us - done))
    elif isinstance(work, Rounds):
        work = replace(work, count=max(1, -(-(work.total - done) // MICRO)))
    elif isinstance(work, Dataset):
        rest = tuple((node, n - before.chunks.get(node, 0)) for node, n in work.chunks)
        work = replace(work, chunks=tuple((node, n) for node, n in rest if n > 0))
    caps = tuple((r, max(0, cap - before.used.get(r, 0) // setup.slot_us)) for r, cap in job.caps)
    return replace(job, work=work, caps=caps)


def total_work(job: Job, customer: Customer) -> int | None:
    """All work of a job, if its end depends on it; the runtime may be private."""
    return customer.runtime_us if isinstance(job.work, Fixed) and job.work.total is None else job.work.total


def spent(scenario: Scenario, run: Run, jobs: Iterable[int], until_us: int) -> dict[int, Spent]:
    """What jobs processed, used and moved before an instant; moves count from when their steps began."""
    found = {job: Spent({}, {}, set()) for job in jobs}
    kinds = {i for i in found if isinstance((job := scenario.jobs[i]).work, Dataset) or job.caps or job.parts}
    if not kinds:
        return found
    steps, ran = read_steps(run.tables), effective(run, max(1, until_us))
    rows = zip(*(c.tolist() for c in (ran.job, ran.step, ran.from_us, ran.until_us)), strict=True)
    for job, row, begin, until in rows:
        if job not in kinds:
            continue
        step, work = steps[row], scenario.jobs[job].work
        own = found[job]
        if isinstance(work, Dataset) and until == step.until_us:
            for flow in step.flows:
                own.chunks[flow.src] = own.chunks.get(flow.src, 0) + flow.bytes // work.chunk_bytes
        own.brought.update((flow.src, flow.dst) for flow in step.flows)
        for resource, milli in scenario.jobs[job].worker:
            own.used[resource] = own.used.get(resource, 0) + milli * sum(step.workers) * (until - begin)
    return found


def with_copies(setup: Setup, job: Job, before: Spent, plan: tuple[int, tuple[Step, ...]], at_us: int) -> Job:
    """A job with the copies of its parts at an instant, and the time left of moves under way.

    plan: when it was made, and its steps
    """
    if not job.parts:
        return job
    made_us, steps = plan
    there_us = {(a, b): job.arrive_us + left_us for a, b, left_us in job.copies}
    for flow in (flow for step in steps for flow in step.flows):
        pair = flow.src, flow.dst
        moved_us = made_us - (-8 * flow.bytes * US_PER_S // setup.direct_bps[pair])
        there_us[pair] = min(moved_us, there_us.get(pair, moved_us))
    there_us.update(dict.fromkeys(before.brought, at_us))
    copies = tuple((a, b, max(0, us - at_us)) for (a, b), us in sorted(there_us.items()))
    return replace(job, copies=copies)


def steps_left(job: Job, steps: Sequence[Step], at_us: int) -> tuple[Step, ...]:
    """The steps of a plan from an instant on; one that had begun has moved the job's parts."""
    left = [step for step in steps if step.until_us > at_us]
    return tuple(
        step._replace(from_us=at_us, flows=() if job.parts else step.flows) if step.from_us < at_us else step
        for step in left
    )


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

    def take(self, instant: Instant) -> None:
        """Follow an instant."""
        self.to(instant.at_us)
        active, at = self._progress.active, instant.at_us
        for event in all_events(instant):
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
        for _, quote, taken in instant.trades:
            if quote is not None and taken >= 0 and quote.job in active:
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


def arranged(events: Sequence[Event]) -> list[Event]:
    """Events of an instant in their order: jobs have other numbers than in the whole run."""
    ends = ("finished", "left", "released", "ended")
    stage = {"changed": 0, "voided": 0, "measured": 1, **dict.fromkeys(ends, 2), "data": 4, "timer": 5}
    by_job = (*ends, "measured", "data")
    return sorted(
        events, key=lambda event: (stage.get(event.kind, 3), event.job if event.kind in by_job else 0)
    )


def with_leaves(
    scenario: Scenario, active: Iterable[int], rest: Sequence[Instant], end_us: int
) -> list[Instant]:
    """The instants of a period, and those of streams that leave after the last one and before the end of what is booked.

    active: jobs at the start
    """
    here, last_us = set(active), rest[-1].at_us if rest else -1
    for instant in rest:
        for event in all_events(instant):
            if event.kind == "arrived":
                here.add(event.job)
            elif event.kind in OVER:
                here.discard(event.job)
    found: dict[int, list[Event]] = {}
    for job in sorted(here):
        own, stays = scenario.jobs[job], scenario.customers[job].runtime_us
        at_us = own.arrive_us + (stays or 0)
        if isinstance(own.work, Stream) and stays is not None and last_us < at_us <= end_us:
            found.setdefault(at_us, []).append(Event(at_us, "left", job))
    return [*rest, *(Instant(at_us, tuple(found[at_us]), (), None, ()) for at_us in sorted(found))]
