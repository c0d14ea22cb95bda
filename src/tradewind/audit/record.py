"""What the audit keeps about one job."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from tradewind.model.decision import Plan, Step
from tradewind.model.job import Customer, Job
from tradewind.model.result import Violation
from tradewind.model.setup import Setup

OVER = frozenset(("finished", "left", "refused", "declined", "cancelled", "unfinished"))
"""States of a job that is over."""
Ran = tuple[int, tuple[tuple[int, int], ...], int]
"""Of the last run: its end, its (node, workers) pairs, and when its warm-up was over."""
NOT_RUN: Ran = (-1, (), 0)
Rule = Callable[["Case"], Violation | None]


class Record:
    """The audit's own state of a job; nothing here comes from the engine's ledger or the world."""

    # What most jobs never change is the same for all of them until it is set.
    steps: tuple[Step, ...] = ()
    state = "waiting"
    number = -1  # number of the decision that made the plan; higher is newer
    cancelled_slot = -1  # slot in which a plan of this job was last cancelled (event `voided`)
    idle_slots = 0  # slots in a row that began without a plan for it after a failure (dropped.py)
    mark_us = -1  # start of a slot; mark_done is the work done by then
    mark_done = 0
    steps_run = 0  # steps carried out
    done = 0
    since_us = 0  # work before this instant is counted in `done`
    unbilled_us = 0
    start_us = -1
    finish_us = -1
    promise_us = -1
    paid: float | None = None
    volumes: tuple[tuple[int, int], ...] = ()
    data_slot = -1
    served_slot = -1  # the last slot whose value is in served_usd
    served_usd = 0.0
    ran: Ran = NOT_RUN
    rented: Ran = NOT_RUN  # the last run that was billed, of jobs at two sites
    list_usd = 0.0  # what jobs with a spend cap have spent at list price
    starts = 0  # how often it began to run since it arrived or a failure stopped it
    staged: frozenset[tuple[int, int]] = frozenset()  # (source, destination) of data that was moved
    comm_us = comm_span_us = 0  # time-weighted communication time of a round, and the weight
    last_end_us = -1
    last_nodes: frozenset[int] = frozenset()
    last_places: frozenset[tuple[int, int]] = frozenset()

    def __init__(
        self, job: Job, customer: Customer, total: int | None, rules: tuple[Rule, ...], plain: bool = False
    ) -> None:
        self.job, self.customer, self.total, self.rules = job, customer, total, rules
        self.plain = (
            plain  # a fixed job of workers alone, without restarts or caps, that takes the time it declares
        )
        self.claims: list[tuple[int, int, int]] = []

    @cached_property
    def chunks_done(self) -> dict[int, int]:
        """Chunks of a dataset that were processed, by the node where they are stored."""
        return {}

    @cached_property
    def cap_used(self) -> dict[int, int]:
        """Milli-unit-microseconds that the job used, by resource, where it has caps."""
        return {}

    @property
    def is_over(self) -> bool:
        """Finished, left, refused, declined, cancelled or unfinished at the end."""
        return self.state in OVER


class Case:
    """A plan under check, as rules see it; one object is reused for every plan."""

    __slots__ = ("down_links", "down_nodes", "now_us", "plan", "record", "setup")

    record: Record
    plan: Plan
    now_us: int

    def __init__(self, setup: Setup, down_nodes: set[int], down_links: set[int]) -> None:
        self.setup, self.down_nodes, self.down_links = setup, down_nodes, down_links

    def of(self, record: Record, plan: Plan, now_us: int) -> Case:
        """Set the plan to check."""
        self.record, self.plan, self.now_us = record, plan, now_us
        return self

    def broken(
        self, rule: str, detail: str, *, node: int = -1, at_us: int = -1, amount: float = 0.0
    ) -> Violation:
        """A violation of a rule by this plan."""
        at = self.now_us if at_us < 0 else at_us
        name = self.setup.nodes[node].name if 0 <= node < len(self.setup.nodes) else ""
        return Violation(rule, self.record.job.id, name, at // self.setup.slot_us, amount, detail)
