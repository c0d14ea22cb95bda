"""Reads a journal back: the instants of a run, with their events, quotes and decisions, from the tables of its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

from tradewind.model.decision import (
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
from tradewind.model.estimate import Measured
from tradewind.model.job import Job
from tradewind.model.result import Table
from tradewind.model.scenario import Scenario
from tradewind.model.tables import TABLES
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event

_Fact = TypeVar("_Fact")


class Trade(NamedTuple):
    """What became of a quote at an instant.

    event  the event that says so; None where it is missing
    quote  the quote; without offers if it is closed now but was held before; None if it is withdrawn
    taken  number of the offer taken, or -1
    """

    event: Event | None
    quote: Quote | None
    taken: int


class Instant(NamedTuple):
    """One instant of a journal, in the order in which things happened."""

    at_us: int
    events: tuple[Event, ...]
    trades: tuple[Trade, ...]
    decision: Decision | None
    after: tuple[Event, ...]


_ANSWERS = ("quoted", "withdrawn", "accepted", "declined", "refused")
_WITHOUT_JOB = ("changed", "slot", "timer")
_WITHOUT_VALUE = ("arrived", "finished", "left", "released", "timer", "declined")


def instants(scenario: Scenario, tables: Mapping[str, Table]) -> Iterator[Instant]:
    """Reads a journal back, instant by instant; facts (jobs, changes, volumes) come from the scenario.

    Changes that no script has are in a table of their own.

    Raises RunFileError where rows contradict each other.
    """
    _check_times(tables)
    plans = _read_plans(tables)
    trades = _Trades(tables, plans)
    decisions = _read_decisions(tables, plans)
    facts = Facts(scenario, _read_changes(tables), _read_estimates(tables))
    groups: dict[int, tuple[list[Event], list[Event]]] = {}
    rows = zip(*(tables["events"][c] for c in ("at_us", "kind", "job", "value")), strict=True)
    for at_us, kind, job, value in rows:
        event = facts.restore(Event(at_us, kind, job, value))
        before, after = groups.setdefault(at_us, ([], []))
        (after if kind in _ANSWERS else before).append(event)
    facts.check_told()
    by_time, held = dict(decisions.values()), _OpenQuotes()
    for at_us in sorted(set(groups) | set(by_time) | trades.times):
        before, after = groups.get(at_us, ([], []))
        if held.concerns(before, after):
            before = held.name(before, after)
        made = trades.at(at_us, after)
        rest = [event for event in after if not any(trade.event is event for trade in made)]
        ends: list[Event] = []
        if at_us >= scenario.setup.horizon_us and (made or at_us in by_time):  # the run ends after that
            ends = [event for event in before if event.kind == "ended"]
            before = [event for event in before if event.kind != "ended"]
        yield Instant(at_us, tuple(before), made, by_time.get(at_us), tuple(rest))
        if ends:
            yield Instant(at_us, tuple(ends), (), None, ())


class _OpenQuotes:
    """Ids of open quotes, which are numbered in order: tables do not say which quote an answer names."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._count = 0

    def concerns(self, before: Sequence[Event], after: Sequence[Event]) -> bool:
        """Whether quotes are opened, open or answered at an instant."""
        return (
            bool(self._open)
            or any(e.kind == "quoted" for e in after)
            or any(e.kind == "answered" for e in before)
        )

    def name(self, before: Sequence[Event], after: Sequence[Event]) -> list[Event]:
        """The events with the quotes that answers name; an answer that changed nothing names none."""
        closed = {event.job for event in after if event.kind in ("accepted", "declined", "refused")}
        found = [
            event._replace(fact=self._open.get(event.job, -1) if event.job in closed else -1)
            if event.kind == "answered"
            else event
            for event in before
        ]
        for event in after:
            if event.kind == "quoted":
                self._open[event.job] = self._count
                self._count += 1
            else:
                self._open.pop(event.job, None)
        for event in before:
            if event.kind in ("cancelled", "ended"):
                self._open.pop(event.job, None)
        return found


