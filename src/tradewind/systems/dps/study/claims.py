"""Predicates that judge what the paper says of its Figures 2-7, for the printed algorithm and for ours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tradewind.lab.study import Claims, Holds, Judged, Row, mean_of

PAPER, OURS = "dps-paper", "dps"
claim = Claims(PAPER, OURS)


def curve(rows: Sequence[Row], **where: str | float) -> dict[float, Row]:
    """Slot -> row of one curve, in the order of time."""
    mine = [r for r in rows if all(r[key] == want for key, want in where.items())]
    return {float(r["slot"]): r for r in sorted(mine, key=lambda r: float(r["slot"]))}


def at(line: dict[float, Row], slot: float) -> Row:
    """The first row of a curve at or after a slot."""
    return next(row for t, row in line.items() if t >= slot)


def peak(line: dict[float, Row]) -> float:
    """Slot of the largest mean regret."""
    return max(line, key=lambda t: float(line[t]["regret"]))


def last(line: dict[float, Row]) -> Row:
    """The end of a curve."""
    return line[max(line)]


def turns(rows: Sequence[Row], policy: str) -> Judged:
    """The regret is largest near slot 1120 (within half of it) and smaller at the end."""
    line = curve(rows, policy=policy, against="bfp")
    top = peak(line)
    held = 560 <= top <= 1680 and float(last(line)["high"]) < float(line[top]["low"])
    return Judged(held, f"largest at slot {top:,.0f}: {float(line[top]['regret']):,.0f}; {_end(line)}")


def _end(line: dict[float, Row]) -> str:
    return f"at the end {_ranged(last(line))}"


def _ranged(row: Row) -> str:
    return f"{float(row['regret']):,.0f} ({float(row['low']):,.0f} to {float(row['high']):,.0f})"


def _below(less: Row, more: Row) -> bool:
    """Whether a regret lies below another one beyond chance."""
    return float(less["high"]) < float(more["low"])


def zero(against: str) -> Holds:
    """After slot 3140 the regret is back to zero: its interval reaches zero, and not the largest value."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        line = curve(rows, policy=policy, against=against)
        row = at(line, 3140)
        held = float(row["low"]) <= 0 and float(row["high"]) < float(line[peak(line)]["low"])
        return Judged(held, f"{_ranged(row)} at slot {float(row['slot']):,.0f}")

    return holds


def negative(against: str) -> Holds:
    """At the end the regret is below zero beyond chance, and below that of half time."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        line = curve(rows, policy=policy, against=against)
        half = float(at(line, max(line) / 2)["regret"])
        held = float(last(line)["high"]) < 0 and float(last(line)["regret"]) < half
        return Judged(held, f"{half:,.0f} at half time, {_end(line)}")

    return holds


def below(*rivals: str) -> Holds:
    """At the end the regret lies below that of every rival beyond chance."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        mine, *others = (last(curve(rows, policy=p, against="bfp")) for p in (policy, *rivals))
        text = ", ".join(f"{float(o['regret']):,.0f} of {n}" for n, o in zip(rivals, others, strict=True))
        return Judged(all(_below(mine, o) for o in others), f"{float(mine['regret']):,.0f} against {text}")

    return holds


def ratio(rival: str, claimed: float) -> Holds:
    """The interval of profit over the rival's lies above 1 and reaches what is claimed."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        row = next(r for r in rows if r["policy"] == rival)
        value, low, high = (float(row[f"{policy} over it{end}"]) for end in ("", " low", " high"))
        return Judged(low > 1 and high >= claimed, f"{value:.0%} of {rival} ({low:.0%} to {high:.0%})")

    return holds


def grows(rivals: Sequence[str]) -> Holds:
    """The share of every rival's profit is larger at the end than at half time, beyond chance."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        column, parts, held = f"{policy} over it, gain", [], True
        for row in (r for r in rows if r["policy"] in rivals):
            gain, low, high = (100 * float(row[f"{column}{end}"]) for end in ("", " low", " high"))
            held = held and low > 0
            parts.append(f"{row['policy']} {gain:+.0f} ({low:+.0f} to {high:+.0f})")
        return Judged(held, f"percentage points from half time to the end: {', '.join(parts)}")

    return holds


def _by_jobs(rows: Sequence[Row], policy: str) -> dict[float, dict[float, Row]]:
    sizes = sorted({float(r["jobs"]) for r in rows})
    return {n: curve(rows, policy=policy, jobs=n) for n in sizes}


def starts_small(rows: Sequence[Row], policy: str) -> Judged:
    """Early regret grows with the number of jobs, by every step beyond chance."""
    found = {n: at(line, 1000) for n, line in _by_jobs(rows, policy).items()}
    text = ", ".join(f"{float(r['regret']):,.0f} with {n:,.0f} jobs" for n, r in found.items())
    return Judged(all(_below(a, b) for a, b in pairwise(found.values())), f"at slot 1000 {text}")


def falls_faster(rows: Sequence[Row], policy: str) -> Judged:
    """After its peak the regret falls beyond chance, on average by more per slot the more jobs there are."""
    found, clear = {}, 0
    for n, line in _by_jobs(rows, policy).items():
        top = peak(line)
        span = max(max(line) - top, 1.0)
        found[n] = (float(last(line)["regret"]) - float(line[top]["regret"])) / span
        clear += _below(last(line), line[top])
    text = ", ".join(f"{v:.3g} per slot with {n:,.0f} jobs" for n, v in found.items())
    held = clear == len(found) and all(b < a for a, b in pairwise(found.values()))
    return Judged(held, f"{text}; clearly below its largest value in {clear} of {len(found)}")


