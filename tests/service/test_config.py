"""CONFIG: what is wrong with it is said where it stands, before anything starts."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.service.servers import QUEUE
from tradewind.model.errors import InputError, TradewindError
from tradewind.service.config import parse
from tradewind.service.server import bind

HERE = Path(__file__)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"limits": {"requests_per_s": 0}}, "limits.requests_per_s is 0; it must be above 0"),
        ({"quotes": {"hold_s": -5}}, "quotes.hold_s is -5; it must be above 0"),
        ({"fleet": {"grace_s": -1}}, "fleet.grace_s is -1; it must be above 0"),
        ({"fleet": {"stall_s": 0}}, "fleet.stall_s is 0; it must be above 0"),
        ({"speed": 0}, "speed is 0; it must be above 0"),
        ({"fleet": {"address": "slurmm"}}, "Did you mean 'slurm'"),
        ({"store": "mysql://host/base"}, "stores are SQLite files or PostgreSQL databases"),
        ({"listen": {"certificate": str(HERE)}}, "listen.key is missing"),
        ({"listen": {"certificate": str(HERE), "key": "none.pem"}}, "listen.key is 'none.pem', a file that cannot"),
        ({"tennants": {}}, "tennants is not a known field. Did you mean 'tenants'"),
        ({"tenants": {"red": {"commands": "sleep"}}}, "tenants.red.commands is 'sleep'; it must be a list"),
        ({"policy": {"name": "fifoo"}}, "Did you mean 'fifo'"),
        ({"inventory": "none.yaml"}, "give either setup"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_config_is_said(part: dict[str, Any], words: str) -> None:
    with pytest.raises(TradewindError) as caught:
        parse({**QUEUE, **part}, HERE)
    assert words in str(caught.value)


def test_a_port_that_is_taken_is_said() -> None:
    with bind("127.0.0.1", 0) as taken, pytest.raises(InputError, match="choose another --port"):
        bind("127.0.0.1", taken.getsockname()[1])


def test_limits_that_make_sense_are_taken() -> None:
    found = parse(
        {**QUEUE, "limits": {"requests_per_s": 0.5}, "listen": {"certificate": str(HERE), "key": str(HERE)}},
        HERE,
    )
    assert found.file.limits.requests_per_s == 0.5


def test_connections_send_small_answers_at_once() -> None:
    with bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
