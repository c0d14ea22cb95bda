"""What ranks measured, per job and site: seconds of an iteration with their standard error, beside the prediction.

Iterations that follow one another are alike, so the standard error is that of the means of consecutive batches, not of
single iterations. The first tenth of an attempt is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tradewind.worlds.gang import Attempt

MOST_BATCHES = 20
UNKNOWN = -1.0


class RankMeasure(NamedTuple):
    """What a rank measured in an attempt.

    iterations              those that count; seconds: their mean
    error_s                 its standard error; UNKNOWN with fewer than four
    communication_s         mean seconds of an iteration spent waiting for other ranks
    accuracy, site_accuracy the last reported; UNKNOWN: none was
    bytes_sent, samples     means of an iteration; UNKNOWN: not reported
    predicted_us            mean of what the model says for these iterations; UNKNOWN: that of the attempt
    """

    rank: int
    iterations: int
    seconds: float
    error_s: float
    communication_s: float
    accuracy: float
    site_accuracy: float
    bytes_sent: float = UNKNOWN
    samples: float = UNKNOWN
    predicted_us: float = UNKNOWN

    def expected_us(self, attempt_us: float) -> float:
        """What the model says for an iteration; attempt_us: for the step with which its attempt began."""
        return attempt_us if self.predicted_us == UNKNOWN else self.predicted_us


class Expectation:
    """What the model says for iterations of an attempt while plans change.

    An iteration of `seconds` that had one step in force for the seconds d and another, by which an iteration takes e, for
    the rest r of the time, of which it is f, should have taken seconds / (d / e + r / f).
    """

    def __init__(self) -> None:
        self._since: list[
            tuple[float, float]
        ] = []  # when a step came into force, and its microseconds of an iteration

    def change(self, now_s: float, predicted_us: float) -> None:
        """Take in what is in force now."""
        if not self._since or self._since[-1][1] != predicted_us:
            self._since.append((now_s if self._since else -math.inf, predicted_us))

    def of_each(self, now_s: float, reports: Sequence[tuple[int, float]]) -> list[float]:
        """Microseconds for each of the (rank, seconds) of new reports; those of a rank follow one another."""
        ends: dict[int, float] = {}
        found = []
        for rank, seconds in reversed(reports):
            end_s = ends.get(rank, now_s)
            found.append(self._between(end_s - seconds, end_s))
            ends[rank] = end_s - seconds
        first = min(ends.values(), default=now_s)
        while len(self._since) > 1 and self._since[1][0] <= first:
            del self._since[0]  # no later iteration began before
        return found[::-1]

    def _between(self, begin_s: float, end_s: float) -> float:
        parts, until_s = 0.0, end_s
        for since_s, predicted_us in reversed(self._since):
            if predicted_us <= 0:
                break
            from_s = max(begin_s, since_s)
            if from_s < until_s:
                parts += (until_s - from_s) / predicted_us
                until_s = from_s
        if parts > 0:
            return (end_s - begin_s) / parts
        return self._since[-1][1] if self._since else UNKNOWN


def steady(values: Sequence[float]) -> Sequence[float]:
    """Values without the first tenth."""
    return values[len(values) // 10 :]


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean, by the means of consecutive batches of equal length (the last ones of `values`)."""
    batches = min(MOST_BATCHES, len(values) // 2)
    if batches < 2:
        return UNKNOWN
    length = len(values) // batches
    first = len(values) - length * batches
    means = [fmean(values[at : at + length]) for at in range(first, len(values), length)]
    return stdev(means) / math.sqrt(batches)


def rows(
    attempts: Iterable[Attempt], predicted_us: Callable[[Attempt], float], pace: float = 1.0
) -> list[tuple[Any, ...]]:
    """Rows of the table `measurements`: jobs and nodes in order, over all attempts whose time is predicted.

    predicted_us: for the step with which an attempt began; pace: scenario microseconds per second
    """
    found: dict[tuple[int, int], list[tuple[RankMeasure, float]]] = {}
    for attempt in attempts:
        predicted, ranks = predicted_us(attempt), attempt.launch.ranks
        firsts: dict[int, RankMeasure] = {}
        for raw in attempt.tally.ranks:
            measure = RankMeasure(*raw)
            # the first worker speaks for its node: all its ranks step together
            if ranks[measure.rank].role == "worker" and predicted > 0:
                firsts.setdefault(ranks[measure.rank].node, measure)
        for node, measure in firsts.items():
            expected_s = measure.expected_us(predicted) / pace
            found.setdefault((attempt.launch.job.index, node), []).append((measure, expected_s))
    return [(*key, *_joined(found[key])) for key in sorted(found)]


def _joined(parts: Sequence[tuple[RankMeasure, float]]) -> tuple[Any, ...]:
    """Means over attempts, weighted by their iterations; attempts are independent."""
    count = sum(measure.iterations for measure, _ in parts)

    def mean(values: Iterable[float]) -> float:
        return sum(m.iterations * value for (m, _), value in zip(parts, values, strict=True)) / count

    errors = [m.iterations * m.error_s for m, _ in parts]
    error_s = UNKNOWN if min(errors) < 0 else math.hypot(*errors) / count
    accuracies = [(m.accuracy, m.site_accuracy) for m, _ in parts if m.accuracy >= 0]
    return (
        count, mean(m.seconds for m, _ in parts), error_s, mean(predicted for _, predicted in parts),
        mean(m.communication_s for m, _ in parts), *(accuracies[-1] if accuracies else (UNKNOWN, UNKNOWN)),
    )  # fmt: skip