def _ends(rows: Sequence[Row], name: str) -> dict[str, Row]:
    return {str(v): last(curve(rows, **{name: v})) for v in dict.fromkeys(r[name] for r in rows)}


def smallest(name: str, chosen: str) -> Holds:
    """At the end the chosen constant has the smallest regret: its interval lies below all others."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        del policy
        ends = _ends(rows, name)
        mine = ends[chosen]
        beaten = sum(_below(mine, r) for r in ends.values())
        text = ", ".join(f"{key}: {float(r['regret']):,.0f}" for key, r in ends.items())
        found = f"regret at the end by {name}: {text}; clearly below {beaten} of {len(ends) - 1} others"
        return Judged(beaten == len(ends) - 1, found)

    return holds


def worse(name: str, extreme: str, than: str) -> Holds:
    """At the end an extreme constant has more regret than a middle one, beyond chance."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        del policy
        bad, good = (last(curve(rows, **{name: v})) for v in (extreme, than))
        found = f"{float(bad['regret']):,.0f} with {extreme}, {float(good['regret']):,.0f} with {than}"
        return Judged(_below(good, bad), found)

    return holds


def _thetas(rows: Sequence[Row]) -> list[str]:
    return sorted({str(r["theta"]) for r in rows} - {"formula"}, key=float)


def shorter_is_smaller(rows: Sequence[Row], policy: str) -> Judged:
    """At slot 1000 the regret grows with theta, from the smallest to the largest beyond chance."""
    del policy
    found = {t: at(curve(rows, theta=t), 1000) for t in _thetas(rows)}
    text = ", ".join(f"{float(r['regret']):,.0f} with {t}" for t, r in found.items())
    first, *_, end = found.values()
    held = all(float(a["regret"]) <= float(b["regret"]) for a, b in pairwise(found.values()))
    return Judged(held and _below(first, end), f"at slot 1000 {text}")


def shorter_falls_slower(rows: Sequence[Row], policy: str) -> Judged:
    """Over the second half the regret falls beyond chance, on average by less the smaller theta is."""
    del policy
    found, clear = {}, 0
    for t in _thetas(rows):
        line = curve(rows, theta=t)
        half = at(line, max(line) / 2)
        found[t] = float(last(line)["regret"]) - float(half["regret"])
        clear += _below(last(line), half)
    text = ", ".join(f"{v:+,.0f} with {t}" for t, v in found.items())
    held = clear == len(found) and all(b < a for a, b in pairwise(found.values()))
    return Judged(held, f"change of the regret over the second half: {text}")


def earns_more(rival: str) -> Holds:
    """More profit than the rival from slot 4000 on, by more and more, at the end beyond chance seed by seed."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        line, column = curve(rows, policy=policy), f"over {rival}"
        gap = {t: float(row[column]) for t, row in line.items() if t >= 4000}
        first, end = gap[min(gap)], gap[max(gap)]
        low, high = (float(last(line)[f"{column} {side}"]) for side in ("low", "high"))
        held = all(g > 0 for g in gap.values()) and end > first and low > 0
        text = f"{first:+,.0f} against {rival} at slot 4000, {end:+,.0f} ({low:+,.0f} to {high:+,.0f}) at the end"
        return Judged(held, text)

    return holds


def total_shorter(rows: Sequence[Row], policy: str) -> Judged:
    """The total runtime of completed jobs, however many, is less than with random placement from slot 1000 on.

    The difference grows, and at the end it is beyond chance.
    """
    mine, other = curve(rows, policy=policy), curve(rows, policy="dps-rs")
    off = {t: float(other[t]["runtime"]) - float(row["runtime"]) for t, row in mine.items() if t >= 1000}
    end = max(off)
    clear = float(mine[end]["runtime high"]) < float(other[end]["runtime low"])
    held = all(v > 0 for v in off.values()) and off[end] > off[min(off)] and clear
    found = f"{float(mine[end]['runtime']):,.0f} slots against {float(other[end]['runtime']):,.0f} at random"
    return Judged(
        held, f"total runtime of completed jobs at the end {found}; least difference {min(off.values()):,.0f}"
    )


def runs_shorter(rows: Sequence[Row], policy: str) -> Judged:
    """Jobs completed so far ran shorter than with random placement at every point, in total by more and more.

    At the end they ran shorter beyond chance.
    """
    mine, other = curve(rows, policy=policy), curve(rows, policy="dps-rs")
    times = [t for t in mine if float(mine[t]["mean runtime"]) > 0 and float(other[t]["mean runtime"]) > 0]
    off = {t: float(other[t]["mean runtime"]) - float(mine[t]["mean runtime"]) for t in times}
    saved = {t: off[t] * float(mine[t]["runtime"]) / float(mine[t]["mean runtime"]) for t in times}
    end = times[-1]
    clear = float(mine[end]["mean runtime high"]) < float(other[end]["mean runtime low"])
    held = all(v > 0 for v in off.values()) and saved[end] > saved[times[len(times) // 2]] and clear
    found = f"{float(mine[end]['mean runtime']):.0f} slots against {float(other[end]['mean runtime']):.0f} at random"
    return Judged(held, f"mean runtime of completed jobs {found}; least difference {min(off.values()):.1f}")


def meets(market: str, required: float) -> Holds:
    """Our requirement for a market."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        found = mean_of(rows, "of bfp", market=market, policy=policy)
        return Judged(found >= required, f"{found:.2f} of bfp")

    return holds
