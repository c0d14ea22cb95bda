"""Periods of markets with failures: promises made before the period, broken before or in it, and what is refunded."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change
from tradewind.systems.eris.study.lies import tiny
from tradewind.worlds.period import cut

SEEDS = 8


def failing(seed: int) -> Scenario:
    """A small market in which two sites fail for some slots."""
    given, draw = tiny(seed, jobs=10), random.Random(seed)
    slot, changes = given.setup.slot_us, list[Change]()
    for site in range(2):
        down_us = draw.randrange(1, 8) * slot + draw.randrange(2) * slot // 2
        up_us = down_us + draw.randrange(1, 4) * slot
        changes += [Change(down_us, "node_down", site, 0, 0), Change(up_us, "node_up", site, 0, 0)]
    return replace(given, changes=tuple(sorted(changes, key=lambda change: change.at_us)))


def paid(given: Scenario, run: Run) -> dict[str, float]:
    payments: Any = run.tables["payments"]
    return {given.jobs[job].id: usd for job, usd in zip(payments["job"], payments["usd"], strict=True)}


def broken(given: Scenario, run: Run) -> dict[str, list[int]]:
    """Job -> slots in which a failure cancelled its plan."""
    found: dict[str, list[int]] = {}
    events: Any = run.tables["events"]
    for at_us, kind, job in zip(events["at_us"], events["kind"], events["job"], strict=True):
        if kind == "voided":
            found.setdefault(given.jobs[job].id, []).append(at_us)
    return found


@pytest.mark.parametrize("policy", ["eris", "fcfs", "eris-paper"])
def test_a_period_has_the_payments_and_refunds_of_the_whole_run(policy: str, tmp_path: Path) -> None:
    before = refunded = 0
    for seed in range(SEEDS):
        given = failing(seed)
        run = tw.run(given, policy, seed=1)
        slot, whole, lost = given.setup.slot_us, paid(given, run), broken(given, run)
        last = max(map(int, run.tables["events"]["at_us"])) // slot
        for first in range(0, last, 3):
            assert tw.check(*cut(given, run, first * slot, (first + 2) * slot)[:2]) == (), (seed, first)
            part = cut(given, run, first * slot, (last + 1) * slot)
            tw.dump(part.scenario, tmp_path / "scenario.json")
            tw.save(part.run, tmp_path / "run.json")
            scenario, read = tw.load(tmp_path / "scenario.json"), tw.load_run(tmp_path / "run.json")
            assert tw.check(scenario, read) == (), (seed, first)
            mine = paid(scenario, read)
            for job in (each.id for each in scenario.jobs):
                times = lost.get(job, [])
                if first * slot in times or (
                    min(times, default=slot * first) < first * slot < max(times, default=0)
                ):
                    continue  # lost at the very start, or twice: the period does not know the first promise
                assert mine.get(job, 0.0) == pytest.approx(whole.get(job, 0.0)), (seed, first, job)
                before += bool(times) and min(times) < first * slot
                refunded += bool(times) and whole.get(job, 0.0) == 0.0
    assert before > 10
    assert refunded > 10
