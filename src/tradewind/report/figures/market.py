"""Charts of a market: profit and regret over time, expected and actual acceptance of offers.

Everything comes from the run file, except the reference of the regret: it is the run of a policy that a system declares as
`reference_policy`, or is computed from the scenario by a system's `reference_sales`.
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
from tradewind.report.figures.curves import POINTS, single, span_us, time_axis
from tradewind.report.figures.data import RunData, ScenarioData, Series, bins
from tradewind.report.figures.theme import Theme, axes_title, draw_curves, style_axes, ticks

MOST_JOBS = 20_000
"""Most jobs for which a report computes the best fixed prices; the search takes about 0.3 ms per job."""
CLASSES = 10
"""Number of classes: equally many offers each (by price) or equal width (by expected acceptance)."""
LEAST_USD, LEAST_SHARE = 0.001, 0.01
"""Lowest price worth a curve: in USD, and as a share of the highest one."""
FEWEST = 5
"""Fewest offers in a class that is drawn."""
_EXPECTED = re.compile(r"\bexpected acceptance (\d+(?:\.\d+)?)%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What profits are compared with: cumulative profit at each instant of `at_us`."""

    name: str
    at_us: Floats
    profit: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Offers made alone in their quote, (n,): mean unit price, expected acceptance (nan if unknown), 1 if taken."""

    unit: Floats
    expected: Floats
    taken: Floats


def profit_until(data: RunData, at_us: Floats) -> Floats:
    """Payments of offers taken up to each instant less what was paid back, minus the costs of the slots that had ended."""
    run, slot_us = data.run, data.base.setup.slot_us
    taken = taken_offers(run)
    jobs, usd = ints(run, "offers", "job")[taken], floats(run, "offers", "payment_usd")[taken]
    sold = _cumulated(ints(run, "offers", "at_us")[taken], usd, at_us)
    sold -= _cumulated(*_refunds(data, jobs, usd), at_us)
    return sold - _cumulated((ints(run, "costs", "slot") + 1) * slot_us, floats(run, "costs", "usd"), at_us)


def _refunds(data: RunData, jobs: NDArray[np.int64], usd: Floats) -> tuple[NDArray[np.int64], Floats]:
    """When each buyer's job was over, and what it then got back."""
    run = data.run
    kept = dict(
        zip(ints(run, "payments", "job").tolist(), floats(run, "payments", "usd").tolist(), strict=True)
    )
    last = dict(zip(ints(run, "events", "job").tolist(), ints(run, "events", "at_us").tolist(), strict=True))
    back = usd - np.array([kept.get(job, 0.0) for job in jobs.tolist()], dtype=np.float64)
    return np.array([last[job] for job in jobs.tolist()], dtype=np.int64), back


def _cumulated(when: NDArray[np.int64], usd: Floats, at_us: Floats) -> Floats:
    order = np.argsort(when, kind="stable")
    total = np.concatenate(([0.0], np.cumsum(usd[order])))
    return np.asarray(total[np.searchsorted(when[order], at_us, side="right")])


def has_payments(series: Sequence[Series]) -> bool:
    """Whether any customer paid anything."""
    return any(float(floats(s.data.run, "payments", "usd").sum()) > 0.0 for s in series)


def reference(series: Sequence[Series], at_us: Floats) -> Reference | None:
    """The best fixed prices in hindsight if available, else the bound in proportion to time, else None."""
    if series[0].group.objective != "profit_usd":
        return None
    base = series[0].data.base
    named = {system.reference_policy for system in systems().values()} - {""}
    for s in series:
        if s.group.first.policy in named:
            return Reference(name=s.group.label, at_us=at_us, profit=profit_until(s.data, at_us))
    fixed = _fixed_prices(base, at_us)
    if fixed is not None:
        return fixed
    bound = next((s.group.first.bound for s in series if s.group.first.bound is not None), None)
    if bound is None or bound.sense != "max":
        return None
    share = np.clip(at_us / base.setup.horizon_us, 0.0, 1.0)
    return Reference(name="the bound, in proportion to time", at_us=at_us, profit=bound.value * share)


