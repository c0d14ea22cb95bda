"""Publishing full reproductions: only what was computed in full, with the commit and checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tradewind.lab.published import folder_of, page, read
from tradewind.model.errors import InputError


def finished(folder: Path) -> Path:
    """Two parts of a full figure with its CSV, a quick figure, and a full one without CSV."""
    (folder / "kept").mkdir()
    (folder / "eris").mkdir()
    (folder / "eris" / "fig-3.csv").write_text("policy,welfare\neris,1\n")
    rows = [("fig-3", "a", False), ("fig-3", "b", False), ("fig-4", "", True), ("fig-5", "", False)]
    for figure, part, quick in rows:
        saved = {
            "system": "eris",
            "figure": figure,
            "part": part,
            "quick": quick,
            "seeds": 10,
            "cpu_s": 30.0,
        }
        (folder / "kept" / f"{figure}{part}.json").write_text(json.dumps(saved))
    head = "system,figure,claim,paper holds,ours holds\n"
    (folder / "verdicts.csv").write_text(head + "eris,fig-3,a,yes,\neris,fig-3,b,no,yes\n")
    return folder


def test_a_full_figure_is_published_with_its_claims_commit_and_checksum(tmp_path: Path) -> None:
    (found,) = read(finished(tmp_path), "abc1234")
    assert (found.figure, found.paper, found.ours, found.cpu_s) == ("fig-3", "1 of 2", "1 of 1", 60.0)
    text = page([found])
    digest = hashlib.sha256((tmp_path / "eris" / "fig-3.csv").read_bytes()).hexdigest()[:16]
    assert f"| fig-3 | 1 of 2 | 1 of 1 | 60 s | {digest} |" in text
    assert "figures at commit abc1234" in text
    assert "Not computed in full: fig-3-demands" in text


def test_systems_that_were_not_computed_again_keep_their_section(tmp_path: Path) -> None:
    found = read(finished(tmp_path), "abc1234")
    first = page(found)
    assert page([], first) == first
    again = page([p._replace(commit="def5678") for p in found], first)
    assert "def5678" in again
    assert "abc1234" not in again


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="DIR=COMMIT"):
        folder_of(f"{tmp_path}=abc")
