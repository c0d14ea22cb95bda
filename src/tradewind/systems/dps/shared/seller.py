"""A seller: reads a request, plans where it would run, prices it, and observes the answer."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Ints
from tradewind.model.decision import NOTHING, Decision, Offer, Plan, Quote, Step
from tradewind.model.estimate import times
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import rate
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, OPEN
from tradewind.model.view import View
from tradewind.systems.dps.kernels.place import LARGEST, place, scratch
from tradewind.systems.dps.shared.order import PLACEMENTS, Kinds, Order, PriceScale


class Seller(ABC):
    """Quotes requests one by one. A subclass sets the price and learns; it never sees a budget."""

    def __init__(self, setup: Setup, placement: str, seed: int) -> None:
        self.setup, self.rule = setup, PLACEMENTS[placement]
        self.kinds, self.scale = Kinds(setup), PriceScale.of(setup)
        self._room = scratch(len(setup.hosts), seed)
        self._read = 0
        self._pending: dict[int, tuple[Order, list[int]]] = {}
        """Job -> its order and what `pending_price` said, until the answer is known."""
        self._running: dict[int, tuple[int, int, int]] = {}
        self._voided: list[int] = []
        self.measured = False
        """Whether runtimes are corrected by what was measured (`estimates`)."""

    # ------------------------------------------------------------------ for subclasses
    @abstractmethod
    def price(self, order: Order) -> tuple[float, str]:
        """The unit prices of the whole bundle, added up, and why; a negative sum means no offer."""

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        """Split the sum into the prices of one worker and one parameter server, as shares of the highest."""
        both = payment / (order.d_k + order.d_m)
        return both, both

    def pending_price(self) -> list[int]:
        """What the subclass needs to learn from the answer to the price it has just set."""
        return []

    def observe_answer(self, order: Order, accepted: bool, priced: list[int]) -> None:
        """Learn from the customer's answer; `priced` is what `pending_price` said."""
        del order, accepted, priced

    def observe_no_room(self, order: Order) -> None:
        """Learn from a request that got no price because there was no room."""
        del order

    def observe_release(self, k: int, m: int, runtime: int) -> None:
        """Learn from a job that is over and whose resources are free."""
        del k, m, runtime

    def _state(self) -> dict[str, NDArray[Any]]:
        """Arrays of the subclass to save."""
        return {}

    def _set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `_state` gave."""
        del arrays

    # ------------------------------------------------------------------ the policy
    def quote(self, view: View, job: Job) -> Quote:
        """Plan, so that the runtime is known, and then price."""
        self._observe(view)
        order = self._order(view, job)
        if isinstance(order, str):
            return Quote(job.index, refused="unsupported", why=order)
        if order.d_k > self.kinds.cap_k[order.k] or order.d_m > self.kinds.cap_m[order.m]:
            self.observe_no_room(replace(order, runtime=order.spread))
            return Quote(job.index, refused="capacity", why="asks for more items than the whole cluster has")
        planned = self._plan(view, job, order)
        if (
            self.measured and planned.step is not None
        ):  # what is promised and paid still follows from the declaration
            factor = view.estimate(job).factor
            planned = replace(planned, runtime=max(1, times(planned.runtime, factor)))
        if planned.step is None:
            self.observe_no_room(replace(order, runtime=order.spread))
            return Quote(job.index, refused="capacity", why="too few idle items")
        payment, why = self.price(planned)
        if payment < 0.0:
            return Quote(job.index, refused="capacity", why=why)
        usd = self.scale.usd * self.scale.items(planned.spread)
        unit_k, unit_m = (share * usd for share in self.unit_prices(planned, payment))
        payment = unit_k * planned.d_k + unit_m * planned.d_m
        units = ((job.worker[0][0], unit_k / planned.unit_k), (job.server[0][0], unit_m / planned.unit_m))
        plan = Plan(job.index, (planned.step,))
        self._pending[job.index] = (planned, self.pending_price())
        return Quote(job.index, (Offer(payment, planned.finish_us, plan, units),), why=why)

    def decide(self, view: View) -> Decision:
        """Restart jobs that a failure stopped; everything else is decided on arrival."""
        self._observe(view)
        self._read = 0
        if not self._voided:
            return NOTHING
        plans, taken = [], frozenset[int]()
        for index in list(self._voided):
            job = view.job(index)
            order = self._order(view, job)
            step = None if isinstance(order, str) else self._plan(view, job, order, taken).step
            if step is not None:
                plans.append(Plan(index, (step,)))
                taken |= set(step.nodes)
                self._voided.remove(index)
        return Decision(plans=tuple(plans)) if plans else NOTHING

    def _observe(self, view: View) -> None:
        """Read the events since the last call."""
        events = view.events
        for event in events[self._read :]:
            if event.kind in ("accepted", "declined") and event.job in self._pending:
                order, priced = self._pending.pop(event.job)
                if event.kind == "accepted":
                    self._running[event.job] = (order.k, order.m, order.runtime)
                self.observe_answer(order, event.kind == "accepted", priced)
            elif event.kind == "withdrawn":  # nobody has answered, so there is nothing to learn
                self._pending.pop(event.job, None)
            elif event.kind == "finished" and event.job in self._running:
                if view.job(event.job).hold == "until":
                    self.observe_release(*self._running.pop(event.job))
            elif event.kind in ("released", "refused", "cancelled", "ended"):
                self._pending.pop(event.job, None)
                if event.job in self._running:
                    self.observe_release(*self._running.pop(event.job))
                if event.job in self._voided:
                    self._voided.remove(event.job)
            elif event.kind == "voided" and event.job in view.active:
                self._voided.append(event.job)
        self._read = len(events)

    def _order(self, view: View, job: Job) -> Order | str:
        """The request in the seller's terms, or the reason why it is not sold here."""
        kinds = self.kinds
        if (
            not isinstance(job.work, Rounds)
            or len(job.worker) != 1
            or len(job.server) != 1
            or job.servers < 1
        ):
            return "a bundle has one type of worker and one type of parameter server"
        (r_k, milli_k), (r_m, milli_m) = job.worker[0], job.server[0]
        if (
            r_k not in kinds.row_k
            or r_m not in kinds.row_m
            or r_k == r_m
            or job.workers_min != job.workers_max
        ):
            return "a bundle has a fixed number of workers, and parameter servers of another type"
        apart = Step(view.now_us, OPEN, (0, 0), (job.workers_max, 0), (0, job.servers))
        return Order(
            job=job.index,
            tenant=job.tenant,
            k=kinds.row_k[r_k],
            m=kinds.row_m[r_m],
            d_k=job.workers_max,
            d_m=job.servers,
            unit_k=milli_k / MILLI,
            unit_m=milli_m / MILLI,
            slot=view.slot,
            spread=self._runtime(view.now_us, job, apart)[0],
            idle_k=0,
            idle_m=0,
        )

    def _plan(self, view: View, job: Job, order: Order, taken: frozenset[int] = frozenset()) -> Order:
        """The order with its placement and runtime; `step` stays None where too few items are idle."""
        x = self._idle(view, job, *job.worker[0], taken)
        z = self._idle(view, job, *job.server[0], taken)
        idle_k, idle_m = int(x.sum()), int(z.sum())
        order = replace(order, idle_k=idle_k, idle_m=idle_m)
        if idle_k < order.d_k or idle_m < order.d_m:
            return order
        count, _ = place(self.rule, x, z, order.d_k, order.d_m, self._room)
        here: dict[int, list[int]] = {}
        for bin_, a, b in zip(
            self._room.bins[:count].tolist(),
            self._room.take_k[:count].tolist(),
            self._room.take_m[:count].tolist(),
            strict=True,
        ):
            both = here.setdefault(self.setup.hosts[bin_], [0, 0])
            both[0] += a
            both[1] += b
        nodes = tuple(sorted(here))
        step = Step(
            view.now_us,
            OPEN,
            nodes,
            tuple(here[n][0] for n in nodes),
            tuple(here[n][1] for n in nodes),
        )
        runtime, finish = self._runtime(view.now_us, job, step)
        return replace(order, runtime=runtime, finish_us=finish, step=step)

    def _idle(self, view: View, job: Job, resource: int, milli: int, taken: frozenset[int]) -> Ints:
        """Items of one kind that fit on each host now, (S,); none on hosts that are `taken`."""
        free = view.free
        idle = np.array([free(h, resource) for h in self.setup.hosts], dtype=np.int64)
        idle = np.clip(idle // milli, 0, LARGEST)
        if job.nodes is not None or taken:
            out = [(job.nodes is not None and h not in job.nodes) or h in taken for h in self.setup.hosts]
            idle[out] = 0
        return idle

    def _runtime(self, now_us: int, job: Job, step: Step) -> tuple[int, int]:
        """Runtime (1) in slots, rounded up, and the instant of completion."""
        work = job.work
        assert isinstance(work, Rounds)
        num, den = rate(self.setup, job, step)
        span = max(1, -(-work.total * den // num))
        slots = -(-span // self.setup.slot_us)
        return slots, now_us + (slots * self.setup.slot_us if work.whole_slots else span)

    # ------------------------------------------------------------------ state
    def save(self) -> bytes:
        """Everything that the next quote depends on."""
        names = [name for name in Order.__slots__ if name != "step"]
        common = {
            "read": self._read,
            "pending": [
                [{name: getattr(order, name) for name in names}, priced]
                for order, priced in self._pending.values()
            ],
            "running": [[job, *rest] for job, rest in self._running.items()],
            "again": self._voided,
            "facts": {},
        }
        target = io.BytesIO()
        every: dict[str, Any] = {
            "_text": np.array(json.dumps(common)),
            "_room": self._room.state,
            **self._state(),
        }
        np.savez(target, **every)
        return target.getvalue()

    def restore(self, state: bytes) -> None:
        """Continue where `save` left off."""
        with np.load(io.BytesIO(state)) as data:
            arrays = {name: data[name] for name in data.files}
        common = json.loads(str(arrays.pop("_text")))
        self._room.state[:] = arrays.pop("_room")
        self._read, self._voided = common["read"], list(common["again"])
        self._pending = {order["job"]: (Order(**order), priced) for order, priced in common["pending"]}
        self._running = {job: (k, m, tau) for job, k, m, tau in common["running"]}
        self._set_state(arrays)
