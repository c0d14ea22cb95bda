"""Decisions at scale: time, memory and gap to the bound as jobs, sites, servers and arrivals grow by decades.

Each point has a process of its own with a limit of CPU time and memory, which first decides a small case (libraries and
kernels). It tells two lines: time and memory of the decision, then the gap, so that a bound that does not end in time
leaves the rest. `measure` keeps what it finds in out/scale, a file per ladder, and the page is made from these files:
`python -m benchmarks.scale_decisions [WORDS]` measures the ladders whose names have one of the words. Points that are there
stay, so that it can be stopped and goes on later; remove the folder to begin anew.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.before import ROOT, environment, tree

FOLDER = ROOT / "out" / "scale"
CPU_S, MEMORY_GB = 300, 14
Case = tuple[int, Callable[[], Any], Callable[[Any], float]]
"""How many decisions, the work that takes them, and the gap of what it returns: 0 is optimal."""
Point = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """One system on growing cases. sizes: (what the axis counts, the other dimension)."""

    system: str
    grows: str
    other: str
    sizes: tuple[tuple[int, int], ...]
    case: Callable[[int, int], Case]
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.system}, {self.grows}"


def _mlbroker(jobs: int, sites: int) -> Case:
    from tradewind.systems.mlbroker.kernels.bound import lower_bound
    from tradewind.systems.mlbroker.kernels.search import search
    from tradewind.systems.mlbroker.workload.draw import DrawSettings
    from tradewind.systems.mlbroker.workload.slot import drawn_slot

    slot = drawn_slot(DrawSettings(family="narrow", sites=sites), 1, jobs)
    return jobs, lambda: search(slot), lambda found: found.cost / lower_bound(slot, 3, 100).lower - 1.0


def _gadget(servers: int, jobs: int) -> Case:
    from tradewind.registry import workloads
    from tradewind.systems.gadget.kernels.solve import SlotEffort, solve
    from tradewind.systems.gadget.study.runs import first_slot

    params = {"family": "tight", "utility": "gang", "servers": servers, "jobs": jobs, "slots": 200}
    slot = first_slot(workloads.generate("gadget", params, 0))
    return jobs, lambda: solve(slot, SlotEffort()), lambda found: 1.0 - found.value / found.bound


def _eris(bids: int, sites: int) -> Case:
    from tradewind.registry import policies, workloads
    from tradewind.systems.eris.bound import pooled_bound
    from tradewind.worlds.simulate import simulate

    given = {"sites": sites, "jobs": bids, "bandwidth_gb": 0.4 * sites}
    scenario = workloads.generate("eris", given, 1)
    policy = policies.find("eris")
    return (
        bids,
        lambda: simulate(scenario, policy),
        lambda run: 1.0 - run.value / pooled_bound(scenario).bound,
    )


def _apsp(nodes: int, _: int) -> Case:
    from tradewind.systems.apsp.kernels.network import place, settings_for
    from tradewind.systems.apsp.shared.placement import full_bps, job_network, wires_of
    from tradewind.systems.apsp.workload.build import WanCase, build_scenario

    case = WanCase(
        topology=drawn_topology(nodes), rule="power", min_mbps=500, seed=0, workers="", model="byte", model_bytes=1,
        data="", transport="store-and-forward", shared=False, latency=False,
    )  # fmt: skip
    scenario = build_scenario(case, {})
    setup = scenario.setup
    net = job_network(setup, scenario.jobs[0], wires_of(setup, full_bps(setup))).net
    settings = settings_for(net.problem, 0.01)
    return 1, lambda: place(net, settings), lambda found: float(found.ratio) - 1.0


def drawn_topology(nodes: int) -> Any:
    """Sites in a rectangle as large as Europe: a tree of short links and a fifth as many more."""
    from tradewind.systems.apsp.workload.topology import Topology, TopologyLink

    rng = np.random.default_rng(nodes)
    lat, lon = rng.uniform(38.0, 58.0, nodes), rng.uniform(-5.0, 25.0, nodes)
    links: set[tuple[int, int]] = set()
    for i in range(1, nodes + nodes // 5):
        a = i if i < nodes else int(rng.integers(nodes))
        far = np.hypot(lat - lat[a], 0.65 * (lon - lon[a]))
        far[a] = np.inf
        if i < nodes:
            far[i:] = np.inf
        for u, v in links:
            if a in (u, v):
                far[v if u == a else u] = np.inf
        b = int(np.argmin(far))
        links.add((min(a, b), max(a, b)))
    return Topology(
        name=f"drawn-{nodes}",
        nodes=tuple(f"n{i}" for i in range(nodes)),
        links=tuple(TopologyLink(a=a, b=b) for a, b in sorted(links)),
        position=tuple(zip(lat.tolist(), lon.tolist(), strict=True)),
    )


def _dps(arrivals: int, _: int) -> Case:
    from tradewind.systems.dps.study.runs import drawn, non_peeking, sell

    market = drawn("balanced", 1, arrivals, arrivals)
    return (
        arrivals,
        lambda: sell(market, "dps", 1),
        lambda sold: 1.0 - sold.outcome.profit / non_peeking(market),
    )


def _broker(jobs: int, _: int) -> Case:
    from tradewind.registry import workloads
    from tradewind.systems.broker.bound.certified import Effort, solved
    from tradewind.systems.broker.bound.problem import whole
    from tradewind.systems.broker.policy import planned
    from tradewind.systems.broker.shared.plan import cost

    scenario = workloads.generate("broker", {"family": "F", "jobs": jobs}, 1)

    def decide() -> Any:
        found = whole(scenario)
        return found, planned(found.market, found.problem, found.before, 100)

    def gap(answer: Any) -> float:
        found, books = answer
        return float(
            cost(found.problem, books) / solved(found, Effort(rounds=0, steps=30, turns=0)).bound - 1.0
        )

    return jobs, decide, gap


def _mixed(jobs: int, sites: int) -> Case:
    from tradewind.registry import workloads
    from tradewind.systems.mixed.bound.certified import bound
    from tradewind.systems.mixed.bound.whole import whole
    from tradewind.systems.mixed.policy import MIXED
    from tradewind.systems.mixed.shared.exchange import Effort, exchange

    scenario = workloads.generate("mixed", {"jobs": jobs, "sites": sites, "load": "tight"}, 1)
    every = whole(scenario)
    rounds, replies, most = (
        int(MIXED.params[name].default) for name in ("rounds", "replies", "most_replies")
    )
    effort = Effort(rounds, replies).within(most, len(every.asks))

    def gap(found: Any) -> float:
        limit = bound(scenario)
        assert limit is not None
        return float(1.0 - (found.books.welfare + every.sunk_usd) / limit.value)

    return jobs, lambda: exchange(every.frame, every.asks, every.market, effort, (1,)), gap


def _cluster(jobs: int, servers: int) -> Case:
    import tradewind as tw
    from tradewind.engine import bounds

    scenario = tw.generate("cluster", jobs=jobs, servers=servers, load=0.9)

    def gap(run: Any) -> float:
        limit = bounds.bound(scenario)
        return float("nan") if limit is None else run.metrics["jct_mean_s"] / limit.value - 1.0

    return jobs, lambda: tw.run(scenario, "las", fast=True), gap


LADDERS = (
    Ladder(system="mlbroker", grows="jobs", other="sites", case=_mlbroker, note="one slot, all jobs new",
           sizes=((10, 100), (100, 100), (1_000, 100), (10_000, 100))),
    Ladder(system="mlbroker", grows="sites", other="jobs", case=lambda sites, jobs: _mlbroker(jobs, sites),
           note="one slot, all jobs new", sizes=((4, 300), (10, 300), (100, 300), (300, 300))),
    Ladder(system="gadget", grows="servers", other="jobs", case=_gadget, note="one slot, gangs",
           sizes=((10, 20), (100, 200), (1_000, 2_000), (10_000, 20_000))),
    Ladder(system="eris", grows="bids", other="sites", case=_eris, note="an audited run",
           sizes=((100, 1_000), (1_000, 1_000), (10_000, 1_000), (100_000, 1_000))),
    Ladder(system="eris", grows="sites", other="bids", case=lambda sites, bids: _eris(bids, sites),
           note="an audited run", sizes=((10, 1_000), (100, 1_000), (1_000, 1_000))),
    Ladder(system="apsp", grows="nodes", other="", case=_apsp, note="workers at every node; stops at a gap of 1 %",
           sizes=((20, 0), (200, 0), (2_000, 0))),
    Ladder(system="dps", grows="arrivals", other="", case=_dps, note="a whole market, compiled",
           sizes=((1_000, 0), (10_000, 0), (100_000, 0), (1_000_000, 0))),
    Ladder(system="broker", grows="jobs", other="", case=_broker, note="real prices of all regions; options and plan",
           sizes=((10, 0), (100, 0), (1_000, 0), (10_000, 0))),
    Ladder(system="mixed", grows="jobs", other="sites", case=_mixed, note="one decision, all jobs present",
           sizes=((10, 4), (100, 4), (1_000, 4), (10_000, 4))),
    Ladder(system="cluster", grows="jobs", other="servers", case=_cluster, note="las, compiled, audited",
           sizes=((1_000, 10), (10_000, 100), (100_000, 1_000), (1_000_000, 10_000))),
)  # fmt: skip


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one(name: str, step: int) -> None:
    """Measures a point in this process and prints what is known so far, a line at a time."""
    ladder = next(each for each in LADDERS if each.name == name)
    size, other = ladder.sizes[step]
    ladder.case(*ladder.sizes[0])[1]()
    before = _peak_bytes()
    decisions, decide, gap = ladder.case(size, other)
    begin = process_time()
    answer = decide()
    spent = process_time() - begin
    found = {"cpu_s": spent, "decisions": decisions, "bytes": max(0, _peak_bytes() - before)}
    print(json.dumps(found), flush=True)
    begin = process_time()
    print(json.dumps({"gap": gap(answer), "bound_cpu_s": process_time() - begin}), flush=True)


def _limits(cpu_s: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 2))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_GB * 10**9, MEMORY_GB * 10**9))

    return limit


def measured(ladder: Ladder, step: int, cpu_s: int = CPU_S, source: Path = ROOT) -> Point:
    """A point by a process of its own with the package of a tree; `broke` says why there is no figure."""
    size, other = ladder.sizes[step]
    point: Point = {"size": size, "other": other}
    words = [sys.executable, "-m", "benchmarks.scale_decisions", "--one", ladder.name, str(step)]
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment(source),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_limits(cpu_s),
    )
    for line in done.stdout.splitlines():
        point |= json.loads(line)
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-1:])[:120]
        out_of = f"more than {cpu_s} s of CPU time" if done.returncode < 0 else last
        point["broke" if "cpu_s" not in point else "no_gap"] = out_of
    return point


def exponent(points: Sequence[Point]) -> float | None:
    """Slope of log time over log size, from the last two decades that were measured: small cases are mostly overhead."""
    known = [p for p in points if "cpu_s" in p][-3:]
    if len(known) < 2:
        return None
    return float(
        np.polyfit([log(p["size"]) for p in known], [log(max(p["cpu_s"], 1e-5)) for p in known], 1)[0]
    )


IMPROVED = {"eris, sites": "b0854f7", "apsp, nodes": "3283347", "cluster, jobs": "3283347"}
"""Ladders whose exponent was improved -> the last commit before."""
BEFORE = " before"


def read() -> dict[str, list[Point]]:
    """What was measured, by the names of the ladders; those before an improvement end with BEFORE."""
    names = [*(ladder.name for ladder in LADDERS), *(name + BEFORE for name in IMPROVED)]
    paths = {name: FOLDER / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def measure(only: Sequence[str] = (), cpu_s: int = CPU_S) -> dict[str, list[Point]]:
    """Measures the ladders whose name has one of these words (none: all), and writes each point as soon as it is known."""
    for ladder in LADDERS:
        if not only or any(word in ladder.name for word in only):
            _climb(ladder, ladder.name, cpu_s, ROOT)
            if ladder.name in IMPROVED:
                with tree(IMPROVED[ladder.name]) as old:
                    _climb(ladder, ladder.name + BEFORE, cpu_s, old)
    return read()


def _climb(ladder: Ladder, name: str, cpu_s: int, source: Path) -> None:
    """Measures the points of a ladder up to the first that breaks."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    points: list[Point] = json.loads(path.read_text()) if path.exists() else []
    for step in range(len(points), len(ladder.sizes)):
        if points and "broke" in points[-1]:
            break
        points.append(measured(ladder, step, cpu_s, source))
        print(name, points[-1], file=sys.stderr, flush=True)
        path.write_text(json.dumps(points, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        measure(sys.argv[1:])
