"""Figures 4-6 of GADGET (Yu et al., Section VI), on the published workload and on harder ones; and the whole study."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from tradewind.engine import bounds
from tradewind.lab.study import Effort, Judged, PaperFigure, Row, Study, spreads
from tradewind.systems.gadget.study import lead, objectives, ours, ratio, ring_time, theory
from tradewind.systems.gadget.study.runs import (
    RIVALS,
    by_seed,
    chart_of,
    claim,
    embedded_ratio,
    made,
    played,
    quickly,
    ring_shares,
    seeds_of,
)

NAMES = ("gadget", "gadget-paper", *RIVALS)
STATIC = ("ring-fifo", "ring-las")
"""Rivals that keep a job's number of workers throughout."""
HARDNESS = ("paper", "vtight")
COUNTS = (20, 50, 100, 200, 500, 2000)
"""Jobs of Figure 4; the text of the paper prints no counts."""
SEEDS, MORE_SEEDS = 5, 10
SCALES = (0.25, 1.0, 4.0)
PUBLISHED = "paper sigmoid"
CASES = (PUBLISHED, "tight sigmoid", "tight gang")
FLAT = 0.005
"""A ratio that falls by less from one scale to the next counts as level."""


# ------------------------------------------------------------------ figure 4
def utility_of(effort: Effort, seed: int) -> list[Row]:
    """Total utility, its share of the offline bound, and what is gained on the best rival of the same seed."""
    rows: list[Row] = []
    for family in HARDNESS:
        for jobs in effort.pick((20, 60, 240), COUNTS):
            given = made(effort, seed, family=family, jobs=jobs)
            bound = bounds.bound(given)
            assert bound is not None
            runs = {name: played(given, name, seed).metrics for name in NAMES}
            best = max(runs[name]["utility"] for name in RIVALS)
            static = max(runs[name]["utilisation_gpu"] for name in STATIC)
            for name, run in runs.items():
                rows.append(
                    {"case": family, "jobs": jobs, "policy": name, "line": f"{name}, {family}", "utility": run["utility"],
                     "of bound": run["utility"] / bound.value, "lead": run["utility"] / best,
                     "gained": run["utility"] - best, "more GPUs used": run["utilisation_gpu"] - static}
                )  # fmt: skip
    return rows


