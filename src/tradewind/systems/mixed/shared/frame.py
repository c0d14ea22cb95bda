"""Places, limits and tariffs of a setup as arrays, and the market of the next slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.job import Demand, Job
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MILLI, UNLIMITED, US_PER_HOUR
from tradewind.systems.mixed.kernels.market import Market, used

FAR = 1e17
"""Free amounts from here on are unlimited."""


class Supply(NamedTuple):
    """What there is in the next T slots.

    first      number of the first slot
    units      (T, N, R) units of every node, 0 where it is down, FAR where unlimited
    gb         (T,) GB that may be moved
    factor     (T, A) factor on the rent of every account; egress (H, H) USD per GB between places
    purse      tenant with a spend cap -> (T + 1,) USD at list price that it may spend in every slot, and in all
    """

    first: int
    units: Floats
    gb: Floats
    factor: Floats
    egress: Floats
    purse: Mapping[str, Floats] = MappingProxyType({})


@dataclass
class Known:
    """What a policy knows of a job.

    done     work done, in the unit of its kind; chunks: chunks done by node
    places   nodes where it ran until just now; volumes: (node, bytes) of each of the next slots, for streams
    """

    done: int = 0
    chunks: dict[int, int] = field(default_factory=dict)
    places: tuple[int, ...] = ()
    volumes: tuple[tuple[tuple[int, int], ...], ...] = ()


class Frame:
    """Arrays of a setup that do not change."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.hosts = np.array(setup.hosts, dtype=np.int64)
        self.place = {node: h for h, node in enumerate(setup.hosts)}
        self.site = np.array([setup.site_of[node] for node in setup.hosts], dtype=np.int64)
        hosts, width = len(self.hosts), len(setup.resources)
        deep = max(len(setup.lineage[node]) for node in setup.hosts)
        self.above = np.full((hosts, deep), -1, dtype=np.int64)
        for h, node in enumerate(setup.hosts):
            self.above[h, : len(setup.lineage[node])] = setup.lineage[node]
        self.under = np.zeros((hosts, len(setup.nodes)))
        for h, node in enumerate(setup.hosts):
            self.under[h, list(setup.lineage[node])] = 1.0
        self.account = np.full((hosts, width), -1, dtype=np.int64)
        self.payers: list[tuple[int, int]] = []
        for h, node in enumerate(setup.hosts):
            for r in range(width):
                payer = node
                while payer >= 0 and (payer, r) not in setup.rent:
                    payer = setup.nodes[payer].parent
                if payer >= 0:
                    if (payer, r) not in self.payers:
                        self.payers.append((payer, r))
                    self.account[h, r] = self.payers.index((payer, r))
        tiers = max((len(setup.rent[key].usd) for key in self.payers), default=1)
        self.starts = np.full((len(self.payers), tiers), np.inf)
        self.usd = np.zeros((len(self.payers), tiers))
        for a, key in enumerate(self.payers):
            tariff = setup.rent[key]
            self.starts[a, : len(tariff.usd)], self.usd[a, : len(tariff.usd)] = tariff.starts, tariff.usd

    def need(self, demand: Demand) -> Floats:
        """Units of every resource, (R,)."""
        found = np.zeros(len(self.setup.resources))
        for resource, milli in demand:
            found[resource] = milli / MILLI
        return found

    def allowed(self, job: Job) -> Ints:
        """Places where a job may run and its data be processed, (H,) of 0 and 1."""
        allowed = [set(self.setup.hosts) if nodes is None else nodes for nodes in (job.nodes, job.data_nodes)]
        return np.array([all(int(node) in each for each in allowed) for node in self.hosts], dtype=np.int64)

    def egress(self, factor: dict[tuple[int, int], float] | None = None) -> Floats:
        """USD per GB between places (H, H), at the first tier."""
        found = np.zeros((len(self.site), len(self.site)))
        for a, one in enumerate(self.site.tolist()):
            for b, other in enumerate(self.site.tolist()):
                tariff = self.setup.egress.get((one, other)) if one != other else None
                if tariff is not None:
                    found[a, b] = tariff.usd[0] * (1.0 if factor is None else factor.get((one, other), 1.0))
        return found

    def limits(self) -> Floats:
        """Units of every node and resource (N, R)."""
        milli = np.array([node.capacity_milli for node in self.setup.nodes], dtype=np.float64)
        return np.where(milli >= UNLIMITED, FAR, milli / MILLI)

    def market(self, supply: Supply) -> Market:
        """The market before anybody has anything, at no prices of scarcity and the true tiers of the bill."""
        slots, nodes, width = supply.units.shape
        free = np.empty((slots, nodes * width + 1))
        free[:, :-1] = supply.units.reshape(slots, nodes * width)
        free[:, -1] = supply.gb
        return Market(
            free=free,
            linear=np.zeros((slots, len(self.hosts), width)),
            byte_usd=np.zeros(slots),
            spent=np.zeros((slots, len(self.payers))),
            factor=supply.factor * (self.setup.slot_us / US_PER_HOUR),
            starts=self.starts,
            usd=self.usd,
            account=self.account,
            above=self.above,
            tiers=True,
        )

    def gb_limit(self) -> float:
        """GB that may be moved in a slot."""
        limit = self.setup.transfer_bytes_per_slot
        return FAR if limit is None else limit / GB

    def scarce(self, market: Market, mu: Floats) -> Floats:
        """Prices of scarcity mu (T, K) per unit at every place, (T, H, R)."""
        slots, _, width = market.linear.shape
        nodes: Floats = mu[:, :-1].reshape(slots, -1, width)
        return np.ascontiguousarray(np.einsum("tnr,hn->thr", nodes, self.under))

    def use(
        self, workers: Ints, servers: Ints, gb: Floats, needs: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """(units at every place (T, H, R), amounts of every limit (T, K)) of a schedule; needs: of a worker and a server."""
        width = len(needs[0])
        units = np.empty((*workers.shape, width))
        rows = np.zeros((len(gb), len(self.setup.nodes) * width + 1))
        used(self.above, *needs, workers, servers, units, rows)
        rows[:, -1] = gb
        return units, rows

    def chords(self, market: Market) -> Floats:
        """Rent per unit at every place (T, H, R) at its average from what is spent to all that is left: none costs less."""
        rent = self._chords(market)
        found = rent[:, np.maximum(self.account, 0)] if len(self.payers) else np.zeros_like(market.linear)
        return np.ascontiguousarray(np.where(self.account >= 0, found, 0.0))

    def listed(self, market: Market) -> Floats:
        """Rent per unit at every place (T, H, R) at list price, the first tier's."""
        if not len(self.payers):
            return np.zeros_like(market.linear)
        rent = self.usd[:, 0] * market.factor
        return np.where(self.account >= 0, rent[:, np.maximum(self.account, 0)], 0.0)

    def _chords(self, market: Market) -> Floats:
        """USD per unit and slot of every account (T, A): no use of what is left costs less."""
        slots, width = market.free.shape[0], market.linear.shape[2]
        found = np.zeros((slots, len(self.payers)))
        for a, (payer, r) in enumerate(self.payers):
            hosts = [int(self.hosts[h]) for h in range(len(self.hosts)) if self.account[h, r] == a]
            left = np.minimum(sum(market.free[:, n * width + r] for n in hosts), FAR)
            left = np.minimum(left, market.free[:, payer * width + r])
            kept = [(s, u) for s, u in zip(self.starts[a], self.usd[a], strict=True) if s < np.inf]
            for t in range(slots):
                low = float(market.spent[t, a])
                high = low + max(float(left[t]), 1e-9)
                slope = kept[-1][1] if high >= FAR else (_cost(kept, high) - _cost(kept, low)) / (high - low)
                found[t, a] = slope * market.factor[t, a]
        return found


def _cost(tiers: list[tuple[float, float]], units: float) -> float:
    """F of graduated tiers."""
    total = 0.0
    for k, (start, usd) in enumerate(tiers):
        end = tiers[k + 1][0] if k + 1 < len(tiers) else np.inf
        total += max(0.0, min(units, end) - start) * usd
    return total
