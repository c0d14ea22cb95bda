"""Why the winner wins, in plain sentences computed from the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradewind.engine.intervals import texts
from tradewind.model.setup import SENSE
from tradewind.report.figures.time import Drawn
from tradewind.report.quantities import COSTS, better, duration, measure, name, number, percent
from tradewind.report.summary import Group, paired

TIE = 1e-9
CLOSE = 0.01
"""A lead below one percent is compared with the last policy instead of the second."""


def explain(drawn: Sequence[Drawn]) -> list[str]:
    """Sentences about the first of `drawn` (best first): the result, how sure it is, the bound, the reasons."""
    best = drawn[0]
    if math.isnan(best.group.value.mean):
        return [f"No policy reached a value of the objective, {name(best.group.objective)}."]
    rivals = [d for d in drawn[1:] if d.group.sound and math.isfinite(d.group.value.mean)]
    said = [_headline(best.group, [d.group for d in rivals])]
    if rivals:
        said.append(_certainty(best.group, rivals[0].group))
    said.append(_bound(best.group))
    if not rivals:
        said.extend(_alone(best))
    else:
        rival = rivals[0] if _lead(best.group, rivals[0].group) >= CLOSE else rivals[-1]
        if _lead(best.group, rival.group) >= TIE:
            said.extend(_reasons(best, rival))
    said.extend(_warnings(drawn))
    return [s for s in said if s]


def _lead(best: Group, rival: Group) -> float:
    """By which share of the rival's value the best is better; nan-free, 0 where the rival's is 0."""
    a, b = best.value.mean, rival.value.mean
    return abs(a - b) / abs(b) if b else (0.0 if a == b else math.inf)


def _headline(best: Group, rivals: Sequence[Group]) -> str:
    metric = best.objective
    reached = f"{best.label} reaches the {better(metric)} {name(metric)}: {measure(metric, best.value.mean)}"
    if not rivals:
        return f"{best.label}: {name(metric)} {measure(metric, best.value.mean)}."
    second, last = rivals[0], rivals[-1]
    if _lead(best, second) < TIE:
        level = [g.label for g in rivals if _lead(best, g) < TIE]
        tail = "" if len(level) == len(rivals) else f" {last.label} is {_apart(best, last)}."
        return f"{_and([best.label, *level])} reach the same {name(metric)}: {measure(metric, best.value.mean)}.{tail}"
    if len(rivals) == 1:
        return f"{reached}, {_apart(best, second, turned=True)} {second.label}."
    return (
        f"{reached}, {_apart(best, second, turned=True)} {second.label}, which comes second, "
        f"and {_apart(best, last, turned=True)} {last.label}, the last."
    )


def _apart(best: Group, other: Group, turned: bool = False) -> str:
    """`12% below`: where the best stands as seen from the other (turned), or the other as seen from the best."""
    a, b = best.value.mean, other.value.mean
    here, there = (a, b) if turned else (b, a)
    side = "below" if here < there else "above"
    if a * b <= 0 or abs(here - there) > 3 * abs(there):
        return f"{measure(best.objective, abs(a - b))} {side}"
    return f"{percent(abs(here - there) / abs(there))} {side}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _certainty(best: Group, second: Group) -> str:
    gap = paired(best, second)
    metric = best.objective
    if _lead(best, second) < TIE:
        return ""
    if gap.n < 2:
        return "This is one seed only: how much of the difference is chance remains open."
    if gap.half <= TIE * abs(best.value.mean):
        return f"All {gap.n} seeds give exactly this difference."
    text = f"Over {gap.n} seeds the difference to {second.label} is {measure(metric, abs(gap.mean))} "
    text += f"± {measure(metric, gap.half, gap.mean)} (95% interval of the paired differences)"
    return f"{text}, more than chance." if abs(gap.mean) > gap.half else f"{text}: too close to call."


def _bound(best: Group) -> str:
    bound, ratio = best.first.bound, best.ratio
    if bound is None or not math.isfinite(ratio.mean):
        return ""
    kind = "certified" if bound.kind == "certified" else "expected"
    if abs(ratio.mean - 1) < 1e-6:
        return f"It meets the {kind} offline bound: nothing better exists."
    value = measure(best.objective, best.bound.mean)
    if SENSE[best.objective] == "min":
        where = f"It lies {percent(ratio.mean - 1)} above"
    else:
        where = f"It reaches {percent(ratio.mean)} of"
    return f"{where} the {kind} offline bound of {value}, which knows the whole future."


def _reasons(best: Drawn, rival: Drawn) -> list[str]:
    metric = best.group.objective
    if metric == "cost_usd":
        return [_books(best.group, rival.group)]
    if metric in ("profit_usd", "welfare_usd", "utility"):
        return [_counts(best.group, rival.group), _books(best.group, rival.group), _busy(best, rival)]
    return [_waiting(best, rival), _spread(best, rival), _busy(best, rival)]


def _alone(d: Drawn) -> list[str]:
    """What can be said of a single policy."""
    said = []
    done, arrived = len(d.facts.completion_s), len(d.facts.arrived)
    if arrived:
        said.append(f"{number(done)} of {number(arrived)} jobs are completed.")
    if d.facts.wait_mean_s > 1e-6:
        said.append(f"A job is without workers for {duration(d.facts.wait_mean_s)} on average.")
    if done >= 20:
        half, slow = np.quantile(d.facts.completion_s, (0.5, 0.99))
        said.append(
            f"Half of them are done after {duration(half)}, the slowest hundredth takes {duration(slow)} or more."
        )
    if math.isfinite(d.facts.load) and d.facts.load > 0:
        kind = d.facts.land.kinds.names[d.facts.main_kind]
        said.append(f"{percent(d.facts.load)} of all {kind} are busy until the last job is done.")
    return said


def _waiting(best: Drawn, rival: Drawn) -> str:
    a, b = best.facts.wait_mean_s, rival.facts.wait_mean_s
    if max(a, b) < 1e-6:
        return ""
    return (
        f"A job is without workers for {duration(a)} on average, under {rival.group.label} for {duration(b)}."
    )


def _spread(best: Drawn, rival: Drawn) -> str:
    """Median and slowest hundredth of the jobs that both would have to serve."""
    a, b = best.facts.completion_s, rival.facts.completion_s
    if min(len(a), len(b)) < 20:
        return ""
    (half_a, slow_a), (half_b, slow_b) = (np.quantile(x, (0.5, 0.99)) for x in (a, b))
    text = f"Half of the jobs are done after {duration(half_a)} ({rival.group.label}: {duration(half_b)}); "
    text += (
        f"the slowest hundredth takes {duration(slow_a)} or more ({rival.group.label}: {duration(slow_b)})"
    )
    return text + (", which is the price of it." if slow_a > 1.05 * slow_b and half_a < half_b else ".")


def _busy(best: Drawn, rival: Drawn) -> str:
    a, b = best.facts.load, rival.facts.load
    if not (math.isfinite(a) and math.isfinite(b)) or max(a, b) == 0:
        return ""
    kind = best.facts.land.kinds.names[best.facts.main_kind]
    return f"It keeps {percent(a)} of all {kind} busy until its last job is done ({rival.group.label}: {percent(b)})."


def _books(best: Group, rival: Group) -> str:
    """The book of costs in which the two differ most."""
    gaps = {b: np.nan_to_num(best.metric(b).mean) - np.nan_to_num(rival.metric(b).mean) for b in COSTS}
    book = max(COSTS, key=lambda b: abs(gaps[b]))
    if abs(gaps[book]) < TIE:
        return ""
    side = "less" if gaps[book] < 0 else "more"
    text = f"The largest difference in cost is {name(book)}: {measure(book, abs(gaps[book]))} {side} than {rival.label}"
    against = [b for b in COSTS if gaps[b] * gaps[book] < 0 and abs(gaps[b]) > 0.02 * abs(gaps[book])]
    if against:
        other = "more" if side == "less" else "less"
        text += f", for {_and([f'{measure(b, abs(gaps[b]))} {other} of {name(b)}' for b in against])}"
    return text + "."


def _counts(best: Group, rival: Group) -> str:
    for metric, verb in (("jobs_accepted", "accepts"), ("jobs_completed", "completes")):
        a, b = best.metric(metric).mean, rival.metric(metric).mean
        if math.isfinite(a) and math.isfinite(b) and a != b:
            return f"It {verb} {number(a)} jobs ({rival.label}: {number(b)})."
    return ""


def _warnings(drawn: Sequence[Drawn]) -> list[str]:
    said = [
        f"{d.group.label} broke a rule of the audit and is not ranked." for d in drawn if not d.group.sound
    ]
    if drawn[0].group.objective in ("jct_mean_s", "makespan_s", "epoch_s"):
        for d in drawn:
            state = texts(d.facts.run, "outcomes", "state")
            missing = int(np.isin(state, ("unfinished", "refused", "declined")).sum())
            if missing:
                said.append(
                    f"{d.group.label} leaves {number(missing)} of {number(len(state))} jobs without completion; "
                    "its mean covers only the others."
                )
    if len(said) > 3 and len({s.partition(" leaves ")[2] for s in said}) == 1:
        said = [
            "All policies leave "
            + said[0].partition(" leaves ")[2].replace("its mean covers", "their means cover")
        ]
    return said
