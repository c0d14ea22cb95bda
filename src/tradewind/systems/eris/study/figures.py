"""Figures 3-5 and 7-11 of Eris (Pang et al., Section VI) and its theorems, with the certified bound and elastic rivals.

"Eris" in the claims is `eris-paper`: the printed algorithm with its schedules made feasible. Figure 6 (accuracy while the
number of workers changes) needs real training: figure `workers` of the study `live`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tradewind.lab.study import Chart, PaperFigure, Study
from tradewind.systems.eris.study import bases, scale, slot, tables, testbed, truth
from tradewind.systems.eris.study import claims as judge
from tradewind.systems.eris.study.claims import claim
from tradewind.systems.eris.study.runs import LEADS, PAPER
from tradewind.systems.eris.study.theory import CONSTANT, THEOREMS


def _chart(x: str, y: str, series: str = "policy", **more: Any) -> Chart:
    return Chart(x=x, y=y, series=series, low="low", high="high", **more)


WELFARE = "social welfare, thousand USD"
HEADLINES = tuple(
    claim(rival, f"{share:.0%} more social welfare than {rival} (Sec. I, Fig. 3)", judge.lead(rival, share))
    for rival, share in testbed.CLAIMED.items()
)
NEAR = claim("near-optimal", "nearly optimal (Fig. 3); read as within 10% of the bound", judge.near_optimal)
BELOW = claim("below-1.5", "optimum / welfare is below 1.5 (Fig. 5)", judge.below(1.5))
LEAST = claim("least", "the smallest ratio of the four schedulers (Figs 3 and 5)", judge.least_ratio)
FAR = claim(
    "far-below-theory",
    "much smaller than the theoretical bound (Sec. I); read as a tenth of Theorem 5's 39.9",
    judge.below(CONSTANT / 10),
)
BEST = "outperforms the three schedulers regardless of the input scale (Figs 8 and 9)"
SCALE = "outperforms them especially in a large scale setting (Sec. VI-C2)"
JOBS = (
    claim("best", BEST, judge.best_everywhere),
    claim("scale", SCALE, judge.lead_grows("jobs")),
    claim("completes", "with more jobs fewer are completed (Sec. VI-C2)", judge.fewer_completed),
    claim(
        "falls",
        "the welfare of all algorithms falls with the number of jobs (Fig. 9)",
        judge.courses("jobs", "welfare", rises=False),
    ),
)
STUDY = Study(
    system="eris",
    title="Eris: an auction for training over edge sites",
    figures=(
        PaperFigure(
            name="fig-3",
            title="Figure 3: social welfare on the testbed",
            claims=(*HEADLINES, NEAR),
            rows=testbed.welfare_rows,
            chart=_chart("policy", "welfare", "", kind="bar", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-3-demands",
            title="Figure 3 with the printed demands: 0 or 1 GPU for workers and servers alike",
            claims=(*HEADLINES, NEAR),
            rows=testbed.demand_rows,
            chart=_chart("policy", "welfare", "", kind="bar", y_label=WELFARE),
        ),
        PaperFigure(
            name="region-lead",
            title="Where the headline leads hold on the testbed",
            claims=(
                claim(
                    "together",
                    "44, 50 and 20% more than Tiresias, AntMan and Liquid, in one setting of what the paper leaves open",
                    judge.somewhere(tables.KNOBS, testbed.CLAIMED),
                ),
            ),
            rows=tables.region_rows,
            chart=Chart(x="workers", y=LEADS[0], series="rival", kind="bar", y_label="lead of eris-paper"),
        ),
        PaperFigure(
            name="fig-4",
            title="Figure 4: jobs not served on the testbed",
            claims=(
                claim("fewer", "Eris accepts more and refuses fewer jobs (Fig. 4)", judge.fewer_unserved),
            ),
            rows=testbed.rejected_rows,
            chart=_chart("policy", "unserved", "", kind="bar", y_label="jobs of ten not completed"),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: bound / welfare on the testbed",
            claims=(BELOW, LEAST, FAR),
            rows=testbed.loss_rows,
            chart=_chart("policy", "loss", "", kind="bar", y_label="upper bound / welfare"),
        ),
        PaperFigure(
            name="fig-5-exact",
            title="Figure 5 against the proven optimum, on a third of the testbed",
            claims=(BELOW, LEAST),
            rows=testbed.exact_rows,
            chart=_chart("policy", "loss", "", kind="bar", y_label="optimum / welfare"),
        ),
        PaperFigure(
            name="region-ratio",
            title="Where bound / welfare stays below 1.5 on the testbed",
            claims=(
                claim(
                    "somewhere",
                    "optimum / welfare is below 1.5 (Fig. 5), in one setting of what the paper leaves open",
                    judge.ratio_somewhere(bases.KNOBS, bases.LIMIT),
                ),
            ),
            rows=bases.ratio_rows,
            chart=Chart(x="base", y=PAPER, series="jobs", kind="bar", y_label="upper bound / welfare"),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: resources in use on the testbed",
            claims=(
                claim("gpu", "GPUs reach 100% at times (Fig. 7)", judge.gpus_full),
                claim(
                    "cpu",
                    "CPU use is relatively stable (Fig. 7); read as steadier than GPUs",
                    judge.steady("cpu"),
                ),
                claim(
                    "memory",
                    "memory use is relatively stable (Fig. 7); read as steadier than GPUs",
                    judge.steady("gb"),
                ),
            ),
            rows=testbed.use_rows,
            chart=_chart("slot", "share", "use", x_label="slot", y_label="share of all sites' capacity"),
        ),
        PaperFigure(
            name="fig-8",
            title="Figure 8: welfare and the number of sites",
            claims=(
                claim("best", BEST, judge.best_everywhere),
                claim("scale", SCALE, judge.lead_grows("sites")),
                claim(
                    "rises",
                    "the welfare of all algorithms rises with the number of sites (Fig. 8)",
                    judge.courses("sites", "welfare", rises=True),
                ),
            ),
            rows=scale.site_rows,
            chart=_chart("sites", "welfare", x_label="sites", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-9",
            title="Figure 9: welfare and the number of jobs",
            claims=JOBS,
            rows=partial(scale.job_rows, "simulator", 6),
            chart=_chart("jobs", "welfare", x_label="jobs", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-9-crowded",
            title="Figure 9 where GPUs and bandwidth are scarce (one chunk per worker and slot)",
            claims=(
                *JOBS,
                claim(
                    "never-falls",
                    "our aim: welfare does not fall as jobs are added",
                    judge.never_falls,
                    paper="",
                ),
            ),
            rows=partial(scale.job_rows, "crowded", 4),
            chart=_chart("jobs", "welfare", x_label="jobs", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-10",
            title="Figure 10: the provider's profit",
            claims=(
                claim(
                    "sites",
                    "the profit of all algorithms falls with the number of sites (Fig. 10)",
                    judge.profit("sites", rises=False),
                ),
                claim(
                    "jobs",
                    "the profit of all algorithms rises with the number of jobs (Fig. 10)",
                    judge.profit("jobs", rises=True),
                ),
            ),
            rows=scale.profit_rows,
            chart=_chart("case", "profit", kind="bar", log_y=True, y_label="payments, thousand USD"),
        ),
        PaperFigure(
            name="fig-11",
            title="Figure 11: welfare and the base of the prices",
            claims=(
                claim("falls", "a higher gamma leads to lower welfare (Fig. 11)", judge.falls_with_gamma),
                claim(
                    "best",
                    "always outperforms the three schedulers regardless of the price functions (Sec. I)",
                    judge.best_with_any_base,
                ),
            ),
            rows=scale.gamma_rows,
            chart=_chart("gamma", "welfare", log_x=True, x_label="gamma", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-11-bids",
            title="Bases of the prices derived from the bids (Sec. IV-B)",
            claims=(
                claim(
                    "resources",
                    "1000 - 1 is at least what any bid is worth per unit of a resource and slot (Sec. IV-B, VI-B)",
                    judge.covered("resources"),
                    ours="",
                ),
                claim(
                    "bandwidth",
                    "1000 - 1 is at least what any bid is worth per MB that it moves (Sec. IV-B, VI-B)",
                    judge.covered("per MB"),
                    ours="",
                ),
                claim(
                    "below-1.5",
                    "optimum / welfare is below 1.5 with the bases of Sec. IV-B on every size",
                    judge.derived_below(bases.SO_FAR, bases.LIMIT),
                ),
            ),
            rows=bases.base_rows,
            chart=_chart("size", "of bound", "base", kind="bar", y_label="share of the upper bound"),
        ),
        PaperFigure(
            name="table-workers",
            title="Effect of the rivals' worker counts",
            claims=(
                claim(
                    "any-count",
                    "Eris leads for any number of workers of its rivals, which the paper does not print",
                    judge.any_count,
                ),
            ),
            rows=tables.count_rows,
            chart=_chart("case", LEADS[0], "rival", kind="bar", y_label="lead of eris-paper in welfare"),
        ),
        PaperFigure(
            name="table-readings",
            title="Accepted jobs that finish, in every reading of the text",
            claims=(
                claim(
                    "formulas",
                    "Theorem 1: what is accepted is feasible; M is all data, the server is not checked",
                    judge.finishes("formulas"),
                    paper="eris-printed",
                ),
                claim(
                    "text",
                    "Theorem 1; M is the remaining data (Table I), the server is reserved (Sec. IV-D), pairs save",
                    judge.finishes(tables.TEXT),
                    paper="eris-printed",
                    ours="",
                ),
            ),
            rows=tables.reading_rows,
            summary=tables.readings_summary,
            chart=_chart("size", "finish", "bar", kind="bar", y_label="share of accepted jobs that finish"),
        ),
        PaperFigure(
            name="table-slot",
            title="Algorithm 3 against the exact optimum of a slot",
            claims=(
                claim(
                    "optimal",
                    "Theorem 4: Algorithm 3 returns an optimal solution of problem (8)",
                    judge.optimal_slots,
                    ours="",
                ),
            ),
            rows=slot.slot_rows,
            chart=_chart("outcome", "share", "", kind="bar", y_label="share of random states"),
        ),
        PaperFigure(
            name="table-lies",
            title="Lies that pay",
            claims=(
                claim("worth", "Theorem 3: a lie about the utility does not pay", judge.useless("worth")),
                claim("arrival", "Theorem 3: a later arrival does not pay", judge.useless("arrival")),
                claim("work", "Theorem 3: more data or epochs do not pay", judge.useless("data", "epochs")),
                claim(
                    "proportional",
                    "Theorem 3: other workers or servers do not pay, where the speed follows their size",
                    judge.useless("smaller", "larger"),
                ),
                claim(
                    "slim",
                    "Theorem 3 where the speed does not depend on the demands, as in (2b)",
                    judge.useless("slim"),
                ),
                claim("rational", "Theorem 2: no honest buyer loses", judge.rational),
            ),
            rows=truth.lie_rows,
            chart=Chart(x="lie", y="share", series="mechanism", kind="bar", y_label="share of lies that pay"),
        ),
    ),
    remarks=(
        "Eris in the claims is eris-paper, the printed algorithm made feasible; eris and eris-preemptive are ours.",
        "The upper bound is a configuration LP (eris/bound.py): even a scheduler that knows the future earns no more.",
        "The paper does not say how many workers its rivals get. Here 16, or as many as the empty network holds; every "
        "comparison also shows elastic versions, which take as many as are useful, and table-workers varies the number.",
        "Not in the paper and chosen here: P, lambda per slot, data locations, arrivals (see `tradewind generate eris`).",
        "Figure 6, accuracy while the number of workers changes, needs real training: figure workers of the study live.",
        "The abstract says up to 44% more welfare, Sec. I 50% over AntMan; the numbers of Sec. I are judged.",
    ),
    theorems=THEOREMS,
)
