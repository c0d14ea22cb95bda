"""Figures 3-5 and 7-11 of Eris (Pang et al., Section VI), with the certified bound and elastic rivals beside each claim.

"Eris" of the claims is `eris-paper`: the printed algorithm, its schedules made real. Figure 6 (accuracy while the number
of workers changes) needs real training and is not part of this study.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tradewind.lab.study import Chart, PaperFigure, Study
from tradewind.systems.eris.study import (
    scale as eris_scale,
)
from tradewind.systems.eris.study import (
    slot as eris_slot,
)
from tradewind.systems.eris.study import (
    tables as eris_tables,
)
from tradewind.systems.eris.study import (
    testbed as eris_testbed,
)
from tradewind.systems.eris.study import (
    truth as eris_truth,
)
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
            claim="Eris earns 44% more welfare than Tiresias, 50% more than AntMan, 20% more than Liquid, nearly the best.",
            rows=eris_testbed.welfare_rows,
            judge=eris_testbed.judge_welfare,
            chart=_chart("policy", "welfare", "", kind="bar", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-4",
            title="Figure 4: jobs that are turned away on the testbed",
            claim="Eris accepts more of the jobs than the rivals.",
            rows=eris_testbed.rejected_rows,
            judge=eris_testbed.judge_rejected,
            chart=_chart("policy", "unserved", "", kind="bar", y_label="jobs of ten not completed"),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: performance ratio on the testbed",
            claim="Optimum / welfare of Eris is below 1.5, and smaller than that of the rivals.",
            rows=eris_testbed.loss_rows,
            judge=eris_testbed.judge_loss,
            chart=_chart("policy", "loss", "", kind="bar", y_label="upper bound / welfare"),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: resources in use on the testbed",
            claim="CPU and memory use is steady; GPUs reach 100% at times.",
            rows=eris_testbed.use_rows,
            judge=eris_testbed.judge_use,
            chart=_chart("slot", "share", "use", x_label="slot", y_label="share of all sites' capacity"),
        ),
        PaperFigure(
            name="fig-8",
            title="Figure 8: welfare and the number of sites",
            claim="Welfare rises with the number of sites, and Eris earns most at every size.",
            rows=eris_scale.site_rows,
            judge=eris_scale.judge_sites,
            chart=_chart("sites", "welfare", x_label="sites", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-9",
            title="Figure 9: welfare and the number of jobs",
            claim="Welfare falls as jobs are added, and Eris earns most at every size.",
            rows=partial(eris_scale.job_rows, "simulator", 6),
            judge=eris_scale.judge_jobs,
            chart=_chart("jobs", "welfare", x_label="jobs", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-9-crowded",
            title="Figure 9 where GPUs and bandwidth are scarce (one chunk per worker and slot)",
            claim="As Figure 9. Ours must not fall as jobs are added.",
            rows=partial(eris_scale.job_rows, "crowded", 4),
            judge=eris_scale.judge_jobs,
            chart=_chart("jobs", "welfare", x_label="jobs", y_label=WELFARE),
        ),
        PaperFigure(
            name="fig-10",
            title="Figure 10: the provider's profit",
            claim="The provider's profit falls with the number of sites and rises with the number of jobs.",
            rows=eris_scale.profit_rows,
            judge=eris_scale.judge_profit,
            chart=_chart("case", "profit", kind="bar", log_y=True, y_label="payments, thousand USD"),
        ),
        PaperFigure(
            name="fig-11",
            title="Figure 11: welfare and the base of the prices",
            claim="The larger gamma is, the smaller is the welfare.",
            rows=eris_scale.gamma_rows,
            judge=eris_scale.judge_gamma,
            chart=_chart("gamma", "welfare", log_x=True, x_label="gamma", y_label=WELFARE),
        ),
        PaperFigure(
            name="table-workers",
            title="What the rivals' worker counts decide",
            claim="(The paper fixes the rivals' workers and does not say how many.) Eris leads whatever the number.",
            rows=eris_tables.count_rows,
            judge=eris_tables.judge_counts,
            chart=_chart("case", LEADS[0], "rival", kind="bar", y_label="lead of eris-paper in welfare"),
        ),
        PaperFigure(
            name="table-printed",
            title="Accepted jobs that finish",
            claim="Theorem 1: what Algorithms 1 to 3 accept is a feasible schedule.",
            rows=eris_tables.printed_rows,
            judge=eris_tables.judge_printed,
            chart=_chart("size", "finish", kind="bar", y_label="share of accepted jobs that finish"),
        ),
        PaperFigure(
            name="table-slot",
            title="Algorithm 3 against the exact optimum of a slot",
            claim="Theorem 4: Algorithm 3 returns an optimal solution of problem (8).",
            rows=eris_slot.slot_rows,
            judge=eris_slot.judge_slot,
            chart=_chart("outcome", "share", "", kind="bar", y_label="share of random states"),
        ),
        PaperFigure(
            name="table-lies",
            title="Lies that pay",
            claim="Theorem 3: nobody gains by a lie about worth, arrival, data or epochs.",
            rows=eris_truth.lie_rows,
            judge=eris_truth.judge_lies,
            chart=Chart(x="lie", y="share", series="mechanism", kind="bar", y_label="share of lies that pay"),
        ),
    ),
    remarks=(
        "Eris of the claims is eris-paper, the printed algorithm made real; eris and eris-preemptive are ours.",
        "The upper bound is the configuration LP (optimum.eris): no scheduler that knows the future earns more.",
        "The paper does not say how many workers its rivals get. Here 16, or as many as the empty network holds; every "
        "comparison shows versions that take as many as are of use (elastic), and table-workers varies the number.",
        "Not in the paper and chosen here: P, lambda per slot, where data lies, arrivals (see `tradewind generate eris`).",
        "Figure 6, training accuracy while the number of workers changes, comes with real training.",
    ),
)
