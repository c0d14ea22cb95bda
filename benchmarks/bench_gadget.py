"""Rings: slots against the exact program and bounds, large clusters, horizons, churn; the printed LP in plain HiGHS."""

from __future__ import annotations

from time import process_time
from typing import Any

import highspy
import numpy as np

from tradewind import optimum, policies, workloads
from tradewind.maths.ring_columns import relax
from tradewind.maths.ring_exact import solve_exactly
from tradewind.maths.ring_paper import paper
from tradewind.maths.ring_slot import Slot, excess
from tradewind.maths.ring_solve import Effort, solve
from tradewind.studies.gadget_runs import first_slot, moved_share
from tradewind.studies.simulate import simulate

FAMILIES = ("paper", "tight", "vtight", "multi")
INFINITY = highspy.kHighsInf
HORIZON_SEEDS = (1, 2, 3)


def slot(family: str, utility: str, servers: int, jobs: int, seed: int) -> Slot:
    """One slot with all jobs present."""
    params = {"family": family, "utility": utility, "servers": servers, "jobs": jobs, "slots": 200}
    return first_slot(workloads.generate("gadget", params, seed))


def row(
    name: str, measured: float, target: float | None, better: str, unit: str = "", note: str = ""
) -> dict[str, Any]:
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "better": better,
        "unit": unit,
        "note": note,
    }


def against_exact() -> list[dict[str, Any]]:
    """Small slots: ours and the printed algorithm over the optimum."""
    ours, theirs, over = [], [], []
    for family in FAMILIES:
        for utility in ("sqrt", "gang"):
            for seed in range(3):
                given = slot(family, utility, 10, 20, seed)
                best = solve_exactly(given, 5_000)
                if best.optimal:
                    found = paper(given, np.random.default_rng(seed))
                    ours.append(solve(given, Effort(), seed=seed).value / best.value)
                    theirs.append(found.value / best.value)
                    over.append(max(found.raw_room, found.raw_links))
    note = f"{len(ours)} slots; printed algorithm cut to fit {min(theirs):.2f}-{max(theirs):.2f}, raw use {max(over):.1f}x"
    return [
        row("10 servers: mean of optimum", float(np.mean(ours)), 0.995, "higher", note=note),
        row("10 servers: min of optimum", min(ours), 0.98, "higher"),
    ]


def fifty() -> list[dict[str, Any]]:
    """50 servers, 100 jobs: share of the bound and time, by utility; violations."""
    solve(slot("tight", "gang", 10, 20, 0), Effort(rounds=50))
    found = []
    worst = 0.0
    for utility, target in (("sqrt", 0.995), ("gang", 0.975)):
        ratios: list[float] = []
        seconds: list[float] = []
        certified: list[float] = []
        for family in FAMILIES:
            for seed in range(2):
                given = slot(family, utility, 50, 100, seed)
                begin = process_time()
                answer = solve(given, Effort(), seed=seed)
                spent = process_time() - begin
                (certified if answer.proof == "knapsack" and spent < 0.1 else seconds).append(spent)
                ratios.append(answer.value / answer.bound)
                worst = max(worst, *excess(given, answer.rings))
        found.append(
            row(
                f"50 servers, {utility}: mean of bound",
                float(np.mean(ratios)),
                target,
                "higher",
                note=f"min {min(ratios):.4f}",
            )
        )
        found.append(row(f"50 servers, {utility}: slowest", max(seconds, default=0.0), 1.0, "lower", "s cpu"))
        if certified:
            found.append(
                row(f"50 servers, {utility}: slowest certified", 1000 * max(certified), 50, "lower", "ms cpu")
            )
    longer = [solve(slot("tight", "gang", 50, 100, s), Effort(rounds=80_000), seed=s) for s in range(3)]
    found.append(
        row(
            "50 servers, tight gang, 80,000 rounds",
            float(np.mean([a.value / a.bound for a in longer])),
            0.985,
            "higher",
        )
    )
    found.append(row("largest use / capacity of all answers", worst, 1.0, "lower"))
    return found


def large() -> list[dict[str, Any]]:
    """2,000 servers, 4,000 jobs: bound and solution."""
    found = []
    solve(slot("tight", "gang", 200, 400, 0), Effort(rounds=50))
    for family, utility, rounds, target, limit in (
        ("tight", "sqrt", 5_000, 0.985, 2.0),
        ("tight", "gang", 6_000, 0.985, 2.0),
        ("multi", "gang", 20_000, 0.975, 12.0),
    ):
        given = slot(family, utility, 2000, 4000, 0)
        begin = process_time()
        answer = solve(given, Effort(rounds=rounds))
        spent = process_time() - begin
        found.append(
            row(
                f"2,000 servers, {family} {utility}: of bound",
                answer.value / answer.bound,
                target,
                "higher",
                note=answer.proof,
            )
        )
        found.append(
            row(f"2,000 servers, {family} {utility}: bound and solution", spent, limit, "lower", "s cpu")
        )
    return found


