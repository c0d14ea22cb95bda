"""The network of a setup as racks of servers, and hops as link numbers.

Known shapes: servers on one switch; servers on ToR switches under one core (a tree); ToR switches under several spines
(leaf-spine: every hop between racks chooses a spine); no links at all (bandwidth is not limited).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED
from tradewind.systems.gadget.kernels.slot import Capacity, Slot, make_slot

ENDLESS = 2**60
"""Amount of a resource or bandwidth that is not limited; sums of many still fit into 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The racks of a setup.

    hosts   nodes of the servers, sorted by rack
    first   (G + 1,) servers of rack g are first[g] … first[g + 1] - 1
    link    (S,) link number of every server; -1: none
    tor     (G,) node of every rack's switch
    spines  for every rack, spine node -> link number
    """

    hosts: tuple[int, ...]
    first: Ints
    link: tuple[int, ...]
    tor: tuple[int, ...]
    spines: tuple[dict[int, int], ...]


def read_fabric(setup: Setup) -> Fabric:
    """Read the racks of a setup; raises Unsupported with the reason where its network is none of the known shapes."""
    if not setup.links:
        by_parent: dict[int, list[tuple[int, int]]] = {}
        for host in setup.hosts:
            by_parent.setdefault(setup.nodes[host].parent, []).append((host, -1))
        return _fabric(by_parent, [{}] * len(by_parent))
    touching: dict[int, list[int]] = {}
    for number, link in enumerate(setup.links):
        touching.setdefault(link.a, []).append(number)
        touching.setdefault(link.b, []).append(number)
    by_tor: dict[int, list[tuple[int, int]]] = {}
    for host in setup.hosts:
        own = touching.get(host, [])
        if len(own) != 1 or _other(setup, own[0], host) in setup.host_set:
            ends = ", ".join(repr(setup.nodes[_other(setup, n, host)].name) for n in own) or "none"
            raise _unfit(
                f"server {setup.nodes[host].name!r} has links to: {ends}; allowed is one, to a switch"
            )
        by_tor.setdefault(_other(setup, own[0], host), []).append((host, own[0]))
    return _fabric(by_tor, [_uplinks(setup, touching, tor, by_tor.keys()) for tor in sorted(by_tor)])


def _fabric(by_tor: Mapping[int, Sequence[tuple[int, int]]], spines: Sequence[dict[int, int]]) -> Fabric:
    """A fabric from the (host, link) pairs of every rack."""
    tors = sorted(by_tor)
    rows = [by_tor[tor] for tor in tors]
    return Fabric(
        hosts=tuple(host for row in rows for host, _ in row),
        first=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        link=tuple(number for row in rows for _, number in row),
        tor=tuple(tors),
        spines=tuple(spines),
    )


def _uplinks(
    setup: Setup, touching: Mapping[int, Sequence[int]], tor: int, tors: Collection[int]
) -> dict[int, int]:
    """Spine node -> link number of a rack's switch."""
    up = [n for n in touching[tor] if _other(setup, n, tor) not in setup.host_set]
    ends = {_other(setup, n, tor): n for n in up}
    if len(ends) != len(up) or any(end in tors for end in ends):
        raise _unfit(
            f"switch {setup.nodes[tor].name!r} has two links to one switch or a link to another rack's switch"
        )
    for end in ends:
        beyond = [_other(setup, number, end) for number in touching[end]]
        if any(len(touching[far]) > 1 for far in beyond if far not in tors):
            raise _unfit(
                f"switch {setup.nodes[end].name!r} has further switches above it; allowed are two levels"
            )
    return ends


def _other(setup: Setup, number: int, node: int) -> int:
    link = setup.links[number]
    return link.b if link.a == node else link.a


def _unfit(why: str) -> Unsupported:
    return Unsupported(
        f"Unsupported network: {why}. Rings need a tree or leaf-spine network: servers on switches, which are under one "
        "core or several spines."
    )


Read = Callable[[int, int], int]


