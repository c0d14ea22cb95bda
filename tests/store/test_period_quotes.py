"""Periods of runs in which customers take their time: quotes open, answered, expired and withdrawn across the edges."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import tradewind as tw
from tradewind.engine.accounts import settle
from tradewind.engine.journal import Journal
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.view import Event
from tradewind.registry import policies
from tradewind.store.history import ScriptReader
from tradewind.testing.disturbed import disturbed_run
from tradewind.testing.scenarios import contended_cluster, generated
from tradewind.worlds.assembled import unsettled
from tradewind.worlds.period import cut
from tradewind.worlds.simulate import make_policy

CASES = (("eris-paper", "eris", "fcfs"), ("fcfs", "eris", "eris"), ("dps", "dps", "top"), ("las", "", "fifo"))
SEEDS = 8


class Told(Journal):
    """A journal that also notes what became known, which is the script of what happened."""

    def __init__(self) -> None:
        super().__init__()
        self.script = ScriptReader()

    def events(self, events: Sequence[Event]) -> None:
        super().events([self.script.take(event) for event in events])


def happened(name: str, workload: str, seed: int) -> tuple[Scenario, Run]:
    """A run with free answers, cancellations and failures, and the scenario of what happened in it."""
    given = generated(workload, seed) if workload else contended_cluster(seed)
    if workload == "dps" and seed % 2:  # late in a slot, so that quotes are open at its end
        late_us = given.setup.slot_us * 8 // 10
        given = replace(
            given, jobs=tuple(replace(job, arrive_us=job.arrive_us + late_us) for job in given.jobs)
        )
    spec, journal = policies.find(name), Told()
    disturbed_run(spec, given, lambda: make_policy(given, spec, {}, 0)[0], seed, journal=journal)
    private = {job.index: given.customers[job.index] for job in journal.script.jobs}
    script = journal.script.scenario(given.name, given.setup, private, {})
    _, params = make_policy(given, spec, {}, 0)
    return script, settle(script, unsettled(script, spec, params, 0, journal))


@pytest.mark.parametrize(("name", "workload", "other"), CASES, ids=[case[0] for case in CASES])
def test_every_period_is_accepted_whatever_customers_answer(name: str, workload: str, other: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        given, run = happened(name, workload, seed)
        assert tw.check(given, run) == (), seed
        draw, slot = random.Random(seed), given.setup.slot_us
        last = max(2, max(map(int, run.tables["events"]["at_us"])) // slot + 1)
        for _ in range(3):
            first = draw.randrange(last - 1)
            part = cut(given, run, first * slot, draw.randrange(first + 1, last + 1) * slot)
            assert tw.check(part.scenario, part.run) == (), (seed, first)
            seen += Counter(map(str, part.run.tables["events"]["kind"]))
            again = cut(part.scenario, part.run, 0, part.scenario.setup.horizon_us)
            assert tw.check(again.scenario, again.run) == (), (seed, first)
            assert dict(again.run.metrics) == pytest.approx(dict(part.run.metrics))
        assert tw.whatif(part.scenario, part.run, other).other.violations == ()
    if workload:
        assert min(seen[kind] for kind in ("quoted", "answered", "expired", "accepted", "declined")) > 0
        assert seen["withdrawn"] or name != "dps"


def edges(given: Scenario, run: Run, kind: str) -> list[tuple[int, int, int]]:
    """(job, slot in which its quote was made, slot in which it was closed by an event `kind`), if these differ."""
    slot, made, found = given.setup.slot_us, dict[int, int](), []
    columns: Any = [run.tables["events"][name] for name in ("at_us", "kind", "job")]
    for at_us, what, job in zip(*columns, strict=True):
        if what == "quoted":
            made[job] = at_us
        elif what in (kind, "accepted", "declined") and job in made:
            slots = made.pop(job) // slot, at_us // slot
            found += [(job, *slots)] if what == kind and slots[0] < slots[1] else []
    return found


@pytest.mark.parametrize("kind", ["accepted", "expired", "withdrawn", "cancelled"])
def test_a_quote_that_is_open_at_an_edge_is_open_in_both_parts(kind: str) -> None:
    found = [
        (each, edge)
        for seed in range(1, 60, 2)
        for each in [happened("dps", "dps", seed)]
        for edge in edges(*each, kind)
    ]
    assert found
    for (given, run), (job, made, closed) in found[:3]:
        slot, name = given.setup.slot_us, given.jobs[job].id
        before = cut(given, run, made * slot, closed * slot)
        after = cut(given, run, closed * slot, given.setup.horizon_us)
        assert tw.check(before.scenario, before.run) == tw.check(after.scenario, after.run) == ()
        if before.scenario.setup.horizon_us == (closed - made) * slot:  # no plan reaches beyond the edge
            assert of_job(before.scenario, before.run, name)[-2:] == ["quoted", "ended"]
        told = of_job(after.scenario, after.run, name)
        assert told[:2] == ["arrived", "quoted"]
        assert kind in told


def of_job(given: Scenario, run: Run, name: str) -> list[str]:
    """Kinds of the events of a job."""
    columns: Any = [run.tables["events"][column] for column in ("kind", "job")]
    return [kind for kind, job in zip(*columns, strict=True) if job >= 0 and given.jobs[job].id == name]


def test_a_what_if_says_that_customers_were_free_to_answer() -> None:
    given, run = happened("dps", "dps", 1)
    assert any("took their time to answer" in note for note in tw.whatif(given, run, "top").notes)
