"""Publishing full reproductions: only what was computed in full, with the commit and checksums."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.systems.eris.claim_rows import versus
from tradewind.lab.published import page, read
from tradewind.model.errors import InputError
from tradewind.registry import studies

UNSERVED = versus("unserved", 1.0, 2.0)
"""Rows of Figure 4 of Eris that satisfy its claim, for one policy."""


def finished(folder: Path) -> Path:
    """A full figure of Eris, a quick one, one with recorded arrivals, and a figure without all its parts."""
    (folder / "kept").mkdir()
    part = next(f for f in studies.find("cross").figures if f.name == "joint")
    rows = [*UNSERVED("eris-paper"), *UNSERVED("eris")[:1]]
    for number, (system, figure, quick, arrivals) in enumerate(
        (
            ("eris", "fig-4", False, "drawn"),
            ("eris", "fig-5", True, "drawn"),
            ("eris", "fig-3", False, "google:trace.csv"),
            ("cross", part.name, False, "drawn"),
        )
    ):
        saved = {
            "system": system, "figure": figure, "part": "", "quick": quick, "seeds": 10, "arrivals": arrivals, "cpu_s": 60.0,
            "commit": "abc1234", "rows": rows,
        }  # fmt: skip
        (folder / "kept" / f"{number}.json").write_text(json.dumps(saved))
    return folder


def test_a_full_figure_is_published_with_its_claims_commit_and_checksum(tmp_path: Path) -> None:
    (found,) = read(finished(tmp_path))
    assert (found.figure, found.paper, found.ours, found.cpu_s) == ("fig-4", "1 of 1", "1 of 1", 60.0)
    text = page([found])
    digest = hashlib.sha256((tmp_path / "eris" / "fig-4.csv").read_bytes()).hexdigest()[:16]
    assert f"| fig-4 | 1 of 1 | 1 of 1 | 10 | 60 s | abc1234 | {digest} |" in text
    assert "Not computed in full: fig-3, fig-3-demands" in text
    assert re.search(r"The last run: 1 of \d+ figures by abc1234\.", text)


def test_figures_that_were_not_computed_again_keep_their_row(tmp_path: Path) -> None:
    found = read(finished(tmp_path))
    first = page(found)
    assert page([], first).count("abc1234") == first.count("abc1234") - 1, "no longer of the last run"
    again = page([p._replace(commit="def5678") for p in found], first)
    assert "def5678" in again
    assert "abc1234" not in again
    more = page([p._replace(figure="fig-5", commit="def5678") for p in found], first)
    assert "| abc1234 |" in more
    assert "| def5678 |" in more


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="output folder of reproduce"):
        read(tmp_path)
