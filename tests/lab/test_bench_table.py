"""The table of benchmarks: missed targets, crashes and disappeared figures are shown and change the exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import benchmarks.__main__ as bench
import pytest

Row = dict[str, Any]


def good(**more: Any) -> Row:
    return {"name": "speed", "measured": 2.0, "target": 3.0, "better": "lower", "unit": "s", **more}


@pytest.fixture
def run_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Install benchmarks that return these rows (or raise) and run the table on them."""
    budgets = tmp_path / "budgets.toml"
    monkeypatch.setattr(bench, "FILE", budgets)
    monkeypatch.setattr(bench, "read", lambda: _read(budgets))
    monkeypatch.setattr(bench, "write", lambda found: _write(found, budgets))

    def call(*arguments: str, **rows: Any) -> int:
        for name, each in rows.items():
            module = ModuleType(f"benchmarks.bench_{name}")
            module.__dict__["rows"] = each if callable(each) else lambda each=each: each
            monkeypatch.setitem(sys.modules, module.__name__, module)
        listed = [type("Info", (), {"name": f"bench_{name}"})() for name in rows]
        monkeypatch.setattr("benchmarks.__main__.pkgutil.iter_modules", lambda _: listed)
        return bench.main(arguments)

    return call


_read, _write = bench.read, bench.write


def test_a_figure_that_meets_its_target_is_ok(run_table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(one=[good()]) == 0
    assert "1 ok, 0 SHORT" in capsys.readouterr().out


def test_a_figure_that_misses_its_target_is_marked_and_fails(
    run_table: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run_table(one=[good(measured=3.1), good(name="share", better="higher", target=0.9, measured=0.95)])
        == 1
    )
    out = capsys.readouterr().out
    assert "1 ok, 1 SHORT" in out


def test_a_crash_is_a_row_and_the_others_still_run(
    run_table: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash() -> list[Row]:
        raise ValueError("no such thing")

    assert run_table(one=crash, two=[good()]) == 1
    out = capsys.readouterr().out
    assert "no such thing" in out
    assert "1 ok" in out
    assert "1 CRASHED" in out


def test_a_known_miss_does_not_fail(run_table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _write({"one": {"speed": {"target": 3.0, "known": "the slow road"}}}, bench.FILE)
    assert run_table(one=[good(measured=9.0)]) == 0
    assert "the slow road" in capsys.readouterr().out


def test_a_figure_that_disappeared_fails(run_table: Any) -> None:
    _write({"one": {"speed": {"target": 3.0}, "other": {"target": 1.0}}}, bench.FILE)
    assert run_table(one=[good()]) == 1


def test_a_figure_that_cannot_run_here_is_shown(run_table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table(one=[{"name": "far", "measured": None, "note": "no file here"}]) == 0
    assert "no file here" in capsys.readouterr().out


def test_an_update_writes_new_measurements_and_keeps_the_rest(run_table: Any) -> None:
    _write({"other": {"x": {"target": 1.0, "measured": 0.5}}}, bench.FILE)
    assert run_table("--update", one=[good(spread=0.25), good(name='a "b"', measured=4.0)]) == 1
    found = _read(bench.FILE)
    assert found["one"]["speed"] == {
        "target": 3.0,
        "better": "lower",
        "unit": "s",
        "measured": 2.0,
        "spread": 0.25,
    }
    assert found["one"]['a "b"']["measured"] == 4.0
    assert found["other"] == {"x": {"target": 1.0, "measured": 0.5}}


def test_cheap_benchmarks_run_three_times_and_give_median_and_range(run_table: Any) -> None:
    values = iter((1.0, 5.0, 2.0))
    assert run_table("--update", one=lambda: [good(measured=next(values))]) == 0
    entry = _read(bench.FILE)["one"]["speed"]
    assert (entry["measured"], entry["spread"]) == (2.0, 4.0)


def test_an_unknown_name_is_rejected(run_table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_table("two", one=[good()]) == 2
    assert "Known: one" in capsys.readouterr().err
