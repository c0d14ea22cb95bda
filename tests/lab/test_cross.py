"""The cross-table: every pair of a family and a policy runs and passes the audit, or is rejected with a reason."""

from __future__ import annotations

import pytest

from tradewind.api import check
from tradewind.engine.fit import mismatch
from tradewind.lab import cross, cross_families
from tradewind.lab.study import Effort, Row
from tradewind.model.errors import Unsupported
from tradewind.model.job import Fixed
from tradewind.registry import policies
from tradewind.testing.scenarios import generated
from tradewind.worlds.simulate import simulate

QUICK = Effort(quick=True, seeds=1)
SYSTEMS = ("apsp", "cluster", "dps", "eris", "gadget", "mlbroker")


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_policy_passes_the_audit_on_a_system_or_says_why_it_cannot_run(system: str) -> None:
    given = generated(system, 1)
    ran = []
    for name in policies.names():
        spec = policies.find(name)
        why = mismatch(spec, given)
        if not why:
            run = simulate(given, spec, seed=1)
            assert check(given, run) == (), name
            ran.append(name)
            continue
        with pytest.raises(Unsupported, match=f"{name} cannot run") as refused:
            simulate(given, spec)
        assert why in str(refused.value)
        assert name in why, "it names the policy"
        assert given.setup.objective in why or given.jobs[0].kind in why, "and what does not fit"
    assert {policies.find(name).system for name in ran} >= {system} - {"cluster"}


@pytest.mark.parametrize("family", cross_families.FAMILIES, ids=lambda f: f.name)
def test_every_family_has_policies_that_run_it_and_a_bound(family: cross_families.Family) -> None:
    able = [name for name in policies.names() if not cross.why_not(family, name, QUICK)]
    assert len(able) >= 4
    (limit,) = cross.family_bounds(QUICK, family.bound_from or family.make)
    assert float(limit["bound"]) > 0


def test_slow_runs_with_many_jobs_are_left_out_with_a_reason_and_others_have_one_seed() -> None:
    (family,) = (f for f in cross_families.FAMILIES if f.name == "eris contended")
    full, name = Effort(quick=False, seeds=3), "eris contended: mixed"
    assert cross.left_out(family, "mixed", QUICK)
    assert not cross.left_out(family, "mixed", full)
    assert not cross.left_out(family, "eris", QUICK)
    (rings,) = (f for f in cross_families.FAMILIES if f.name == "gadget")
    assert cross.left_out(rings, "mixed", full)
    assert name not in {part.name for part in cross.parts(QUICK)}
    assert name in {part.name for part in cross.parts(full)}
    limits: list[Row] = [{"seed": float(n), "bound": 10.0, "kind": "certified"} for n in (1, 2, 3)]
    row = cross._row(family, "mixed", QUICK, (None, limits))
    assert str(row["why not"]).startswith("left out: slow")
    own: list[Row] = [{"seed": 1.0, "value": 9.0, "away": 0.0}]
    assert cross._row(family, "mixed", full, (own, limits))["share"] == 0.9


def test_the_fixed_jobs_behind_a_bound_are_never_slower_than_the_real_ones() -> None:
    slow, fast = cross_families.dps_queue(QUICK, 1), cross_families.dps_queue_fixed(QUICK, 1)
    assert [job.arrive_us for job in slow.jobs] == [job.arrive_us for job in fast.jobs]
    assert all(isinstance(job.work, Fixed) for job in fast.jobs)
    run = simulate(slow, policies.find("fifo-backfill"), seed=1)
    finish = dict(zip(run.tables["outcomes"]["job"], run.tables["outcomes"]["finish_us"], strict=True))
    start = {job.index: job.arrive_us for job in slow.jobs}
    for job in fast.jobs:
        assert isinstance(job.work, Fixed)
        took = int(str(finish[job.index])) - start[job.index]
        assert took >= int(str(job.work.runtime_us))


def test_finite_capacity_binds() -> None:
    free, tight = cross_families.mlbroker_narrow(QUICK, 1), cross_families.mlbroker_finite(QUICK, 1)
    run = simulate(free, policies.find("central"), seed=1)
    short = simulate(tight, policies.find("central"), seed=1)
    assert run.value < short.value, "capacity binds"


def rows_of(value: float, away: float = 0.0) -> list[Row]:
    return [{"seed": 1.0, "value": value, "away": away}]


def test_shares_are_at_most_one_at_the_bound_whatever_the_objective() -> None:
    parts = cross.parts(QUICK)
    known: list[list[Row]] = []
    for part in parts:
        if part.name.endswith(": bound"):
            known.append([{"seed": 1.0, "bound": 10.0, "kind": "certified"}])
        else:
            costs = part.name.startswith(("mlbroker", "apsp", "cluster", "dps queue"))
            known.append(rows_of(20.0 if costs else 5.0, away=float(part.name == "cluster: las")))
    table = cross.join(QUICK, known)
    assert {float(r["share"]) for r in table if r["share"] != ""} == {0.5}
    las = next(r for r in table if (r["family"], r["policy"]) == ("cluster", "las"))
    assert las["share"] == ""
    assert "rejected" in str(las["why not"])
    refused = next(r for r in table if (r["family"], r["policy"]) == ("cluster", "dps"))
    assert str(refused["why not"]).startswith("cannot run: ")
    assert len(table) == len(cross_families.FAMILIES) * len(policies.names())
    assert "cannot run" in cross.summary(table)
