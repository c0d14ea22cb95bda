"""A hand-made market of machines: two sites with three offers, and jobs whose data lies in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.builders import job as plain_job
from tests.builders import link, scenario, setup
from tradewind.model.decision import Flow, Step
from tradewind.model.job import Job, Rounds
from tradewind.model.machine import Machine
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import UNLIMITED, US_PER_HOUR
from tradewind.model.view import Change

EAST, WEST, EAST_8A, EAST_SPOT, WEST_1B, NORTH = range(6)
EIGHT_A = Machine(gpu="A", gpus=8, bus_bps=10**9, network_bps=10**8)
ONE_B = Machine(gpu="B", gpus=1, bus_bps=10**9, network_bps=10**8)
HOUR = US_PER_HOUR
PRICE = 8.0
"""USD per hour of a machine with eight A."""


def offers(slot_us: int = 100, **more: Any) -> Setup:
    """Two machines of 8 A and one spot one in the east, four of one B in the west; a byte moves in 1 us."""

    def host(name: str, parent: int, machine: Machine, count: int, **facts: Any) -> Node:
        return Node(
            name=name, kind="server", parent=parent, capacity_milli=(count * 1000,), machine=machine, **facts
        )

    nodes = (
        Node(name="east", capacity_milli=(UNLIMITED,)),
        Node(name="west", capacity_milli=(UNLIMITED,)),
        host("east/8A", EAST, EIGHT_A, 2),
        host("east/8A-spot", EAST, EIGHT_A, 1, interruptions_per_hour=0.1),
        host("west/1B", WEST, ONE_B, 4),
    )
    prices = {EAST_8A: PRICE, EAST_SPOT: PRICE / 4, WEST_1B: 2.0}
    given: dict[str, Any] = {
        "resources": ("machine",),
        "links": (link(EAST, WEST),),
        "rent": {(node, 0): Tariff(usd=(usd,)) for node, usd in prices.items()},
        "egress": {(EAST, WEST): Tariff(usd=(0.1,)), (WEST, EAST): Tariff(usd=(0.2,))},
        "slot_us": slot_us,
        "horizon_us": 100 * slot_us,
    }
    return setup(nodes, **(given | more))


def training(index: int = 0, *, rounds: int = 20, compute_us: int = 80, **more: Any) -> Job:
    """20 rounds, 10 us each on one machine of 8 A; 50 bytes of data in the east."""
    given: dict[str, Any] = {
        "work": Rounds(count=rounds, compute_us=compute_us, comm="machines"),
        "workers_max": 4,
        "gpus": (1, 2, 4, 8, 16),
        "gpu_speeds": (("A", 1000), ("B", 2000)),
        "parts": ((EAST, 50),),
    }
    return plain_job(index, **(given | more))


def market(jobs: Sequence[Job], *, changes: Sequence[Change] = (), **more: Any) -> Scenario:
    return scenario(jobs, where=offers(**more), changes=changes)


def with_north(jobs: Sequence[Job]) -> Scenario:
    """The same with a third site that holds data and sells nothing."""
    given = offers()
    nodes = (*given.nodes, Node(name="north", capacity_milli=(UNLIMITED,)))
    egress = {**given.egress} | {(NORTH, site): Tariff(usd=(0.3,)) for site in (EAST, WEST)}
    links = (*given.links, link(EAST, NORTH), link(WEST, NORTH))
    hosts = frozenset({EAST_8A, EAST_SPOT, WEST_1B})
    where = replace(given, nodes=nodes, egress=egress, links=links)
    return scenario([replace(job, nodes=hosts) for job in jobs], where=where)


def on(offer: int, at: int, until: int, machines: int = 1, moved: Sequence[tuple[int, int]] = ()) -> Step:
    """A step on an offer; moved: (site, bytes) of the parts that it brings."""
    site = WEST if offer == WEST_1B else EAST
    return Step(
        at, until, (offer,), (machines,), flows=tuple(Flow(source, site, size) for source, size in moved)
    )
