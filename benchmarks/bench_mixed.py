"""Plans of mixed against its certified bound, its rivals, exact answers and the specialists, and the time it takes.

`rows()` is quick: 40 jobs, two seeds per load. `python -m benchmarks.bench_mixed SEEDS [JOBS]` measures plans with more
seeds, `python -m benchmarks.bench_mixed SEEDS beside` the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from time import process_time

from benchmarks.mixed_figures import Row, decisions, row, seconds, specialists, tiny
from tradewind.registry import policies, workloads
from tradewind.systems.mixed.bound.certified import bound
from tradewind.systems.mixed.bound.whole import whole
from tradewind.systems.mixed.shared.exchange import OFFLINE, exchange
from tradewind.worlds.simulate import simulate

TARGETS: dict[int, dict[tuple[str, str], tuple[float | None, float | None]]] = {
    40: {
        ("offline", "slack"): (0.98, 0.99), ("offline", "tight"): (0.93, 0.95), ("offline", "very"): (0.905, 0.93),
        ("online", "slack"): (0.975, 0.98), ("online", "tight"): (0.90, 0.92), ("online", "very"): (0.86, 0.89),
    },
    120: {
        ("offline", "slack"): (0.98, 0.99), ("offline", "tight"): (0.97, 0.985), ("offline", "very"): (0.93, 0.95),
        ("online", "slack"): (None, None), ("online", "tight"): (0.95, 0.97), ("online", "very"): (0.90, 0.93),
    },
}  # fmt: skip
"""Jobs -> how and load -> target and goal."""
ABOVE = {"slack": (0.02, 0.025), "tight": (0.07, 0.11), "very": (0.09, 0.14)}
RIVALS = ("mixed-shares", "mixed-priority", "mixed-line")


def measured(load: str, seeds: Sequence[int], jobs: int) -> dict[str, float]:
    """Mean and worst welfare over the bound, offline and online, of mixed and its rivals, and CPU seconds."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        scenario = workloads.generate("mixed", {"load": load, "jobs": jobs}, seed)
        limit = bound(scenario)
        assert limit is not None
        every, begin = whole(scenario), process_time()
        plan = exchange(every.frame, every.asks, every.market, OFFLINE, (1,)).books.welfare
        found.setdefault("offline_s", []).append(process_time() - begin)
        found.setdefault("offline", []).append((plan + every.sunk_usd) / limit.value)
        found.setdefault("offline_lost", []).append(limit.value - plan - every.sunk_usd)
        for name in ("mixed", *RIVALS):
            begin = process_time()
            reached = simulate(scenario, policies.find(name)).metrics["welfare_usd"] / limit.value
            found.setdefault("online" if name == "mixed" else name, []).append(reached)
            if name == "mixed":
                found.setdefault("online_lost", []).append(limit.value * (1.0 - reached))
                found.setdefault("slot_s", []).append((process_time() - begin) / scenario.setup.slots)
    result = {name: sum(values) / len(values) for name, values in found.items()}
    result["offline_worst"], result["online_worst"] = min(found["offline"]), min(found["online"])
    best = [max(pair) for pair in zip(*(found[name] for name in RIVALS), strict=True)]
    won = [ours >= theirs for ours, theirs in zip(found["online"], best, strict=True)]
    result["best"] = result["online"] - sum(best) / len(best)
    return result | {"above": result["online"] - result["mixed-priority"], "won": sum(won) / len(won)}


def plans(seeds: Sequence[int], jobs: int, loads: Sequence[str] = ("slack", "tight", "very")) -> list[Row]:
    """Figures of plans: welfare over the bound and USD below it, and how far above its rivals mixed is."""
    found: list[Row] = []
    for load in loads:
        reached = measured(load, seeds, jobs)
        for how in ("offline", "online"):
            target, goal = TARGETS.get(jobs, {}).get((how, load), (None, None))
            seconds = reached["offline_s" if how == "offline" else "slot_s"]
            note = f"worst {reached[f'{how}_worst']:.3f}, {reached[f'{how}_lost']:.0f} USD below, {seconds:.2f} s CPU"
            found.append(
                row(
                    f"{how} {load}, {jobs} jobs, welfare / bound",
                    reached[how],
                    "ratio",
                    target,
                    goal,
                    note=note,
                )
            )
        target, goal = ABOVE[load] if jobs == 40 else (None, None)
        note = f"above the best rival in {reached['won']:.0%} of the instances, {reached['best']:+.3f} in the mean"
        name = f"online {load}, {jobs} jobs, above streams first"
        found.append(row(name, reached["above"], "of the bound", target, goal, note=note))
    return found


def rows() -> list[Row]:
    """All figures, with few seeds."""
    return [*plans((1, 2), 40), *tiny((2, 3)), *specialists((1,)), *seconds(), *decisions()]


if __name__ == "__main__":
    some = range(1, int(sys.argv[1]) + 1)
    what = sys.argv[2] if len(sys.argv) > 2 else "40"
    loads = (
        [partial(plans, some, int(what), (load,)) for load in ("slack", "tight", "very")]
        if what != "beside"
        else []
    )
    for part in loads or [
        partial(tiny, some),
        partial(specialists, some),
        partial(seconds),
        partial(decisions),
    ]:
        for each in part():
            print(
                f"{each['name']:<46}{each['measured']:9.4f} {each['unit']:<12} "
                f"target {each['target']}, goal {each['goal']}; {each.get('note', '')}",
                flush=True,
            )
