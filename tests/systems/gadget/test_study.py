"""The GADGET study: its metrics by hand, rank lists, a trace as rings, and the verdict of a figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import scenario
from tests.systems.gadget.test_policy import SLOT, ring_job, small, tree
from tradewind.cli.show import rank_lists
from tradewind.lab.study import Effort
from tradewind.model.decision import Route, Step
from tradewind.model.errors import InputError
from tradewind.model.job import Fixed, Rounds
from tradewind.model.units import OPEN
from tradewind.registry import policies, studies, workloads
from tradewind.systems.gadget.ranks import RankList, rank_list, ranks_at, ranks_in
from tradewind.systems.gadget.study.runs import embedded_ratio, moved_share
from tradewind.worlds.simulate import simulate

WHERE = tree(((2, 2), (2,)), link=1_000, trunk=400)  # spine 0, tor 1, servers 2 and 3, tor 4, server 5


def test_the_embedded_ratio_counts_rings_over_active_jobs() -> None:
    # two jobs, room for one at a time: half of the jobs run until the first is done, then all of them
    jobs = [ring_job(i, count=4, workers=2, least=2) for i in range(2)]
    given = scenario(jobs, where=tree(((2,),)))
    run = simulate(given, policies.find("ring-fifo"))
    assert embedded_ratio(given, run) == pytest.approx((0.5 + 0.5 + 1.0 + 1.0) / 4)
    assert moved_share(given, run) == 0.0


def test_ranks_follow_the_ring_and_name_its_narrowest_link() -> None:
    job = ring_job(0, workers=4, band=100, model_bytes=1000, reduce_bps=0)
    hops = (Route(2, 3, 100, (1, 2)), Route(3, 5, 100, (2, 0, 3, 4)), Route(5, 2, 100, (4, 3, 0, 1)))
    made = rank_list(WHERE, job, Step(0, OPEN, (2, 3, 5), (2, 1, 1), routes=hops))
    assert made.hosts == ("s2", "s2", "s3", "s5")
    assert made.hostfile() == "s2 slots=2\ns3 slots=1\ns5 slots=1\n"
    assert made.rankfile().splitlines()[1:3] == ["rank 1=s2 slot=1", "rank 2=s3 slot=0"]
    assert made.bottleneck == "tor-0 -> spine-0"
    assert made.bottleneck_bps == 400
    # (1): 2 * 8000 bit * 3/4 over 100 bit/s
    assert made.iteration_us == 120_000_000


def test_one_host_has_no_bottleneck_and_other_jobs_no_ranks() -> None:
    made = rank_list(WHERE, ring_job(0, workers=2), Step(0, OPEN, (2,), (2,)))
    assert (made.bottleneck, made.bottleneck_bps, made.hosts) == ("", 0, ("s2", "s2"))
    with pytest.raises(InputError, match="not a ring job"):
        rank_list(WHERE, replace(ring_job(0), work=Fixed(runtime_us=5)), Step(0, OPEN, (2,), (1,)))


def test_rank_lists_of_a_run_are_those_of_the_rings_in_place() -> None:
    given = scenario([ring_job(0, count=8, workers=4, least=4), ring_job(1, count=2, workers=2)], where=WHERE)
    run = simulate(given, policies.find("gadget"))
    lists = ranks_at(given, run, 0)
    assert {len(each.hosts) for each in lists if each.job == "j0"} == {4}
    assert ranks_at(given, run, 19 * SLOT) == []


def test_the_ranks_of_a_slot_are_listed_and_mistakes_are_named() -> None:
    given = scenario([ring_job(0, count=8, workers=4, least=4), ring_job(1, count=2, workers=2)], where=WHERE)
    run = simulate(given, policies.find("gadget"))
    (mine,) = ranks_in(given, run, 0, "j0")
    assert mine == next(each for each in ranks_at(given, run, 0) if each.job == "j0")
    assert mine.as_json()["ranks"] == list(mine.hosts)
    for slot, job, found in (
        (0, "j7", "No job is called 'j7'"),
        (20, "j0", "allowed are 0 to 19"),
        (9, "j0", "no ring in slot 9"),
    ):
        with pytest.raises(InputError, match=found):
            ranks_in(given, run, slot, job)
    fixed = scenario([replace(ring_job(0), work=Fixed(runtime_us=5))], where=WHERE)
    with pytest.raises(InputError, match="not a ring job"):
        ranks_in(fixed, run, 0)


def test_a_launcher_gets_the_file_of_one_ring(capsys: pytest.CaptureFixture[str]) -> None:
    rings = [
        RankList(
            job=name, hosts=("a", "a", "b"), iteration_us=1500, bottleneck="a -> tor", bottleneck_bps=10**9
        )
        for name in ("x", "y")
    ]
    rank_lists(rings[:1], "hostfile", as_json=False)
    assert capsys.readouterr().out == "a slots=2\nb slots=1\n"
    rank_lists(rings, "table", as_json=False)
    assert "a -> tor" in capsys.readouterr().out
    for form, found in (("hostfile", "choose one with --job"), ("yaml", "allowed are table")):
        with pytest.raises(InputError, match=found):
            rank_lists(rings, form, as_json=False)


def test_a_trace_becomes_gangs_that_run_as_long_as_recorded(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text("id,arrive_s,duration_s,gpus\na,0,600,2\nb,10,100,12\nc,20,300,1\n")
    rings = workloads.generate(
        "gadget-trace", {"file": str(file), "servers": 2, "gpus_per_server": 8, "racks": 2, "slot_s": 100}, 0
    )
    work = [job.work for job in rings.jobs]
    assert [w.count for w in work if isinstance(w, Rounds)] == [12, 12, 3]
    run = simulate(rings, policies.find("gadget"))
    assert run.metrics["jobs_completed"] == 3
    # b and c wait for the next slot and then run their recorded time
    assert run.tables["outcomes"]["finish_us"] == [600_000_000, 200_000_000, 400_000_000]


def test_the_quick_study_of_failures_stays_ahead_of_its_rivals() -> None:
    figures = {f.name: f for f in studies.find("gadget").figures}
    figure = figures["table-failures"]
    rows = figure.rows(Effort(quick=True, seeds=1))
    assert figure.judge(rows).ours == "holds"
    assert rows == figure.rows(Effort(quick=True, seeds=1))


def test_failing_servers_lose_work_but_break_no_rule() -> None:
    calm, rough = (
        simulate(small("paper", "sqrt", failing=share), policies.find("gadget")) for share in (0.0, 0.3)
    )
    assert "voided" in rough.tables["events"]["kind"]
    assert rough.metrics["utility"] < calm.metrics["utility"]
