"""Rules of the market: offers, promises, and the customer's choice."""

from __future__ import annotations

from math import isclose, isfinite

from tradewind.audit.record import Record
from tradewind.audit.work import WorkBook
from tradewind.model.decision import Charge, Offer, Quote
from tradewind.model.job import Dataset
from tradewind.model.result import Violation
from tradewind.model.setup import Setup


def offer_is_sound(setup: Setup, record: Record, offer: Offer) -> Violation | None:
    """payment >= 0, finite, and = sum_r p_r * d_r where unit prices are given (DPS (2), (2i)); the plan is the job's."""
    job = record.job
    if not isfinite(offer.payment_usd) or offer.payment_usd < 0:
        return Violation("market.payment", job.id, detail=f"the payment is {offer.payment_usd} USD")
    if offer.plan.job != job.index or not offer.plan.steps:
        return Violation(
            "market.plan", job.id, detail="an offer must carry the plan that would be carried out"
        )
    if type(offer.finish_us) is not int or offer.finish_us <= job.arrive_us:
        return Violation(
            "market.promise",
            job.id,
            detail=f"promised for {offer.finish_us!r} us; it came at {job.arrive_us}",
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


def promise(setup: Setup, work: WorkBook, record: Record, offer: Offer, now_us: int) -> Violation | None:
    """The plan finishes the job by finish_us: accepted jobs really finish (Eris (2a), (2f))."""
    if record.total is None:
        return None
    kept = (record.steps, record.since_us)
    record.steps, record.since_us = offer.plan.steps, now_us
    due = work.finish_us(record)
    record.steps, record.since_us = kept
    if due is None or due > offer.finish_us:
        return Violation(
            "market.promise",
            record.job.id,
            detail=f"promised for {offer.finish_us} us; the plan ends at {due}",
        )
    if isinstance(record.job.work, Dataset) and due != offer.finish_us:
        return Violation(
            "market.promise", record.job.id, detail=f"promised for {offer.finish_us} us; it is done at {due}"
        )
    return None


def bought_plan_stays(record: Record, now_us: int) -> Violation | None:
    """Where sales are binding, a plan that was bought is carried out as it was offered, unless a failure cancelled it."""
    if record.paid is None or all(step.until_us <= now_us for step in record.steps):
        return None
    return Violation("market.binding", record.job.id, detail="a plan that was bought is replaced")


def choice(setup: Setup, record: Record, quote: Quote, taken: int) -> Violation | None:
    """The customer took the best offer for it, or none because none was good: payment <= budget, payoff > 0."""
    gains = [_gain(setup, record, offer) for offer in quote.offers]
    good = [g for g in gains if g is not None]
    if taken < 0:
        if good:
            return Violation(
                "market.choice", record.job.id, amount=max(good), detail="declined an offer that was good"
            )
        return None
    mine = gains[taken] if taken < len(gains) else None
    if mine is None:
        return Violation("market.choice", record.job.id, detail="took an offer beyond its means")
    if max(good) > mine:
        return Violation(
            "market.choice", record.job.id, amount=max(good) - mine, detail="took not the best offer"
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
    """Charged afterwards: a job that is complete and has not paid, at most what its bid says that this is worth."""
    if record is None or record.state != "finished" or record.paid is not None:
        name = "" if record is None else record.job.id
        detail = f"job {charge.job!r} cannot be charged: it is not complete, not there or has paid already"
        return Violation("market.charge", name, detail=detail)
    job, bid = record.job, record.job.utility
    delay = (record.finish_us - 1) // setup.slot_us - job.arrive_us // setup.slot_us
    worth = max(0.0, bid.value(delay)) if bid is not None and bid.of == "delay_slots" else 0.0
    usd = charge.usd
    if not isinstance(usd, float) or not isfinite(usd) or usd < 0 or usd > worth + 1e-9 * max(1.0, worth):
        detail = f"charged {usd!r} USD; its bid says that completing then is worth {worth}"
        return Violation(
            "market.charge", job.id, amount=usd if isinstance(usd, float) else 0.0, detail=detail
        )
    return None
