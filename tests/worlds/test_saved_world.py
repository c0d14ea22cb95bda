"""What a world without an end saves."""

from __future__ import annotations

from tradewind.worlds.progress import SAVED, ActiveJob


def test_everything_that_is_known_of_an_active_job_is_saved() -> None:
    assert set(SAVED) == set(ActiveJob.__slots__) - {"job"}
