"""Reproducing a paper: CSV, pictures and a page per figure, kept when interrupted."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.app import made_study
from tradewind import studies
from tradewind.app.reproduce import reproduce
from tradewind.model.errors import LookupFailed
from tradewind.studies.study import Effort

QUICK = Effort(quick=True, seeds=3)


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(studies.CATALOGUE, "made", "tests.app.made_study:STUDY")
    monkeypatch.chdir(tmp_path)


def computed() -> int:
    return len(made_study.COUNTER.read_text())


def test_every_figure_becomes_a_table_two_pictures_and_a_part_of_the_page(tmp_path: Path) -> None:
    results = reproduce(["made"], tmp_path / "out", effort=QUICK)
    assert [r.finding.word for r in results] == ["reproduced", "reproduced"]
    page = (tmp_path / "out" / "index.html").read_text()
    for name in ("fig-1", "table-2"):
        with (tmp_path / "out" / "made" / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [(r["size"], r["policy"]) for r in rows[:2]] == [("1.0", "ours"), ("1.0", "theirs")]
        assert (tmp_path / "out" / "made" / f"{name}.svg").read_text().startswith("<svg")
        assert (tmp_path / "out" / "made" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"Figure {name}" in page
    assert "&lt;half&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_what_was_computed_is_not_computed_again_unless_the_effort_changes(tmp_path: Path) -> None:
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    assert computed() == 1
    reproduce(["made"], tmp_path / "out", effort=QUICK)
    assert computed() == 2
    reproduce(["made"], tmp_path / "out", effort=Effort(quick=True, seeds=2))
    assert computed() == 4


def test_the_same_effort_gives_the_same_page_byte_for_byte(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        reproduce(["made"], tmp_path / folder, effort=QUICK)
    assert (tmp_path / "a" / "index.html").read_bytes() == (tmp_path / "b" / "index.html").read_bytes()


def test_a_damaged_cache_is_computed_again(tmp_path: Path) -> None:
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    (tmp_path / "out" / "made" / "fig-1.json").write_text("{half")
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    assert computed() == 2


def test_an_unknown_figure_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(LookupFailed, match="fig-1"):
        reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-11")
