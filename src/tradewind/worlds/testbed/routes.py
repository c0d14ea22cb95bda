"""Carries out the routes of plans on a testbed: each job has addresses of its own, whose packets take the job's paths.

A job has an address and an interface at every site where it has ranks, so that packets of two jobs between the same
sites can be told apart. A route gets the rate that it reserves in the scenario, times the scale of the testbed.
What is pushed to a server is pulled back over the same path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from tradewind.model.decision import Route
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.worlds.testbed.delays import latencies_us
from tradewind.worlds.testbed.network import INTERFACE, MOST_PINS, Pin, Testbed, batch
from tradewind.worlds.testbed.wan import Path, shortest

JOBS = 1 << 14
"""Jobs that have addresses of their own at the same time."""


class Wish(NamedTuple):
    """The routes of a job that runs."""

    job: Job
    routes: tuple[Route, ...]


def address_in(net: int, job: int, site: int) -> str:
    """Address of a job at a site, in 10.NET.0.0/10."""
    number = (net << 16) | (site << 14) | (job % JOBS)
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def job_address(job: int, site: int) -> str:
    """Address of a job's ranks at a site, in 10.64.0.0/10."""
    return address_in(64, job, site)


class SiteFinder:
    """Sites of a testbed by the nodes of a setup."""

    def __init__(self, bed: Testbed, setup: Setup) -> None:
        self._nodes, self._site = setup.nodes, {name: number for number, name in enumerate(bed.wan.sites)}

    def find(self, node: int) -> int | None:
        """Site of a node: that of its name, or of the nearest node above it."""
        while node >= 0:
            if (site := self._site.get(self._nodes[node].name)) is not None:
                return site
            node = self._nodes[node].parent
        return None


def interface_of(job: int) -> str:
    """Name of the interface that has a job's addresses."""
    return f"job{job % JOBS}"


def nodes_along(setup: Setup, route: Route) -> tuple[int, ...]:
    """Nodes along a route, both ends included."""
    nodes = [route.src]
    for number in route.path:
        link = setup.links[number]
        nodes.append(link.b if link.a == nodes[-1] else link.a)
    return tuple(nodes)


def covers(bed: Testbed, setup: Setup) -> bool:
    """Whether a testbed has every link of a setup, by the names of its ends."""
    rates = bed.wan.rates()
    return all(ends in rates for ends in _ends(bed, setup))


def keeps_latency(bed: Testbed, setup: Setup) -> bool:
    """Whether a testbed that has every link of a setup delays packets on them as the setup says."""
    there = latencies_us(bed.wan)
    return all(
        there.get(ends, 0) == link.latency_us
        for ends, link in zip(_ends(bed, setup), setup.links, strict=True)
    )


def _ends(bed: Testbed, setup: Setup) -> list[tuple[int, int]]:
    """Sites at the ends of each link; -1: none."""
    site = {name: number for number, name in enumerate(bed.wan.sites)}
    names = ((setup.nodes[link.a].name, setup.nodes[link.b].name) for link in setup.links)
    return [(site.get(a, -1), site.get(b, -1)) for a, b in names]


class JobRoutes:
    """Addresses and pinned routes of jobs. A new object takes over a testbed: it removes all pins first."""

    def __init__(self, bed: Testbed, setup: Setup) -> None:
        self._bed, self._setup, self._finder = bed, setup, SiteFinder(bed, setup)
        self._site = {name: number for number, name in enumerate(bed.wan.sites)}
        self._default = shortest(bed.wan)
        self._members: dict[int, set[int]] = {}  # job -> sites at which it has an address
        self._pins: dict[Pin, int] = {}
        bed.unpin()

    # ------------------------------------------------------------------ addresses
    def own(self, job: Job, namespace: str) -> tuple[str, str] | None:
        """A job's own address and interface at the site with this namespace; None if there is no such site."""
        spaces = {self._bed.namespace(site): site for site in range(len(self._bed.wan.sites))}
        site = spaces.get(namespace)
        return None if site is None else (job_address(job.index, site), interface_of(job.index))

    def join(self, job: Job, nodes: Iterable[int]) -> None:
        """Give a job an address at each of these nodes, and ways from each to all others."""
        sites = {site for node in nodes if (site := self._finder.find(node)) is not None}
        known = self._members.setdefault(job.index, set())
        if sites <= known:
            return
        known |= sites
        name = interface_of(job.index)
        for site in known:
            mine, space = job_address(job.index, site), self._bed.namespace(site)
            lines = [
                f"link add {name} type bridge",
                f"addr add {mine}/32 dev {name}",
                f"link set {name} up",
            ]
            batch(["ip", "-force"], space, lines, check=False)  # it may exist
        self._add_ways(job.index, known)

    def _add_ways(self, job: int, members: Collection[int]) -> None:
        """Routes to a job's addresses along default paths, also at sites that only forward."""
        lines: dict[int, list[str]] = {}
        for a in members:
            for b in members:
                if a == b:
                    continue
                path, goal = self._default[a, b], job_address(job, b)
                for here, towards in pairwise(path):
                    own = f" src {job_address(job, here)}" if here in members else ""
                    lines.setdefault(here, []).append(
                        f"route replace {goal} via {self._bed.address(towards)} dev {INTERFACE} onlink congctl cubic{own}"
                    )
        for site, each in lines.items():
            batch(["ip"], self._bed.namespace(site), each)

    # ------------------------------------------------------------------ routes
    def apply(self, wishes: Mapping[int, Wish]) -> None:
        """Pin the routes of the jobs that run; only what changed is touched."""
        for job in [job for job in self._members if job not in wishes]:
            for site in self._members.pop(job):
                batch(["ip"], self._bed.namespace(site), [f"link del {interface_of(job)}"], check=False)
        wanted = {pin for wish in wishes.values() for pin in self._wanted(wish)}
        gone = {self._pins[pin]: pin for pin in self._pins if pin not in wanted}
        new = sorted(wanted - self._pins.keys())
        if not (gone or new):
            return
        free = iter(
            number for number in range(MOST_PINS) if number not in self._pins.values() or number in gone
        )
        added = {next(free): pin for pin in new}
        self._bed.change_pins(add=added, remove=gone)
        self._pins = {pin: number for pin, number in self._pins.items() if number not in gone}
        self._pins |= {pin: number for number, pin in added.items()}

    def _wanted(self, wish: Wish) -> Iterable[Pin]:
        for route in wish.routes:
            path = self._path(route)
            if len(path) < 2:
                continue
            job, bps = wish.job.index, self._bps(route, path)
            ends = job_address(job, path[0]), job_address(job, path[-1])
            yield Pin(*ends, path, bps)
            if wish.job.pulls_back or route.duplex == "push-pull":
                yield Pin(*ends[::-1], path[::-1], bps)

    def _bps(self, route: Route, path: Path) -> int:
        """Rate on the testbed: of the first link, the same share as in the scenario."""
        link = self._setup.links[route.path[0]]
        there = link.ab_bps if link.a == route.src else link.ba_bps
        return round(route.bps / there * self._bed.wan.rates()[path[0], path[1]])

    def _path(self, route: Route) -> Path:
        """Sites along a route."""
        names = (self._setup.nodes[node].name for node in nodes_along(self._setup, route))
        return tuple(self._site[name] for name in names)
