"""`eris`: an online auction with posted prices in which every accepted job finishes.

Schedules come from the corrected oracle (kernels/oracle.py), every completion time is priced at what it costs, and
scarce resources have a price floor. The floor comes from the forecast or is learned from earlier bids of others; it falls
only where the forecast is shown to be too high, else waiting does not pay. `fcfs` is the same mechanism at zero prices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import NOTHING, Decision, Offer, Plan, Quote
from tradewind.model.errors import InputError
from tradewind.model.estimate import believed
from tradewind.model.job import Dataset, Job
from tradewind.model.setup import Objective, Setup
from tradewind.model.spec import ESTIMATES, MEASUREMENT, Param, Spec, Trigger
from tradewind.model.view import Event, View
from tradewind.systems.eris.kernels.oracle import menu
from tradewind.systems.eris.kernels.task import Menu
from tradewind.systems.eris.policy.floor import Floor, forecast_floor
from tradewind.systems.eris.policy.trust import Trust
from tradewind.systems.eris.shared.market import (
    CapacityLedger,
    PostedPrices,
    left_after,
    most_chunks,
    plan_of,
    read_plan,
    task_of,
)
from tradewind.systems.eris.shared.replay import flat_offers, posted_menu

OBJECTIVES: frozenset[Objective] = frozenset({"welfare_usd", "profit_usd"})
MOST_GAMMA = 1e12
WORTHLESS = "no completion time is worth what it costs"
NARROW = (
    "no room: with the flat charge for data, a slot needs bandwidth for every chunk it trains, even for chunks that are not "
    "moved; --set data=moved can serve this bid"
)
TRIGGERS: frozenset[Trigger] = frozenset({"arrival", "completion", "change", "slot"})


def unsupported_reason(setup: Setup, job: Job) -> str:
    """Reason why Eris cannot serve a bid, or ""."""
    if job.unservable_reason:
        return job.unservable_reason
    if job.servers != 1 or job.workers_min > 1:
        return "needs exactly one parameter server and must be able to run with one worker"
    if job.utility is None or job.utility.of != "delay_slots":
        return "has no utility of the delay"
    work, arrived = job.work, job.arrive_us // setup.slot_us
    assert isinstance(work, Dataset)
    worth = [job.utility.value(t) for t in range(setup.slots_ahead(arrived))]
    if any(b > a + 1e-9 * abs(worth[0]) for a, b in pairwise(worth)):  # tolerates rounding of a large bid
        return "has a utility that rises with the delay"
    if worth and worth[0] < 0:
        return "has a negative utility"
    if most_chunks(setup, job) < work.total:
        limit = "until the horizon" if setup.window_slots is None else f"in {setup.window_slots} slots"
        return f"has {work.total} chunks, more than the network can train {limit}"
    return ""


def too_late(setup: Setup) -> str:
    """Reason for a bid that finds no slot."""
    return "no slot is left before the horizon" + (" or in the window" if setup.window_slots else "")


def _soonest(slots: int) -> Floats:
    """A worth (slots,) that makes the earliest completion best at any price."""
    return 1e12 - 1e6 * np.arange(slots, dtype=np.float64)


class Seller:
    """Quotes a menu on arrival and reserves the plan that was bought; neither plan nor payment changes afterwards."""

    def __init__(
        self, setup: Setup, gamma: float, floor: Floor, *, flat: bool = True, measured: bool = False
    ) -> None:
        self.ledger = CapacityLedger(setup)
        self.gamma, self.floor, self.flat, self._measured = gamma, floor, flat, measured
        self._open: dict[int, tuple[Offer, ...]] = {}
        """Offers to every job whose answer is not known yet."""
        self._learned: set[int] = set()
        """Those of these jobs from whose bid the floor has learned."""
        self._left: dict[int, list[int]] = {}
        """Chunks (R,) left of every job that a failure interrupted."""
        self._waiting: set[int] = set()
        """Interrupted jobs without a plan."""

    def quote(self, view: View, job: Job) -> Quote:
        self._observe(view)
        if self._measured:  # workers that are faster than declared must not be counted on
            job = believed(job, max(1.0, view.estimate(job).factor))
        if why := unsupported_reason(view.setup, job):
            return Quote(job.index, refused="unsupported", why=f"{job.id} {why}")
        first = -(-view.answer_by_us // view.setup.slot_us)
        if first >= self.ledger.end:
            return Quote(job.index, refused="capacity", why=too_late(view.setup))
        self.floor.look(view.slot, self.ledger.whole)
        prices = PostedPrices(gamma=self.gamma, floor=self.floor.usd)
        with self.ledger.with_holds(view):
            found = self._menu(view, job, first, prices)
            refused, why = ("", "") if found.offers else self._reason(job, first)
        offers = tuple(
            Offer(
                payment_usd=offer.usd,
                finish_us=(first + offer.slots[-1] + 1) * view.setup.slot_us,
                plan=plan_of(self.ledger, job, offer, first),
            )
            for offer in found.offers
        )
        self._open[job.index] = offers
        if not offers:
            return Quote(job.index, refused=refused, why=why)
        return Quote(job.index, offers, posted=prices.posted(flat=self.flat))

    def _menu(self, view: View, job: Job, first: int, prices: PostedPrices) -> Menu:
        """Offers at posted prices."""
        return posted_menu(self.ledger, job, first, prices, flat=self.flat)

    def _reason(self, job: Job, first: int) -> tuple[str, str]:
        """Why there is no offer: too expensive, or impossible at any price."""
        market = self.ledger.market(job, first, PostedPrices(gamma=1.0, floor=np.zeros_like(self.floor.usd)))
        task, soonest = task_of(self.ledger, job), _soonest(len(market.room))
        if self.flat and flat_offers(task, market, soonest, 0.0).offers:
            return "price", WORTHLESS
        if not menu(task, market, soonest).offers:
            return "capacity", "no room"
        return ("capacity", NARROW) if self.flat else ("price", WORTHLESS)

    def decide(self, view: View) -> Decision:
        """Plans jobs that a failure interrupted again, at the earliest possible time."""
        self._observe(view)
        self.ledger.clear_window()
        plans = []
        with self.ledger.with_holds(view):
            for index in sorted(self._waiting):
                if (plan := self._replan(view, view.job(index))) is not None:
                    plans.append(plan)
                    self._waiting.discard(index)
        return Decision(tuple(plans)) if plans else NOTHING

    def _replan(self, view: View, job: Job) -> Plan | None:
        first = -(-view.now_us // view.setup.slot_us)
        if first >= self.ledger.end:
            return None
        left = np.array(self._left[job.index], dtype=np.int64)
        free = PostedPrices(gamma=1.0, floor=np.zeros_like(self.floor.usd))
        market = self.ledger.market(job, first, free)
        task, soonest = task_of(self.ledger, job, left), _soonest(len(market.room))
        found = menu(task, market, soonest)
        if not found.offers:  # it need not find what a narrow network can carry
            found = flat_offers(task, market, soonest, 0.0)
        if not found.offers:
            return None
        plan = plan_of(self.ledger, job, found.offers[0], first)
        self.ledger.reserve(job, plan)
        return plan

    def _observe(self, view: View) -> None:
        for event in view.events[self.ledger.observed :]:
            if event.kind == "voided" and event.job in self.ledger.plans:
                plan, before = self.ledger.plans[event.job].plan, self._left.get(event.job)
                left = left_after(self.ledger, view.job(event.job), plan, event.at_us, before)
                self._left[event.job] = left.tolist()
                self._waiting.add(event.job)
            elif event.kind in ("finished", "refused", "cancelled", "ended"):
                self._left.pop(event.job, None)
                self._waiting.discard(event.job)
            if event.job in self._open:
                self._observe_quote(view, event)
        self.ledger.observe(view)

    def _observe_quote(self, view: View, event: Event) -> None:
        """Learns from a bid once it was quoted, and takes in what became of the quote."""
        if event.kind in ("accepted", "declined", "refused", "quoted") and event.job not in self._learned:
            self._learn(view.job(event.job))
            self._learned.add(event.job)
        if event.kind in ("accepted", "declined", "refused", "cancelled", "ended"):
            offers = self._open.pop(event.job)
            self._learned.discard(event.job)
            if event.kind in ("cancelled", "ended"):
                return
            job, taken = view.job(event.job), offers[event.value] if event.kind == "accepted" else None
            self.floor.answered(job, taken)
            if taken is not None:
                self.ledger.reserve(job, taken.plan)

    def _learn(self, job: Job) -> None:
        """Takes in a bid that was quoted."""
        self.floor.learn(job)

    def save(self) -> bytes:
        state = {
            "ledger": self.ledger.save(),
            "floor": self.floor.save(),
            "open": list(self._open.items()),
            "learned": sorted(self._learned),
            "left": list(self._left.items()),
            "waiting": sorted(self._waiting),
        }
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self.ledger.restore(data["ledger"])
        self.floor.restore(data["floor"])
        self._open, self._left, self._waiting = {}, dict(data["left"]), set(data["waiting"])
        self._learned = set(data["learned"])
        for index, offers in data["open"]:
            self._open[index] = tuple(Offer(o[0], o[1], read_plan(o[2])) for o in offers)


def _floors(text: str, kinds: int) -> Floats:
    """Parses fixed floors: one number per resource and one per GB of bandwidth, separated by commas."""
    try:
        values = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise InputError(
            f"found {text!r}; allowed is auto, learned, none, or {kinds + 1} numbers separated by commas",
            where="eris.floor",
        ) from None
    if len(values) != kinds + 1 or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(
            f"found {text!r}; allowed is {kinds + 1} numbers of 0 or more: one per resource and one per GB",
            where="eris.floor",
        )
    return values


def floor_of(setup: Setup, text: str, scale: float) -> Floor:
    """The floor that the parameter `floor` asks for: auto (the forecast, else learned), learned, none, or numbers."""
    kinds = len(setup.resources)
    known = forecast_floor(setup, scale) if text == "auto" else None
    learns = text == "learned" or (text == "auto" and known is None)
    fixed = np.zeros(kinds + 1) if text in ("auto", "learned", "none") else _floors(text, kinds)
    if known is None:
        return Floor(setup, fixed, scale=scale, learns=learns)
    return Floor(setup, known, scale=scale, learns=False, trust=Trust())


def _eris(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Seller:
    floor = floor_of(setup, params["floor"], params["floor_scale"])
    measured = params["estimates"] == MEASUREMENT
    return Seller(setup, params["gamma"], floor, flat=params["data"] == "flat", measured=measured)


WORKS = frozenset({"dataset"})
ERIS = Spec(
    name="eris",
    summary="Eris, ours: a menu of completion times at posted prices with a floor; every accepted job finishes",
    factory=_eris,
    works=WORKS,
    architectures=frozenset({"ps"}),
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=frozenset({"bid"}),
    params={
        "gamma": Param(
            default=1.0,
            doc="base of the price functions (6); 1 leaves the floor alone; the paper uses 1000 and no floor",
            least=1,
            most=MOST_GAMMA,
        ),
        "floor": Param(
            default="auto",
            doc="price floor: auto (from the forecast, else learned), learned, none, or numbers per resource and per GB",
        ),
        "data": Param(
            default="flat",
            doc="what data pays: flat (floor price of its bytes; truthful by construction) or moved (price of every move)",
            choices=("flat", "moved"),
        ),
        "floor_scale": Param(
            default=1.0,
            doc="floor as a multiple of the forecast's or learned reserve prices",
            least=0,
            most=1e6,
        ),
        **ESTIMATES,
    },
    pricer=True,
    binding=True,
    serial_quotes=True,
    system="eris",
)
