"""The journal: every event, quote and decision of a run, in the tables of the run file; and how to read it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

from tradewind.model.decision import (
    Certificate,
    Charge,
    Decision,
    Flow,
    Offer,
    Plan,
    Posted,
    Quote,
    Route,
    Step,
    Verdict,
)
from tradewind.model.errors import RunFileError
from tradewind.model.job import Job
from tradewind.model.result import Table
from tradewind.model.scenario import Scenario
from tradewind.model.tables import RARE, TABLES
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event

_Fact = TypeVar("_Fact")
Tables = dict[str, dict[str, list[Any]]]


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
        self.tables: Tables = {
            name: {column: [] for column in columns} for name, columns in TABLES.items() if name not in RARE
        }
        self.certificates: list[tuple[int, Certificate]] = []
        self._paths: dict[tuple[int, ...], int] = {}
        self._posted: Posted | None = None
        self._events, self._decisions, self._plans, self._steps, self._places = (
            tuple(self.tables[name].values()) for name in ("events", "decisions", "plans", "steps", "places")
        )

    def events(self, events: Sequence[Event]) -> None:
        """Append events."""
        at, kind, job, value = self._events
        for event in events:
            at.append(event[0])
            kind.append(event[1])
            job.append(event[2])
            value.append(event[3])

    def decision(self, at_us: int, decision: Decision) -> None:
        """Append a decision with its verdicts, plans and certificate."""
        times, wakes, reasons = self._decisions
        row = len(times)
        times.append(at_us)
        wakes.append(-1 if decision.wake_us is None else decision.wake_us)
        reasons.append(decision.why)
        for verdict in decision.verdicts:
            self._append("verdicts", row, verdict.job, verdict.reason)
        for plan in decision.plans:
            self.plan(at_us, row, plan)
        if decision.certificate is not None:
            self.certificates.append((at_us, decision.certificate))

    def quote(self, at_us: int, quote: Quote, taken: int) -> None:
        """Append the offers to a job and the number of the one taken, -1 for none."""
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
        self._append("answers", at_us, quote.job, taken, quote.refused, quote.why)

    def charges(self, charges: Sequence[Charge]) -> None:
        """Append the payments charged after the run."""
        for charge in charges:
            self._append("charges", *charge)

    def plan(self, at_us: int, decision: int, plan: Plan) -> int:
        """Append a plan with its steps; return its row."""
        columns = self._plans
        columns[0].append(at_us)
        columns[1].append(decision)
        columns[2].append(plan.job)
        row = len(columns[0]) - 1
        s_plan, s_from, s_until, s_usd = self._steps
        p_step, p_node, p_workers, p_servers = self._places
        for step in plan.steps:
            s_plan.append(row)
            s_from.append(step.from_us)
            s_until.append(-1 if step.until_us == OPEN else step.until_us)
            s_usd.append(step.usd)
            number = len(s_plan) - 1
            count = len(step.nodes)
            p_step.extend((number,) * count)
            p_node.extend(step.nodes)
            p_workers.extend(step.workers)
            p_servers.extend(step.servers or (0,) * count)
            if step.flows or step.routes:
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
        columns = self.tables[table]
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        return len(column) - 1


class Instant(NamedTuple):
    """One instant of a journal, in the order in which things happened."""

    at_us: int
    events: tuple[Event, ...]
    quotes: tuple[tuple[Quote, int], ...]
    decision: Decision | None
    after: tuple[Event, ...]


_ANSWERS = ("accepted", "declined", "refused")
_WITHOUT_JOB = ("changed", "slot", "timer")
_WITHOUT_VALUE = ("arrived", "finished", "left", "released", "timer", "declined")


def instants(scenario: Scenario, tables: Mapping[str, Table]) -> Iterator[Instant]:
    """Reads a journal back, instant by instant; facts (jobs, changes, volumes) come from the scenario.

    Changes that no script has are in a table of their own.

    Raises RunFileError where rows contradict each other.
    """
    _check_times(tables)
    plans = _read_plans(tables)
    quotes = _read_quotes(tables, plans)
    decisions = _read_decisions(tables, plans)
    facts = Facts(scenario, _read_changes(tables))
    groups: dict[int, tuple[list[Event], list[Event]]] = {}
    rows = zip(*(tables["events"][c] for c in ("at_us", "kind", "job", "value")), strict=True)
    for at_us, kind, job, value in rows:
        event = facts.restore(Event(at_us, kind, job, value))
        before, after = groups.setdefault(at_us, ([], []))
        (after if kind in _ANSWERS else before).append(event)
    by_time = dict(decisions.values())
    for at_us in sorted(set(groups) | set(by_time) | set(quotes)):
        before, after = groups.get(at_us, ([], []))
        yield Instant(at_us, tuple(before), tuple(quotes.get(at_us, ())), by_time.get(at_us), tuple(after))


class Facts:
    """Restores the facts of events, which the file does not repeat, from the scenario. found: unscripted changes."""

    def __init__(self, scenario: Scenario, found: Sequence[Change] = ()) -> None:
        self._scenario = scenario
        self._changes = (*scenario.changes, *found)
        v = scenario.volumes
        self._volumes: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for job, slot, node, size in zip(
            v.job.tolist(), v.slot.tolist(), v.node.tolist(), v.bytes.tolist(), strict=True
        ):
            self._volumes.setdefault((job, slot), []).append((node, size))

    def restore(self, event: Event) -> Event:
        """The event with its fact."""
        if (event.kind in _WITHOUT_JOB) != (event.job == -1) or (
            event.kind in _WITHOUT_VALUE and event.value
        ):
            raise RunFileError(
                f"tables.events has {event.kind} at {event.at_us} with job {event.job} and value {event.value}; "
                f"job must be -1 for {', '.join(_WITHOUT_JOB)} only, and value must be 0 for {', '.join(_WITHOUT_VALUE)}"
            )
        fact: Job | Change | tuple[tuple[int, int], ...] | None = None
        if event.kind == "arrived":
            fact = _row(self._scenario.jobs, event.job, "job")
        elif event.kind == "changed":
            fact = _row(self._changes, event.value, "change")
        elif event.kind == "data":
            fact = tuple(self._volumes.get((event.job, event.value), ()))
        return event._replace(fact=fact)


def _row(rows: Sequence[_Fact], number: int, what: str) -> _Fact:
    if not 0 <= number < len(rows):
        raise RunFileError(f"tables.events names {what} {number}; there are {len(rows)}")
    return rows[number]


def _check_times(tables: Mapping[str, Table]) -> None:
    """Check that times agree: of a plan and its decision or offer, of an offer and its answer."""
    when = [at for (at,) in _column(tables, "decisions", "at_us")]
    for a, b in pairwise(when):
        if b <= a:
            raise RunFileError(f"tables.decisions.at_us has {b} after {a}; times must increase")
    for table, column in (("decisions", "wake_us"), ("steps", "until_us"), ("answers", "taken")):
        if (least := min((value for (value,) in _column(tables, table, column)), default=0)) < -1:
            raise RunFileError(f"tables.{table}.{column} has {least}; it must be -1 or more")
    made = [at for (at,) in _column(tables, "plans", "at_us")]
    decided = [row for (row,) in _column(tables, "plans", "decision")]
    for plan, (at, row) in enumerate(zip(made, decided, strict=True)):
        if row >= 0 and when[row] != at:
            raise RunFileError(f"tables.plans.at_us[{plan}] is {at}; its decision was made at {when[row]}")
    answered = dict(_column(tables, "answers", "job", "at_us"))
    counts: dict[int, int] = {}
    for at, job, number, plan in _column(tables, "offers", "at_us", "job", "number", "plan"):
        if made[plan] != at or decided[plan] >= 0 or answered.get(job) != at or counts.get(job, 0) != number:
            raise RunFileError(
                f"tables.offers: offer {number} to job {job} at {at} us matches no plan or answer"
            )
        counts[job] = number + 1
    offered = [plan for (plan,) in _column(tables, "offers", "plan")]
    if sorted(offered) != [plan for plan, row in enumerate(decided) if row < 0]:
        raise RunFileError("tables.offers.plan must name each plan without a decision exactly once")


def _column(tables: Mapping[str, Table], table: str, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(cast(list[Any], tables[table][name]) for name in names), strict=True)


def read_steps(tables: Mapping[str, Table]) -> list[Step]:
    """Row -> Step."""
    paths: dict[int, list[int]] = {}
    for path, link in _column(tables, "paths", "path", "link"):
        paths.setdefault(path, []).append(link)
    count = len(tables["steps"]["plan"])
    places: list[list[tuple[int, int, int]]] = [[] for _ in range(count)]
    flows: list[list[Flow]] = [[] for _ in range(count)]
    routes: list[list[Route]] = [[] for _ in range(count)]
    for step, node, workers, servers in _column(tables, "places", "step", "node", "workers", "servers"):
        places[step].append((node, workers, servers))
    for step, src, dst, size in _column(tables, "flows", "step", "src", "dst", "bytes"):
        flows[step].append(Flow(src, dst, size))
    for step, src, dst, bps, path, duplex in _column(
        tables, "routes", "step", "src", "dst", "bps", "path", "duplex"
    ):
        routes[step].append(Route(src, dst, bps, tuple(paths.get(path, ())), duplex))
    steps = []
    for row, (begin, until, usd) in enumerate(_column(tables, "steps", "from_us", "until_us", "usd")):
        here = places[row]
        servers = tuple(p[2] for p in here)
        nodes, workers = tuple(p[0] for p in here), tuple(p[1] for p in here)
        end = OPEN if until < 0 else until
        ps = servers if any(servers) else ()
        steps.append(Step(begin, end, nodes, workers, ps, tuple(flows[row]), tuple(routes[row]), usd))
    return steps


def _read_plans(tables: Mapping[str, Table]) -> list[Plan]:
    """Row -> Plan."""
    own: list[list[Step]] = [[] for _ in tables["plans"]["job"]]
    for (plan,), step in zip(_column(tables, "steps", "plan"), read_steps(tables), strict=True):
        own[plan].append(step)
    return [Plan(job, tuple(own[row])) for row, (job,) in enumerate(_column(tables, "plans", "job"))]


def _read_decisions(tables: Mapping[str, Table], plans: list[Plan]) -> dict[int, tuple[int, Decision]]:
    """Row -> (time, Decision)."""
    named: dict[int, list[Plan]] = {}
    for row, (decision,) in enumerate(_column(tables, "plans", "decision")):
        named.setdefault(decision, []).append(plans[row])
    verdicts: dict[int, list[Verdict]] = {}
    for decision, job, reason in _column(tables, "verdicts", "decision", "job", "reason"):
        verdicts.setdefault(decision, []).append(Verdict(job, reason))
    result = {}
    for row, (at_us, wake, why) in enumerate(_column(tables, "decisions", "at_us", "wake_us", "why")):
        decision = Decision(
            tuple(named.get(row, ())), tuple(verdicts.get(row, ())), None if wake < 0 else wake, None, why
        )
        result[row] = (at_us, decision)
    return result


def _read_quotes(tables: Mapping[str, Table], plans: list[Plan]) -> dict[int, list[tuple[Quote, int]]]:
    """Time -> quotes with the number of the offer taken."""
    prices: dict[int, list[tuple[int, float]]] = {}
    for offer, resource, usd in _column(tables, "prices", "offer", "resource", "usd"):
        prices.setdefault(offer, []).append((resource, usd))
    offers: dict[int, list[Offer]] = {}
    for row, (job, usd, finish, plan) in enumerate(
        _column(tables, "offers", "job", "payment_usd", "finish_us", "plan")
    ):
        offers.setdefault(job, []).append(Offer(usd, finish, plans[plan], tuple(prices.get(row, ()))))
    lists, posted = _read_posted(tables), None
    result: dict[int, list[tuple[Quote, int]]] = {}
    for at_us, job, taken, refused, why in _column(
        tables, "answers", "at_us", "job", "taken", "refused", "why"
    ):
        posted = lists.get(job, posted)
        quote = Quote(job, tuple(offers.get(job, ())), refused, why, posted)
        result.setdefault(at_us, []).append((quote, taken))
    return result


def _read_changes(tables: Mapping[str, Table]) -> list[Change]:
    """Changes that no script has; most runs have none."""
    if "changes" not in tables:
        return []
    return [Change(*row) for row in _column(tables, "changes", *Change._fields)]


def read_charges(tables: Mapping[str, Table]) -> list[Charge]:
    """Payments charged after the run; none in files older than that table."""
    return (
        [Charge(*row) for row in _column(tables, "charges", "job", "usd", "why")]
        if "charges" in tables
        else []
    )


def _read_posted(tables: Mapping[str, Table]) -> dict[int, Posted]:
    """Job -> price list posted with its quote; none in files older than that table."""
    if "posted" not in tables:
        return {}
    rows: dict[int, list[tuple[int, float, float, float]]] = {}
    answered = dict(_column(tables, "answers", "job", "at_us"))
    for at, job in _column(tables, "posted", "at_us", "job"):
        if answered.get(job) != at:
            raise RunFileError(f"tables.posted: the price list at {at} us matches no answer to job {job}")
    for job, *row in _column(tables, "posted", "job", "resource", "gamma", "floor_usd", "data_usd"):
        rows.setdefault(job, []).append((row[0], row[1], row[2], row[3]))
    found = {}
    for job, listed in rows.items():
        numbers = [number for number, *_ in listed]
        if numbers != [*range(len(listed) - 1), -1] or len({row[1::2] for row in listed}) > 1:
            raise RunFileError(
                f"tables.posted: the price list for job {job} names resources {numbers}; it must name each resource "
                "in order, then -1, with the same gamma and data_usd in all rows"
            )
        found[job] = Posted(listed[0][1], tuple(floor for *_, floor, _ in listed), listed[0][3])
    return found
