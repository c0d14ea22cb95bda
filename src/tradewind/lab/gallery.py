"""`make docs-pictures`: docs/gallery.md and its pictures, made from a quick reproduction of all papers.

Figures that are kept from an earlier run of `tradewind reproduce all --quick` in the same folder are not computed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tradewind.files import atomic
from tradewind.lab.reproduce import reproduce
from tradewind.lab.reproduce_page import Result
from tradewind.lab.reproduce_times import total, words
from tradewind.lab.study import Effort
from tradewind.registry import studies

PICKED: dict[str, tuple[str, ...]] = {
    "apsp": ("table-3", "fig-5-b4", "fig-6-b4"),
    "cross": ("table",),
    "dps": ("fig-2", "fig-3", "table-markets"),
    "eris": ("fig-7", "fig-10"),
    "gadget": ("fig-4", "fig-6"),
    "mlbroker": ("fig-8", "fig-11", "table-4"),
}
"""Figures whose pictures are in the gallery; the verdicts of all are."""
QUICK = Effort(quick=True, seeds=3)


def gallery(work: Path, docs: Path, systems: Sequence[str], jobs: int) -> Path:
    """Writes docs/gallery.md and docs/pictures/*.svg; returns the page."""
    results = reproduce(systems, work, effort=QUICK, jobs=jobs)
    pictures = docs / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for r in results:
        if r.figure.name in PICKED.get(r.system, ()) and r.rows:
            shutil.copyfile(work / r.system / f"{r.figure.name}.svg", pictures / _file(r))
    path = docs / "gallery.md"
    atomic.write_text(path, page(results, systems))
    return path


def _file(r: Result) -> str:
    return f"{r.system}-{r.figure.name}.svg"


def page(results: Sequence[Result], systems: Sequence[str]) -> str:
    """The gallery as Markdown: one part per system with its pictures and the verdicts of all its figures."""
    every = [(s, f.name) for s in systems for f in studies.find(s).figures]
    quick, full = (words(total(every, Effort(quick=q, seeds=QUICK.seeds))[0]) for q in (True, False))
    lines = [
        "# Gallery",
        "",
        "Made by `make docs-pictures` from `tradewind reproduce all --quick`; do not edit. Whiskers are 95% intervals over",
        f"seeds. The quick version takes about {quick} of CPU time, the full one about {full} (measured, or estimated from",
        "earlier runs: `lab/times.json`); numbers of the full one may differ.",
        "`tradewind reproduce NAME --figure F -o DIR` computes one figure with its CSV, SVG and PNG.",
        "",
        "![Six small scenarios: objective by bound for each policy](pictures/systems.svg)",
        "",
        "<sub>`make run`: one small scenario per system. The dashed line at 1 is the bound; cost and time lie above it,",
        "profit, welfare and utility below.</sub>",
    ]
    for system in systems:
        mine = [r for r in results if r.system == system]
        lines += ["", f"## {studies.find(system).title}", "", f"`tradewind reproduce {system} --quick`", ""]
        for r in mine:
            if r.figure.name in PICKED.get(system, ()) and r.rows:
                lines += [f"![{_plain(r.figure.title)}](pictures/{_file(r)})", ""]
        lines += ["| figure | the paper says | verdict |", "|---|---|---|"]
        for r in mine:
            word = "failed" if r.failed else r.finding.word
            cells = (r.figure.title, r.figure.claim, f"**{word}**: {r.finding.reason}")
            lines.append(f"| {' | '.join(_plain(c) for c in cells)} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that cannot break a table or a link."""
    return " ".join(text.replace("|", "/").replace("[", "(").replace("]", ")").replace("<", "&lt;").split())
