"""Summary of a comparison in plain sentences: who wins, by how much, how certainly, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradewind.engine.intervals import texts
from tradewind.model.setup import SENSE
from tradewind.report.figures.data import Series
from tradewind.report.quantities import COSTS, better, duration, measure, name, number, percent, resource
from tradewind.report.summary import Group, paired

TIE = 1e-9
CLOSE = 0.01
"""With a lead below one percent, the reasons compare the winner with the last policy instead of the second."""
ENOUGH = 20
"""Fewest finished jobs for which quantiles of the completion time are reported."""


def sentences(series: Sequence[Series]) -> list[str]:
    """Sentences about the winner (series come best first): result, significance, bound, reasons, warnings."""
    best = series[0]
    if math.isnan(best.group.value.mean):
        return [f"No policy has a value for the objective, {name(best.group.objective)}.", *_warnings(series)]
    rivals = [s for s in series[1:] if s.group.sound and math.isfinite(s.group.value.mean)]
    found = [_headline(best.group, [s.group for s in rivals])]
    if rivals:
        found.append(_significance(best.group, rivals[0].group))
    found.append(_bound(best.group))
    if not rivals:
        found.extend(_alone(best))
    else:
        rival = rivals[0] if _lead(best.group, rivals[0].group) >= CLOSE else rivals[-1]
        if _lead(best.group, rival.group) >= TIE:
            found.extend(_reasons(best, rival))
    found.extend(_warnings(series))
    return [each for each in found if each]


def _lead(best: Group, rival: Group) -> float:
    """Difference as a share of the rival's value; infinite if that is 0 and the values differ."""
    a, b = best.value.mean, rival.value.mean
    return abs(a - b) / abs(b) if b else (0.0 if a == b else math.inf)


def _headline(best: Group, rivals: Sequence[Group]) -> str:
    metric = best.objective
    value = measure(metric, best.value.mean)
    if not rivals:
        return f"{best.label}: {name(metric)} {value}."
    second, last = rivals[0], rivals[-1]
    if _lead(best, second) < TIE:
        level = [g.label for g in rivals if _lead(best, g) < TIE]
        tail = "" if len(level) == len(rivals) else f" {last.label} is {_apart(last, best)}."
        return f"{_and([best.label, *level])} reach the same {name(metric)}: {value}.{tail}"
    text = f"{best.label} has the {better(metric)} {name(metric)}: {value}, {_apart(best, second)} {second.label}"
    if len(rivals) == 1:
        return f"{text}."
    return f"{text} (second) and {_apart(best, last)} {last.label} (last)."


def _apart(group: Group, other: Group) -> str:
    """`12% below`: where a group stands relative to another one."""
    a, b = group.value.mean, other.value.mean
    side = "below" if a < b else "above"
    if a * b <= 0 or abs(a - b) > 3 * abs(b):
        return f"{measure(group.objective, abs(a - b))} {side}"
    return f"{percent(abs(a - b) / abs(b))} {side}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _significance(best: Group, second: Group) -> str:
    gap = paired(best, second)
    metric = best.objective
    if _lead(best, second) < TIE:
        return ""
    if gap.n < 2:
        return "This is a single seed, so the difference may be chance; use --seeds to run more."
    if gap.half <= TIE * abs(best.value.mean):
        return f"{'Both' if gap.n == 2 else f'All {gap.n}'} seeds give exactly this difference."
    text = f"Over {gap.n} seeds the difference from {second.label} is {measure(metric, abs(gap.mean))} "
    text += f"± {measure(metric, gap.half, gap.mean)} (95% interval of the paired differences)"
    significant = abs(gap.mean) > gap.half
    return f"{text}, which is significant." if significant else f"{text}: too close to call."


def _bound(best: Group) -> str:
    bound, ratio = best.first.bound, best.ratio
    if bound is None or not math.isfinite(ratio.mean):
        return ""
    certified = bound.kind == "certified"
    kind = "certified offline bound" if certified else "expected offline bound"
    if abs(ratio.mean - 1) < 1e-6:
        return f"It meets the {kind}" + (", so nothing better exists." if certified else ".")
    if SENSE[best.objective] == "min":
        where = f"It is {percent(ratio.mean - 1)} above"
    else:
        where = f"It reaches {percent(ratio.mean)} of"
    future = ", computed with full knowledge of the future" if certified else ""
    return f"{where} the {kind} of {measure(best.objective, best.bound.mean)}{future}."


def _reasons(best: Series, rival: Series) -> list[str]:
    metric = best.group.objective
    if metric == "cost_usd":
        return [_costs(best.group, rival.group)]
    if metric in ("profit_usd", "welfare_usd", "utility"):
        both = (best.group, rival.group)
        return [_counts(*both), _costs(*both), *_of_one_seed(best, [_utilisation(best, rival)])]
    return _of_one_seed(best, [_waiting(best, rival), _completion(best, rival), _utilisation(best, rival)])


def _of_one_seed(s: Series, sentences: Sequence[str]) -> list[str]:
    """Sentences about the first run of a group, which say so where there are more."""
    found = [each for each in sentences if each]
    if found and len(s.group.runs) > 1:
        found.insert(0, f"In detail, of seed {s.group.first.seed} alone:")
    return found


