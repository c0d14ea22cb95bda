"""Predicates over the rows of the mlBroker figures: (rows, policy) -> whether the claim holds, and our numbers.

"Clear" means beyond chance: the 95% interval of what is saved on the same seeds does not reach zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tradewind.lab.study import Holds, Judged, Row

RIVALS = ("oasis", "local", "central")
LITTLE = 0.05
"""Where the paper says "little" or "small" without a number: at most 5%."""
STABLE = 0.10
"""Where it says "stable" without a number: a change of at most 10%, with its interval."""
SLIGHT = 0.25
"""Where it says "slightly" without a number: at most a quarter."""


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3f}"


def only(holds: Holds, **where: str | float) -> Holds:
    """The predicate on the rows with these values."""
    return lambda rows, policy: holds([r for r in rows if all(r[k] == v for k, v in where.items())], policy)


def at_end(holds: Holds, x: str, *, largest: bool) -> Holds:
    """The predicate on the rows with the smallest or largest x."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        end = (max if largest else min)(float(r[x]) for r in rows)
        found = holds([r for r in rows if float(r[x]) == end], policy)
        return Judged(found.holds, f"at {end:g}: {found.found}")

    return judge


def below(column: str, limit: float, who: str = "") -> Holds:
    """Every value of the policy is below the limit, with its interval; `who`: the column that names the policy."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        mine = [r for r in rows if not who or r[who] == policy]
        worst = max(mine, key=lambda r: float(r[column]))
        high = max(float(r["high"]) for r in mine)
        return Judged(high < limit, f"at most {float(worst[column]):.4f}, intervals up to {high:.4f}")

    return judge


def little_impact(rows: Sequence[Row], policy: str) -> Judged:
    """The ratios of all settings are within 5% of each other, with their intervals."""
    del policy
    values = [float(r["ratio"]) for r in rows]
    apart = max(float(r["high"]) for r in rows) / min(float(r["low"]) for r in rows) - 1
    return Judged(
        0 <= apart <= LITTLE,
        f"means from {min(values):.4f} to {max(values):.4f}, intervals within {_percent(apart)}",
    )


def changes(column: str, *, rises: bool) -> Holds:
    """The change over x is clear in every series, upwards or downwards."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        del policy
        sign = 1 if rises else -1
        clear = all(
            min(sign * float(r[f"{column} low"]), sign * float(r[f"{column} high"])) > 0 for r in rows
        )
        found = [float(r[column]) for r in rows]
        return Judged(clear, f"changes by {_percent(min(found))} to {_percent(max(found))}")

    return judge


def _saved(rows: Sequence[Row], policy: str, rivals: Sequence[str], least: float) -> tuple[bool, str]:
    """Whether the policy clearly saves more than `least` against every rival in every row, and the ranges as text."""
    column, parts, held = f"saved by {policy}", [], True
    for rival in rivals:
        mine = [r for r in rows if r["policy"] == rival]
        saved = [float(r[column]) for r in mine]
        clear = sum(float(r[f"{column} low"]) > least for r in mine)
        held = held and clear == len(mine)
        extent = _percent(min(saved)) + (f" to {_percent(max(saved))}" if len(saved) > 1 else "")
        parts.append(f"{rival} {extent} (clear in {clear} of {len(mine)})")
    return held, ", ".join(parts)


def cheaper(*rivals: str, least: float = 0.0) -> Holds:
    """The policy clearly saves more than `least` against every rival in every row."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        held, text = _saved(rows, policy, [r for r in rivals if r != policy], least)
        return Judged(held, f"saves against {text}")

    return judge


def within(limit: float, of: str) -> Holds:
    """The policy costs at most `limit` times the policy `of` in every row, with its interval."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        column = f"saved by {policy}"
        mine = [r for r in rows if r["policy"] == of]
        most = max(1.0 - float(r[f"{column} low"]) for r in mine)
        return Judged(
            most <= limit,
            f"at most {max(1.0 - float(r[column]) for r in mine):.3f} times, intervals to {most:.3f}",
        )

    return judge


def crossover(rows: Sequence[Row], policy: str) -> Judged:
    """Central is clearly cheaper than Local with the smallest data, and Local than Central with the largest."""
    del policy
    small, large = (end(float(r["data_gb"]) for r in rows) for end in (min, max))
    early = _saved([r for r in rows if r["data_gb"] == small], "central", ("local",), 0.0)
    late = _saved([r for r in rows if r["data_gb"] == large], "local", ("central",), 0.0)
    return Judged(
        early[0] and late[0],
        f"at {small:g} GB central saves against {early[1]}; at {large:g} GB local saves against {late[1]}",
    )


def grows_slightly(rows: Sequence[Row], policy: str) -> Judged:
    """The ratio rises clearly over x, by a quarter at most."""
    mine = next(r for r in rows if r["policy"] == policy)
    change, low, high = (float(mine[c]) for c in ("change", "change low", "change high"))
    return Judged(
        low > 0 and change <= SLIGHT, f"changes by {100 * change:.2f}% ({100 * low:.2f} to {100 * high:.2f}%)"
    )


