"""The charts of a report: which ones there are data for, with their legends and captions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tradewind.report import quantities
from tradewind.report.figures import (
    bars as figures_bars,
)
from tradewind.report.figures import (
    gantt as figures_gantt,
)
from tradewind.report.figures import (
    map as figures_map,
)
from tradewind.report.figures import (
    market as figures_market,
)
from tradewind.report.figures import (
    time as figures_time,
)
from tradewind.report.figures.theme import THEMED, svg
from tradewind.report.figures.time import Drawn
from tradewind.report.html import Chart, full, pair

HALF, WIDE, NARROW = 400.0, 960.0, 340.0
"""Widths of a drawing, CSS pixels: two beside each other, one over the whole page, one on a phone."""

HEAT = (0.22, 0.52, 0.80)
"""Colour of the heat map (red, green, blue): in between the light and the dark theme's, as a picture cannot follow."""

BOOKS = tuple(f"var(--k{i})" for i in range(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A chart that can be drawn at any width; `name` begins its ids, `label` is what a screen reader says."""

    name: str
    heading: str
    label: str
    draw: Callable[[float], Any]
    entries: Sequence[tuple[str, str]] = ()
    caption: str = ""

    def half(self) -> Chart:
        """For half the page, which is the whole width of a phone."""
        drawing = svg(self.draw(HALF), self.name, self.label)
        return Chart(heading=self.heading, wide=drawing, entries=self.entries, caption=self.caption)

    def whole(self) -> Chart:
        """For the whole page, with a second drawing for phones."""
        return Chart(
            heading=self.heading,
            wide=svg(self.draw(WIDE), self.name, self.label),
            narrow=svg(self.draw(NARROW), f"{self.name}-narrow", self.label),
            entries=self.entries,
            caption=self.caption,
        )


def grid(sketches: Sequence[Sketch]) -> str:
    """Charts two by two; an odd one at the end takes the whole width."""
    even = len(sketches) - len(sketches) % 2
    rest = "".join(full(s.whole()) for s in sketches[even:])
    return pair([s.half() for s in sketches[:even]]) + rest


def colour(number: int) -> str:
    """CSS colour of the policy with this number."""
    return f"var(--c{number % 8})"


def numbers(drawn: Sequence[Drawn]) -> list[Sketch]:
    """All charts that compare policies; those that belong together stand side by side."""
    made = (_objective, _ratio, _completion, _costs, _prices, _use, _queue)
    return [sketch for make in made if (sketch := make(drawn)) is not None] + _market(drawn)


def _market(drawn: Sequence[Drawn]) -> list[Sketch]:
    """Profit and regret over time, acceptance as expected and as it came true; nothing where nobody paid."""
    if not figures_market.sells(drawn):
        return []
    yard = figures_market.yardstick(drawn, figures_market.instants(drawn))
    entries = _policies(drawn)
    found = [
        Sketch(
            name="profit",
            heading="Profit over time",
            label="Curves of the profit so far, one per policy",
            draw=lambda width: figures_market.profit(drawn, yard, THEMED, width),
            entries=[*entries, (yard.name, "dash")] if yard else entries,
            caption="Payments at the instant of sale, minus costs.",
        )
    ]
    if yard is not None:
        found.append(
            Sketch(
                name="regret",
                heading="Regret over time",
                label=f"Curves of the profit so far that is missing to {yard.name}, one per policy",
                draw=lambda width: figures_market.regret(drawn, yard, THEMED, width),
                entries=entries,
                caption=f"{yard.name[:1].upper()}{yard.name[1:]}, minus the policy: below zero the policy is ahead.",
            )
        )
    return found + _acceptance(drawn)


def _acceptance(drawn: Sequence[Drawn]) -> list[Sketch]:
    sellers, learners = figures_market.sellers(drawn), figures_market.learners(drawn)
    found = []
    if sellers:
        found.append(
            Sketch(
                name="acceptance",
                heading="Acceptance by price",
                label="Share of offers taken by unit price, one curve per policy, and what the policy expected",
                draw=lambda width: figures_market.acceptance(sellers, THEMED, width),
                entries=[*_policies(sellers), *([("expected by the policy", "dash")] if learners else [])],
                caption="Offers in ten classes by price, equally many in each.",
            )
        )
    if learners:
        found.append(
            Sketch(
                name="calibration",
                heading="Acceptance: expected and realised",
                label="Share of offers taken by the acceptance that the policy expected, with the diagonal",
                draw=lambda width: figures_market.calibration(learners, THEMED, width),
                entries=_policies(learners),
                caption="On the line the policy knows its customers; bars are 95% intervals.",
            )
        )
    return found


def _policies(drawn: Sequence[Drawn]) -> list[tuple[str, str]]:
    return [(d.group.label, colour(d.number)) for d in drawn] if len(drawn) > 1 else []


def _seeds(drawn: Sequence[Drawn]) -> int:
    return max(len(d.group.runs) for d in drawn)


def _objective(drawn: Sequence[Drawn]) -> Sketch | None:
    groups = [d.group for d in drawn]
    if len(groups) == 1 and groups[0].first.bound is None:
        return None
    metric = groups[0].objective
    name = quantities.name(metric)
    caption = f"The {quantities.better(metric)} is best."
    if _seeds(drawn) > 1:
        caption += f" Mean over {_seeds(drawn)} seeds with its 95% interval."
    listed = ", ".join(f"{g.label} {quantities.measure(metric, g.value.mean)}" for g in groups)
    return Sketch(
        name="objective",
        heading=name[:1].upper() + name[1:],
        label=f"Bars of {name} by policy: {listed}",
        draw=lambda width: figures_bars.objective(groups, THEMED, width),
        entries=[("offline bound", "dash")] if any(g.first.bound is not None for g in groups) else (),
        caption=caption,
    )


def _ratio(drawn: Sequence[Drawn]) -> Sketch | None:
    """The objective by the bound of the same scenario, where several seeds make it differ from the objective's bars."""
    groups = [d.group for d in drawn]
    if _seeds(drawn) < 2 or not figures_bars.has_ratio(groups):
        return None
    listed = ", ".join(f"{g.label} {g.ratio.mean:.3f}" for g in groups if g.ratio.n)
    return Sketch(
        name="ratio",
        heading="To the bound",
        label=f"Bars of objective by bound, by policy: {listed}",
        draw=lambda width: figures_bars.ratio(groups, THEMED, width),
        entries=[("offline bound", "dash")],
        caption="Each run by the bound of its own scenario, mean and 95% interval: what differs between scenarios cancels.",
    )


def _costs(drawn: Sequence[Drawn]) -> Sketch | None:
    groups = [d.group for d in drawn]
    if not figures_bars.has_costs(groups):
        return None
    paid = [any(g.metric(book).mean > 0 for g in groups) for book in quantities.COSTS]
    books = zip(quantities.COSTS, BOOKS, paid, strict=True)
    return Sketch(
        name="costs",
        heading="What it costs",
        label="Stacked bars of the cost by policy: rent, data transfer, training traffic, deployment",
        draw=lambda width: figures_bars.costs(groups, THEMED, width),
        entries=[(quantities.name(book), shade) for book, shade, there in books if there],
        caption="What the operator pays" + (", mean over seeds." if _seeds(drawn) > 1 else "."),
    )


def _use(drawn: Sequence[Drawn]) -> Sketch | None:
    if not figures_time.used_kinds(drawn):
        return None
    return Sketch(
        name="use",
        heading="Resources in use",
        label="Curves of the share of each resource in use over time, one per policy",
        draw=lambda width: figures_time.utilisation(drawn, THEMED, width),
        entries=_policies(drawn),
        caption=f"All nodes together. {figures_time.cut_note(drawn)}".strip(),
    )


def _queue(drawn: Sequence[Drawn]) -> Sketch | None:
    if not figures_time.has_queue(drawn):
        return None
    return Sketch(
        name="queue",
        heading="Queue",
        label="Curves of the number of waiting jobs over time, one per policy",
        draw=lambda width: figures_time.queue(drawn, THEMED, width),
        entries=_policies(drawn),
        caption=f"Jobs that have arrived and have no workers. {figures_time.cut_note(drawn)}".strip(),
    )


def _completion(drawn: Sequence[Drawn]) -> Sketch | None:
    if not figures_time.finished(drawn) or max(len(d.facts.completion_s) for d in drawn) < 2:
        return None
    return Sketch(
        name="completion",
        heading="Completion times",
        label="Cumulative distribution of the time from arrival to completion, one curve per policy",
        draw=lambda width: figures_time.completion(drawn, THEMED, width),
        entries=_policies(drawn),
        caption="Further left is sooner. A curve that ends below 100% leaves jobs without completion.",
    )


def _prices(drawn: Sequence[Drawn]) -> Sketch | None:
    if not figures_time.has_offers(drawn):
        return None
    names = drawn[0].facts.land.kinds.names
    entries = [(names[k], colour(k)) for k in figures_time.price_kinds(drawn)]
    return Sketch(
        name="prices",
        heading="Prices offered",
        label="Marks of the prices offered to arriving jobs over time, one panel per policy",
        draw=lambda width: figures_time.prices(drawn, THEMED, width),
        entries=[*entries, ("taken", "dot"), ("not taken", "open")],
    )


def jobs(d: Drawn) -> Sketch | None:
    """The Gantt chart of a run."""
    chart = figures_gantt.gantt(d.facts)
    if not len(chart.jobs):
        return None
    return Sketch(
        name=f"gantt{d.number}",
        heading=f"Jobs under {d.group.label}",
        label=f"Gantt chart of {len(chart.jobs)} jobs under {d.group.label}, coloured by {chart.by}",
        draw=lambda width: figures_gantt.draw(chart, d.facts, THEMED, width),
        entries=_places(chart),
        caption=f"{_gantt_caption(chart)} {figures_time.cut_note([d])}".strip(),
    )


def _places(chart: figures_gantt.Gantt) -> list[tuple[str, str]]:
    """Legend of the Gantt chart: only colours that occur."""
    used = set(chart.colour.tolist())
    named = {
        i: f"{n} worker" + ("" if n == "1" else "s") if chart.by == "workers" else n
        for i, n in enumerate(chart.legend)
    }
    entries = [(name, colour(i)) for i, name in named.items() if i in used]
    return [*entries, (f"several {chart.by}s", "var(--muted)")] if figures_gantt.SEVERAL in used else entries


def _gantt_caption(chart: figures_gantt.Gantt) -> str:
    said = "A bar is a job with workers, a thin line a job that is there."
    if chart.total > len(chart.jobs):
        said += f" Shown are the {len(chart.jobs)} jobs, of {quantities.number(chart.total)}, with most worker time."
    if chart.gap_us:
        said += f" Pauses and moves shorter than {quantities.duration(chart.gap_us / 1e6)} are not drawn."
    return said


def place(d: Drawn) -> Sketch | None:
    """The map of a run: a graph with flows, or servers over time."""
    return _map(d) if figures_map.has_graph(d.facts) else _heat(d)


def _map(d: Drawn) -> Sketch:
    g = figures_map.graph(d.facts)
    return Sketch(
        name=f"map{d.number}",
        heading=f"Nodes and flows under {d.group.label}",
        label=f"Graph of {len(g.names)} nodes with flows under {d.group.label}",
        draw=lambda width: figures_map.draw_graph(g, THEMED, width),
        caption=_map_caption(g, d.facts.land.kinds.names[d.facts.main_kind]),
    )


def _map_caption(g: figures_map.Graph, kind: str) -> str:
    said = [
        f"A disc grows with the {kind} in use there"
        + (", stronger in colour where fuller." if (g.share > 0).any() else ".")
    ]
    if 0 < int((g.serves > 0.005).sum()) < len(g.names):
        said.append("Orange circles: parameter servers.")
    if g.link_bps.max(initial=0.0) > 0:
        most = float(g.link_bps.max())
        scale = quantities.rate_scale(most)
        widest = quantities.number(most / scale.size)
        said.append(f"Blue lines: mean reserved bandwidth, the widest {widest} {scale.unit}.")
    if len(g.arc_bytes):
        most = float(g.arc_bytes[0])
        said.append(f"Arrows: data moved, the widest {quantities.measure('_bytes', most)}.")
    if g.arcs_left:
        said.append(f"{quantities.number(g.arcs_left)} smaller flows are not drawn.")
    return " ".join(said)


def _heat(d: Drawn) -> Sketch | None:
    h = figures_map.heat(d.facts)
    if h is None:
        return None
    caption = f"Share of {h.kind} in use over time: the stronger the colour, the fuller."
    if h.full < 1:
        caption += f" The full colour is {quantities.percent(h.full)}."
    if h.per_row > 1:
        caption += f" A row is {h.per_row} {h.hosts.lower()}."
    caption = f"{caption} {figures_time.cut_note([d])}".strip()
    return Sketch(
        name=f"heat{d.number}",
        heading=f"{h.hosts} under {d.group.label}",
        label=f"Heat map of {h.kind} in use by server and time under {d.group.label}",
        draw=lambda width: figures_map.draw_heat(h, THEMED, HEAT, width),
        caption=caption,
    )
