"""Recovery: the last snapshot and the tail give the session that was there, however many jobs ended before."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import bench_store

from tests.store.postgres import alter
from tradewind.model.errors import StoreError


def test_a_session_is_recovered_from_snapshot_and_tail(tmp_path: Path) -> None:
    found = bench_store.measure(ended=3000, active=200, tail=20)
    assert found["same"]
    assert found["active"] == 220
    assert found["records"] == 3000 / bench_store.PER_INSTANT + 1 + 20
    assert found["recover_s"] < 5


def test_an_altered_tail_is_not_recovered(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    setup, _ = bench_store.fill(path, 100, 20, 5)
    alter(str(path), "update records set body = replace(body, 'team-a', 'team-b') where number = 24")
    with pytest.raises(StoreError, match=r"record 24 .* was changed"):
        bench_store.recover(path, setup, 1)
