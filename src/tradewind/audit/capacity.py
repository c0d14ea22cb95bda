"""The audit's capacity ledger: what is claimed of every node, link and slot, in integers."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.result import Violation
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN, UNLIMITED
from tradewind.model.view import Change

Claim = tuple[int, int, int]
"""(row, slot, amount)."""
FOREVER = -1
"""Slot of an open-ended claim."""


class CapacityLedger:
    """Claims and limits by row: node and resource, link and direction (push, pull), bytes moved.

    capacity   sum over jobs of l_r * y_s <= C_s^r at every node and all above it (DPS (2f), (2g), Eris (2e), GADGET (4))
    bandwidth  sum over routes of b <= B_e on every link and direction, while routes push and while they pull
               (APSP (3), GADGET (8) per link)
    transfer   sum of moved data and parameters in a slot <= B (Eris (2d))

    What a job with a parameter server pushes over a link it pulls back over the same link at the same rate, so it counts in
    its direction while routes push and in the other one while they pull; a ring sends in its direction all the time. A
    shared link has one row for all of this.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.now_slot = 0
        self.first_slot = 0  # claims on earlier slots are forgotten
        resources = len(setup.resources)
        self._width = resources
        self._link_row = resources * len(setup.nodes)
        self._pull_row = self._link_row + 2 * len(setup.links)
        self._moved_row = self._pull_row + 2 * len(setup.links)
        self.limit = [c for node in setup.nodes for c in node.capacity_milli]
        self.limit += 2 * [bps for link in setup.links for bps in (link.ab_bps, link.ba_bps)]
        self.limit.append(
            UNLIMITED if setup.transfer_bytes_per_slot is None else setup.transfer_bytes_per_slot
        )
        self.open = [0] * len(self.limit)
        self.booked: dict[int, dict[int, int]] = {}
        self.down_nodes: set[int] = set()
        self.down_links: set[int] = set()

    def claims(self, job: Job, step: Step) -> list[Claim]:
        """Claims of a step, by row and slot."""
        amounts: list[tuple[int, int]] = []
        for place, node in enumerate(step.nodes):
            workers = step.workers[place]
            servers = step.servers[place] if step.servers else 0
            for above in self.setup.lineage[node]:
                for resource, milli in job.worker:
                    amounts.append((above * self._width + resource, milli * workers))
                if servers:
                    for resource, milli in job.server:
                        amounts.append((above * self._width + resource, milli * servers))
        for route in step.routes:
            here = route.src
            for number in route.path:
                link = self.setup.links[number]
                backward = int(here != link.a)
                here = link.a if backward else link.b
                push, pull = self._link_row + 2 * number, self._pull_row + 2 * number
                if link.shared:
                    rows: tuple[int, ...] = (push,)
                elif route.duplex == "push-pull":
                    rows = (push, push + 1, pull, pull + 1)
                else:
                    rows = (push + backward, pull + (backward != job.pulls_back))
                amounts += [(row, route.bps) for row in rows]
        if self.limit[-1] != UNLIMITED:
            amounts.append((self._moved_row, self._moved(job, step)))
        if step.until_us == OPEN:
            return [(row, FOREVER, amount) for row, amount in amounts]
        slot_us = self.setup.slot_us
        slots = range(step.from_us // slot_us, -(-step.until_us // slot_us))
        return [(row, slot, amount) for row, amount in amounts for slot in slots]

    @staticmethod
    def _moved(job: Job, step: Step) -> int:
        """Bytes moved: data that changes node + parameters of workers away from their server (Eris (2d))."""
        data = sum(flow.bytes for flow in step.flows if flow.src != flow.dst)
        if not step.servers:
            return data
        away = sum(w for w, s in zip(step.workers, step.servers, strict=True) if s == 0)
        return data + away * job.traffic_bytes_per_worker_slot

    def enter(self, job: Job, step: Step, entered: list[Claim]) -> tuple[int, int, int] | None:
        """Enter the claims of a step and append them to `entered`; return the first limit exceeded, else None.

        Amounts only grow here, so a limit that holds after the last entry held after each.
        """
        _, until_us, nodes, counts, servers, _, routes, _ = step
        if until_us != OPEN or routes or servers or self.limit[-1] != UNLIMITED or self.booked:
            claims = self.claims(job, step)
            self.add(claims)
            entered += claims
            return self.exceeded(claims)
        in_use, limit, lineage, width = self.open, self.limit, self.setup.lineage, self._width
        demand = job.worker
        for node, workers in zip(nodes, counts, strict=True):
            for above in lineage[node]:
                for resource, milli in demand:
                    row, amount = above * width + resource, milli * workers
                    in_use[row] = total = in_use[row] + amount
                    entered.append((row, FOREVER, amount))
                    if total > limit[row]:
                        return row, self.now_slot, total - limit[row]
        return None

    def add(self, claims: Iterable[Claim]) -> None:
        """Enter claims without checking limits."""
        for row, slot, amount in claims:
            if slot == FOREVER:
                self.open[row] += amount
            elif slot >= self.first_slot:
                slots = self.booked.setdefault(row, {})
                slots[slot] = slots.get(slot, 0) + amount

    def remove(self, claims: Iterable[Claim]) -> None:
        """Remove claims."""
        for row, slot, amount in claims:
            if slot == FOREVER:
                self.open[row] -= amount
            elif slot >= self.first_slot:
                self.booked[row][slot] -= amount

    def forget_slots(self) -> None:
        """Forget the slots before the current one."""
        self.first_slot = self.now_slot
        for row, slots in list(self.booked.items()):
            left = {slot: amount for slot, amount in slots.items() if slot >= self.first_slot}
            if left:
                self.booked[row] = left
            else:
                del self.booked[row]

    def exceeded(self, claims: Iterable[Claim]) -> tuple[int, int, int] | None:
        """(row, slot, excess) of the first row named in `claims` that is over its limit; None if there is none."""
        for row, slot, _ in claims:
            over = self.open[row] - self.limit[row]
            slots = self.booked.get(row)
            if slots:
                if slot == FOREVER:
                    for at, amount in slots.items():
                        if at >= self.now_slot and over + amount > 0:
                            return row, at, over + amount
                else:
                    over += slots.get(slot, 0)
            if over > 0:
                return row, self.now_slot if slot == FOREVER else slot, over
        return None

    def free(self, row: int, slot: int) -> int:
        """What is left of a row in a slot."""
        return self.limit[row] - self.open[row] - self.booked.get(row, {}).get(slot, 0)

    def describe(self, found: tuple[int, int, int], job: str) -> Violation:
        """The violation for a limit that is exceeded."""
        row, slot, over = found
        if row == self._moved_row:
            return Violation(
                "capacity.transfer", job, "", slot, over, f"{over} bytes more than may move in a slot"
            )
        if row >= self._link_row:
            number, direction = divmod((row - self._link_row) % (self._pull_row - self._link_row), 2)
            link, names = self.setup.links[number], self.setup.nodes
            a, b = (link.b, link.a) if direction else (link.a, link.b)
            name = f"{names[a].name} -> {names[b].name}"
            when = ", pulled back" if row >= self._pull_row else ""
            return Violation(
                "capacity.link", job, name, slot, over, f"{over} bit/s more than {self.limit[row]}{when}"
            )
        node, resource = divmod(row, self._width)
        what, limit = self.setup.resources[resource], self.limit[row]
        detail = f"{(limit + over) / 1000:g} {what} in use; the limit is {limit / 1000:g}"
        return Violation("capacity.node", job, self.setup.nodes[node].name, slot, over / 1000, detail)

    def change(self, change: Change) -> None:
        """Apply a change to limits and to what is down."""
        a, b, value = change.a, change.b, change.value
        if change.kind == "capacity":
            self.limit[a * self._width + b] = value
        elif change.kind == "bandwidth":
            ways = (0, 1) if b == 2 or self.setup.links[a].shared else (b,)
            for way in ways:
                self.limit[self._link_row + 2 * a + way] = self.limit[self._pull_row + 2 * a + way] = value
        elif change.kind.startswith("node_"):
            (self.down_nodes.add if change.kind == "node_down" else self.down_nodes.discard)(a)
        elif change.kind.startswith("link_"):
            (self.down_links.add if change.kind == "link_down" else self.down_links.discard)(a)

    def free_bps(self, own: Iterable[Claim]) -> list[list[int]]:
        """Bit/s that can be pushed over every link, in both directions, and pulled back, free now without the claims `own`.

        0 where the link is down.
        """
        mine: dict[int, int] = {}
        for row, slot, amount in own:
            if slot in (FOREVER, self.now_slot):
                mine[row] = mine.get(row, 0) + amount
        found = []
        for number, link in enumerate(self.setup.links):
            ends = {*self.setup.ancestry[link.a], *self.setup.ancestry[link.b]}
            if number in self.down_links or ends & self.down_nodes:
                found.append([0, 0])
                continue
            push, pull = self._link_row + 2 * number, self._pull_row + 2 * number
            ways = ((push,), (push,)) if link.shared else ((push, pull + 1), (push + 1, pull))
            found.append([min(self._left(row) + mine.get(row, 0) for row in rows) for rows in ways])
        return found

    def _left(self, row: int) -> int:
        return self.limit[row] - self.open[row] - self.booked.get(row, {}).get(self.now_slot, 0)

    def every_row(self) -> list[Claim]:
        """An empty claim on every row and every current or future slot, to check all limits."""
        rows: list[Claim] = [(row, FOREVER, 0) for row in range(len(self.limit))]
        rows += [
            (row, slot, 0) for row, slots in self.booked.items() for slot in slots if slot >= self.now_slot
        ]
        return rows
