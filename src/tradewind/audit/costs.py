"""The audit's cost ledger: rent, transfer, traffic and deployment, posted when a step is over."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import floor, fsum
from typing import NamedTuple

from tradewind.audit.record import Record
from tradewind.audit.results import exact
from tradewind.audit.work import comm_time_us, exchanged, speed
from tradewind.model.decision import Step
from tradewind.model.job import Rounds
from tradewind.model.result import Violation
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, OPEN
from tradewind.model.view import Change

SlotAmounts = dict[tuple[int, int, int], int]
"""(slot, two indices) -> amount."""


ROUNDING_USD = 1e-5
"""USD that a spend cap may be exceeded by, for rounding of times to microseconds."""


def _list_egress(setup: Setup, a: int, b: int) -> float:
    """List price of a GB between two sites; 0 within a site."""
    return setup.egress[a, b].usd[0] if a != b and (a, b) in setup.egress else 0.0


def _warm_us(record: Record, step: Step, begin: int, end: int) -> int:
    """When a run at two sites does work: after the warm-up, unless it continues the last one."""
    until, places, warm_us = record.rented
    here = tuple(zip(step.nodes, step.workers, strict=True))
    if until != begin or places != here:
        warm_us = begin + record.job.warmup_us
    record.rented = (end, here, warm_us)
    return warm_us


class CostState(NamedTuple):
    """What a cost ledger saves."""

    rent: SlotAmounts
    data: SlotAmounts
    traffic: SlotAmounts
    rent_usd: tuple[float, ...]
    transfer_usd: tuple[float, ...]
    traffic_usd: tuple[float, ...]
    deploy_usd: tuple[float, ...]
    spent: dict[tuple[int, int], tuple[float, ...]]
    factors: dict[tuple[str, int, int], tuple[tuple[int, ...], ...]]  # slot, value, of (if not MILLI)
    overspent: tuple[Violation, ...] = ()


class CostLedger:
    """Amounts per slot as integers, priced at the end or when their slot is closed.

    C1 transfer    F_rr'(GB moved in the slot)           mlBroker (1)
    C2 rent        F_kr(mean units in the slot) * hours  mlBroker (2)
    C3 deployment  c_i where the job was absent before   mlBroker (6)
    C4 traffic     F_rr'(GB of parameters), in one tariff with transfer   mlBroker (7)
    C5 discount    F_q(spend of a pool in a period) - spend
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._link_priced = any(link.usd_per_gb for link in setup.links)
        self.is_idle = not setup.rent and not setup.egress and not self._link_priced
        self._rent: SlotAmounts = {}
        self._data: SlotAmounts = {}
        self._traffic: SlotAmounts = {}
        self._rent_usd: list[float] = []  # of closed slots, like transfer and traffic
        self._transfer_usd: list[float] = []
        self._traffic_usd: list[float] = []
        self._deploy_usd: list[float] = []
        self._factors: dict[tuple[str, int, int], list[tuple[int, ...]]] = {}
        self.overspent: list[Violation] = []  # jobs that spent more than they may
        self._spent: dict[tuple[int, int], tuple[float, ...]] = {}  # (pool, period) -> USD of closed slots
        self._pool_of = {
            (kind, *key): number
            for number, pool in enumerate(setup.pools)
            for kind, keys in (("rent", pool.rent), ("egress", pool.egress))
            for key in keys
        }

    def save(self) -> CostState:
        """The state; sums are kept exactly."""
        return CostState(
            dict(self._rent),
            dict(self._data),
            dict(self._traffic),
            exact(self._rent_usd),
            exact(self._transfer_usd),
            exact(self._traffic_usd),
            exact(self._deploy_usd),
            dict(self._spent),
            {key: tuple(steps) for key, steps in self._factors.items()},
            tuple(self.overspent),
        )

    def restore(self, state: CostState) -> None:
        """Continue from what `save` returned."""
        self._rent, self._data, self._traffic = state.rent, state.data, state.traffic
        self._rent_usd, self._transfer_usd = list(state.rent_usd), list(state.transfer_usd)
        self._traffic_usd, self._deploy_usd = list(state.traffic_usd), list(state.deploy_usd)
        self._spent = dict(state.spent)
        self._factors = {key: [(*step, MILLI)[:3] for step in steps] for key, steps in state.factors.items()}
        self.overspent = list(state.overspent)

    def change(self, change: Change) -> None:
        """Record a price that holds from this slot on."""
        if change.kind in ("price", "egress"):
            steps = self._factors.setdefault((change.kind, change.a, change.b), [])
            steps.append((change.at_us // self._setup.slot_us, change.value, change.of))

    def factor(self, kind: str, a: int, b: int, slot: int) -> float:
        """Factor on a tariff in a slot."""
        found = 1.0
        for since, value, of in self._factors.get((kind, a, b), ()):
            if since <= slot:
                found = value / of
        return found

    def post(self, record: Record, now_us: int) -> None:
        """Post the part of a record's steps between record.unbilled_us and now."""
        job = record.job
        if self.is_idle and not job.deploy_usd:
            record.unbilled_us = now_us
            return
        for step in record.steps:
            begin, end = max(step.from_us, record.unbilled_us), min(step.until_us, now_us)
            if begin >= end:
                continue
            here = frozenset(
                n for i, n in enumerate(step.nodes) if step.workers[i] or (step.servers and step.servers[i])
            )
            if job.deploy_usd:
                stayed = record.last_nodes if record.last_end_us == begin else frozenset()
                self._deploy_usd.extend([job.deploy_usd] * len(here - stayed))
            record.last_nodes, record.last_end_us = here, end
            if not self.is_idle:
                self._post_step(record, step, begin, end)
        record.unbilled_us = max(record.unbilled_us, now_us)

    def _post_step(self, record: Record, step: Step, begin: int, end: int) -> None:
        setup, job = self._setup, record.job
        site = setup.site_of
        if begin == step.from_us:
            for flow in step.flows:
                if site[flow.src] != site[flow.dst]:
                    key = (begin // setup.slot_us, site[flow.src], site[flow.dst])
                    self._data[key] = self._data.get(key, 0) + flow.bytes
        servers = step.servers or (0,) * len(step.nodes)
        warm_us = _warm_us(record, step, begin, end) if len(step.nodes) == 2 and job.sync_every else None
        if job.spend_cap_usd is not None:
            self._count_spend(record, step, begin, end)
        for slot in range(begin // setup.slot_us, -(-end // setup.slot_us)):
            span = min(end, (slot + 1) * setup.slot_us) - max(begin, slot * setup.slot_us)
            for place, node in enumerate(step.nodes):
                for demand, count in ((job.worker, step.workers[place]), (job.server, servers[place])):
                    for resource, milli in demand if count else ():
                        for payer in setup.ancestry[node]:  # the first with a tariff is billed
                            if (payer, resource) in setup.rent:
                                key = (slot, payer, resource)
                                self._rent[key] = self._rent.get(key, 0) + milli * count * span
                                break
            self._post_traffic(record, step, servers, slot, span)
            if warm_us is not None:
                ends = (max(begin, slot * setup.slot_us), min(end, (slot + 1) * setup.slot_us))
                self._post_exchange(record, step, slot, ends[1] - max(ends[0], warm_us))
        if self._link_priced and isinstance(job.work, Rounds):
            self._post_routes(record, step, end - begin)

    def _post_traffic(
        self, record: Record, step: Step, servers: tuple[int, ...], slot: int, span: int
    ) -> None:
        """Parameters between workers and servers at other sites, in proportion to the servers at each site."""
        size, total, site = record.job.traffic_bytes_per_worker_slot, sum(servers), self._setup.site_of
        if not size or not total:
            return
        for i, node in enumerate(step.nodes):
            for k, other in enumerate(step.nodes):
                if servers[k] and step.workers[i] and site[node] != site[other]:
                    key = (slot, site[node], site[other])
                    amount = size * step.workers[i] * servers[k] * span // total
                    self._traffic[key] = self._traffic.get(key, 0) + amount

    def _post_exchange(self, record: Record, step: Step, slot: int, span: int) -> None:
        """Parameters that two sites send each other: model_bytes / sync_every per round and direction."""
        job, (a, b) = record.job, (self._setup.site_of[node] for node in step.nodes)
        rounds = Fraction(speed(self._setup, job, step)) * max(0, span) / 10**6
        amount = floor(rounds * job.model_bytes * self._setup.slot_us / job.sync_every)
        for key in ((slot, a, b), (slot, b, a)):
            self._traffic[key] = self._traffic.get(key, 0) + amount

    def _count_spend(self, record: Record, step: Step, begin: int, end: int) -> None:
        """Add what a job spends at list price; remember where it exceeds its cap."""
        setup, job, site = self._setup, record.job, self._setup.site_of
        hours, usd = (end - begin) / 3.6e9, 0.0
        for node, workers in zip(step.nodes, step.workers, strict=True):
            for resource, milli in job.worker:
                payer = next((n for n in setup.ancestry[node] if (n, resource) in setup.rent), None)
                if payer is not None:
                    usd += milli / 1000 * workers * hours * setup.rent[payer, resource].usd[0]
        for flow in step.flows if begin == step.from_us else ():
            usd += flow.bytes / 1e9 * _list_egress(setup, site[flow.src], site[flow.dst])
        if len(step.nodes) == 2 and job.sync_every:
            a, b = (site[node] for node in step.nodes)
            active = max(0, end - max(begin, record.rented[2]))
            rounds = float(speed(setup, job, step) * active) / 1e6
            gb = rounds * job.model_bytes / job.sync_every / 1e9
            usd += gb * (_list_egress(setup, a, b) + _list_egress(setup, b, a))
        cap, before = job.spend_cap_usd or 0.0, record.list_usd
        record.list_usd += usd
        if before <= cap + ROUNDING_USD < record.list_usd:
            detail = f"it spends more than {cap:.9g} USD at list price, its cap"
            over, slot = record.list_usd - cap, (end - 1) // setup.slot_us
            self.overspent.append(Violation("spend.job", job.id, "", slot, over, detail))

    def _post_routes(self, record: Record, step: Step, span: int) -> None:
        job, work = record.job, record.job.work
        assert isinstance(work, Rounds)
        n = sum(step.workers)
        share = 2 * ((n - 1) / n if work.comm == "ring" and n else 1)
        rounds = span / max(1, work.compute_us + comm_time_us(self._setup, job, step))
        for route in step.routes:
            usd = sum(self._setup.links[link].usd_per_gb for link in route.path)
            self._traffic_usd.append(rounds * share * exchanged(job, route.src) / 1e9 * usd)

    def close_slots(self, records: Iterable[Record], before: int) -> None:
        """Post what these jobs did in the slots before this one, and price those slots for good."""
        for record in records:
            if record.steps:
                self.post(record, before * self._setup.slot_us)
        rent, transfer, traffic = self._priced(before)
        self._spent = self._spending(before)
        self._rent_usd = list(exact([*self._rent_usd, *rent]))
        self._transfer_usd = list(exact([*self._transfer_usd, *transfer]))
        self._traffic_usd = list(exact([*self._traffic_usd, *traffic]))
        self._deploy_usd = list(exact(self._deploy_usd))
        for amounts in (self._rent, self._data, self._traffic):
            for key in [key for key in amounts if key[0] < before]:
                del amounts[key]
        for steps in self._factors.values():
            while len(steps) > 1 and steps[1][0] <= before:
                del steps[0]

    def _priced(self, before: int) -> tuple[list[float], list[float], list[float]]:
        """USD of rent, transfer and traffic in the slots before this one."""
        setup, hours = self._setup, self._setup.slot_us / 3.6e9
        rent = [
            setup.rent[node, resource].cost(amount / setup.slot_us / 1000)
            * hours
            * self.factor("price", node, resource, slot)
            for (slot, node, resource), amount in sorted(self._rent.items())
            if slot < before
        ]
        transfer, traffic = [], []
        for slot, a, b in sorted(self._data.keys() | self._traffic.keys()):
            if slot < before and (a, b) in setup.egress:
                moved = self._data.get((slot, a, b), 0) / 1e9
                exchanged = self._traffic.get((slot, a, b), 0) / setup.slot_us / 1e9
                usd = setup.egress[a, b].cost(moved + exchanged) * self.factor("egress", a, b, slot)
                share = moved / (moved + exchanged) if moved + exchanged else 0.0
                transfer.append(usd * share)
                traffic.append(usd * (1 - share))
        return rent, transfer, traffic

    def _spending(self, before: int) -> dict[tuple[int, int], tuple[float, ...]]:
        """(pool, period) -> USD at the members' own tariffs, closed slots and those before this one."""
        setup, found = self._setup, {key: list(parts) for key, parts in self._spent.items()}
        for (slot, node, resource), amount in self._rent.items() if setup.pools else ():
            if slot < before and (pool := self._pool_of.get(("rent", node, resource))) is not None:
                usd = setup.rent[node, resource].cost(amount / setup.slot_us / 1000) * setup.slot_us / 3.6e9
                usd *= self.factor("price", node, resource, slot)
                found.setdefault((pool, self._period(pool, slot)), []).append(usd)
        for slot, a, b in self._data.keys() | self._traffic.keys() if setup.pools else ():
            if slot < before and (pool := self._pool_of.get(("egress", a, b))) is not None:
                gb = self._data.get((slot, a, b), 0) / 1e9
                gb += self._traffic.get((slot, a, b), 0) / setup.slot_us / 1e9
                usd = setup.egress[a, b].cost(gb) * self.factor("egress", a, b, slot)
                found.setdefault((pool, self._period(pool, slot)), []).append(usd)
        return {key: exact(parts) for key, parts in found.items()}

    def _period(self, pool: int, slot: int) -> int:
        return slot * self._setup.slot_us // self._setup.pools[pool].period_us

    def _discounts(self) -> list[float]:
        """USD that pools add to the bill of their members (negative: discounts), by pool and period."""
        found = []
        for (number, period), parts in sorted(self._spending(OPEN).items()):
            pool, spent = self._setup.pools[number], fsum(parts)
            before = pool.carried_usd if period == 0 else 0.0
            whole, was = max(0.0, before + spent - pool.free_usd), max(0.0, before - pool.free_usd)
            found.append(pool.tariff.cost(whole) - pool.tariff.cost(was) - spent)
        return found

    def totals(self) -> dict[str, float]:
        """USD by kind of cost."""
        rent, transfer, traffic = self._priced(OPEN)
        parts = {
            "cost_transfer_usd": fsum([*self._transfer_usd, *transfer]),
            "cost_rent_usd": fsum([*self._rent_usd, *rent]),
            "cost_deploy_usd": fsum(self._deploy_usd),
            "cost_traffic_usd": fsum([*self._traffic_usd, *traffic]),
        }
        if self._setup.pools:
            parts["cost_discount_usd"] = fsum(self._discounts())
        return {"cost_usd": fsum(parts.values()), **parts}
