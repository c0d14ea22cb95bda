"""Model of a testbed network: sites, links, the paths of packets, and predicted transfer times.

Packets are forwarded one by one, so a path is as fast as its slowest link, whatever its number of hops (cut-through).
Transfers share the links that they have in common. What a link sends arrives after its latency.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

from tradewind.model.errors import InputError

MTU_BYTES = 1500
HEADER_BYTES = 20 + 20 + 12
"""IPv4, TCP and TCP timestamps."""
FRAME_BYTES = 14
"""Ethernet header: counted by htb, but not by the MTU."""
GOODPUT = (MTU_BYTES - HEADER_BYTES) / (MTU_BYTES + FRAME_BYTES)
"""Share of data in the bits on the wire: 0.956."""

MIN_BPS = 100_000
"""Below this rate a packet takes more than a tenth of a second and TCP stalls."""

MOST_LATENCY_US = 10_000_000

Path = tuple[int, ...]
"""Sites along a path, both ends included."""


class WanLink(NamedTuple):
    """A link between sites a and b, with bit/s in each direction, and its latency one way."""

    a: int
    b: int
    ab_bps: int
    ba_bps: int
    latency_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wan:
    """Sites and links of a network; every site must be reachable from all others."""

    name: str
    sites: tuple[str, ...]
    links: tuple[WanLink, ...]

    def __post_init__(self) -> None:
        ends = set()
        for link in self.links:
            if not (0 <= link.a < len(self.sites) and 0 <= link.b < len(self.sites)) or link.a == link.b:
                raise InputError(
                    f"a link joins site {link.a} to site {link.b}; it must join two of the {len(self.sites)} sites",
                    where=self.name,
                )
            if min(link.ab_bps, link.ba_bps) < MIN_BPS:
                raise InputError(
                    f"the link {self.sites[link.a]} - {self.sites[link.b]} has "
                    f"{min(link.ab_bps, link.ba_bps)} bit/s; the minimum is {MIN_BPS}. Use a larger --scale.",
                    where=self.name,
                )
            if not 0 <= link.latency_us <= MOST_LATENCY_US:
                raise InputError(
                    f"the link {self.sites[link.a]} - {self.sites[link.b]} has a latency of {link.latency_us} us; allowed "
                    f"are 0 to {MOST_LATENCY_US}",
                    where=self.name,
                )
            ends.add(frozenset((link.a, link.b)))
        if len(ends) < len(self.links):
            raise InputError("two links join the same sites; merge them", where=self.name)
        if len(next_hops(self)) < len(self.sites) * (len(self.sites) - 1):
            raise InputError("some sites cannot reach each other; add links", where=self.name)

    def rates(self) -> dict[tuple[int, int], int]:
        """Rates in bit/s by (from, to)."""
        found = {}
        for link in self.links:
            found[link.a, link.b] = link.ab_bps
            found[link.b, link.a] = link.ba_bps
        return found

    def latency_s(self, path: Sequence[int]) -> float:
        """Seconds that a packet is under way along a path, without the time to send it."""
        known = {frozenset((each.a, each.b)): each.latency_us for each in self.links if each.latency_us}
        return sum(known.get(frozenset(hop), 0) for hop in pairwise(path)) / 1e6

    def index(self, site: str) -> int:
        """Number of a site by its name."""
        if site not in self.sites:
            raise InputError(f"no site {site!r}; the sites are {', '.join(self.sites)}", where=self.name)
        return self.sites.index(site)


def full_mesh(sites: Sequence[str], bps: int) -> Wan:
    """Any two sites joined by a link of their own, at the same rate both ways."""
    links = tuple(WanLink(a, b, bps, bps) for a, b in combinations(range(len(sites)), 2))
    return Wan(name="mesh", sites=tuple(sites), links=links)


def next_hops(wan: Wan) -> dict[tuple[int, int], int]:
    """(site, destination) -> neighbour: fewest hops; on a tie the fastest first link, then the lowest number."""
    rates = wan.rates()
    near: list[list[int]] = [[] for _ in wan.sites]
    for a, b in rates:
        near[a].append(b)
    found: dict[tuple[int, int], int] = {}
    for goal in range(len(wan.sites)):
        hops = {goal: 0}
        queue = deque([goal])
        while queue:
            at = queue.popleft()
            for other in sorted(near[at]):
                if other not in hops:
                    hops[other] = hops[at] + 1
                    queue.append(other)
        for at in hops:
            if at != goal:
                closer = [k for k in near[at] if hops[k] == hops[at] - 1]
                found[at, goal] = min(closer, key=lambda k: (-rates[at, k], k))
    return found


def shortest(wan: Wan) -> dict[tuple[int, int], Path]:
    """Default path of every ordered pair of sites."""
    hops = next_hops(wan)
    found = {}
    for source, goal in hops:
        path = [source]
        while path[-1] != goal:
            path.append(hops[path[-1], goal])
        found[source, goal] = tuple(path)
    return found


def loads(paths: Iterable[Path]) -> dict[tuple[int, int], int]:
    """Number of paths over each direction of a link."""
    found: dict[tuple[int, int], int] = {}
    for path in paths:
        for hop in pairwise(path):
            found[hop] = found.get(hop, 0) + 1
    return found


def slowest_s(wan: Wan, paths: Sequence[Path], size: float) -> float:
    """Seconds until all paths have carried `size` bytes each, at the same time: by their busiest links and latency."""
    rates, shared = wan.rates(), loads(paths)
    return max(
        (
            max(8 * size * shared[hop] / (GOODPUT * rates[hop]) for hop in pairwise(path))
            + wan.latency_s(path)
            for path in paths
            if len(path) > 1
        ),
        default=0.0,
    )


def server_s(wan: Wan, up: Sequence[Path], down: Sequence[Path], model_bytes: int) -> float:
    """Seconds of an iteration with a parameter server: all sites push the model, then all pull it."""
    return slowest_s(wan, up, model_bytes) + slowest_s(wan, down, model_bytes)


def ring_s(wan: Wan, hops: Sequence[Path], model_bytes: int) -> float:
    """Seconds of a ring all-reduce over n sites: 2 (n - 1) steps, in each of which every hop carries 1 / n of the model.

    A site sends on what it has received, so a step takes as long as the slowest hop sends, or, where latency is more, as
    long as a hop takes on average with its latency.
    """
    n = len(hops)
    if n < 2:
        return 0.0
    rates, shared = wan.rates(), loads(hops)
    busy = [
        max(8 * model_bytes / n * shared[hop] / (GOODPUT * rates[hop]) for hop in pairwise(path))
        for path in hops
    ]
    around = sum(busy) + sum(map(wan.latency_s, hops))
    return 2 * (n - 1) * max(*busy, around / n)


def ring_hops(paths: Mapping[tuple[int, int], Path], order: Sequence[int]) -> list[Path]:
    """Path of each hop of a ring."""
    return [paths[a, b] for a, b in zip(order, [*order[1:], order[0]], strict=True)]
