"""A live run in a PostgreSQL database: continued after a kill, verified, exported."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import tradewind as tw
from tests.store.postgres import Server
from tests.worlds.live_runs import in_a_process
from tests.worlds.live_scenarios import broker
from tradewind.model.errors import StoreError
from tradewind.registry import policies
from tradewind.store.store import Store
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, live


def recorded(address: str | None) -> int:
    """Number of records in a store that may not be there yet."""
    assert address is not None
    try:
        with Store.open(address) as store:
            return store.verify().number
    except StoreError:
        return 0


def test_a_live_run_in_postgresql_is_continued_after_a_kill(postgres: Server, tmp_path: Path) -> None:
    given, policy = broker(("sh", "-c", "echo >> ../begun; exec sleep 1000"))
    asked = LiveRequest(
        scenario=given,
        spec=policies.find(policy),
        state=tmp_path / "s",
        store=postgres.database(),
        slot_seconds=0.4,
        options=ExecutionOptions(as_root=True),
    )
    pid = in_a_process(asked)
    end = time.monotonic() + 120
    while recorded(asked.store) < 5:
        assert time.monotonic() < end
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with Store.open(asked.store) as store:
        before = store.verify()
    run = live(asked)
    assert run.violations == ()
    with Store.open(asked.store) as store:
        assert store.verify(before).number > before.number
    assert not (tmp_path / "s" / "store.db").exists()
    part = tw.period(asked.store, given.setup.slot_us)
    assert tw.check(part.scenario, part.run) == ()
