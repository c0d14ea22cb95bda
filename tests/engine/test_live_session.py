"""Claims about live sessions: a failing policy or a rejected sale ends nothing and loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import ALL, WORKS, job, node, plan, run_at, scenario, setup
from tradewind.audit import Audit
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import DiskJournal, LiveSession
from tradewind.engine.state import RunState
from tradewind.model.decision import NOTHING, Decision, Offer, Plan, Quote, Step
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Job
from tradewind.model.spec import Spec
from tradewind.model.units import OPEN
from tradewind.model.view import Event, View
from tradewind.store.store import Store


class Shop:
    """Sells one GPU for one dollar; fails to decide when told to."""

    def __init__(self) -> None:
        self.fails = True
        self.seen: list[str] = []

    def quote(self, view: View, asked: Job) -> Quote:
        offer = Offer(1.0, view.now_us + 250, plan(asked.index, run_at(view.now_us)))
        return Quote(asked.index, (offer,))

    def decide(self, view: View) -> Any:
        if self.fails:
            return "nonsense" if view.now_us else 1 / 0
        self.seen += [event.kind for event in view.events]
        return NOTHING

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def session(tmp_path: Path, policy: Any, *, pricer: bool, answer: Any = lambda quote: 0) -> LiveSession:
    given = scenario([job(0)], where=setup([node("a", 1)]))
    state = RunState(Ledger(given.setup), Audit(given.setup, measured=True), DiskJournal(), tolerant=True)
    spec = Spec(
        name="shop", summary="", factory=lambda s, p, r: policy, works=WORKS, triggers=ALL, pricer=pricer
    )
    return LiveSession(state, policy, spec, answer, Store.open(tmp_path / "store.db", write=True))


@pytest.mark.parametrize("pricer", [False, True])
def test_no_error_of_a_policy_ends_a_live_session(tmp_path: Path, pricer: bool) -> None:
    class Wrong(Shop):
        def decide(self, view: View) -> Any:
            raise InputError("found nonsense", where="somewhere")

        def quote(self, view: View, asked: Job) -> Quote:
            raise LookupFailed("node", "x", {})

    live = session(tmp_path, Wrong(), pricer=pricer)
    live.handle(0, (arrived(0, 0),))
    live.handle(100, (Event(100, "slot", -1, 1),))
    assert any("nonsense" in alarm["text"] for alarm in live.alarms) or pricer
    assert len(live.alarms) >= 1


HUGE = 10**400
UNLAWFUL = {
    "a node that does not exist": Decision((Plan(0, (Step(0, OPEN, (999,), (1,)),)),)),
    "more than there is": Decision((Plan(0, (Step(0, OPEN, (0,), (50,)),)),)),
    "numbers without end": Decision((Plan(0, (Step(0, HUGE, (0,), (HUGE,), (), (), (), float("inf")),)),)),
    "a cost that no float holds": Decision((Plan(0, (Step(0, OPEN, (0,), (1,), (), (), (), HUGE),)),)),
    "steps that are none": Decision((Plan(0, (("x",),)),)),  # type: ignore[arg-type]
    "plans that are none": Decision((7,)),  # type: ignore[arg-type]
    "a timer in the past": Decision(wake_us=-HUGE),
}


@pytest.mark.parametrize("name", UNLAWFUL)
def test_no_decision_ends_a_live_session(tmp_path: Path, name: str) -> None:
    class Wrong(Shop):
        def decide(self, view: View) -> Any:
            return UNLAWFUL[name]

    live = session(tmp_path, Wrong(), pricer=False)
    assert live.handle(0, (arrived(0, 0), Event(0, "slot", -1, 0))) == []
    live.handle(100, (Event(100, "slot", -1, 1),))
    assert sum("rejected a decision" in alarm["text"] for alarm in live.alarms) == 2
    assert live.violations == []


def test_a_policy_that_cannot_save_its_state_ends_nothing(tmp_path: Path) -> None:
    class Wrong(Shop):
        def save(self) -> bytes:
            if self.seen:
                raise OSError("no")
            return b""

    policy = Wrong()
    policy.fails = False
    live = session(tmp_path, policy, pricer=False)
    live.handle(0, (arrived(0, 0),))
    assert live.changed_state() is None
    assert [alarm["text"] for alarm in live.alarms] == ["the policy's state was not saved: no"]


def arrived(index: int, at_us: int) -> Event:
    return Event(at_us, "arrived", index, 0, job(index, arrive_us=at_us))


def test_a_sale_stands_when_the_policy_fails_to_decide_at_the_same_instant(tmp_path: Path) -> None:
    live = session(tmp_path, Shop(), pricer=True)
    (command,) = live.handle(0, [arrived(0, 0)])
    assert command.decision == Decision(plans=(plan(0, run_at(0)),))
    assert live.ledger.plan(0) is not None
    assert "ZeroDivisionError" in live.alarms[0]["text"]
    assert live.violations == []


@pytest.mark.parametrize("at_us", [0, 10])
def test_a_policy_that_failed_gets_the_events_again(tmp_path: Path, at_us: int) -> None:
    policy = Shop()
    live = session(tmp_path, policy, pricer=False)
    assert live.handle(at_us, [arrived(0, at_us)]) == []
    assert len(live.alarms) == 1
    policy.fails = False
    live.handle(at_us + 5, [Event(at_us + 5, "cancelled", 0, 0), arrived(1, at_us + 5)])
    assert policy.seen == ["arrived", "cancelled", "arrived"]
    assert live.violations == []


@pytest.mark.parametrize("answer", [7, -1, 0])
def test_a_customer_may_answer_anything(tmp_path: Path, answer: int) -> None:
    live = session(tmp_path, Shop(), pricer=True, answer=lambda quote: answer)
    (command,) = live.handle(0, [arrived(0, 0)])
    sold = answer == 0
    assert bool(command.decision.plans) == sold
    assert (live.ledger.plan(0) is not None) == sold
    assert live.violations == []
    rejected = [alarm for alarm in live.alarms if "rejected an accepted offer" in alarm["text"]]
    assert len(rejected) == (answer == 7)
    kinds = live.journal.tables["events"]["kind"]
    assert kinds[1] == {7: "refused", -1: "declined", 0: "accepted"}[answer]


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("at_us", "alarms"),
    [
        (340, []),
        (360, ["finished 0.00011 s later than promised"]),
        (2 * HOUR + 250, ["finished 02:00:00 later than promised"]),
    ],
)
def test_a_job_that_is_more_than_a_slot_late_raises_an_alarm(
    tmp_path: Path, at_us: int, alarms: list[str]
) -> None:
    policy = Shop()
    policy.fails = False
    live = session(tmp_path, policy, pricer=True)
    live.handle(0, [arrived(0, 0)])
    live.handle(at_us, [Event(at_us, "finished", 0, 0)])
    assert [alarm["text"] for alarm in live.alarms if "promised" in alarm["text"]] == alarms
