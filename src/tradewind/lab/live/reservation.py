"""What reservation buys: several jobs at once on a testbed, on the paths and at the rates that `apsp` reserves.

Each job is planned on its part of every link. The same paths are measured with the reserved rates, and without: then jobs
share links evenly, moment by moment, for which a fluid model predicts a range (lab.live.sharing). Beside it, all jobs are
planned together, each on what the others leave. Planned by phases, what jobs push counts apart from what they pull, as if
all jobs pushed at the same time. Real jobs do not, so rounds take longer than planned; by how much, the fluid model says.
Planned with `reserve=always`, a reservation holds both directions all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tradewind.engine.instants import read_steps
from tradewind.engine.intervals import ints
from tradewind.lab.live.sharing import Exchanger, Flow, shared_s
from tradewind.lab.study import Effort, Judged, Row
from tradewind.lab.testbed.networks import network
from tradewind.model.decision import Step
from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.progress import comm_us
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import US_PER_S
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.routes import JobRoutes, Wish, nodes_along
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.traffic import (
    Load,
    carrier,
    measure_all,
    pause_s,
    routed_exchange,
    traffic_server,
)
from tradewind.worlds.testbed.wan import GOODPUT, Wan

SCALE = 0.01
RESERVED, EVEN = "reserved", "shared evenly"
TOGETHER, BOTH_WAYS = "planned together, reserved", "planned together, reserved both ways"
WAYS = (RESERVED, EVEN, TOGETHER, BOTH_WAYS)
MEET = (EVEN, TOGETHER)
"""Ways of sharing in which jobs may slow each other down: what is predicted is a range."""
JOBS, WORKER_SITES = 3, 3
SECONDS = 0.5
"""Planned time of a round; the sizes of models follow from it."""
UNIT_BYTES = 1_000_000
CLOSE = 0.1


def scenario_of(wan: Wan, seed: int, parts: int) -> Scenario:
    """Jobs with workers at sites that are drawn, on links with a part of their rates."""
    rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(22,)))
    n = len(wan.sites)
    setup = Setup(
        resources=("gpu",),
        nodes=tuple(Node(name=name, kind="site", capacity_milli=(100_000,)) for name in wan.sites),
        links=tuple(
            Link(
                a=each.a,
                b=each.b,
                ab_bps=each.ab_bps // parts,
                ba_bps=each.ba_bps // parts,
                latency_us=each.latency_us,
            )
            for each in wan.links
        ),
        slot_us=3600 * US_PER_S,
        horizon_us=10**6 * US_PER_S,
        transport="cut-through",
        objective="jct_mean_s",
    )
    jobs = []
    for index in range(JOBS):
        sites = sorted(rng.choice(n, WORKER_SITES, replace=False).tolist())
        work = Rounds(count=1000, comm="flows", pinned=tuple((site, 1) for site in sites))
        jobs.append(
            Job(
                index=index, id=f"job-{index}", arrive_us=0, work=work, worker=((0, 1000),), server=((0, 1000),),
                architecture="ps", servers=1, workers_min=WORKER_SITES, workers_max=WORKER_SITES,
                model_bytes=UNIT_BYTES,
            )
        )  # fmt: skip
    return Scenario(name=wan.name, setup=setup, jobs=tuple(jobs))


def planned(scenario: Scenario, reserve: str = "phases") -> list[Step]:
    """The step with which `apsp` lets each job begin, of those that begin at once."""
    run = simulate(scenario, policies.find("apsp"), {"reserve": reserve})
    steps, plans, of_job = read_steps(run.tables), ints(run, "steps", "plan"), ints(run, "plans", "job")
    first = {int(of_job[plan]): step for plan, step in reversed(list(zip(plans, steps, strict=True)))}
    return [first[index] for index in sorted(first) if first[index].from_us == 0]


def apart(wan: Wan, seed: int) -> list[Step]:
    """Steps of jobs that are planned one by one, each on its part of every link."""
    jobs = scenario_of(wan, seed, JOBS)
    alone = (replace(job, index=0) for job in jobs.jobs)
    return [step for job in alone for step in planned(replace(jobs, jobs=(job,), customers=()))]


def measured(wan: Wan, seed: int, seconds: float) -> list[Row]:
    """A row per job and way of sharing; each job does rounds for about `seconds`."""
    scenario = scenario_of(wan, seed, 1)
    alone, together, both = apart(wan, seed), planned(scenario), planned(scenario, "always")
    plans = zip(WAYS, (alone, alone, together, both), strict=True)
    found: list[Row] = []
    name, how = own_name("study"), carrier()
    try:
        bed = testbed.up(wan, name)
        with traffic_server(how) as fork_server:
            for sharing, steps in plans:
                loads = [_load(wan, scenario, job, step, seconds) for job, step in enumerate(steps)]
                routes = JobRoutes(bed, scenario.setup)
                for job, load in enumerate(loads):
                    routes.join(scenario.jobs[job], load.exchange.sites)
                wishes = [
                    _wish(*pair, even=sharing == EVEN) for pair in zip(scenario.jobs, steps, strict=False)
                ]
                ranges = [(each.predicted_s,) * 3 for each in loads]
                if sharing in MEET:
                    ranges = shared_s(
                        wan, [_exchanger(wan, *pair) for pair in zip(wishes, loads, strict=True)]
                    )
                    loads = [each._replace(predicted_s=r[1]) for each, r in zip(loads, ranges, strict=True)]
                routes.apply(dict(enumerate(wishes)))
                for job, each in enumerate(measure_all(bed, fork_server, how, loads)):
                    low, _, high = ranges[job]
                    found.append(
                        {
                            "network": f"{wan.name}, {len(wan.sites)} sites", "draw": seed, "job": job,
                            "sharing": sharing, "server": each.exchange.label, "rounds": len(each.rounds_s),
                            "planned_s": SECONDS, "predicted_s": each.predicted_s, "low_s": low, "high_s": high,
                            "measured_s": each.seconds,
                            "fastest_s": min(each.rounds_s), "slowest_s": max(each.rounds_s),
                            "difference_percent": 100 * outside(each.seconds, low, high),
                        }
                    )  # fmt: skip
    finally:
        testbed.down(name)
    return found


def outside(seconds: float, low: float, high: float) -> float:
    """By which part seconds lie outside a predicted range; negative: below it."""
    return min(0.0, seconds / low - 1) + max(0.0, seconds / high - 1)


def _load(wan: Wan, scenario: Scenario, job: int, step: Step, seconds: float) -> Load:
    """The traffic of a job's plan, with a model for which a round is planned to take SECONDS."""
    server = next(node for node, count in zip(step.nodes, step.servers, strict=True) if count)
    paths = [nodes_along(scenario.setup, route) for route in step.routes]
    unit_s = comm_us(scenario.setup, scenario.jobs[job], step) / US_PER_S / GOODPUT
    size = max(1, round(SECONDS / unit_s * UNIT_BYTES / 4096)) * 4096
    exchange = routed_exchange(server, paths, wan.sites[server])
    return Load(exchange, size, max(2, round(seconds / SECONDS)), unit_s * size / UNIT_BYTES, job)


