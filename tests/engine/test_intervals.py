"""Intervals: steps count only while they were carried out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.sample_runs import HOUR, Tables, cluster, job, market, run, scheduled, setup
from tradewind.engine.intervals import Intervals, Pieces, effective, end_us, usage
from tradewind.model.scenario import Scenario

ONE = Scenario(name="one", setup=setup(), jobs=(job(0), job(1)))


def cut(tables: Tables, end: int = 24 * HOUR) -> list[tuple[int, int, int]]:
    """(job, from, until) of what came true."""
    found = effective(run(ONE, tables), end)
    return list(zip(found.job.tolist(), found.from_us.tolist(), found.until_us.tolist(), strict=True))


def test_a_bounded_step_ends_at_its_end() -> None:
    t = Tables()
    t.plan(0, 0, (0, HOUR, [(0, 1)]))
    assert cut(t) == [(0, 0, HOUR)]


def test_an_open_step_ends_when_its_job_finishes() -> None:
    t = Tables()
    t.plan(0, 0, (0, -1, [(0, 1)]))
    t.event(2 * HOUR, "finished", 0)
    t.event(2 * HOUR + 1, "released", 0)
    assert cut(t) == [(0, 0, 2 * HOUR)]


def test_an_open_step_of_an_unfinished_job_lasts_until_the_end_of_the_run() -> None:
    t = Tables()
    t.plan(5, 0, (5, -1, [(0, 1)]))
    assert cut(t, HOUR) == [(0, 5, HOUR)]


def test_a_new_plan_replaces_the_rest_of_the_old_one() -> None:
    t = Tables()
    t.plan(0, 0, (0, -1, [(0, 1)]))
    t.plan(HOUR, 0, (HOUR, -1, [(1, 1)]))
    t.event(3 * HOUR, "finished", 0)
    assert cut(t) == [(0, 0, HOUR), (0, HOUR, 3 * HOUR)]


def test_a_plan_without_steps_stops_its_job_and_no_other() -> None:
    t = Tables()
    t.plan(0, 0, (0, -1, [(0, 1)]))
    t.plan(0, 1, (0, -1, [(1, 1)]))
    t.plan(HOUR, 0)
    assert cut(t, 2 * HOUR) == [(0, 0, HOUR), (1, 0, 2 * HOUR)]


def test_of_two_plans_at_one_instant_the_later_row_holds() -> None:
    t = Tables()
    t.plan(7, 0, (7, -1, [(0, 1)]))
    t.plan(7, 0, (7, 9, [(1, 2)]))
    assert cut(t) == [(0, 7, 9)]


def test_a_voided_plan_ends_and_its_future_steps_never_come() -> None:
    t = Tables()
    t.plan(0, 0, (0, HOUR, [(0, 1)]), (HOUR, 2 * HOUR, [(0, 1)]))
    t.event(HOUR // 2, "voided", 0)
    assert cut(t) == [(0, 0, HOUR // 2)]


def test_a_plan_made_when_the_earlier_one_is_voided_stays_in_force() -> None:
    t = Tables()
    t.plan(0, 0, (0, -1, [(0, 1)]))
    t.event(HOUR, "voided", 0)
    t.plan(HOUR, 0, (HOUR, -1, [(1, 1)]))
    assert cut(t, 3 * HOUR) == [(0, 0, HOUR), (0, HOUR, 3 * HOUR)]


def test_offers_count_only_where_they_were_taken() -> None:
    _, result = market()
    found = effective(result, end_us(result))
    takers = [
        j
        for j, n in zip(result.tables["answers"]["job"], result.tables["answers"]["taken"], strict=True)
        if n == 1
    ]
    assert found.job.tolist() == takers
    assert set(usage(result, found).node.tolist()) == {1}  # the second offer's node


def test_places_join_their_intervals() -> None:
    t = Tables()
    t.plan(0, 0, (0, HOUR, [(0, 2), (1, 3)]))
    result = run(ONE, t)
    used = usage(result, effective(result, 24 * HOUR))
    assert used.node.tolist() == [0, 1]
    assert used.workers.tolist() == [2, 3]
    assert used.until_us.tolist() == [HOUR, HOUR]


def test_a_run_without_tables_has_no_intervals() -> None:
    assert cut(Tables()) == []
    assert len(effective(run(ONE, tables=None), HOUR).step) == 0


def test_a_run_ends_at_its_last_event() -> None:
    t = Tables()
    t.event(HOUR, "finished", 0)
    assert end_us(run(ONE, t)) == HOUR
    t.event(ONE.setup.horizon_us, "ended", 1)
    assert end_us(run(ONE, t)) == ONE.setup.horizon_us


def test_no_server_holds_more_than_it_has() -> None:
    scenario = cluster(80)
    result = scheduled(scenario, "sjf")
    used = usage(result, effective(result, end_us(result)))
    for node in range(4):
        mine = used.node == node
        for at in used.from_us[mine]:
            there = mine & (used.from_us <= at) & (at < used.until_us)
            assert used.workers[there].sum() <= 8


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(1, 9), st.integers(0, 2)), max_size=12
    )
)
def test_means_per_bin_equal_a_count_instant_by_instant(pieces: list[tuple[int, int, int, int]]) -> None:
    rows = [(a, a + b, w, r) for a, b, w, r in pieces]
    a, b, w, r = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(4))
    edges = np.linspace(0.0, 120.0, 13)
    found = Pieces(from_us=a, until_us=b, weight=w.astype(np.float64), row=r, rows=3).mean_per_bin(edges)
    exact = np.zeros((3, 120))
    for begin, end, weight, row in rows:
        exact[row, begin : min(end, 120)] += weight
    np.testing.assert_allclose(found, exact.reshape(3, 12, 10).mean(axis=2), atol=1e-9)


def test_intervals_are_never_empty() -> None:
    scenario = cluster(50)
    for policy in ("fifo", "sjf"):
        result = scheduled(scenario, policy)
        found: Intervals = effective(result, end_us(result))
        assert (found.until_us > found.from_us).all()
        assert len(found.step) == 50
