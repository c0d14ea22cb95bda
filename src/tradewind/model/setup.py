"""Setup: the part of a scenario that is public before the run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args

from tradewind.model.errors import LookupFailed, ScenarioError
from tradewind.model.network import Link, reachable
from tradewind.model.node import Node
from tradewind.model.pool import Pool
from tradewind.model.tariff import Tariff
from tradewind.model.tenant import EVERY_TENANT, SpendCap
from tradewind.model.units import LARGEST, UNLIMITED

Objective = Literal[
    "cost_usd", "total_usd", "profit_usd", "welfare_usd", "utility", "epoch_s", "jct_mean_s", "makespan_s"
]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
DEEPEST = 64
"""Largest depth of the tree of nodes."""
SENSE: dict[Objective, Literal["min", "max"]] = {
    "cost_usd": "min",
    "total_usd": "min",
    "profit_usd": "max",
    "welfare_usd": "max",
    "utility": "max",
    "epoch_s": "min",
    "jct_mean_s": "min",
    "makespan_s": "min",
}


def transport_fraction(transport: str, hops: int) -> tuple[int, int]:
    """w(h) of a path of h hops as (numerator, denominator): store-and-forward h, cut-through 1, chunks:K 1 + (h-1)/K."""
    if transport == "store-and-forward":
        return hops, 1
    if transport == "cut-through":
        return 1, 1
    pieces = int(transport.partition(":")[2])
    return pieces + hops - 1, pieces


def _check_transport(transport: str) -> None:
    name, _, k = transport.partition(":")
    fine = transport in ("store-and-forward", "cut-through") or (
        name == "chunks" and k.isdecimal() and int(k) >= 1
    )
    if not fine:
        raise ScenarioError(
            f"transport is {transport!r}; allowed are store-and-forward, cut-through, chunks:K with K >= 1"
        )


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Nodes, links, tariffs, clock and objective.

    rent       (node, resource) -> Tariff in USD per unit-hour
    egress     (source site, destination site) -> Tariff in USD per GB, by the GB of a slot
    transfer_bytes_per_slot  what all jobs together may move between nodes in a slot (Eris's B); None: unlimited
    slot_us    length of a slot; also the interval of checkpoints
    horizon_us end of the run; arrivals lie before it
    window_slots  how many slots from the current one on may be planned; None: up to the horizon
    transport  weight of long paths (see transport_fraction)
    forecast   public expectations that a policy may use (DPS's n_k, horizon, …)
    pools      discounts on what several nodes or pairs of sites cost together
    spend_caps tenant, or * for every other tenant -> spend cap
    """

    resources: tuple[str, ...]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...] = ()
    rent: Mapping[tuple[int, int], Tariff] = field(default_factory=dict)
    egress: Mapping[tuple[int, int], Tariff] = field(default_factory=dict)
    transfer_bytes_per_slot: int | None = None
    slot_us: int
    horizon_us: int
    window_slots: int | None = None
    transport: str = "store-and-forward"
    objective: Objective
    forecast: Mapping[str, float] = field(default_factory=dict)
    spend_caps: Mapping[str, SpendCap] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()

    def __post_init__(self) -> None:
        for name in ("rent", "egress", "forecast", "spend_caps"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        if not (0 < self.slot_us <= LARGEST and 0 < self.horizon_us <= LARGEST):
            raise ScenarioError(
                f"slot_us is {self.slot_us} and horizon_us {self.horizon_us}; both must be positive (at most {LARGEST})"
            )
        window = self.window_slots
        if window is not None and not 1 <= window <= LARGEST:
            raise ScenarioError(
                f"window_slots is {window}; it must be 1 or more. Leave it out to plan up to the horizon."
            )
        if self.objective not in OBJECTIVES:
            raise ScenarioError(f"objective is {self.objective!r}; allowed are {', '.join(OBJECTIVES)}")
        _check_transport(self.transport)
        self._check_names()
        self._check_tree()
        for number, link in enumerate(self.links):
            for end in (link.a, link.b):
                if not 0 <= end < len(self.nodes):
                    raise ScenarioError(
                        f"links[{number}] ends at node {end}; there are {len(self.nodes)} nodes"
                    )
        for name, second in (("rent", len(self.resources)), ("egress", len(self.nodes))):
            for a, b in getattr(self, name):
                if not (0 <= a < len(self.nodes) and 0 <= b < second):
                    raise ScenarioError(
                        f"{name}[{a}, {b}] names a node or resource that the scenario does not have"
                    )
        for a, b in self.egress:
            if self.nodes[a].parent >= 0 or self.nodes[b].parent >= 0:
                raise ScenarioError(
                    f"egress[{self.nodes[a].name}->{self.nodes[b].name}] names a node inside a site; egress is paid "
                    "between sites (nodes without a parent). Name the sites."
                )
        limit = self.transfer_bytes_per_slot
        if limit is not None and not 0 <= limit <= UNLIMITED:
            raise ScenarioError(
                f"transfer_bytes_per_slot is {limit}; it must be 0 or more. Leave it out if it is unlimited."
            )
        for key, value in self.forecast.items():
            if not math.isfinite(value):
                raise ScenarioError(f"forecast[{key}] is {value}; it must be a finite number")
        for tenant, cap in self.spend_caps.items():
            cap.check(f"spend_caps[{tenant}]")
        self._check_pools()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as its fields; read-only mappings cannot be."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in values.items()}
        return _made, (plain,)

    def _check_pools(self) -> None:
        taken: dict[object, str] = {}
        for pool in self.pools:
            where = f"pools[{pool.name}]"
            if pool.period_us <= 0 or pool.period_us % self.slot_us:
                raise ScenarioError(
                    f"{where}.period_us is {pool.period_us}; it must be a multiple of the slot, {self.slot_us}"
                )
            members = [("rent", *key) for key in pool.rent] + [("egress", *key) for key in pool.egress]
            for member in members:
                kind, a, b = member
                if (a, b) not in (self.rent if kind == "rent" else self.egress):
                    raise ScenarioError(
                        f"{where} counts the {kind} of [{a}, {b}], which has no price; name what has a tariff"
                    )
                if taken.setdefault(member, pool.name) != pool.name or members.count(member) > 1:
                    raise ScenarioError(
                        f"{where} counts the {kind} of [{a}, {b}], as pool {taken[member]!r} does; keep one"
                    )

    def _check_names(self) -> None:
        for what, names in (("resources", self.resources), ("nodes", tuple(n.name for n in self.nodes))):
            if not names:
                raise ScenarioError(f"{what} is empty; at least one is needed")
            if len(set(names)) != len(names):
                twice = next(n for i, n in enumerate(names) if n in names[:i])
                raise ScenarioError(f"{what} has {twice!r} twice; names must differ")

    def _check_tree(self) -> None:
        count = len(self.nodes)
        for i, node in enumerate(self.nodes):
            if len(node.capacity_milli) != len(self.resources):
                raise ScenarioError(
                    f"nodes[{node.name}].capacity has {len(node.capacity_milli)} amounts; "
                    f"there are {len(self.resources)} resources"
                )
            if not -1 <= node.parent < count or node.parent == i:
                raise ScenarioError(f"nodes[{node.name}].parent is not another node of this scenario")
        for i, node in enumerate(self.nodes):
            steps, at = 0, i
            while at >= 0:
                at, steps = self.nodes[at].parent, steps + 1
                if steps > DEEPEST:
                    raise ScenarioError(
                        f"nodes[{node.name}] has more than {DEEPEST} ancestors, or itself as one; parents must form a tree"
                    )

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        """Node name -> index."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def resource_index(self) -> Mapping[str, int]:
        """Resource name -> index."""
        return {name: i for i, name in enumerate(self.resources)}

    @cached_property
    def hosts(self) -> tuple[int, ...]:
        """Nodes that can run workers: all except switches and parents of other nodes."""
        parents = {node.parent for node in self.nodes}
        return tuple(i for i, n in enumerate(self.nodes) if n.kind != "switch" and i not in parents)

    @cached_property
    def host_set(self) -> frozenset[int]:
        """The hosts as a set."""
        return frozenset(self.hosts)

    @cached_property
    def ancestry(self) -> tuple[tuple[int, ...], ...]:
        """For each node: itself, its parent and so on up to the topmost. What is down takes all below it down."""
        result = []
        for i in range(len(self.nodes)):
            chain = [i]
            while self.nodes[chain[-1]].parent >= 0:
                chain.append(self.nodes[chain[-1]].parent)
            result.append(tuple(chain))
        return tuple(result)

    @cached_property
    def lineage(self) -> tuple[tuple[int, ...], ...]:
        """For each node: itself and the ancestors with a capacity of their own, whose limits count."""
        limited = [min(node.capacity_milli) < UNLIMITED for node in self.nodes]
        return tuple((i, *(at for at in above if limited[at])) for i, *above in self.ancestry)

    @cached_property
    def site_of(self) -> tuple[int, ...]:
        """For each node: the topmost ancestor (the node itself where it has no parent)."""
        return tuple(chain[-1] for chain in self.ancestry)

    @cached_property
    def direct_bps(self) -> Mapping[tuple[int, int], int]:
        """(from, to) -> bit/s of the link between two nodes, in that direction; the fastest where there are several."""
        found: dict[tuple[int, int], int] = {}
        for link in self.links:
            for a, b, bps in ((link.a, link.b, link.ab_bps), (link.b, link.a, link.ba_bps)):
                if bps > found.get((a, b), 0):
                    found[a, b] = bps
        return found

    @cached_property
    def direct_latency_us(self) -> Mapping[tuple[int, int], int]:
        """(from, to) -> latency of the link of `direct_bps`."""
        found: dict[tuple[int, int], int] = {}
        for link in self.links:
            for a, b, bps in ((link.a, link.b, link.ab_bps), (link.b, link.a, link.ba_bps)):
                if bps == self.direct_bps.get((a, b)):
                    found.setdefault((a, b), link.latency_us)
        return found

    @cached_property
    def _reached(self) -> dict[int, frozenset[int]]:
        return {}

    def reachable_from(self, start: int) -> frozenset[int]:
        """Nodes that can be reached from `start` over links with bandwidth in that direction; computed once per start."""
        if start not in self._reached:
            self._reached[start] = frozenset(reachable(len(self.nodes), self.links, start))
        return self._reached[start]

    def node(self, name: str) -> int:
        """Index of a node by name; an unknown name raises LookupFailed with a suggestion."""
        try:
            return self.node_index[name]
        except KeyError:
            raise LookupFailed("node", name, self.node_index) from None

    def resource(self, name: str) -> int:
        """Index of a resource by name; an unknown name raises LookupFailed with a suggestion."""
        try:
            return self.resource_index[name]
        except KeyError:
            raise LookupFailed("resource", name, self.resource_index) from None

    def cap_of(self, tenant: str) -> SpendCap | None:
        """Spend cap of a tenant: its own, else that of *, else None."""
        return self.spend_caps.get(tenant, self.spend_caps.get(EVERY_TENANT))

    @property
    def slots(self) -> int:
        """Slots that begin before the horizon."""
        return -(-self.horizon_us // self.slot_us)

    def slots_ahead(self, slot: int) -> int:
        """Slots from `slot` on that may be planned in it: those before the horizon, at most `window_slots`."""
        left = max(0, self.slots - slot)
        return left if self.window_slots is None else min(left, self.window_slots)


def _made(values: dict[str, Any]) -> Setup:
    return Setup(**values)