def horizons() -> list[dict[str, Any]]:
    """Whole audited runs over the offline bound, seeds 1 to 3: mean, spread (largest - smallest), rivals, churn."""
    found = []
    for family, jobs in (("paper", 450), ("vtight", 200)):
        for utility in ("sigmoid", "sqrt", "log"):
            shares: dict[str, list[float]] = {}
            moved = []
            for seed in HORIZON_SEEDS:
                params = {"family": family, "utility": utility, "jobs": jobs, "slots": 30}
                given = workloads.generate("gadget", params, seed)
                bound = optimum.bound(given)
                assert bound is not None
                for name in ("gadget", "ring-fifo", "ring-drf", "ring-las"):
                    run = simulate(given, policies.find(name))
                    shares.setdefault(name, []).append(run.metrics["utility"] / bound.value)
                    if name == "gadget":
                        moved.append(moved_share(given, run))
            note = ", ".join(f"{n} {np.mean(v):.2f}" for n, v in shares.items() if n != "gadget")
            ours = shares["gadget"]
            name = f"{family} {utility}"
            made = row(f"horizon, {name}: of offline bound", float(np.mean(ours)), 0.99, "higher", note=note)
            found.append(made | {"spread": max(ours) - min(ours)})
            if utility != "log":
                churn = row(f"churn, {name}", float(np.mean(moved)), 0.25, "lower", "of running jobs")
                found.append(churn | {"spread": max(moved) - min(moved)})
    return found


def arc_flow(given: Slot, widest: int) -> float:
    """The LP relaxation of (12)-(19) as a user would write it in HiGHS: arcs of the tree, one flow per ring edge."""
    spots, racks = given.servers, len(given.trunk)
    tor = spots + given.rack
    arcs = [(s, int(tor[s]), s) for s in range(spots)] + [(int(tor[s]), s, s) for s in range(spots)]
    core = spots + racks
    arcs += [(spots + g, core, spots + g) for g in range(racks)] + [
        (core, spots + g, spots + g) for g in range(racks)
    ]
    carry = np.concatenate([given.link, given.trunk]).astype(float)
    rows: list[tuple[float, float, dict[int, float]]] = []
    cost: list[float] = []
    room: dict[int, dict[int, float]] = {s: {} for s in range(spots)}
    load: dict[int, dict[int, float]] = {e: {} for e in range(len(arcs))}
    for i in range(given.jobs):
        choose: dict[int, float] = {}
        for k in range(1, widest + 1):
            if given.gain[i, k] <= 0:
                continue
            chi = len(cost)
            cost.append(float(given.gain[i, k]))
            choose[chi] = 1.0
            at = [[len(cost) + a * spots + s for s in range(spots)] for a in range(k)]
            cost += [0.0] * (k * spots)
            for a in range(k):
                rows.append((0.0, 0.0, {chi: -1.0, **dict.fromkeys(at[a], 1.0)}))
                for s in range(spots):
                    room[s][at[a][s]] = float(given.need[i, 0]) / float(given.room[s, 0])
            for a in range(k if k > 1 else 0):
                flow = list(range(len(cost), len(cost) + len(arcs)))
                cost += [0.0] * len(arcs)
                balance: list[dict[int, float]] = [{} for _ in range(core + 1)]
                for e, (u, v, _) in enumerate(arcs):
                    balance[u][flow[e]], balance[v][flow[e]] = 1.0, -1.0
                    load[e][flow[e]] = float(given.band[i]) / max(1.0, carry[arcs[e][2]])
                for u in range(core + 1):
                    if u < spots:
                        balance[u][at[a][u]] = balance[u].get(at[a][u], 0.0) - 1.0
                        after = at[(a + 1) % k][u]
                        balance[u][after] = balance[u].get(after, 0.0) + 1.0
                    rows.append((0.0, 0.0, balance[u]))
        rows.append((-INFINITY, 1.0, choose))
    rows += [(-INFINITY, 1.0, terms) for terms in (*room.values(), *load.values())]
    return _run(cost, rows)


