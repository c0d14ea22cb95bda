"""Any period of a run exports as a scenario and a run that the audit accepts and other policies can be run on."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import tradewind as tw
from tests.builders import job, node, scenario, setup
from tests.command import tradewind
from tests.worlds.live_runs import run_live
from tests.worlds.live_scenarios import S, broker, counting
from tradewind.model.errors import InputError, StoreError
from tradewind.model.job import Fixed, Rounds
from tradewind.model.result import Run
from tradewind.model.view import Change
from tradewind.store.store import Store
from tradewind.testing.scenarios import contended_cluster, generated
from tradewind.worlds.period import cut

FAMILIES = [
    ("cluster", ["fifo", "las"], "srtf"),
    ("eris", ["eris", "eris-preemptive"], "fcfs"),
    ("dps", ["dps"], "top"),
    ("mlbroker", ["mlbroker"], "local"),
    ("gadget", ["gadget"], "ring-las"),
    ("apsp", ["apsp"], "random-ps"),
    ("failures", ["fifo", "srtf"], "las"),
]


def periods(given: tw.Scenario, run: Run, count: int, seed: str) -> list[tuple[int, int]]:
    """Random periods that contain something."""
    draw, slot = random.Random(seed), given.setup.slot_us
    last = max(2, max(map(int, run.tables["events"]["at_us"])) // slot + 1)
    firsts = [draw.randrange(last - 1) for _ in range(count)]
    return [(first * slot, draw.randrange(first + 1, last + 1) * slot) for first in firsts]


@pytest.mark.parametrize(("workload", "names", "other"), FAMILIES, ids=[each[0] for each in FAMILIES])
def test_periods_are_accepted_by_the_audit_and_can_be_re_run(
    workload: str, names: list[str], other: str
) -> None:
    given = contended_cluster(3) if workload == "failures" else generated(workload, 3)
    for name in names:
        run = tw.run(given, name, seed=1)
        for from_us, to_us in periods(given, run, 4, name):
            part = cut(given, run, from_us, to_us)
            assert tw.check(part.scenario, part.run) == (), (name, from_us, to_us)
            assert tw.whatif(part.scenario, part.run, other).other.violations == ()
        whole = cut(given, run, 0, given.setup.horizon_us)
        assert dict(whole.run.metrics) == pytest.approx(dict(run.metrics))


def test_a_job_that_is_active_at_the_start_arrives_with_the_work_that_is_left() -> None:
    where = setup([node("a", 1)], slot_us=S, horizon_us=100 * S, objective="jct_mean_s")
    jobs = [
        job(0, id="early", work=Fixed(runtime_us=4 * S)),
        job(1, id="long", work=Fixed(runtime_us=20 * S)),
        job(2, id="late", work=Fixed(runtime_us=5 * S), arrive_us=15 * S),
        job(3, id="after", work=Fixed(runtime_us=5 * S), arrive_us=40 * S),
    ]
    given = scenario(jobs, where=where)
    part = cut(given, tw.run(given, "fifo"), 10 * S, 30 * S)
    assert [(each.id, each.arrive_us, each.work.total) for each in part.scenario.jobs] == [
        ("long", 0, 14 * S),
        ("late", 5 * S, 5 * S),
    ]
    assert part.run.tables["outcomes"]["finish_us"] == [14 * S, 19 * S]
    assert part.scenario.setup.horizon_us == 20 * S
    assert tw.check(part.scenario, part.run) == ()


def test_jobs_whose_newest_plans_are_cancelled_are_the_same_in_a_period() -> None:
    """A limit shrinks in the period; plans made before it keep their order of age, which is not that of arrival."""
    given = contended_cluster(3)
    part = cut(given, tw.run(given, "drf", seed=3), 19 * given.setup.slot_us, 25 * given.setup.slot_us)
    assert "voided" in part.run.tables["events"]["kind"]
    assert tw.check(part.scenario, part.run) == ()


def test_jobs_that_are_refused_when_a_period_ends_have_the_work_done_by_then() -> None:
    given = tw.generate("mixed", seed=182, jobs=8, slots=10, sites=4, failures=1)
    slot = given.setup.slot_us
    for at, kind in ((1, "node_down"), (3, "node_up")):
        given = replace(given, changes=tuple(sorted((*given.changes, Change(at * slot, kind, 2, 0, 0)))))
    run = tw.run(given, "mixed-shares")
    columns = (run.tables["events"][name] for name in ("at_us", "kind", "value"))
    ends = {int(at) for at, kind, done in zip(*columns, strict=True) if kind == "refused"}
    assert len(ends) > 1
    for end in ends:
        for from_us in range(0, end, 2 * slot):
            part = cut(given, run, from_us, end)
            assert tw.check(part.scenario, part.run) == (), (from_us, end)


@pytest.mark.parametrize(
    ("from_us", "to_us"), [(S // 2, 5 * S), (5 * S, 5 * S), (-S, 5 * S), (9 * S, 10 * S)]
)
def test_a_period_that_does_not_begin_with_a_slot_is_refused(from_us: int, to_us: int) -> None:
    given = scenario([job(0)], where=setup([node("a")], slot_us=S, horizon_us=9 * S, objective="jct_mean_s"))
    with pytest.raises(InputError, match="must begin at the start of a slot"):
        cut(given, tw.run(given, "fifo"), from_us, to_us)


def test_a_live_run_exports_whole_and_in_parts_and_what_if_reads_its_store(tmp_path: Path) -> None:
    given, policy = broker(("sleep", "1000"))
    run = run_live(given, tmp_path / "state", policy, slot_seconds=0.05)
    whole = tw.period(tmp_path / "state")
    assert dict(whole.run.metrics) == pytest.approx(dict(run.metrics))
    assert tw.check(whole.scenario, whole.run) == ()
    for from_us, to_us in periods(given, run, 4, "live"):
        part = tw.period(tmp_path / "state", from_us, to_us)
        assert tw.check(part.scenario, part.run) == (), (from_us, to_us)
    done = tradewind(
        "store", "export", "state", "-o", "out", "--from", f"{given.setup.slot_us / 1e6:g}", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert tradewind("audit", "out/scenario.json", "out/run.json", cwd=tmp_path).returncode == 0
    shown = tradewind("whatif", "state", "--policy", "local", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "(recorded)" in shown.stdout
    assert "(simulated)" in shown.stdout
    assert "part of the difference is what the model misses" in shown.stdout


def test_measured_jobs_export_in_parts_too(tmp_path: Path) -> None:
    where = setup([node("a", 1), node("b", 1)], slot_us=S, horizon_us=40 * S, objective="jct_mean_s")
    jobs = [
        job(0, work=Rounds(count=30, compute_us=S // 4), command=counting(30)),
        job(1, work=Fixed(runtime_us=5 * S), command=("sleep", "0.3"), arrive_us=S),
        job(2, work=Fixed(runtime_us=2 * S), command=("sleep", "0.2"), arrive_us=2 * S),
    ]
    given = scenario(jobs, where=where)
    run = run_live(given, tmp_path / "state", "fifo", slot_seconds=0.1)
    for from_us, to_us in [(0, 3 * S), (S, 4 * S), (2 * S, 30 * S)]:
        part = tw.period(tmp_path / "state", from_us, to_us)
        assert tw.check(part.scenario, part.run) == (), (from_us, to_us)
        assert part.run.world == run.world == "processes"


def test_a_store_without_a_run_says_so(tmp_path: Path) -> None:
    Store.open(tmp_path / "store.db", write=True).close()
    with pytest.raises(StoreError, match="it holds no run yet"):
        tw.period(tmp_path)
    done = tradewind("store", "export", str(tmp_path), "-o", "x", "--from", "soon")
    assert (done.returncode, done.stderr.strip()) == (
        2,
        "tradewind: --from: found 'soon'; write seconds, or a number with a unit: 90, 2 h, 3 d",
    )


@pytest.mark.parametrize("family", ["A", "Bm", "C", "D", "E"])
def test_parts_that_were_moved_before_a_period_are_there_and_moves_under_way_arrive_in_time(
    family: str, tmp_path: Path
) -> None:
    """No move is paid twice, none is lost, and other policies find what is there already."""
    given = tw.generate(
        "broker", seed=5, family=family, jobs=8, slots=36, regions=3, interruptions=family == "E"
    )
    slot, lefts = given.setup.slot_us, set[bool]()
    for name in ("broker", "skypilot-rule"):
        run = tw.run(given, name, seed=1)
        for from_us, to_us in periods(given, run, 12, name + family):
            part = cut(given, run, from_us, to_us)
            assert tw.check(part.scenario, part.run) == (), (name, from_us, to_us)
            first, end = from_us // slot, to_us // slot
            assert moved(part.run, 0, end - first) == pytest.approx(moved(run, first, end))
            lefts |= {left_us > 0 for each in part.scenario.jobs for _, _, left_us in each.copies}
            if part.scenario.setup.slots > 1:
                again = cut(part.scenario, part.run, slot, 3 * slot)
                assert tw.check(again.scenario, again.run) == (), (name, from_us, to_us)
        tw.dump(part.scenario, tmp_path / "scenario.json")
        assert tw.load(tmp_path / "scenario.json").jobs == part.scenario.jobs
        for other in ("broker", "skypilot-rule"):
            assert tw.whatif(part.scenario, part.run, other).other.violations == ()
    assert lefts == ({False, True} if family == "C" else {False})  # C: data that takes hours to move


def moved(run: Run, first: int, end: int) -> dict[tuple[int, int, int], float]:
    """(Slots after the first, site, site) -> GB that were moved, before a slot."""
    rows = zip(*(run.tables["costs"][name] for name in ("slot", "kind", "a", "b", "amount")), strict=True)
    return {(at - first, a, b): gb for at, kind, a, b, gb in rows if kind == "transfer" and first <= at < end}
