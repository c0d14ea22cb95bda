"""Figures 3, 4, 5 and 7 of Eris: ten jobs on the nine sites of the testbed."""

from __future__ import annotations

from typing import Any

from tradewind.lab.study import Effort, Row
from tradewind.systems.eris.bound import exact
from tradewind.systems.eris.study.runs import (
    LEADS,
    NAMES,
    PAPER,
    compared,
    joined,
    load_by_slot,
    made,
    outcome,
    played,
    seeds,
)

CLAIMED = {"tiresias": 0.44, "antman": 0.50, "liquid": 0.20}
"""Claimed lead of Eris in welfare."""


def testbed_rows(effort: Effort, **params: Any) -> list[Row]:
    """Ten jobs on nine sites, every policy and the bound; `loss` is bound / welfare."""
    rows: list[Row] = []
    for seed in seeds(effort, 40, effort.pick(2, 4)):
        found = compared(made(effort, seed, "testbed", **params))
        rows += [{**row, "loss": 1 / max(float(row["of bound"]), 1e-9)} for row in found]
    return rows


def welfare_rows(effort: Effort) -> list[Row]:
    """Figure 3."""
    return joined(testbed_rows(effort), ("policy",), "welfare", "of bound", *LEADS)


def demand_rows(effort: Effort) -> list[Row]:
    """Figure 3 with the demands of the printed set: 0 or 1 GPU for workers and servers alike."""
    rows = testbed_rows(effort, demands="printed")
    return joined(rows, ("policy",), "welfare", "of bound", *LEADS)


def rejected_rows(effort: Effort) -> list[Row]:
    """Figure 4: jobs of ten that were refused or never finished."""
    rows = testbed_rows(effort)
    for seed in seeds(effort, 40, effort.pick(2, 4)):
        o = outcome(made(effort, seed, "testbed"), "eris-printed")
        rows.append({"policy": "eris-printed", "unserved": o.jobs - o.completed})
    return joined(rows, ("policy",), "unserved")


def loss_rows(effort: Effort) -> list[Row]:
    """Figure 5: bound / welfare."""
    return joined(testbed_rows(effort), ("policy",), "loss")


SMALL = {"sites": 3, "jobs": 4, "slots": 17, "last_arrival": 12, "chunks_per_worker": 9.0}
"""A third of the testbed, at the same load and length of jobs: the largest whose optimum is proven in a second."""


def exact_rows(effort: Effort) -> list[Row]:
    """Figure 5 on small testbeds: proven optimum / welfare."""
    rows: list[Row] = []
    for seed in seeds(effort, 40, effort.pick(3, 4)):
        scenario = made(effort, seed, "testbed", **SMALL)
        best = exact(scenario, nodes=20_000)
        if not best.optimal:
            continue
        for name in NAMES:
            welfare = max(1000 * outcome(scenario, name).welfare, 1e-9)
            rows.append({"policy": name, "loss": best.value / welfare})
    return joined(rows, ("policy",), "loss")


# ------------------------------------------------------------------ figure 7
def use_rows(effort: Effort) -> list[Row]:
    """Share of all sites' capacity in use, slot by slot; `most` is the highest of any seed."""
    rows: list[Row] = []
    for seed in seeds(effort, 40, effort.pick(2, 4)):
        scenario = made(effort, seed, "testbed")
        for name in (PAPER, "eris"):
            load = load_by_slot(scenario, played(scenario, name))
            for k, resource in enumerate(scenario.setup.resources):
                rows += [
                    {"slot": float(t), "use": f"{name} {resource}", "share": float(x), "steady": float(load[:, k].std())}
                    for t, x in enumerate(load[:, k])
                ]  # fmt: skip
    most: dict[tuple[str | float, str | float], float] = {}
    for row in rows:
        key = row["slot"], row["use"]
        most[key] = max(most.get(key, 0.0), float(row["share"]))
    return [
        {**r, "most": most[r["slot"], r["use"]]} for r in joined(rows, ("slot", "use"), "share", "steady")
    ]