def _run(cost: list[float], rows: list[tuple[float, float, dict[int, float]]]) -> float:
    h = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 7)):
        h.setOptionValue(option, value)
    count, empty = len(cost), np.empty(0, np.int32)
    h.addCols(
        count,
        np.array(cost),
        np.zeros(count),
        np.full(count, INFINITY),
        0,
        np.zeros(count, np.int32),
        empty,
        np.empty(0),
    )
    starts = np.concatenate([[0], np.cumsum([len(r[2]) for r in rows])[:-1]]).astype(np.int32)
    index = np.array([c for r in rows for c in r[2]], np.int32)
    value_of = np.array([v for r in rows for v in r[2].values()])
    h.addRows(
        len(rows),
        np.array([r[0] for r in rows]),
        np.array([r[1] for r in rows]),
        len(index),
        starts,
        index,
        value_of,
    )
    h.changeObjectiveSense(highspy.ObjSense.kMaximize)
    h.run()
    return float(h.getInfo().objective_function_value)


def rings_of_job(given: Slot, i: int) -> list[tuple[int, ...]]:
    """Every ring of job i in the empty cluster as workers by server: what the augmented LP has a column for."""
    found: list[tuple[int, ...]] = []
    most = [min(int(c), given.widest) for c in (given.room // given.need[i]).min(1)]

    def extend(y: list[int], left: int) -> None:
        if len(y) == given.servers:
            if sum(y) > 0 and given.gain[i, sum(y)] > 0 and _embeds(given, i, y):
                found.append(tuple(y))
            return
        for k in range(min(most[len(y)], left) + 1):
            extend([*y, k], left - k)

    extend([], given.widest)
    return found


def _embeds(given: Slot, i: int, y: list[int]) -> bool:
    here = [s for s, k in enumerate(y) if k]
    racks = {int(given.rack[s]) for s in here}
    links = len(here) < 2 or all(given.link[s] >= given.band[i] for s in here)
    return links and (len(racks) < 2 or all(given.trunk[g] >= given.band[i] for g in racks))


def augmented(given: Slot) -> tuple[float, int]:
    """The augmented LP as a user would write it in HiGHS, a column for every mapping: (value, columns)."""
    cost: list[float] = []
    spots = given.servers
    jobs: list[dict[int, float]] = [{} for _ in range(given.jobs)]
    room: dict[tuple[int, int], dict[int, float]] = {}
    carry: list[dict[int, float]] = [{} for _ in range(spots + len(given.trunk))]
    capacity = np.concatenate([given.link, given.trunk])
    for i in range(given.jobs):
        for y in rings_of_job(given, i):
            c = len(cost)
            cost.append(float(given.gain[i, sum(y)]))
            jobs[i][c] = 1.0
            here = [s for s, k in enumerate(y) if k]
            for s in here:
                for r in range(given.need.shape[1]):
                    room.setdefault((s, r), {})[c] = y[s] * float(given.need[i, r]) / float(given.room[s, r])
            racks = {int(given.rack[s]) for s in here}
            crossed = [spots + g for g in racks] if len(racks) > 1 else []
            for e in [*here, *crossed] if len(here) > 1 else []:
                carry[e][c] = float(given.band[i]) / float(capacity[e])
    limits = [(-INFINITY, 1.0, terms) for terms in (*jobs, *room.values(), *carry) if terms]
    return _run(cost, limits), len(cost)


def beside_highs() -> list[dict[str, Any]]:
    """The paper's two LPs by plain HiGHS and our configuration LP, same slot: seconds and value."""
    relax(slot("vtight", "gang", 10, 5, 1), [])
    given = slot("vtight", "gang", 20, 30, 1)
    begin = process_time()
    loose = arc_flow(given, given.widest)
    theirs = process_time() - begin
    begin = process_time()
    tight = relax(given, []).bound
    ours = process_time() - begin
    note = f"printed LP {loose:.1f}, configuration LP {tight:.1f}: {loose / tight:.3f}x looser"
    name = "printed arc-flow LP / our LP, 20 servers, 30 jobs"
    found = [row(name, theirs / ours, 1.0, "higher", "times as slow", note)]
    worst, slower, columns = 0.0, [], 0
    for family in FAMILIES:
        for utility in ("sqrt", "gang"):
            given = slot(family, utility, 8, 8, 1)
            begin = process_time()
            whole, count = augmented(given)
            theirs = process_time() - begin
            begin = process_time()
            bound = relax(given, []).bound
            slower.append(theirs / (process_time() - begin))
            worst, columns = max(worst, bound / whole - 1), max(columns, count)
    note = f"8 slots of 8 servers and 8 jobs, up to {columns} columns"
    found.append(row("bound over the whole augmented LP", worst, 0.001, "lower", "relative", note))
    found.append(
        row(
            "augmented LP / our LP, 8 servers, 8 jobs",
            float(np.median(slower)),
            1.0,
            "higher",
            "times as slow",
            note,
        )
    )
    return found


def rows() -> list[dict[str, Any]]:
    """All figures; about three minutes."""
    return [*against_exact(), *fifty(), *large(), *horizons(), *beside_highs()]
