"""Theorem 5 of Eris on the studied instances: its constant beside optimum / welfare, and what it presupposes."""

from __future__ import annotations

from dataclasses import replace
from math import log2

from tradewind.lab.study import Effort, Instance, Theorem
from tradewind.model.job import Dataset
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.systems.eris.bound import exact
from tradewind.systems.eris.study.runs import PAPER, limit, made, outcome, seeds
from tradewind.systems.eris.study.testbed import SMALL

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
    for size in ("testbed", "simulator", "contended", "crowded"):
        scenario = made(effort, 1, size)
        found.append(_instance(f"{size}, seed 1", scenario, 1000 * limit(scenario), "bound"))
    scenario = counterexample()
    found.append(_instance("two jobs, one site, one slot", scenario, exact(scenario).value, "optimum"))
    return found


THEOREM_5 = Theorem(
    name="Theorem 5",
    words="Optimum / welfare is at most 2 log(gamma_d gamma_k), 39.9 with the paper's bases of 1000.",
    instances=ratios,
)
