"""Held quotes in the audit: what they claim, when they expire, and that an answer buys what was offered."""

from __future__ import annotations

from tradewind.audit.capacity import CapacityLedger, Claim
from tradewind.model.decision import HeldQuote, Offer, Step
from tradewind.model.job import Job
from tradewind.model.units import OPEN


class HeldQuotes:
    """The open quote of each job and what it claims: per row and slot, the most that one of its offers needs."""

    def __init__(self, capacity: CapacityLedger) -> None:
        self._capacity = capacity
        self.of_job: dict[int, HeldQuote] = {}
        self._claims: dict[int, list[Claim]] = {}
        self.made: dict[int, tuple[int, int]] = {}
        """Id -> job and expiry of every quote whose expiry has not passed, open or not."""
        self.due_us = OPEN
        """When the next quote expires."""

    def open(self, held: HeldQuote, job: Job) -> None:
        """Enter what a quote claims."""
        most: dict[tuple[int, int], int] = {}
        for offer in held.quote.offers:
            total: dict[tuple[int, int], int] = {}
            for step in offer.plan.steps:
                for row, slot, amount in self._capacity.claims(job, step):
                    total[row, slot] = total.get((row, slot), 0) + amount
            for key, amount in total.items():
                most[key] = max(most.get(key, 0), amount)
        self.of_job[job.index] = held
        self.made = {id_: row for id_, row in self.made.items() if row[1] >= held.at_us}
        self.made[held.id] = (job.index, held.expires_us)
        self._claims[job.index] = [(row, slot, amount) for (row, slot), amount in most.items()]
        self._capacity.add(self._claims[job.index])
        self.due_us = min(self.due_us, held.expires_us)

    def release(self, job: int) -> list[Claim]:
        """Remove and return what the quote of a job claims; it stays open."""
        claims = self._claims.pop(job, [])
        self._capacity.remove(claims)
        return claims

    def restore(self, job: int, claims: list[Claim]) -> None:
        """Undo `release`."""
        self._claims[job] = claims
        self._capacity.add(claims)

    def count(self, capacity: CapacityLedger) -> None:
        """Enter all claims in another ledger."""
        for claims in self._claims.values():
            capacity.add(claims)

    def close(self, job: int) -> None:
        """Remove a quote and what it claims, if the job has one."""
        if self.of_job.pop(job, None) is not None:
            self.release(job)
            self.due_us = min((held.expires_us for held in self.of_job.values()), default=OPEN)


def differs(quoted: Offer, sold: Offer, late_us: int) -> str:
    """How an offer that is sold `late_us` after the quote differs from the one quoted, or "".

    Only a plan without fixed times moves: it begins now, and completes as much later.
    """
    moves = all(step.until_us == OPEN for step in quoted.plan.steps)
    shift = late_us if moves else 0
    if sold.payment_usd != quoted.payment_usd or sold.unit_usd != quoted.unit_usd:
        return f"the price is {sold.payment_usd} USD; the quote said {quoted.payment_usd}"
    if sold.finish_us != quoted.finish_us + shift:
        return (
            f"completion is promised for {sold.finish_us} us; by the quote it is {quoted.finish_us + shift}"
        )
    if [_shape(step, 0) for step in sold.plan.steps] != [_shape(step, shift) for step in quoted.plan.steps]:
        return "the plan is not the one quoted"
    return ""


def _shape(step: Step, shift_us: int) -> tuple[object, ...]:
    return (step.from_us + shift_us, *step[1:])
