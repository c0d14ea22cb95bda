"""Bills of tenants over a period: usage, list price, the pooled discount and its split, payments and refunds.

Everything comes from what was recorded: prices are those in force when a decision was carried out, never today's.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

from tradewind.engine.costs import job_costs, rows_alone
from tradewind.engine.intervals import effective, end_us, floats, ints, taken_offers
from tradewind.files.row_tables import csv_cell
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.units import US_PER_HOUR
from tradewind.report.audited import with_bills
from tradewind.worlds.period import SOLD_BEFORE, Period

COLUMNS = ("tenant", "kind", "job", "where", "what", "amount", "unit", "usd")
"""Columns of a bill as a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """What a job used of something, and what that costs by itself at list price."""

    job: str
    kind: str
    where: str
    what: str
    amount: float
    unit: str
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BillPayment:
    """What was agreed with the customer of a job. at_us: when, in the time of the run."""

    job: str
    at_us: int
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """One tenant's bill in USD.

    list_usd      what its lines add up to: its cost if each job had rented by itself
    discount_usd  its part of what renting together saved (0 or less)
    due_usd       what it pays: prices that were agreed less refunds in a market, else list price and discount
    """

    tenant: str
    lines: tuple[BillLine, ...] = ()
    payments: tuple[BillPayment, ...] = ()
    refunds: tuple[BillPayment, ...] = ()
    list_usd: float = 0.0
    discount_usd: float = 0.0
    due_usd: float = 0.0

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The bill as rows of COLUMNS; those of kind `due` are what is to be paid."""
        for line in self.lines:
            yield self.tenant, line.kind, line.job, line.where, line.what, line.amount, line.unit, line.usd
        for kind, each in (("payment", self.payments), ("refund", self.refunds)):
            yield from ((self.tenant, kind, p.job, "", "", 1.0, "", p.usd) for p in each)
        for kind in ("list", "discount", "due"):
            yield self.tenant, kind, "", "", "", 1.0, "", getattr(self, f"{kind}_usd")

    def document(self) -> dict[str, Any]:
        """The bill as plain data."""
        return asdict(self)


def usd_text(value: float) -> str:
    """An amount of a bill in words, to a millionth where it is small."""
    value = round(value, 6) + 0.0  # no -0
    return f"{value:,.2f} USD" if abs(value) >= 1 or not value else f"{value:.6f} USD"


def csv_text(bills: Iterable[Bill]) -> str:
    """Bills as a table in CSV."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for each in bills:
        writer.writerows([csv_cell(cell) for cell in row] for row in each.rows())
    return text.getvalue()


def bills_of(period: Period, spec: Spec) -> dict[str, Bill]:
    """Tenant -> its bill for a period of a run."""
    scenario, run = period.scenario, with_bills(period.scenario, period.run, spec)
    origin = scenario.origin
    length = int(str(origin.get("to_us", 0))) - int(str(origin.get("from_us", 0)))
    end = min(end_us(run), length) if "period_of" in origin and length > 0 else end_us(run)
    intervals = effective(run, max(1, end))
    alone, costs = rows_alone(scenario, run, intervals), job_costs(scenario, run, intervals)
    paid, back = _payments(scenario, run, end) if spec.pricer else ({}, {})
    split = _split(run)
    lines: dict[str, list[BillLine]] = defaultdict(list)
    shared: dict[str, float] = defaultdict(float)
    for job, rows in alone.items():
        lines[scenario.jobs[job].tenant] += _lines(scenario, job, rows)
        shared[scenario.jobs[job].tenant] += costs.get(job, 0.0)
    found = {}
    for tenant in sorted({job.tenant for job in scenario.jobs}):
        list_usd = fsum(line.usd for line in lines[tenant])
        discount = split.get(tenant, shared[tenant] - list_usd)
        payments, refunds = paid.get(tenant, ()), back.get(tenant, ())
        due = fsum(p.usd for p in (*payments, *refunds)) if spec.pricer else list_usd + discount
        found[tenant] = Bill(
            tenant=tenant, lines=tuple(lines[tenant]), payments=tuple(payments), refunds=tuple(refunds),
            list_usd=list_usd, discount_usd=discount, due_usd=due,
        )  # fmt: skip
    return found


def _split(run: Run) -> dict[str, float]:
    """Tenant -> its part of the discount by the rule of the policy's system, where it has one."""
    table: Mapping[str, Any] = run.tables.get("bills", {})
    found: dict[str, float] = defaultdict(float)
    for tenant, kind, usd in zip(*(table.get(name, ()) for name in ("tenant", "kind", "usd")), strict=True):
        found[tenant] += usd if kind == "pooled" else -usd
    return found


def _lines(
    scenario: Scenario, job: int, rows: Iterable[tuple[int, str, int, int, float, float]]
) -> list[BillLine]:
    """The lines of a job: every kind of cost by place, over all slots."""
    setup, sums = scenario.setup, dict[tuple[str, int, int], list[float]]()
    hours = setup.slot_us / US_PER_HOUR
    for _, kind, a, b, amount, usd in rows:
        total = sums.setdefault((kind, a, b), [0.0, 0.0])
        total[0] += amount * hours if kind == "rent" else amount
        total[1] += usd
    found = []
    for (kind, a, b), (amount, usd) in sorted(sums.items()):
        where, what, unit = setup.nodes[a].name, "start", ""
        if kind == "rent":
            what, unit = setup.resources[b], f"{setup.resources[b]}-hours"
        elif kind in ("transfer", "traffic"):
            where, what, unit = f"{where}->{setup.nodes[b].name}", "data", "GB"
        found.append(
            BillLine(
                job=scenario.jobs[job].id,
                kind=kind,
                where=where,
                what=what,
                amount=amount,
                unit=unit,
                usd=usd,
            )
        )
    return found


Payments = dict[str, list[BillPayment]]


def _payments(scenario: Scenario, run: Run, end: int) -> tuple[Payments, Payments]:
    """Tenant -> what it agreed to pay before `end`, and what it gets back because a promise was broken."""
    paid: Payments = defaultdict(list)
    back: Payments = defaultdict(list)
    answers: Mapping[str, Any] = run.tables["answers"]
    columns = (answers[name] for name in ("job", "at_us", "taken", "why"))
    when = {
        j: at
        for j, at, taken, why in zip(*columns, strict=True)
        if taken >= 0 and why != SOLD_BEFORE and at <= end
    }
    kept: dict[Any, Any] = dict(
        zip(run.tables["payments"]["job"], run.tables["payments"]["usd"], strict=True)
    )
    taken = taken_offers(run)
    offered = floats(run, "offers", "payment_usd")[taken].tolist()
    for job, usd in zip(ints(run, "offers", "job")[taken].tolist(), offered, strict=True):
        if job in when:
            name, tenant = scenario.jobs[job].id, scenario.jobs[job].tenant
            paid[tenant].append(BillPayment(job=name, at_us=when[job], usd=usd))
            if (less := usd - float(kept.get(job, 0.0))) > 0:
                back[tenant].append(BillPayment(job=name, at_us=when[job], usd=-less))
    return paid, back
