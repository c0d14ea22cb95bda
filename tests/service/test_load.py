"""Quick versions of benchmarks/bench_service.py; limits are CPU time, so that a busy machine does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.service_load import (
    TimedFleet,
    admit,
    engine,
    fill,
    listeners,
    pass_through,
    serving,
    stored,
    submit,
)

from tests.store.postgres import server as postgres_server
from tradewind.store.board import Board
from tradewind.store.desk import Desk

CORE_S = 1.0


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a service writes: a file of its own, or a database."""
    if request.param == "sqlite":
        yield ""
    else:
        with postgres_server() as postgres:
            yield postgres.database()


def test_500_submissions_a_second_fit_in_a_core_each_and_all_are_on_disk(tmp_path: Path, store: str) -> None:
    with serving(tmp_path, store) as server:
        before = server.cpu_s()
        count = submit(server, 2.0, least=1500)
        with Board(stored(tmp_path)) as board:
            assert board.count("board_jobs") == board.count("requests") == board.count("replies") == count
        for now, then in zip(server.cpu_s(), before, strict=True):
            assert (now - then) / count < CORE_S / 500
        assert listeners(server, 100) < 60


def test_200_admissions_a_second_fit_in_a_core_with_many_waiting(tmp_path: Path, store: str) -> None:
    found = admit("fifo-backfill", 5000, 1.5, tmp_path, store)
    assert found["alarms"] == 0
    assert found["cpu_s"] < CORE_S / 200


def test_memory_stays_while_jobs_come_and_go(tmp_path: Path) -> None:
    first, *_, last = pass_through(500, 4, tmp_path / "pass")
    assert last - first < 5


def test_a_job_that_is_cancelled_at_once_does_not_run(tmp_path: Path) -> None:
    """Both requests are taken at one look."""
    config, fleet = fill(tmp_path, 1), TimedFleet(600.0)
    with Board(tmp_path / "data") as board, Desk(tmp_path / "data") as desk:
        row = board.rows("requests")[0]
        cancel = {**row, "kind": "cancel", "body": "{}"}
        desk.do(lambda writing: writing.insert("requests", **cancel)).result()
        with engine(config, tmp_path / "data", fleet) as made:
            while not board.count("board_jobs", is_over=True):
                made.step()
        assert board.counts("board_jobs", "status") == {"cancelled": 1}
