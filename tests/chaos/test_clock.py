"""Steps of the wall clock change nothing but the times that people see."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from benchmarks.service_load import TimedFleet, engine, fill

from tradewind.store.board import Board
from tradewind.store.store import Store


def test_a_clock_that_steps_back_or_ahead_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, steps = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + steps[0])
    config, fleet = fill(tmp_path, 30, gpus=8), TimedFleet(0.05)
    for step in (-3600.0, 7200.0, 0.0):
        with engine(config, tmp_path / "data", fleet) as made:  # a new engine each time: it recovers, too
            steps[0] = step
            fill(tmp_path, 10, gpus=8)
            while fleet.started < 30 or made.intake.known or made.intake.taken < _last(tmp_path):
                made.step()
            assert made.recorder.alarms == 0
    with Board(tmp_path / "data") as board:
        assert board.counts("board_jobs", "status") == {"finished": 60}
        assert fleet.started == 60
    with Store.open(tmp_path / "data") as store:
        store.verify()


def _last(folder: Path) -> int:
    with Board(folder / "data") as board:
        return board.last("requests")
