"""`make run`: a small demo of every system, our policies next to the paper's and the baselines, in one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from rich.console import Console
from rich.table import Table

from tradewind import api
from tradewind.files import atomic
from tradewind.lab.drawing import our_policies
from tradewind.model.errors import TradewindError
from tradewind.report import page as report
from tradewind.report import quantities
from tradewind.report.charts import ChartSpec, colour
from tradewind.report.figures import bars, comparison
from tradewind.report.figures.theme import LIGHT, THEMED, canvas, save, style
from tradewind.report.html import section, stylesheet, table, template
from tradewind.report.progress import bar
from tradewind.report.summary import Group
from tradewind.report.verdict import sentences
from tradewind.tasks.pool import PoolTask, Where, run_tasks
from tradewind.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A small scenario of one system and the policies that run it: ours first, the paper's second."""

    name: str
    question: str
    policies: tuple[str, ...]
    params: dict[str, Any] = field(default_factory=dict)
    seeds: int = 3
    expected_s: float = 5.0
    """CPU seconds; the longest demo starts first."""


DEMOS = (
    Demo(
        name="mlbroker",
        question="Six sites rent out machines at volume discounts. Which policy trains data streams at the lowest cost?",
        policies=("mlbroker", "mlbroker-paper", "oasis", "local", "central"),
        params={"family": "narrow", "sites": 6, "slots": 8, "jobs_per_slot": 8.0},
    ),
    Demo(
        name="dps",
        question="Customers with private budgets request workers. Which posted prices earn the most?",
        policies=("dps", "dps-paper", "dps-simple", "eris-units", "random"),
        params={"jobs": 600, "slots": 600},
    ),
    Demo(
        name="apsp",
        question="Twelve data centres train one model over B4. Where should the parameter server run, over which paths?",
        policies=("apsp", "apsp-paper", "shortest-path", "most-connected", "random-ps"),
    ),
    Demo(
        name="eris",
        question="Bids lose value with every slot of delay. Which should be served, where and when?",
        policies=("eris", "eris-paper", "tiresias-elastic", "fcfs"),
        params={"size": "contended", "jobs": 150},
        expected_s=15.0,
    ),
    Demo(
        name="gadget",
        question="Jobs train as rings of servers over scarce links. How many workers does each job get, and where?",
        policies=("gadget", "gadget-paper", "ring-las", "ring-drf", "ring-fifo"),
        params={"family": "tight", "utility": "gang", "servers": 15, "slots": 25, "jobs": 60},
        expected_s=12.0,
    ),
    Demo(
        name="cluster",
        question="Jobs of one to many GPUs queue at eight servers. Which policy finishes them soonest?",
        policies=("srsf", "las", "fifo-backfill", "drf", "fifo"),
        params={"jobs": 400, "servers": 8},
    ),
)


_BOUND = ("offline bound", "dash")
ROLES = (("our policy", 0), ("the paper's algorithm", 1), ("baselines", 6))
"""What a colour means on the page and in the picture, and its number in a theme."""


