"""The charts of a report, with legends and captions; charts without data are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tradewind.model.setup import SENSE
from tradewind.report import quantities
from tradewind.report.figures import bars, curves, gantt, market, places
from tradewind.report.figures.data import Series
from tradewind.report.figures.theme import THEMED, svg
from tradewind.report.html import Chart, full, pair

HALF, WIDE, NARROW = 400.0, 960.0, 328.0
"""Chart widths in CSS pixels: half the page, the whole page, a phone."""

HEAT = (0.22, 0.52, 0.80)
"""Colour of the heat map (red, green, blue): between the light and the dark theme, because a bitmap cannot follow both."""

COST_COLOURS = tuple(f"var(--k{i})" for i in range(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSpec:
    """A chart that can be drawn at any width; `name` is the prefix of its ids, `label` its text for screen readers.

    tall  it is higher than others and takes the whole width
    """

    name: str
    heading: str
    label: str
    draw: Callable[[float], Any]
    entries: Sequence[tuple[str, str]] = ()
    caption: str = ""
    tall: bool = False

    def half(self) -> Chart:
        """At half the width of the page."""
        return self._drawn(HALF)

    def whole(self) -> Chart:
        """At the whole width of the page."""
        return self._drawn(WIDE)

    def _drawn(self, width: float) -> Chart:
        """At a width, with a second drawing for phones, so that text keeps its size."""
        return Chart(
            heading=self.heading,
            wide=svg(self.draw(width), self.name, self.label),
            narrow=svg(self.draw(NARROW), f"{self.name}-narrow", self.label),
            entries=self.entries,
            caption=self.caption,
        )


def grid(specs: Sequence[ChartSpec]) -> str:
    """Charts in pairs; a last odd one and tall ones take the whole width."""
    short, tall = [s for s in specs if not s.tall], [s for s in specs if s.tall]
    even = len(short) - len(short) % 2
    return pair([s.half() for s in short[:even]]) + "".join(full(s.whole()) for s in [*short[even:], *tall])


def colour(number: int) -> str:
    """CSS colour of the policy with this number."""
    return f"var(--c{number % 8})"


def comparison_charts(series: Sequence[Series]) -> list[ChartSpec]:
    """All charts that compare policies."""
    makers = (_objective, _ratio, _completion, _costs, _prices, _use, _queue)
    if len(series) == 1:  # low charts beside each other
        makers = (_objective, _costs, _ratio, _completion, _prices, _use, _queue)
    return [spec for make in makers if (spec := make(series)) is not None] + _market(series)


def _market(series: Sequence[Series]) -> list[ChartSpec]:
    """Profit, regret and acceptance of offers; empty if no customer paid."""
    if not market.has_payments(series):
        return []
    reference = market.reference(series, market.instants(series))
    entries = _policies(series)
    found = [
        ChartSpec(
            name="profit",
            heading="Profit over time",
            label="Cumulative profit over time, one curve per policy",
            draw=lambda width: market.profit(series, reference, THEMED, width),
            entries=[*entries, (reference.name, "dash")] if reference else entries,
            caption="Payments when an offer is taken, minus costs.",
        )
    ]
    if reference is not None:
        found.append(
            ChartSpec(
                name="regret",
                heading="Regret over time",
                label=f"Cumulative regret against {reference.name} over time, one curve per policy",
                draw=lambda width: market.regret(series, reference, THEMED, width),
                entries=entries,
                caption=f"Profit of {reference.name} minus profit of the policy; below zero the policy is ahead.",
            )
        )
    return found + _acceptance(series)


def _acceptance(series: Sequence[Series]) -> list[ChartSpec]:
    sellers, forecasters = market.sellers(series), market.forecasters(series)
    found = []
    if sellers:
        found.append(
            ChartSpec(
                name="acceptance",
                heading="Acceptance by price",
                label="Share of offers taken by unit price, one curve per policy, with the share that the policy expected",
                draw=lambda width: market.acceptance(sellers, THEMED, width),
                entries=[*_policies(sellers), *([("expected by the policy", "dash")] if forecasters else [])],
                caption="Offers grouped by price into ten classes of equal size.",
            )
        )
    if forecasters:
        found.append(
            ChartSpec(
                name="calibration",
                heading="Expected and actual acceptance",
                label="Share of offers taken by expected acceptance, one curve per policy, with the diagonal",
                draw=lambda width: market.calibration(forecasters, THEMED, width),
                entries=_policies(forecasters),
                caption="A well-calibrated policy lies on the diagonal. Bars are 95% intervals.",
            )
        )
    return found


def _policies(series: Sequence[Series]) -> list[tuple[str, str]]:
    return [(s.group.label, colour(s.number)) for s in series] if len(series) > 1 else []


def _seeds(series: Sequence[Series]) -> int:
    return max(len(s.group.runs) for s in series)


def _objective(series: Sequence[Series]) -> ChartSpec | None:
    groups = [s.group for s in series]
    if len(groups) == 1 and (groups[0].first.bound is None or not bars.has_costs(groups)):
        return None  # one bar says no more than the table
    metric = groups[0].objective
    name = quantities.name(metric)
    caption = f"{'Lower' if SENSE[metric] == 'min' else 'Higher'} is better."
    if _seeds(series) > 1:
        caption += f" Mean over {_seeds(series)} seeds with its 95% interval."
    if bars.is_cut(groups):
        caption += " Intervals that leave the chart are cut; more seeds make them shorter."
    listed = ", ".join(f"{g.label} {quantities.measure(metric, g.value.mean)}" for g in groups)
    return ChartSpec(
        name="objective",
        heading=name[:1].upper() + name[1:],
        label=f"{name[:1].upper()}{name[1:]} by policy: {listed}",
        draw=lambda width: bars.objective(groups, THEMED, width),
        entries=[("offline bound", "dash")] if any(g.first.bound is not None for g in groups) else (),
        caption=caption,
    )


def _ratio(series: Sequence[Series]) -> ChartSpec | None:
    """Objective / bound per scenario; with one seed it would repeat the chart of the objective."""
    groups = [s.group for s in series]
    if _seeds(series) < 2 or not bars.has_ratio(groups):
        return None
    listed = ", ".join(f"{g.label} {g.ratio.mean:.3f}" for g in groups if g.ratio.n)
    return ChartSpec(
        name="ratio",
        heading="Ratio to bound",
        label=f"Ratio of objective to bound by policy: {listed}",
        draw=lambda width: bars.ratio(groups, THEMED, width),
        entries=[("offline bound", "dash")],
        caption="Mean and 95% interval. Each run is divided by the bound of its own scenario.",
    )


def _costs(series: Sequence[Series]) -> ChartSpec | None:
    groups = [s.group for s in series]
    if not bars.has_costs(groups):
        return None
    paid = [any(g.metric(cost).mean > 0 for g in groups) for cost in quantities.COSTS]
    parts = zip(quantities.COSTS, COST_COLOURS, paid, strict=True)
    entries = [(quantities.name(cost), shade) for cost, shade, used in parts if used]
    if any(g.metric(quantities.DISCOUNT).mean < 0 for g in groups):
        entries.append((quantities.name(quantities.DISCOUNT), "var(--muted)"))
    return ChartSpec(
        name="costs",
        heading="Cost by type",
        label="Cost by policy: rent, data transfer, training traffic and deployment",
        draw=lambda width: bars.costs(groups, THEMED, width),
        entries=entries,
        caption="Cost to the operator" + (", mean over seeds." if _seeds(series) > 1 else "."),
    )


def _use(series: Sequence[Series]) -> ChartSpec | None:
    kinds = curves.used_kinds(series)
    if not kinds:
        return None
    return ChartSpec(
        name="use",
        heading="Resources in use",
        label="Utilisation of each resource over time, one curve per policy",
        draw=lambda width: curves.utilisation(series, THEMED, width),
        entries=_policies(series),
        caption=f"Total over all nodes. {curves.cut_note(series)}".strip(),
        tall=len(kinds) > 1,
    )


def _queue(series: Sequence[Series]) -> ChartSpec | None:
    if not curves.has_queue(series):
        return None
    return ChartSpec(
        name="queue",
        heading="Queue",
        label="Number of waiting jobs over time, one curve per policy",
        draw=lambda width: curves.queue(series, THEMED, width),
        entries=_policies(series),
        caption=f"Jobs that have arrived but have no workers. {curves.cut_note(series)}".strip(),
    )


def _completion(series: Sequence[Series]) -> ChartSpec | None:
    if not curves.finished(series) or max(len(s.data.completion_s) for s in series) < 2:
        return None
    return ChartSpec(
        name="completion",
        heading="Completion times",
        label="Cumulative distribution of the time from arrival to completion, one curve per policy",
        draw=lambda width: curves.completion(series, THEMED, width),
        entries=_policies(series),
        caption="Further left is faster. A curve that ends below 100% leaves jobs unfinished.",
    )


def _prices(series: Sequence[Series]) -> ChartSpec | None:
    if not curves.has_offers(series):
        return None
    names = series[0].data.base.kinds.names
    entries = [(names[k], colour(k)) for k in curves.price_kinds(series)]
    return ChartSpec(
        name="prices",
        heading="Prices offered",
        label="Prices offered to arriving jobs over time, one panel per policy",
        draw=lambda width: curves.prices(series, THEMED, width),
        entries=[*entries, ("taken", "dot"), ("not taken", "open")],
        tall=len(series) > 1,
    )


def jobs(s: Series) -> ChartSpec | None:
    """The Gantt chart of a run."""
    chart = gantt.gantt(s.data)
    if not len(chart.jobs):
        return None
    return ChartSpec(
        name=f"gantt{s.number}",
        heading=f"Jobs under {s.group.label}",
        label=f"Gantt chart of {len(chart.jobs)} jobs under {s.group.label}, coloured by {chart.by}",
        draw=lambda width: gantt.draw(chart, s.data, THEMED, width),
        entries=_places(chart),
        caption=f"{_gantt_caption(chart)} {curves.cut_note([s])}".strip(),
    )


def _places(chart: gantt.Gantt) -> list[tuple[str, str]]:
    """Legend of the Gantt chart; only colours in use."""
    share = chart.shares[chart.mix].sum(axis=0).tolist()
    named = {
        i: f"{n} worker" + ("" if n == "1" else "s") if chart.by == "workers" else n
        for i, n in enumerate(chart.legend)
    }
    return [(name, colour(i)) for i, name in named.items() if share[i] > 0]


def _gantt_caption(chart: gantt.Gantt) -> str:
    text = "A bar shows when a job has workers, a thin line when it is in the system."
    if (chart.shares[chart.mix] > 0).sum(axis=1).max() > 1:
        text += f" Where they are at several {chart.by}s, each has a band as thick as its share."
    if len(chart.jobs) > gantt.MOST_NAMES:
        text += " One row per job, in order of arrival."
    if chart.total > len(chart.jobs):
        text += f" The {len(chart.jobs)} of {quantities.number(chart.total)} jobs with the most worker time are shown."
    if chart.gap_us:
        text += f" Pauses and moves shorter than {quantities.duration(chart.gap_us / 1e6)} are not shown."
    return text


def place(s: Series) -> ChartSpec | None:
    """Where a run took place: a graph with flows, or a heat map of servers over time."""
    return _map(s) if places.has_graph(s.data) else _heat(s)


def _map(s: Series) -> ChartSpec:
    g = places.graph(s.data)
    return ChartSpec(
        name=f"map{s.number}",
        heading=f"Nodes and flows under {s.group.label}",
        label=f"Graph of {len(g.names)} nodes with flows under {s.group.label}",
        draw=lambda width: places.draw_graph(g, THEMED, width),
        caption=_map_caption(g, s.data.base.kinds.names[s.data.main_kind]),
    )


def _map_caption(g: places.Graph, kind: str) -> str:
    shade = ", its colour the utilisation" if (g.share > 0).any() else ""
    parts = [f"The size of a disc shows the {quantities.resource(kind)} usage of the node{shade}."]
    if 0 < int((g.serves > 0.005).sum()) < len(g.names):
        parts.append("Orange circles: parameter servers.")
    if g.link_bps.max(initial=0.0) > 0:
        most = float(g.link_bps.max())
        scale = quantities.rate_scale(most)
        widest = quantities.number(most / scale.size)
        parts.append(f"Blue lines: mean reserved bandwidth, up to {widest} {scale.unit}.")
    for what, sizes in (
        ("Orange arrows: data moved", g.arc_bytes[~g.arc_is_traffic]),
        ("Violet arrows: parameters exchanged", g.arc_bytes[g.arc_is_traffic]),
    ):
        if len(sizes):
            parts.append(f"{what}, up to {quantities.measure('_bytes', float(sizes[0]))} between two nodes.")
    if len(g.names) > places.MOST_NAMES and g.busy.any():
        most_used = [int(n) for n in (-g.busy).argsort(kind="stable")[:5] if g.busy[n] > 0]
        listed = ", ".join(f"{g.names[n]} ({quantities.number(float(g.busy[n]))})" for n in most_used)
        parts.append(
            f"Of {len(g.names)} nodes, the busiest by mean {quantities.resource(kind)} use: {listed}."
        )
    if g.arcs_left:
        parts.append(f"{quantities.number(g.arcs_left)} smaller flows are not shown.")
    return " ".join(parts)


def _heat(s: Series) -> ChartSpec | None:
    h = places.heat(s.data)
    if h is None:
        return None
    caption = f"Share of the {quantities.resource(h.kind)} capacity in use over time: the stronger the colour, the higher."
    if h.full < 1:
        caption += f" Full colour means {quantities.percent(h.full)}."
    if h.per_row > 1:
        caption += f" Each row is {h.per_row} {h.hosts.lower()}."
    caption = f"{caption} {curves.cut_note([s])}".strip()
    return ChartSpec(
        name=f"heat{s.number}",
        heading=f"{h.hosts} under {s.group.label}",
        label=f"Heat map of the {quantities.resource(h.kind)} capacity in use by server and time under {s.group.label}",
        draw=lambda width: places.draw_heat(h, THEMED, HEAT, width),
        caption=caption,
    )
