"""The journal: every event, quote and decision of a run, in the tables of the run file (engine.instants reads them)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tradewind.model.decision import (
    Certificate,
    Charge,
    Decision,
    HeldQuote,
    Plan,
    Posted,
    Quote,
    Step,
)
from tradewind.model.estimate import Measured
from tradewind.model.tables import RARE, TABLES
from tradewind.model.units import OPEN
from tradewind.model.view import Event

Tables = dict[str, dict[str, list[Any]]]
BATCH = 1024
"""Events that are written at once."""


class Journal:
    """Append-only tables (model.tables), column by column."""

    def __init__(self) -> None:
        self._start()

    def drain(self) -> tuple[Tables, list[tuple[int, Certificate]]]:
        """Hand out the rows and certificates so far and keep nothing of them.

        Row numbers start again, so what is drained between two instants can be read by `instants` on its own.
        """
        rows = self.tables, self.certificates
        self._start()
        return rows

    def _start(self) -> None:
        self._heard: list[Event] = []
        self._tables: Tables = {
            name: {column: [] for column in columns} for name, columns in TABLES.items() if name not in RARE
        }
        self.certificates: list[tuple[int, Certificate]] = []
        self._paths: dict[tuple[int, ...], int] = {}
        self._posted: Posted | None = None
        self._events, self._decisions, self._plans, self._steps, self._places = (
            tuple(self._tables[name].values()) for name in ("events", "decisions", "plans", "steps", "places")
        )

    def events(self, events: Sequence[Event]) -> None:
        """Append events."""
        self._heard += events
        if len(self._heard) >= BATCH:
            self._write_events()

    @property
    def tables(self) -> Tables:
        """All rows so far."""
        self._write_events()
        return self._tables

    def _write_events(self) -> None:
        """Append the events heard to their table, a column at a time."""
        if not self._heard:
            return
        at, kind, job, value = self._events
        times, kinds, jobs, values, _ = zip(*self._heard, strict=True)
        at += times
        kind += kinds
        job += jobs
        value += values
        if "measured" in kinds:
            for event in self._heard:
                if event.kind == "measured":
                    self._measured(event)
        self._heard.clear()

    def _measured(self, event: Event) -> None:
        """Append what was measured, to a table that most runs do not have."""
        self._tables.setdefault("estimates", {column: [] for column in TABLES["estimates"]})
        for row in cast(tuple[Measured, ...], event.fact):
            self._append("estimates", event.at_us, event.job, *row)

    def decision(self, at_us: int, decision: Decision) -> None:
        """Append a decision with its verdicts, plans and certificate."""
        times, wakes, reasons = self._decisions
        plans, verdicts, wake_us, certificate, why = decision
        row = len(times)
        times.append(at_us)
        wakes.append(-1 if wake_us is None else wake_us)
        reasons.append(why)
        for verdict in verdicts:
            self._append("verdicts", row, verdict.job, verdict.reason)
        for plan in plans:
            self.plan(at_us, row, plan)
        if certificate is not None:
            self.certificates.append((at_us, certificate))

    def quote(self, at_us: int, quote: Quote, taken: int, *, held: bool = False) -> None:
        """Append the number of the offer taken, -1 for none; also the offers, unless `hold` has."""
        if not held:
            self._offers(at_us, quote)
        self._append("answers", at_us, quote.job, taken, quote.refused, quote.why)

    def hold(self, held: HeldQuote) -> None:
        """Append the offers of a quote that is answered later."""
        self._offers(held.at_us, held.quote)

    def _offers(self, at_us: int, quote: Quote) -> None:
        posted = quote.posted
        if posted is not None and posted != self._posted:
            self._posted = posted
            for number, floor in enumerate(posted.floor_usd):
                resource = number if number + 1 < len(posted.floor_usd) else -1
                self._append("posted", at_us, quote.job, resource, posted.gamma, floor, posted.data_usd)
        for number, offer in enumerate(quote.offers):
            plan = self.plan(at_us, -1, offer.plan)
            row = self._append("offers", at_us, quote.job, number, offer.payment_usd, offer.finish_us, plan)
            for resource, usd in offer.unit_usd:
                self._append("prices", row, resource, usd)

    def charges(self, charges: Sequence[Charge]) -> None:
        """Append the payments charged after the run."""
        for charge in charges:
            self._append("charges", *charge)

    def plan(self, at_us: int, decision: int, plan: Plan) -> int:
        """Append a plan with its steps; return its row."""
        times, decisions, jobs = self._plans
        row = len(times)
        times.append(at_us)
        decisions.append(decision)
        jobs.append(plan.job)
        s_plan, s_from, s_until, s_usd = self._steps
        p_step, p_node, p_workers, p_servers = self._places
        for step in plan.steps:
            from_us, until_us, nodes, workers, servers, flows, routes, usd = step
            number, count = len(s_plan), len(nodes)
            s_plan.append(row)
            s_from.append(from_us)
            s_until.append(-1 if until_us == OPEN else until_us)
            s_usd.append(usd)
            p_step += (number,) * count
            p_node += nodes
            p_workers += workers
            p_servers += servers or (0,) * count
            if flows or routes:
                self._flows_and_routes(number, step)
        return row

    def _flows_and_routes(self, number: int, step: Step) -> None:
        for flow in step.flows:
            self._append("flows", number, *flow)
        for route in step.routes:
            path = self._paths.get(route.path)
            if path is None:
                path = self._paths[route.path] = len(self._paths)
                for link in route.path:
                    self._append("paths", path, link)
            self._append("routes", number, route.src, route.dst, route.bps, path, route.duplex)

    def _append(self, table: str, *values: Any) -> int:
        columns = self._tables[table]
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        return len(column) - 1
