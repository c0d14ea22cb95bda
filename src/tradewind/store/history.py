"""What a store recorded, as a scenario (the script of what happened) and a run.

A limit that a customer of a service left is sealed, and not in the records. Its answers are: one that declined offers has
a budget just below the cheapest of them in the scenario, one that bought has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from tradewind.engine.journal import Journal
from tradewind.engine.stimuli import from_json
from tradewind.model.codec import read
from tradewind.model.decision import Charge, Decision, HeldQuote, Quote
from tradewind.model.errors import StoreError
from tradewind.model.hash import scenario_hash
from tradewind.model.job import NO_PRIVATE_DATA, Customer, Job, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.setup import Setup
from tradewind.model.view import Change, Event
from tradewind.store.store import Store


class History(NamedTuple):
    """Scenario and unsettled run of a store. closed: the run has come to its end; end_us: the last instant."""

    scenario: Scenario
    run: Run
    closed: bool
    end_us: int


class ScriptReader:
    """Collects what becomes known with events: jobs, changes, volumes."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.changes: list[Change] = []
        self.volumes: list[tuple[int, int, int, int]] = []
        self.again = Counter[str]()  # id -> how often it was resumed
        self.gone: dict[int, int] = {}  # job -> when it left or was cancelled
        self.declined: dict[int, float] = {}  # job -> the lowest price that it declined at once

    def take(self, event: Event) -> Event:
        """Note the fact of an event; changes are numbered in the order in which they happened."""
        if isinstance(event.fact, Job):
            self.jobs.append(self._own(event.fact))
        elif isinstance(event.fact, Change):
            self.changes.append(event.fact)
            return event._replace(value=len(self.changes) - 1)
        elif event.kind in ("left", "cancelled"):
            self.gone[event.job] = event.at_us
        elif event.kind == "data":
            sizes = cast(tuple[tuple[int, int], ...], event.fact)
            self.volumes += [(event.job, event.value, node, size) for node, size in sizes]
        return event

    def answered(self, quote: Quote, taken: int) -> None:
        """Note what a customer that does not think about a quote did."""
        if taken < 0 and quote.offers:
            lowest = min(offer.payment_usd for offer in quote.offers)
            self.declined[quote.job] = min(lowest, self.declined.get(quote.job, lowest))

    def _own(self, job: Job) -> Job:
        """A job that goes on from another, under a name of its own: a scenario knows nothing of directories."""
        if job.continues is None:
            return job
        self.again[job.id] += 1
        return replace(job, id=f"{job.id}#{self.again[job.id] + 1}", continues=None)

    def scenario(
        self, name: str, setup: Setup, private: Mapping[int, Customer], origin: Mapping[str, Any]
    ) -> Scenario:
        """The scenario of what happened; private: customers of which more is known than their jobs."""
        columns: Any = zip(("job", "slot", "node", "bytes"), zip(*self.volumes, strict=True), strict=False)
        return Scenario(
            name=name,
            setup=setup,
            jobs=tuple(self.jobs),
            customers=tuple(private.get(job.index, NO_PRIVATE_DATA) for job in self.jobs),
            changes=tuple(self.changes),
            volumes=Volumes(**dict(columns)),  # tuples are made arrays
            origin=origin,
        )


def history(store: Store) -> History:
    """Read a whole store, which is checked on the way."""
    script, journal, header = ScriptReader(), Journal(), dict[str, Any]()
    ran = Counter[int]()  # job -> microseconds that its ranks ran
    closed, end_us, began = False, 0, 0
    for record in store.records():
        data = record.data
        if record.kind == "header":
            header, began = data, len(data["setup"]["nodes"]) if "setup" in data else 0
        elif record.kind == "instant":
            end_us = data["at_us"]
            _replay(data, script, journal)
        elif record.kind == "setup":  # sites have joined
            header = {**header, "setup": data["setup"]}
        elif record.kind == "policy":  # it decides from here on
            header = {**header, "policy": data["name"], "params": data["params"], "seed": data["seed"]}
        elif record.kind == "attempt":
            ran[data["job"]] -= data["at_us"]
        elif record.kind == "over":
            ran[data["job"]] += data["ended_us"]
        elif record.kind == "closed":
            closed = True
            journal.charges([Charge(*row) for row in zip(*data["charges"].values(), strict=True)])
    ran.update({job: end_us for job, us in ran.items() if us < 0})  # ranks that still run
    if "setup" not in header:
        raise StoreError("it has no header with a setup; it holds no run yet", where=store.name)
    _not_yet(range(began, len(header["setup"]["nodes"])), script, journal)
    scenario = _scenario(header, script, ran)
    run = Run(
        scenario_hash=scenario_hash(scenario), scenario_name=scenario.name, policy=header["policy"], params=header["params"],
        seed=header["seed"], version=header["by"], objective=scenario.setup.objective, metrics={}, violations=(),
        tables=journal.tables, world=header["world"], fleet=header.get("fleet", ""),
    )  # fmt: skip
    return History(scenario, run, closed, end_us)


def _not_yet(nodes: range, script: ScriptReader, journal: Journal) -> None:
    """Let nodes be down from the start that joined later; what happened then says that they are up."""
    script.changes[:0] = [Change(0, "node_down", node, 0, 0) for node in nodes]
    events = journal.tables["events"]
    events["value"] = [
        value + len(nodes) if kind == "changed" else value
        for kind, value in zip(events["kind"], events["value"], strict=True)
    ]
    for number in reversed(range(len(nodes))):
        row = {"at_us": 0, "kind": "changed", "job": -1, "value": number}
        for name, column in events.items():
            column.insert(0, row[name])


def _replay(data: dict[str, Any], script: ScriptReader, journal: Journal) -> None:
    for kind, what in data["ops"]:
        if kind == "events":
            journal.events([script.take(from_json(row)) for row in what])
        elif kind in ("quote", "answer"):
            quote, taken = read(Quote, what[0], "quote"), what[1]
            journal.quote(data["at_us"], quote, taken, held=kind == "answer")
            if kind == "quote":
                script.answered(quote, taken)
        elif kind == "hold":
            journal.hold(read(HeldQuote, what, "quote"))
        elif kind == "decision":
            journal.decision(data["at_us"], read(Decision, what, "decision"))


def _scenario(header: dict[str, Any], script: ScriptReader, ran: Mapping[int, int]) -> Scenario:
    private = {int(job): read(Customer, row, f"customers[{job}]") for job, row in header["customers"].items()}
    setup = read(Setup, header["setup"], "setup")
    for index, usd in script.declined.items():
        if index not in private and usd > 0:
            private[index] = Customer(budget_usd=math.nextafter(usd, 0.0))
    for job in script.jobs:
        customer = private.get(job.index, NO_PRIVATE_DATA)
        if job.work.total is None and customer.runtime_us is None:
            private[job.index] = replace(customer, runtime_us=_measured_us(job, ran, script, setup))
    return script.scenario(header["name"], setup, private, {"store": header["scenario"]})


def _measured_us(job: Job, ran: Mapping[int, int], script: ScriptReader, setup: Setup) -> int:
    """The runtime of a job that nobody stated: as long as its ranks ran; of a stream: as long as it stayed."""
    if isinstance(job.work, Stream):
        return max(1, script.gone.get(job.index, setup.horizon_us) - job.arrive_us)
    return max(1, ran.get(job.index, 0))
