"""Eris as printed: prices (6) with gamma 1000 and no floor, Algorithms 1 to 3 with their errors.

`eris-paper` offers what the printed search chose, made feasible: the printed workers, a server that fits, every chunk
trained once, and the payment for that. If this is impossible or costs more than it is worth, the job is refused with that
reason. `eris-printed` repairs nothing: it runs the feasible part of the printed schedule without payments, and a job
whose data was counted twice never finishes (jobs_completed / jobs_accepted).

The text can be read in several ways (kernels/paper.py); `data`, `server` and `pairs` choose. The defaults earn the most
once schedules are made feasible; `eris-printed` finishes the most jobs with remaining, reserved and both.

`bases=bids` derives the bases of the prices from the bids, as Sec. IV-B says (`least_bases`). The section has a base that
covers every bid, which nobody knows beforehand; here it covers those that arrived before, so no bid sets its own prices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import NOTHING, Decision, Quote, Verdict
from tradewind.model.errors import InputError
from tradewind.model.job import Dataset, Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import GB, MILLI
from tradewind.model.view import View
from tradewind.systems.eris.kernels.paper import PrintedSchedule, printed
from tradewind.systems.eris.kernels.printed_slot import Reading
from tradewind.systems.eris.kernels.repair import carried_out, repair
from tradewind.systems.eris.kernels.task import Market, Menu, TrainingTask
from tradewind.systems.eris.policy.posted import ERIS, Seller, floor_of, too_late, unsupported_reason
from tradewind.systems.eris.shared.market import CapacityLedger, PostedPrices, plan_of, task_of, worth_of

INFEASIBLE = "the schedule of Algorithms 2 and 3 is not feasible"
DEARER = "the schedule of Algorithms 2 and 3 costs more than they counted, and more than it is worth"
UNDONE = "the schedule of Algorithms 2 and 3 is over and leaves chunks untrained"

FIRST_BASE, MOST_BASE = 2.0, 1e12
"""The least base that Sec. IV-B allows, and the largest here."""
MOST_CHUNKS = 5000
"""The printed program takes time quadratic in a job's chunks; larger bids are refused."""


def too_large(job: Job) -> str:
    """Reason why the printed program refuses a bid, or ""."""
    assert isinstance(job.work, Dataset)
    over = job.work.total > MOST_CHUNKS
    return f"has {job.work.total} chunks; the printed program takes up to {MOST_CHUNKS}" if over else ""


