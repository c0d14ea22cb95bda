"""The ledger: the state of a run, built from events and decisions alone. It is the view that policies get.

It never reads the scenario: a job's public part becomes known with its `arrived` event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from tradewind.engine.ledger_state import LedgerState, SlotVolumes
from tradewind.engine.stimuli import from_json, to_json
from tradewind.model.codec import plain, read
from tradewind.model.decision import Decision, HeldQuote, Plan, Step
from tradewind.model.estimate import Estimate, Factors, Measured
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN, UNLIMITED
from tradewind.model.view import Change, Event

Reservation = tuple[int, int, int]
"""(row, slot or -1 for open-ended, amount)."""


class Ledger:
    """State of jobs, capacity in use now and in reserved slots. Implements model.view.View."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.now_us = 0
        self.events: Sequence[Event] = ()
        self._jobs: dict[int, Job] = {}
        self._active: dict[int, Job] = {}
        self.active: Mapping[int, Job] = MappingProxyType(self._active)
        self._plans: dict[int, Plan] = {}
        self._reserved: dict[int, list[Reservation]] = {}
        self._unbooked: dict[int, tuple[Job, Plan]] = {}  # plans whose reservations nobody has asked for yet
        self._changes: dict[int, Change] = {}
        self._data: dict[int, tuple[int, SlotVolumes]] = {}
        self._factors = Factors()
        # Rows: node * R + resource, 2 per link (direction) while routes push and 2 while they pull, bytes moved in a slot.
        self._r = len(setup.resources)
        self._links_at = len(setup.nodes) * self._r
        self._pulls_at = self._links_at + 2 * len(setup.links)
        self._transfer_at = self._pulls_at + 2 * len(setup.links)
        self._limit = [amount for node in setup.nodes for amount in node.capacity_milli]
        self._limit += 2 * [bps for link in setup.links for bps in (link.ab_bps, link.ba_bps)]
        b = setup.transfer_bytes_per_slot
        self._limit.append(UNLIMITED if b is None else b)
        self._transfers = b is not None
        self._used = [0] * len(self._limit)
        self._booked: dict[int, dict[int, int]] = {}
        self._down_nodes: set[int] = set()
        self._down_links: set[int] = set()
        self._price: dict[tuple[int, int], float] = {}
        self._egress: dict[tuple[int, int], float] = {}
        self._new: list[Event] = []
        self.forgets = False  # whether jobs that are over are dropped once the policy was told
        self._over: list[Event] = []  # what the policy was told last of jobs that are over and of changes
        self._first_slot = 0  # reservations in earlier slots are forgotten
        self._held: dict[int, HeldQuote] = {}
        self.held: Mapping[int, HeldQuote] = MappingProxyType(self._held)
        self._holds: dict[int, list[Reservation]] = {}  # id of a quote -> what it holds
        self._expires_us = 0
        self._counts_holds = True

    # ------------------------------------------------------------------ updates
    def take(self, events: Sequence[Event]) -> None:
        """Apply events; they stay in the window until the policy has been called (`clear_events`)."""
        for at_us, kind, job, value, fact in events:
            if kind == "arrived":
                assert isinstance(fact, Job)
                self._jobs[job] = self._active[job] = fact
            elif kind == "finished":
                if self._active.pop(job).hold == "until":
                    self._release(job)
                    self._plans.pop(job, None)
            elif kind == "released":
                self._release(job)
                self._plans.pop(job, None)
            elif kind in ("left", "declined", "refused", "cancelled", "ended"):
                self._active.pop(job, None)
                self._release(job)
                self._plans.pop(job, None)
            elif kind == "voided":
                self._release(job)
                self._plans.pop(job, None)
            elif kind == "changed":
                assert isinstance(fact, Change)
                self._changes[value] = fact
                self._take_change(fact)
            elif kind == "data":
                self._data[job] = (value, cast(SlotVolumes, fact))
            elif kind == "measured":
                self._factors.take(self._jobs[job], at_us, value, cast(tuple[Measured, ...], fact))
            self.now_us = at_us
        self._new.extend(events)
        self.events = self._new

    def clear_events(self) -> None:
        """Empty the window of new events, after the policy was called."""
        if self.forgets:
            self._forget()
        self._new = []
        self.events = self._new

    def _forget(self) -> None:
        """Drop what is over. What the policy was told last stays for one more call: its decision may be rejected."""
        for event in self._over:
            if event.kind == "changed":
                self._changes.pop(event.value, None)
            else:
                self._jobs.pop(event.job, None)
                self._data.pop(event.job, None)
                self._factors.forget(event.job)
        gone = [
            event for event in self._new if event.job not in self._active and event.job not in self._plans
        ]
        self._over = gone
        if self.slot > self._first_slot:
            self._first_slot = self.slot
            self._forget_slots()

    def _book_all(self) -> None:
        """Book the plans that were made since somebody last asked what is free."""
        for job, plan in self._unbooked.values():
            self._reserve(job, plan)
        self._unbooked.clear()

    def _forget_slots(self) -> None:
        self._book_all()
        for row, slots in self._booked.items():
            self._booked[row] = {slot: n for slot, n in slots.items() if slot >= self._first_slot}

    def return_events(self, events: Sequence[Event]) -> None:
        """Return events to the window after a rejected decision."""
        self._new = [*events, *self._new]
        self.events = self._new

    def last_step(self, job: int) -> Step | None:
        """Last step of a job's plan, even if it is over; None without a plan."""
        plan = self._plans.get(job)
        return plan.steps[-1] if plan is not None else None

    def commit(self, decision: Decision) -> None:
        """Apply an audited decision: replace the plans and reservations of the jobs it names."""
        plans, unbooked = self._plans, self._unbooked
        for plan in decision.plans:
            job, steps = plan
            self._release(job)
            if steps:
                plans[job] = plan
                unbooked[job] = (self._jobs[job], plan)
            else:
                plans.pop(job, None)

    def hold(self, held: HeldQuote) -> None:
        """Hold, for each resource and slot, the most that an offer of a quote needs."""
        job, most = self._jobs[held.quote.job], dict[tuple[int, int], int]()
        for offer in held.quote.offers:
            self._reserve(job, offer.plan)
            needed: dict[tuple[int, int], int] = {}
            for row, slot, amount in self._reserved[job.index]:
                needed[row, slot] = needed.get((row, slot), 0) + amount
            self._release(job.index)
            for key, amount in needed.items():
                most[key] = max(most.get(key, 0), amount)
        self._held[held.id] = held
        self._holds[held.id] = [(row, slot, amount) for (row, slot), amount in most.items()]
        self._book(self._holds[held.id], 1)

    def free_hold(self, held: HeldQuote) -> None:
        """Free what a quote holds, once it is closed."""
        del self._held[held.id]
        self._book(self._holds.pop(held.id), -1)

    def count_holds(self, on: bool) -> None:
        """Whether the view counts what open quotes hold; it does, but for the comparison with a view that does not."""
        self._counts_holds = on
        for rows in self._holds.values():
            self._book(rows, 1 if on else -1)
        self.held = MappingProxyType(self._held if on else {})

    def quote_until(self, expires_us: int) -> None:
        """The job quoted next may be answered until then; 0: at once."""
        self._expires_us = expires_us

    def _book(self, rows: Sequence[Reservation], sign: int) -> None:
        for row, slot, amount in rows:
            if slot < 0:
                self._used[row] += sign * amount
            elif slot >= self._first_slot:
                slots = self._booked.setdefault(row, {})
                slots[slot] = slots.get(slot, 0) + sign * amount

    def _reserve(self, job: Job, plan: Plan) -> None:
        """Reserve what a plan needs."""
        reserved: list[Reservation] = []
        used = self._used
        for step in plan.steps:
            if step.until_us == OPEN and not step.servers and not step.routes and not self._transfers:
                for node, workers in zip(step.nodes, step.workers, strict=True):
                    for at in self.setup.lineage[node]:
                        for r, milli in job.worker:
                            used[at * self._r + r] += milli * workers
                            reserved.append((at * self._r + r, -1, milli * workers))
                continue
            for row, amount in self._amounts(job, step):
                if step.until_us == OPEN:
                    used[row] += amount
                    reserved.append((row, -1, amount))
                else:
                    slots = self._booked.setdefault(row, {})
                    slot_us = self.setup.slot_us
                    for slot in range(step.from_us // slot_us, -(-step.until_us // slot_us)):
                        slots[slot] = slots.get(slot, 0) + amount
                        reserved.append((row, slot, amount))
        self._reserved[job.index] = reserved

    def _release(self, job: int) -> None:
        """Drop all reservations of a job."""
        if self._unbooked.pop(job, None) is not None:
            return
        for row, slot, amount in self._reserved.pop(job, ()):
            if slot < 0:
                self._used[row] -= amount
            elif slot >= self._first_slot:
                self._booked[row][slot] -= amount

    def _amounts(self, job: Job, step: Step) -> list[tuple[int, int]]:
        """(row, amount) of a step: resources at nodes and ancestors, links, bytes moved."""
        found: list[tuple[int, int]] = []
        servers = step.servers
        for i, node in enumerate(step.nodes):
            for at in self.setup.lineage[node]:
                base = at * self._r
                found += [(base + r, milli * step.workers[i]) for r, milli in job.worker]
                if servers and servers[i]:
                    found += [(base + r, milli * servers[i]) for r, milli in job.server]
        for route in step.routes:
            at = route.src
            for number in route.path:
                link = self.setup.links[number]
                direction = 0 if link.a == at else 1
                at = link.b if direction == 0 else link.a
                push, pull = self._links_at + 2 * number, self._pulls_at + 2 * number
                if link.shared:
                    found.append((push, route.bps))
                elif route.duplex == "push-pull":
                    found += [(row, route.bps) for row in (push, push + 1, pull, pull + 1)]
                else:
                    back = 1 - direction if job.pulls_back else direction
                    found += [(push + direction, route.bps), (pull + back, route.bps)]
        if self._transfers:
            found.append((self._transfer_at, moved_bytes(job, step)))
        return found

    def _take_change(self, change: Change) -> None:
        a, b, value = change.a, change.b, change.value
        match change.kind:
            case "capacity":
                self._limit[a * self._r + b] = value
            case "bandwidth":
                both = b == 2 or self.setup.links[a].shared
                for direction in (0, 1) if both else (b,):
                    for first in (self._links_at, self._pulls_at):
                        self._limit[first + 2 * a + direction] = value
            case "node_down":
                self._down_nodes.add(a)
            case "node_up":
                self._down_nodes.discard(a)
            case "link_down":
                self._down_links.add(a)
            case "link_up":
                self._down_links.discard(a)
            case "price":
                self._price[a, b] = change.factor
            case "egress":
                self._egress[a, b] = change.factor

    # ------------------------------------------------------------------ saving
    def save(self) -> dict[str, Any]:
        """The state as JSON data."""
        self._book_all()
        state = LedgerState(
            now_us=self.now_us,
            first_slot=self._first_slot,
            jobs=tuple(self._jobs.values()),
            active=tuple(self._active),
            plans=tuple(self._plans.values()),
            data=self._data,
            changes=self._changes,
            limit=tuple(self._limit),
            down_nodes=frozenset(self._down_nodes),
            down_links=frozenset(self._down_links),
            price=self._price,
            egress=self._egress,
            held=tuple(self._held.values()),
            counts_holds=self._counts_holds,
            expires_us=self._expires_us,
        )
        windows = {"new": self._new, "over": self._over}
        return {
            "state": plain(state),
            "factors": self._factors.save() if self._factors else None,
            **{name: [to_json(e) for e in w] for name, w in windows.items()},
        }

    def restore(self, data: Any, where: str) -> dict[int, Job]:
        """Continue from what `save` returned, in a new ledger; plans are reserved again. Returns the jobs by index."""
        state: LedgerState = read(LedgerState, data.get("state"), f"{where}.state")
        self.now_us, self._first_slot = state.now_us, state.first_slot
        self._jobs.update((job.index, job) for job in state.jobs)
        self._active.update((job, self._jobs[job]) for job in state.active)
        for plan in state.plans:
            self._plans[plan.job] = plan
            self._reserve(self._jobs[plan.job], plan)
        for held in state.held:
            self.hold(held)
        self._expires_us = state.expires_us
        if not state.counts_holds:
            self.count_holds(False)
        self._forget_slots()
        self._data, self._changes = state.data, state.changes
        self._limit = list(state.limit)
        self._down_nodes, self._down_links = set(state.down_nodes), set(state.down_links)
        self._price, self._egress = state.price, state.egress
        self._new, self._over = (
            [from_json(event) for event in data.get(name, ())] for name in ("new", "over")
        )
        self.events = self._new
        if data.get("factors"):
            self._factors.restore(data["factors"])
        return self._jobs

    # ------------------------------------------------------------------ the view
    @property
    def answer_by_us(self) -> int:
        """Until when the job being quoted may be answered."""
        return max(self.now_us, self._expires_us)

    @property
    def slot(self) -> int:
        """Number of the current slot."""
        return self.now_us // self.setup.slot_us

    def job(self, job: int) -> Job:
        """The public part of a job that has arrived and, where jobs that are over are dropped, is not over."""
        try:
            return self._jobs[job]
        except KeyError:
            why = "is over and was dropped, or has not arrived" if self.forgets else "has not arrived"
            raise LookupError(f"view.job({job}): this job {why}") from None

    def plan(self, job: int) -> Plan | None:
        """The plan in force; None where the job waits or its last step is over."""
        plan = self._plans.get(job)
        return plan if plan is not None and plan.steps[-1].until_us > self.now_us else None

    def data(self, job: int) -> tuple[tuple[int, int], ...]:
        """(node, bytes) of a stream job's volumes in the current slot."""
        slot, volumes = self._data.get(job, (-1, ()))
        return volumes if slot == self.slot else ()

    def estimate(self, job: Job) -> Estimate:
        """By which factor the declared time of a job is wrong, after what was measured so far."""
        return self._factors.of(job)

    def change(self, row: int) -> Change:
        """A change that has happened, by its row."""
        return self._changes[row]

    def capacity(self, node: int, resource: int) -> int:
        """Milli-units now (0 where the node is down)."""
        return 0 if self.is_down(node) else self._limit[node * self._r + resource]

    def free(self, node: int, resource: int, slot: int | None = None) -> int:
        """Milli-units free now or in a later slot, within the limits of all ancestors."""
        if self.is_down(node):
            return 0
        return min(self._left(at * self._r + resource, slot) for at in self.setup.lineage[node])

    def link_capacity(self, link: int, direction: int) -> int:
        """Bit/s now (0 where the link is down)."""
        return 0 if self._link_is_down(link) else self._limit[self._links_at + 2 * link + direction]

    def link_free(
        self, link: int, direction: int, slot: int | None = None, *, pulls_back: bool = False
    ) -> int:
        """Bit/s free now or in a later slot; pulls_back: for what is pushed this way and pulled the other way."""
        if self._link_is_down(link):
            return 0
        if self.setup.links[link].shared:
            return self._left(self._links_at + 2 * link, slot)
        back = 1 - direction if pulls_back else direction
        rows = (self._links_at + 2 * link + direction, self._pulls_at + 2 * link + back)
        return min(self._left(row, slot) for row in rows)

    def transfer_free(self, slot: int) -> int:
        """Bytes that may still be moved in a slot."""
        return self._left(self._transfer_at, slot)

    def price_factor(self, node: int, resource: int) -> float:
        """Current factor on the rent tariff."""
        return self._price.get((node, resource), 1.0)

    def egress_factor(self, source: int, destination: int) -> float:
        """Current factor on the egress tariff."""
        return self._egress.get((source, destination), 1.0)

    def _left(self, row: int, slot: int | None) -> int:
        if self._unbooked:
            self._book_all()
        slots = self._booked.get(row)
        booked = slots.get(self.slot if slot is None else slot, 0) if slots else 0
        return self._limit[row] - self._used[row] - booked

    def is_down(self, node: int) -> bool:
        """Whether the node or one above it is down."""
        return bool(self._down_nodes) and not self._down_nodes.isdisjoint(self.setup.ancestry[node])

    def _link_is_down(self, link: int) -> bool:
        ends = self.setup.links[link]
        return link in self._down_links or self.is_down(ends.a) or self.is_down(ends.b)


def moved_bytes(job: Job, step: Step) -> int:
    """Bytes moved between nodes in a slot: data that changes node, and parameters of workers away from their server."""
    data = sum(flow.bytes for flow in step.flows if flow.src != flow.dst)
    if not job.traffic_bytes_per_worker_slot or not step.servers:
        return data
    away = sum(w for w, s in zip(step.workers, step.servers, strict=True) if not s)
    return data + job.traffic_bytes_per_worker_slot * away
