"""Spend caps: what every tenant has committed to, at list price, against its caps.

The spend of a plan is its rent, data, traffic and deployment at first-tier prices, so it does not depend on other
tenants and is never less than the tenant's share of the pooled bill. It counts in full when the plan is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from tradewind.audit.costs import CostLedger
from tradewind.audit.record import Record
from tradewind.model.decision import Plan, Step
from tradewind.model.result import Violation
from tradewind.model.setup import Setup

DIGITS = 1e-9  # money is compared to nine digits


class _Account:
    """One tenant: USD of past slots, and USD by job of the current slot."""

    __slots__ = ("now", "past", "slot")

    def __init__(self) -> None:
        self.past, self.slot = 0.0, -1
        self.now: dict[int, float] = {}

    def advance(self, slot: int) -> None:
        """Close the current slot if another one has begun."""
        if slot != self.slot:
            self.past += fsum(self.now.values())
            self.slot, self.now = slot, {}


class Spent(NamedTuple):
    """An account as it is saved."""

    tenant: str
    past: float
    slot: int
    now: dict[int, float]


class SpendLedger:
    """The audit's own ledger of what tenants with a cap spend."""

    def __init__(self, setup: Setup, costs: CostLedger) -> None:
        self._setup, self._costs = setup, costs
        self._accounts: dict[str, _Account] = {}

    def save(self) -> tuple[Spent, ...]:
        """The state: one row per tenant."""
        return tuple(Spent(name, a.past, a.slot, dict(a.now)) for name, a in self._accounts.items())

    def restore(self, rows: tuple[Spent, ...]) -> None:
        """Continue from what `save` returned."""
        for row in rows:
            account = self._accounts[row.tenant] = _Account()
            account.past, account.slot, account.now = row.past, row.slot, row.now

    def exceeded(
        self, records: Mapping[int, Record], plans: Sequence[Plan], slot: int
    ) -> tuple[Violation, ...]:
        """Sum over a tenant's plans of list-price USD <= slot_usd in the slot, and <= total_usd in all slots.

        Returns the plan at which a sum exceeds its cap, else nothing; enters nothing.
        """
        for tenant, mine in self._by_tenant(records, plans).items():
            cap, account = self._setup.cap_of(tenant), self._accounts.setdefault(tenant, _Account())
            account.advance(slot)
            if cap is None:
                continue
            kept = {job: usd for job, usd in account.now.items() if job not in mine}
            spent = fsum(kept.values())
            for job, usd in mine.items():
                spent += usd
                for rule, limit, amount in (
                    ("spend.slot", cap.slot_usd, spent),
                    ("spend.total", cap.total_usd, account.past + spent),
                ):
                    if limit is not None and amount > limit * (1 + DIGITS) + DIGITS:
                        detail = (
                            f"tenant {tenant!r} spends {amount:.9g} USD at list price; its cap is {limit:.9g}"
                        )
                        return (Violation(rule, records[job].job.id, "", slot, amount - limit, detail),)
        return ()

    def enter(self, records: Mapping[int, Record], plans: Sequence[Plan], slot: int) -> None:
        """Enter plans that passed the check."""
        for tenant, mine in self._by_tenant(records, plans).items():
            account = self._accounts.setdefault(tenant, _Account())
            account.advance(slot)
            account.now.update(mine)

    def _by_tenant(self, records: Mapping[int, Record], plans: Iterable[Plan]) -> dict[str, dict[int, float]]:
        """Tenant -> job -> USD of its plan, for tenants with a cap, in the order of the plans."""
        found: dict[str, dict[int, float]] = {}
        for plan in plans:
            record = records[plan.job]
            tenant = record.job.tenant
            if self._setup.cap_of(tenant) is not None:
                usd = fsum(part for step in plan.steps for part in self._parts(record, step))
                found.setdefault(tenant, {})[plan.job] = usd
        return found

    def _parts(self, record: Record, step: Step) -> Iterable[float]:
        """Rent, data, traffic and deployment of one step in USD, every unit at its first tier's price."""
        job, slot = record.job, step.from_us // self._setup.slot_us
        hours = (step.until_us - step.from_us) / 3.6e9
        servers = step.servers or (0,) * len(step.nodes)
        here = set()
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            if workers or ps:
                here.add(node)
            for demand, count in ((job.worker, workers), (job.server, ps)):
                for resource, milli in demand if count else ():
                    yield milli / 1000 * count * hours * self._rent(node, resource, slot)
        for flow in step.flows:
            yield flow.bytes / 1e9 * self._egress(flow.src, flow.dst, slot)
        size, total = job.traffic_bytes_per_worker_slot, sum(servers)
        for node, workers in zip(step.nodes, step.workers, strict=True):
            for other, ps in zip(step.nodes, servers, strict=True):
                if size and workers and ps:
                    yield size * workers * ps / total / 1e9 * self._egress(node, other, slot)
        yield job.deploy_usd * len(here - _stayed(record, step.from_us))

    def _rent(self, node: int, resource: int, slot: int) -> float:
        """List price of a unit-hour at the node, else its rack, else its site; 0 where none has a tariff."""
        for payer in self._setup.ancestry[node]:
            if (payer, resource) in self._setup.rent:
                usd = self._setup.rent[payer, resource].usd[0]
                return usd * self._costs.factor("price", payer, resource, slot)
        return 0.0

    def _egress(self, src: int, dst: int, slot: int) -> float:
        """List price of a GB between the sites of two nodes; 0 within a site."""
        a, b = self._setup.site_of[src], self._setup.site_of[dst]
        if a == b or (a, b) not in self._setup.egress:
            return 0.0
        return self._setup.egress[a, b].usd[0] * self._costs.factor("egress", a, b, slot)


def _stayed(record: Record, at_us: int) -> frozenset[int]:
    """Nodes where the job was present just before `at_us`."""
    for step in record.steps:
        if step.until_us == at_us:
            servers = step.servers or (0,) * len(step.nodes)
            used = zip(step.nodes, step.workers, servers, strict=True)
            return frozenset(node for node, workers, ps in used if workers or ps)
    return record.last_nodes if record.last_end_us == at_us else frozenset()
