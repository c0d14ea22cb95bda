"""Charts of a market: profit and regret over time, and acceptance as it was expected and as it came true.

All of it comes from the run file; the reference of the regret comes from the scenario by the system that declares
`reference_sales`, or from a run of bfp where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.engine.intervals import floats, ints, taken_offers, texts
from tradewind.model.arrays import Floats
from tradewind.model.errors import InputError
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI
from tradewind.registry import load, systems
from tradewind.report import quantities
from tradewind.report.figures.data import Facts, Land, bins
from tradewind.report.figures.theme import Theme, dress, head, ticks
from tradewind.report.figures.time import POINTS, Drawn, single, span_us, time_axis

MOST_JOBS = 20_000
"""Markets up to this size get their best fixed prices computed for the report; the search takes some 0.3 ms a job."""
CLASSES = 10
"""Classes of equal numbers of offers (by price) or of equal width (by expected acceptance)."""
FEWEST = 5
"""Offers in a class, at least, to be drawn."""
_EXPECTED = re.compile(r"\bexpected acceptance (\d+(?:\.\d+)?)%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What a policy's profit is measured against: profit up to each instant of `at_us`, and its name."""

    name: str
    at_us: Floats
    profit: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Single offers of a run, (n,): mean unit price, expected acceptance (nan where it was not said), 1 if taken."""

    unit: Floats
    expected: Floats
    taken: Floats


def profit_until(facts: Facts, at_us: Floats) -> Floats:
    """Payments of offers taken until each instant, minus the costs of the slots that were over by then."""
    run, slot_us = facts.run, facts.land.setup.slot_us
    taken = taken_offers(run)
    sold = _cumulated(ints(run, "offers", "at_us")[taken], floats(run, "offers", "payment_usd")[taken], at_us)
    return sold - _cumulated((ints(run, "costs", "slot") + 1) * slot_us, floats(run, "costs", "usd"), at_us)


def _cumulated(when: NDArray[np.int64], usd: Floats, at_us: Floats) -> Floats:
    order = np.argsort(when, kind="stable")
    total = np.concatenate(([0.0], np.cumsum(usd[order])))
    return np.asarray(total[np.searchsorted(when[order], at_us, side="right")])


def sells(drawn: Sequence[Drawn]) -> bool:
    """Whether any customer paid anything."""
    return any(float(floats(d.facts.run, "payments", "usd").sum()) > 0.0 for d in drawn)


def yardstick(drawn: Sequence[Drawn], at_us: Floats) -> Yardstick | None:
    """The best fixed prices in hindsight where they can be had, else the bound in proportion to time, else nothing."""
    if drawn[0].group.objective != "profit_usd":
        return None
    land = drawn[0].facts.land
    named = {system.reference_policy for system in systems().values()} - {""}
    for d in drawn:
        if d.group.first.policy in named:
            return Yardstick(name=d.group.label, at_us=at_us, profit=profit_until(d.facts, at_us))
    fixed = _fixed_prices(land, at_us)
    if fixed is not None:
        return fixed
    bound = next((d.group.first.bound for d in drawn if d.group.first.bound is not None), None)
    if bound is None or bound.sense != "max":
        return None
    share = np.clip(at_us / land.setup.horizon_us, 0.0, 1.0)
    return Yardstick(name="the bound, in proportion to time", at_us=at_us, profit=bound.value * share)


def _fixed_prices(land: Land, at_us: Floats) -> Yardstick | None:
    """The best fixed unit prices found in a short search; None where no system can find them for the scenario."""
    scenario = land.scenario
    if not 0 < len(scenario.jobs) <= MOST_JOBS or scenario.changes:
        return None
    paid = _reference_sales(scenario)
    if paid is None:
        return None
    profit = _cumulated(land.arrive_us, paid, at_us)
    return Yardstick(name="best fixed prices in hindsight", at_us=at_us, profit=profit)


def _reference_sales(scenario: Scenario) -> Floats | None:
    """What each job pays (J,) under the best fixed prices, from the first system that can tell."""
    for system in systems().values():
        if system.reference_sales:
            try:
                found: Floats = load(system.reference_sales)(scenario)
            except InputError:
                continue
            return found
    return None


def instants(drawn: Sequence[Drawn]) -> Floats:
    """The instants that the curves of profit and regret go through."""
    return bins(span_us(drawn), POINTS)


def profit(drawn: Sequence[Drawn], yard: Yardstick | None, theme: Theme, width: float) -> Any:
    """Profit so far, one line per policy; dashed: the yardstick."""
    figure, axes = single(width)
    at = instants(drawn)
    per_unit = time_axis(axes, int(at[-1]))
    for d in drawn:
        axes.plot(at / per_unit, profit_until(d.facts, at), color=theme.policy(d.number))
    if yard is not None:
        axes.plot(yard.at_us / per_unit, yard.profit, color=theme.muted, linestyle="--", linewidth=1.2)
    return _money(figure, axes, "profit so far, USD", theme)


def regret(drawn: Sequence[Drawn], yard: Yardstick, theme: Theme, width: float) -> Any:
    """What the yardstick had earned more by each instant; below zero a policy is ahead of it."""
    figure, axes = single(width)
    per_unit = time_axis(axes, int(yard.at_us[-1]))
    for d in drawn:
        behind = yard.profit - profit_until(d.facts, yard.at_us)
        axes.plot(yard.at_us / per_unit, behind, color=theme.policy(d.number))
    axes.axhline(0.0, color=theme.muted, linewidth=1.0)
    return _money(figure, axes, "regret so far, USD", theme)


def _money(figure: Any, axes: Any, title: str, theme: Theme) -> Any:
    axes.yaxis.set_major_locator(ticks(5))
    axes.yaxis.set_major_formatter(lambda value, _: quantities.number(value))
    dress(axes, theme)
    head(axes, title, theme)
    return figure


def asked(facts: Facts) -> Asked:
    """The offers that stood alone in their quote, with the acceptance that the policy said it expects."""
    run, jobs = facts.run, facts.land.scenario.jobs
    at, job = ints(run, "answers", "at_us"), ints(run, "answers", "job")
    words = dict(zip(zip(job.tolist(), at.tolist(), strict=True), texts(run, "answers", "why"), strict=True))
    owner, when = ints(run, "offers", "job").tolist(), ints(run, "offers", "at_us").tolist()
    quotes = list(zip(owner, when, strict=True))
    menu = set(zip(owner, when, ints(run, "offers", "number").tolist(), strict=True))
    rows = [i for i, (j, t) in enumerate(quotes) if (j, t, 1) not in menu]
    units = [
        (j.workers_max * sum(m for _, m in j.worker) + j.servers * sum(m for _, m in j.server)) / MILLI
        for j in (jobs[quotes[i][0]] for i in rows)
    ]
    found = [_EXPECTED.search(words.get(quotes[i], "")) for i in rows]
    return Asked(
        unit=floats(run, "offers", "payment_usd")[rows] / np.maximum(units, 1e-9),
        expected=np.array([float(m[1]) / 100 if m else np.nan for m in found]),
        taken=taken_offers(run)[rows].astype(np.float64),
    )


def by_price(offers: Asked) -> tuple[Floats, Floats, Floats]:
    """Mean unit price, share taken and mean expected acceptance of classes of equally many offers, each (C,)."""
    order = np.argsort(offers.unit, kind="stable")
    parts = [p for p in np.array_split(order, CLASSES) if len(p) >= FEWEST]
    columns = (offers.unit, offers.taken, offers.expected)
    price, taken, expected = (np.array([float(c[p].mean()) for p in parts]) for c in columns)
    return price, taken, expected


def by_belief(offers: Asked) -> tuple[Floats, Floats, Floats]:
    """Mean expected acceptance, share taken and half its 95% interval of classes of expected acceptance, each (C,)."""
    said = np.isfinite(offers.expected)
    expected, taken = offers.expected[said], offers.taken[said]
    level = np.minimum((expected * CLASSES).astype(np.int64), CLASSES - 1)
    parts = [p for c in range(CLASSES) if len(p := np.flatnonzero(level == c)) >= FEWEST]
    x = np.array([float(expected[p].mean()) for p in parts])
    y = np.array([float(taken[p].mean()) for p in parts])
    count = np.array([float(len(p)) for p in parts])
    return x, y, 1.96 * np.sqrt(np.maximum(y * (1 - y), 1e-9) / np.maximum(count, 1.0))


def sellers(drawn: Sequence[Drawn]) -> list[Drawn]:
    """Policies with enough single offers for a curve."""
    return [d for d in drawn if len(by_price(asked(d.facts))[0]) > 1]


def learners(drawn: Sequence[Drawn]) -> list[Drawn]:
    """Policies that said what acceptance they expect."""
    return [d for d in drawn if len(by_belief(asked(d.facts))[0]) > 0]


def acceptance(drawn: Sequence[Drawn], theme: Theme, width: float) -> Any:
    """Share of offers taken by mean unit price; dashed: what the policy expected of the same offers."""
    figure, axes = single(width)
    for d in drawn:
        price, taken, expected = by_price(asked(d.facts))
        axes.plot(price, 100 * taken, color=theme.policy(d.number), marker="o", markersize=3.5)
        axes.plot(price, 100 * expected, color=theme.policy(d.number), linestyle="--", linewidth=1.2)
    axes.set_xlabel("USD per unit, mean of the bundle")
    axes.set_xlim(left=0)
    return _shares(figure, axes, "offers taken", theme)


def calibration(drawn: Sequence[Drawn], theme: Theme, width: float) -> Any:
    """Share of offers taken by the acceptance expected; on the diagonal a policy knows its customers."""
    figure, axes = single(width)
    axes.plot([0, 100], [0, 100], color=theme.muted, linewidth=1.0)
    for d in drawn:
        x, y, half = by_belief(asked(d.facts))
        axes.errorbar(
            100 * x, 100 * y, yerr=100 * half, color=theme.policy(d.number), marker="o", markersize=4,
            linewidth=1.3, elinewidth=0.9,
        )  # fmt: skip
    axes.set_xlim(0, 103)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("acceptance expected before the answer")
    return _shares(figure, axes, "offers taken", theme)


def _shares(figure: Any, axes: Any, title: str, theme: Theme) -> Any:
    axes.set_ylim(0, 103)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    dress(axes, theme)
    head(axes, title, theme)
    return figure
