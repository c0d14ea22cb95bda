"""The offers a job got in a run and the one it took, or its invoice where it was charged after the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tradewind.engine.intervals import floats, ints
from tradewind.model.decision import Charge, Offer, Posted, Quote
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import clock


class MenuLine(NamedTuple):
    """One offer: completion, payment, and its value to the bidder in USD (None: the bid has no value by completion)."""

    finish_us: int
    delay_slots: int
    payment_usd: float
    worth_usd: float | None
    payoff_usd: float | None
    taken: bool


class OfferedMenu(NamedTuple):
    """All offers to a job in order, the reason if there are none, and the price list behind them."""

    job: str
    at_us: int
    offers: tuple[MenuLine, ...]
    refused: str
    why: str
    posted: Posted | None
    paid_usd: float | None
    """What was paid in the end, after any refund; None: nothing was bought, or all of it was paid back."""

    @property
    def lines(self) -> list[str]:
        """Text for people."""
        when = f"{self.job}, quoted at {clock(self.at_us)}"
        if not self.offers:
            return [f"{when}: no offer ({self.refused}: {self.why})" if self.why else f"{when}: no offer"]
        found = [f"{when}: the offers it could choose from"]
        found.append(
            f"{'':2}{'completion':>12}{'delay, slots':>14}{'payment USD':>14}{'worth USD':>12}{'payoff USD':>13}"
        )
        for line in self.offers:
            worth, payoff = ("–" if x is None else f"{x:.2f}" for x in (line.worth_usd, line.payoff_usd))
            found.append(
                f"{'> ' if line.taken else '  '}{clock(line.finish_us):>12}{line.delay_slots:>14}"
                f"{line.payment_usd:>14.2f}{worth:>12}{payoff:>13}"
            )
        if self.why:
            found.append(f"reasons of the price: {self.why}")
        taken = next((line for line in self.offers if line.taken), None)
        if taken is None:
            found.append("no offer was taken")
        elif self.paid_usd is None:
            found.append("> was taken; a failure kept the job from finishing, and the payment was refunded")
        elif self.paid_usd < taken.payment_usd:
            found.append("> was taken; after a failure the job finished later, and the payment was refunded")
        else:
            found.append("> was taken; its plan and payment are fixed")
        return found

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        posted = None if self.posted is None else self.posted._asdict()
        return {**self._asdict(), "offers": [line._asdict() for line in self.offers], "posted": posted}


class Invoice(NamedTuple):
    """What a job was charged after the run, and the value that its bid states for this completion, in USD."""

    job: str
    finish_us: int
    delay_slots: int
    worth_usd: float
    charged_usd: float
    why: str

    @property
    def lines(self) -> list[str]:
        """Text for people."""
        return [
            f"{self.job}: complete at {clock(self.finish_us)}, {self.delay_slots} slots after its arrival; its bid "
            f"values this at {self.worth_usd:.2f} USD",
            f"charged {self.charged_usd:.2f} USD: {self.why}",
        ]

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return self._asdict()


def invoice_of(scenario: Scenario, run: Run, job_id: str, charges: Sequence[Charge]) -> Invoice:
    """Invoice of a job; charges: all charges of the run."""
    index = job_index(scenario, job_id)
    for charge in charges:
        job = scenario.jobs[index]
        if charge.job == index and job.utility is not None:
            finish = int(ints(run, "outcomes", "finish_us")[ints(run, "outcomes", "job") == index][0])
            delay = (finish - 1) // scenario.setup.slot_us - job.arrive_us // scenario.setup.slot_us
            return Invoice(job_id, finish, delay, job.utility.value(delay), charge.usd, charge.why)
    raise InputError(
        f"job {job_id!r} was not charged: it is not complete, and {run.policy} charges complete jobs only"
    )


def job_index(scenario: Scenario, job_id: str) -> int:
    """Index of the job of that id, or an error that suggests the nearest one."""
    index = next((job.index for job in scenario.jobs if job.id == job_id), None)
    if index is None:
        raise LookupFailed("job", job_id, [job.id for job in scenario.jobs])
    return index


def check_slot(scenario: Scenario, slot: int) -> None:
    """An error that names the slots of a scenario, where it has none of that number."""
    last = scenario.setup.slots - 1
    if not 0 <= slot <= last:
        raise InputError(f"found slot {slot}; allowed are 0 to {last}")


def menu_of(scenario: Scenario, run: Run, job_id: str, quotes: list[tuple[int, Quote, int]]) -> OfferedMenu:
    """Menu of a job; quotes: (time, quote, number of the offer taken) of the run."""
    index = job_index(scenario, job_id)
    for at_us, quote, taken in quotes:
        if quote.job == index:
            offers = tuple(_line(scenario, index, offer, n == taken) for n, offer in enumerate(quote.offers))
            paid = dict(zip(ints(run, "payments", "job"), floats(run, "payments", "usd"), strict=True))
            usd = float(paid[index]) if index in paid else None
            return OfferedMenu(job_id, at_us, offers, quote.refused, quote.why, quote.posted, usd)
    raise InputError(f"job {job_id!r} got no quote: {run.policy} makes no offers")


def _line(scenario: Scenario, index: int, offer: Offer, taken: bool) -> MenuLine:
    job, customer, slot_us = scenario.jobs[index], scenario.customers[index], scenario.setup.slot_us
    delay = (offer.finish_us - 1) // slot_us - job.arrive_us // slot_us
    utility = customer.valuation or job.utility
    worth = utility.value(delay) if utility is not None and utility.of == "delay_slots" else None
    payoff = None if worth is None else worth - offer.payment_usd
    return MenuLine(offer.finish_us, delay, offer.payment_usd, worth, payoff, taken)
