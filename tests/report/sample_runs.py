"""Small hand-written scenarios and runs, without any scheduler of the package."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tradewind.model.job import Customer, Dataset, Fixed, Job
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.result import Bound, Run, Timings, Violation
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tables import TABLES
from tradewind.model.units import UNLIMITED

S = 1_000_000
HOUR = 3600 * S


class Tables:
    """Rows added one by one; columns not named are 0 or empty."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {
            t: {c: [] for c in columns} for t, columns in TABLES.items()
        }

    def add(self, table: str, **cells: Any) -> int:
        columns = self.tables[table]
        assert set(cells) <= set(columns), set(cells) - set(columns)
        for name, (sort, _) in TABLES[table].items():
            columns[name].append(cells.get(name, "" if sort == "str" else 0))
        return len(next(iter(columns.values()))) - 1

    def event(self, at_us: int, kind: str, job: int) -> None:
        self.add("events", at_us=at_us, kind=kind, job=job)

    def plan(
        self, at_us: int, job: int, *steps: tuple[int, int, Sequence[tuple[int, int]]], decision: int = 0
    ) -> int:
        """Steps are (from, until or -1, [(node, workers), …])."""
        row = self.add("plans", at_us=at_us, decision=decision, job=job)
        for start, until, places in steps:
            step = self.add("steps", plan=row, from_us=start, until_us=until)
            for node, workers in places:
                self.add("places", step=step, node=node, workers=workers)
        return row

    def outcome(self, job: int, state: str, start_us: int = -1, finish_us: int = -1) -> None:
        self.add("outcomes", job=job, state=state, start_us=start_us, finish_us=finish_us)


def setup(servers: int = 2, gpus: int = 8, **more: Any) -> Setup:
    """Servers with gpus, one-minute slots, a day."""
    given: dict[str, Any] = {
        "resources": ("gpu",),
        "nodes": tuple(
            Node(name=f"s{i}", kind="server", capacity_milli=(gpus * 1000,)) for i in range(servers)
        ),
        "slot_us": 60 * S,
        "horizon_us": 24 * HOUR,
        "objective": "jct_mean_s",
    }
    return Setup(**{**given, **more})


def job(index: int, arrive_us: int = 0, runtime_us: int = HOUR, workers: int = 1, **more: Any) -> Job:
    given: dict[str, Any] = {
        "index": index, "id": f"job-{index}", "arrive_us": arrive_us, "work": Fixed(runtime_us=runtime_us),
        "worker": ((0, 1000),), "workers_min": workers, "workers_max": workers,
    }  # fmt: skip
    return Job(**{**given, **more})


def run(scenario: Scenario, tables: Tables | None = None, **more: Any) -> Run:
    given: dict[str, Any] = {
        "scenario_hash": "0" * 16, "scenario_name": scenario.name, "policy": "fifo", "params": {}, "seed": 1,
        "version": "0.1.0", "objective": scenario.setup.objective, "metrics": {scenario.setup.objective: 1.0},
        "violations": (), "tables": (tables or Tables()).tables,
    }  # fmt: skip
    return Run(**{**given, **more})