def _alone(s: Series) -> list[str]:
    """Sentences about a single policy."""
    found = []
    done, arrived = len(s.data.completion_s), len(s.data.arrived)
    if arrived:
        found.append(f"{number(done)} of {number(arrived)} jobs finished.")
    if s.data.wait_mean_s > 1e-6:
        found.append(f"On average a job waits {duration(s.data.wait_mean_s)} without workers.")
    if done >= ENOUGH:
        half, slow = np.quantile(s.data.completion_s, (0.5, 0.99))
        found.append(f"The median completion time is {duration(half)}, the 99th percentile {duration(slow)}.")
    if math.isfinite(s.data.load) and s.data.load > 0:
        found.append(f"Until the last job ends, {percent(s.data.load)} of the {_kind(s)} capacity is in use.")
    return _of_one_seed(s, found)


def _kind(s: Series) -> str:
    return resource(s.data.base.kinds.names[s.data.main_kind])


def _waiting(best: Series, rival: Series) -> str:
    a, b = best.data.wait_mean_s, rival.data.wait_mean_s
    if max(a, b) < 1e-6:
        return ""
    return f"On average a job waits {duration(a)} without workers ({rival.group.label}: {duration(b)})."


def _completion(best: Series, rival: Series) -> str:
    """Median and 99th percentile of the completion times of both."""
    a, b = best.data.completion_s, rival.data.completion_s
    if min(len(a), len(b)) < ENOUGH:
        return ""
    (half_a, slow_a), (half_b, slow_b) = (np.quantile(x, (0.5, 0.99)) for x in (a, b))
    label = rival.group.label
    text = f"The median completion time is {duration(half_a)} ({label}: {duration(half_b)}), "
    text += f"the 99th percentile {duration(slow_a)} ({label}: {duration(slow_b)})"
    traded = slow_a > 1.05 * slow_b and half_a < half_b
    return f"{text}: most jobs finish sooner at the expense of the slowest." if traded else f"{text}."


def _utilisation(best: Series, rival: Series) -> str:
    a, b = best.data.load, rival.data.load
    if not (math.isfinite(a) and math.isfinite(b)) or max(a, b) == 0:
        return ""
    used = f"it uses {percent(a)} of the {_kind(best)} capacity"
    return f"Until its last job ends, {used} ({rival.group.label}: {percent(b)})."


def _costs(best: Group, rival: Group) -> str:
    """The type of cost in which the two differ most, and what offsets it."""
    gaps = {c: np.nan_to_num(best.metric(c).mean) - np.nan_to_num(rival.metric(c).mean) for c in COSTS}
    most = max(COSTS, key=lambda c: abs(gaps[c]))
    if abs(gaps[most]) < TIE:
        return ""
    less, more = ("less", "more") if gaps[most] < 0 else ("more", "less")
    text = f"The largest cost difference is in {name(most)}: {measure(most, abs(gaps[most]))} {less} than {rival.label}"
    against = [c for c in COSTS if gaps[c] * gaps[most] < 0 and abs(gaps[c]) > 0.02 * abs(gaps[most])]
    if against:
        text += f", against {_and([f'{measure(c, abs(gaps[c]))} {more} for {name(c)}' for c in against])}"
    return text + "."


def _counts(best: Group, rival: Group) -> str:
    for metric, verb in (("jobs_accepted", "accepts"), ("jobs_completed", "completes")):
        a, b = best.metric(metric).mean, rival.metric(metric).mean
        if math.isfinite(a) and math.isfinite(b) and a != b:
            return f"It {verb} {number(a)} {'job' if a == 1 else 'jobs'} ({rival.label}: {number(b)})."
    return ""


def _warnings(series: Sequence[Series]) -> list[str]:
    found = [
        f"{s.group.label} violated an audit rule and is not ranked." for s in series if not s.group.sound
    ]
    found += [
        f"{s.group.label} completed no job and is not ranked."
        for s in series
        if s.group.sound and math.isnan(s.group.value.mean)
    ]
    if series[0].group.objective in ("jct_mean_s", "makespan_s", "epoch_s"):
        found += _unfinished([s for s in series if not math.isnan(s.group.value.mean)])
    return found


def _unfinished(series: Sequence[Series]) -> list[str]:
    """Which policies did not finish all jobs; one sentence if all left equally many."""
    counts = []
    for s in series:
        state = texts(s.data.run, "outcomes", "state")
        counts.append((int(np.isin(state, ("unfinished", "refused", "declined")).sum()), len(state)))
    if len(series) > 3 and len(set(counts)) == 1 and counts[0][0]:
        missing, total = counts[0]
        return [
            f"Each policy leaves {number(missing)} of {number(total)} jobs unfinished; the means cover only the others."
        ]
    return [
        f"{s.group.label} leaves {number(missing)} of {number(total)} jobs unfinished; its mean covers only the others."
        for s, (missing, total) in zip(series, counts, strict=True)
        if missing
    ]