def answered_quotes(found: Iterable[Instant]) -> list[tuple[int, Quote, int]]:
    """(time, quote, number of the offer taken or -1) of all quotes that were answered."""
    held: dict[int, Quote] = {}
    result = []
    for instant in found:
        for event, quote, taken in instant.trades:
            if quote is None:
                continue
            if event is not None and event.kind == "quoted":
                held[quote.job] = quote
            else:
                result.append((instant.at_us, quote if quote.offers else held.pop(quote.job, quote), taken))
    return result


class Facts:
    """Restores the facts of events, which the file does not repeat, from the scenario. found: unscripted changes."""

    def __init__(
        self, scenario: Scenario, found: Sequence[Change] = (),
        measured: Mapping[tuple[int, int], tuple[Measured, ...]] | None = None,
    ) -> None:  # fmt: skip
        self._measured = dict(measured or {})
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
        misplaced = (event.kind in _WITHOUT_JOB) != (event.job == -1) or event.job < -1
        if misplaced or (event.kind in _WITHOUT_VALUE and event.value):
            raise RunFileError(
                f"tables.events has {event.kind} at {event.at_us} with job {event.job} and value {event.value}; "
                f"job must be -1 for {', '.join(_WITHOUT_JOB)} only, and value must be 0 for {', '.join(_WITHOUT_VALUE)}"
            )
        fact: Job | Change | tuple[tuple[int, int], ...] | tuple[Measured, ...] | None = None
        if event.kind == "arrived":
            fact = _row(self._scenario.jobs, event.job, "job")
        elif event.kind == "changed":
            fact = _row(self._changes, event.value, "change")
        elif event.kind == "data":
            fact = tuple(self._volumes.get((event.job, event.value), ()))
        elif event.kind == "measured":
            fact = self._measured.pop((event.at_us, event.job), None)
            if fact is None:
                raise RunFileError(
                    f"tables.events has measured at {event.at_us} for job {event.job}; tables.estimates has nothing of it"
                )
        return event._replace(fact=fact)

    def check_told(self) -> None:
        """Check that no measurement is left without its event."""
        for at_us, job in self._measured:
            raise RunFileError(
                f"tables.estimates has job {job} at {at_us}; tables.events has no event measured of it then"
            )


def _row(rows: Sequence[_Fact], number: int, what: str) -> _Fact:
    if not 0 <= number < len(rows):
        raise RunFileError(f"tables.events names {what} {number}; there are {len(rows)}")
    return rows[number]


def _check_times(tables: Mapping[str, Table]) -> None:
    """Check that times agree: of events in order, of a plan and its decision or offer, of an offer and its answer."""
    for (a,), (b,) in pairwise(_column(tables, "events", "at_us")):
        if b < a:
            raise RunFileError(f"tables.events.at_us has {b} after {a}; events must be in order")
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
    quoted = _quoted(tables)
    counts: dict[tuple[int, int], int] = {}
    for at, job, number, plan in _column(tables, "offers", "at_us", "job", "number", "plan"):
        if (
            made[plan] != at
            or decided[plan] >= 0
            or (at, job) not in quoted
            or counts.get((at, job), 0) != number
        ):
            raise RunFileError(
                f"tables.offers: offer {number} to job {job} at {at} us matches no plan or answer"
            )
        counts[at, job] = number + 1
    offered = [plan for (plan,) in _column(tables, "offers", "plan")]
    if sorted(offered) != [plan for plan, row in enumerate(decided) if row < 0]:
        raise RunFileError("tables.offers.plan must name each plan without a decision exactly once")


def _quoted(tables: Mapping[str, Table]) -> set[tuple[int, int]]:
    """(time, job) of all quotes: those answered at once and those held."""
    held = {
        (at, job) for at, kind, job in _column(tables, "events", "at_us", "kind", "job") if kind == "quoted"
    }
    return held | set(_column(tables, "answers", "at_us", "job"))


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


