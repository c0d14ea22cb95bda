"""Every metric, recomputed from the audit's own ledgers (definitions: docs/concepts.md, "Metrics")."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from tradewind.audit.record import Record
from tradewind.model.job import NO_PRIVATE_DATA, Rounds
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED


def value_usd(setup: Setup, record: Record) -> tuple[float, bool]:
    """The customer's value, and whether it is utility of progress."""
    job, customer = record.job, record.customer
    worth = customer.valuation if customer.valuation is not None else job.utility
    if worth is None:
        return (customer.budget_usd or 0.0 if record.paid is not None else 0.0), False
    if worth.of == "progress":
        rate = job.work.rate / 1e6 if isinstance(job.work, Rounds) else 1.0
        return worth.value(record.done * rate), True
    if worth.of == "payment":
        return (worth.value(record.paid) if record.paid is not None else 0.0), False
    if record.state != "finished":
        return 0.0, False
    return worth.value((record.finish_us - 1) // setup.slot_us - job.arrive_us // setup.slot_us), False


def quantile(values: Sequence[float], share: float) -> float:
    """Quantile with linear interpolation; 0 where there are no values."""
    if not values:
        return 0.0
    ordered, at = sorted(values), share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def utilisation(setup: Setup, used: Sequence[int], end_us: int) -> dict[str, float]:
    """Mean share in use of each resource that is limited on some host; used: milli-unit-microseconds."""
    found = {}
    for r, name in enumerate(setup.resources):
        limits = (setup.nodes[host].capacity_milli[r] for host in setup.hosts)
        if total := sum(limit for limit in limits if limit != UNLIMITED):
            found[f"utilisation_{name}"] = used[r] / (total * max(1, end_us))
    return found


def results(setup: Setup, records: Sequence[Record], costs: dict[str, float]) -> dict[str, float]:
    """The metrics that the audit computes."""
    over = [r for r in records if r.state in ("finished", "left")]
    finished = [r for r in records if r.state == "finished"]
    times = [(r.finish_us - r.job.arrive_us) / 1e6 for r in finished]
    waits = [(r.start_us - r.job.arrive_us) / 1e6 for r in records if r.start_us >= 0]
    ran = [r.steps_run for r in records if r.steps_run]
    first = min((r.job.arrive_us for r in records), default=0)
    last = max((r.finish_us for r in over), default=first)
    values = [
        value_usd(setup, r) for r in records if r.customer is not NO_PRIVATE_DATA or r.job.utility is not None
    ]
    cancelled = sum(r.state == "cancelled" for r in records)
    paid = fsum(r.paid for r in records if r.paid is not None)
    span = sum(r.comm_span_us for r in records)
    return {
        **costs,
        "payments_usd": paid,
        "profit_usd": paid - costs["cost_usd"],
        "value_usd": fsum(v for v, _ in values),
        "welfare_usd": fsum(v for v, _ in values) - costs["cost_usd"],
        "utility": fsum(v for v, of_progress in values if of_progress),
        "epoch_s": sum(r.comm_us for r in records) / span / 1e6 if span else 0.0,
        "jct_mean_s": fsum(times) / len(times) if times else 0.0,
        "jct_p50_s": quantile(times, 0.5),
        "jct_p99_s": quantile(times, 0.99),
        "wait_mean_s": fsum(waits) / len(waits) if waits else 0.0,
        "makespan_s": (last - first) / 1e6,
        "jobs": float(len(records)),
        "jobs_accepted": float(sum(r.state not in ("refused", "declined") for r in records)),
        "jobs_completed": float(len(over)),
        "jobs_refused": float(sum(r.state == "refused" for r in records)),
        "jobs_declined": float(sum(r.state == "declined" for r in records)),
        "jobs_unfinished": float(sum(r.state == "unfinished" for r in records)),
        **({"jobs_cancelled": float(cancelled)} if cancelled else {}),
        "steps_mean": sum(ran) / len(ran) if ran else 0.0,
    }
