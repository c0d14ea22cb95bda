"""Figures 4-7 of GADGET (Yu et al., Section VI), on the published workload and on harder ones; churn and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind import optimum, policies, workloads
from tradewind.control.intervals import effective, end_us, ints, texts
from tradewind.maths.ring_bound import possible
from tradewind.maths.ring_exact import solve_exactly
from tradewind.maths.ring_fabric import read_fabric, slot_of, whole_capacity
from tradewind.maths.ring_gains import gains
from tradewind.maths.ring_paper import paper
from tradewind.maths.ring_slot import Slot
from tradewind.maths.ring_solve import Effort as Search
from tradewind.maths.ring_solve import solve
from tradewind.model.job import Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.studies.simulate import simulate
from tradewind.studies.study import Chart, Effort, Finding, PaperFigure, Row, Study, Word, spread

RIVALS = ("ring-fifo", "ring-drf", "ring-las")
NAMES = ("gadget", "gadget-paper", *RIVALS)
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
CASES = (("paper", "sqrt"), ("tight", "sqrt"), ("tight", "gang"))
FAILING = (0.0, 0.01, 0.05, 0.10)


def made(effort: Effort, seed: int, **params: Any) -> Scenario:
    """A scenario of the study's size: 50 servers, 200 slots (quick: 20 servers, 30 slots)."""
    size = effort.pick({"servers": 20, "slots": 30, "jobs": 120}, {"servers": 50, "slots": 200, "jobs": 1500})
    return workloads.generate("gadget", size | params, seed)


def played(scenario: Scenario, name: str, seed: int, params: Mapping[str, Any] | None = None) -> Run:
    """One audited run."""
    return simulate(scenario, policies.find(name), params, seed=seed)


def _seeds(effort: Effort) -> range:
    return range(1, 1 + min(effort.seeds, effort.pick(2, 3)))


def _mean(rows: Sequence[Row], value: str, **where: str | float) -> float:
    found = [float(r[value]) for r in rows if all(r[key] == want for key, want in where.items())]
    return float(np.mean(found)) if found else float("nan")


def embedded_ratio(scenario: Scenario, run: Run) -> float:
    """Mean over slots with active jobs of jobs with a ring / jobs that arrived and have work left.

    A job that was turned away counts as active: it found no ring.
    """
    slot, end = scenario.setup.slot_us, end_us(run)
    spans = effective(run, end)
    gone = np.full(len(scenario.jobs), end)
    over = np.isin(texts(run, "events", "kind"), ("finished", "ended"))
    gone[ints(run, "events", "job")[over]] = ints(run, "events", "at_us")[over]
    arrive = np.array([job.arrive_us for job in scenario.jobs])
    ratios = []
    for t in range(0, end, slot):
        active = int(((arrive <= t) & (gone > t)).sum())
        if active:
            ratios.append(len(set(spans.job[(spans.from_us <= t) & (spans.until_us > t)].tolist())) / active)
    return float(np.mean(ratios)) if ratios else 0.0


def moved_share(scenario: Scenario, run: Run) -> float:
    """Of the jobs that run in two slots that follow each other, the share whose servers changed."""
    slot = scenario.setup.slot_us
    spans = effective(run, end_us(run))
    members: dict[int, set[int]] = {}
    where = zip(ints(run, "places", "step").tolist(), ints(run, "places", "node").tolist(), strict=True)
    for step, node in where:
        members.setdefault(step, set()).add(node)
    before: dict[int, frozenset[int]] = {}
    stays = moves = 0
    for t in range(0, end_us(run), slot):
        rows = np.flatnonzero((spans.from_us <= t) & (spans.until_us > t))
        now = {int(spans.job[r]): frozenset(members[int(spans.step[r])]) for r in rows}
        for job in now.keys() & before.keys():
            stays += now[job] == before[job]
            moves += now[job] != before[job]
        before = now
    return moves / max(1, stays + moves)


