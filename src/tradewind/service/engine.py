"""The engine of a service, a process of its own: it takes requests, decides, writes every instant, and runs ranks.

    python -m tradewind.service.engine CONFIG DATA

It says on stdout, one JSON object a line, when it is ready and whenever something was written; it ends when stdin is closed.
A long decision delays nobody who reads, and a slow reader delays no decision.
"""

from __future__ import annotations

import base64
import faulthandler
import json
import os
import secrets
import signal
import sys
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

from tradewind.audit import Audit
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import DiskJournal, LiveLoop, LiveSession
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.state import RunState
from tradewind.model.codec import plain, read
from tradewind.model.decision import Step
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.hash import setup_hash
from tradewind.service import config as configs
from tradewind.service.config import Config
from tradewind.service.intake import Intake
from tradewind.service.projector import Projector
from tradewind.service.recorder import Recorder
from tradewind.service.seal import Seal
from tradewind.service.sites import Sites
from tradewind.store.board import Board
from tradewind.store.database import FILE
from tradewind.store.store import Entry, Store
from tradewind.version import __version__
from tradewind.worlds.clock import Clock, SystemTime
from tradewind.worlds.fleet import Fleet
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets import open_fleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import FIRST_UID, USERS, create_state, locked
from tradewind.worlds.simulate import make_policy

POLL_S = 0.02
"""Requests are looked for at least this often."""
SNAPSHOT_S, SNAPSHOT_SHARE = 30.0, 0.05
"""A snapshot is taken after this time, and so rarely that it takes at most this share of it."""
SNAPSHOT_INSTANTS = 2000
"""A snapshot is taken after this number of instants, whatever the time."""


def store_address(config: Config, data: Path) -> str:
    """Where the store of a service is."""
    return config.file.store or str(data / FILE)


def current_config(path: Path, data: Path) -> Config:
    """CONFIG of a service, with the policy that it has now."""
    return configs.load(path)


class Engine:
    """Session, world and store of a service."""

    def __init__(self, config: Config, store: Store, board: Board, seal: Seal, fleet: Fleet) -> None:
        self._config, self._store, self._board = config, store, board
        setup, spec, pace = config.setup, config.spec, 1e6 * config.file.speed
        self.intake = Intake(config, board, seal)
        projector = self._projector = Projector(setup, pace, config.price_hash, spec.name)
        ledger = Ledger(setup)
        self.recorder = Recorder(store, projector, self.intake, Sites(ledger, board), self._told)
        self._clock = Clock(pace, setup.slot_us, SystemTime())
        slots = "slot" in spec.triggers or "stream" in spec.works
        world = self.world = self.intake.world = FleetWorld(
            config.scenario, fleet, self._clock, self._record, slots=slots, options=_options(config), intake=self.intake
        )  # fmt: skip
        world.max_wait_s = POLL_S
        audit = Audit(setup, measured=True, binding=spec.binding)
        state = RunState(ledger, audit, DiskJournal(), tolerant=True, forget=projector.came_of)
        policy, _ = make_policy(config.scenario, spec, config.file.policy.params, config.file.policy.seed)
        terms = QuoteTerms(self.intake.hold_us, config.file.quotes.per_tenant)
        self.session = LiveSession(state, policy, spec, world.ask, self.recorder, terms)
        self._loop = LiveLoop(world, self.session, time.time)
        self._snapshot_s, self._snapshot_took_s, self._since = time.monotonic(), 0.0, 0

    def _record(self, kind: str, record: dict[str, Any]) -> None:
        self.recorder.append(kind, record)

    def _told(self) -> None:
        say(record=self._store.head.number)

    # ------------------------------------------------------------------ running
    def run(self) -> None:
        """Handle instants until the world is interrupted."""
        world, loop = self.world, self._loop
        while events := world.wait():
            if world.stopped:
                return
            loop.cycle(events)
            loop.write(events[0].at_us)
            self.session.journal.drain()
            self.session.alarms.clear()
            self.session.violations.clear()
            self._since += 1
            self._snapshot_if_due()

    def _snapshot_if_due(self) -> None:
        passed = time.monotonic() - self._snapshot_s
        if (passed > SNAPSHOT_S or self._since > SNAPSHOT_INSTANTS) and (
            passed * SNAPSHOT_SHARE > self._snapshot_took_s
        ):
            self.snapshot()

    def snapshot(self) -> None:
        """Write the state, so that recovery begins here."""
        begin = time.monotonic()
        data = {
            "session": base64.b64encode(self.session.snapshot()).decode(),
            "world": self.world.save(),
            "taken": self.intake.taken,
            "next_job": self.intake.next_job,
        }
        body = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 1)
        self._store.snapshot(body, at_us=max(0, self.world.now_us))
        self._snapshot_s, self._since = time.monotonic(), 0
        self._snapshot_took_s = self._snapshot_s - begin

    # ------------------------------------------------------------------ recovery
    def recover(self) -> None:
        """Continue where the store ends: the last snapshot, then the records after it."""
        found, last_us = self._store.recover(), 0
        rows = self._active_rows()
        self.intake.remember(rows)
        if found.state is not None:
            data = json.loads(zlib.decompress(found.state))
            self.session.restore(base64.b64decode(data["session"]))
            ledger = self.session.ledger
            self.world.restore(data["world"], {job: ledger.job(job) for job in ledger.active})
            self.intake.taken, self.intake.next_job = data["taken"], data["next_job"]
            last_us = max(0, self.world.now_us)
        for record in found.tail:
            last_us = max(last_us, self._replay(record.kind, record.data))
        self.session.finish_replay()
        self.session.journal.drain()
        for held in self.session.ledger.held.values():
            self.world.hold(held)
        self._projector.restore(rows, self.session.ledger.held.values())
        self._clock.set(last_us)
        self.world.resume()

    def _replay(self, kind: str, data: dict[str, Any]) -> int:
        match kind:
            case "instant":
                self.session.replay(data, self.world)
                self.intake.taken, self.intake.next_job = data["taken"], data["next_job"]
            case "attempt":
                self.world.replay_attempt(data, read(Step, data["step"], "attempt.step"))
            case "over":
                self.world.replay_end(data)
        return max(int(data.get("at_us", 0)), int(data.get("ended_us", 0)))

    def _active_rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while batch := self._board.rows(
            "board_jobs", is_over=False, after=rows[-1]["number"] if rows else 0, most=10_000
        ):
            rows += batch
        return rows


