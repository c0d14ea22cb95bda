"""Figures of mixed beside its plans: the optimum of tiny cases, the specialists on their own families, and time."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from tradewind.registry import policies, workloads
from tradewind.systems.mixed.bound.exact import exact
from tradewind.systems.mixed.bound.whole import whole
from tradewind.systems.mixed.policy import MIXED
from tradewind.systems.mixed.shared.exchange import OFFLINE, Effort, exchange
from tradewind.systems.mixed.shared.prices import find_prices
from tradewind.worlds.simulate import simulate

Row = dict[str, Any]
TINY = {"jobs": 8, "sites": 3, "slots": 10}
NODES = 2_000
"""Nodes of the exact program's search; an instance that is not proved with them is left out."""
FAMILIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "gadget": ("gadget", {"family": "tight", "jobs": 20, "servers": 8, "slots": 40}, "utility"),
    "eris": ("eris", {"jobs": 30}, "welfare_usd"),
    "eris contended": ("eris", {"size": "contended"}, "welfare_usd"),
    "mlbroker": ("mlbroker", {"sites": 4, "slots": 8}, "cost_usd"),
}
"""Name -> workload, parameters and objective of a specialist's own family, with the specialist's name first."""


def row(
    name: str, measured: float | None, unit: str, target: float | None, goal: float | None, **more: Any
) -> Row:
    better = "lower" if unit in ("s", "us") else "higher"
    return {
        "name": name, "measured": measured, "unit": unit, "target": target, "goal": goal, "better": better, **more
    }  # fmt: skip


def tiny(seeds: Sequence[int]) -> list[Row]:
    """Plans of tiny scenarios beside the proven optimum."""
    ratios, loose, tried = [], [], 0
    for seed in seeds:
        for load in ("slack", "tight", "very"):
            scenario = workloads.generate("mixed", {**TINY, "load": load}, seed)
            best, found = exact(scenario, NODES), whole(scenario)
            tried += 1
            if best.optimal:
                plan = exchange(found.frame, found.asks, found.market, OFFLINE, (1,))
                ratios.append(plan.books.welfare / best.value)
                loose.append(plan.priced.bound / best.value)
    note = f"{len(ratios)} of {tried} proved; bound / optimum up to {max(loose):.3f}"
    mean = float(np.mean(ratios))
    return [
        row("tiny, plan / optimum, mean", mean, "ratio", 0.995, 0.999, note=note),
        row("tiny, plan / optimum, worst", min(ratios), "ratio", 0.975, 0.99, note=note),
    ]


def specialists(seeds: Sequence[int]) -> list[Row]:
    """mixed beside the specialist on the specialist's own family; above 1: mixed is better."""
    found = []
    for name, (specialist, params, objective) in FAMILIES.items():
        ratios, spent = [], 0.0
        for seed in seeds:
            scenario = workloads.generate(specialist, params, seed)
            theirs = simulate(scenario, policies.find(specialist)).metrics[objective]
            begin = process_time()
            ours = simulate(scenario, policies.find("mixed")).metrics[objective]
            spent += process_time() - begin
            ratios.append(theirs / ours if objective == "cost_usd" else ours / theirs)
        note = f"worst {min(ratios):.4f}, {spent / len(ratios):.1f} s CPU per run"
        found.append(
            row(f"{name}'s family / {specialist}", float(np.mean(ratios)), "ratio", 0.995, 1.0, note=note)
        )
    return found


def seconds(
    sizes: Sequence[tuple[int, int, float, float]] = ((40, 4, 2.0, 0.3), (240, 6, 15.0, 3.0)),
) -> list[Row]:
    """CPU time of the prices of a whole scenario (sizes: jobs, sites, target, goal) and of one reply."""
    found = []
    for jobs, sites, target, goal in sizes:
        times = []
        for load in ("slack", "tight", "very"):
            every = whole(workloads.generate("mixed", {"jobs": jobs, "sites": sites, "load": load}, 1))
            begin = process_time()
            rounds = find_prices(every.frame, every.asks, every.market).rounds
            times.append(process_time() - begin)
        note = f"slowest of three loads; very: {rounds} rounds"
        found.append(row(f"prices of {jobs} jobs to a gap of .1 %", max(times), "s", target, goal, note=note))
    every = whole(workloads.generate("mixed", {"jobs": 40, "load": "tight"}, 1))
    market = every.market._replace(linear=every.frame.chords(every.market), tiers=False)
    begin = process_time()
    for _ in range(20):
        for ask in every.asks:
            ask.reply(market)
    each = (process_time() - begin) / (20 * len(every.asks)) * 1e6
    return [*found, row("one reply, mean of all kinds", each, "us", 100.0, 20.0)]


def decisions(counts: Sequence[int] = (40, 240, 1000)) -> list[Row]:
    """CPU seconds of one decision with so many jobs waiting at once, with the default effort."""
    found = []
    for jobs in counts:
        sites = 4 if jobs < 200 else 6
        every = whole(workloads.generate("mixed", {"jobs": jobs, "sites": sites, "load": "tight"}, 1))
        rounds, replies, most = (
            int(MIXED.params[name].default) for name in ("rounds", "replies", "most_replies")
        )
        effort = Effort(rounds, replies).within(most, len(every.asks))
        begin = process_time()
        exchange(every.frame, every.asks, every.market, effort, (1,))
        found.append(row(f"a decision with {jobs} jobs", process_time() - begin, "s", 10.0, 1.0,
                         note=f"{effort.replies} replies per job, {effort.rounds} rounds"))  # fmt: skip
    return found
