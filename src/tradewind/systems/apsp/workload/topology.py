"""A topology: named sites and links, with what a file states about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.systems.apsp.workload.draw import great_circle_km

US_PER_KM = 5.0
"""Light in fibre: 5 microseconds per km."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyLink:
    """A link as a file states it: bandwidths in Mbit/s (None: not stated), latency in us one way, price in USD/GB.

    priced: False where a table of prices leaves this pair out; its price is then unknown, not 0.
    """

    a: int
    b: int
    ab_mbps: float | None = None
    ba_mbps: float | None = None
    km: float | None = None
    latency_us: int | None = None
    ab_usd_per_gb: float = 0.0
    ba_usd_per_gb: float = 0.0
    priced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Nodes and links; notes: what the reader changed or assumed."""

    name: str
    nodes: tuple[str, ...]
    links: tuple[TopologyLink, ...]
    position: tuple[tuple[float, float] | None, ...] = ()
    notes: tuple[str, ...] = ()

    def index(self, name: str) -> int:
        """Number of a node by name; an unknown name raises LookupFailed with a suggestion."""
        if name not in self.nodes:
            raise LookupFailed("site", name, self.nodes)
        return self.nodes.index(name)

    def km(self) -> Floats:
        """Length of each link (L,); from positions where the file does not state it."""
        known = [link.km for link in self.links]
        if all(k is not None for k in known):
            return np.array(known, dtype=np.float64)
        if any(p is None for p in self.position) or not self.position:
            raise InputError(
                "lengths of links are needed for a bandwidth rule, but some nodes have no position; "
                + "; ".join(("add lat and lon, or state the bandwidth of every link", *self.notes)),
                where=self.name,
            )
        lat = np.array([p[0] for p in self.position if p is not None])
        lon = np.array([p[1] for p in self.position if p is not None])
        a, b = self.ends()
        return great_circle_km(lat, lon, a, b)

    def ends(self) -> tuple[Ints, Ints]:
        """a (L,) and b (L,) of every link."""
        return (
            np.array([link.a for link in self.links], dtype=np.int64),
            np.array([link.b for link in self.links], dtype=np.int64),
        )

    def latency_us(self) -> list[int]:
        """One-way latency of each link, as stated or by length; 0 where neither is known."""
        lengths: Iterable[float]
        try:
            lengths = self.km().tolist()
        except InputError:
            lengths = [0.0] * len(self.links)
        return [
            round(US_PER_KM * km) if link.latency_us is None else link.latency_us
            for link, km in zip(self.links, lengths, strict=True)
        ]
