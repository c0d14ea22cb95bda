"""`tradewind store`, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import tradewind
from tests.store.postgres import alter
from tradewind.store.store import Store


def test_verify_prints_a_head_that_a_later_verify_can_be_held_against(place: str) -> None:
    with Store.open(place, write=True) as store:
        store.append("header", {})
    first = json.loads(tradewind("store", "verify", place, "--json").stdout)
    assert first["records"] == 1
    with Store.open(place, write=True) as store:
        store.append("instant", {})
    assert tradewind("store", "verify", place, "--known", first["head"]).stdout.startswith("ok: 2 records")
    alter(place, "delete from records where number = 2")
    done = tradewind("store", "verify", place)
    assert (done.returncode, done.stdout) == (2, "")
    assert "record 2 is missing at the end. The store was altered or damaged" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere",), "nowhere: there is no store"),
        (("postgresql://a:word@127.0.0.1:1/b",), "the server cannot be reached"),
        (("nowhere", "--known", "5"), "--known: found '5'; write COUNT:HASH"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    done = tradewind("store", "verify", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "word" not in done.stderr.replace("password", "")
