"""What a job needs, and a place that holds it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tradewind.model.job import Demand


class Place(NamedTuple):
    """Nodes, and the workers and servers on each; `servers` is empty where the job has none."""

    nodes: tuple[int, ...]
    workers: tuple[int, ...]
    servers: tuple[int, ...] = ()


class Shape:
    """What a job needs, all at once; equal jobs share one shape.

    workers       number of workers
    amounts       (resource, milli-units) of the whole job
    never_reason  why it can never run on this cluster, or ""
    """

    __slots__ = ("amounts", "never_reason", "nodes", "number", "server", "servers", "worker", "workers")

    def __init__(self, number: int, key: tuple[Any, ...]) -> None:
        self.number = number
        self.worker: Demand
        self.server: Demand
        self.worker, self.workers, self.server, self.servers, nodes = key
        self.nodes: frozenset[int] | None = nodes
        self.never_reason = ""
        total: dict[int, int] = {}
        for demand, count in ((self.worker, self.workers), (self.server, self.servers)):
            for resource, milli in demand:
                total[resource] = total.get(resource, 0) + milli * count
        self.amounts: Demand = tuple(sorted((r, milli) for r, milli in total.items() if milli))

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal needs."""
        return (self.worker, self.workers, self.server, self.servers, self.nodes)