def _options(config: Config) -> ExecutionOptions:
    fleet = config.file.fleet
    separate = os.geteuid() == 0 and not fleet.as_root
    return ExecutionOptions(
        first_uid=FIRST_UID if separate else None, users=USERS if separate else 0, as_root=fleet.as_root,
        grace_s=fleet.grace_s, retries=fleet.retries, stall_s=fleet.stall_s,
    )  # fmt: skip


def _header(config: Config, store: Store) -> dict[str, Any]:
    """The first record of the store, which is written where there is none; another setup or policy is refused."""
    first = store.first()
    mine = {"setup": setup_hash(config.setup), "policy": config.spec.name, "params": dict(config.params)}
    if first is None:
        header = {
            "version": 1, "by": __version__, "scenario": mine["setup"], "policy": mine["policy"],
            "params": mine["params"], "seed": config.file.policy.seed, "pace": 1e6 * config.file.speed,
            "token": secrets.token_hex(16), "name": config.file.name, "world": "processes",
            "setup": plain(config.setup), "customers": {},
        }  # fmt: skip
        store.write([Entry("header", header)])
        return header
    found = first.data
    for name, old in (
        ("setup", found.get("scenario")),
        ("policy", found["policy"]),
        ("params", found["params"]),
    ):
        if old != json.loads(json.dumps(mine[name])):
            raise InputError(
                f"it belongs to a service with {name} {old!r}; CONFIG has {mine[name]!r}. Use the same {name}, or another "
                "--data; sites that come and go and prices that change are changed while it runs",
                where=store.name,
            )
    return found


def say(**what: Any) -> None:
    """Tell the process that started this one."""
    try:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # it is gone; stdin says so too
        pass


def run(config: Config, data: Path) -> None:
    """Run the engine until stdin is closed."""
    state = data / "state"
    options = _options(config)
    create_state(state, options.first_uid is not None)
    with ExitStack() as stack:
        stack.enter_context(locked(state))
        store = stack.enter_context(Store.open(store_address(config, data), write=True))
        header = _header(config, store)
        board = stack.enter_context(Board(store_address(config, data)))
        fleet = open_fleet(
            config.file.fleet.address,
            state,
            config.setup,
            options,
            header["token"],
            config.file.fleet.machines,
        )
        stack.callback(fleet.close)
        engine = Engine(config, store, board, Seal.of(data / "seal.key"), fleet)
        begin = time.monotonic()
        engine.recover()
        Thread(target=_watch, args=(engine,), daemon=True).start()
        say(ready=True, recovered_s=time.monotonic() - begin, record=store.head.number)
        engine.run()


def _watch(engine: Engine) -> None:
    """Wait until stdin is closed, then let the world end."""
    while os.read(sys.stdin.fileno(), 100):
        pass
    engine.world.interrupt()


def main(config: str, data: str) -> int:
    """The program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one decides
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)  # says on stderr where it is
    try:
        run(current_config(Path(config), Path(data)), Path(data))
    except TradewindError as error:
        say(failed=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