def _fixed_prices(base: ScenarioData, at_us: Floats) -> Reference | None:
    """Best fixed unit prices found by a short search; None if no system can compute them for the scenario."""
    scenario = base.scenario
    if not 0 < len(scenario.jobs) <= MOST_JOBS or scenario.changes:
        return None
    paid = _reference_sales(scenario)
    if paid is None:
        return None
    profit = _cumulated(base.arrive_us, paid, at_us)
    return Reference(name="best fixed prices in hindsight", at_us=at_us, profit=profit)


def _reference_sales(scenario: Scenario) -> Floats | None:
    """Payment of each job (J,) under the best fixed prices, from the first system that can compute it."""
    for system in systems().values():
        if system.reference_sales:
            try:
                found: Floats = load(system.reference_sales)(scenario)
            except InputError:
                continue
            return found
    return None


def instants(series: Sequence[Series]) -> Floats:
    """Instants at which profit and regret are plotted."""
    return bins(span_us(series), POINTS)


def profit(series: Sequence[Series], reference: Reference | None, theme: Theme, width: float) -> Any:
    """Cumulative profit, one line per policy; the dashed line is the reference."""
    figure, axes = single(width)
    at = instants(series)
    per_unit = time_axis(axes, int(at[-1]))
    lines = [(at / per_unit, profit_until(s.data, at), theme.policy(s.number)) for s in series]
    draw_curves(axes, lines, drawstyle="steps-post")
    if reference is not None:
        axes.plot(
            reference.at_us / per_unit, reference.profit, color=theme.muted, linestyle="--", linewidth=1.2,
            drawstyle="steps-post",
        )  # fmt: skip
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    return _money(figure, axes, "profit so far, USD", theme)


def regret(series: Sequence[Series], reference: Reference, theme: Theme, width: float) -> Any:
    """Cumulative profit of the reference minus that of each policy; below zero the policy is ahead."""
    figure, axes = single(width)
    per_unit = time_axis(axes, int(reference.at_us[-1]))
    lines = []
    for s in series:
        behind = reference.profit - profit_until(s.data, reference.at_us)
        lines.append((reference.at_us / per_unit, behind, theme.policy(s.number)))
    draw_curves(axes, lines, drawstyle="steps-post")
    axes.axhline(0.0, color=theme.muted, linewidth=1.0)
    return _money(figure, axes, "regret so far, USD", theme)


def _money(figure: Any, axes: Any, title: str, theme: Theme) -> Any:
    axes.yaxis.set_major_locator(ticks(5))
    axes.yaxis.set_major_formatter(lambda value, _: quantities.number(value))
    style_axes(axes, theme)
    axes_title(axes, title, theme)
    return figure


def single_offers(data: RunData) -> Offers:
    """Offers that were the only one in their quote, with the acceptance that the policy expected (from its `why`)."""
    run, jobs = data.run, data.base.scenario.jobs
    at, job = ints(run, "answers", "at_us"), ints(run, "answers", "job")
    reasons = dict(
        zip(zip(job.tolist(), at.tolist(), strict=True), texts(run, "answers", "why"), strict=True)
    )
    owner, when = ints(run, "offers", "job").tolist(), ints(run, "offers", "at_us").tolist()
    quotes = list(zip(owner, when, strict=True))
    menu = set(zip(owner, when, ints(run, "offers", "number").tolist(), strict=True))
    rows = [i for i, (j, t) in enumerate(quotes) if (j, t, 1) not in menu]
    units = [
        (j.workers_max * sum(m for _, m in j.worker) + j.servers * sum(m for _, m in j.server)) / MILLI
        for j in (jobs[quotes[i][0]] for i in rows)
    ]
    found = [_EXPECTED.search(reasons.get(quotes[i], "")) for i in rows]
    return Offers(
        unit=floats(run, "offers", "payment_usd")[rows] / np.maximum(units, 1e-9),
        expected=np.array([float(m[1]) / 100 if m else np.nan for m in found]),
        taken=taken_offers(run)[rows].astype(np.float64),
    )