def _exchanger(wan: Wan, wish: Wish, load: Load) -> Exchanger:
    rates = [route.bps for route in wish.routes]
    flows = list(map(Flow, load.exchange.paths, rates))
    return Exchanger(flows, load.model_bytes, pause_s(wan, load.exchange))


def _wish(job: Job, step: Step, *, even: bool) -> Wish:
    """The routes of a step; without their rates where links are shared evenly."""
    return Wish(job, tuple(route._replace(bps=0) for route in step.routes) if even else step.routes)


def rows(effort: Effort) -> list[Row]:
    """A mesh of 4 sites; in full also one of 6 sites and all of B4."""
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    beds = [("mesh", 4), *effort.pick([], [("mesh", 6), ("b4", 0)])]
    return [
        row
        for topology, sites in beds
        for seed in range(effort.pick(1, 3))
        for row in measured(
            network(topology, scale=SCALE, sites=sites, seed=seed), seed, effort.pick(1.5, 8.0)
        )
    ]


def judge(*ways: str) -> Callable[[Sequence[Row], str], Judged]:
    """Whether rounds take the predicted times, within 10%, where links are shared in these ways."""

    def holds(found: Sequence[Row], _policy: str) -> Judged:
        texts, worst = [], 0.0
        for sharing in ways:
            mine = [r for r in found if r["sharing"] == sharing]
            errors = [outside(*(float(r[name]) for name in ("measured_s", "low_s", "high_s"))) for r in mine]
            spread = max(float(r["slowest_s"]) / float(r["fastest_s"]) for r in mine)
            longer = [float(r["measured_s"]) / float(r["planned_s"]) - 1 for r in mine]
            plan = f" ({_span(longer)} from the planned time)" if sharing in MEET else ""
            worst = max(worst, *map(abs, errors))
            texts.append(
                f"{sharing}: {_span(errors)} from the prediction{plan}, slowest/fastest round {spread:.2f}"
            )
        return Judged(worst <= CLOSE, "; ".join(texts))

    return holds


def _span(parts: Sequence[float]) -> str:
    return f"{100 * min(parts):+.1f}% to {100 * max(parts):+.1f}%"