# ------------------------------------------------------------------ figure 4
def utility_rows(effort: Effort) -> list[Row]:
    """Total utility over the number of jobs, and its share of the offline bound."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        for jobs in effort.pick((60, 120, 240), (500, 1000, 2000)):
            given = made(effort, seed, jobs=jobs)
            bound = optimum.bound(given)
            assert bound is not None
            for name in NAMES:
                value = played(given, name, seed).metrics["utility"]
                rows.append({"jobs": jobs, "policy": name, "utility": value, "of bound": value / bound.value})
    worth = spread(rows, ("jobs", "policy"), "utility")
    share = {(r["jobs"], r["policy"]): r["of bound"] for r in spread(rows, ("jobs", "policy"), "of bound")}
    return [{**r, "of bound": share[r["jobs"], r["policy"]]} for r in worth]


def judge_utility(rows: Sequence[Row]) -> Finding:
    """Does GADGET lead, and its lead grow with the jobs?"""
    jobs = sorted({float(r["jobs"]) for r in rows})

    def lead(n: float, name: str) -> float:
        best = max(_mean(rows, "utility", policy=other, jobs=n) for other in RIVALS)
        return _mean(rows, "utility", policy=name, jobs=n) / best

    ours, theirs = [lead(n, "gadget") for n in jobs], [lead(n, "gadget-paper") for n in jobs]
    word: Word = "reproduced" if ours[-1] > 1 and ours[-1] >= ours[0] else "partly reproduced"
    return Finding(
        word=word,
        reason=f"gadget earns {ours[0]:.2f} to {ours[-1]:.2f} times the best rival and "
        f"{_mean(rows, 'of bound', policy='gadget'):.4f} of the offline bound; the printed "
        f"algorithm, whose gains of one slot are next to nothing on a sigmoid, earns {theirs[0]:.2f} "
        f"to {theirs[-1]:.2f} times the best rival",
    )


# ------------------------------------------------------------------ figures 5 and 6
def _embedded(effort: Effort, knob: str) -> list[Row]:
    rows: list[Row] = []
    for seed in _seeds(effort):
        for family, utility in CASES:
            for scale in SCALES:
                size = effort.pick({"jobs": 80, "slots": 20}, {"jobs": 600, "slots": 60})
                given = made(effort, seed, family=family, utility=utility, **(size | {knob: scale}))
                for name in ("gadget", "gadget-paper"):
                    ratio = embedded_ratio(given, played(given, name, seed, _quick(name)))
                    rows.append(
                        {"scale": scale, "policy": f"{name}, {family} {utility}", "embedded ratio": ratio}
                    )
    return spread(rows, ("scale", "policy"), "embedded ratio")


def _quick(name: str) -> dict[str, Any]:
    return {"rounds": 500, "enough": 0.99} if name == "gadget" else {}


def node_rows(effort: Effort) -> list[Row]:
    """Embedded ratio over the servers' capacity."""
    return _embedded(effort, "node_scale")


def link_rows(effort: Effort) -> list[Row]:
    """Embedded ratio over the links' bandwidth."""
    return _embedded(effort, "link_scale")


def judge_embedded(rows: Sequence[Row]) -> Finding:
    """Does the ratio rise with the resource?"""
    names = sorted({str(r["policy"]) for r in rows})
    rise = {n: [_mean(rows, "embedded ratio", policy=n, scale=s) for s in SCALES] for n in names}
    up = [n for n in names if rise[n][-1] > rise[n][0] + 0.01]
    told = "; ".join(f"{n} {rise[n][0]:.2f} to {rise[n][-1]:.2f}" for n in names)
    word: Word = "reproduced" if len(up) == len(names) else "partly reproduced" if up else "not reproduced"
    return Finding(
        word=word, reason=f"embedded ratio from {SCALES[0]:g} to {SCALES[-1]:g} times the capacity: {told}"
    )


