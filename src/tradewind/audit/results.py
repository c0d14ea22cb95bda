"""Every metric, recomputed from the audit's own ledgers (definitions: docs/concepts.md, "Metrics")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, isfinite
from typing import NamedTuple

from tradewind.audit.record import Record
from tradewind.audit.rules_market import owed_usd
from tradewind.model.job import Rounds
from tradewind.model.result import Outcome
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN, UNLIMITED
from tradewind.model.view import Event


def exact(values: Iterable[float]) -> tuple[float, ...]:
    """A few numbers with exactly the same sum: sums kept in this form do not depend on order or grouping."""
    left, parts = list(values), list[float]()
    while part := fsum(left):  # the sum, rounded; then what rounding lost, and so on
        parts.append(part)
        left.append(-part)
        if not isfinite(part):
            break
    return tuple(parts)


def outcome(setup: Setup, record: Record) -> Outcome:
    """A record as a row."""
    job = record.job
    value, of_progress, paid = 0.0, False, record.paid
    if paid is not None:
        paid = owed_usd(record)
    if paid is not None or job.utility is not None or record.customer.valuation is not None:
        value, of_progress = value_usd(setup, record, paid)
    return Outcome(
        job.index,
        job.id,
        job.tenant,
        record.state,
        job.arrive_us,
        record.start_us,
        record.finish_us,
        record.done,
        record.steps_run,
        paid,
        value,
        of_progress,
        record.comm_us,
        record.comm_span_us,
        _lost_usd(record, value) if setup.objective == "total_usd" else 0.0,
    )


def _lost_usd(record: Record, value: float) -> float:
    """What the job would be worth without delay, if its worth depends on it, less its value."""
    worth = record.customer.valuation if record.customer.valuation is not None else record.job.utility
    return worth.value(0.0) - value if worth is not None and worth.of == "delay_slots" else 0.0


def drop_over(setup: Setup, records: dict[int, Record], events: Iterable[Event]) -> list[Outcome]:
    """Remove the jobs that are over with these events and hold nothing any more; return what came of them."""
    rows = []
    for event in events:
        record = records.get(event.job)
        if record is not None and record.is_over and not record.claims:
            del records[event.job]
            rows.append(outcome(setup, record))
    return rows


def value_usd(setup: Setup, record: Record, paid: float | None) -> tuple[float, bool]:
    """The customer's value, and whether it is utility of progress; paid: None if it bought nothing or got it back."""
    job, customer = record.job, record.customer
    worth = customer.valuation if customer.valuation is not None else job.utility
    if worth is None:
        return (customer.budget_usd or 0.0 if paid is not None else 0.0), False
    if worth.of == "progress":
        rate = job.work.rate / 1e6 if isinstance(job.work, Rounds) else 1.0
        return worth.value(record.done * rate), True
    if worth.of == "served":
        return record.served_usd, False
    if worth.of == "payment":
        return (worth.value(paid) if paid is not None else 0.0), False
    if record.state != "finished":
        return 0.0, False
    return worth.value((record.finish_us - 1) // setup.slot_us - job.arrive_us // setup.slot_us), False


def quantile(ordered: Sequence[float], share: float) -> float:
    """Quantile of sorted values with linear interpolation; 0 where there are none."""
    if not ordered:
        return 0.0
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def utilisation(setup: Setup, used: Sequence[int], end_us: int) -> dict[str, float]:
    """Mean share in use of each resource that is limited on every host; used: milli-unit-microseconds."""
    found = {}
    for r, name in enumerate(setup.resources):
        limits = [setup.nodes[host].capacity_milli[r] for host in setup.hosts]
        if UNLIMITED not in limits and any(limits):
            found[f"utilisation_{name}"] = used[r] / (sum(limits) * max(1, end_us))
    return found


def quantiles(rows: Iterable[Outcome]) -> dict[str, float]:
    """The metrics that no running total can give: they need every job."""
    times = sorted((row.finish_us - row.arrive_us) / 1e6 for row in rows if row.state == "finished")
    return {"jct_p50_s": quantile(times, 0.5), "jct_p99_s": quantile(times, 0.99)}


class Totals(NamedTuple):
    """Sums over jobs, from which all metrics but the quantiles follow. They are exact: integers, and money as `exact`."""

    states: tuple[tuple[str, int], ...] = ()
    first_us: int = OPEN
    last_us: int = -1
    jct_us: int = 0
    waited: int = 0
    wait_us: int = 0
    ran: int = 0
    steps: int = 0
    comm_us: int = 0
    comm_span_us: int = 0
    paid_usd: tuple[float, ...] = ()
    value_usd: tuple[float, ...] = ()
    utility: tuple[float, ...] = ()
    lost_usd: tuple[float, ...] = ()

    def plus(self, rows: Sequence[Outcome]) -> Totals:
        """The sums with these jobs added."""
        states, jct_us, waits, ran = dict(self.states), self.jct_us, list[int](), list[int]()
        paid, values, utility = list(self.paid_usd), list(self.value_usd), list(self.utility)
        lost = list(self.lost_usd)
        comm_us, comm_span_us = self.comm_us, self.comm_span_us
        for row in rows:
            states[row.state] = states.get(row.state, 0) + 1
            if row.state == "finished":
                jct_us += row.finish_us - row.arrive_us
            if row.start_us >= 0:
                waits.append(row.start_us - row.arrive_us)
            if row.steps_run:
                ran.append(row.steps_run)
            if row.paid_usd is not None:
                paid.append(row.paid_usd)
            if row.value_usd:
                values.append(row.value_usd)
            if row.lost_usd:
                lost.append(row.lost_usd)
            if row.of_progress:
                utility.append(row.value_usd)
            if row.comm_span_us:
                comm_us += row.comm_us
                comm_span_us += row.comm_span_us
        return Totals(
            states=tuple(states.items()),
            first_us=min(self.first_us, min((row.arrive_us for row in rows), default=OPEN)),
            last_us=max(self.last_us, max((row.finish_us for row in rows), default=-1)),
            jct_us=jct_us,
            waited=self.waited + len(waits),
            wait_us=self.wait_us + sum(waits),
            ran=self.ran + len(ran),
            steps=self.steps + sum(ran),
            comm_us=comm_us,
            comm_span_us=comm_span_us,
            paid_usd=exact(paid),
            value_usd=exact(values),
            utility=exact(utility),
            lost_usd=exact(lost),
        )

    def metrics(self, costs: dict[str, float]) -> dict[str, float]:
        """The metrics that the audit computes."""
        count = dict(self.states)
        jobs, finished = sum(count.values()), count.get("finished", 0)
        refused, declined, cancelled = (count.get(name, 0) for name in ("refused", "declined", "cancelled"))
        paid, value = fsum(self.paid_usd), fsum(self.value_usd)
        return {
            **costs,
            "payments_usd": paid,
            "profit_usd": paid - costs["cost_usd"],
            "value_usd": value,
            "welfare_usd": value - costs["cost_usd"],
            "utility": fsum(self.utility),
            "epoch_s": self.comm_us / self.comm_span_us / 1e6 if self.comm_span_us else 0.0,
            "jct_mean_s": self.jct_us / finished / 1e6 if finished else 0.0,
            "wait_mean_s": self.wait_us / self.waited / 1e6 if self.waited else 0.0,
            "makespan_s": (self.last_us - self.first_us) / 1e6 if self.last_us >= 0 else 0.0,
            "jobs": float(jobs),
            "jobs_accepted": float(jobs - refused - declined),
            "jobs_completed": float(finished + count.get("left", 0)),
            "jobs_refused": float(refused),
            "jobs_declined": float(declined),
            "jobs_unfinished": float(count.get("unfinished", 0)),
            **({"jobs_cancelled": float(cancelled)} if cancelled else {}),
            "steps_mean": self.steps / self.ran if self.ran else 0.0,
        }
