"""Figures 2-7 of DPS (Zhang et al., Section V), and our table of nine markets."""

from __future__ import annotations

from tradewind.lab.study import Chart, PaperFigure, Pieces, Study, whole
from tradewind.systems.dps.study import judges, rows


def _chart(x: str, y: str, series: str = "", kind: str = "line", **labels: str) -> Chart:
    return Chart(
        x=x,
        y=y,
        series=series,
        kind="bar" if kind == "bar" else "line",
        low="low",
        high="high",
        x_label=labels.get("x_label", ""),
        y_label=labels.get("y_label", ""),
    )


STUDY = Study(
    system="dps",
    title="DPS: dynamic pricing and placement",
    figures=(
        PaperFigure(
            name="fig-2",
            title="Figure 2: regret over time",
            claims=whole(
                "The regret of DPS grows until slot 1120, is back to zero at slot 3140 and negative afterwards.",
                judges.judge_regret,
                paper="dps-paper",
            ),
            rows=rows.regret_rows,
            chart=_chart("slot", "regret", "policy", y_label="profit of bfp − profit"),
        ),
        PaperFigure(
            name="fig-3",
            title="Figure 3: overall profit",
            claims=whole(
                "DPS earns 125% of BFP, 115% of DPS-simple, 122% of TOP and 238% of Random.",
                judges.judge_profit,
                paper="dps-paper",
            ),
            rows=rows.profit_rows,
            chart=_chart("policy", "of bfp", kind="bar", y_label="profit / profit of bfp"),
        ),
        PaperFigure(
            name="fig-4",
            title="Figure 4: number of jobs",
            claims=whole(
                "The larger the number of jobs, the faster the regret falls.",
                judges.judge_jobs,
                paper="dps-paper",
            ),
            rows=rows.jobs_rows,
            chart=_chart("jobs", "regret of bfp", "policy", y_label="regret / profit of bfp"),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: step of the price grid",
            claims=whole(
                "The delta of Theorem 2 gives the smallest regret.",
                lambda rows: judges.judge_constant(rows, "delta"),
                paper="dps-paper",
            ),
            rows=rows.delta_rows,
            chart=_chart("delta", "regret", kind="bar"),
        ),
        PaperFigure(
            name="fig-6",
            title="Figure 6: length of the free stage",
            claims=whole(
                "The printed theta balances exploration and exploitation; a shorter free stage is worse in the end.",
                lambda rows: judges.judge_constant(rows, "theta"),
                paper="dps-paper",
            ),
            rows=rows.theta_rows,
            chart=_chart("theta", "regret", kind="bar"),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: placement",
            claims=whole(
                "With PA, DPS earns more than with random placement and more than BFP, and jobs run shorter.",
                judges.judge_placement,
                paper="dps-paper",
            ),
            rows=rows.placement_rows,
            chart=_chart("policy", "of bfp", kind="bar", y_label="profit / profit of bfp"),
        ),
        PaperFigure(
            name="acceptance",
            title="Acceptance: learned and realised",
            rows=rows.acceptance_rows,
            summary=judges.summary_acceptance,
            chart=_chart("expected", "realised", "market", x_label="expected before the answer"),
        ),
        PaperFigure(
            name="prices",
            title="Prices over time in a drifting market",
            rows=rows.price_rows,
            summary=judges.summary_prices,
            chart=Chart(x="slot", y="price", series="type", y_label="unit price asked"),
        ),
        PaperFigure(
            name="table-markets",
            title="Nine markets, against the best fixed prices",
            rows=rows.market_rows,
            pieces=Pieces(parts=rows.market_parts, join=rows.join_markets),
            summary=judges.summary_markets,
            chart=_chart("market", "of bfp", "policy", kind="bar", y_label="profit / profit of bfp"),
        ),
    ),
    remarks=(
        "dps-paper is the paper's algorithm with theta 0.11, because the theta it prints is 68 to 480 and gives "
        "every job away. dps is our learner. TOP is TOP-like: its source was not available.",
        "bfp is the best fixed price of each type in hindsight, found by coordinate ascent over full simulations. A quick "
        "study searches less and uses one seed per market, so its bfp is up to two percent too low and every ratio as "
        "much too high; a full study uses at most five seeds.",
        "The non-peeking bound knows the distribution of the budgets but no budget. It holds in expectation: bfp, which "
        "fits its prices to the budgets that were drawn, can exceed it where capacity is plentiful.",
    ),
)
