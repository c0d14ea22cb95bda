"""What a world without an end saves."""

from __future__ import annotations

from typing import Any

from tradewind.worlds.progress import SAVED, ActiveJob


def test_everything_that_is_known_of_an_active_job_is_saved() -> None:
    nobody: Any = None
    fields = {name for name, value in vars(ActiveJob).items() if name[0] != "_" and not callable(value)}
    assert set(SAVED) == (fields | set(vars(ActiveJob(nobody, None)))) - {"job"}