def join_utility(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows = [row for part in parts for row in part]
    by = ("case", "jobs", "policy", "line")
    return spreads(rows, by, "utility", "of bound", "lead", "gained", "more GPUs used")


def utility_rows(effort: Effort) -> list[Row]:
    """Total utility over the number of jobs."""
    return join_utility(effort, [utility_of(effort, seed) for seed in seeds_of(effort, MORE_SEEDS, 3)])


def _course(rows: Sequence[Row], policy: str, case: str, column: str) -> list[Row]:
    """The published rows of a policy in rising order of a column."""
    mine = [r for r in rows if r["policy"] == policy and r["case"] == case]
    return sorted(mine, key=lambda r: float(r[column]))


def leads(rows: Sequence[Row], policy: str) -> Judged:
    """More utility than every rival at every number of jobs, beyond the interval over seeds."""
    mine = _course(rows, policy, "paper", "jobs")
    others = [
        f"{case} {float(r['lead']):.2f}"
        for case in HARDNESS[1:]
        for r in _course(rows, policy, case, "jobs")[-1:]
    ]
    return Judged(
        all(float(r["lead low"]) > 1 for r in mine),
        "times the best rival, by jobs: "
        + ", ".join(f"{float(r['jobs']):g}: {float(r['lead']):.2f}" for r in mine)
        + (f"; with the most jobs of {', '.join(others)}" if others else ""),
    )


def gains_more(rows: Sequence[Row], policy: str) -> Judged:
    """With the most jobs it gains more on the best rival than with the fewest, beyond the intervals, and something."""
    first, *_, last = _course(rows, policy, "paper", "jobs")
    return Judged(
        float(last["gained low"]) > max(0.0, float(first["gained high"])),
        f"utility gained on the best rival: {float(first['gained']):,.0f} with {float(first['jobs']):g} jobs, "
        f"{float(last['gained']):,.0f} ({float(last['gained low']):,.0f} to {float(last['gained high']):,.0f}) with "
        f"{float(last['jobs']):g}",
    )


def uses_more(rows: Sequence[Row], policy: str) -> Judged:
    """With the most jobs it uses more GPU time than the rivals with a fixed number of workers."""
    last = _course(rows, policy, "paper", "jobs")[-1]
    more, low, high = (100 * float(last[f"more GPUs used{end}"]) for end in ("", " low", " high"))
    return Judged(
        low > 0,
        f"with {float(last['jobs']):g} jobs {more:+.1f} points of the GPUs' time ({low:+.1f} to {high:+.1f})",
    )


def _of_bound(rows: Sequence[Row]) -> str:
    def ends(policy: str) -> str:
        found = [float(r["of bound"]) for r in rows if r["policy"] == policy]
        return f"{policy} {min(found):.2f} to {max(found):.2f}"

    return f"of the offline bound: {', '.join(map(ends, NAMES))}"


# ------------------------------------------------------------------ figures 5 and 6
def embedded_of(effort: Effort, seed: int, knob: str) -> list[Row]:
    """Embedded ratio by the factor on a parameter, and where the rings lie, one seed."""
    rows: list[Row] = []
    for case in CASES:
        family, utility = case.split()
        for name in ("gadget", "gadget-paper"):
            found: list[tuple[float, float, float]] = []
            for scale in SCALES:
                size = effort.pick({"jobs": 80, "slots": 20}, {"jobs": 300, "slots": 30})
                given = made(effort, seed, family=family, utility=utility, **(size | {knob: scale}))
                run = played(given, name, seed, quickly(name))
                found.append((embedded_ratio(given, run), *ring_shares(given, run)))
            for scale, (ratio_, inside, several) in zip(SCALES, found, strict=True):
                rows.append(
                    {"case": case, "scale": scale, "policy": name, "line": f"{name}, {case}", "embedded ratio": ratio_,
                     "rise": ratio_ - found[0][0], "on one server": inside, "inside rise": inside - found[0][1],
                     "over several": several, "several rise": several - found[0][2]}
                )  # fmt: skip
    return rows


nodes_of = partial(embedded_of, knob="node_scale")
links_of = partial(embedded_of, knob="link_scale")


def join_embedded(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows, by = [row for part in parts for row in part], ("case", "scale", "policy", "line")
    return spreads(
        rows, by, "embedded ratio", "rise", "on one server", "inside rise", "over several", "several rise"
    )


def node_rows(effort: Effort) -> list[Row]:
    """Embedded ratio over the servers' capacity."""
    return join_embedded(effort, [nodes_of(effort, seed) for seed in seeds_of(effort, SEEDS, 3)])


def link_rows(effort: Effort) -> list[Row]:
    """Embedded ratio over the links' bandwidth."""
    return join_embedded(effort, [links_of(effort, seed) for seed in seeds_of(effort, SEEDS, 3)])


def rises(value: str, rise: str, rows: Sequence[Row], policy: str) -> Judged:
    """On the published workload the value is never lower at the next scale, and at the last higher beyond the interval."""
    mine = _course(rows, policy, PUBLISHED, "scale")
    level = all(float(b[value]) >= float(a[value]) - FLAT for a, b in pairwise(mine))
    courses = {case: _course(rows, policy, case, "scale") for case in CASES}
    scales = ", ".join(f"{float(r['scale']):g}" for r in mine)
    found = "; ".join(
        f"{case} {', '.join(f'{float(r[value]):.2f}' for r in course)}"
        for case, course in courses.items()
        if course
    )
    return Judged(level and float(mine[-1][f"{rise} low"]) > 0, f"{found} at {scales} times")


EMBEDDED = "Jobs with a ring / active jobs in a slot, average of three trials; "
STUDY = Study(
    system="gadget",
    title="GADGET: ring-all-reduce jobs on a cluster with a network",
    figures=(
        PaperFigure(
            name="fig-4",
            title="Figure 4: total utility",
            claims=(
                claim(
                    "leads",
                    "Sec. VI-3, Fig. 4: GADGET significantly outperforms FIFO, DRF and LAS in total utility.",
                    leads,
                ),
                claim(
                    "gains more",
                    "Sec. VI-3: the gains in total utility over the baselines become more pronounced with more jobs.",
                    gains_more,
                ),
                claim(
                    "uses more",
                    "Sec. VI-3: dynamic allocation achieves a higher utilisation than a fixed number of workers.",
                    uses_more,
                ),
            ),
            rows=utility_rows,
            summary=_of_bound,
            pieces=by_seed(utility_of, join_utility, MORE_SEEDS, 3),
            chart=chart_of("jobs", "utility", "line", x_label="jobs", y_label="total utility", log_x=True),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: embedded ratio and node capacity",
            claims=(
                claim(
                    "rises",
                    f"Sec. VI-3, Fig. 5: {EMBEDDED}it rises with the GPUs of the servers.",
                    partial(rises, "embedded ratio", "rise"),
                ),
                claim(
                    "inside servers",
                    "Sec. VI-3: with more GPUs on a server, jobs with a high bandwidth are more likely inside one.",
                    partial(rises, "on one server", "inside rise"),
                ),
            ),
            rows=node_rows,
            pieces=by_seed(nodes_of, join_embedded, SEEDS, 3),
            chart=chart_of(
                "scale", "embedded ratio", "line", x_label="times the servers' capacity", log_x=True
            ),
        ),
        PaperFigure(
            name="fig-6",
            title="Figure 6: embedded ratio and link bandwidth",
            claims=(
                claim(
                    "rises",
                    f"Sec. VI-3, Fig. 6: {EMBEDDED}it rises with the bandwidth of the links.",
                    partial(rises, "embedded ratio", "rise"),
                ),
                claim(
                    "between servers",
                    "Sec. VI-3: with more bandwidth, more jobs that communicate between servers can be scheduled.",
                    partial(rises, "over several", "several rise"),
                ),
            ),
            rows=link_rows,
            pieces=by_seed(links_of, join_embedded, SEEDS, 3),
            chart=chart_of(
                "scale", "embedded ratio", "line", x_label="times the links' bandwidth", log_x=True
            ),
        ),
        lead.FIGURE,
        *ratio.FIGURES,
        *objectives.FIGURES,
        ring_time.FIGURE,
        *ours.FIGURES,
    ),
    remarks=(
        "gadget-paper is the printed Algorithm 1 with LP-RS-MDE, reduced to the rings that fit; raw rounding is as printed.",
        "The bound is the offline LP over worker-slots (systems/gadget/bound.py), which knows all arrivals.",
        "A unit of F is an iteration: a job ends after F / zeta worker-slots.",
        "The text prints no number of jobs, no load and no u_b.",
    ),
    theorems=theory.THEOREMS,
)
