"""Bandwidth between regions: the built-in table, own tables, and errors that name the pair."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.files.price_files import load_wan
from tradewind.model.errors import InputError, LookupFailed
from tradewind.prices.builtin import egress
from tradewind.prices.wan import measured, read_wan

OWN = "# date: 2026-10\nsrc,dst,gbps,rtt_ms\naws:a,aws:b,2.5,80\naws:b,aws:a,2,\n"


def test_every_pair_of_the_built_in_regions_was_measured() -> None:
    wan = measured()
    assert len(wan.places) == 63
    assert all(wan.path(a, b).gbps > 0 for a in wan.places for b in wan.places if a != b)
    assert set(wan.places) == egress().places
    assert wan.path("aws:us-east-1", "gcp:europe-west4") == (4.249, 84.5)


def test_a_pair_that_is_missing_is_named() -> None:
    wan = read_wan(OWN, "own.csv")
    assert wan.path("aws:b", "aws:a").rtt_ms is None
    with pytest.raises(InputError, match=r"own\.csv: no bandwidth is known from aws:a to aws:c"):
        wan.path("aws:a", "aws:c")
    with pytest.raises(LookupFailed, match="Did you mean"):
        measured().full_name("us-eats-1")


@pytest.mark.parametrize("gbps", ["0", "-1", "nan", "1e300", ""])
def test_absurd_bandwidths_are_refused(gbps: str) -> None:
    with pytest.raises(InputError, match="line 2, column gbps"):
        read_wan(f"src,dst,gbps\naws:a,aws:b,{gbps}\n", "own.csv", day="2026")


def test_tables_are_dated_hashed_and_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wan = read_wan(OWN, "own.csv")
    assert read_wan(wan.csv(), "again.csv").hash == wan.hash
    assert wan.stale(date(2026, 12, 1)) == ()
    assert "2026-10" in wan.stale(date(2028, 1, 1))[0]
    assert "is to come" in wan.stale(date(2026, 1, 1))[0]
    path = tmp_path / "own.csv"
    path.write_text(OWN)
    command = ["wan", "a", "b", "--wan", str(path), "-o", str(tmp_path / "out.csv"), "--json"]
    assert guarded(lambda: app(command, standalone_mode=False)) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["gbps"] for row in found["paths"]] == [2.5, 2.0]
    assert load_wan(str(tmp_path / "out.csv")).hash == found["hash"] == wan.hash
    with pytest.raises(InputError, match="lists aws:a to aws:b again"):
        read_wan(OWN + "aws:a,aws:b,3,\n", "own.csv")
