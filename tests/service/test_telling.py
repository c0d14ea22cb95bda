"""Events of a service in words."""

from __future__ import annotations

from tradewind.service.telling import told


def test_attempts_are_counted_as_in_alarms_and_logs() -> None:
    assert told({"kind": "started", "body": {"attempt": 0, "ranks": 1}}) == "1 rank"
    assert told({"kind": "started", "body": {"attempt": 1, "ranks": 2}}) == "attempt 1, 2 ranks"
