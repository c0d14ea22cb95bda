"""What a rank reads from its environment, and its messages if that is wrong. Needs no PyTorch."""

from __future__ import annotations

import importlib.util

import pytest

from tradewind.train.__main__ import run
from tradewind.train.contract import MISUSED, ContractError, read
from tradewind.train.options import parse

SERVER = {"RANK": "2", "WORLD_SIZE": "4", "TRADEWIND_SITES": "a,b,b,c", "TRADEWIND_DATA_SHARD": "1/3"}


def test_a_worker_of_a_server_job_reads_its_rank() -> None:
    rank = read(SERVER, "ps")
    assert (rank.rank, rank.world, rank.role, rank.site, rank.shard, rank.ring) == (
        2,
        4,
        "worker",
        "b",
        (1, 3),
        (),
    )
    assert read({**SERVER, "RANK": "0"}, "ps").role == "ps"


def test_a_worker_of_a_ring_reads_its_rank() -> None:
    rank = read({"RANK": "1", "WORLD_SIZE": "3", "TRADEWIND_RING": "0@a,2@c,1@b"}, "ring")
    assert (rank.ring, rank.shard, rank.role) == ((0, 2, 1), (1, 3), "worker")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RANK": "4"}, "RANK is 4"),
        ({"RANK": "x"}, "RANK is 'x'; it must be a whole number"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is 0; the minimum is 1"),
        ({"TRADEWIND_ROLE": "ps"}, "TRADEWIND_ROLE is 'ps' for rank 2"),
        ({"TRADEWIND_SERVERS": "3", "TRADEWIND_ROLE": "worker"}, "TRADEWIND_SERVERS, which is 3"),
        ({"TRADEWIND_SERVERS": "0"}, "TRADEWIND_SERVERS is 0; the minimum is 1"),
        ({"TRADEWIND_SERVERS": "4", "RANK": "0"}, "WORLD_SIZE must be 5 or more"),
        ({"TRADEWIND_SITES": "a,b"}, "TRADEWIND_SITES names 2 sites"),
        ({"TRADEWIND_DATA_SHARD": "3/3"}, "TRADEWIND_DATA_SHARD is '3/3'"),
        ({"TRADEWIND_DATA_SHARD": "one"}, "TRADEWIND_DATA_SHARD is 'one'"),
        ({"TRADEWIND_STOP_AFTER_ITERATIONS": "0"}, "the minimum is 1"),
        ({"RANK": "0", "WORLD_SIZE": "1", "TRADEWIND_SITES": ""}, "at least one worker"),
    ],
)
def test_a_wrong_environment_is_explained(change: dict[str, str], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        read({**SERVER, **change}, "ps")


def test_a_ring_must_list_every_rank_once() -> None:
    for ring in ("0@a,0@b", "0@a", "a,b"):
        with pytest.raises(ContractError, match="every rank once"):
            read({"WORLD_SIZE": "2", "TRADEWIND_RING": ring}, "ring")


def test_sizes_are_read_with_units() -> None:
    assert parse(["--size", "1.5 MB"]).size == 1_500_000
    with pytest.raises(SystemExit):
        parse(["--size", "big"])


def test_without_pytorch_the_message_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run([], {"WORLD_SIZE": "2"}) == MISUSED
    assert "make install EXTRAS=train" in capsys.readouterr().err