def least_bases(ledger: CapacityLedger, job: Job, unit: str = "gb") -> tuple[float, float]:
    """Sec. IV-B: gamma - 1 of resources and of bandwidth is at least worth / use of a bid, and at least 1.

    The use is the least that training takes: units of all resources added up, times slots (every worker-slot and one slot of
    the server); GB or MB for the data that is not beside the server, moved or trained by workers there, whichever is less.
    A bid whose data is all at one site need not use bandwidth, and no base covers it.
    """
    task, worth = task_of(ledger, job), 0.0 if job.utility is None else job.utility.value(0)
    workers = -(-task.data * task.need // task.rate)
    units = (-(-task.data.sum() * task.need // task.rate) * task.worker.sum() + task.server.sum()) / MILLI
    per_site = np.minimum(task.data * task.chunk_bytes, workers * task.traffic_bytes)
    amount = float(per_site.sum() - per_site.max()) / (GB if unit == "gb" else GB // 1000)
    bases = [1.0 + max(1.0, worth / use) if use > 0 else FIRST_BASE for use in (float(units), amount)]
    return min(bases[0], MOST_BASE), min(bases[1], MOST_BASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How the printed text is read.

    gamma, gamma_transfer  bases of the prices (6) of resources and of bandwidth
    unit                   bandwidth is priced per GB (our convention) or per MB (as printed)
    reading                what M is, whether room for the server is kept, which pairs are listed
    learns                 both bases rise so that they cover every bid so far
    """

    gamma: float
    gamma_transfer: float
    unit: str
    reading: Reading
    learns: bool = False

    @property
    def listed(self) -> bool:
        """Whether a price list, which has one base and prices bandwidth per GB, can state the prices."""
        return self.unit == "gb" and self.gamma == self.gamma_transfer and not self.learns

    def after(self, ledger: CapacityLedger, job: Job) -> Terms:
        """The terms for those who bid after this job."""
        if not self.learns:
            return self
        gamma, transfer = least_bases(ledger, job, self.unit)
        return replace(self, gamma=max(self.gamma, gamma), gamma_transfer=max(self.gamma_transfer, transfer))

    def save(self) -> list[float]:
        return [self.gamma, self.gamma_transfer]

    def restored(self, state: list[float]) -> Terms:
        """The terms with bases from saved state."""
        return replace(self, gamma=state[0], gamma_transfer=state[1])

    def market(self, ledger: CapacityLedger, job: Job, first: int) -> Market:
        """Prices (6) and free capacity from slot `first` on."""
        floor = np.zeros(len(ledger.setup.resources) + 1)
        found = ledger.market(job, first, PostedPrices(gamma=self.gamma, floor=floor))
        byte_usd = found.byte_usd
        if self.gamma_transfer != self.gamma:
            prices = PostedPrices(gamma=self.gamma_transfer, floor=floor)
            byte_usd = ledger.market(job, first, prices).byte_usd
        return found._replace(byte_usd=byte_usd * (1000 if self.unit == "mb" else 1))

    def search(self, task: TrainingTask, market: Market, worth: Floats) -> PrintedSchedule:
        """Algorithm 2."""
        return printed(task, market, worth, self.reading)


class PaperSeller(Seller):
    """Algorithm 1 with one offer: the repaired schedule of the printed search."""

    def __init__(self, setup: Setup, terms: Terms) -> None:
        super().__init__(setup, terms.gamma, floor_of(setup, "none", 0.0), flat=False)
        self._terms, self._why = terms, ""

    def quote(self, view: View, job: Job) -> Quote:
        self._why = ""
        if why := too_large(job):
            return Quote(job.index, refused="unsupported", why=f"{job.id} {why}")
        answer = super().quote(view, job)
        if not self._terms.listed:
            answer = answer._replace(posted=None)
        if answer.offers or not self._why:
            return answer
        return Quote(job.index, refused="capacity" if self._why == INFEASIBLE else "price", why=self._why)

    @property
    def bases(self) -> tuple[float, float]:
        """Bases of resources and of bandwidth now."""
        return self._terms.gamma, self._terms.gamma_transfer

    def _learn(self, job: Job) -> None:
        self._terms = self._terms.after(self.ledger, job)

    def save(self) -> bytes:
        return json.dumps({"terms": self._terms.save(), "seller": super().save().decode()}).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self._terms = self._terms.restored(data["terms"])
        super().restore(data["seller"].encode())

    def _menu(self, view: View, job: Job, first: int, prices: PostedPrices) -> Menu:
        market = self._terms.market(self.ledger, job, first)
        task, worth = task_of(self.ledger, job), worth_of(view.setup, job, first, len(market.room))
        found = self._terms.search(task, market, worth)
        real = repair(task, market, found)
        gain = float(worth[real.slots[-1]]) - real.usd if real is not None else 0.0
        if found.payoff > 0 and gain <= 0:
            self._why = DEARER if real is not None else INFEASIBLE
        reach = np.array([found.usd if found.payoff > 0 else 0.0 if found.possible else np.inf])
        offers = (real,) if real is not None and gain > 0 else ()
        return Menu(offers=offers, bound_usd=reach, payoff=max(gain, 0.0), bound=found.payoff)


class PrintedPolicy:
    """Algorithm 1 without repair: on arrival reserves the feasible part of the printed schedule."""

    def __init__(self, setup: Setup, terms: Terms) -> None:
        self.ledger, self._terms = CapacityLedger(setup), terms
        self._judged: set[int] = set()

    def decide(self, view: View) -> Decision:
        self.ledger.observe(view)
        self.ledger.clear_window()
        self._judged &= view.active.keys()
        first, plans = -(-view.now_us // view.setup.slot_us), []
        verdicts = [Verdict(index, UNDONE) for index in self._undone(view)]
        for index, job in view.active.items():
            if index in self._judged:
                continue
            self._judged.add(index)
            late = too_late(view.setup) if first >= self.ledger.end else ""
            if why := unsupported_reason(view.setup, job) or too_large(job) or late:
                verdicts.append(Verdict(index, why))
                continue
            market, task = self._terms.market(self.ledger, job, first), task_of(self.ledger, job)
            found = self._terms.search(task, market, worth_of(view.setup, job, first, len(market.room)))
            self._terms = self._terms.after(self.ledger, job)
            if found.payoff <= 0:
                verdicts.append(Verdict(index, "no completion time is worth what it costs"))
                continue
            plan = plan_of(self.ledger, job, carried_out(task, market, found)[0], first)
            if plan.steps:
                self.ledger.reserve(job, plan)
                plans.append(plan)
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _undone(self, view: View) -> list[int]:
        """Jobs whose schedule is over and that nobody will finish; without a window they stay until the horizon."""
        if view.setup.window_slots is None:
            return []
        plans, now = self.ledger.plans, view.now_us
        running = {index for index, booked in plans.items() if booked.plan.steps[-1].until_us > now}
        return sorted(self._judged - running)

    def save(self) -> bytes:
        judged, terms = sorted(self._judged), self._terms.save()
        return json.dumps({"ledger": self.ledger.save(), "judged": judged, "terms": terms}).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self._terms = self._terms.restored(data["terms"])
        self.ledger.restore(data["ledger"])
        self._judged = set(data["judged"])


def _terms(name: str, params: Mapping[str, Any]) -> Terms:
    gamma, transfer = params["gamma"], params["gamma_transfer"] or params["gamma"]
    if transfer < 1.0:
        raise InputError(
            f"found {transfer}; allowed is 0 (as gamma), or 1 to {MOST_BASE:g}",
            where=f"{name}.gamma_transfer",
        )
    reading = Reading(
        remaining=params["data"] == "remaining",
        reserved=params["server"] == "reserved",
        both=params["pairs"] == "both",
    )
    learns = params["bases"] == "bids"
    if learns:
        gamma = transfer = FIRST_BASE
    return Terms(
        gamma=gamma, gamma_transfer=transfer, unit=params["transfer_unit"], reading=reading, learns=learns
    )


def _paper(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> PaperSeller:
    return PaperSeller(setup, _terms("eris-paper", params))


def _printed(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> PrintedPolicy:
    return PrintedPolicy(setup, _terms("eris-printed", params))


PARAMS = {
    "gamma": Param(default=1000.0, doc="base of the price functions (6)", least=1, most=MOST_BASE),
    "gamma_transfer": Param(
        default=0.0,
        doc="base of the price of bandwidth, if it is another (1 or more); 0: gamma",
        least=0,
        most=MOST_BASE,
    ),
    "bases": Param(
        default="given",
        doc="both bases: given (the two above) or bids (as large as Sec. IV-B asks for the bids that arrived before)",
        choices=("given", "bids"),
    ),
    "transfer_unit": Param(
        default="gb", doc="unit of the price of bandwidth; the paper uses mb", choices=("gb", "mb")
    ),
    "data": Param(
        default="all",
        doc="M of (10) and line 14: remaining (what earlier slots leave, Table I) or all (in every slot, Theorem 6)",
        choices=("remaining", "all"),
    ),
    "server": Param(
        default="unchecked",
        doc="room for the server: reserved (in each site, Sec. IV-D) or unchecked (as in (10) and line 14)",
        choices=("reserved", "unchecked"),
    ),
    "pairs": Param(
        default="numbered",
        doc="line 2 lists a pair of sites: both (in the direction that saves) or numbered (from the smaller number)",
        choices=("both", "numbered"),
    ),
}
PAPER = replace(
    ERIS,
    name="eris-paper",
    summary="Eris as printed (Algorithms 1-3); each schedule is made feasible or the job is refused",
    factory=_paper,
    params=PARAMS,
    serial_quotes=False,  # its prices rise with every sale, so hardly two quotes could be open at once
)
PRINTED = replace(
    PAPER,
    name="eris-printed",
    summary="Eris as printed without repair or payments: most accepted jobs never finish",
    factory=_printed,
    pricer=False,
    binding=False,
)
