"""The tests of jobs and recovery again, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.service import test_recovery
from tests.service.servers import QUEUE, Server, running
from tests.service.test_jobs import (  # collected here too, with the server of this module
    test_a_dry_run_changes_nothing,
    test_a_job_runs_and_its_log_and_events_can_be_read,
    test_a_job_whose_ranks_fail_is_given_up_and_says_so,
    test_a_running_and_a_waiting_job_can_be_cancelled,
    test_a_stream_of_events_resumes_by_number,
    test_pages_go_on_where_the_one_before_ended,
    test_the_same_key_gives_the_same_job_and_another_request_with_it_is_refused,
)
from tests.store.postgres import Server as Postgres
from tests.store.postgres import server as postgres_server

__all__ = [
    "test_a_dry_run_changes_nothing",
    "test_a_job_runs_and_its_log_and_events_can_be_read",
    "test_a_job_whose_ranks_fail_is_given_up_and_says_so",
    "test_a_running_and_a_waiting_job_can_be_cancelled",
    "test_a_stream_of_events_resumes_by_number",
    "test_pages_go_on_where_the_one_before_ended",
    "test_the_same_key_gives_the_same_job_and_another_request_with_it_is_refused",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server of databases."""
    with postgres_server() as found:
        yield found


@pytest.fixture(scope="module")
def queue(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with a queue whose store is in PostgreSQL."""
    with running(tmp_path_factory.mktemp("queue"), {**QUEUE, "store": postgres.database()}) as server:
        yield server


def test_it_goes_on_after_kills_on_postgresql(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Mapping[str, Any] = {**QUEUE, "store": postgres.database()}
    monkeypatch.setattr(test_recovery, "QUEUE", config)
    test_recovery.test_it_goes_on_after_ctrl_c_and_after_kills_of_server_and_engine(tmp_path)