def stable(*policies: str) -> Holds:
    """The change over x is at most 10%, with its interval, for the policy or for those named."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        parts, held = [], True
        for name in policies or (policy,):
            mine = next(r for r in rows if r["policy"] == name)
            held = held and float(mine["change low"]) >= -STABLE and float(mine["change high"]) <= STABLE
            extent = " to ".join(_percent(float(mine[c])) for c in ("change low", "change high"))
            parts.append(f"{name} {_percent(float(mine['change']))} ({extent})")
        return Judged(held, f"changes by {', '.join(parts)}")

    return judge


def transfer_rises(rows: Sequence[Row], policy: str) -> Judged:
    """Data cost rises clearly for the policy, Central and OASiS, and by more dollars for the latter two."""
    ends = [end(float(r["data_gb"]) for r in rows) for end in (min, max)]
    rise, clear = {}, True
    for name in (policy, "central", "oasis"):
        first, last = (next(r for r in rows if r["policy"] == name and r["data_gb"] == x) for x in ends)
        rise[name] = float(last["transfer"]) - float(first["transfer"])
        clear = clear and float(first["change low"]) > 0
    text = ", ".join(f"{name} by {_number(usd)} USD" for name, usd in rise.items())
    return Judged(clear and rise[policy] < min(rise["central"], rise["oasis"]), f"rises for {text}")


def small_part(rows: Sequence[Row], policy: str) -> Judged:
    """Deployment costs of all algorithms differ by at most 5% of the policy's total cost."""
    most = 0.0
    for x in {r["data_gb"] for r in rows}:
        here = {str(r["policy"]): r for r in rows if r["data_gb"] == x}
        usd = [float(here[name]["deploy"]) for name in (policy, *RIVALS)]
        most = max(most, (max(usd) - min(usd)) / float(here[policy]["total"]))
    return Judged(most <= LITTLE, f"the difference is at most {_percent(most)} of its total cost")


def large_part(rows: Sequence[Row], policy: str) -> Judged:
    """Rent is more than half of the total cost of the policy and of every rival at every data size."""
    parts = {
        name: [float(r["rent"]) / float(r["total"]) for r in rows if r["policy"] == name]
        for name in (policy, *RIVALS)
    }
    text = ", ".join(f"{n} {_percent(min(v))} to {_percent(max(v))}" for n, v in parts.items())
    return Judged(all(min(v) > 1 / 2 for v in parts.values()), text)


def _clearly_less(less: Row, more: Row) -> bool:
    """Whether one policy has less than another beyond chance: on the same seeds where compared, else by intervals."""
    column = f"saved by {less['policy']} low"
    return float(more[column]) > 0 if column in more else float(less["high"]) < float(more["low"])


def in_order(value: str, *order: str) -> Holds:
    """Ascending order, each clearly less than the next; "" stands for the policy that is judged."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        found = {str(r["policy"]): r for r in rows}
        names = [name or policy for name in order]
        mine = [found[name] for name in names]
        text = ", ".join(f"{name} {_number(float(r[value]))}" for name, r in zip(names, mine, strict=True))
        clear = [_clearly_less(a, b) for a, b in pairwise(mine)]
        return Judged(all(clear), f"{text}; clear in {sum(clear)} of {len(clear)} steps")

    return judge


def printed_savings(printed: dict[str, float]) -> Holds:
    """What the policy saves against each rival is clear and reaches the number that follows from Table 4."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        column, parts, held = f"saved by {policy}", [], True
        for rival, claimed in printed.items():
            row = next(r for r in rows if r["policy"] == rival)
            saved, low, high = (float(row[f"{column}{end}"]) for end in ("", " low", " high"))
            held = held and low > 0 and high >= claimed
            parts.append(
                f"{rival} {_percent(saved)} ({_percent(low)} to {_percent(high)}, printed {_percent(claimed)})"
            )
        return Judged(held, f"saves against {', '.join(parts)}")

    return judge


def parts_ordered(rows: Sequence[Row], policy: str) -> Judged:
    """Rent is the largest part of the policy's cost and data the smallest that is not zero, by their intervals."""
    mine = {str(r["part"]): r for r in rows if r["policy"] == policy and r["part"] != "cost"}
    others = [float(r["high"]) for part, r in mine.items() if part != "rent"]
    rest = [float(r["low"]) for part, r in mine.items() if part != "transfer" and float(r["usd"]) > 0]
    text = ", ".join(f"{part} {_number(float(r['usd']))}" for part, r in mine.items())
    held = float(mine["rent"]["low"]) > max(others) and float(mine["transfer"]["high"]) <= min(rest)
    return Judged(held, f"USD: {text}")


def waits(rows: Sequence[Row], policy: str) -> Judged:
    """Central waits for no parameters, and the policy clearly waits less than Local."""
    found = {str(r["policy"]): r for r in rows}
    text = ", ".join(f"{name} {float(r['value']):.1f} h" for name, r in found.items())
    held = float(found["central"]["value"]) == 0 and _clearly_less(found[policy], found["local"])
    return Judged(held, f"waiting: {text}")
