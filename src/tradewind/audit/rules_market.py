"""Rules on markets: offers, promised completion, the customer's choice, charges."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, isfinite

from tradewind.audit.record import Record
from tradewind.audit.work import WorkLedger
from tradewind.model.decision import Charge, Offer, Quote
from tradewind.model.job import DECLARED
from tradewind.model.result import Violation
from tradewind.model.setup import Setup


def offer_is_sound(setup: Setup, record: Record, offer: Offer) -> Violation | None:
    """payment >= 0, finite, and = sum_r p_r * d_r where unit prices are given (DPS (2), (2i)); the plan is the job's."""
    job = record.job
    if not isfinite(offer.payment_usd) or offer.payment_usd < 0:
        return Violation(
            "market.payment",
            job.id,
            detail=f"the payment is {offer.payment_usd} USD; it must be finite and not negative",
        )
    if offer.plan.job != job.index or not offer.plan.steps:
        return Violation(
            "market.plan",
            job.id,
            detail="an offer must contain the plan that it sells, for this job and with steps",
        )
    if type(offer.finish_us) is not int or offer.finish_us <= job.arrive_us:
        return Violation(
            "market.promise",
            job.id,
            detail=f"completion is promised for {offer.finish_us!r} us; the job arrived at {job.arrive_us}",
        )
    if offer.unit_usd:
        demand: dict[int, float] = {}
        for resource, milli in job.worker:
            demand[resource] = demand.get(resource, 0.0) + milli / 1000 * job.workers_max
        for resource, milli in job.server:
            demand[resource] = demand.get(resource, 0.0) + milli / 1000 * job.servers
        total = sum(usd * demand.get(resource, 0.0) for resource, usd in offer.unit_usd)
        if any(usd < 0 or not isfinite(usd) for _, usd in offer.unit_usd) or not isclose(
            total, offer.payment_usd, rel_tol=1e-9, abs_tol=1e-9
        ):
            detail = f"unit prices add up to {total} USD, the payment is {offer.payment_usd}"
            return Violation("market.unit_prices", job.id, amount=total - offer.payment_usd, detail=detail)
    return None


def promise(setup: Setup, work: WorkLedger, record: Record, offer: Offer, now_us: int) -> Violation | None:
    """The plan finishes the job at finish_us, not earlier and not later (Eris (2a), (2f))."""
    if record.total is None:
        return None
    kept = (record.steps, record.since_us, record.customer)
    record.steps, record.since_us = offer.plan.steps, now_us
    record.customer = replace(
        record.customer, pace_milli=DECLARED
    )  # nobody can promise more than is declared
    due = work.finish_us(record)
    record.steps, record.since_us, record.customer = kept
    if due != offer.finish_us:
        return Violation(
            "market.promise",
            record.job.id,
            detail=f"completion is promised for {offer.finish_us} us; the plan finishes the job at {due}",
        )
    return None


def bought_plan_stays(record: Record, now_us: int) -> Violation | None:
    """Where sales are binding, a plan that was bought is not replaced unless a failure cancelled it."""
    if record.paid is None or all(step.until_us <= now_us for step in record.steps):
        return None
    return Violation("market.binding", record.job.id, detail="replaces a plan that was bought")


def owed_usd(record: Record) -> float | None:
    """What a customer who bought pays when its job is over; None: nothing was bought, or nothing was delivered.

    Where a failure cancelled its plan: nothing unless the job finishes, and, where its bid falls with the delay, nothing
    unless it finishes by the promised time. The bid does not change the sum, so no other bid pays back more.
    """
    if record.paid is None or record.promise_us < 0 or record.cancelled_slot < 0:
        return record.paid  # not interrupted, or charged after the run, without a promise
    if record.state != "finished":
        return None
    bid = record.job.utility
    late = record.finish_us > record.promise_us
    return 0.0 if late and bid is not None and bid.of == "delay_slots" else record.paid


def choice(setup: Setup, record: Record, quote: Quote, taken: int) -> Violation | None:
    """The customer took the offer with the largest payoff; none only if none has payment <= budget and payoff > 0."""
    gains = [_gain(setup, record, offer) for offer in quote.offers]
    good = [g for g in gains if g is not None]
    if taken < 0:
        if good:
            return Violation(
                "market.choice",
                record.job.id,
                amount=max(good),
                detail="declined an offer that it should have taken",
            )
        return None
    mine = gains[taken] if taken < len(gains) else None
    if mine is None:
        return Violation("market.choice", record.job.id, detail="took an offer above its budget or valuation")
    if max(good) > mine:
        return Violation(
            "market.choice",
            record.job.id,
            amount=max(good) - mine,
            detail="took an offer that is not its best",
        )
    return None


def _gain(setup: Setup, record: Record, offer: Offer) -> float | None:
    """Payoff of an offer, None where the customer would not take it."""
    customer, job = record.customer, record.job
    if customer.budget_usd is not None and offer.payment_usd > customer.budget_usd:
        return None
    worth = customer.valuation if customer.valuation is not None else job.utility
    if worth is None or worth.of != "delay_slots":
        return (customer.budget_usd or 0.0) - offer.payment_usd
    slots = (offer.finish_us - 1) // setup.slot_us - job.arrive_us // setup.slot_us
    payoff = worth.value(slots) - offer.payment_usd
    return payoff if payoff > 0 else None


def charge_is_due(setup: Setup, record: Record | None, charge: Charge) -> Violation | None:
    """A charge after the run: for a complete job that has not paid, at most the value that its bid states."""
    if record is None or record.state != "finished" or record.paid is not None:
        name = "" if record is None else record.job.id
        detail = (
            f"job {charge.job!r} cannot be charged: it does not exist, is not complete or has already paid"
        )
        return Violation("market.charge", name, detail=detail)
    job, bid = record.job, record.job.utility
    delay = (record.finish_us - 1) // setup.slot_us - job.arrive_us // setup.slot_us
    worth = max(0.0, bid.value(delay)) if bid is not None and bid.of == "delay_slots" else 0.0
    usd = charge.usd
    if not isinstance(usd, float) or not isfinite(usd) or usd < 0 or usd > worth + 1e-9 * max(1.0, worth):
        detail = f"charged {usd!r} USD; its bid values this completion at {worth}"
        return Violation(
            "market.charge", job.id, amount=usd if isinstance(usd, float) else 0.0, detail=detail
        )
    return None
