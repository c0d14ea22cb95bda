"""Links between nodes, and reachability over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.model.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link between nodes a and b.

    ab_bps, ba_bps  bit/s from a to b and from b to a
    shared          True: both directions share ab_bps (ba_bps must equal it)
    latency_us      microseconds one way
    usd_per_gb      price of traffic over it, on top of egress tariffs
    """

    a: int
    b: int
    ab_bps: int
    ba_bps: int
    shared: bool = False
    latency_us: int = 0
    usd_per_gb: float = 0.0

    def __post_init__(self) -> None:
        where = f"links[{self.a}-{self.b}]"
        if self.a == self.b:
            raise ScenarioError(f"{where} joins a node to itself; remove it")
        for name in ("ab_bps", "ba_bps", "latency_us"):
            if not 0 <= getattr(self, name) < math.inf:  # written so that NaN fails too
                raise ScenarioError(f"{where}.{name} is {getattr(self, name)}; it must be 0 or more")
        if self.shared and self.ab_bps != self.ba_bps:
            raise ScenarioError(
                f"{where} is shared but has {self.ab_bps} and {self.ba_bps} bit/s; give both the same bandwidth"
            )
        if not math.isfinite(self.usd_per_gb) or self.usd_per_gb < 0:
            raise ScenarioError(
                f"{where}.usd_per_gb is {self.usd_per_gb}; it must be finite and not negative"
            )


def reachable(count: int, links: Sequence[Link], start: int) -> set[int]:
    """Nodes that can be reached from `start` over links with bandwidth in that direction."""
    forward: list[list[int]] = [[] for _ in range(count)]
    for link in links:
        if link.ab_bps > 0:
            forward[link.a].append(link.b)
        if link.ba_bps > 0:
            forward[link.b].append(link.a)
    seen, queue = {start}, [start]
    while queue:
        for other in forward[queue.pop()]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return seen