def role(policy: str) -> int:
    """Index in ROLES of a policy."""
    if policy in our_policies():
        return 0
    return 1 if policy.endswith("-paper") else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The policies of a demo, best first, a summary in sentences, and the file of its full report."""

    demo: Demo
    groups: list[Group]
    sentences: list[str]
    file: str


def run_demo(demo: Demo, out: Path) -> DemoResult:
    """Run the policies of a demo on its scenarios, with the bound, and write its report."""
    seeds = range(1, demo.seeds + 1)
    scenarios = [api.generate(demo.name, seed=seed, **demo.params) for seed in seeds]
    runs = api.compare(scenarios, demo.policies, seeds=seeds, bound=True).runs
    report.write(out / f"{demo.name}.html", scenarios, runs, title=demo.question)
    series = comparison.series_of(scenarios, runs)
    groups = [
        replace(
            s.group,
            number=ROLES[role(s.group.label)][1],
            runs=tuple(replace(r, tables={}) for r in s.group.runs),
        )
        for s in series
    ]
    return DemoResult(demo=demo, groups=groups, sentences=sentences(series), file=f"{demo.name}.html")


def tour(
    out: Path, pictures: Path | None = None, demos: Sequence[Demo] = DEMOS, jobs: int = 2
) -> list[DemoResult]:
    """Run every demo, print a table of each, write out/index.html and, if asked, the pictures of the docs."""
    begin = perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    tasks = [
        PoolTask(name=demo.name, group=demo.name, call=run_demo, args=(demo, out), expected_s=demo.expected_s)
        for demo in demos
    ]
    found: dict[str, DemoResult] = {}
    with bar("tour", len(tasks), unit="systems") as update:
        for done in run_tasks(tasks, Where(jobs=jobs)):
            if done.error:
                raise TradewindError(f"the demo of {done.task.name} failed: {done.error}")
            found[done.task.name] = done.value
            if update is not None:
                update(0, len(found))
    results = [found[demo.name] for demo in demos]
    console = Console(highlight=False)
    for each in results:
        _print(console, each)
    page = out / "index.html"
    atomic.write_text(page, _page(results))
    if pictures is not None:
        for path in picture(results, pictures / "systems"):
            print(f"picture: {path}")
    print(
        f"\nEvery decision passed the audit. Done in {perf_counter() - begin:.0f} s.\nOpen the report: {page}"
    )
    return results


def _print(console: Console, result: DemoResult) -> None:
    """Print the table of a demo: objective, ratio to bound, decision time."""
    objective = result.groups[0].objective
    shown = Table(
        title=f"{result.demo.name}: {result.demo.question}", title_justify="left", title_style="bold"
    )
    value = f"{quantities.name(objective)} ({quantities.better(objective)} is best)"
    for head in ("policy", value, "ratio to bound", "decision time"):
        shown.add_column(head, justify="left" if head == "policy" else "right")
    for each in result.groups:
        shown.add_row(_label(each), _value(each), _ratio(each), _decision(each))
    console.print()
    console.print(shown)


def _label(each: Group) -> str:
    return f"{each.label} (ours)" if each.label in our_policies() else each.label


def _value(each: Group) -> str:
    return quantities.measure(each.objective, each.value.mean)


def _ratio(each: Group) -> str:
    """Objective / bound with its 95% interval, which varies less between seeds than the objective."""
    ratio = each.ratio
    if not ratio.n:
        return "–"
    return f"{ratio.mean:.3f} ± {ratio.half:.3f}" if ratio.half > 0 else f"{ratio.mean:.3f}"


def _decision(each: Group) -> str:
    timed = [run.timings.decide_p50 for run in each.runs if run.timings is not None]
    return quantities.duration(sum(timed) / len(timed)) if timed else "–"


def _page(results: Sequence[DemoResult]) -> str:
    """The page: for each system the question, the answer, bars and numbers, and a link to the full report."""
    systems = ", ".join(each.demo.name for each in results)
    facts = f"{systems}: our policies next to the papers' and the baselines on small scenarios, every decision audited"
    return template("report.html").substitute(
        title="Tour of all systems",
        kind="tour",
        version=escape(__version__),
        facts=escape(facts),
        css=stylesheet(),
        body="".join(_part(each) for each in results),
        footer=f"Tradewind {escape(__version__)} · <code>make run</code>",
    )


def _part(result: DemoResult) -> str:
    groups = result.groups
    metric = quantities.name(groups[0].objective)
    rows = [
        ("" if i else "best", [escape(_label(g)), escape(_value(g)), _ratio(g)]) for i, g in enumerate(groups)
    ]
    with style():
        chart = ChartSpec(
            name=f"tour-{result.demo.name}",
            heading=f"Ratio of {metric} to bound",
            label=result.sentences[0],
            draw=lambda width: bars.ratio(groups, THEMED, width),
            entries=[
                *((ROLES[r][0], colour(ROLES[r][1])) for r in sorted({role(g.label) for g in groups})),
                _BOUND,
            ],
        ).half()
    numbers = table(["policy", metric, "ratio to bound"], rows, f"Numbers of {result.demo.name}", "numbers")
    both = f'<div class="pair">{chart.html()}<figure>{numbers}</figure></div>'
    link = f'<p class="note"><a href="{result.file}">Full report of {escape(result.demo.name)}</a></p>'
    return section(
        f"{result.demo.name}: {result.demo.question}",
        f"<p>{escape(' '.join(result.sentences))}</p>",
        both,
        link,
    )


def picture(results: Sequence[DemoResult], stem: Path) -> tuple[Path, Path]:
    """The picture of the README: one panel per system with the ratio to bound of each policy."""
    with style():
        columns = 2
        rows = -(-len(results) // columns)
        width, each_height, head = 1000.0, 190.0, 34.0
        height = head + rows * each_height
        figure = canvas(width, height)
        figure.set_facecolor(LIGHT.panel)
        _legend(figure, 1 - 16 / height)
        for number, each in enumerate(results):
            row, column = divmod(number, columns)
            left = (16 + bars.room_for(each.groups) + column * width / columns) / width
            bottom = 1 - (head + (row + 1) * each_height - 34) / height
            right = (column + 1) / columns - 54 / width
            axes = figure.add_axes((left, bottom, right - left, (each_height - 78) / height))
            bars.draw_ratio(axes, each.groups, LIGHT)
            title = f"{each.demo.name}: ratio of {quantities.name(each.groups[0].objective)} to bound"
            top = 1 - (head + row * each_height + 22) / height
            figure.text(
                (16 + column * width / columns) / width,
                top,
                title,
                color=LIGHT.ink,
                fontsize=13,
                weight="bold",
            )
        label = "; ".join(f"{e.demo.name}: {e.groups[0].label} is best" for e in results)
        return save(figure, stem, label)


def _legend(figure: Any, middle: float) -> None:
    """What the colours of all panels and the dashed line mean."""
    marks: list[Any] = [Patch(color=LIGHT.policy(number), label=name) for name, number in ROLES]
    marks.append(Line2D([], [], color=LIGHT.ink, linewidth=1.1, linestyle=(0, (4, 3)), label=_BOUND[0]))
    figure.legend(
        handles=marks, loc="center", bbox_to_anchor=(0.5, middle), ncols=len(marks), frameon=False,
        labelcolor=LIGHT.ink, fontsize=12,
    )  # fmt: skip
