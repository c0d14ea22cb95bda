"""The theorems of Eris on the studied instances: constants beside what was measured, and what they presuppose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np

from tradewind.lab.study import Effort, Instance, Theorem
from tradewind.model.job import Dataset
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.systems.eris.bound import exact
from tradewind.systems.eris.kernels.paper import printed
from tradewind.systems.eris.kernels.printed_slot import Reading
from tradewind.systems.eris.study.lies import NARROW, payoffs, tiny
from tradewind.systems.eris.study.runs import PAPER, limit, made, outcome, played, seeds
from tradewind.systems.eris.study.slot import ENOUGH, FORMULAS, state, tried
from tradewind.systems.eris.study.tables import READINGS, TEXT
from tradewind.systems.eris.study.testbed import SMALL
from tradewind.systems.eris.study.truth import CASES, rows_of

SIZES = ("testbed", "simulator", "contended", "crowded")
NETWORKS: dict[str, Mapping[str, Any]] = {"small markets": {}, "small markets, narrow network": NARROW}
KERNEL_READINGS = {"formulas": FORMULAS, TEXT: Reading(True, True, True)}
GAMMA = 1000.0
CONSTANT = 2 * log2(GAMMA * GAMMA)
"""2 log(gamma_d gamma_k) with the paper's bases; the proof uses logarithms of base 2."""


def widest(scenario: Scenario) -> float:
    """Largest share of a site that one worker takes; the proof's 2^x - 1 <= x needs at most 1 / log2(gamma)."""
    site = scenario.setup.nodes[scenario.setup.hosts[0]].capacity_milli
    return max(milli / site[k] for job in scenario.jobs for k, milli in job.worker)


def counterexample() -> Scenario:
    """One site, one slot, two equal jobs: the first is worth what the proof assumes at least, the second 999 times that."""
    base = made(
        Effort(quick=False, seeds=1), 1, "testbed", sites=1, jobs=2, slots=1, last_arrival=0, forecast=False
    )
    work = base.jobs[0].work
    assert isinstance(work, Dataset)
    one = replace(work, chunks=((0, 1),), chunk_epochs_per_worker_slot_milli=1000 * work.epochs)
    used = sum(milli for _, milli in (*base.jobs[0].worker, *base.jobs[0].server)) / 1000
    worth = (used, (GAMMA - 1) * used)
    jobs = tuple(
        replace(
            base.jobs[0],
            index=i,
            id=f"job-{i}",
            work=one,
            utility=Utility(of="delay_slots", shape="sigmoid", args=(2 * usd, -1.0 / 3, 0.0)),
        )
        for i, usd in enumerate(worth)
    )
    return replace(base, jobs=jobs)


def _instance(name: str, scenario: Scenario, best_usd: float, note: str) -> Instance:
    ratio = best_usd / max(1000 * outcome(scenario, PAPER).welfare, 1e-9)
    share = widest(scenario)
    wide = f"a worker takes {share:.2g} of a site, the proof allows {1 / log2(GAMMA):.2g}"
    return Instance(name, CONSTANT, ratio, ratio <= CONSTANT, f"{note}; {wide}")


def ratios(effort: Effort) -> list[Instance]:
    """Small testbeds by their optimum, the sizes of the study by the bound, and the counterexample."""
    found = []
    for seed in seeds(effort, 5):
        scenario = made(effort, seed, "testbed", **SMALL)
        found.append(
            _instance(f"small testbed, seed {seed}", scenario, exact(scenario, 20_000).value, "optimum")
        )
    for size in SIZES:
        scenario = made(effort, 1, size)
        found.append(_instance(f"{size}, seed 1", scenario, 1000 * limit(scenario), "bound"))
    scenario = counterexample()
    found.append(_instance("two jobs, one site, one slot", scenario, exact(scenario).value, "optimum"))
    return found


def feasible(effort: Effort) -> Iterator[Instance]:
    """Share of the accepted jobs that finish as printed."""
    for size in SIZES:
        scenario = made(effort, 1, size)
        for reading in ("formulas", TEXT):
            o = outcome(scenario, "eris-printed", READINGS[reading])
            share = o.completed / max(o.accepted, 1.0)
            yield Instance(f"{size}, seed 1", 1.0, share, share > 0.999, f"reading: {reading}")


