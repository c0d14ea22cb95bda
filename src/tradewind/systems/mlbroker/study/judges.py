"""Verdicts on the claims of the mlBroker paper: rows of a figure -> finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tradewind.lab.study import Finding, Row, Word

Judge = Callable[[Sequence[Row]], Finding]


def _yes(held: bool) -> str:
    return "yes" if held else "no"


def _number(value: float) -> str:
    """Whole numbers from 10 on, three decimals below."""
    return f"{value:.0f}" if value >= 10 else f"{value:.3f}"


def _mean(rows: Sequence[Row], column: str, **where: str | float) -> float:
    """Mean of a column over the rows that match."""
    values = [float(row[column]) for row in rows if all(row[k] == v for k, v in where.items())]
    return sum(values) / len(values) if values else float("nan")


def below(column: str, limit: float, what: str) -> Judge:
    """Reproduced if every value is below the paper's limit."""

    def judge(rows: Sequence[Row]) -> Finding:
        worst = max(float(row[column]) for row in rows)
        word: Word = "reproduced" if worst < limit else "not reproduced"
        return Finding(word=word, reason=f"{what}: at most {worst:.4f}, the paper says below {limit:g}")

    return judge


def fig6(rows: Sequence[Row]) -> Finding:
    """The ratio falls with the data size, rises with worker speed and stays below 2.5."""
    sizes = sorted({float(row["data_gb"]) for row in rows})
    falls = _mean(rows, "ratio", data_gb=sizes[-1]) < _mean(rows, "ratio", data_gb=sizes[0])
    speeds = sorted({str(row["P"]) for row in rows})
    rises = _mean(rows, "ratio", P=speeds[-1]) > _mean(rows, "ratio", P=speeds[0])
    worst = max(float(row["ratio"]) for row in rows)
    below = worst < 2.5
    count = sum((falls, rises, below))
    return Finding(
        word="reproduced" if count == 3 else "partly reproduced" if count else "not reproduced",
        reason=f"falls with data: {_yes(falls)}; rises with P: {_yes(rises)}; worst {worst:.3f} (the paper: below 2.5)",
    )


def fig7(rows: Sequence[Row]) -> Finding:
    """A_round is below independent and greedy rounding everywhere."""
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
        "roundings over-provisions, Round2 alone does not",
    )  # fmt: skip


def _cheapest(rows: Sequence[Row], column: str, ours: str, rivals: Sequence[str]) -> tuple[int, int, str]:
    """Wins and comparisons of `ours` against rivals over all data sizes, and the range of savings as text."""
    wins = points = 0
    savings = []
    for rival in rivals:
        save = []
        for row in rows:
            if row["policy"] == rival:
                mine = _mean(rows, column, policy=ours, data_gb=row["data_gb"])
                points += 1
                wins += mine <= float(row[column]) * (1 + 1e-9)
                save.append(1.0 - mine / float(row[column]))
        savings.append(f"{rival} {100 * min(save):.1f} to {100 * max(save):.1f}%")
    return wins, points, ", ".join(savings)


def fig8(rows: Sequence[Row]) -> Finding:
    """The paper's pipeline costs less than its baselines everywhere."""
    wins, points, paper = _cheapest(rows, "cost", "mlbroker-paper", ("oasis", "local", "central"))
    own = _cheapest(rows, "cost", "mlbroker", ("oasis", "local", "central", "selfish", "mlbroker-paper"))
    word: Word = "reproduced" if wins == points else "partly reproduced" if wins else "not reproduced"
    return Finding(
        word=word,
        reason=f"the paper's pipeline is cheapest in {wins} of {points} comparisons (it saves against {paper}); "
        f"our search in {own[0]} of {own[1]} ({own[2]})",
    )


def order(column: str, low: str, high: str) -> Judge:
    """Reproduced if policy `low` is not above `high` on average."""

    def judge(rows: Sequence[Row]) -> Finding:
        a, b = _mean(rows, column, policy=low), _mean(rows, column, policy=high)
        word: Word = "reproduced" if a <= b else "not reproduced"
        return Finding(word=word, reason=f"{low} {a:.1f} USD against {high} {b:.1f} USD")

    return judge


def stable(key: str) -> Judge:
    """Reproduced if the paper's pipeline is at most 3 times the certified bound."""

    def judge(rows: Sequence[Row]) -> Finding:
        worst = max(float(row["ratio"]) for row in rows if row["policy"] == "mlbroker-paper")
        ours = max(float(row["ratio"]) for row in rows if row["policy"] == "mlbroker")
        word: Word = "reproduced" if worst <= 3.0 else "not reproduced"
        return Finding(
            word=word,
            reason=f"the paper's pipeline costs at most {worst:.3f} times the certified bound over all {key} "
            f"(the paper: up to 3), our search {ours:.4f} times",
        )

    return judge


def table4(rows: Sequence[Row]) -> Finding:
    """The paper's pipeline costs less than its baselines in the real experiment."""
    total = {str(r["policy"]): float(r["usd"]) for r in rows if r["part"] == "cost"}
    rivals = {name: total[name] for name in ("local", "central", "oasis")}
    paper = all(total["mlbroker-paper"] < usd for usd in rivals.values())
    ours = all(total["mlbroker"] <= usd for usd in rivals.values())
    word: Word = "reproduced" if paper else "partly reproduced" if ours else "not reproduced"
    means = ", ".join(f"{name} {usd:.0f}" for name, usd in total.items())
    return Finding(
        word=word, reason=f"mean USD: {means}. The paper: mlBroker 1070, Local 1386, Central 1100, OASiS 1201"
    )


def least(column: str, policy: str, rows: Sequence[Row]) -> Finding:
    """Reproduced if `policy` has the lowest value, up to 0.1%; `mlbroker-paper` is left out."""
    values = {str(row["policy"]): float(row[column]) for row in rows if row["policy"] != "mlbroker-paper"}
    best = min(values, key=lambda name: values[name])
    near = values[policy] <= values[best] * 1.001
    listed = ", ".join(f"{name} {_number(value)}" for name, value in values.items())
    return Finding(word="reproduced" if near else "not reproduced", reason=f"{column}: {listed}")


def table5(rows: Sequence[Row]) -> Finding:
    """Central has the fewest instance hours, mlBroker the largest discount."""
    table = [{"policy": r["policy"], str(r["what"]): r["value"]} for r in rows]
    hours = least("hours", "central", [r for r in table if "hours" in r])
    rate = least("discount", "mlbroker", [r for r in table if "discount" in r])
    good = [finding.word == "reproduced" for finding in (hours, rate)]
    word: Word = "reproduced" if all(good) else "partly reproduced" if any(good) else "not reproduced"
    return Finding(word=word, reason=f"{hours.reason}; {rate.reason}")