def capacities(setup: Setup, fabric: Fabric, node: Read, link: Read) -> Capacity:
    """Capacity of servers, links and trunks from node(node, resource) and link(link, direction).

    A shared link carries both directions of a ring, so half of it counts. The trunks of a rack with several spines are
    added up; whether every hop finds a spine is checked when hops are routed.
    """
    resources = range(len(setup.resources))
    room = np.array([[min(node(h, r), ENDLESS) for r in resources] for h in fabric.hosts], np.int64)

    def worse(number: int) -> int:
        both = min(link(number, 0), link(number, 1))
        return both // 2 if setup.links[number].shared else both

    links = np.array([ENDLESS if k < 0 else min(ENDLESS, worse(k)) for k in fabric.link], np.int64)
    free = not setup.links
    trunk = [ENDLESS if free else min(ENDLESS, sum(worse(k) for k in up.values())) for up in fabric.spines]
    return Capacity(
        room=room.reshape(len(fabric.hosts), len(setup.resources)),
        link=links,
        first=fabric.first,
        trunk=np.array(trunk, np.int64),
    )


def whole_capacity(setup: Setup, fabric: Fabric) -> Capacity:
    """`capacities` as the setup states them."""
    links = setup.links
    return capacities(
        setup,
        fabric,
        lambda n, r: min(UNLIMITED, *(setup.nodes[at].capacity_milli[r] for at in setup.lineage[n])),
        lambda k, d: links[k].ba_bps if d else links[k].ab_bps,
    )


def slot_of(fabric: Fabric, capacity: Capacity, jobs: Sequence[Job], gain: Floats) -> Slot:
    """The slot of these jobs with gains (I, N + 1)."""
    need = np.zeros((len(jobs), capacity.room.shape[1]), np.int64)
    for i, job in enumerate(jobs):
        for r, milli in job.worker:
            need[i, r] = milli
    open_ = None
    if any(job.nodes is not None for job in jobs):
        rows = [[job.nodes is None or host in job.nodes for host in fabric.hosts] for job in jobs]
        open_ = np.array(rows, np.int8)
    band = np.array([job.ring_bps for job in jobs], np.int64)
    return make_slot(**capacity._asdict(), need=need, band=band, gain=gain, open=open_)


def allowed_sizes(jobs: Sequence[Job]) -> Floats:
    """(I, N + 1) gain 1 for every ring size that a job allows, -inf for the others."""
    gain = np.full((len(jobs), max(job.workers_max for job in jobs) + 1), -np.inf)
    gain[:, 0] = 0.0
    for i, job in enumerate(jobs):
        gain[i, job.workers_min : job.workers_max + 1] = 1.0
    return gain


class Router:
    """Routes hops over links; chooses the spine with most bandwidth left."""

    def __init__(self, setup: Setup, fabric: Fabric, link: Read) -> None:
        self._setup, self._fabric, self._read = setup, fabric, link
        self._rack = np.repeat(np.arange(len(fabric.tor)), np.diff(fabric.first)).tolist()
        self._left: dict[tuple[int, int], int] = {}

    def ring(self, servers: Sequence[int], bps: int) -> list[tuple[int, ...]] | None:
        """Link numbers of all hops of a ring, the last one back to the first; None where a hop finds no spine with room."""
        if not self._setup.links or len(servers) < 2:
            return []
        taken: list[tuple[tuple[int, int], int]] = []
        paths = []
        for a, b in zip(servers, [*servers[1:], servers[0]], strict=True):
            trunk = self._trunk(self._rack[a], self._rack[b], bps, taken)
            if trunk is None:
                for key, amount in taken:
                    self._left[key] += amount
                return None
            paths.append((self._fabric.link[a], *trunk, self._fabric.link[b]))
        return paths

    def _trunk(
        self, a: int, b: int, bps: int, taken: list[tuple[tuple[int, int], int]]
    ) -> tuple[int, ...] | None:
        if a == b:
            return ()
        up, down = self._fabric.spines[a], self._fabric.spines[b]
        best, room = -1, bps - 1
        for spine in up:
            if spine in down:
                free = min(self._free(up[spine], self._fabric.tor[a]), self._free(down[spine], spine))
                if free > room:
                    best, room = spine, free
        if best < 0:
            return None
        for number, start in ((up[best], self._fabric.tor[a]), (down[best], best)):
            key = self._key(number, start)
            self._left[key] -= bps
            taken.append((key, bps))
        return up[best], down[best]

    def _key(self, number: int, start: int) -> tuple[int, int]:
        link = self._setup.links[number]
        return number, 0 if link.shared or link.a == start else 1

    def _free(self, number: int, start: int) -> int:
        key = self._key(number, start)
        if key not in self._left:
            self._left[key] = self._read(*key)
        return self._left[key]
