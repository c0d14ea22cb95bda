"""Figures 5-17 and Tables 4-5 of the mlBroker paper: its claims beside our numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tradewind.lab.study import Chart, Effort, Finding, PaperFigure, Row, Study, Word
from tradewind.systems.mlbroker.study import rows as data
from tradewind.systems.mlbroker.study.growth import growth_figure, judge_growth


def _mean(rows: Sequence[Row], column: str, **where: str | float) -> float:
    values = [float(row[column]) for row in rows if all(row[k] == v for k, v in where.items())]
    return sum(values) / len(values) if values else float("nan")


def _below(column: str, limit: float, what: str) -> Callable[[Sequence[Row]], Finding]:
    """Reproduced when every value stays below the paper's limit."""

    def judge(rows: Sequence[Row]) -> Finding:
        worst = max(float(row[column]) for row in rows)
        word: Word = "reproduced" if worst < limit else "not reproduced"
        return Finding(word=word, reason=f"{what}: at most {worst:.4f}, the paper says below {limit:g}")

    return judge


def _fig6(rows: Sequence[Row]) -> Finding:
    """Ratio falls with data size and rises with worker speed."""
    sizes = sorted({float(row["data_gb"]) for row in rows})
    falls = _mean(rows, "ratio", data_gb=sizes[-1]) < _mean(rows, "ratio", data_gb=sizes[0])
    speeds = sorted({str(row["P"]) for row in rows})
    rises = _mean(rows, "ratio", P=speeds[-1]) > _mean(rows, "ratio", P=speeds[0])
    worst = max(float(row["ratio"]) for row in rows)
    below = worst < 2.5
    count = sum((falls, rises, below))
    return Finding(
        word="reproduced" if count == 3 else "partly reproduced" if count else "not reproduced",
        reason=f"falls with data: {falls}, rises with P: {rises}, worst {worst:.3f} (paper: below 2.5)",
    )


def _fig7(rows: Sequence[Row]) -> Finding:
    """A_round below independent and greedy everywhere."""
    wins = points = 0
    for row in rows:
        name, _, family = str(row["rounding"]).partition(", ")
        if name == "A_round":
            for rival in ("independent", "greedy"):
                points += 1
                wins += float(row["ratio"]) < _mean(
                    rows, "ratio", sites=row["sites"], rounding=f"{rival}, {family}"
                )
    word: Word = (
        "reproduced" if wins == points else "partly reproduced" if 2 * wins > points else "not reproduced"
    )
    return Finding(
        word=word, reason=f"A_round is cheaper in {wins} of {points} comparisons; taking the largest of K + 1 "
        "roundings over-provides, Round2 alone does not",
    )  # fmt: skip


def _cheapest(rows: Sequence[Row], column: str, ours: str, rivals: Sequence[str]) -> tuple[int, int, str]:
    """(wins, comparisons, savings in words) of ``ours`` against rivals over all x."""
    wins = points = 0
    said = []
    for rival in rivals:
        save = []
        for row in rows:
            if row["policy"] == rival:
                mine = _mean(rows, column, policy=ours, data_gb=row["data_gb"])
                points += 1
                wins += mine <= float(row[column]) * (1 + 1e-9)
                save.append(1.0 - mine / float(row[column]))
        said.append(f"{rival} {100 * min(save):.1f} to {100 * max(save):.1f}%")
    return wins, points, ", ".join(said)


def _fig8(rows: Sequence[Row]) -> Finding:
    wins, points, paper = _cheapest(rows, "cost", "mlbroker-paper", ("oasis", "local", "central"))
    own = _cheapest(rows, "cost", "mlbroker", ("oasis", "local", "central", "selfish", "mlbroker-paper"))
    word: Word = "reproduced" if wins == points else "partly reproduced" if wins else "not reproduced"
    return Finding(
        word=word,
        reason=f"the paper's pipeline is cheapest in {wins} of {points} comparisons (it saves against {paper}); "
        f"our search in {own[0]} of {own[1]} ({own[2]})",
    )


def _order(column: str, low: str, high: str) -> Callable[[Sequence[Row]], Finding]:
    """Reproduced when policy ``low`` is below ``high`` on the mean."""

    def judge(rows: Sequence[Row]) -> Finding:
        a, b = _mean(rows, column, policy=low), _mean(rows, column, policy=high)
        word: Word = "reproduced" if a <= b else "not reproduced"
        return Finding(word=word, reason=f"{low} {a:.1f} USD against {high} {b:.1f} USD")

    return judge


