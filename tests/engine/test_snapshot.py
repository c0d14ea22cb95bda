"""Claims about snapshots: a session that continues from one does what the other would have done; wrong ones are named."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import job, scenario
from tests.engine.test_quotes import Held
from tradewind.audit import Audit
from tradewind.audit.record import Record
from tradewind.audit.saved import DERIVED, SavedRecord
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.session import Command, Session
from tradewind.engine.state import RunState
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Stream
from tradewind.model.result import Outcome
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Event
from tradewind.registry import policies
from tradewind.testing import contended_cluster, fitting_scenarios
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.simulated import SimulatedWorld

ONLINE = [name for name in policies.names() if policies.find(name).online]


class Driver:
    """A world and its session; `restart` continues with a new session from a snapshot of the old one."""

    def __init__(self, spec: Spec, given: Scenario, *, forgets: bool, scripted: bool) -> None:
        self.spec, self.given, self.forgets, self.scripted = spec, given, forgets, scripted
        self.world = SimulatedWorld(given, slots="slot" in spec.triggers)
        self.rows: list[Outcome] = []
        self.session = self.fresh()

    def fresh(self) -> Session:
        setup = self.given.setup
        audit = Audit(setup, self.given if self.scripted else None, binding=self.spec.binding)
        forget: Callable[[Outcome], None] | None = self.rows.append if self.forgets else None
        state = RunState(Ledger(setup), audit, Journal(), forget=forget)
        return Session(state, make_policy(self.given, self.spec, {}, 3)[0], self.spec, self.world.ask)

    def restart(self) -> None:
        old, self.session = self.session, self.fresh()
        self.session.restore(old.snapshot())
        new = self.session
        assert _content(new) == _content(old)
        assert (new.audit._capacity.open, new.ledger._used) == (old.audit._capacity.open, old.ledger._used)
        for ledger in ("audit._capacity.booked", "ledger._booked"):
            assert _booked(new, ledger) == _booked(old, ledger)
        assert new.audit.recount() == ()

    def run(self, restarts: frozenset[int]) -> tuple[list[Command], list[Event], dict[str, float], int]:
        """Commands, all events, metrics and the number of instants."""
        commands, seen, number = list[Command](), list[Event](), 0
        while events := self.world.wait():
            seen += events
            made = self.session.handle(events[0].at_us, events)
            commands += made
            for command in made:
                after = self.world.apply(command.number, command.decision)
                seen += after
                if after and not command.answered:
                    self.session.handle(events[0].at_us, after)
            if number in restarts:
                self.restart()
            number += 1
        self.session.charge()
        report = self.session.audit.close()
        assert report.violations == ()
        return commands, seen, dict(report.metrics), number


def _content(session: Session) -> Any:
    return json.loads(zlib.decompress(session.snapshot()))


def _booked(session: Session, path: str) -> dict[tuple[int, int], int]:
    found: Any = session
    for name in path.split("."):
        found = getattr(found, name)
    return {(row, slot): n for row, slots in found.items() for slot, n in slots.items() if n}


@pytest.mark.parametrize("forgets", [False, True], ids=["keeps", "forgets"])
@pytest.mark.parametrize("name", ONLINE)
def test_a_session_restored_at_random_instants_continues_identically(name: str, forgets: bool) -> None:
    spec = policies.find(name)
    draw = random.Random(f"{name} {forgets}")
    scripted = draw.random() < 0.5
    given = next(fitting_scenarios(spec, draw.choice((1, 2))))
    whole = Driver(spec, given, forgets=forgets, scripted=scripted)
    expected = whole.run(frozenset())
    chosen = frozenset(draw.sample(range(expected[3]), min(6, expected[3])))
    again = Driver(spec, given, forgets=forgets, scripted=scripted)
    assert again.run(chosen) == expected
    assert again.rows == whole.rows


def test_every_field_of_a_record_is_saved_or_derived() -> None:
    fresh = Record(job(), None, 1, ())  # type: ignore[arg-type]
    fields = {
        name for name, value in vars(Record).items() if name[0] != "_" and not isinstance(value, property)
    }
    assert {*SavedRecord._fields, *DERIVED} == fields | set(vars(fresh))
    for name, default in SavedRecord._field_defaults.items():
        value = getattr(fresh, name)
        assert (tuple(value) if isinstance(value, list | dict) else value) == default, name


def stopped() -> tuple[Driver, bytes]:
    """A driver after three instants, and its snapshot."""
    spec, given = policies.find("fifo"), contended_cluster(2)
    driver = Driver(spec, given, forgets=True, scripted=False)
    for _ in range(3):
        events = driver.world.wait()
        for command in driver.session.handle(events[0].at_us, events):
            driver.world.apply(command.number, command.decision)
    return driver, driver.session.snapshot()


def edited(data: bytes, change: Callable[[Any], None]) -> bytes:
    found = json.loads(zlib.decompress(data))
    change(found)
    return zlib.compress(json.dumps(found).encode())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(version=99), "snapshot.version: found 99; this session has 2"),
        (lambda s: s.update(format="zip"), "snapshot: is not a tradewind-snapshot"),
        (lambda s: s.update(policy="las"), "snapshot.policy: found 'las'; this session has 'fifo'"),
        (lambda s: s.update(setup="0"), "snapshot.setup: found '0'"),
        (lambda s: s.update(forgets=False), "snapshot.forgets: found False; this session has True"),
        (lambda s: s.pop("audit"), "contradicts itself: KeyError 'audit'"),
        (lambda s: s["audit"].update(now_us="x"), "snapshot.audit.now_us: found 'x'; it must be of type int"),
        (lambda s: s["audit"].update(colour=1), "snapshot.audit: unknown field 'colour'"),
        (lambda s: s["audit"]["records"][0].update(job=999), "contradicts itself: KeyError 999"),
        (lambda s: s["ledger"]["state"].pop("jobs"), "snapshot.ledger.state: 'jobs' is missing"),
        (lambda s: s["ledger"]["state"]["jobs"].pop(0), "contradicts itself: KeyError 0"),
    ],
)
def test_a_foreign_or_edited_snapshot_is_refused_with_the_reason(change: Any, message: str) -> None:
    driver, data = stopped()
    with pytest.raises(InputError, match=message):
        driver.fresh().restore(edited(data, change))


def test_a_damaged_snapshot_is_refused() -> None:
    driver, data = stopped()
    draw = random.Random(1)
    for _ in range(50):
        at = draw.randrange(2, len(data))
        broken = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        with pytest.raises(InputError, match="damaged"):
            driver.fresh().restore(broken)
    for broken in (b"", data[:-1], data[: len(data) // 2], b"{}"):
        with pytest.raises(InputError, match="damaged"):
            driver.fresh().restore(broken)


def test_a_snapshot_is_restored_in_a_new_session_only() -> None:
    driver, data = stopped()
    with pytest.raises(InputError, match="only be restored in a new session"):
        driver.session.restore(data)


def test_what_is_due_at_this_instant_survives_a_restart() -> None:
    """Between a decision and the event that it causes, the audit still waits for that event."""
    stream = job(1, arrive_us=100, work=Stream(bytes_per_worker_slot=1))
    given = scenario([job(0), stream], customers=[Customer(), Customer(runtime_us=100)])
    audit = Audit(given.setup)
    audit.take((Event(0, "arrived", 0, 0, given.jobs[0]),))
    audit._awaited[0] = ("refused", 0)
    again = Audit(given.setup)
    again.restore(audit.save(), {0: given.jobs[0]})
    assert [v.rule for v in again.take((Event(100, "arrived", 1, 0, given.jobs[1]),))] == ["time.answer"]
    assert again._streams == {1}
    third = Audit(given.setup)
    third.restore(again.save(), dict(enumerate(given.jobs)))
    assert third._streams == {1}


@pytest.mark.parametrize("taken", [0, -1, None], ids=["accepted", "declined", "expired"])
def test_open_quotes_and_jobs_that_wait_for_one_survive_a_restart(taken: int | None) -> None:
    def played(restart: bool) -> list[tuple[str, int, int]]:
        held = Held([job(i, tenant="t") for i in range(3)], gpus=3, per_tenant=1)
        held.until(0)
        if restart:
            old, setup = held.session, held.given.setup
            held.state = RunState(Ledger(setup), Audit(setup, binding=True), held.state.journal)
            held.session = Session(held.state, held.market, old.spec, old.answer, old.terms)
            held.session.restore(old.snapshot())
            held.loop.session = held.session
            assert (held.session.quotes.open, held.session.quotes.waiting) == (
                old.quotes.open,
                old.quotes.waiting,
            )
            assert held.state.ledger._used == old.ledger._used
        assert (len(held.session.quotes.open), held.session.quotes.waiting) == (1, [1, 2])
        if taken is not None:
            held.world.answer(20, held.session.quotes.open[0], taken)
        held.end()
        return held.recorded()

    assert played(restart=True) == played(restart=False)
