"""Tenants of mixed: spend caps for every kind of job, and bills."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tradewind import api
from tradewind.model.scenario import Scenario
from tradewind.model.tenant import SpendCap
from tradewind.registry import policies, workloads
from tradewind.testing.contract import continues_after_restore
from tradewind.worlds.simulate import simulate

LITTLE = {"rounds": 10, "replies": 3}


@cache
def shared(seed: int = 1, kind: str = "all", slots: int = 10) -> Scenario:
    """A small scenario of two tenants."""
    made = workloads.generate("mixed", {"jobs": 12, "slots": slots, "sites": 3, "kind": kind}, seed)
    return replace(made, jobs=tuple(replace(job, tenant="ab"[i % 2]) for i, job in enumerate(made.jobs)))


def capped(given: Scenario, **caps: SpendCap) -> Scenario:
    return replace(given, setup=replace(given.setup, spend_caps=caps))


def bill(given: Scenario, tenant: str, name: str = "mixed") -> float:
    """What a tenant pays; the run passes the audit."""
    run = api.run(given, policy=name, params=LITTLE if name == "mixed" else {})
    assert not api.check(given, run)
    rows = run.tables["bills"]
    lines = zip(rows["tenant"], rows["kind"], rows["usd"], strict=True)
    return sum((float(str(usd)) for who, kind, usd in lines if (who, kind) == (tenant, "pooled")), 0.0)


@pytest.mark.parametrize(("kind", "slots"), [("all", 10), ("fixed", 24)])
def test_caps_per_slot_and_in_total_hold_for_every_kind_of_job(kind: str, slots: int) -> None:
    given = shared(kind=kind, slots=slots)
    free = bill(given, "a")
    slot = free / slots  # the mean
    for cap in (
        SpendCap(slot_usd=slot),
        SpendCap(total_usd=0.3 * free),
        SpendCap(slot_usd=slot, total_usd=0.3 * free),
    ):
        spent = bill(capped(given, a=cap), "a")
        assert 0.0 < spent < free
        assert spent <= (slots * slot if cap.total_usd is None else cap.total_usd)


def test_rivals_keep_caps_too() -> None:
    for name in ("mixed-line", "mixed-priority", "mixed-shares"):
        assert bill(capped(shared(), a=SpendCap(slot_usd=8.0)), "a", name) < bill(shared(), "a", name)


def test_a_cap_that_binds_nobody_changes_no_plan_of_streams_and_rings() -> None:
    given = shared(2, "ring")
    wide = capped(given, a=SpendCap(slot_usd=1e9))
    runs = [simulate(each, policies.find("mixed"), LITTLE) for each in (given, wide)]
    assert runs[0].metrics["welfare_usd"] == pytest.approx(runs[1].metrics["welfare_usd"])


def test_what_was_spent_is_saved_and_restored() -> None:
    given = capped(shared(), a=SpendCap(slot_usd=20.0, total_usd=60.0))
    spec = policies.find("mixed-line")
    continues_after_restore(spec, given, simulate(given, spec), 0.5)


def test_bills_add_up_to_the_cost_and_nobody_pays_more_than_alone() -> None:
    given = shared(3)
    run = api.run(given, policy="mixed-line")
    rows = run.tables["bills"]
    usd = {(t, k): float(str(u)) for t, k, u in zip(rows["tenant"], rows["kind"], rows["usd"], strict=True)}
    assert sum(u for (_, kind), u in usd.items() if kind == "pooled") == pytest.approx(
        run.metrics["cost_usd"]
    )
    assert all(usd[t, "pooled"] <= usd[t, "alone"] + 1e-9 for t in "ab")
    assert usd["a", "pooled"] < usd["a", "alone"]
