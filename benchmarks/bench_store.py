"""The store: recovery of a run with a million finished and 10,000 active jobs, verification, and commits per second.

The records of finished jobs are inserted in bulk; snapshot and tail come from a session with all active jobs in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

from tradewind import api
from tradewind.audit import Audit
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import DiskJournal, LiveLoop, LiveSession
from tradewind.engine.state import RunState
from tradewind.engine.stimuli import to_json
from tradewind.model.decision import Decision, HeldQuote, Plan, Quote, Step
from tradewind.model.job import Fixed, Job
from tradewind.model.result import EndedJob
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Event
from tradewind.registry import policies
from tradewind.store.store import Entry, Store
from tradewind.worlds.simulate import make_policy

FINISHED, ACTIVE, TAIL = 1_000_000, 10_000, 200
PER_INSTANT, BATCH, COMMITS = 5, 2_000, 500
POLICY = "fifo-backfill"
HOUR_US = 3_600_000_000


def job(index: int, at_us: int) -> Job:
    """A job of one worker with one GPU that runs for very long."""
    work = Fixed(runtime_us=1000 * HOUR_US)
    return Job(
        index=index, id=f"job-{index}", arrive_us=at_us, work=work, worker=((0, 1000),), tenant="team-a"
    )


class Recorded:
    """Stands for the world: says again what was recorded and carries out nothing."""

    stopped = False

    def __init__(self, instants: Sequence[Sequence[Event]] = ()) -> None:
        self._instants: Iterator[Sequence[Event]] = iter(instants)

    def wait(self) -> Sequence[Event]:
        return next(self._instants, ())

    def ask(self, quote: Quote) -> int:
        return -1

    def hold(self, held: HeldQuote) -> None:
        pass

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        return ()

    def replay(self, events: Sequence[Event]) -> Sequence[Event]:
        return events


def finished(count: int, first: int) -> Iterator[Entry]:
    """Records of jobs that came, ran and ended, a few per instant."""
    for number in range(0, count, PER_INSTANT):
        at = number // PER_INSTANT
        here = [job(first + number + i, at) for i in range(min(PER_INSTANT, count - number))]
        came = [to_json(Event(at, "arrived", each.index, 0, each)) for each in here]
        gone = [to_json(Event(at, "finished", each.index)) for each in here]
        plans = tuple(Plan(each.index, (Step(at, OPEN, (each.index % 7,), (1,)),)) for each in here)
        ops = [("events", came), ("decision", Decision(plans=plans)), ("events", gone), ("seen", None)]
        rows = [EndedJob(each.index, each.id, each.tenant, at, at, "finished") for each in here]
        yield Entry("instant", {"at_us": at, "wall": float(at), "ops": ops, "policy": None}, at, rows)


def session(setup: Setup, store: Store, slots: int) -> LiveSession:
    """A session that drops what is over."""
    spec = policies.find(POLICY)
    policy, _ = make_policy(api.generate("cluster", jobs=1, servers=slots), spec, {}, 0)
    state = RunState(
        Ledger(setup), Audit(setup, measured=True), DiskJournal(), tolerant=True, forget=lambda outcome: None
    )
    return LiveSession(state, policy, spec, lambda quote: -1, store)


def fill(path: Path, ended: int, active: int, tail: int) -> tuple[Setup, bytes]:
    """Write a store; return the setup and the state of its session at the end."""
    servers = max(1, active // 20)
    setup = api.generate("cluster", jobs=1, servers=servers).setup
    with Store.open(path, write=True) as store:
        batch: list[Entry] = []
        for entry in finished(ended, active + tail):
            batch.append(entry)
            if len(batch) == BATCH:
                store.write(batch)
                batch = []
        if batch:
            store.write(batch)
        live, start = session(setup, store, servers), ended
        instants = [[Event(start, "arrived", i, 0, job(i, start)) for i in range(active)]]
        LiveLoop(Recorded(instants), live, perf_counter).cycle(instants[0])
        live.journal.ops = []
        live.changed_state()
        live.journal.drain()
        store.snapshot(live.snapshot(), at_us=start)
        late = [
            [Event(start + n, "arrived", active + n - 1, 0, job(active + n - 1, start + n))]
            for n in range(1, tail + 1)
        ]
        loop = LiveLoop(Recorded(late), live, perf_counter)
        for events in late:
            loop.cycle(events)
            loop.write(events[0].at_us)
        return setup, live.snapshot()


def recover(path: Path, setup: Setup, servers: int) -> LiveSession:
    """Continue from the last snapshot and the records after it."""
    with closing(Store.open(path, write=True)) as store:
        found, live, world = store.recover(), session(setup, store, servers), Recorded()
        assert found.state is not None
        live.restore(found.state)
        for record in found.tail:
            live.replay(record.data, world)
        live.finish_replay()
        return live


def measure(ended: int = FINISHED, active: int = ACTIVE, tail: int = TAIL) -> dict[str, float]:
    """Seconds to recover and to verify, size, and whether the session is the same as before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        setup, state = fill(path, ended, active, tail)
        begin = perf_counter()
        live = recover(path, setup, max(1, active // 20))
        recovered_s = perf_counter() - begin
        same = live.snapshot() == state
        begin = perf_counter()
        with Store.open(path) as store:
            count = store.verify().number
        verify_s = perf_counter() - begin
        return {
            "recover_s": recovered_s, "verify_per_s": count / verify_s, "records": count, "same": same,
            "active": len(live.ledger.active), "gb": path.stat().st_size / 1e9,
        }  # fmt: skip


def commits_per_s() -> float:
    """Records of one instant each, every one on disk before the next."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store.db", write=True) as store:
        entries = list(finished(COMMITS * PER_INSTANT, 0))
        begin = perf_counter()
        for entry in entries:
            store.write([entry])
        return COMMITS / (perf_counter() - begin)


def rows() -> list[dict[str, Any]]:
    """Recovery, verification and commits."""
    got = measure()
    note = f"{FINISHED:,} finished, {got['active']:,} active jobs, {got['records']:,.0f} records, {got['gb']:.2f} GB"
    recovery = {
        "name": "recovery of a store with a million jobs",
        "measured": got["recover_s"] if got["same"] else None,
    }
    return [
        {**recovery, "unit": "s", "target": 5.0, "better": "lower", "note": note},
        {"name": "verification", "measured": got["verify_per_s"], "unit": "records/s", "better": "higher"},
        {
            "name": "commits, one instant each",
            "measured": commits_per_s(),
            "unit": "per s",
            "better": "higher",
        },
    ]
