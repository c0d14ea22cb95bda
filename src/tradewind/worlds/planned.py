"""A policy that carries out an offline plan, so that what a solver found becomes an audited run like any other."""

from __future__ import annotations

from bisect import bisect_right

from tradewind.model.decision import NOTHING, Decision, Quote
from tradewind.model.job import Job
from tradewind.model.result import Offline
from tradewind.model.spec import Spec
from tradewind.model.view import View

WORKS = frozenset(("fixed", "stream", "dataset", "rounds", "rounds/machines"))


class Planned:
    """Gives each instant the plans that are due, and each customer the offer that was planned for it."""

    def __init__(self, plan: Offline) -> None:
        self._plan = plan
        self._instants = sorted(plan.plans)

    def decide(self, view: View) -> Decision:
        """The plans of this instant; wakes at the next one."""
        after = bisect_right(self._instants, view.now_us)
        wake_us = self._instants[after] if after < len(self._instants) else None
        plans = self._plan.plans.get(view.now_us, ())
        return Decision(plans=tuple(plans), wake_us=wake_us) if plans or wake_us is not None else NOTHING

    def quote(self, view: View, job: Job) -> Quote:
        """The planned offer."""
        offer = self._plan.offers.get(job.index)
        return Quote(job.index, refused="capacity") if offer is None else Quote(job.index, (offer,))

    def save(self) -> bytes:
        """Nothing: what is due follows from the time."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing was saved."""


def planned(name: str, plan: Offline) -> Spec:
    """The policy of a plan; a market's where the plan has offers."""
    return Spec(
        name=name,
        summary=__doc__ or "",
        factory=lambda setup, params, random: Planned(plan),
        works=WORKS,
        pricer=bool(plan.offers),
        binding=bool(plan.offers),
    )
