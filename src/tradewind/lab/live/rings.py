"""Rings as `gadget` orders them against the same servers in random order, measured on a testbed.

Two racks of servers behind a switch each, joined by a core; every link has the same rate. A ring that goes through one rack
and then the other crosses the core once in each direction; a random order crosses it more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import numpy as np

from tradewind.engine.instants import read_steps
from tradewind.lab.study import Effort, Judged, Row
from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import US_PER_S
from tradewind.model.utility import Utility
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.routes import nodes_along
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.traffic import carrier, measure, ring_exchange, traffic_server
from tradewind.worlds.testbed.wan import Path, Wan, WanLink, shortest

BPS = 20_000_000
SWITCHES = ("core", "switch-1", "switch-2")
SERVERS = 6
MODEL_BYTES = 1_000_000
PLANNED, RANDOM = "gadget", "random order"
CLOSE = 0.1


def racks() -> Wan:
    """Servers are behind one switch and the other in turn, so that their numbers tell nothing."""
    ends = [(0, 1), (0, 2), *((1 + k % 2, len(SWITCHES) + k) for k in range(SERVERS))]
    return Wan(
        name="two racks",
        sites=(*SWITCHES, *(f"server-{k + 1}" for k in range(SERVERS))),
        links=tuple(WanLink(a, b, BPS, BPS) for a, b in ends),
    )


def planned(wan: Wan) -> tuple[Path, ...]:
    """Paths of the hops of the ring that `gadget` gives to a job which needs all servers."""
    setup = Setup(
        resources=("gpu",),
        nodes=tuple(
            Node(name=name, kind="switch", capacity_milli=(0,))
            if name in SWITCHES
            else Node(name=name, kind="server", capacity_milli=(1000,))
            for name in wan.sites
        ),
        links=tuple(Link(a=each.a, b=each.b, ab_bps=each.ab_bps, ba_bps=each.ba_bps) for each in wan.links),
        slot_us=US_PER_S,
        horizon_us=10 * US_PER_S,
        objective="utility",
    )
    job = Job(
        index=0, id="ring", arrive_us=0, worker=((0, 1000),), workers_min=SERVERS, workers_max=SERVERS,
        work=Rounds(count=SERVERS, unit="worker-slot", comm="ring", compute_us=1000), ring_bps=BPS,
        model_bytes=MODEL_BYTES, utility=Utility(of="progress", shape="log1p", args=(1.0, 1.0)),
    )  # fmt: skip
    run = simulate(Scenario(name=wan.name, setup=setup, jobs=(job,)), policies.find("gadget"))
    return tuple(nodes_along(setup, route) for route in read_steps(run.tables)[0].routes)


def rows(effort: Effort) -> list[Row]:
    """A row per ring: the planned one, and some in random order."""
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    wan = racks()
    order = tuple(path[0] for path in planned(wan))
    rng = np.random.default_rng(np.random.SeedSequence(entropy=1, spawn_key=(23,)))
    orders = [(PLANNED, order)]
    orders += [(RANDOM, tuple(rng.permutation(order).tolist())) for _ in range(effort.pick(3, 10))]
    name, how, found = own_name("study"), carrier(), list[Row]()
    size, rounds = effort.pick((MODEL_BYTES // 2, 1), (MODEL_BYTES, 3))
    try:
        bed = testbed.up(wan, name)
        with traffic_server(how) as fork_server:
            for ring, sites in orders:
                exchange = ring_exchange(wan, sites, shortest(wan))
                each = measure(bed, fork_server, how, exchange, model_bytes=size, rounds=rounds)
                found.append(
                    {
                        "ring": ring, "order": exchange.label, "hops_on_a_link": exchange.shared,
                        "predicted_s": each.predicted_s, "measured_s": each.seconds,
                    }
                )  # fmt: skip
    finally:
        testbed.down(name)
    return found


def judge(found: Sequence[Row], _policy: str) -> Judged:
    """Is the planned ring as fast as the fastest random one, and faster than the mean of them?"""
    ours = float(next(r["measured_s"] for r in found if r["ring"] == PLANNED))
    others = [float(r["measured_s"]) for r in found if r["ring"] == RANDOM]
    off = max(abs(float(r["measured_s"]) / float(r["predicted_s"]) - 1) for r in found)
    text = (
        f"{PLANNED} {ours:.2f} s; random orders {mean(others):.2f} s ({min(others):.2f} to {max(others):.2f}); "
        f"measured times differ up to {100 * off:.1f}% from the model"
    )
    return Judged(ours <= min(others) * (1 + CLOSE) and ours < mean(others), text)
