"""Held quotes: the terms on which they are made, what they hold, and the offer that a late answer buys."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tradewind.model.decision import HeldQuote, Offer, Plan, Quote
from tradewind.model.job import Job
from tradewind.model.units import OPEN


def at_once(job: Job) -> int:
    """The customer leaves its answer with the job, as in the papers."""
    del job
    return 0


class QuoteTerms(NamedTuple):
    """How long quotes stay open.

    hold_us     microseconds that the customer of a job may think; 0: it answers at once
    per_tenant  quotes that one tenant may have open; further jobs of it wait for their quote
    """

    hold_us: Callable[[Job], int] = at_once
    per_tenant: int = 4


class Quotes:
    """Open quotes by id and by job, and jobs that wait to be quoted, in order of arrival."""

    def __init__(self) -> None:
        self.open: dict[int, HeldQuote] = {}
        self.waiting: list[int] = []
        self.next_id = 0
        self._of_job: dict[int, int] = {}

    @property
    def idle(self) -> bool:
        """Whether no quote is open and no job waits for one."""
        return not self.open and not self.waiting

    def add(self, quote: Quote, at_us: int, expires_us: int) -> HeldQuote:
        """Open a quote under the next id."""
        return self.put(HeldQuote(self.next_id, quote, at_us, expires_us))

    def put(self, held: HeldQuote) -> HeldQuote:
        """Open a quote that has its id."""
        self.open[held.id] = held
        self._of_job[held.quote.job] = held.id
        self.next_id = max(self.next_id, held.id + 1)
        return held

    def of_job(self, job: int) -> HeldQuote | None:
        """The open quote of a job."""
        return self.open.get(self._of_job.get(job, -1))

    def remove(self, held: HeldQuote) -> None:
        """Close a quote."""
        del self.open[held.id]
        del self._of_job[held.quote.job]

    def quoted(self, job: int) -> None:
        """A job no longer waits for its quote."""
        if job in self.waiting:
            self.waiting.remove(job)

    def forget(self, job: int) -> None:
        """Drop what is known of a job that is over."""
        if (held := self.of_job(job)) is not None:
            self.remove(held)
        self.quoted(job)


def sold(held: HeldQuote, at_us: int) -> Quote:
    """The quote as an answer at `at_us` buys it: plans without fixed times begin now and end as much later."""
    late = at_us - held.at_us
    if not late:
        return held.quote
    return held.quote._replace(offers=tuple(_later(offer, late) for offer in held.quote.offers))


def _later(offer: Offer, late_us: int) -> Offer:
    steps = offer.plan.steps
    if any(step.until_us != OPEN for step in steps):
        return offer
    moved = tuple(step._replace(from_us=step.from_us + late_us) for step in steps)
    return offer._replace(finish_us=offer.finish_us + late_us, plan=Plan(offer.plan.job, moved))
