"""A wide area network as the testbed builds it, the way packets take in it, and how long transfers must take there.

Packets are forwarded one by one, so a path is as fast as its slowest link however many hops it has (cut-through), and links
that several transfers cross are shared. Latency is that of this machine, near 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tradewind.model.errors import InputError

MTU_BYTES = 1500
HEADER_BYTES = 20 + 20 + 12
"""IPv4, TCP and its timestamps: what a packet carries beside data."""
FRAME_BYTES = 14
"""Ethernet: htb counts it, the MTU does not."""
GOODPUT = (MTU_BYTES - HEADER_BYTES) / (MTU_BYTES + FRAME_BYTES)
"""Data per bit on the wire: 0.956."""

LEAST_BPS = 100_000
"""Below this a single packet takes more than a tenth of a second and TCP stalls."""

Path = tuple[int, ...]
"""Sites on the way, both ends included."""


class Line(NamedTuple):
    """A link between two sites: bit/s from a to b and from b to a."""

    a: int
    b: int
    ab_bps: int
    ba_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wan:
    """Sites and links, each direction with a rate of its own; checked."""

    name: str
    sites: tuple[str, ...]
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        ends = set()
        for line in self.lines:
            if not (0 <= line.a < len(self.sites) and 0 <= line.b < len(self.sites)) or line.a == line.b:
                raise InputError(f"a link joins site {line.a} to site {line.b}", where=self.name)
            if min(line.ab_bps, line.ba_bps) < LEAST_BPS:
                raise InputError(
                    f"the link {self.sites[line.a]} - {self.sites[line.b]} has "
                    f"{min(line.ab_bps, line.ba_bps)} bit/s; {LEAST_BPS} is the least. Choose a larger --scale.",
                    where=self.name,
                )
            ends.add(frozenset((line.a, line.b)))
        if len(ends) < len(self.lines):
            raise InputError("two links join the same sites; merge them", where=self.name)
        if len(next_hops(self)) < len(self.sites) * (len(self.sites) - 1):
            raise InputError("some sites are cut off from the others", where=self.name)

    def rates(self) -> dict[tuple[int, int], int]:
        """bit/s by (from, to)."""
        found = {}
        for line in self.lines:
            found[line.a, line.b] = line.ab_bps
            found[line.b, line.a] = line.ba_bps
        return found

    def index(self, site: str) -> int:
        if site not in self.sites:
            raise InputError(f"no site is called {site!r}; there is {', '.join(self.sites)}", where=self.name)
        return self.sites.index(site)


def next_hops(wan: Wan) -> dict[tuple[int, int], int]:
    """(at, towards) -> neighbour: fewest hops; of several the widest first link, then the lowest number."""
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
    """The path of every ordered pair of sites that packets take unless a path is pinned."""
    hops = next_hops(wan)
    found = {}
    for source, goal in hops:
        path = [source]
        while path[-1] != goal:
            path.append(hops[path[-1], goal])
        found[source, goal] = tuple(path)
    return found


def loads(paths: Iterable[Path]) -> dict[tuple[int, int], int]:
    """How many of the paths cross each direction of a link."""
    found: dict[tuple[int, int], int] = {}
    for path in paths:
        for hop in pairwise(path):
            found[hop] = found.get(hop, 0) + 1
    return found


def slowest_s(wan: Wan, paths: Iterable[Path], size: float) -> float:
    """Seconds until every path has carried `size` bytes of data at once: the link with most to do, frames counted."""
    rates = wan.rates()
    return max((8 * size * n / (GOODPUT * rates[hop]) for hop, n in loads(paths).items()), default=0.0)


def server_s(wan: Wan, up: Sequence[Path], down: Sequence[Path], model_bytes: int) -> float:
    """An iteration with a parameter server: all sites push D bytes, then all pull D: 2 D / (0.956 b) if both are alike."""
    return slowest_s(wan, up, model_bytes) + slowest_s(wan, down, model_bytes)


def ring_s(wan: Wan, hops: Sequence[Path], model_bytes: int) -> float:
    """A ring all-reduce over n sites: every hop carries 2 (n - 1) / n D bytes, all hops at once."""
    n = len(hops)
    return slowest_s(wan, hops, 2 * (n - 1) / n * model_bytes) if n > 1 else 0.0


def ring_hops(paths: Mapping[tuple[int, int], Path], order: Sequence[int]) -> list[Path]:
    """The path of each hop of a ring in this order."""
    return [paths[a, b] for a, b in zip(order, [*order[1:], order[0]], strict=True)]
