"""The offers of a setup as arrays: prices, room, accounts of pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.machine import Machine
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED, US_PER_HOUR

Factors = Callable[[int, int], Floats]
"""(node, resource) -> factor on the rent in each slot, shape (T,)."""


class Market:
    """What a setup offers, whatever the jobs: hosts with machines in order, their kinds, payers and pools."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        if len(setup.resources) != 1:
            raise Unsupported(
                f"the broker rents machines, one resource; the scenario has {len(setup.resources)}"
            )
        self.nodes = tuple(node for node in setup.hosts if setup.nodes[node].machine is not None)
        if not self.nodes:
            raise Unsupported("no node of the scenario has machines; the broker has nothing to rent")
        self.machines = [self._machine(node) for node in self.nodes]
        self.site = np.array([setup.site_of[node] for node in self.nodes], dtype=np.int64)
        self.spot = np.array([setup.nodes[node].interruptions_per_hour for node in self.nodes])
        self.payer = [self._payer(node) for node in self.nodes]
        self.list_usd = np.array([self._rent_usd(payer) for payer in self.payer])
        for pair, tariff in setup.egress.items():
            if len(tariff.usd) > 1:
                names = "->".join(setup.nodes[node].name for node in pair)
                raise Unsupported(f"egress[{names}] has tiers per slot; the broker needs pools for tiers")

    def _machine(self, node: int) -> Machine:
        machine = self.setup.nodes[node].machine
        assert machine is not None
        return machine

    def _payer(self, node: int) -> int:
        while node >= 0 and (node, 0) not in self.setup.rent:
            node = self.setup.nodes[node].parent
        return node

    def _rent_usd(self, payer: int) -> float:
        """USD per machine and slot; 0 where nothing is charged (a commitment already paid)."""
        if payer < 0:
            return 0.0
        tariff = self.setup.rent[payer, 0]
        if len(tariff.usd) > 1:
            name = self.setup.nodes[payer].name
            raise Unsupported(f"nodes[{name}].rent has tiers; the broker needs pools for tiers")
        return tariff.usd[0] * self.setup.slot_us / US_PER_HOUR

    @cached_property
    def kinds(self) -> dict[tuple[Machine, bool], Ints]:
        """(machine, can be interrupted) -> offers."""
        found: dict[tuple[Machine, bool], list[int]] = {}
        for offer, machine in enumerate(self.machines):
            found.setdefault((machine, bool(self.spot[offer])), []).append(offer)
        return {key: np.array(offers, dtype=np.int64) for key, offers in found.items()}

    @cached_property
    def rent_pool(self) -> Ints:
        """Pool of each offer, -1: none."""
        pool_of = {key: number for number, pool in enumerate(self.setup.pools) for key in pool.rent}
        return np.array([pool_of.get((payer, 0), -1) for payer in self.payer], dtype=np.int64)

    @cached_property
    def egress_pool(self) -> Mapping[tuple[int, int], int]:
        """Pair of sites -> its pool."""
        return {key: number for number, pool in enumerate(self.setup.pools) for key in pool.egress}

    @cached_property
    def site_offers(self) -> tuple[int, ...]:
        """Sites with offers, in order."""
        return tuple(sorted(set(self.site.tolist())))

    def deepest(self) -> Floats:
        """Least factor that a pool leaves of a spend, per pool; none is certain where more spend may lower the bill."""
        return np.array(
            [
                -1e6 if not pool.tariff.is_concave else 0.0 if pool.free_usd else pool.tariff.usd[-1]
                for pool in self.setup.pools
            ]
        )


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """Accounts of the pools in the slots that are planned.

    first    account of slot 0, per pool; period: slots per account; elapsed: slots of it before slot 0
    tariff   pool of each account; spent: USD spent in it before
    """

    first: Ints
    period: Ints
    elapsed: Ints
    tariff: Ints
    spent: Floats


def accounts_of(setup: Setup, slot: int, slots: int, spent: Mapping[tuple[int, int], float]) -> Accounts:
    """Accounts of the slots from `slot` on; spent: (pool, period) -> USD spent by now, without what was carried."""
    first, period, elapsed, tariff, before = [], [], [], list[int](), list[float]()
    for number, pool in enumerate(setup.pools):
        length = pool.period_us // setup.slot_us
        now = slot // length
        first.append(len(tariff))
        period.append(length)
        elapsed.append(slot - now * length)
        for each in range(now, (slot + max(1, slots) - 1) // length + 1):
            tariff.append(number)
            before.append(spent.get((number, each), 0.0) + (pool.carried_usd if each == 0 else 0.0))
    ints = [np.array(values, dtype=np.int64) for values in (first, period, elapsed, tariff)]
    return Accounts(first=ints[0], period=ints[1], elapsed=ints[2], tariff=ints[3], spent=np.array(before))


def rooms(setup: Setup, nodes: tuple[int, ...], slots: int, milli: int) -> Floats:
    """Machines of each offer by capacity alone, shape (O, T)."""
    limit = [setup.nodes[node].capacity_milli[0] for node in nodes]
    whole = [1e18 if each == UNLIMITED else float(each // max(1, milli)) for each in limit]
    return np.repeat(np.array(whole)[:, None], slots, axis=1)


def tiers(setup: Setup) -> tuple[Floats, Floats, Floats, Bools]:
    """(starts, rates (Q, K), free, retroactive (Q,)) of all pools; missing tiers begin beyond all spend."""
    most = max((len(pool.tariff.usd) for pool in setup.pools), default=1)
    start, rate = np.full((len(setup.pools), most), 1e18), np.zeros((len(setup.pools), most))
    for number, pool in enumerate(setup.pools):
        count = len(pool.tariff.usd)
        start[number, :count], rate[number, :count] = pool.tariff.starts, pool.tariff.usd
        rate[number, count:] = pool.tariff.usd[-1]
    free = np.array([pool.free_usd for pool in setup.pools])
    return (
        start,
        rate,
        free,
        np.array([pool.tariff.rule == "retroactive" for pool in setup.pools], dtype=np.bool_),
    )
