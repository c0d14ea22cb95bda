"""Where jobs run: on few servers each, and never waiting while there is room.

A job takes all its workers at once. They go to the host on which they leave the least room; where no host holds them
all, to the hosts with most room, of which the last is the one that fits most tightly.

Room is kept in one of two ways: `Units` where every job takes a number of the same unit (the GPUs of a trace), which
costs about a microsecond per job, and `Packing` for everything else. `Cluster` starts with the first and changes to
the second when the first job arrives that needs it.
"""

from __future__ import annotations

from typing import Any

from tradewind.model.job import Demand, Job
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED
from tradewind.model.view import View
from tradewind.systems.cluster.shared.shape import Place, Shape
from tradewind.systems.cluster.shared.units import Units

WIDEST = 4096
"""Most units on one host that `Units` handles."""


class Cluster:
    """Room on all hosts, the places of jobs, and the shapes seen so far."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._hosts = setup.hosts
        self._capacity = [list(node.capacity_milli) for node in setup.nodes]
        self._largest = [list(node.capacity_milli) for node in setup.nodes]
        self._shapes: dict[tuple[Any, ...], Shape] = {}
        self._simple: dict[tuple[Demand, int], Shape] = {}
        self.places: dict[int, tuple[Place, Shape]] = {}
        self.unit: tuple[int, int] | None = None
        self.units: Units | None = None
        self._packing: Any = None
        self._totals: list[int] | None = None

    # ------------------------------------------------------------------ shapes
    def shape(self, job: Job) -> Shape:
        """The shape of a job; a new one is checked against the empty cluster."""
        if not job.servers and job.nodes is None:
            shape = self._simple.get((job.worker, job.workers_max))
            if shape is not None:
                return shape
        key = (job.worker, job.workers_max, job.server if job.servers else (), job.servers, job.nodes)
        shape = self._shapes.get(key)
        return shape if shape is not None else self._new_shape(key)

    def _new_shape(self, key: tuple[Any, ...]) -> Shape:
        shape = self._shapes[key] = Shape(len(self._shapes), key)
        if self._packing is None and not self._is_plain(shape):
            self._pack()
        shape.never_reason = self._why_never(shape)
        if not shape.servers and shape.nodes is None:
            self._simple[shape.worker, shape.workers] = shape
        return shape

    def _is_plain(self, shape: Shape) -> bool:
        """Whether `Units` can handle this shape together with the others."""
        if shape.servers or shape.nodes is not None or len(shape.worker) != 1:
            return False
        if self.unit is None:
            if any(len(self._setup.lineage[node]) > 1 for node in self._hosts):
                return False
            self.unit = shape.worker[0]
            capacity = self._unit_capacity(self._capacity)
            if max(capacity, default=0) > WIDEST:
                return False
            self.units = Units(self._hosts, capacity)
        return self.unit == shape.worker[0]

    def _unit_capacity(self, capacity: list[list[int]]) -> list[int]:
        assert self.unit is not None
        resource, milli = self.unit
        return [capacity[node][resource] // milli for node in self._hosts]

    def _pack(self) -> None:
        """Change to `Packing`: from now on every resource, limit and restriction counts."""
        from tradewind.systems.cluster.shared.packing import Packing

        self._packing = Packing(self._setup)
        self._packing.resize(self._capacity)
        for place, shape in self.places.values():
            self._packing.hold(place, shape)
        self.units = None

    def _why_never(self, shape: Shape) -> str:
        if self._packing is not None:
            fits = self._packing.would_fit(shape, self._largest)
        else:
            fits = shape.workers <= sum(self._unit_capacity(self._largest))
        return "" if fits else never_fits(self._setup, shape.worker, shape.workers)

    # ------------------------------------------------------------------ room
    @property
    def plain(self) -> bool:
        """Whether `Units` is in use: only the number of free units matters."""
        return self._packing is None

    @property
    def free_units(self) -> int:
        """Units free now (0 before the first job)."""
        return self.units.free if self.units is not None else 0

    def take(self, job: int, shape: Shape) -> Place | None:
        """Place a job; None where it does not fit now."""
        units = self.units
        place: Place | None
        if units is None:
            place = self._packing.take(shape)
        elif shape.workers > units.free:
            return None
        else:
            place = units.take(shape.workers)
        if place is not None:
            self.places[job] = (place, shape)
        return place

    def give(self, job: int) -> bool:
        """Free a job's room; return whether it held any."""
        held = self.places.pop(job, None)
        if held is None:
            return False
        if self.units is not None:
            self.units.give(held[0])
        else:
            self._packing.give(held[0], held[1])
        return True

    def take_back(self, job: int, place: Place, shape: Shape) -> bool:
        """Take exactly this place if it is free (`Packing` only)."""
        if not self._packing.is_free(place, shape):
            return False
        self._packing.hold(place, shape)
        self.places[job] = (place, shape)
        return True

    def resync(self, view: View) -> None:
        """Read all capacities again after a change."""
        self._totals = None
        for node in range(len(self._setup.nodes)):
            row, largest = self._capacity[node], self._largest[node]
            for resource in range(len(row)):
                row[resource] = amount = view.capacity(node, resource)
                largest[resource] = max(largest[resource], amount)
        if self._packing is not None:
            self._packing.resize(self._capacity)
        elif self.units is not None:
            capacity = self._unit_capacity(self._capacity)
            if max(capacity, default=0) > WIDEST:
                self._pack()
            else:
                self.units.resize(capacity)

    def totals(self) -> list[int]:
        """Total milli-units of each resource on all hosts; UNLIMITED where a host has no limit."""
        if self._totals is None:
            rows = [self._capacity[node] for node in self._hosts]
            self._totals = [min(UNLIMITED, sum(column)) for column in zip(*rows, strict=True)]
        return self._totals

    # ------------------------------------------------------------------ saving
    def save(self) -> dict[str, Any]:
        """JSON-compatible data from which `restore` rebuilds the same state."""
        return {
            "unit": self.unit,
            "plain": self._packing is None,
            "capacity": self._capacity,
            "largest": self._largest,
            "shapes": [_plain_key(shape.key) for shape in self._shapes.values()],
            "places": [[job, *place, shape.number] for job, (place, shape) in self.places.items()],
        }

    def restore(self, state: dict[str, Any]) -> list[Shape]:
        """Continue from what `save` returned; return the shapes by number."""
        self._capacity, self._largest = state["capacity"], state["largest"]
        self._shapes, self._simple, self.places, self._totals = {}, {}, {}, None
        self.unit = None if state["unit"] is None else (state["unit"][0], state["unit"][1])
        self.units = self._packing = None
        if not state["plain"]:
            self._pack()
        elif self.unit is not None:
            self.units = Units(self._hosts, self._unit_capacity(self._capacity))
        shapes = [self._new_shape(_key(plain)) for plain in state["shapes"]]
        for job, nodes, workers, servers, number in state["places"]:
            place = Place(tuple(nodes), tuple(workers), tuple(servers))
            self.places[job] = (place, shapes[number])
            if self.units is not None:
                self.units.hold(place)
            else:
                self._packing.hold(place, shapes[number])
        return shapes


def never_fits(setup: Setup, worker: Demand, workers: int) -> str:
    """Why a job is refused that needs more than there is."""
    wants = ", ".join(f"{milli * workers / 1000:g} {setup.resources[r]}" for r, milli in worker)
    return f"never fits: it needs {wants} at once, more than the empty cluster can hold"


def _plain_key(key: tuple[Any, ...]) -> list[Any]:
    worker, workers, server, servers, nodes = key
    return [worker, workers, server, servers, None if nodes is None else sorted(nodes)]


def _key(plain: list[Any]) -> tuple[Any, ...]:
    worker, workers, server, servers, nodes = plain
    return (
        tuple((r, milli) for r, milli in worker),
        workers,
        tuple((r, milli) for r, milli in server),
        servers,
        None if nodes is None else frozenset(nodes),
    )
