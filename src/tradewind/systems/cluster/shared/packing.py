"""Room with several resources, limits of racks and sites, and jobs restricted to some nodes."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.model.job import Demand
from tradewind.model.setup import Setup
from tradewind.solvers import packing
from tradewind.systems.cluster.shared.shape import Place, Shape


class Packing:
    """Room per node and resource as an array (nodes, resources), milli-units."""

    def __init__(self, setup: Setup) -> None:
        hosts = setup.hosts
        self._hosts = np.array(hosts, np.int64)
        self._number = {node: h for h, node in enumerate(hosts)}
        self._resources = len(setup.resources)
        longest = max((len(setup.lineage[node]) for node in hosts), default=1)
        self._chain = np.full((len(hosts), longest), -1, np.int64)
        for h, node in enumerate(hosts):
            self._chain[h, : len(setup.lineage[node])] = setup.lineage[node]
        self._capacity = np.zeros((len(setup.nodes), self._resources), np.int64)
        self._room = self._capacity.copy()
        self._out = np.zeros((2, len(hosts)), np.int64)
        self._sizes: dict[int, tuple[Ints, Ints, Bools]] = {}

    def resize(self, capacity: list[list[int]]) -> None:
        """Set the capacity (nodes, resources); what is in use stays."""
        new = np.array(capacity, np.int64)
        self._room += new - self._capacity
        self._capacity = new

    def _size(self, shape: Shape) -> tuple[Ints, Ints, Bools]:
        sizes = self._sizes.get(shape.number)
        if sizes is None:
            allowed = np.ones(len(self._hosts), np.bool_)
            if shape.nodes is not None:
                allowed = np.array([int(node) in shape.nodes for node in self._hosts], np.bool_)
            sizes = (self._vector(shape.worker), self._vector(shape.server), allowed)
            self._sizes[shape.number] = sizes
        return sizes

    def _vector(self, demand: Demand) -> Ints:
        size = np.zeros(self._resources, np.int64)
        for resource, milli in demand:
            size[resource] = milli
        return size

    def would_fit(self, shape: Shape, capacity: list[list[int]]) -> bool:
        """Whether the shape fits into an empty cluster of this capacity."""
        big, small, allowed = self._size(shape)
        room = np.array(capacity, np.int64)
        return bool(
            packing.pack(room, self._chain, allowed, big, small, shape.workers, shape.servers, self._out)
        )

    def take(self, shape: Shape) -> Place | None:
        """Take a place for the shape; None where it does not fit."""
        big, small, allowed = self._size(shape)
        if not packing.pack(
            self._room, self._chain, allowed, big, small, shape.workers, shape.servers, self._out
        ):
            return None
        chosen = np.flatnonzero(self._out.any(axis=0))
        # Most workers first: ranks follow the order of nodes, and rank 0 belongs where most of the job is.
        chosen = chosen[np.argsort(-self._out[0, chosen], kind="stable")]
        workers, servers = self._out[:, chosen].tolist()
        return Place(
            tuple(self._hosts[chosen].tolist()), tuple(workers), tuple(servers) if shape.servers else ()
        )

    def _move(self, place: Place, shape: Shape, sign: int) -> None:
        big, small, _ = self._size(shape)
        for i, node in enumerate(place.nodes):
            h = self._number[node]
            packing.take(self._room, self._chain, h, big, sign * place.workers[i])
            if place.servers:
                packing.take(self._room, self._chain, h, small, sign * place.servers[i])

    def hold(self, place: Place, shape: Shape) -> None:
        """Take exactly this place."""
        self._move(place, shape, 1)

    def give(self, place: Place, shape: Shape) -> None:
        """Free the room of a place."""
        self._move(place, shape, -1)

    def is_free(self, place: Place, shape: Shape) -> bool:
        """Whether the shape fits on exactly this place now."""
        self._move(place, shape, 1)
        rows = np.unique(self._chain[[self._number[node] for node in place.nodes]])
        free = bool((self._room[rows[rows >= 0]] >= 0).all())
        self._move(place, shape, -1)
        return free