def _stable(key: str) -> Callable[[Sequence[Row]], Finding]:
    def judge(rows: Sequence[Row]) -> Finding:
        worst = max(float(row["ratio"]) for row in rows if row["policy"] == "mlbroker-paper")
        ours = max(float(row["ratio"]) for row in rows if row["policy"] == "mlbroker")
        word: Word = "reproduced" if worst <= 3.0 else "not reproduced"
        return Finding(
            word=word,
            reason=f"the paper's pipeline is at most {worst:.3f} of the certified bound over {key} "
            f"(the paper: up to 3), our search {ours:.4f}",
        )

    return judge


def _table4(rows: Sequence[Row]) -> Finding:
    total = {str(r["policy"]): float(r["usd"]) for r in rows if r["part"] == "cost"}
    rivals = {name: total[name] for name in ("local", "central", "oasis")}
    paper = all(total["mlbroker-paper"] < usd for usd in rivals.values())
    ours = all(total["mlbroker"] <= usd for usd in rivals.values())
    word: Word = "reproduced" if paper else "partly reproduced" if ours else "not reproduced"
    said = ", ".join(f"{name} {usd:.0f}" for name, usd in total.items())
    return Finding(
        word=word, reason=f"mean USD: {said}. The paper: mlBroker 1070, Local 1386, Central 1100, OASiS 1201"
    )


def _least(column: str, policy: str, rows: Sequence[Row]) -> Finding:
    values = {str(row["policy"]): float(row[column]) for row in rows if row["policy"] != "mlbroker-paper"}
    best = min(values, key=lambda name: values[name])
    near = values[policy] <= values[best] * 1.001
    said = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    return Finding(word="reproduced" if near else "not reproduced", reason=f"{column}: {said}")


def _table5(rows: Sequence[Row]) -> Finding:
    table = [{"policy": r["policy"], str(r["what"]): r["value"]} for r in rows]
    hours = _least("hours", "central", [r for r in table if "hours" in r])
    rate = _least("discount", "mlbroker", [r for r in table if "discount" in r])
    good = [finding.word == "reproduced" for finding in (hours, rate)]
    word: Word = "reproduced" if all(good) else "partly reproduced" if any(good) else "not reproduced"
    return Finding(word=word, reason=f"{hours.reason}; {rate.reason}")


def _over_data(
    name: str, column: str, title: str, claim: str, judge: Callable[[Sequence[Row]], Finding]
) -> PaperFigure:
    return PaperFigure(
        name=name,
        title=title,
        claim=claim,
        rows=partial(data.cost_by_data, column=column),
        judge=judge,
        chart=Chart(
            x="data_gb",
            y=column,
            series="policy",
            low="low",
            high="high",
            x_label="GB per job and slot",
            y_label="USD",
        ),
    )


def _fig9(effort: Effort) -> list[Row]:
    return data.ratios(effort, "slots", effort.pick((4, 8), (25, 50, 75, 100)))


def _fig10(effort: Effort) -> list[Row]:
    return data.ratios(effort, "jobs_per_slot", effort.pick((4.0, 12.0), (10.0, 20.0, 30.0, 40.0)))


def _ratio_chart(x: str, series: str, label: str) -> Chart:
    return Chart(x=x, y="ratio", series=series, low="low", high="high", x_label=label, y_label="ratio")


def _bars(y: str, label: str, x: str = "policy", series: str = "") -> Chart:
    return Chart(x=x, y=y, series=series, low="low", high="high", kind="bar", y_label=label)


