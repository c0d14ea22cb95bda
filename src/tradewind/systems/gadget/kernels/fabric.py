"""The network of a setup as racks of servers, and hops as link numbers.

Known shapes: servers on one switch; servers on ToR switches under one core (a tree); ToR switches under several spines
(leaf-spine: every hop between racks chooses a spine); no links at all (bandwidth is nobody's business).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED
from tradewind.systems.gadget.kernels.slot import Slot, make_slot

FREE = 2**60
"""Bandwidth where there are no links."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """hosts sorted by rack; first (G + 1,); link (S,) of every host (-1: none); tor (G,) node of every rack's switch;
    spines: for every rack, spine node -> link number."""

    hosts: tuple[int, ...]
    first: Ints
    link: tuple[int, ...]
    tor: tuple[int, ...]
    spines: tuple[dict[int, int], ...]


def read_fabric(setup: Setup) -> Fabric:
    """The racks of a setup; raises Unsupported with the reason where its network is none of the known shapes."""
    if not setup.links:
        return _without_links(setup)
    touching: dict[int, list[int]] = {}
    for number, link in enumerate(setup.links):
        touching.setdefault(link.a, []).append(number)
        touching.setdefault(link.b, []).append(number)
    hosts = setup.host_set
    by_tor: dict[int, list[tuple[int, int]]] = {}
    for host in setup.hosts:
        own = touching.get(host, [])
        if len(own) != 1 or _other(setup, own[0], host) in hosts:
            raise _unfit(
                f"{setup.nodes[host].name!r} has {len(own)} links; a server has one link, to its switch"
            )
        by_tor.setdefault(_other(setup, own[0], host), []).append((host, own[0]))
    tors = sorted(by_tor)
    spines = []
    for tor in tors:
        up = [n for n in touching[tor] if _other(setup, n, tor) not in hosts]
        ends = {_other(setup, n, tor): n for n in up}
        if len(ends) != len(up) or any(end in by_tor for end in ends):
            raise _unfit(
                f"the switch {setup.nodes[tor].name!r} has two ways to another switch of its own level"
            )
        for end in ends:
            if any(len(touching[far]) > 1 for far in _ends(setup, touching, end) if far not in by_tor):
                raise _unfit(
                    f"{setup.nodes[end].name!r} is a switch above a switch above a switch; two levels are known"
                )
        spines.append(ends)
    rows = [by_tor[tor] for tor in tors]
    return Fabric(
        tuple(host for row in rows for host, _ in row),
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        tuple(number for row in rows for _, number in row),
        tuple(tors),
        tuple(spines),
    )


def _without_links(setup: Setup) -> Fabric:
    by_parent: dict[int, list[int]] = {}
    for host in setup.hosts:
        by_parent.setdefault(setup.nodes[host].parent, []).append(host)
    rows = [by_parent[parent] for parent in sorted(by_parent)]
    return Fabric(
        tuple(host for row in rows for host in row),
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        (-1,) * len(setup.hosts),
        tuple(sorted(by_parent)),
        ({},) * len(rows),
    )


def _other(setup: Setup, number: int, node: int) -> int:
    link = setup.links[number]
    return link.b if link.a == node else link.a


def _ends(setup: Setup, touching: dict[int, list[int]], node: int) -> list[int]:
    return [_other(setup, number, node) for number in touching[node]]


def _unfit(why: str) -> Unsupported:
    return Unsupported(
        f"rings need servers on switches under one core or several spines: {why}. Use a tree or leaf-spine network."
    )


Read = Callable[[int, int], int]


def capacities(setup: Setup, fabric: Fabric, node: Read, link: Read) -> tuple[Ints, Ints, Ints]:
    """(S, R) room, (S,) links and (G,) trunks in the worse direction, from node(node, resource) and link(link, direction).

    A shared link carries both directions of a ring, so half of it counts. The trunks of a rack with several spines are
    added up; whether every hop finds a spine is seen when hops are routed.
    """
    resources = range(len(setup.resources))
    room = np.array([[min(node(h, r), FREE) for r in resources] for h in fabric.hosts], np.int64)

    def worse(number: int) -> int:
        both = min(link(number, 0), link(number, 1))
        return both // 2 if setup.links[number].shared else both

    links = np.array([FREE if k < 0 else min(FREE, worse(k)) for k in fabric.link], np.int64)
    free = not setup.links
    trunk = [FREE if free else min(FREE, sum(worse(k) for k in up.values())) for up in fabric.spines]
    return room.reshape(len(fabric.hosts), len(setup.resources)), links, np.array(trunk, np.int64)


def slot_of(
    fabric: Fabric, there: tuple[Ints, Ints, Ints], jobs: Sequence[Job], gain: Floats, resources: int
) -> Slot:
    """The slot of these jobs with gains (I, N + 1)."""
    need = np.zeros((len(jobs), resources), np.int64)
    for i, job in enumerate(jobs):
        for r, milli in job.worker:
            need[i, r] = milli
    limited = any(job.nodes is not None for job in jobs)
    open_ = None
    if limited:
        rows = [[job.nodes is None or host in job.nodes for host in fabric.hosts] for job in jobs]
        open_ = np.array(rows, np.int8)
    band = np.array([job.ring_bps for job in jobs], np.int64)
    return make_slot(
        room=there[0],
        link=there[1],
        first=fabric.first,
        trunk=there[2],
        need=need,
        band=band,
        gain=gain,
        open=open_,
    )


class Router:
    """Hops as link numbers; chooses spines while trunk bandwidth lasts."""

    def __init__(self, setup: Setup, fabric: Fabric, link: Read) -> None:
        self._setup, self._fabric, self._read = setup, fabric, link
        self._rack = np.repeat(np.arange(len(fabric.tor)), np.diff(fabric.first)).tolist()
        self._left: dict[tuple[int, int], int] = {}

    def ring(self, servers: Sequence[int], bps: int) -> list[tuple[int, ...]] | None:
        """Paths of all hops of a ring, the last one back to the first; None where no spine has room for one of them."""
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


def whole_capacity(setup: Setup, fabric: Fabric) -> tuple[Ints, Ints, Ints]:
    """`capacities` as the setup states them."""
    links = setup.links
    return capacities(
        setup,
        fabric,
        lambda n, r: min(UNLIMITED, *(setup.nodes[at].capacity_milli[r] for at in setup.lineage[n])),
        lambda k, d: links[k].ba_bps if d else links[k].ab_bps,
    )
