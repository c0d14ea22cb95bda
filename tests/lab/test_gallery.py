"""The gallery of the docs is made from results, and shows figures that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import sample_study
from tradewind.lab import gallery
from tradewind.registry import studies

DOCS = Path(__file__).parents[2] / "docs"


def test_picked_figures_exist() -> None:
    for system, names in gallery.PICKED.items():
        known = {figure.name for figure in studies.find(system).figures}
        assert set(names) <= known, system


def test_the_page_shows_pictures_and_the_verdict_of_every_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(studies.entries, "made", "tests.lab.sample_study:STUDY")
    monkeypatch.setitem(gallery.PICKED, "made", ("fig-1",))
    monkeypatch.setattr(sample_study, "COUNTER", tmp_path / "count.txt")
    text = gallery.gallery(tmp_path / "work", tmp_path / "docs", ["made"], 1).read_text()
    assert "](pictures/made-fig-1.svg)" in text
    assert (tmp_path / "docs" / "pictures" / "made-fig-1.svg").read_text().startswith("<svg")
    assert text.count("| **partly reproduced** | **holds** |") == 2
    assert text.count("theirs costs &lt;half> | no: 8 against 8 | yes: 5 against 8 |") == 2
    assert text.count("| no judge | no judge |") == 2
    assert "&lt;half>" in text


def test_pictures_in_the_docs_exist_and_are_small() -> None:
    shown = set()
    for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md"):
        for piece in page.read_text(encoding="utf-8").split("](")[1:]:
            target = piece.partition(")")[0]
            if "pictures/" in target:
                shown.add((page.parent / target).resolve())
    assert shown
    assert [path for path in shown if not path.exists()] == []
    assert sum(path.stat().st_size for path in (DOCS / "pictures").iterdir()) < 3_000_000