class _Trades:
    """Quotes and answers by time and job."""

    def __init__(self, tables: Mapping[str, Table], plans: list[Plan]) -> None:
        prices: dict[int, list[tuple[int, float]]] = {}
        for offer, resource, usd in _column(tables, "prices", "offer", "resource", "usd"):
            prices.setdefault(offer, []).append((resource, usd))
        self._offers: dict[tuple[int, int], list[Offer]] = {}
        for row, (at, job, usd, finish, plan) in enumerate(
            _column(tables, "offers", "at_us", "job", "payment_usd", "finish_us", "plan")
        ):
            offer = Offer(usd, finish, plans[plan], tuple(prices.get(row, ())))
            self._offers.setdefault((at, job), []).append(offer)
        self._answers: dict[int, dict[int, tuple[int, str, str]]] = {}
        for at, job, *answer in _column(tables, "answers", "at_us", "job", "taken", "refused", "why"):
            if job in self._answers.setdefault(at, {}):
                raise RunFileError(f"tables.answers has two answers to job {job} at {at}; keep one")
            self._answers[at][job] = (answer[0], answer[1], answer[2])
        self._lists, self._posted = _read_posted(tables), cast(Posted | None, None)
        self.times = set(self._answers)

    def at(self, at_us: int, events: Sequence[Event]) -> tuple[Trade, ...]:
        """The trades of an instant, in the order of their events; answers without an event come last."""
        found, answers = [], dict(self._answers.get(at_us, {}))
        for event in events:
            if event.kind == "quoted":
                found.append(Trade(event, self._quote(at_us, event.job), -1))
            elif event.kind == "withdrawn":
                found.append(Trade(event, None, -1))
            elif event.job in answers:
                found.append(self._trade(at_us, event, event.job, answers.pop(event.job)))
        found += [self._trade(at_us, None, job, answer) for job, answer in answers.items()]
        return tuple(found)

    def _trade(self, at_us: int, event: Event | None, job: int, answer: tuple[int, str, str]) -> Trade:
        taken, refused, why = answer
        return Trade(event, self._quote(at_us, job)._replace(refused=refused, why=why), taken)

    def _quote(self, at_us: int, job: int) -> Quote:
        self._posted = self._lists.get((at_us, job), self._posted)
        return Quote(job, tuple(self._offers.get((at_us, job), ())), posted=self._posted)


def _read_changes(tables: Mapping[str, Table]) -> list[Change]:
    """Changes that no script has; most runs have none."""
    if "changes" not in tables:
        return []
    return [Change(*row) for row in _column(tables, "changes", *TABLES["changes"])]


def _read_estimates(tables: Mapping[str, Table]) -> dict[tuple[int, int], tuple[Measured, ...]]:
    """(time, job) -> what was measured; most runs have nothing."""
    found: dict[tuple[int, int], tuple[Measured, ...]] = {}
    if "estimates" in tables:
        for at, job, *row in _column(tables, "estimates", "at_us", "job", *Measured._fields):
            found[at, job] = (*found.get((at, job), ()), Measured(*row))
    return found


def read_charges(tables: Mapping[str, Table]) -> list[Charge]:
    """Payments charged after the run."""
    return [Charge(*row) for row in _column(tables, "charges", "job", "usd", "why")]


def _read_posted(tables: Mapping[str, Table]) -> dict[tuple[int, int], Posted]:
    """(time, job) -> price list posted with its quote."""
    rows: dict[tuple[int, int], list[tuple[int, float, float, float]]] = {}
    quoted = _quoted(tables)
    for at, job, *row in _column(
        tables, "posted", "at_us", "job", "resource", "gamma", "floor_usd", "data_usd"
    ):
        if (at, job) not in quoted:
            raise RunFileError(f"tables.posted: the price list at {at} us matches no answer to job {job}")
        rows.setdefault((at, job), []).append((row[0], row[1], row[2], row[3]))
    found = {}
    for (at, job), listed in rows.items():
        numbers = [number for number, *_ in listed]
        if numbers != [*range(len(listed) - 1), -1] or len({row[1::2] for row in listed}) > 1:
            raise RunFileError(
                f"tables.posted: the price list for job {job} names resources {numbers}; it must name each resource "
                "in order, then -1, with the same gamma and data_usd in all rows"
            )
        found[at, job] = Posted(listed[0][1], tuple(floor for *_, floor, _ in listed), listed[0][3])
    return found
