"""Rules on held quotes: they expire when they are due, and an answer buys what was quoted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import decision, job, plan, run_at, scenario, setup
from tests.builders import node as site
from tradewind.audit import Audit
from tradewind.model.decision import HeldQuote, Offer, Plan, Quote
from tradewind.model.view import Event


def audit_with_a_quote(**change: Any) -> tuple[Audit, HeldQuote]:
    given = scenario([job(0)], where=setup([site("n0", 1)]))
    audit = Audit(given.setup)
    assert audit.take((Event(0, "arrived", 0, 0, given.jobs[0]),)) == ()
    quote = Quote(0, (Offer(1.0, 250, Plan(0, (run_at(0),))),))
    assert audit.check_quote(0, quote) == ()
    held = HeldQuote(0, quote, 0, 50)._replace(**change)
    audit.hold(held)
    assert audit.take((Event(0, "quoted", 0, held.expires_us),)) == ()
    return audit, held


def test_the_audit_finds_an_expiry_that_is_not_reported_or_comes_at_another_time() -> None:
    audit, _ = audit_with_a_quote()
    assert next(v.rule for v in audit.take((Event(60, "slot", -1, 0),))) == "time.quote"
    audit, _ = audit_with_a_quote()
    assert [v.rule for v in audit.take((Event(40, "expired", 0, 0),))] == ["time.quote"]


@pytest.mark.parametrize(
    "sold",
    [
        Offer(0.5, 260, Plan(0, (run_at(10),))),
        Offer(1.0, 270, Plan(0, (run_at(10),))),
        Offer(1.0, 260, Plan(0, (run_at(20),))),
        Offer(1.0, 260, Plan(0, (run_at(10, workers=(0,)),))),
    ],
    ids=["another price", "a later completion", "another start", "other workers"],
)
def test_the_audit_finds_a_sale_that_is_not_what_was_quoted(sold: Offer) -> None:
    audit, held = audit_with_a_quote()
    assert audit.take((Event(10, "answered", 0, 0, 0),)) == ()
    assert [v.rule for v in audit.accept(10, held.quote._replace(offers=(sold,)), 0)] == ["market.sale"]


def test_the_audit_finds_a_sale_after_the_expiry_an_unheard_answer_and_a_plan_for_a_quoted_job() -> None:
    audit, held = audit_with_a_quote()
    moved = held.quote._replace(offers=(Offer(1.0, 310, Plan(0, (run_at(60),))),))
    assert [v.rule for v in audit.accept(60, moved, 0)] == ["market.sale"]
    audit, _ = audit_with_a_quote()
    assert audit.take((Event(10, "answered", 0, 0, 0),)) == ()
    assert next(v.rule for v in audit.take((Event(11, "slot", -1, 0),))) == "time.answer"
    audit, held = audit_with_a_quote()
    assert [v.rule for v in audit.check(10, decision(plan(0, run_at(10))))] == ["plan.job"]
    assert audit.recount() == ()


def test_the_audit_gives_a_held_room_to_nobody_else() -> None:
    audit, _ = audit_with_a_quote()
    other = job(1, arrive_us=5)
    assert audit.take((Event(5, "arrived", 1, 0, other),)) == ()
    rival = Quote(1, (Offer(1.0, 255, Plan(1, (run_at(5),))),))
    assert [v.rule for v in audit.check_quote(5, rival)] == ["capacity.node"]
