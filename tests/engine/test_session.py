"""Claims about sessions: rules hold with and without a script, jobs can be cancelled, and ignoring that is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import ALL, decision, job, node, plan, run_at, scenario, setup
from tradewind.audit import Audit
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.decision import NOTHING, Decision
from tradewind.model.errors import Refused
from tradewind.model.job import Fixed
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import Change, Event, View
from tradewind.registry import policies
from tradewind.testing import contended_cluster, contract
from tradewind.worlds.simulated import SimulatedWorld


def two_jobs() -> Scenario:
    return scenario([job(0), job(1, arrive_us=50)])


def rules(audit: Audit, *events: Event) -> list[str]:
    return [violation.rule for violation in audit.take(events)]


@pytest.mark.parametrize(
    "event",
    [
        Event(10, "arrived", 0, 0, replace(two_jobs().jobs[0], arrive_us=10)),
        Event(0, "arrived", 0, 0, replace(two_jobs().jobs[0], work=Fixed(runtime_us=7))),
        Event(10, "changed", -1, 0, Change(10, "node_down", 0, 0, 0)),
    ],
    ids=["another time", "another job", "an unscripted failure"],
)
def test_what_no_script_has_breaks_fidelity_only_where_there_is_a_script(event: Event) -> None:
    given = two_jobs()
    assert rules(Audit(given.setup), event) == []
    assert rules(Audit(given.setup, given), event) in (["time.arrival"], ["time.change"])


@pytest.mark.parametrize("scripted", [True, False])
def test_rules_that_always_hold_are_checked_with_and_without_a_script(scripted: bool) -> None:
    given = two_jobs()
    audit = Audit(given.setup, given if scripted else None)
    assert rules(audit, Event(0, "arrived", 0, 0, given.jobs[0])) == []
    assert rules(audit, Event(0, "arrived", 0, 0, given.jobs[0])) == ["time.arrival"]
    assert [v.rule for v in audit.check(0, decision(plan(0, run_at(0, (0,), (9,)))))] == ["workers.range"]
    assert audit.check(0, decision(plan(0, run_at(0)))) == ()
    assert rules(audit, Event(100, "finished", 0)) == ["work.finish"]
    assert rules(audit, Event(50, "cancelled", 0, 50)) == ["time.forward", "time.event"]


def test_a_cancelled_job_frees_its_room_and_its_work_is_recounted() -> None:
    given = scenario([job(0)], where=setup([node("a", 1)]))
    for value, found in ((100, []), (99, ["work.done"])):
        audit = Audit(given.setup)
        assert rules(audit, Event(0, "arrived", 0, 0, given.jobs[0])) == []
        assert audit.check(0, decision(plan(0, run_at(0)))) == ()
        assert rules(audit, Event(100, "cancelled", 0, value)) == found
        assert audit.recount() == ()
        assert rules(audit, Event(100, "arrived", 1, 0, job(1, arrive_us=100))) == []
        assert audit.check(100, decision(plan(1, run_at(100)))) == ()
        assert [v.rule for v in audit.check(100, decision(plan(0, run_at(100))))] == ["plan.job"]
        assert audit.close().metrics["jobs_cancelled"] == 1


class Greedy:
    """Starts waiting jobs in order of arrival on one node of one GPU; `deaf`: does not notice cancellations."""

    def __init__(self, deaf: bool) -> None:
        self.deaf, self.queue, self.running = deaf, list[int](), -1

    def decide(self, view: View) -> Decision:
        for event in view.events:
            if event.kind == "arrived":
                self.queue.append(event.job)
            elif event.kind == "finished" or (event.kind == "cancelled" and not self.deaf):
                self.queue = [index for index in self.queue if index != event.job]
                self.running = -1 if self.running == event.job else self.running
        if self.running >= 0 or not self.queue:
            return NOTHING
        self.running = self.queue.pop(0)
        return decision(plan(self.running, run_at(view.now_us)))

    def save(self) -> bytes:
        return repr((self.queue, self.running)).encode()

    def restore(self, state: bytes) -> None:
        self.queue, self.running = eval(state)


def greedy(deaf: bool) -> Spec:
    return Spec(
        name="greedy", summary="", works=frozenset({"fixed"}), triggers=ALL,
        factory=lambda setup, params, random: Greedy(deaf),
    )  # fmt: skip


def cancelled_run(deaf: bool) -> dict[str, Any]:
    given = scenario([job(i, arrive_us=i) for i in range(4)], where=setup([node("a", 1)]))
    world = SimulatedWorld(given, slots=False, unscripted=True)
    world.cancel(10, 2)  # waits
    if not deaf:
        world.cancel(300, 1)  # runs
    state = RunState(Ledger(given.setup), Audit(given.setup), Journal())
    session = Session(state, Greedy(deaf), greedy(deaf), world.ask)
    Loop(world, session).run()
    assert state.audit.close().violations == ()
    return session.journal.tables


def test_waiting_and_running_jobs_are_cancelled_and_the_next_one_starts() -> None:
    events = cancelled_run(deaf=False)["events"]
    rows = list(zip(events["at_us"], events["kind"], events["job"], events["value"], strict=True))
    assert (10, "cancelled", 2, 0) in rows
    assert (300, "cancelled", 1, 50) in rows
    assert (550, "finished", 3, 0) in rows


def test_a_policy_that_ignores_cancellations_is_found() -> None:
    with pytest.raises(Refused, match=r"plan\.job"):
        cancelled_run(deaf=True)
    given = contended_cluster(2, calm=True)

    class Deaf:
        """fifo that is never told of cancellations."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def decide(self, view: Any) -> Decision:
            view.events = [event for event in view.events if event.kind != "cancelled"]
            return self.inner.decide(view)  # type: ignore[no-any-return]

        def save(self) -> bytes:
            return bytes(self.inner.save())

        def restore(self, state: bytes) -> None:
            self.inner.restore(state)

    fifo = policies.find("fifo")
    deaf = replace(fifo, factory=lambda setup, params, random: Deaf(fifo.factory(setup, params, random)))
    contract.handles_unscripted_events(fifo, given)
    with pytest.raises(Refused, match=r"plan\.job"):
        contract.handles_unscripted_events(deaf, given)
