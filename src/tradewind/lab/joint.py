"""Many jobs that choose a parameter server or a ring and share one WAN. Not in the papers: APSP places one job's server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tradewind.lab.study import Chart, Claims, Effort, Holds, Judged, PaperFigure, Part, Pieces, Row, spreads
from tradewind.lab.wan_choice import (
    RING,
    SERVER,
    Choice,
    Member,
    Wan,
    one_by_one,
    priced,
    seconds,
    together,
    total,
    wan_of,
)
from tradewind.model.decision import Plan, Route, Step
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, UNLIMITED, US_PER_HOUR
from tradewind.systems.apsp.workload.bandwidth import drawn_mbps
from tradewind.systems.apsp.workload.draw import MODEL_BYTES
from tradewind.systems.apsp.workload.topologies import read_topology
from tradewind.worlds.planned import planned
from tradewind.worlds.simulate import simulate

JOINT, ALONE, IN_TURN = "jointly", "each as if alone", "one after the other"
SERVERS, RINGS = "servers only, jointly", "rings only, jointly"
WAYS = (JOINT, SERVERS, RINGS, IN_TURN, ALONE)
NETWORKS = ("b4", "internet2")
MBPS, ROUNDS = 1_000_000, 10
COUNTS = (2, 4, 8)
"""Numbers of jobs."""
SITES = (3, 7)
"""Fewest and most sites of a job."""
NEAR = 1.1
"""Round of the joint choice over the bound, at most."""


def drawn_jobs(nodes: int, jobs: int, seed: int) -> list[Member]:
    """Jobs with sites drawn at random and one of the paper's four models."""
    rng, sizes = np.random.default_rng((seed, 18)), sorted(MODEL_BYTES.values())
    found = []
    for _ in range(jobs):
        count = int(rng.integers(SITES[0], SITES[1] + 1))
        sites = tuple(sorted(rng.choice(nodes, count, replace=False).tolist()))
        found.append(Member(sites, sizes[int(rng.integers(len(sizes)))]))
    return found


def scenario_of(wan: Wan, members: Sequence[Member], choices: Sequence[Choice]) -> tuple[Scenario, Offline]:
    """The choices as jobs of the model, and their plans: every flow and ring reserves what a round of T needs."""
    count = len(wan.bps) // 2
    round_s = seconds(wan, total(choices)) * (1 + 1e-12)
    jobs, plans = [], []
    for job, (member, choice) in enumerate(zip(members, choices, strict=True)):
        n = len(member.sites)
        share = (n - 1) / n if choice.kind == RING else 1.0
        bps = int(16 * member.bytes * share / round_s)
        jobs.append(_job(job, member, choice, bps))
        plans.append(Plan(job, (_step(wan, member, choice, bps),)))
    setup = Setup(
        resources=("gpu",),
        nodes=tuple(Node(name=f"site-{v}", capacity_milli=(UNLIMITED,)) for v in range(wan.nodes)),
        links=tuple(
            Link(
                a=int(wan.tail[k]), b=int(wan.head[k]), ab_bps=int(wan.bps[k]), ba_bps=int(wan.bps[count + k])
            )
            for k in range(count)
        ),
        slot_us=US_PER_HOUR,
        horizon_us=1000 * US_PER_HOUR,
        transport="cut-through",
        objective="makespan_s",
    )
    return Scenario(name="joint", setup=setup, jobs=tuple(jobs)), Offline(plans={0: plans})


def _job(index: int, member: Member, choice: Choice, bps: int) -> Job:
    ring, n = choice.kind == RING, len(member.sites)
    return Job(
        index=index,
        id=f"job-{index}",
        arrive_us=0,
        work=Rounds(
            count=ROUNDS,
            comm="ring" if ring else "flows",
            pinned=tuple((site, 1) for site in member.sites),
        ),
        worker=((0, MILLI),),
        workers_min=n,
        workers_max=n,
        architecture="ring" if ring else "ps",
        servers=0 if ring else 1,
        model_bytes=member.bytes,
        ring_bps=bps if ring else 0,
    )


def _step(wan: Wan, member: Member, choice: Choice, bps: int) -> Step:
    """The whole life of a job."""
    servers: tuple[int, ...] = ()
    nodes = starts = choice.nodes
    ends = choice.nodes[1:] + choice.nodes[:1]
    if choice.kind == SERVER:
        (site,) = choice.nodes
        nodes = member.sites if site in member.sites else (*member.sites, site)
        starts, ends = member.sites, (site,) * len(member.sites)
        servers = tuple(int(v == site) for v in nodes)
    routes = tuple(
        Route(u, v, bps, tuple(int(wan.link[a]) for a in path))
        for u, v, path in zip(starts, ends, choice.paths, strict=True)
        if path
    )
    workers = tuple(int(v in member.sites) for v in nodes)
    return Step(0, 1000 * US_PER_HOUR, nodes, workers, servers, routes=routes)


def measured(wan: Wan, members: Sequence[Member], choices: Sequence[Choice]) -> float:
    """Seconds of a round in an audited run of the choices."""
    scenario, plan = scenario_of(wan, members, choices)
    return simulate(scenario, planned("joint", plan)).metrics["makespan_s"] / ROUNDS