def by_price(offers: Offers) -> tuple[Floats, Floats, Floats]:
    """Mean unit price, share taken and mean expected acceptance per class of equally many offers, each (C,)."""
    order = np.argsort(offers.unit, kind="stable")
    parts = [p for p in np.array_split(order, CLASSES) if len(p) >= FEWEST]
    columns = (offers.unit, offers.taken, offers.expected)
    price, taken, expected = (np.array([float(c[p].mean()) for p in parts]) for c in columns)
    return price, taken, expected


def by_expectation(offers: Offers) -> tuple[Floats, Floats, Floats]:
    """Mean expected acceptance, share taken and half its 95% interval per class of expected acceptance, each (C,)."""
    known = np.isfinite(offers.expected)
    expected, taken = offers.expected[known], offers.taken[known]
    level = np.minimum((expected * CLASSES).astype(np.int64), CLASSES - 1)
    parts = [p for c in range(CLASSES) if len(p := np.flatnonzero(level == c)) >= FEWEST]
    x = np.array([float(expected[p].mean()) for p in parts])
    y = np.array([float(taken[p].mean()) for p in parts])
    count = np.array([float(len(p)) for p in parts])
    return x, y, 1.96 * np.sqrt(np.maximum(y * (1 - y), 1e-9) / np.maximum(count, 1.0))


def sellers(series: Sequence[Series]) -> list[Series]:
    """Policies with enough single offers for a curve, at prices that can be seen beside those of the others."""
    prices = {s.number: by_price(single_offers(s.data))[0] for s in series}
    most = max((float(price.max()) for price in prices.values() if len(price)), default=0.0)
    least = max(LEAST_USD, LEAST_SHARE * most)
    return [s for s in series if len(prices[s.number]) > 1 and float(prices[s.number].max()) >= least]


def forecasters(series: Sequence[Series]) -> list[Series]:
    """Policies that report the acceptance they expect."""
    return [s for s in series if len(by_expectation(single_offers(s.data))[0]) > 0]


def acceptance(series: Sequence[Series], theme: Theme, width: float) -> Any:
    """Share of offers taken by mean unit price; the dashed line is what the policy expected."""
    figure, axes = single(width)
    for s in series:
        price, taken, expected = by_price(single_offers(s.data))
        axes.plot(price, 100 * taken, color=theme.policy(s.number), marker="o", markersize=3.5)
        axes.plot(price, 100 * expected, color=theme.policy(s.number), linestyle="--", linewidth=1.2)
    axes.set_xlabel("mean USD per unit")
    axes.set_xlim(left=0)
    return _shares(figure, axes, "offers taken", theme)


def calibration(series: Sequence[Series], theme: Theme, width: float) -> Any:
    """Share of offers taken by expected acceptance; a well-calibrated policy lies on the diagonal."""
    figure, axes = single(width)
    axes.plot([0, 100], [0, 100], color=theme.muted, linewidth=1.0)
    for s in series:
        x, y, half = by_expectation(single_offers(s.data))
        axes.errorbar(
            100 * x, 100 * y, yerr=100 * half, color=theme.policy(s.number), marker="o", markersize=4,
            linewidth=1.3, elinewidth=0.9,
        )  # fmt: skip
    axes.set_xlim(0, 103)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    axes.set_xlabel("expected acceptance")
    return _shares(figure, axes, "offers taken", theme)


def _shares(figure: Any, axes: Any, title: str, theme: Theme) -> Any:
    axes.set_ylim(0, 103)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    style_axes(axes, theme)
    axes_title(axes, title, theme)
    return figure
