"""Figures 2-7 of DPS (Zhang et al., Section V), Theorem 2, where the headline ratios would be found, and figures of ours."""

from __future__ import annotations

from tradewind.lab.study import Chart, PaperFigure, Pieces, Study
from tradewind.systems.dps.study import claims as judge
from tradewind.systems.dps.study import growth, ours, region, rows
from tradewind.systems.dps.study.claims import claim


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


REGRET = "profit of bfp − profit"
NAMES = {"bfp": "BFP, the strong one", "bfp-printed": "BFP, prices that maximise (3)"}

STUDY = Study(
    system="dps",
    title="DPS: dynamic pricing and placement",
    figures=(
        PaperFigure(
            name="fig-2",
            title="Figure 2: regret over time",
            claims=(
                claim(
                    "turns",
                    "The regret grows until slot 1120, the free stage, and falls afterwards",
                    judge.turns,
                ),
                *(
                    each
                    for against, text in (("bfp", ""), ("bfp-printed", " (prices that maximise (3))"))
                    for each in (
                        claim(
                            f"zero-{against}",
                            f"The regret against BFP{text} is back to zero at slot 3140",
                            judge.zero(against),
                        ),
                        claim(
                            f"negative-{against}",
                            f"Then it is negative against BFP{text}, more so as time goes on",
                            judge.negative(against),
                        ),
                    )
                ),
                claim(
                    "outperforms",
                    "DPS outperforms the other algorithms: less regret at the end than DPS-simple, TOP and Random",
                    judge.below("dps-simple", "top", "random"),
                ),
                claim(
                    "free-stage",
                    "The regret of DPS-simple shows that the free stage plays an important role: DPS's is smaller",
                    judge.below("dps-simple"),
                ),
            ),
            rows=rows.regret_rows,
            chart=_chart("slot", "regret", "line", y_label=REGRET),
        ),
        PaperFigure(
            name="fig-3",
            title="Figure 3: overall profit",
            claims=(
                *(
                    claim(
                        rival,
                        f"DPS earns {claimed:.0%} of the profit of {NAMES.get(rival, rival)} at the end (Sec. V)",
                        judge.ratio(rival, claimed),
                    )
                    for rival, claimed in region.CLAIMED.items()
                ),
                claim(
                    "increases",
                    "These percentages increase over time (Sec. I)",
                    judge.grows(tuple(region.CLAIMED)),
                ),
            ),
            rows=rows.profit_rows,
            chart=_chart("policy", "of bfp", kind="bar", y_label="profit / profit of bfp"),
        ),
        PaperFigure(
            name="fig-4",
            title="Figure 4: number of jobs",
            claims=(
                claim(
                    "start", "At the beginning the regret is smaller when N is smaller", judge.starts_small
                ),
                claim("falls", "The larger N is, the faster the regret decreases later", judge.falls_faster),
            ),
            rows=rows.jobs_rows,
            chart=_chart("slot", "regret", "line", y_label=REGRET),
        ),
        PaperFigure(
            name="fig-5",
            title="Figure 5: step of the price grid",
            claims=(
                claim(
                    "formula",
                    "The regret obtained with the delta of Theorem 2 is the smallest",
                    judge.smallest("delta", "formula"),
                    ours="",
                ),
                claim(
                    "too-small",
                    "A delta that is too small (0.05 here) makes more candidates and learning longer",
                    judge.worse("delta", "0.05", "0.2"),
                    ours="",
                ),
                claim(
                    "too-large",
                    "With a delta that is too large (0.5 here) the regret grows",
                    judge.worse("delta", "0.5", "0.2"),
                    ours="",
                ),
            ),
            rows=rows.delta_rows,
            chart=_chart("slot", "regret", "delta", y_label=REGRET),
        ),
        PaperFigure(
            name="fig-6",
            title="Figure 6: length of the free stage",
            claims=(
                claim(
                    "early",
                    "The smaller theta is, the smaller is the regret at the beginning",
                    judge.shorter_is_smaller,
                    ours="",
                ),
                claim(
                    "late",
                    "The smaller theta is, the more slowly the regret decreases later",
                    judge.shorter_falls_slower,
                    ours="",
                ),
                claim(
                    "figure",
                    "The theta of the figures, 0.11 by the end of the free stage, is a good trade-off: the least regret",
                    judge.smallest("theta", "0.11"),
                    ours="",
                ),
                claim(
                    "formula",
                    "The printed theta, (T C log n)^(2/3) / n, is a good trade-off: the least regret",
                    judge.smallest("theta", "formula"),
                    ours="",
                ),
            ),
            rows=rows.theta_rows,
            chart=_chart("slot", "regret", "theta", y_label=REGRET),
        ),
        PaperFigure(
            name="fig-7",
            title="Figure 7: placement",
            claims=(
                claim(
                    "random",
                    "DPS earns more than DPS-RS at slot 4000, and increasingly",
                    judge.earns_more("dps-rs"),
                ),
                claim(
                    "bfp", "DPS earns more than BFP at slot 4000, and increasingly", judge.earns_more("bfp")
                ),
                claim(
                    "runtime",
                    "Completed jobs always ran shorter under PA than under RS, in total by more and more; here per job",
                    judge.runs_shorter,
                ),
                claim(
                    "total-runtime",
                    "The same to the letter: the total runtime of all completed jobs, however many they are, is shorter",
                    judge.total_shorter,
                ),
            ),
            rows=rows.placement_rows,
            chart=_chart("slot", "profit", "policy", y_label="profit so far"),
        ),
        PaperFigure(
            name="theorem-2",
            title="Theorem 2: growth of the regret",
            claims=(
                *(
                    claim(
                        grows,
                        f"The regret is sub-linear in the {what} (Theorem 2), with the constants of the figures",
                        growth.sublinear(grows),
                    )
                    for grows, what in (
                        ("jobs", "number of jobs"),
                        ("slots", "timespan, with jobs in proportion"),
                    )
                ),
                *(
                    claim(
                        f"{grows}-printed",
                        f"The regret is sub-linear in the {what} (Theorem 2), with the printed theta and delta",
                        growth.sublinear(grows),
                        paper=growth.PRINTED,
                        ours="",
                    )
                    for grows, what in (
                        ("jobs", "number of jobs"),
                        ("slots", "timespan, with jobs in proportion"),
                    )
                ),
            ),
            rows=growth.growth_rows,
            chart=Chart(
                x="size",
                y="share",
                series="line",
                low="low",
                high="high",
                log_x=True,
                y_label="regret / profit of bfp",
            ),
        ),
        PaperFigure(
            name="region",
            title="Where the headline ratios would be found",
            claims=(
                *(
                    claim(
                        rival,
                        f"Somewhere in what the paper leaves open DPS earns {claimed:.0%} of {NAMES.get(rival, rival)}",
                        region.somewhere(rival),
                    )
                    for rival, claimed in region.CLAIMED.items()
                ),
                claim("together", "All four ratios in one market, with BFP as (3) says", region.together),
            ),
            rows=region.region_rows,
            chart=_chart(
                "setting",
                "ratio",
                "line",
                kind="bar",
                x_label="market theta/delta",
                y_label="profit / the rival's",
            ),
        ),
        PaperFigure(
            name="acceptance",
            title="Acceptance: learned and realised",
            rows=ours.acceptance_rows,
            summary=ours.summary_acceptance,
            chart=_chart("expected", "realised", "market", x_label="expected before the answer"),
        ),
        PaperFigure(
            name="prices",
            title="Prices over time in a drifting market",
            rows=ours.price_rows,
            summary=ours.summary_prices,
            chart=Chart(x="slot", y="price", series="type", y_label="unit price asked"),
        ),
        PaperFigure(
            name="table-markets",
            title="Nine markets, against the best fixed prices",
            rows=ours.market_rows,
            claims=tuple(
                claim(market, f"dps earns at least {least} of bfp", judge.meets(market, least), paper="")
                for market, least in ours.REQUIRED.items()
            ),
            pieces=Pieces(parts=ours.market_parts, join=ours.join_markets),
            summary=ours.summary_markets,
            chart=_chart("market", "of bfp", "policy", kind="bar", y_label="profit / profit of bfp"),
        ),
        PaperFigure(
            name="uncertain",
            title="Runtimes that turn out otherwise",
            rows=ours.uncertain_rows,
            summary=ours.summary_uncertain,
            chart=_chart("sigma", "of bfp", "policy", x_label="standard deviation of the log of the error"),
        ),
        PaperFigure(
            name="tiny",
            title="Tiny markets against their exact optimum",
            rows=ours.tiny_rows,
            summary=ours.summary_tiny,
            chart=_chart("policy", "of optimum", "market", kind="bar", y_label="profit / exact optimum"),
        ),
    ),
    theorems=(growth.THEOREM_2,),
    remarks=(
        "dps-paper is the paper's algorithm with theta 0.11, because the theta it prints is 68 to 480 and gives "
        "every job away. dps is our learner. TOP is TOP-like: its source was not available.",
        "bfp is the best fixed price of each type in hindsight, found by coordinate ascent over full simulations. A quick "
        "study searches less and uses one seed per market, so its bfp is up to two percent too low and every ratio as "
        "much too high; a full study uses at most ten seeds.",
        "bfp-printed is what the paper's text says a seller with fixed prices should use: the prices that maximise (3), "
        "workers and servers apart. It ignores capacity, because the capacity term of (3) never binds.",
        "The non-peeking bound knows the distribution of the budgets but no budget. It holds in expectation: bfp, which "
        "fits its prices to the budgets that were drawn, can exceed it where capacity is plentiful.",
    ),
)
