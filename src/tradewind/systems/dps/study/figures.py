"""Figures 2-7 of DPS (Zhang et al., Section V), and our table of nine markets."""

from __future__ import annotations

from tradewind.lab.study import Chart, PaperFigure, Pieces, Study
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
            claim="The regret of DPS grows until slot 1120, is back to zero at slot 3140 and negative afterwards.",
            rows=rows.regret_rows,
            judge=judges.judge_regret,
            chart=_chart("slot", "regret", "policy", y_label="profit of bfp − profit"),
        ),
        PaperFigure(
            name="fig-3",
            title="Figure 3: overall profit",
            claim="DPS earns 125% of BFP, 115% of DPS-simple, 122% of TOP and 238% of Random.",
            rows=rows.profit_rows,
            judge=judges.judge_profit,
            chart=_chart("policy", "of bfp", kind="bar", y_label="profit / profit of bfp"),
        ),
        PaperFigure(
            name="fig-4",
            title="Figure 4: number of jobs",
            claim="The larger the number of jobs, the faster the regret falls.",
            rows=rows.jobs_rows,
            judge=judges.judge_jobs,
            chart=_chart("jobs", "regret of bfp", "policy", y_label="regret / profit of bfp"),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: step of the price grid",
            claim="The delta of Theorem 2 gives the smallest regret.",
            rows=rows.delta_rows,
            judge=lambda rows: judges.judge_constant(rows, "delta"),
            chart=_chart("delta", "regret", kind="bar"),
        ),
        PaperFigure(
            name="fig-6",
            title="Figure 6: length of the free stage",
            claim="The printed theta balances exploration and exploitation; a shorter free stage is worse in the end.",
            rows=rows.theta_rows,
            judge=lambda rows: judges.judge_constant(rows, "theta"),
            chart=_chart("theta", "regret", kind="bar"),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: placement",
            claim="With PA, DPS earns more than with random placement and more than BFP, and jobs run shorter.",
            rows=rows.placement_rows,
            judge=judges.judge_placement,
            chart=_chart("policy", "of bfp", kind="bar", y_label="profit / profit of bfp"),
        ),
        PaperFigure(
            name="acceptance",
            title="Acceptance: learned and realised",
            claim="None: this figure is ours.",
            rows=rows.acceptance_rows,
            judge=judges.judge_acceptance,
            chart=_chart("expected", "realised", "market", x_label="expected before the answer"),
        ),
        PaperFigure(
            name="prices",
            title="Prices over time in a drifting market",
            claim="None: this figure is ours.",
            rows=rows.price_rows,
            judge=judges.judge_prices,
            chart=Chart(x="slot", y="price", series="type", y_label="unit price asked"),
        ),
        PaperFigure(
            name="table-markets",
            title="Nine markets, against the best fixed prices",
            claim="None: this table is ours.",
            rows=rows.market_rows,
            pieces=Pieces(parts=rows.market_parts, join=rows.join_markets),
            judge=judges.judge_markets,
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
