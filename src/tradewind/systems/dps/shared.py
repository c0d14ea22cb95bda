"""What every seller of DPS's market shares: reading a request, planning where it would run, hearing answers."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Ints
from tradewind.model.decision import NOTHING, Decision, Offer, Plan, Quote, Step
from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import rate
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, OPEN
from tradewind.model.view import View
from tradewind.systems.dps.kernels.place import BEST_FIT, LARGEST, RANDOM, WORST_FIT, place, scratch

RULES = {"pa": WORST_FIT, "best-fit": BEST_FIT, "random": RANDOM}
"""Placement: Algorithm 2 of the paper, ours, and at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request as a seller sees it: kinds as rows of its tables, items, runtimes in slots, and where it would run."""

    job: int
    tenant: str
    k: int
    m: int
    d_k: int
    d_m: int
    unit_k: float
    """Resource units that one worker takes."""
    unit_m: float
    slot: int
    spread: int
    idle_k: int
    idle_m: int
    runtime: int = 0
    finish_us: int = 0
    step: Step | None = None


class Catalogue:
    """The kinds on offer: resources called `ps…` are parameter servers, the others workers; without any `ps…`, both."""

    def __init__(self, setup: Setup) -> None:
        names = setup.resources
        second = [r for r, name in enumerate(names) if name.startswith("ps")]
        first = [r for r in range(len(names)) if r not in second] if second else list(range(len(names)))
        self.first, self.second = first, second or list(range(len(names)))
        self.row_k = {r: row for row, r in enumerate(self.first)}
        self.row_m = {r: row for row, r in enumerate(self.second)}
        hosts = [setup.nodes[h] for h in setup.hosts]
        most = LARGEST * MILLI
        self.cap_k = np.array(
            [sum(min(n.capacity_milli[r], most) for n in hosts) / MILLI for r in self.first]
        )
        self.cap_m = np.array(
            [sum(min(n.capacity_milli[r], most) for n in hosts) / MILLI for r in self.second]
        )

    def expected(self, setup: Setup) -> tuple[float, NDArray[np.float64]]:
        """Jobs expected in all and per kind (K + M,), from the public forecast; one job a slot where there is none."""
        total = setup.forecast.get("jobs", float(setup.slots))
        rows = [
            setup.forecast.get(f"jobs.{setup.resources[r]}", total / len(group))
            for group in (self.first, self.second)
            for r in group
        ]
        return total, np.array(rows)


class Seller(ABC):
    """Answers requests one by one. A subclass sets the price and learns; it never sees a budget."""

    def __init__(self, setup: Setup, placement: str, seed: int) -> None:
        self.setup, self.rule = setup, RULES[placement]
        self.kinds = Catalogue(setup)
        self._room = scratch(len(setup.hosts), seed)
        self._read = 0
        self._pending: Order | None = None
        self._running: dict[int, tuple[int, int, int]] = {}
        self._again: list[int] = []

    # ------------------------------------------------------------------ what a subclass does
    @abstractmethod
    def price(self, order: Order) -> tuple[float, str]:
        """What to ask for the whole bundle and why; a negative number: do not sell."""

    def unit_prices(self, order: Order, payment: float) -> tuple[float, float]:
        """The payment as prices of one worker and one parameter server."""
        both = payment / (order.d_k + order.d_m)
        return both, both

    def heard(self, order: Order, yes: bool) -> None:
        """The customer's answer; sellers that do not learn let it pass, like the two below."""
        del order, yes

    def passed(self, order: Order) -> None:
        """There was no room, so no price was asked."""
        del order

    def done(self, k: int, m: int, runtime: int) -> None:
        """A job is over and its resources are free."""
        del k, m, runtime

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {}

    def _set_state(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        del facts, arrays

    # ------------------------------------------------------------------ the market
    def quote(self, view: View, job: Job) -> Quote:
        """Plan first, so that the runtime is known before the price; then price."""
        self._listen(view)
        order = self._order(view, job)
        if isinstance(order, str):
            return Quote(job.index, refused="unsupported", why=order)
        if order.d_k > self.kinds.cap_k[order.k] or order.d_m > self.kinds.cap_m[order.m]:
            self.passed(replace(order, runtime=order.spread))
            return Quote(job.index, refused="capacity", why="asks for more than the whole cluster has")
        planned = self._plan(view, job, order)
        if planned is None or planned.step is None:
            self.passed(replace(order, runtime=order.spread))
            return Quote(job.index, refused="capacity", why="not enough is idle")
        payment, why = self.price(planned)
        if payment < 0.0:
            return Quote(job.index, refused="capacity", why=why)
        unit_k, unit_m = self.unit_prices(planned, payment)
        payment = unit_k * planned.d_k + unit_m * planned.d_m
        units = ((job.worker[0][0], unit_k / planned.unit_k), (job.server[0][0], unit_m / planned.unit_m))
        plan = Plan(job.index, (planned.step,))
        self._pending = planned
        return Quote(job.index, (Offer(payment, planned.finish_us, plan, units),), why=why)

    def decide(self, view: View) -> Decision:
        """Nothing to decide between arrivals, except to start again what a failure stopped."""
        self._listen(view)
        self._read = 0
        if not self._again:
            return NOTHING
        plans, taken = [], set[int]()
        for index in list(self._again):
            job = view.job(index)
            order = self._order(view, job)
            planned = None if isinstance(order, str) else self._plan(view, job, order, taken)
            if planned is not None and planned.step is not None:
                plans.append(Plan(index, (planned.step,)))
                taken.update(planned.step.nodes)
                self._again.remove(index)
        return Decision(plans=tuple(plans)) if plans else NOTHING

    def _listen(self, view: View) -> None:
        """Takes in what happened since the last call."""
        events = view.events
        for event in events[self._read :]:
            order = self._pending
            if event.kind in ("accepted", "declined") and order is not None and event.job == order.job:
                self._pending = None
                if event.kind == "accepted":
                    self._running[event.job] = (order.k, order.m, order.runtime)
                self.heard(order, event.kind == "accepted")
            elif event.kind == "finished" and event.job in self._running:
                if view.job(event.job).hold == "until":
                    self.done(*self._running.pop(event.job))
            elif event.kind in ("released", "ended") and event.job in self._running:
                self.done(*self._running.pop(event.job))
            elif event.kind == "voided" and event.job in view.active:
                self._again.append(event.job)
        self._read = len(events)

    def _order(self, view: View, job: Job) -> Order | str:
        """The request in the seller's terms, or why it is none that is sold here."""
        kinds = self.kinds
        if (
            not isinstance(job.work, Rounds)
            or len(job.worker) != 1
            or len(job.server) != 1
            or job.servers < 1
        ):
            return "sold are bundles of one type of worker and one type of parameter server"
        (r_k, milli_k), (r_m, milli_m) = job.worker[0], job.server[0]
        if (
            r_k not in kinds.row_k
            or r_m not in kinds.row_m
            or r_k == r_m
            or job.workers_min != job.workers_max
        ):
            return "sold are fixed numbers of workers and parameter servers of different types"
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

    def _plan(self, view: View, job: Job, order: Order, taken: set[int] | None = None) -> Order | None:
        """The order with its placement and runtime; None where too little is idle."""
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

    def _idle(self, view: View, job: Job, resource: int, milli: int, taken: set[int] | None) -> Ints:
        """Items of one kind that fit on each host now, (S,)."""
        free = view.free
        idle = np.array([free(h, resource) for h in self.setup.hosts], dtype=np.int64)
        idle = np.clip(idle // milli, 0, LARGEST)
        if job.nodes is not None or taken:
            out = [
                (job.nodes is not None and h not in job.nodes) or (taken is not None and h in taken)
                for h in self.setup.hosts
            ]
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
        """Everything that the next answer depends on."""
        facts, arrays = self._state()
        pending = None
        if self._pending is not None:
            order = replace(self._pending, step=None)
            pending = {name: getattr(order, name) for name in Order.__slots__ if name != "step"}
        common = {
            "read": self._read,
            "pending": pending,
            "running": [[job, *rest] for job, rest in self._running.items()],
            "again": self._again,
            "facts": facts,
        }
        target = io.BytesIO()
        every: dict[str, Any] = {"_text": np.array(json.dumps(common)), "_room": self._room.state, **arrays}
        np.savez(target, **every)
        return target.getvalue()

    def restore(self, state: bytes) -> None:
        """Continue where `save` left off."""
        with np.load(io.BytesIO(state)) as data:
            arrays = {name: data[name] for name in data.files}
        common = json.loads(str(arrays.pop("_text")))
        self._room.state[:] = arrays.pop("_room")
        self._read, self._again = common["read"], list(common["again"])
        self._pending = None if common["pending"] is None else Order(**common["pending"])
        self._running = {job: (k, m, tau) for job, k, m, tau in common["running"]}
        self._set_state(common["facts"], arrays)


def unit_price(text: float, where: str) -> float:
    """A unit price that the market allows, or an error that says where."""
    if not 0.0 <= text <= 1.0:
        raise InputError(f"found {text}; a unit price lies between 0 and 1", where=where)
    return text