def one_seed(effort: Effort, seed: int) -> list[Row]:
    """Seconds of a round by how the jobs choose, and over the certified bound, for every network and number of jobs."""
    del effort
    rows: list[Row] = []
    for network in NETWORKS:
        topology = read_topology(network)
        there, back = drawn_mbps(topology, "power", 500, seed)
        wan = wan_of(
            len(topology.nodes),
            [
                (link.a, link.b, float(ab * MBPS), float(ba * MBPS))
                for link, ab, ba in zip(topology.links, there, back, strict=True)
            ],
        )
        for count in COUNTS:
            members = drawn_jobs(wan.nodes, count, seed)
            found, bound = chosen(wan, members)
            took = {way: measured(wan, members, each) for way, each in found.items()}
            for way, each in found.items():
                rows.append(
                    {"case": f"{network}, {count} jobs", "way": way, "seconds": took[way], "of bound": took[way] / bound,
                     "over joint": took[way] / took[JOINT], "rings": sum(c.kind == RING for c in each) / count}
                )  # fmt: skip
    return rows


def chosen(wan: Wan, members: Sequence[Member]) -> tuple[dict[str, list[Choice]], float]:
    """What the jobs choose in each way, and the certified bound on T of any choice."""
    jobs = len(members)
    pools = {kinds: priced(wan, members, kinds) for kinds in ((SERVER, RING), (SERVER,), (RING,))}
    alone = [
        c._replace(job=job)
        for job, member in enumerate(members)
        for c in priced(wan, [member], (SERVER, RING)).choices
    ]
    every = [*alone, *(c for pool in pools.values() for c in pool.choices)]
    joint = {
        way: together(wan, [c for c in every if c.kind in kinds], jobs)
        for way, kinds in ((JOINT, (SERVER, RING)), (SERVERS, (SERVER,)), (RINGS, (RING,)))
    }
    turn = {
        way: one_by_one(wan, every, jobs, others=others) for way, others in ((IN_TURN, True), (ALONE, False))
    }
    return {**joint, **turn}, pools[SERVER, RING].bound


def parts(effort: Effort) -> list[Part]:
    """One per seed."""
    return [
        Part(name=f"seed-{seed}", rows=partial(one_seed, seed=seed))
        for seed in range(1, 1 + min(effort.seeds, 10))
    ]


def join(effort: Effort, found: Sequence[Sequence[Row]]) -> list[Row]:
    """Means and intervals over the seeds."""
    del effort
    rows = [row for part in found for row in part]
    return spreads(rows, ("case", "way"), "over joint", "of bound", "seconds", "rings")


def rows(effort: Effort) -> list[Row]:
    """The whole table."""
    return join(effort, [part.rows(effort) for part in parts(effort)])


def _of(table: Sequence[Row], way: str) -> list[Row]:
    return [r for r in table if r["way"] == way]


def _text(some: Sequence[Row], value: str) -> str:
    return ", ".join(f"{r['case']} {float(r[value]):.2f} ({_ends(r, value)})" for r in some)


def _ends(row: Row, value: str) -> str:
    names = ("low", "high") if value == "over joint" else (f"{value} low", f"{value} high")
    return " to ".join(f"{float(row[name]):.2f}" for name in names)


def shorter(way: str) -> Holds:
    """In every case another way takes longer than the joint choice, beyond the interval over seeds."""

    def holds(table: Sequence[Row], policy: str) -> Judged:
        del policy
        mine = _of(table, way)
        return Judged(
            all(float(r["low"]) > 1 for r in mine), f"round over the joint one: {_text(mine, 'over joint')}"
        )

    return holds


def near_bound(table: Sequence[Row], policy: str) -> Judged:
    """The joint choice is within a tenth of the certified bound in every case, at the upper end of the interval."""
    del policy
    mine = _of(table, JOINT)
    return Judged(
        all(float(r["of bound high"]) <= NEAR for r in mine), f"times the bound: {_text(mine, 'of bound')}"
    )


def summary(table: Sequence[Row]) -> str:
    """How many jobs become rings."""
    return "share of rings chosen jointly: " + ", ".join(
        f"{r['case']} {float(r['rings']):.0%}" for r in _of(table, JOINT)
    )


_claim = Claims("", JOINT)


FIGURE = PaperFigure(
    name="joint",
    title="Many jobs choose server or ring over one WAN",
    claims=(
        *(
            _claim(
                f"beats {way}",
                f"Ours: jobs that choose together have shorter rounds than {words}.",
                shorter(way),
            )
            for way, words in (
                (ALONE, "jobs that choose as if they were alone"),
                (IN_TURN, "jobs that choose one after the other, beside those before them"),
                (SERVERS, "the best choice of servers for all of them"),
                (RINGS, "the best choice of rings for all of them"),
            )
        ),
        _claim("near the bound", "Ours: the joint choice is within 10% of any choice's bound.", near_bound),
    ),
    rows=rows,
    pieces=Pieces(parts=parts, join=join),
    summary=summary,
    chart=Chart(
        x="case",
        y="over joint",
        series="way",
        kind="bar",
        low="low",
        high="high",
        y_label="round / joint round",
    ),
)