STUDY = Study(
    system="mlbroker",
    title="mlBroker: online placement and scaling of geo-distributed jobs via volume-discounting brokerage",
    remarks=(
        "Figures 5-7 use the chord relaxation: each big-M of (8c), (8d) at its own smallest value. With the single M "
        "that is printed, the relaxation is between 0.004 and 0.73 of the integer optimum and ratios mean nothing.",
        "Figures 9-10 divide by the certified lower bound of the integer problem, not by a relaxation of P_f.",
        "Costs are billed as corrected: every worker pays traffic to the server, a site that is left is no longer "
        "deployed. mlbroker-paper is the paper's pipeline with what it needs to run at all; mlbroker is our search.",
        "Theorem 4's ratio is not drawn: its lambda is infinite wherever a site has no data, and r2 carries a unit.",
        "The growth figure measures CPU time on the machine at hand; its rows differ from run to run, all others do not.",
        "Table 4, Table 5 and Figures 15-17 run on a scaled copy of the real experiment; discounts, thresholds and "
        "volumes are not printed in the paper and are ours.",
    ),
    figures=(
        PaperFigure(
            name="fig-5",
            title="A_fractional over its offline optimum",
            claim="The ratio stays below 1.25 for all numbers of sites and epsilon.",
            rows=data.fig5,
            judge=_below("ratio", 1.25, "A_fractional over the optimum of P_f (chord)"),
            chart=_ratio_chart("sites", "eps", "sites"),
        ),
        PaperFigure(
            name="fig-6",
            title="A_round over A_fractional",
            claim="Below 2.5; falls with the data size and with smaller worker capacity P.",
            rows=data.fig6,
            judge=_fig6,
            chart=_ratio_chart("data_gb", "P", "GB per job and slot"),
        ),
        PaperFigure(
            name="fig-7",
            title="Dependent, independent and greedy rounding",
            claim="Dependent rounding is consistently better than independent and greedy rounding.",
            rows=data.fig7,
            judge=_fig7,
            chart=_ratio_chart("sites", "rounding", "sites"),
        ),
        _over_data(
            "fig-8", "cost", "Total cost", "mlBroker costs least at every data size, 20-50% below the others.", _fig8
        ),
        PaperFigure(
            name="fig-9",
            title="Cost over the bound as slots grow",
            claim="The ratio grows slightly with the number of slots and stays below 3.",
            rows=_fig9,
            judge=_stable("slots"),
            chart=_ratio_chart("slots", "policy", "slots"),
        ),
        PaperFigure(
            name="fig-10",
            title="Cost over the bound as jobs grow",
            claim="The ratio stays about the same as the number of jobs per slot grows.",
            rows=_fig10,
            judge=_stable("jobs per slot"),
            chart=_ratio_chart("jobs_per_slot", "policy", "jobs per slot"),
        ),
        _over_data(
            "fig-11", "transfer", "Data transfer cost (C1)", "Central and OASiS move the most data; Local none.",
            _order("transfer", "local", "central"),
        ),
        _over_data(
            "fig-12", "rent", "Resource cost (C2)", "OASiS pays the least rent, Local the most.",
            _order("rent", "oasis", "local"),
        ),
        _over_data(
            "fig-13", "deploy", "Deployment cost (C3)", "Stable over the data size, small for all.",
            _order("deploy", "mlbroker", "local"),
        ),
        _over_data(
            "fig-14", "traffic", "Traffic cost (C4)", "mlBroker exchanges less than Local and OASiS.",
            _order("traffic", "mlbroker-paper", "local"),
        ),
        PaperFigure(
            name="table-4",
            title="Costs in the real experiment (scaled copy)",
            claim="mlBroker 1070 USD, Central 1100, OASiS 1201, Local 1386.",
            rows=data.table4,
            judge=_table4,
            chart=_bars("usd", "USD", x="part", series="policy"),
        ),
        PaperFigure(
            name="table-5",
            title="Instance hours, discount rate and rent (scaled copy)",
            claim="Central runs the fewest hours (389), mlBroker has the largest discount (rate 0.85).",
            rows=data.table5,
            judge=_table5,
            chart=_bars("value", "hours, rate, USD", x="what", series="policy"),
        ),
        PaperFigure(
            name="fig-15",
            title="Total cost in the real experiment (scaled copy)",
            claim="mlBroker costs least.",
            rows=partial(data.real_column, column="cost"),
            judge=partial(_least, "cost", "mlbroker"),
            chart=_bars("cost", "USD"),
        ),
        PaperFigure(
            name="fig-16",
            title="Total running time (scaled copy)",
            claim="Central runs the fewest instance hours.",
            rows=partial(data.real_column, column="hours"),
            judge=partial(_least, "hours", "central"),
            chart=_bars("hours", "instance hours"),
        ),
        PaperFigure(
            name="fig-17",
            title="Discount rate (scaled copy)",
            claim="mlBroker pays the smallest part of the list price.",
            rows=partial(data.real_column, column="discount"),
            judge=partial(_least, "discount", "mlbroker"),
            chart=_bars("discount", "paid / list price"),
        ),
        PaperFigure(
            name="growth",
            title="Time of a slot over the jobs in it, 15 sites (ours, beyond the paper)",
            claim="Not in the paper. Ours: time per slot grows no worse than linearly in the jobs.",
            rows=growth_figure,
            judge=judge_growth,
            chart=Chart(
                x="jobs", y="seconds", series="line", low="low", high="high", x_label="jobs in the slot",
                y_label="CPU seconds", log_x=True, log_y=True,
            ),
        ),
    ),
)  # fmt: skip
