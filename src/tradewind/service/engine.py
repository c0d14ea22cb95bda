"""The engine of a service, a process of its own: it takes requests, decides, writes every instant, and runs ranks.

    python -m tradewind.service.engine CONFIG DATA

It says on stdout, one JSON object a line, when it is ready and whenever something was written; it ends when stdin is closed.
A long decision delays nobody who reads, and a slow reader delays no decision.
"""

from __future__ import annotations

import base64
import faulthandler
import gc
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

from tradewind.audit import Audit
from tradewind.engine import snapshot
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import DiskJournal, LiveLoop, LiveSession
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.snapshot import without_collections
from tradewind.engine.state import RunState
from tradewind.model.codec import read
from tradewind.model.decision import Step
from tradewind.model.errors import TradewindError
from tradewind.model.units import OPEN
from tradewind.model.view import Event
from tradewind.service import config as configs
from tradewind.service.config import Config, version_of
from tradewind.service.current import changed, current_config, header_of, prepare, store_address
from tradewind.service.intake import Intake
from tradewind.service.operations import OWN, SUSPENDED, keep_value
from tradewind.service.projector import Projector
from tradewind.service.recorder import RecordedFleet, Recorder
from tradewind.service.seal import Seal
from tradewind.service.sites import Sites
from tradewind.store.board import MOST, Board, Row
from tradewind.store.rows import Put
from tradewind.store.store import Entry, Store
from tradewind.worlds.clock import Clock, SystemTime
from tradewind.worlds.fleet import Fleet
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets import open_fleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.processes.users import FIRST_UID, USERS, later_uid
from tradewind.worlds.live import create_state, locked
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.warm import warm_up

POLL_S = 0.02
"""Requests are looked for at least this often."""
LAST_S = 15.0
"""How long the engine of a service that was killed may take to end, before this one gives up."""
SNAPSHOT_S, SNAPSHOT_SHARE = 30.0, 0.05
"""A snapshot is taken after this time, and so rarely that it takes at most this share of it."""
SNAPSHOT_INSTANTS = 2000
"""A snapshot is taken after this number of instants, whatever the time."""


