"""What the audit keeps about one job."""

from __future__ import annotations

from collections.abc import Callable

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

    __slots__ = (
        "cancelled_slot", "cap_used", "chunks_done", "claims", "comm_span_us", "comm_us",
        "customer", "data_slot", "done", "finish_us", "idle_slots", "job",
        "last_end_us", "last_nodes", "last_places",
        "mark_done", "mark_us", "number", "paid", "promise_us", "ran", "rules", "served_slot", "served_usd", "since_us",
        "staged", "start_us", "starts", "state", "steps", "steps_run", "total", "unbilled_us", "volumes",
    )  # fmt: skip

    def __init__(self, job: Job, customer: Customer, total: int | None, rules: tuple[Rule, ...]) -> None:
        self.job, self.customer, self.total, self.rules = job, customer, total, rules
        self.state = "waiting"
        self.steps: tuple[Step, ...] = ()
        self.number = -1  # number of the decision that made the plan; higher is newer
        self.cancelled_slot = -1  # slot in which a plan of this job was last cancelled (event `voided`)
        self.idle_slots = 0  # slots in a row that began without a plan for it after a failure (dropped.py)
        self.mark_us = -1  # start of a slot; mark_done is the work done by then
        self.mark_done = 0
        self.steps_run = 0  # steps carried out
        self.claims: list[tuple[int, int, int]] = []
        self.done = 0
        self.since_us = 0  # work before this instant is counted in `done`
        self.unbilled_us = 0
        self.start_us = -1
        self.finish_us = -1
        self.promise_us = -1
        self.paid: float | None = None
        self.chunks_done: dict[int, int] = {}
        self.cap_used: dict[int, int] = {}
        self.volumes: tuple[tuple[int, int], ...] = ()
        self.data_slot = -1
        self.served_slot = -1  # the last slot whose value is in served_usd
        self.served_usd = 0.0
        self.ran: Ran = NOT_RUN
        self.starts = 0  # how often it began to run since it arrived or a failure stopped it
        self.staged: frozenset[tuple[int, int]] = frozenset()  # (source, destination) of data that was moved
        self.comm_us = self.comm_span_us = 0  # time-weighted communication time of a round, and the weight
        self.last_end_us = -1
        self.last_nodes: frozenset[int] = frozenset()
        self.last_places: frozenset[tuple[int, int]] = frozenset()

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