def rational(effort: Effort) -> list[Instance]:
    """Least payoff of an honest buyer, and least sum of payments."""
    found, count = [], effort.pick(20, 200)
    for name, changes in NETWORKS.items():
        markets = [tiny(seed, **changes) for seed in range(1, 1 + count)]
        runs = [played(market, PAPER) for market in markets]
        paid = [value for pair in zip(markets, runs, strict=True) for value in payoffs(*pair).values()]
        profit = min(run.metrics["payments_usd"] for run in runs)
        for who, least, of in (("buyers", min(paid), len(paid)), ("provider", profit, count)):
            found.append(Instance(f"{name}, {who}", 0.0, least, least >= 0, f"USD, the least of {of}"))
    return found


def truthful(effort: Effort) -> Iterator[Instance]:
    """Largest gain of a lie to the printed algorithm."""
    for r in rows_of((case for case in CASES if case[0].name == PAPER), effort):
        note = f"USD; {r['paid']} of {r['lies']} lies pay"
        yield Instance(str(r["lie"]), 0.0, float(r["largest gain"]), not r["paid"], note)


def optimal(effort: Effort) -> list[Instance]:
    """Cost over least cost, in random states with one slot, problem (8), and with three, problem (7)."""
    found, wanted = [], effort.pick(30, 200)
    for slots, problem in ((1, "(8)"), (3, "(7)")):
        for name, reading in KERNEL_READINGS.items():
            result = tried(wanted, slots, reading)
            kinds = [kind for kind, _ in result]
            worst = max((1 + x for kind, x in result if kind in ("equal", "dearer")), default=float("nan"))
            counts = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
            held = kinds.count("equal") == len(kinds)
            slot = f"{slots} slot{'s' * (slots > 1)}"
            note = f"reading: {name}; the worst feasible; {counts}"
            found.append(
                Instance(f"{len(kinds)} states of {slot}, problem {problem}", 1.0, worst, held, note)
            )
    return found


def complexity(effort: Effort) -> list[Instance]:
    """Runs of Algorithm 3 for a bid over T D, which the proof counts, each with all pairs of sites."""
    found = []
    for slots in (3, 12):
        for name, reading in KERNEL_READINGS.items():
            shares = []
            for seed in range(effort.pick(20, 100)):
                task, market = state(seed, slots)
                calls = printed(task, market, np.full(slots, ENOUGH), reading).calls
                shares.append(calls / (slots * int(task.data.sum())))
            worst = max(shares)
            note = f"reading: {name}; the worst of {len(shares)}"
            found.append(Instance(f"states of {slots} slots, up to 20 chunks", 1.0, worst, worst <= 1, note))
    return found


THEOREMS = (
    Theorem(
        name="Theorem 1",
        words="What Eris accepts is feasible; measured: the share of the accepted jobs that finish as printed.",
        instances=feasible,
    ),
    Theorem(
        name="Theorem 2",
        words="Neither buyers nor the provider lose; measured: the least payoff and the least sum of payments, once every "
        "schedule is made feasible.",
        instances=rational,
    ),
    Theorem(
        name="Theorem 3",
        words="No lie pays; measured: the largest gain. Slim ones train as fast as larger ones, as (2b) has it.",
        instances=truthful,
    ),
    Theorem(
        name="Theorem 4",
        words="Algorithms 2 and 3 are optimal; measured: cost over least cost. Schedules that break a rule and "
        "states in which none is found are not within.",
        instances=optimal,
    ),
    Theorem(
        name="Theorem 5",
        words="Optimum / welfare is at most 2 log(gamma_d gamma_k), 39.9 with the paper's bases of 1000.",
        instances=ratios,
    ),
    Theorem(
        name="Theorem 6",
        words="O(I T D (R^2 K + D)) time: Algorithm 3 runs at most T D times for a bid; measured: runs over T D.",
        instances=complexity,
    ),
)
