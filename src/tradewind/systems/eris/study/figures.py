"""Figures 3-5 and 7-11 of Eris (Pang et al., Section VI), with the certified bound and elastic rivals beside each claim.

"Eris" in the claims is `eris-paper`: the printed algorithm with its schedules made feasible. Figure 6 (accuracy while the
number of workers changes) needs real training and is not part of this study.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tradewind.lab.study import Chart, PaperFigure, Study, whole
from tradewind.systems.eris.study import scale, slot, tables, testbed, truth
from tradewind.systems.eris.study.runs import LEADS


def _chart(x: str, y: str, series: str = "policy", **more: Any) -> Chart:
    return Chart(x=x, y=y, series=series, low="low", high="high", **more)


WELFARE = "social welfare, thousand USD"
STUDY = Study(
    system="eris",
    title="Eris: an auction for training over edge sites",
    figures=(
        PaperFigure(
            name="fig-3",
            title="Figure 3: social welfare on the testbed",
            claims=whole(
                "Eris earns 44% more welfare than Tiresias, 50% more than AntMan, 20% more than Liquid, nearly the best.",
                testbed.judge_welfare,
                paper="eris-paper",
            ),
            rows=testbed.welfare_rows,
            chart=_chart("policy", "welfare", "", kind="bar", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-4",
            title="Figure 4: jobs not served on the testbed",
            claims=whole(
                "Eris accepts more of the jobs than the rivals.", testbed.judge_rejected, paper="eris-paper"
            ),
            rows=testbed.rejected_rows,
            chart=_chart("policy", "unserved", "", kind="bar", y_label="jobs of ten not completed"),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: performance ratio on the testbed",
            claims=whole(
                "Optimum / welfare of Eris is below 1.5, and smaller than that of the rivals.",
                testbed.judge_loss,
                paper="eris-paper",
            ),
            rows=testbed.loss_rows,
            chart=_chart("policy", "loss", "", kind="bar", y_label="upper bound / welfare"),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: resources in use on the testbed",
            claims=whole(
                "CPU and memory use is steady; GPUs reach 100% at times.",
                testbed.judge_use,
                paper="eris-paper",
            ),
            rows=testbed.use_rows,
            chart=_chart("slot", "share", "use", x_label="slot", y_label="share of all sites' capacity"),
        ),
        PaperFigure(
            name="fig-8",
            title="Figure 8: welfare and the number of sites",
            claims=whole(
                "Welfare rises with the number of sites, and Eris earns most at every size.",
                scale.judge_sites,
                paper="eris-paper",
            ),
            rows=scale.site_rows,
            chart=_chart("sites", "welfare", x_label="sites", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-9",
            title="Figure 9: welfare and the number of jobs",
            claims=whole(
                "Welfare falls as jobs are added, and Eris earns most at every size.",
                scale.judge_jobs,
                paper="eris-paper",
            ),
            rows=partial(scale.job_rows, "simulator", 6),
            chart=_chart("jobs", "welfare", x_label="jobs", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-9-crowded",
            title="Figure 9 where GPUs and bandwidth are scarce (one chunk per worker and slot)",
            claims=whole(
                "As Figure 9. Our policies must not lose welfare as jobs are added.",
                scale.judge_jobs,
                paper="eris-paper",
            ),
            rows=partial(scale.job_rows, "crowded", 4),
            chart=_chart("jobs", "welfare", x_label="jobs", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-10",
            title="Figure 10: the provider's profit",
            claims=whole(
                "The provider's profit falls with the number of sites and rises with the number of jobs.",
                scale.judge_profit,
                paper="eris-paper",
            ),
            rows=scale.profit_rows,
            chart=_chart("case", "profit", kind="bar", log_y=True, y_label="payments, thousand USD"),
        ),
        PaperFigure(
            name="fig-11",
            title="Figure 11: welfare and the base of the prices",
            claims=whole(
                "The larger gamma is, the smaller is the welfare.", scale.judge_gamma, paper="eris-paper"
            ),
            rows=scale.gamma_rows,
            chart=_chart("gamma", "welfare", log_x=True, x_label="gamma", y_label=WELFARE),
        ),
        PaperFigure(
            name="table-workers",
            title="Effect of the rivals' worker counts",
            claims=whole(
                "(The paper fixes the rivals' workers and does not say how many.) Eris leads for any number.",
                tables.judge_counts,
                paper="eris-paper",
            ),
            rows=tables.count_rows,
            chart=_chart("case", LEADS[0], "rival", kind="bar", y_label="lead of eris-paper in welfare"),
        ),
        PaperFigure(
            name="table-printed",
            title="Accepted jobs that finish",
            claims=whole(
                "Theorem 1: what Algorithms 1 to 3 accept is a feasible schedule.",
                tables.judge_printed,
                paper="eris-paper",
            ),
            rows=tables.printed_rows,
            chart=_chart("size", "finish", kind="bar", y_label="share of accepted jobs that finish"),
        ),
        PaperFigure(
            name="table-slot",
            title="Algorithm 3 against the exact optimum of a slot",
            claims=whole(
                "Theorem 4: Algorithm 3 returns an optimal solution of problem (8).",
                slot.judge_slot,
                paper="eris-paper",
            ),
            rows=slot.slot_rows,
            chart=_chart("outcome", "share", "", kind="bar", y_label="share of random states"),
        ),
        PaperFigure(
            name="table-lies",
            title="Lies that pay",
            claims=whole(
                "Theorem 3: no bidder gains by a lie about worth, arrival, data or epochs.",
                truth.judge_lies,
                paper="eris-paper",
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
        "Figure 6, accuracy while the number of workers changes, needs real training and is not part of this study.",
    ),
)