class Engine:
    """Session, world and store of a service."""

    def __init__(self, config: Config, store: Store, board: Board, seal: Seal, fleet: Fleet) -> None:
        self._config, self._store, self._board = config, store, board
        setup, spec, pace = config.setup, config.spec, 1e6 * config.file.speed
        ledger = Ledger(setup)
        self.intake = Intake(config, board, seal, ledger)
        operations = self.intake.operations
        projector = self._projector = Projector(
            setup, pace, version_of(config), operations.taken_away, self._row, ledger.active
        )
        self.recorder = Recorder(store, projector, self.intake, Sites(ledger, board), self._told)
        self._clock = Clock(pace, setup.slot_us, SystemTime())
        slots = "slot" in spec.triggers or "stream" in spec.works
        world = self.world = self.intake.world = FleetWorld(
            config.scenario, RecordedFleet(fleet, self.recorder), self._clock, self.recorder.append, slots=slots,
            options=_options(config), intake=self.intake,
        )  # fmt: skip
        world.max_wait_s = POLL_S
        self.intake.record = self.recorder.append
        audit = Audit(setup, measured=True, binding=spec.binding)
        state = RunState(ledger, audit, DiskJournal(), tolerant=True, forget=projector.came_of)
        policy, _ = make_policy(config.scenario, spec, config.file.policy.params, config.file.policy.seed)
        terms = QuoteTerms(self.intake.hold_us, config.file.quotes.per_tenant)
        self.session = LiveSession(state, policy, spec, world.ask, self.recorder, terms)
        self._loop = LiveLoop(world, self.session, time.time)
        self._snapshot_s, self._snapshot_took_s, self._since = time.monotonic(), 0.0, 0
        self._switched = False

    def _row(self, job: int) -> Row | None:
        return self._board.row("board_jobs", job=job, is_over=False)

    def _told(self) -> None:
        say(record=self._store.head.number)

    # ------------------------------------------------------------------ running
    def run(self) -> bool:
        """Handle instants until the world is interrupted; whether to begin again: the policy or the sites have changed."""
        while self.step():
            pass
        return self._switched

    def step(self) -> bool:
        """Wait for the next instant and handle it; False if the world was interrupted, or policy or sites have changed."""
        world, operations = self.world, self.intake.operations
        while not world.over:
            if events := world.poll():
                if world.stopped:
                    break
                self._handle(events)
                return True
            if operations.is_switching and not self._is_busy:
                self._switch()
                break
            if not world.over:
                world.watch()
        self.recorder.flush()
        return False

    @property
    def _is_busy(self) -> bool:
        """Whether there are jobs, or ranks that still end."""
        return bool(self.session.ledger.active) or any(
            g.current is not None for g in self.world.gangs.values()
        )

    def _handle(self, events: Sequence[Event]) -> None:
        self._loop.cycle(events)
        self._loop.write(events[0].at_us)
        self.session.journal.drain()
        self.session.alarms.clear()
        self.session.violations.clear()
        self._since += 1
        self._snapshot_if_due()

    # ------------------------------------------------------------------ another policy, further sites
    def _switch(self) -> None:
        """Go on under another policy or with further sites: nothing is active; what is suspended is resumed."""
        wanted = self.intake.operations.wanted
        self.recorder.flush()
        before, session, world = self._config.setup, self.session, self.world
        config = changed(self._config, wanted)
        own, setup, now_us = config.file.policy, config.setup, max(0, world.now_us)
        policy, _ = make_policy(config.scenario, config.spec, own.params, own.seed)
        session.ledger.clear_events()
        fresh = snapshot.under(session.snapshot(), config.spec.name, policy.save(), setup, before)
        state = self._state(fresh)
        agenda = state["world"]["timeline"]["agenda"]
        agenda["next_slot"], agenda["timer_us"] = max(agenda["next_slot"], now_us // setup.slot_us + 1), OPEN
        entries = []
        for kind, body in wanted.items():
            body = {**body, "params": dict(config.params)} if kind == "policy" else body
            entries.append(Entry(kind, {"at_us": now_us, "wall": time.time(), **body}, now_us))
        rows = [keep_value(self._board, OWN[kind], body) for kind, body in wanted.items()]
        rows += [
            Put("requests", {
                "kind": "resume", "job": row["id"], "tenant": row["tenant"], "actor": "switch", "at_s": time.time(),
                "body": "{}", "sealed": None,
            })
            for row in reversed(self._board.rows("board_jobs", status=SUSPENDED, most=MOST))
            if json.loads(row["places"])[SUSPENDED]["by"] == "switch"
        ]  # fmt: skip
        self._store.snapshot(_packed(state), at_us=now_us, before=entries, rows=rows)
        self._switched = True

    def _snapshot_if_due(self) -> None:
        passed = time.monotonic() - self._snapshot_s
        if (passed > SNAPSHOT_S or self._since > SNAPSHOT_INSTANTS) and (
            passed * SNAPSHOT_SHARE > self._snapshot_took_s
        ):
            self.snapshot()

    def snapshot(self) -> None:
        """Write the state, so that recovery begins here."""
        begin = time.monotonic()
        self.recorder.flush()
        body = _packed(self._state(self.session.snapshot()))
        self._store.snapshot(body, at_us=max(0, self.world.now_us))
        self._snapshot_s, self._since = time.monotonic(), 0
        self._snapshot_took_s = self._snapshot_s - begin

    def _state(self, session: bytes) -> dict[str, Any]:
        return {
            "session": base64.b64encode(session).decode(),
            "world": self.world.save(),
            "taken": self.intake.taken,
            "next_job": self.intake.next_job,
        }

    # ------------------------------------------------------------------ recovery
    @without_collections()
    def recover(self) -> None:
        """Continue where the store ends: the last snapshot, then the records after it."""
        found, last_us = self._store.recover(), 0
        self.intake.remember(self._board.private())
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
        active = self.session.ledger.active
        self.intake.known = {job.id: index for index, job in active.items()}
        self._projector.restore(active, self.session.ledger.held.values(), self.world.agenda.found)
        self.intake.operations.restore(self.world, self.intake.taken)
        self._clock.set(last_us)
        self.world.resume()
        gc.freeze()  # what waits is not looked at by every collection

    def _replay(self, kind: str, data: dict[str, Any]) -> int:
        match kind:
            case "instant":
                self.session.replay(data, self.world)
                self.intake.taken, self.intake.next_job = data["taken"], data["next_job"]
            case "taken":
                self.intake.taken, self.intake.next_job = data["taken"], data["next_job"]
            case "attempt":
                self.world.replay_attempt(data, read(Step, data["step"], "attempt.step"))
            case "over":
                self.world.replay_end(data)
        return max(int(data.get("at_us", 0)), int(data.get("ended_us", 0)))


def _packed(state: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 1)


def _options(config: Config) -> ExecutionOptions:
    fleet = config.file.fleet
    separate = os.geteuid() == 0 and not fleet.as_root
    return ExecutionOptions(
        first_uid=FIRST_UID if separate else None, users=USERS if separate else 0,
        later_uid=later_uid() if separate else None, as_root=fleet.as_root,
        grace_s=fleet.grace_s, retries=fleet.retries, stall_s=fleet.stall_s,
    )  # fmt: skip


def say(**what: Any) -> None:
    """Tell the process that started this one."""
    try:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # it is gone; stdin says so too
        pass


def run(config: Config, data: Path) -> bool:
    """Run the engine until stdin is closed; whether to begin again: the policy or the sites have changed."""
    state = data / "state"
    options = _options(config)
    warm_up(
        config.spec.system, (config.spec.name,)
    )  # before it is ready: the first quote must not wait for a compiler
    create_state(state, options.first_uid is not None)
    with ExitStack() as stack:
        stack.enter_context(locked(state, LAST_S))
        store = stack.enter_context(Store.open(store_address(config, data), write=True))
        header = header_of(config, store)
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
        return engine.run()


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
        prepare(configs.load(Path(config)), Path(data))
        while run(current_config(Path(config), Path(data)), Path(data)):
            pass
    except TradewindError as error:
        say(failed=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
