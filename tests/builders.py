"""Small hand-made scenarios, a world driven step by step, and scripted policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tradewind.audit import Audit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.decision import NOTHING, Charge, Decision, Plan, Quote, Step
from tradewind.model.job import Customer, Fixed, Job
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.result import Run, Violation
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec, Trigger
from tradewind.model.units import OPEN, UNLIMITED
from tradewind.model.view import Change, Event, View
from tradewind.worlds.simulate import simulate
from tradewind.worlds.simulated import SimulatedWorld

SLOT = 100
"""Microseconds of a slot in hand-made scenarios; small, so that times are easy to add."""
HORIZON = 10_000
ALL: frozenset[Trigger] = frozenset(("arrival", "completion", "slot", "change", "timer"))
WORKS = frozenset(("fixed", "stream", "dataset", "rounds", "rounds/machines"))


def node(name: str, gpus: int | None = 4, *, parent: int = -1, kind: Any = "site") -> Node:
    """A node with whole gpus, unlimited where None."""
    return Node(
        name=name,
        kind=kind,
        parent=parent,
        capacity_milli=(UNLIMITED if gpus is None else gpus * 1000,),
    )


def link(a: int, b: int, bps: int = 8_000_000, back: int | None = None, **more: Any) -> Link:
    return Link(a=a, b=b, ab_bps=bps, ba_bps=bps if back is None else back, **more)


def setup(nodes: Sequence[Node] | None = None, **more: Any) -> Setup:
    """Two sites with four gpus each, slots of 100 us."""
    given: dict[str, Any] = {
        "resources": ("gpu",),
        "nodes": tuple(nodes) if nodes is not None else (node("a"), node("b")),
        "slot_us": SLOT,
        "horizon_us": HORIZON,
        "objective": "cost_usd",
    }
    return Setup(**(given | more))


def job(index: int = 0, *, arrive_us: int = 0, work: Any = None, **more: Any) -> Job:
    """One worker with one gpu for 250 us."""
    given: dict[str, Any] = {
        "index": index,
        "id": f"j{index}",
        "arrive_us": arrive_us,
        "work": work if work is not None else Fixed(runtime_us=250),
        "worker": ((0, 1000),),
    }
    return Job(**(given | more))


def scenario(
    jobs: Sequence[Job],
    *,
    where: Setup | None = None,
    customers: Sequence[Customer] = (),
    changes: Sequence[Change] = (),
    volumes: Iterable[tuple[int, int, int, int]] = (),
) -> Scenario:
    """volumes: (job, slot, node, bytes)."""
    columns: list[Any] = [list(column) for column in zip(*volumes, strict=True)] or [[], [], [], []]
    return Scenario(
        name="hand-made",
        setup=where or setup(),
        jobs=tuple(jobs),
        customers=tuple(customers),
        changes=tuple(changes),
        volumes=Volumes(job=columns[0], slot=columns[1], node=columns[2], bytes=columns[3]),
    )


def run_at(at: int, nodes: Sequence[int] = (0,), workers: Sequence[int] = (1,), **more: Any) -> Step:
    """An open-ended step."""
    return Step(at, more.pop("until", OPEN), tuple(nodes), tuple(workers), **more)


def plan(index: int, *steps: Step) -> Plan:
    return Plan(index, steps)


def decision(*plans: Plan, **more: Any) -> Decision:
    return Decision(plans=plans, **more)


Decisions = Mapping[int, Decision | Callable[[View], Decision]]


class Scripted:
    """Decides by script, by time; quotes from `quotes` and charges `due()`. Keeps the events it observed."""

    def __init__(
        self, script: Decisions, quotes: Mapping[int, Quote], due: Callable[[], tuple[Charge, ...]] = tuple
    ) -> None:
        self.script, self.quotes, self.due = script, quotes, due
        self.observed: list[Event] = []

    def decide(self, view: View) -> Decision:
        self.observed += view.events
        found = self.script.get(view.now_us, NOTHING)
        return found if isinstance(found, Decision) else found(view)

    def quote(self, view: View, job: Job) -> Quote:
        return self.quotes[job.index]

    def charges(self, view: View) -> tuple[Charge, ...]:
        return self.due()

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def spec_of(policy: Any, *, pricer: bool = False, slots: bool = True) -> Spec:
    triggers: frozenset[Trigger] = ALL if slots else ALL - {"slot"}
    return Spec(
        name="scripted",
        summary="scripted by a test",
        factory=lambda setup, params, random: policy,
        works=WORKS,
        pricer=pricer,
        triggers=triggers,
    )


def play(
    given: Scenario, script: Decisions, quotes: Mapping[int, Quote] | None = None, *, slots: bool = True
) -> Run:
    """A whole audited run of a script; raises Refused if it breaks a rule."""
    policy = Scripted(script, quotes or {})
    return simulate(given, spec_of(policy, pricer=quotes is not None, slots=slots))


class Stage:
    """World, ledger and audit without a policy: the test decides."""

    def __init__(self, given: Scenario, *, slots: bool = False) -> None:
        self.world = SimulatedWorld(given, slots=slots)
        self.ledger, self.audit = Ledger(given.setup), Audit(given.setup, given)
        self.number = 0
        self.now = -1

    def wait(self) -> list[tuple[str, int, int]]:
        """(kind, job, value) of the next instant."""
        events = self.world.wait()
        assert self.audit.take(events) == ()
        self.ledger.take(events)
        if events:
            self.now = events[0].at_us
        return [(e.kind, e.job, e.value) for e in events]

    def check(self, *plans: Plan, **more: Any) -> tuple[Violation, ...]:
        return self.audit.check(self.now, Decision(plans=plans, **more))

    def act(self, *plans: Plan, **more: Any) -> None:
        """Check a decision, carry it out and record it."""
        chosen = Decision(plans=plans, **more)
        assert self.audit.check(self.now, chosen) == ()
        self.number += 1
        after = self.world.apply(self.number, chosen)
        self.ledger.commit(chosen)
        assert self.audit.take(after) == ()
        self.ledger.take(after)

    def until(self, at_us: int) -> list[tuple[int, str, int, int]]:
        """Advance to `at_us`; (time, kind, job, value) of all events on the way."""
        seen = []
        while self.now < at_us:
            events = self.wait()
            seen += [(self.now, *event) for event in events]
            if not events:
                break
        return seen


def loop_of(given: Scenario, spec: Spec, policy: Any) -> Loop:
    """A loop for a test to drive."""
    world = SimulatedWorld(given, slots="slot" in spec.triggers)
    state = RunState(Ledger(given.setup), Audit(given.setup, given), Journal())
    return Loop(world, Session(state, policy, spec, world.ask))


def rows(run: Run, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a run's table."""
    return list(zip(*(run.tables[table][c] for c in columns), strict=True))
