"""Plans of mixed against its certified bound, offline and online, and against its rivals.

`rows()` is quick: 40 jobs, two seeds per load. `python -m benchmarks.bench_mixed SEEDS [JOBS]` measures the full table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import process_time
from typing import Any

from tradewind.registry import policies, workloads
from tradewind.systems.mixed.bound.certified import bound
from tradewind.systems.mixed.bound.whole import whole
from tradewind.systems.mixed.shared.exchange import Effort, exchange
from tradewind.worlds.simulate import simulate

TARGETS = {
    ("offline", "slack"): (0.98, 0.99), ("offline", "tight"): (0.93, 0.95), ("offline", "very"): (0.905, 0.93),
    ("online", "slack"): (0.975, 0.98), ("online", "tight"): (0.90, 0.92), ("online", "very"): (0.86, 0.89),
}  # fmt: skip
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
        plan = exchange(every.frame, every.asks, every.market, Effort(), (1,)).books.welfare
        found.setdefault("offline_s", []).append(process_time() - begin)
        found.setdefault("offline", []).append((plan + every.sunk_usd) / limit.value)
        for name in ("mixed", *RIVALS):
            begin = process_time()
            reached = simulate(scenario, policies.find(name)).metrics["welfare_usd"] / limit.value
            found.setdefault("online" if name == "mixed" else name, []).append(reached)
            if name == "mixed":
                found.setdefault("slot_s", []).append((process_time() - begin) / scenario.setup.slots)
    result = {name: sum(values) / len(values) for name, values in found.items()}
    result["offline_worst"], result["online_worst"] = min(found["offline"]), min(found["online"])
    best = [max(pair) for pair in zip(*(found[name] for name in RIVALS), strict=True)]
    won = [ours >= theirs for ours, theirs in zip(found["online"], best, strict=True)]
    return result | {"above": result["online"] - result["mixed-priority"], "won": sum(won) / len(won)}


def rows(seeds: Sequence[int] = (1, 2), jobs: int = 40) -> list[dict[str, Any]]:
    """Figures of all loads."""
    found: list[dict[str, Any]] = []
    for load in ("slack", "tight", "very"):
        reached = measured(load, seeds, jobs)
        for how in ("offline", "online"):
            target, goal = TARGETS[how, load]
            seconds = reached["offline_s" if how == "offline" else "slot_s"]
            found.append(
                {
                    "name": f"{how} {load}, welfare / bound",
                    "measured": reached[how],
                    "unit": "ratio",
                    "target": target,
                    "goal": goal,
                    "better": "higher",
                    "note": f"worst {reached[f'{how}_worst']:.3f}, {seconds:.2f} s CPU",
                }
            )
        target, goal = ABOVE[load]
        found.append(
            {
                "name": f"online {load}, above streams first",
                "measured": reached["above"],
                "unit": "of the bound",
                "target": target,
                "goal": goal,
                "better": "higher",
                "note": f"above the best rival in {reached['won']:.0%} of the instances",
            }
        )
    return found


if __name__ == "__main__":
    count, size = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40
    for row in rows(range(1, count + 1), size):
        print(
            f"{row['name']:<40}{row['measured']:8.4f}  target {row['target']}, goal {row['goal']}; {row['note']}"
        )
