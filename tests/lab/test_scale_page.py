"""The page of decisions at scale: what was measured is shown, and what was not measured anew stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import scale_decisions, scale_page

PAGE = (Path(__file__).parents[2] / "docs" / "lab" / "scale.md").read_text()


def test_a_page_without_new_points_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_decisions, "FOLDER", tmp_path)
    assert "\n".join(scale_page.decisions(PAGE)) == PAGE[PAGE.index(scale_page.HEAD) :]


def test_new_points_replace_the_rows_of_their_ladder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale_decisions, "FOLDER", tmp_path)
    (tmp_path / "dps, arrivals.json").write_text(
        '[{"size": 1000, "other": 0, "cpu_s": 7.5, "decisions": 1000, "bytes": 0, "gap": 0.5}]'
    )
    before, after = PAGE[PAGE.index(scale_page.HEAD) :].splitlines(), scale_page.decisions(PAGE)
    gone, new = [line for line in before if line not in after], [line for line in after if line not in before]
    begin = before.index(gone[0])
    assert gone == before[begin : begin + len(gone)]
    assert gone[0].startswith("| dps, ")
    assert "| 7.5 s | 7.5 ms | 0 MB | 50.00% |" in new[0]
    assert len(new) == len(gone) == 4
