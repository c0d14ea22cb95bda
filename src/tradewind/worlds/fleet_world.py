"""The live world: agenda, reported progress, and a fleet on which ranks run, by an injected clock.

Arrivals, changes, slots and timers come from the scenario at their instants, as in the simulated world. What ranks do
is measured: a job is finished when all its ranks have ended with 0, and its progress is what they report. Between two
instants the world compares what should run with what runs, and tells the fleet. A loop that was killed and restarted
therefore needs no special case. Every start is recorded in the journal before it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tradewind.model.decision import Decision, HeldQuote, Quote, Step
from tradewind.model.job import Customer, Job, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.tables import FAILED
from tradewind.model.units import MICRO
from tradewind.model.view import Change, Event
from tradewind.worlds.agenda import Agenda
from tradewind.worlds.clock import Clock
from tradewind.worlds.customers import choose
from tradewind.worlds.data.depot import Depot
from tradewind.worlds.data.keeper import BUSY_S, DataKeeper
from tradewind.worlds.estimating import measured_of
from tradewind.worlds.fleet import Exit, Fleet, Launch, Observations, Rank, ranks_of
from tradewind.worlds.gang import (
    Attempt,
    Gang,
    RetryOptions,
    attempt_from_record,
    attempt_record,
    complaints,
    end_record,
    is_awaited,
    last_words,
    replay_end,
    restore_gangs,
    save_gangs,
    verdict,
)
from tradewind.worlds.inventory import Inventory
from tradewind.worlds.progress import ActiveJob, Progress, is_measured
from tradewind.worlds.timeline import Timeline

Record = Callable[[str, dict[str, Any]], None]
"""(kind, plain values) -> None: appends a record to the journal; it is on disk before the fleet is told."""
Intake = Callable[[int], None]
"""Called with the present instant."""
FEW = 100
"""Jobs that are over and still known, at least."""
MAX_WAIT_S = 0.5
"""What ranks report is read at least this often, and a request to stop is noticed."""


class FleetWorld:
    """Runs jobs on a fleet. `replay`, `replay_attempt`, `replay_end` and `resume` restore it after a crash.

    record   appends to the journal; what it was given is on disk before the fleet is told what should run
    depot    where the data of jobs is; None: nowhere
    intake   called before every instant, to submit jobs and report what people want; with it, the run has no end, the
             scenario has no jobs, and what is over is dropped
    on_poll  called regularly with this world, for a live view
    """

    def __init__(
        self, scenario: Scenario, fleet: Fleet, clock: Clock, record: Record, *, slots: bool, options: RetryOptions,
        intake: Intake | None = None, depot: Depot | None = None,
    ) -> None:  # fmt: skip
        self.fleet, self.gangs = fleet, dict[int, Gang]()
        self.data = DataKeeper(scenario.setup, depot, record, self._alarm)
        self.busy: set[int] = set()  # jobs with a plan or with ranks; nobody else's gang needs a look
        self._intake, self.max_wait_s = intake, MAX_WAIT_S
        self.agenda = Agenda(scenario, slots=slots)
        self.stopped = self.over = False
        self.on_poll: Callable[[FleetWorld], None] | None = None
        self._scenario, self._setup = scenario, scenario.setup
        self._progress = Progress(scenario.setup, failures=True, reported=True)
        parts = (scenario, self.agenda, self._progress)
        self._timeline = self.timeline = Timeline(*parts, without_end=intake is not None)
        self.clock, self._record, self._options = clock, record, options
        self._names = [node.name for node in scenario.setup.nodes]
        self._seen = Observations({})
        self._inventory = Inventory(scenario.setup)
        self._ending_us: int | None = None
        self._is_stuck = False  # the fleet could not be told what should run

    @property
    def now_us(self) -> int:
        """The last instant."""
        return self._timeline.now_us

    # ------------------------------------------------------------------ time
    def wait(self) -> Sequence[Event]:
        """Wait until something happens, and meanwhile keep the right ranks running."""
        while not self.over:
            if events := self.poll():
                return events
            if not self.over:
                self.watch()
        return ()

    def watch(self) -> None:
        """Wait until the fleet has news, or something is due."""
        self._take(self.fleet.observe(self._pause_s()))

    def poll(self) -> Sequence[Event]:
        """Events that are due now, without waiting; tells the fleet what should run. `over` is set with the last ones."""
        if self._ending_us is not None:
            return self._end()
        if self.stopped and (at := self._measured_now(self._next_us() - 1)) > self._timeline.now_us:
            return self._end(at)  # however late the loop is, before what is due
        horizon_us = self._setup.horizon_us
        if self._intake is not None:
            self._intake(self._measured_now(self._next_us()))
        elif self._timeline.now_us >= horizon_us or self._is_idle():
            return self._end(horizon_us)
        self._find_losses(self._next_us())
        self._check_gangs(self._next_us())
        self._reconcile()
        due = self._timeline.next_us()
        at = horizon_us if due is None else due
        if self.clock.seconds_until(at) > 0:
            return ()
        if due is None:
            return self._end(at)
        self.clock.arrive(due)
        return self._process(due)

    def interrupt(self) -> None:
        """End the run as soon as possible; safe in a signal handler."""
        self.stopped = True

    def ask(self, quote: Quote) -> int:
        """The customer's choice (worlds.customers)."""
        job = self._progress.active[quote.job].job
        return choose(self._setup.slot_us, job, self._timeline.customer(quote.job), quote)

    def submit(self, job: Job, customer: Customer, volumes: tuple[tuple[int, int], ...] = ()) -> None:
        """Let a job arrive that no script has; volumes: (node, bytes) of a stream in every slot from the next on."""
        self._timeline.private[job.index] = customer
        if volumes:
            self.agenda.feeds[job.index] = volumes
        self.agenda.submit(job)

    def hold(self, held: HeldQuote) -> None:
        """Let a held quote expire when it is due."""
        self.agenda.hold(held)

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        """Apply a decision. Repeating a number has no effect."""
        self.busy.update(plan.job for plan in decision.plans)
        return self._timeline.apply(number, decision)

    def _process(self, at_us: int) -> Sequence[Event]:
        """Events of an instant; every job that arrives gets a gang."""
        events = self._timeline.process(at_us)
        for event in events:
            if isinstance(event.fact, Job):
                self.gangs[event.job] = Gang(event.fact)
            elif isinstance(event.fact, Change):
                self._inventory.take(event.fact, scripted=event.value < len(self._scenario.changes))
        self.data.take(events)
        return events

    def _next_us(self) -> int:
        due = self._timeline.next_us()
        return self._setup.horizon_us if due is None else due

    def _pause_s(self) -> float:
        """Seconds until something is due: an instant or a retry."""
        if self._ending_us is not None or self.stopped:
            return self.max_wait_s
        now, due = self.clock.now_us(), self._next_us()
        retries = [gang.retry_us for gang in self._busy_gangs() if now < gang.retry_us < due]
        most_s = BUSY_S if self.data.is_busy else self.max_wait_s
        return min(most_s, max(0.001, self.clock.seconds_until(min([due, *retries]))))

    def _measured_now(self, latest_us: int) -> int:
        """The present, but later than all that was recorded so far, and not later than what is due."""
        return min(max(self.clock.now_us(), self._timeline.now_us) + 1, latest_us)

    def _present_us(self) -> int:
        """The present, not before the last event but, however late the loop is, before what is due next."""
        due = self._next_us() if self._ending_us is None else self._ending_us
        return max(min(self.clock.now_us(), due - 1), self._timeline.now_us)

    # ------------------------------------------------------------------ the fleet
    def _reconcile(self) -> None:
        """Tell depot and fleet what should be; where this machine cannot, such as with a full disk, it is tried again."""
        ranks = {gang.job.index for gang in self._busy_gangs() if gang.current is not None}
        named = (gang.wanted(self._step_of(gang)) for gang in self._busy_gangs())
        try:
            self.data.update(self._progress.active, ranks, self._timeline.now_us, self._present_us())
            self.fleet.reconcile([each for each in named if each is not None])
        except OSError as error:
            if not self._is_stuck:
                self._alarm(-1, f"the fleet cannot start or stop ranks: {error}; it is tried again")
            self._is_stuck = True
        else:
            self._is_stuck = False

    def _take(self, seen: Observations) -> None:
        """Take in what the fleet knows."""
        self._seen = seen
        now_s = self.clock.source.monotonic()
        for gang in self._busy_gangs():
            attempt = gang.current
            if attempt is not None and (status := seen.launches.get(attempt.launch.key)) is not None:
                gang.take(status, now_s, self._setup, self._step_of(gang))
                said = (
                    (attempt.launch.ranks[rank].node, report.processed) for rank, report in status.reports
                )
                self.data.report(gang.job.index, said, self._present_us())
        self.data.look(self._present_us())
        if self.on_poll is not None:
            self.on_poll(self)

    def _find_losses(self, due: int) -> None:
        """Let nodes and links fail, shrink or come back that the fleet lost or found again, without a script."""
        for change in self._inventory.changes(
            self._seen, self._timeline.environment, self._measured_now(due)
        ):
            self.agenda.change(change)

    def _step(self, state: ActiveJob) -> Step | None:
        """The step in force now."""
        now = self._timeline.now_us
        return next((s for s in state.steps if s.from_us <= now < s.until_us), None)

    def _wanted(self, gang: Gang) -> tuple[Rank, ...]:
        """The ranks that should run now."""
        step = None if gang.complete or gang.given_up else self._step_of(gang)
        return ranks_of(step) if step is not None else ()

    def _step_of(self, gang: Gang) -> Step | None:
        """The step of a gang's job that is in force now."""
        state = self._progress.active.get(gang.job.index)
        return None if state is None else self._step(state)

    def _is_idle(self) -> bool:
        """Whether nothing can happen any more: nothing is due, no job runs, and nothing lost may come back."""
        return (
            self._timeline.next_us() is None
            and not (self._inventory and self._progress.active)
            and not any(self._wanted(gang) or self._outcome(gang) for gang in self._busy_gangs())
        )

    def _check_gangs(self, due: int) -> None:
        """Close attempts that are over, stop those that should be, queue outcomes, begin what should run."""
        now_us = self.clock.now_us()
        self._rest()
        gangs = self._busy_gangs()
        for gang in gangs:
            if gang.current is not None:
                self._check_attempt(gang)
            self._measure(gang)
        at = self._measured_now(due)  # what ended since the last look ends at one instant
        for gang in gangs:  # all ends before any beginning: an attempt is begun before the next instant
            if what := self._outcome(gang):
                state = self._progress.active[gang.job.index]
                if gang.announced != state.stamp and at < self._setup.horizon_us:  # then it ends with the run
                    gang.announced = state.stamp
                    self._progress.announce(at, gang.job.index, what)
        for gang in gangs:
            index, active = gang.job.index, self._progress.active
            if index in active and gang.is_to_tell(at, self._setup.slot_us):
                gang.told_us, fact = at, measured_of(self._setup, gang, self.clock.pace, at)
                if fact and at < self._setup.horizon_us:
                    self.agenda.report(Event(at, "measured", index, active[index].done, fact))
        is_due = self._next_us() <= at  # what happens now may change plans
        for gang in gangs:
            if gang.current is not None or gang.retry_us > now_us or not (wanted := self._wanted(gang)):
                continue
            if not (gang.attempts and is_due) and not is_awaited(gang, gangs):
                self._begin(gang, wanted)

    def _busy_gangs(self) -> list[Gang]:
        """Gangs of jobs with a plan or with ranks, in order of arrival."""
        return [self.gangs[job] for job in sorted(self.busy)]

    def _rest(self) -> None:
        """Leave out jobs that have neither a plan nor ranks; without an end, drop what is known of jobs that are over."""
        for job in tuple(self.busy):
            gang, state = self.gangs[job], self._progress.active.get(job)
            if gang.current is None and (state is None or not (state.steps or gang.complete)):
                self.busy.discard(job)
        if self._intake is not None and len(self.gangs) > 2 * len(self._progress.active) + FEW:
            active = self._progress.active
            for known in (self.gangs, self._timeline.private, self.agenda.feeds):
                for job in [job for job in known if job not in active and job not in self.busy]:
                    del known[job]

    def _outcome(self, gang: Gang) -> str:
        """How a job ended, if the loop has to process it: it is complete, or it was given up."""
        state = self._progress.active.get(gang.job.index)
        if state is None or not (gang.complete or gang.given_up):
            return ""
        if isinstance(gang.job.work, Stream) and gang.complete:
            return "left"
        if self._step(state) is None:  # emitted while a step is in force: policies know what becomes free
            return ""
        return "failed" if gang.given_up else "finished"

    def _check_attempt(self, gang: Gang) -> None:
        """Close the running attempt if all ranks have ended; stop it if it failed, hangs or is no longer wanted."""
        status = gang.status
        if status is not None:
            now_s = self.clock.source.monotonic()
            for text in complaints(gang, status, self._names, self._options, now_s):
                self._alarm(gang.job.index, text)
            if status.is_over:
                self._close(gang, [each for each in status.exits if each is not None])
                return
        if gang.stopping:
            return
        if status is not None and any(each is not None and each.code != 0 for each in status.exits):
            exits = [each or Exit(0) for each in status.exits]
            gang.stop(verdict(gang, exits, self._names, self._seen.down_nodes)[0])
        elif (wanted := self._wanted(gang)) != gang.ranks:
            gang.stop("moved" if wanted else "paused")
        elif self.data.is_waiting(gang.job.index):
            gang.rest(self.clock.source.monotonic())
        elif gang.is_hung(self._options.stall_s, self.clock.source.monotonic()):
            gang.stop(f"{FAILED} no iteration reported for {self._options.stall_s:g} s")

    def _alarm(self, job: int, text: str) -> None:
        at = max(0, min(max(self.clock.now_us(), self._timeline.now_us), self._setup.horizon_us))
        self._record("alarm", {"at_us": at, "job": job, "text": text})

    def _close(self, gang: Gang, exits: list[Exit]) -> None:
        """Record the end of an attempt; schedule a retry or give up if it failed."""
        why, failed = verdict(gang, exits, self._names, self._seen.down_nodes)
        if gang.stopping.startswith(FAILED) and gang.job.index not in self._progress.active:
            why, failed = gang.stopping, False  # the job is over for this reason, however its ranks ended
        attempt = gang.end(self._present_us(), why)
        if failed:
            after = gang.count_failure(self._options, self.clock.now_us(), self.clock.pace)
            said = last_words(gang, exits, self.fleet.logs)
            self._alarm(gang.job.index, f"attempt {attempt.launch.number} {why}; {after}{said}")
        self._record("over", end_record(gang, attempt, self.clock.source.wall()))

    def _begin(self, gang: Gang, wanted: tuple[Rank, ...]) -> None:
        """Record an attempt, then let it run."""
        step = self._step(self._progress.active[gang.job.index])
        assert step is not None
        now = self._timeline.now_us
        launch = Launch(gang.job, len(gang.attempts), now // self._setup.slot_us, wanted)
        attempt = Attempt(launch=launch, at_us=self._present_us(), step=step)
        self._record("attempt", attempt_record(attempt, self.clock.source.wall()))
        gang.begin(attempt)

    def _measure(self, gang: Gang) -> None:
        """Report progress: rounds that ranks reported, or the time that they ran."""
        index = gang.job.index
        if index not in self._progress.active:
            return
        (self._progress.failing.add if gang.has_failed else self._progress.failing.discard)(index)
        if isinstance(gang.job.work, Rounds) and is_measured(gang.job):
            self._progress.report(index, gang.iterations * MICRO)
        elif is_measured(gang.job):
            self._progress.report(index, gang.running_us(self.clock.now_us()))

    # ------------------------------------------------------------------ the end
    def _end(self, at: int | None = None) -> Sequence[Event]:
        """Stop all ranks; once they have ended, emit how the remaining jobs ended."""
        if self._ending_us is None:
            assert at is not None
            self.clock.arrive(at)
            self._ending_us = at
        for gang in self._busy_gangs():
            if gang.current is not None:
                gang.stop("the run is over")
                self._check_attempt(gang)
        self._reconcile()
        if any(gang.is_running for gang in self._busy_gangs()):
            return ()
        self.over = True
        events: list[Event] = []
        for gang in self._busy_gangs():
            self._measure(gang)
            if gang.complete and gang.job.index in self._progress.active:
                what = "left" if isinstance(gang.job.work, Stream) else "finished"
                self._progress.finish(gang.job.index, what, self._ending_us, events)
        return [*events, *self._timeline.end(self._ending_us)]

    # ------------------------------------------------------------------ recovery
    def replay(self, events: Sequence[Event]) -> Sequence[Event]:
        """Replay an instant of the journal without a fleet; return the events that this world emits for it."""
        at, progress = events[0].at_us, self._progress
        while (due := self._timeline.next_us()) is not None and due < at:
            self._process(due)
        for event in events:
            if isinstance(event.fact, Job) and self._intake is not None:
                self.agenda.submit(event.fact)
            elif isinstance(event.fact, Change) and event.value >= len(self._scenario.changes):
                self._inventory.replay(event.fact, counts="node_inventory" in self.fleet.capabilities)
                self.agenda.change(event.fact)
            elif event.kind == "data" and self._intake is not None:
                self.agenda.feeds[event.job] = cast(tuple[tuple[int, int], ...], event.fact)
            state = progress.active.get(event.job)
            if state is None:
                continue
            if event.kind in ("voided", "ended", "refused", "cancelled") and is_measured(state.job):
                state.done = event.value
            if event.kind in ("cancelled", "answered", "expired", "measured"):
                self.agenda.report(event)
            elif what := {"finished": "finished", "left": "left", "ended": "failed"}.get(event.kind):
                progress.announce(at, event.job, what)
        return self._process(at)

    def replay_attempt(self, record: dict[str, Any], step: Step) -> None:
        """Replay the journal record of the start of an attempt."""
        gang = self.gangs[record["job"]]
        gang.begin(attempt_from_record(gang.job, step, record))
        self.busy.add(gang.job.index)

    def replay_end(self, record: dict[str, Any]) -> None:
        """Replay the journal record of the end of an attempt."""
        if (
            gang := self.gangs.get(record["job"])
        ) is not None:  # older snapshots do not name jobs that are over
            replay_end(gang, record)

    def save(self) -> dict[str, Any]:
        """The state as JSON data, without what is private; only without an end."""
        gangs = save_gangs(self.gangs, self._progress.active)
        return {"timeline": self._timeline.save(), "gangs": gangs, "inventory": self._inventory.save()}

    def remember(self, job: int, customer: Customer) -> None:
        """Restore the private part of a job, which no record has."""
        self._timeline.private[job] = customer

    def restore(self, data: Mapping[str, Any], jobs: Mapping[int, Job]) -> None:
        """Continue from what `save` returned, in a new world; jobs: those that are active, by index."""
        self._timeline.restore(data["timeline"], jobs)
        self.gangs = restore_gangs(data["gangs"], {job: jobs[job] for job in self._progress.active})
        self.busy = set(self.gangs)
        self._inventory.restore(data["inventory"])

    def resume(self) -> None:
        """Find the ranks again of every attempt that had not ended by the journal, or start them."""
        for gang in self._busy_gangs():
            attempt = gang.current
            if attempt is not None and (wanted := self._wanted(gang)) != attempt.launch.ranks:
                gang.stop("moved" if wanted else "paused")
        self._reconcile()
        self._take(self.fleet.observe())
