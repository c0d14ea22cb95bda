"""`make run`: one small scenario per system, ours beside the paper's and the baselines, and one report to open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from tradewind import api
from tradewind.files import atomic
from tradewind.lab.drawing import our_policies
from tradewind.lab.task_pool import Task, work_off
from tradewind.model.errors import TradewindError
from tradewind.model.setup import SENSE
from tradewind.report import page as report
from tradewind.report import quantities
from tradewind.report.figures import bars as figures_bars
from tradewind.report.figures import comparison as figures
from tradewind.report.figures.theme import LIGHT, THEMED, canvas, save, style, svg
from tradewind.report.html import Chart, section, stylesheet, table, template
from tradewind.report.progress import bar
from tradewind.report.summary import Group
from tradewind.report.verdict import explain
from tradewind.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A stop of the tour: a small scenario of one system, and who runs it; ours first, the paper's second."""

    name: str
    question: str
    policies: tuple[str, ...]
    params: dict[str, Any] = field(default_factory=dict)
    seeds: int = 3
    expected_s: float = 5.0
    """CPU seconds, to begin with the longest."""


STOPS = (
    Stop(
        name="mlbroker",
        question="Six sites sell computing at volume discounts. Who trains eight streams of data at least cost?",
        policies=("mlbroker", "mlbroker-paper", "oasis", "local", "central"),
        params={"family": "narrow", "sites": 6, "slots": 8, "jobs_per_slot": 8.0},
    ),
    Stop(
        name="dps",
        question="Customers with secret budgets ask for workers. Which posted prices earn most?",
        policies=("dps", "dps-paper", "dps-simple", "eris-units", "random"),
        params={"jobs": 600, "slots": 600},
    ),
    Stop(
        name="apsp",
        question="Twelve data centres train one model over B4. Where does the parameter server go, over which paths?",
        policies=("apsp", "apsp-paper", "shortest-path", "most-connected", "random-ps"),
    ),
    Stop(
        name="eris",
        question="Bids lose value with every slot they wait. Which are served, where and when?",
        policies=("eris", "eris-paper", "tiresias-elastic", "fcfs"),
        params={"size": "contended", "jobs": 150},
        expected_s=15.0,
    ),
    Stop(
        name="gadget",
        question="Jobs train as rings of servers on scarce links. Who gets how many workers, and where?",
        policies=("gadget", "gadget-paper", "ring-las", "ring-drf", "ring-fifo"),
        params={"family": "tight", "utility": "gang", "servers": 15, "slots": 25, "jobs": 60},
    ),
    Stop(
        name="cluster",
        question="Jobs of one to many GPUs queue at eight servers. Who finishes them soonest?",
        policies=("srsf", "las", "fifo-backfill", "drf", "fifo"),
        params={"jobs": 400, "servers": 8},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found at a stop: the policies, best first, the answer in words, and the file of the whole report."""

    stop: Stop
    groups: list[Group]
    said: list[str]
    file: str


def visit(stop: Stop, out: Path) -> Seen:
    """Runs a stop's policies on its scenarios, with the bound, and writes its report."""
    seeds = range(1, stop.seeds + 1)
    scenarios = [api.generate(stop.name, seed=seed, **stop.params) for seed in seeds]
    runs = api.compare(scenarios, stop.policies, seeds=seeds, bound=True).runs
    report.write(out / f"{stop.name}.html", scenarios, runs, title=stop.question)
    drawn = figures.draw(scenarios, runs)
    groups = [replace(d.group, runs=tuple(replace(r, tables={}) for r in d.group.runs)) for d in drawn]
    return Seen(stop=stop, groups=groups, said=explain(drawn), file=f"{stop.name}.html")


def tour(out: Path, pictures: Path | None = None, stops: Sequence[Stop] = STOPS, jobs: int = 2) -> list[Seen]:
    """Visits every stop, prints a table of each, writes out/index.html and, where asked, the pictures of the docs."""
    begin = perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(name=stop.name, group=stop.name, call=visit, args=(stop, out), expected_s=stop.expected_s)
        for stop in stops
    ]
    found: dict[str, Seen] = {}
    with bar("tour", len(tasks), unit="systems") as tell:
        for done in work_off(tasks, jobs):
            if done.error:
                raise TradewindError(f"the stop at {done.task.name} failed: {done.error}")
            found[done.task.name] = done.value
            if tell is not None:
                tell(0, len(found))
    seen = [found[stop.name] for stop in stops]
    console = Console(highlight=False)
    for each in seen:
        _print(console, each)
    page = out / "index.html"
    atomic.write_text(page, _page(seen))
    if pictures is not None:
        for path in picture(seen, pictures / "systems"):
            print(f"picture: {path}")
    print(
        f"\nEvery decision passed the audit. Done in {perf_counter() - begin:.0f} s.\nOpen the report: {page}"
    )
    return seen


def _print(console: Console, seen: Seen) -> None:
    """The table of a stop: objective, its share of the bound, in words who wins."""
    objective = seen.groups[0].objective
    shown = Table(title=f"{seen.stop.name}: {seen.stop.question}", title_justify="left", title_style="bold")
    for head in ("policy", f"{quantities.name(objective)} ({SENSE[objective]})", "to the bound", "decision"):
        shown.add_column(head, justify="left" if head == "policy" else "right")
    for each in seen.groups:
        shown.add_row(_label(each), _value(each), _ratio(each), _decision(each))
    console.print()
    console.print(shown)


def _label(each: Group) -> str:
    return f"{each.label} (ours)" if each.label in our_policies() else each.label


def _value(each: Group) -> str:
    return quantities.measure(each.objective, each.value.mean)


def _ratio(each: Group) -> str:
    """Objective / bound with its 95% interval: it varies less between seeds than the objective itself."""
    ratio = each.ratio
    if not ratio.n:
        return "–"
    return f"{ratio.mean:.3f} ± {ratio.half:.3f}" if ratio.half > 0 else f"{ratio.mean:.3f}"


def _decision(each: Group) -> str:
    timed = [run.timings.decide_p50 for run in each.runs if run.timings is not None]
    return quantities.duration(sum(timed) / len(timed)) if timed else "–"


def _page(seen: Sequence[Seen]) -> str:
    """One page: per system the question, the answer, bars and numbers, and a link to the whole report."""
    systems = ", ".join(each.stop.name for each in seen)
    said = f"{systems}: ours beside the papers' and the baselines on small scenarios, every decision audited"
    return template("report.html").substitute(
        title="A tour of five systems and a cluster",
        kind="tour",
        version=escape(__version__),
        facts=escape(said),
        css=stylesheet(),
        body="".join(_part(each) for each in seen),
        footer=f"Tradewind {escape(__version__)} · <code>make run</code>",
    )


def _part(seen: Seen) -> str:
    groups = seen.groups
    metric = quantities.name(groups[0].objective)
    rows = [
        ("" if i else "best", [escape(_label(g)), escape(_value(g)), _ratio(g)]) for i, g in enumerate(groups)
    ]
    with style():
        drawing = figures_bars.ratio(groups, THEMED, 470)
        chart = Chart(
            heading=f"{metric.capitalize()} by its bound",
            wide=svg(drawing, f"tour-{seen.stop.name}", seen.said[0]),
            entries=[("offline bound", "dash")],
        )
    numbers = table(["policy", metric, "to the bound"], rows, f"Numbers of {seen.stop.name}", "numbers")
    both = f'<div class="pair">{chart.html()}<figure>{numbers}</figure></div>'
    link = f'<p class="note"><a href="{seen.file}">The whole report of {escape(seen.stop.name)}</a></p>'
    return section(
        f"{seen.stop.name}: {seen.stop.question}", f"<p>{escape(' '.join(seen.said))}</p>", both, link
    )


def picture(seen: Sequence[Seen], stem: Path) -> tuple[Path, Path]:
    """The picture of the README: one panel per system with the objective of each policy by the bound."""
    with style():
        columns = 2
        rows = -(-len(seen) // columns)
        width, each_height = 1000.0, 190.0
        figure = canvas(width, rows * each_height)
        figure.set_facecolor(LIGHT.panel)
        for number, each in enumerate(seen):
            row, column = divmod(number, columns)
            left = (16 + figures_bars.room_for(each.groups) + column * width / columns) / width
            bottom = 1 - (row + 1) * each_height / (rows * each_height) + 34 / (rows * each_height)
            right = (column + 1) / columns - 54 / width
            axes = figure.add_axes((left, bottom, right - left, (each_height - 78) / (rows * each_height)))
            figures_bars.draw_ratio(axes, each.groups, LIGHT)
            title = f"{each.stop.name}: {quantities.name(each.groups[0].objective)} by its bound"
            top = 1 - (row * each_height + 22) / (rows * each_height)
            figure.text(
                (16 + column * width / columns) / width,
                top,
                title,
                color=LIGHT.ink,
                fontsize=13,
                weight="bold",
            )
        said = "; ".join(f"{e.stop.name}: {e.groups[0].label} is best" for e in seen)
        return save(figure, stem, said)