# ------------------------------------------------------------------ figure 7
def first_slot(scenario: Scenario) -> Slot:
    """All jobs of a scenario as if they had come at once and nothing were done yet."""
    widest = max(job.workers_max for job in scenario.jobs)
    gain = np.full((len(scenario.jobs), widest + 1), -np.inf)
    for i, job in enumerate(scenario.jobs):
        assert isinstance(job.work, Rounds)
        assert job.utility is not None
        values = np.array([job.utility.value(job.work.rate * x) for x in range(job.work.count + 1)])
        gain[i, : job.workers_max + 1] = gains(values, job.workers_max)
        gain[i, 1 : job.workers_min] = -np.inf
        gain[i, 0] = 0.0
    fabric = read_fabric(scenario.setup)
    whole = whole_capacity(scenario.setup, fabric)
    return possible(slot_of(fabric, whole, scenario.jobs, gain, len(scenario.setup.resources)))


def ratio_rows(effort: Effort) -> list[Row]:
    """Worth of a slot / the exact optimum."""
    rows: list[Row] = []
    for family in ("paper", "tight", "vtight", "multi"):
        for utility in ("sqrt", "gang"):
            for seed in range(1, 1 + effort.pick(3, 10)):
                size = {"servers": 8, "jobs": 16, "slots": 40}
                slot = first_slot(
                    workloads.generate("gadget", {"family": family, "utility": utility} | size, seed)
                )
                best = solve_exactly(slot, 20_000)
                if not best.optimal or best.value <= 0:
                    continue
                found = paper(slot, np.random.default_rng(seed))
                ours = solve(slot, Search(rounds=5000), seed=seed).value
                case = f"{family} {utility}"
                for name, value in (
                    ("gadget", ours),
                    ("gadget-paper", found.value),
                    ("raw rounding", found.raw_value),
                ):
                    rows.append(
                        {
                            "case": case,
                            "policy": name,
                            "ratio": value / best.value,
                            "over": max(found.raw_room, found.raw_links),
                        }
                    )
    over = {(r["case"]): r["over"] for r in spread(rows, ("case",), "over")}
    return [{**r, "raw use / capacity": over[r["case"]]} for r in spread(rows, ("case", "policy"), "ratio")]


def judge_ratio(rows: Sequence[Row]) -> Finding:
    """60-80% of the optimum?"""
    strict = [float(r["ratio"]) for r in rows if r["policy"] == "gadget-paper"]
    raw = [float(r["ratio"]) for r in rows if r["policy"] == "raw rounding"]
    ours = [float(r["ratio"]) for r in rows if r["policy"] == "gadget"]
    over = [float(r["raw use / capacity"]) for r in rows]
    word: Word = "reproduced" if all(0.6 <= x <= 0.8 for x in strict) else "partly reproduced"
    return Finding(
        word=word,
        reason=f"the printed algorithm reaches {min(strict):.2f} to {max(strict):.2f} of the optimum once "
        f"it fits; its raw rounding {min(raw):.2f} to {max(raw):.2f}, using up to {max(over):.1f} times what there is; "
        f"gadget {min(ours):.3f} to {max(ours):.3f}",
    )


# ------------------------------------------------------------------ ours: failures and churn
def failure_rows(effort: Effort) -> list[Row]:
    """Utility under failing servers, as a share of the offline bound without failures."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        for share in FAILING:
            given = made(effort, seed, failing=share, **effort.pick({}, {"slots": 60, "jobs": 500}))
            bound = optimum.bound(given)
            assert bound is not None
            for name in ("gadget", *RIVALS):
                value = played(given, name, seed, _quick(name)).metrics["utility"] / bound.value
                rows.append({"failing": share, "policy": name, "of bound": value})
    return spread(rows, ("failing", "policy"), "of bound")


def judge_failures(rows: Sequence[Row]) -> Finding:
    """How much is lost?"""
    ours = [_mean(rows, "of bound", policy="gadget", failing=s) for s in FAILING]
    best = [max(_mean(rows, "of bound", policy=n, failing=s) for n in RIVALS) for s in FAILING]
    word: Word = "reproduced" if all(a >= b for a, b in zip(ours, best, strict=True)) else "partly reproduced"
    told = ", ".join(
        f"{s:.0%}: {a:.3f} (best rival {b:.3f})" for s, a, b in zip(FAILING, ours, best, strict=True)
    )
    return Finding(word=word, reason=f"share of the bound without failures, by servers down: {told}")


def churn_rows(effort: Effort) -> list[Row]:
    """Share of running jobs that move, and utility, with and without staying."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        for family, utility in (("paper", "sqrt"), ("tight", "sqrt"), ("paper", "sigmoid")):
            given = made(
                effort, seed, family=family, utility=utility, **effort.pick({}, {"slots": 40, "jobs": 400})
            )
            for sticky in (True, False):
                run = played(given, "gadget", seed, {"sticky": sticky, **_quick("gadget")})
                rows.append(
                    {"case": f"{family} {utility}", "rings": "stay" if sticky else "anew", "moved": moved_share(given, run),
                     "utility": run.metrics["utility"]}
                )  # fmt: skip
    worth = {(r["case"], r["rings"]): r["utility"] for r in spread(rows, ("case", "rings"), "utility")}
    return [{**r, "utility": worth[r["case"], r["rings"]]} for r in spread(rows, ("case", "rings"), "moved")]


