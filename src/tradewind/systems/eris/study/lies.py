"""Experiments with the mechanisms of Eris: does a lie ever pay, and does every random market pass the audit?

`python -m tradewind.systems.eris.study.lies 1000` tries 1,000 lies of each kind and audits 1,000 random markets.
`python -m tradewind.systems.eris.study.lies failures 300` tries lies in 300 random markets with failures.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tradewind.engine.intervals import floats, ints
from tradewind.model.job import Customer, Dataset, Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.registry import policies, workloads
from tradewind.worlds.simulate import simulate

KINDS = ("utility", "late", "data", "epochs")
CONFIGURATIONS = ("smaller worker", "larger worker", "slim worker", "smaller server", "slim server")
"""Lies about what a worker or server takes: smaller and larger ones train in proportion, slim ones as fast as before.

The paper argues that less computes more slowly and that more must be paid for; in its model (2b) the speed does not depend
on the demands.
"""
TINY = {
    "sites": 4, "jobs": 7, "slots": 14, "last_arrival": 5, "chunks_per_worker": 12.0, "gpu": 2.0, "forecast": False,
    "bandwidth_gb": 1.5,
}  # fmt: skip
FLOOR = {"floor": "0,6,0,10"}
NARROW = {"bandwidth_gb": 0.2}
"""A network that cannot carry all data of most jobs in a slot."""
SCARCE = {"chunks_per_worker": 1.9, "gpu": 1.0}
"""Half the GPUs, and workers that train a fraction of a chunk."""
MANY = {"jobs": 20, "last_arrival": 9}
"""Enough bids to learn a floor from."""


class Mechanism(NamedTuple):
    """A policy with its parameters."""

    name: str
    params: Mapping[str, Any]

    def run(self, scenario: Scenario) -> Run:
        return simulate(scenario, policies.find(self.name), self.params)


SOLD = Mechanism("eris", FLOOR)
LEARNED = Mechanism("eris", {"floor": "learned"})
CHARGED = Mechanism("eris-preemptive", {"payments": "critical"})
MARKETS = (Mechanism("eris", {}), Mechanism("fcfs", {}), Mechanism("eris-preemptive", {}), CHARGED)
WINDOW = {"window_slots": 8}
"""Plans reach eight slots ahead, in which a bid loses its worth. Where a window is shorter than that, waiting can pay."""
CASES = (
    *product((SOLD,), KINDS, (("", {}), (", narrow network", NARROW), (", rolling window", WINDOW))),
    *product((LEARNED,), KINDS, ((", floor learned", MANY),)),
    *product((CHARGED,), ("scale",), (("", {}), (", narrow network", NARROW), (", scarce", SCARCE))),
)
"""Mechanism, kind of lie, network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LieOutcome:
    """A lie: its gain in USD, whether it changed the liar's payoff, and the least payoff of an honest buyer."""

    gain: float
    mattered: bool
    least_payoff: float


def tiny(seed: int, **changes: Any) -> Scenario:
    """Few sites, scarce GPUs and bandwidth; `window_slots` is that of the setup."""
    window = changes.pop("window_slots", None)
    scenario = workloads.generate("eris", {**TINY, **changes}, seed)
    return replace(scenario, setup=replace(scenario.setup, window_slots=window))


def payoffs(scenario: Scenario, run: Run) -> dict[str, float]:
    """True worth of completing minus payment of every job with a payment, which may be 0."""
    slot, found = scenario.setup.slot_us, {}
    finish = dict(zip(*(ints(run, "outcomes", name).tolist() for name in ("job", "finish_us")), strict=True))
    paid = zip(ints(run, "payments", "job").tolist(), floats(run, "payments", "usd").tolist(), strict=True)
    for index, usd in paid:
        job, customer = scenario.jobs[index], scenario.customers[index]
        worth = customer.valuation or job.utility
        assert worth is not None
        delay = (finish[index] - 1) // slot - job.arrive_us // slot
        found[job.id] = (worth.value(delay) if finish[index] >= 0 else 0.0) - usd
    return found


def try_lie(seed: int, kind: str, mechanism: Mechanism = SOLD, **changes: Any) -> LieOutcome:
    """One job of a market lies, all others stay as they are; its payoff is measured by its true worth."""
    scenario = tiny(seed, **changes)
    rng = np.random.default_rng(seed)
    job = scenario.jobs[int(rng.integers(len(scenario.jobs)))]
    honest = payoffs(scenario, mechanism.run(scenario))
    lie, truth = _lie(rng, job, kind, scenario.setup.slot_us)
    other = _swap(scenario, lie, truth)
    after = payoffs(other, mechanism.run(other)).get(job.id, 0.0)
    before = honest.get(job.id, 0.0)
    return LieOutcome(
        gain=after - before,
        mattered=abs(after - before) > 1e-6,
        least_payoff=min(honest.values(), default=0.0),
    )


