"""How the customers of a scenario answer offers."""

from __future__ import annotations

from tradewind.model.decision import Quote
from tradewind.model.job import Customer, Job


def choose(slot_us: int, job: Job, customer: Customer, quote: Quote) -> int:
    """The customer's choice: the offer within budget with the largest surplus, the first on a tie; -1 for none."""
    best, choice = 0.0, -1
    for number, offer in enumerate(quote.offers):
        if customer.budget_usd is not None and offer.payment_usd > customer.budget_usd:
            continue
        valuation = customer.valuation or job.utility
        if valuation is not None and valuation.of == "delay_slots":
            delay = (offer.finish_us - 1) // slot_us - job.arrive_us // slot_us
            gain = valuation.value(delay) - offer.payment_usd
            if gain <= 0:
                continue
        else:
            gain = (customer.budget_usd or 0.0) - offer.payment_usd
        if choice < 0 or gain > best:
            best, choice = gain, number
    return choice