def cluster(count: int = 60, servers: int = 4, seed: int = 1) -> Scenario:
    """Jobs of 1 to 8 gpus and log-normal runtimes on servers of 8, crowded."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, 20 * HOUR, count))
    runtime = np.clip(rng.lognormal(np.log(1.3 * 80 * servers / count), 1.3, count) * HOUR, 20 * S, 40 * HOUR)
    gpus = rng.choice((1, 1, 2, 4, 8), count)
    jobs = tuple(job(i, int(at[i]), int(runtime[i]), int(gpus[i])) for i in range(count))
    return Scenario(name="crowded cluster", setup=setup(servers, horizon_us=400 * HOUR), jobs=jobs)


Key = Callable[[Job], float]
KEYS: dict[str, Key] = {
    "fifo": lambda j: j.arrive_us,
    "sjf": lambda j: float(j.work.runtime_us or 0) if isinstance(j.work, Fixed) else 0.0,
    "largest": lambda j: -float(j.workers_max),
}


def scheduled(scenario: Scenario, policy: str, seed: int = 1) -> Run:
    """A run without preemption: at each event every waiting job that fits starts, in the order of the key."""
    free = [n.capacity_milli[0] // 1000 for n in scenario.setup.nodes]
    t, waiting, pending = Tables(), [], list(scenario.jobs[::-1])
    done: list[tuple[int, int, list[tuple[int, int]]]] = []
    finish = {}
    while pending or done:
        now = min([pending[-1].arrive_us] if pending else [], default=1 << 62)
        now = min(now, done[0][0] if done else 1 << 62)
        while done and done[0][0] == now:
            _, j, places = heapq.heappop(done)
            t.event(now, "finished", j)
            for node, n in places:
                free[node] += n
        while pending and pending[-1].arrive_us == now:
            waiting.append(pending.pop())
            t.event(now, "arrived", waiting[-1].index)
        for one in sorted(waiting, key=lambda j: (KEYS[policy](j), j.index)):
            if sum(free) < one.workers_max:
                continue
            places, need = [], one.workers_max
            for node in sorted(range(len(free)), key=lambda n: (-free[n], n)):
                got = min(need, free[node])
                if got:
                    places.append((node, got))
                    free[node] -= got
                    need -= got
            t.plan(now, one.index, (now, -1, places))
            assert isinstance(one.work, Fixed)
            finish[one.index] = (now, now + (one.work.runtime_us or 0))
            heapq.heappush(done, (finish[one.index][1], one.index, places))
            waiting.remove(one)
    for one in scenario.jobs:
        t.outcome(one.index, "finished", *finish[one.index])
    jct = [(finish[j.index][1] - j.arrive_us) / S for j in scenario.jobs]
    noise = 1 + 0.02 * float(np.random.default_rng(seed).standard_normal())
    metrics = {
        "jct_mean_s": float(np.mean(jct)) * noise, "makespan_s": max(f for _, f in finish.values()) / S,
        "jobs_completed": float(len(jct)), "jobs_accepted": float(len(jct)), "cost_usd": 0.0,
    }  # fmt: skip
    timings = Timings(total=1.0, decide_p50=2e-5, decide_p99=3e-4)
    return run(scenario, t, policy=policy, seed=seed, metrics=metrics, timings=timings)


def wan(sites: int = 6, seed: int = 3) -> Scenario:
    """Sites with links in a ring and some chords; datasets that lie at two sites each."""
    rng = np.random.default_rng(seed)
    nodes = tuple(
        Node(name=f"region-{c}", capacity_milli=(int(rng.integers(4, 20)) * 1000, UNLIMITED))
        for c in "abcdefghijkl"[:sites]
    )
    ends = [(i, (i + 1) % sites) for i in range(sites)] + [(0, sites // 2)]
    links = tuple(Link(a=a, b=b, ab_bps=10**9, ba_bps=10**9) for a, b in ends)
    base = Setup(
        resources=("gpu", "disk_gb"), nodes=nodes, links=links, slot_us=HOUR, horizon_us=24 * HOUR,
        objective="cost_usd",
    )  # fmt: skip
    jobs = tuple(
        job(
            i, int(i * HOUR / 2), workers=4, worker=((0, 1000), (1, 50_000)),
            work=Dataset(
                chunks=((i % sites, 5), ((i + 2) % sites, 5)), chunk_bytes=10**9, epochs=2,
                chunk_epochs_per_worker_slot_milli=1000,
            ),
        )
        for i in range(20)
    )  # fmt: skip
    return Scenario(name="six regions", setup=base, jobs=jobs)


def moved(scenario: Scenario, policy: str = "nearest", seed: int = 1, factor: float = 1.0) -> Run:
    """Each job trains for five slots at one site and moves data and parameters there."""
    t = Tables()
    sites = len(scenario.setup.nodes)
    for link in range(len(scenario.setup.links)):
        t.add("paths", path=link, link=link)
    t.add("paths", path=len(scenario.setup.links), link=0)
    t.add("paths", path=len(scenario.setup.links), link=1)
    for one in scenario.jobs:
        at, home = one.arrive_us, (one.index + (0 if policy == "nearest" else 1)) % sites
        t.event(at, "arrived", one.index)
        begin = -(-at // HOUR) * HOUR
        plan = t.plan(
            at, one.index, *[(begin + k * HOUR, begin + (k + 1) * HOUR, [(home, 4)]) for k in range(5)]
        )
        for step, owner in enumerate(t.tables["steps"]["plan"]):
            if owner == plan:
                t.add("flows", step=step, src=(home + 2) % sites, dst=home, bytes=10**9 * (1 + one.index))
                t.add(
                    "routes",
                    step=step,
                    src=home,
                    dst=(home + 1) % sites,
                    bps=10**8,
                    path=home,
                    duplex="push-pull",
                )
        t.add("costs", slot=0, kind="transfer", a=home, b=(home + 2) % sites, amount=5.0, usd=0.1)
        t.event(begin + 5 * HOUR, "finished", one.index)
        t.outcome(one.index, "finished", begin, begin + 5 * HOUR)
    rng = np.random.default_rng(seed)
    parts = {
        "cost_rent_usd": 80 * factor + rng.normal(), "cost_transfer_usd": 30 / factor + rng.normal(),
        "cost_deploy_usd": 4.0, "cost_traffic_usd": 11.0,
    }  # fmt: skip
    total = float(sum(parts.values()))
    bound = Bound(value=100.0, sense="min", kind="certified", ratio=total / 100.0)
    metrics = {**parts, "cost_usd": total, "jobs_completed": float(len(scenario.jobs))}
    return run(scenario, t, policy=policy, seed=seed, metrics=metrics, bound=bound, params={"factor": factor})


def market() -> tuple[Scenario, Run]:
    """Twelve arriving jobs with two offers each: every third declines, every fifth is refused."""
    base = setup(3, 4, resources=("gpu", "vcpu"), objective="profit_usd", nodes=tuple(
        Node(name=f"s{i}", kind="server", capacity_milli=(4000, 16000)) for i in range(3)
    ))  # fmt: skip
    jobs = tuple(job(i, i * HOUR, 3 * HOUR, worker=((0, 1000), (1, 4000))) for i in range(12))
    scenario = Scenario(
        name="market", setup=base, jobs=jobs, customers=tuple(Customer(budget_usd=20.0) for _ in jobs)
    )
    t, income = Tables(), 0.0
    for one in jobs:
        at, state = (
            one.arrive_us,
            ("refused" if one.index % 5 == 4 else "declined" if one.index % 3 == 2 else "finished"),
        )
        t.event(at, "arrived", one.index)
        t.add("answers", at_us=at, job=one.index, taken=1 if state == "finished" else -1)
        for number in range(2 if state != "refused" else 0):
            plan = t.plan(at, one.index, (at, at + (3 + number) * HOUR, [(number, 1)]), decision=-1)
            row = t.add(
                "offers",
                at_us=at,
                job=one.index,
                number=number,
                payment_usd=9.0 + one.index - number,
                finish_us=at + 3 * HOUR,
                plan=plan,
            )
            t.add("prices", offer=row, resource=0, usd=2.0 + 0.2 * one.index)
            t.add("prices", offer=row, resource=1, usd=0.5 + 0.02 * one.index)
        if state == "finished":
            income += 8.0 + one.index
            t.event(at, "accepted", one.index)
            t.event(at + 4 * HOUR, "finished", one.index)
            t.add("payments", job=one.index, usd=8.0 + one.index)
            t.outcome(one.index, state, at, at + 4 * HOUR)
        else:
            t.event(at, state, one.index)
            t.outcome(one.index, state)
    metrics = {"profit_usd": income, "jobs_accepted": 7.0, "jobs_completed": 7.0}
    return scenario, run(scenario, t, policy="dps", metrics=metrics)


def broken(scenario: Scenario, policy: str = "cheater") -> Run:
    """A run that the audit did not pass."""
    found = Violation(
        rule="capacity", job="job-3", node="s1", slot=4, amount=2.0, detail="10 gpu on a node of 8"
    )
    return run(scenario, policy=policy, metrics={scenario.setup.objective: 0.001}, violations=(found,))