def promises(scenario: Scenario, run: Run) -> dict[str, float]:
    """True worth of completing as promised minus payment, of every job that bought: what a buyer knows when it buys."""
    slot, found = scenario.setup.slot_us, {}
    names = ("at_us", "job", "taken")
    taken = set(zip(*(ints(run, "answers", name).tolist() for name in names), strict=True))
    offers = (ints(run, "offers", name).tolist() for name in ("at_us", "job", "number", "finish_us"))
    for (*key, finish), usd in zip(
        zip(*offers, strict=True), floats(run, "offers", "payment_usd").tolist(), strict=True
    ):
        if tuple(key) in taken:
            job, customer = scenario.jobs[key[1]], scenario.customers[key[1]]
            worth = customer.valuation or job.utility
            assert worth is not None
            found[job.id] = worth.value((finish - 1) // slot - job.arrive_us // slot) - usd
    return found


def try_lie_with_failures(seed: int, kind: str) -> tuple[float, float]:
    """Gain of a lie in a random market with failures: in what is promised, and in what comes true."""
    scenario, rng = market(3 * seed), np.random.default_rng(3 * seed)
    job = scenario.jobs[int(rng.integers(len(scenario.jobs)))]
    other = _swap(scenario, *_lie(rng, job, kind, scenario.setup.slot_us))
    runs = [(each, SOLD.run(each)) for each in (scenario, other)]
    (before, after), (honest, lied) = (
        [measure(*run).get(job.id, 0.0) for run in runs] for measure in (promises, payoffs)
    )
    return after - before, lied - honest


def _lie(rng: np.random.Generator, job: Job, kind: str, slot_us: int) -> tuple[Job, Utility]:
    """The job as reported, and its true worth counted from the reported arrival."""
    truth, work = job.utility, job.work
    assert truth is not None
    assert isinstance(work, Dataset)
    height, steep, middle = truth.args
    if kind in CONFIGURATIONS:
        return _configured(rng, job, work, kind), truth
    if kind == "scale":
        reported = (height * float(np.exp(rng.uniform(-4, 3))), steep, middle)
        return replace(job, utility=replace(truth, args=reported)), truth
    if kind == "utility":
        reported = (
            height * float(np.exp(rng.uniform(-4, 1.5))),
            steep * float(rng.uniform(0.2, 3)),
            float(rng.uniform(-2, 4)),
        )
        return replace(job, utility=replace(truth, args=reported)), truth
    if kind == "late":
        late = int(rng.integers(1, 4))
        shifted = replace(truth, args=(height, steep, middle - late))
        return replace(job, arrive_us=job.arrive_us + late * slot_us, utility=shifted), shifted
    if kind == "data":
        chunks = tuple((node, n + int(rng.integers(0, 5))) for node, n in work.chunks)
        return replace(job, work=replace(work, chunks=chunks)), truth
    return replace(job, work=replace(work, epochs=work.epochs * int(rng.integers(2, 4)))), truth


def _configured(rng: np.random.Generator, job: Job, work: Dataset, kind: str) -> Job:
    """The job with other workers, or another server, and the speed that the kind of lie goes with."""
    size, role = kind.split()
    factor = float(rng.uniform(1.1, 2.5) if size == "larger" else rng.uniform(0.4, 0.95))
    demand = tuple((k, -int(-milli * factor // 1)) for k, milli in getattr(job, role))
    speed = 1.0 if size == "slim" else factor
    rate = max(1, int(work.chunk_epochs_per_worker_slot_milli * speed))
    slower = replace(job, work=replace(work, chunk_epochs_per_worker_slot_milli=rate))
    return replace(slower, worker=demand) if role == "worker" else replace(slower, server=demand)


def _swap(scenario: Scenario, lie: Job, truth: Utility) -> Scenario:
    """The scenario in which one job reports `lie` while its customer values completion by `truth`."""
    jobs = [lie if job.id == lie.id else job for job in scenario.jobs]
    jobs.sort(key=lambda job: (job.arrive_us, job.index))
    customers = [Customer(valuation=truth) if job.id == lie.id else Customer() for job in jobs]
    numbered = tuple(replace(job, index=i) for i, job in enumerate(jobs))
    return replace(scenario, jobs=numbered, customers=tuple(customers))


def market(seed: int) -> Scenario:
    """A random small market: whole and fractional P / E, uneven sites, bandwidth from almost none to plenty, failures."""
    rng = np.random.default_rng((seed, 6))
    scenario = tiny(
        seed,
        chunks_per_worker=float(rng.choice([0.5, 1.0, 1.9, 3.0, 12.0])),
        gpu=float(rng.choice([1.0, 2.0, 4.0])),
        uneven=float(rng.choice([0.0, 0.5])),
        bandwidth_gb=float(rng.choice([0.02, 0.2, 1.5, 20.0])),
    )
    if seed % 3:
        return scenario
    node, slot_us = int(rng.integers(len(scenario.setup.hosts))), scenario.setup.slot_us
    begin = int(rng.integers(1, 8)) * slot_us + int(rng.integers(0, 2)) * slot_us // 2
    changes = (
        Change(begin, "node_down", node, 0, 0),
        Change(begin + int(rng.integers(1, 5)) * slot_us, "node_up", node, 0, 0),
    )
    return replace(scenario, changes=changes)


def main() -> None:
    """Prints one line per kind of lie and one per audited policy; the audit raises at the first violation."""
    count = int(sys.argv[-1]) if len(sys.argv) > 1 else 1000
    if "failures" in sys.argv:
        for kind in KINDS:
            gains = np.array([try_lie_with_failures(seed, kind) for seed in range(count)])
            better, luckier = (gains > 1e-6).sum(axis=0)
            print(
                f"{kind}, failures: {count} lies, {better} promise more, {luckier} gain in the end",
                flush=True,
            )
        return
    for mechanism, kind, (where, changes) in CASES:
        tried = [try_lie(seed, kind, mechanism, **changes) for seed in range(count)]
        print(
            f"{mechanism.name}, {kind}{where}: {count} lies, {sum(t.mattered for t in tried)} changed the liar's payoff, "
            f"largest gain {max(t.gain for t in tried):.2g} USD, least payoff of an honest buyer "
            f"{min(t.least_payoff for t in tried):.2g} USD",
            flush=True,
        )
    for each in MARKETS:
        done = sum(each.run(market(seed)).metrics["jobs_completed"] for seed in range(count))
        print(
            f"{each.name} {dict(each.params)}: {count} random markets audited, {done:.0f} jobs completed, no rule broken"
        )


if __name__ == "__main__":
    main()
