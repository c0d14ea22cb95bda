"""Listings of policies and workloads: quick, and never older than the code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tradewind.cli import listing
from tradewind.registry import policies, workloads

HEAVY = ("numba", "scipy", "matplotlib", "numpy")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder with one file."""
    (tmp_path / "code.py").write_text("A = 1\n")
    monkeypatch.setattr(listing, "PACKAGE", tmp_path)
    monkeypatch.setattr(listing, "_has_plug_ins", lambda: False)
    return tmp_path


def test_rows_that_are_kept_are_those_of_the_registry(package: Path) -> None:
    fresh = json.loads(json.dumps([listing.policy_row(spec) for spec in policies.all()]))
    assert listing.policy_rows() == listing.policy_rows() == fresh
    assert [row["name"] for row in listing.workload_rows()] == list(workloads.names())
    assert len(list((package / "__pycache__").iterdir())) == 2


def test_an_edited_file_makes_the_list_anew(package: Path) -> None:
    made: list[int] = []

    def compute() -> list[listing.Row]:
        made.append(1)
        return [{"name": f"policy-{len(made)}"}]

    assert listing._rows("policies", compute) == listing._rows("policies", compute) == [{"name": "policy-1"}]
    (package / "code.py").write_text("A = 22\n")
    assert listing._rows("policies", compute) == [{"name": "policy-2"}]
    (kept,) = (package / "__pycache__").iterdir()
    kept.write_text("[{")  # torn
    assert listing._rows("policies", compute) == [{"name": "policy-3"}]


def test_plug_ins_are_always_asked(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_has_plug_ins", lambda: True)
    assert listing._rows("policies", lambda: [{"name": "theirs"}]) == [{"name": "theirs"}]
    assert not (package / "__pycache__").exists()


def test_listing_a_second_time_loads_no_numerical_library() -> None:
    if listing._has_plug_ins():
        pytest.skip("another package registers policies here")
    listing.policy_rows()
    code = f"""
import sys
from tradewind.cli.catalogue import policies
policies("", True)
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stderr.strip() == "[]"
    assert len(json.loads(done.stdout)) == len(policies.names())