def judge_churn(rows: Sequence[Row]) -> Finding:
    """At most a quarter moves, at no loss?"""
    stay, anew = (max(float(r["moved"]) for r in rows if r["rings"] == kind) for kind in ("stay", "anew"))
    loss = max(
        1 - _mean(rows, "utility", case=c, rings="stay") / _mean(rows, "utility", case=c, rings="anew")
        for c in {str(r["case"]) for r in rows}
    )
    word: Word = "reproduced" if stay <= 0.25 and loss <= 0.001 else "partly reproduced"
    return Finding(
        word=word,
        reason=f"at most {stay:.1%} of running jobs move where rings stay, {anew:.1%} where they are made "
        f"anew; utility lost {loss:.2%}",
    )


def _chart(x: str, y: str, series: str, **more: Any) -> Chart:
    return Chart(x=x, y=y, series=series, low="low", high="high", **more)


STUDY = Study(
    system="gadget",
    title="GADGET: ring-all-reduce jobs on a cluster with a network",
    figures=(
        PaperFigure(
            name="fig-4",
            title="Figure 4: total utility",
            claim="GADGET earns more utility than FIFO, DRF and LAS, and the more jobs the more so.",
            rows=utility_rows,
            judge=judge_utility,
            chart=_chart("jobs", "utility", "policy", x_label="jobs", y_label="total utility"),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: embedded ratio and node capacity",
            claim="More GPUs per server let more of the active jobs be embedded.",
            rows=node_rows,
            judge=judge_embedded,
            chart=_chart("scale", "embedded ratio", "policy", x_label="times the servers' capacity"),
        ),
        PaperFigure(
            name="fig-6",
            title="Figure 6: embedded ratio and link bandwidth",
            claim="More bandwidth lets more of the active jobs be embedded.",
            rows=link_rows,
            judge=judge_embedded,
            chart=_chart("scale", "embedded ratio", "policy", x_label="times the links' bandwidth"),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: approximation ratio",
            claim="G-VNE reaches 60-80% of the optimum of a slot.",
            rows=ratio_rows,
            judge=judge_ratio,
            chart=_chart("case", "ratio", "policy", kind="bar", y_label="worth / optimum"),
        ),
        PaperFigure(
            name="table-failures",
            title="Ours: failing servers",
            claim="(Not in the paper.) Rings through a dead server stop and are embedded again in the next slot.",
            rows=failure_rows,
            judge=judge_failures,
            chart=_chart("failing", "of bound", "policy", x_label="share of servers down"),
        ),
        PaperFigure(
            name="table-churn",
            title="Ours: rings that stay",
            claim="(The paper embeds anew every slot.) At most 25% of running jobs move, at no loss of utility.",
            rows=churn_rows,
            judge=judge_churn,
            chart=_chart("case", "moved", "rings", kind="bar", y_label="share of running jobs that move"),
        ),
    ),
    remarks=(
        "gadget-paper is the printed Algorithm 1 with LP-RS-MDE, its rounding cut to what fits; raw rounding is not cut.",
        "The bound is the offline LP over worker-slots (optimum.gadget), which knows all arrivals.",
        "A unit of F is an iteration: a job ends after F / zeta worker-slots.",
    ),
)
