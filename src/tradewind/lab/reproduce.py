"""`tradewind reproduce`: computes the figures of the papers and compares them with the claims: CSV, pictures, one page.

Figures, or their parts, are computed in separate processes and saved at once under a key of the code behind them
(`code_key`). An interruption loses only what was running, and a change of a policy, workload or study recomputes only the
results that it may affect. Figures or parts with the same key are computed once. One process begins with the studies that
are expected to take least, so that an interrupted run has most of the figures.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from tradewind.files import atomic
from tradewind.files.row_tables import write_csv
from tradewind.lab import reproduce_page
from tradewind.lab.code_key import code_key
from tradewind.lab.reproduce_page import VERDICTS, Result
from tradewind.lab.reproduce_times import SAVED, expected, total, words
from tradewind.lab.study import Effort, PaperFigure, Part, Row, Study, Verdict
from tradewind.model.errors import LookupFailed, TradewindError
from tradewind.model.units import US_PER_HOUR
from tradewind.registry import studies
from tradewind.report.progress import bar
from tradewind.tasks.pool import HERE, PoolTask, Where, run_tasks
from tradewind.traces.arrivals import DRAWN, instead_of_drawn, recorded_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A unit of computation: a whole figure or a part of one."""

    system: str
    figure: str
    part: str
    key: str

    @property
    def file(self) -> str:
        stem = "-".join(filter(None, (self.system, self.figure, re.sub(r"[^\w-]+", "_", self.part))))
        return f"{stem}.{self.key[:16]}.json"


def reproduce(
    systems: Sequence[str], out: Path, *, figure: str = "", effort: Effort, where: Where = HERE
) -> list[Result]:
    """Compute the figures, reusing saved results, and write everything to `out`."""
    wanted = _wanted(systems, figure)
    recorded_slots(
        effort.arrivals, 1, 1, US_PER_HOUR, np.random.default_rng(0)
    )  # refused once, not by every figure
    pieces = {(s, f.name): _pieces(s, f, effort) for s, f in wanted}
    rows, failed = _computed([p for several in pieces.values() for p in several], out, effort, where)
    results = []
    for system, paper in wanted:
        mine = pieces[system, paper.name]
        errors = [f"{p.part}: {failed[p]}" if p.part else failed[p] for p in mine if p in failed]
        results.append(_judged(system, paper, effort, [rows.get(p, []) for p in mine], errors))
        last = results[-1]
        write_csv(out / system / f"{paper.name}.csv", list(last.rows[0]) if last.rows else [], last.rows)
    verdicts = [line for r in results for line in r.verdicts()]
    write_csv(out / "verdicts.csv", VERDICTS, verdicts)
    reproduce_page.write(out, systems, results, effort)
    return results


def _wanted(systems: Sequence[str], figure: str) -> list[tuple[str, PaperFigure]]:
    """Figures by name ("fig-5" also matches fig-5-b4 and fig-5-internet2), or by a "Figure 4" in the title."""
    every = [(s, f) for s in systems for f in studies.find(s).figures]
    if not figure:
        return every
    found = [(s, f) for s, f in every if f.name == figure or f.name.startswith(f"{figure}-")]
    if not found and figure.startswith("fig-"):
        title = re.compile(rf"\bFigure {re.escape(figure[4:])}\b")
        found = [(s, f) for s, f in every if title.search(f.title)]
    if not found:
        raise LookupFailed(f"figure of {', '.join(systems)}", figure, [f.name for _, f in every])
    return found


def _parts(paper: PaperFigure, effort: Effort) -> Sequence[Part]:
    return paper.pieces.parts(effort) if paper.pieces else (Part(name="", rows=paper.rows),)


def _pieces(system: str, paper: PaperFigure, effort: Effort) -> list[Piece]:
    return [
        Piece(
            system=system,
            figure=paper.name,
            part=part.name,
            key=code_key(part.rows, *_settings(effort)),
        )
        for part in _parts(paper, effort)
    ]


def _settings(effort: Effort) -> tuple[object, ...]:
    """What results depend on besides the code; drawn arrivals are the rule and not named."""
    return (effort.quick, effort.seeds, *(() if effort.arrivals == DRAWN else (effort.arrivals,)))


def _compute(where: str, figure: str, part: str, effort: Effort) -> list[Row]:
    """Rows of a figure or part; runs in a separate process. `where` is the "module:attribute" of the study."""
    module, _, attribute = where.partition(":")
    study: Study = getattr(import_module(module), attribute)
    paper = next(f for f in study.figures if f.name == figure)
    with instead_of_drawn(effort.arrivals):
        rows = next(p for p in _parts(paper, effort) if p.name == part).rows(effort)
    return [{k: v if isinstance(v, str) else float(v) for k, v in row.items()} for row in rows]


def _computed(
    pieces: Sequence[Piece], out: Path, effort: Effort, where: Where
) -> tuple[dict[Piece, list[Row]], dict[Piece, str]]:
    """Rows by piece, and error messages of the pieces that failed."""
    (out / SAVED).mkdir(parents=True, exist_ok=True)
    rows = {p: saved for p in pieces if (saved := _load(out, p)) is not None}
    same: dict[str, list[Piece]] = {}
    for piece in pieces:
        if piece not in rows:
            same.setdefault(piece.key, []).append(piece)
    todo = {_name(several[0]): several for several in same.values()}
    failed: dict[Piece, str] = {}
    tasks = shortest_first([_task(several[0], pieces, effort) for several in same.values()])
    _announce(tasks, len(rows), where, effort)
    with bar("reproducing", len(pieces), unit="figures and parts") as update:
        # caches of a study do not know the arrivals
        for done in run_tasks(tasks, where, apart=effort.arrivals != DRAWN):
            for piece in todo[done.task.name]:
                if done.error:
                    failed[piece] = done.error
                else:
                    rows[piece] = done.value
                    _save(
                        out, piece, effort, done.value, done.cpu_s if done.task.name == _name(piece) else 0.0
                    )
            if update is not None:
                update(0, len(rows) + len(failed))
    return rows, failed


def shortest_first(tasks: Sequence[PoolTask]) -> list[PoolTask]:
    """Studies by expected time, and so the figures of each; parts of a figure stay in their order."""
    groups, figures = dict[str, float](), dict[tuple[str, str], float]()
    for task in tasks:
        figure = (task.group, str(task.args[1]))
        groups[task.group] = groups.get(task.group, 0.0) + task.expected_s
        figures[figure] = figures.get(figure, 0.0) + task.expected_s
    return sorted(tasks, key=lambda t: (groups[t.group], t.group, figures[t.group, str(t.args[1])]))


def _name(piece: Piece) -> str:
    return "/".join(filter(None, (piece.system, piece.figure, piece.part)))


def _task(piece: Piece, pieces: Sequence[Piece], effort: Effort) -> PoolTask:
    siblings = sum((p.system, p.figure) == (piece.system, piece.figure) for p in pieces)
    return PoolTask(
        name=_name(piece),
        group=piece.system,
        call=_compute,
        args=(studies.entries[piece.system], piece.figure, piece.part, effort),
        expected_s=expected(piece.system, piece.figure, effort)[0] / siblings,
    )


def _announce(tasks: Sequence[PoolTask], saved: int, where: Where, effort: Effort) -> None:
    """Print to stderr what is left to compute and how long it will take."""
    if not tasks:
        return
    figures = {(t.group, str(t.args[1])) for t in tasks}
    seconds = sum(t.expected_s for t in tasks)
    _, known = total(figures, effort)
    how = "measured" if known > 0.99 else "estimated" if known < 0.01 else "partly measured, partly estimated"
    before = f" ({saved} already computed)" if saved else ""
    wall = words(seconds / min(max(1, where.jobs), len(tasks)))
    took = str(where) if where.on and not where.jobs else f"{wall} {where}"
    print(
        f"{len(tasks)} figures or parts to compute{before}: about {words(seconds)} of CPU time ({how}), {took}",
        file=sys.stderr,
    )


def _load(out: Path, piece: Piece) -> list[Row] | None:
    """Rows saved by the same code earlier, or None."""
    try:
        saved = json.loads((out / SAVED / piece.file).read_text(encoding="utf-8"))
        rows: list[Row] = saved["rows"]
        return rows if saved["key"] == piece.key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


@cache
def commit() -> str:
    """The commit of the checkout that this code runs from, with "+" if its code was changed; empty outside of one."""
    here = Path(__file__).parents[1]

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=7", "HEAD") + (
            "+" if git("status", "--porcelain", "--", ".") else ""
        )
    except (OSError, subprocess.SubprocessError):
        return ""


def _save(out: Path, piece: Piece, effort: Effort, rows: list[Row], cpu_s: float) -> None:
    """Save the rows of a piece and delete those of earlier versions of the code."""
    text = {
        "key": piece.key, "system": piece.system, "figure": piece.figure, "part": piece.part,
        "quick": effort.quick, "seeds": effort.seeds, "arrivals": effort.arrivals, "cpu_s": cpu_s, "commit": commit(),
        "rows": rows,
    }  # fmt: skip
    atomic.write_text(out / SAVED / piece.file, json.dumps(text))
    stem = piece.file[: -len(".json") - 17]
    for old in (out / SAVED).glob(f"{stem}.*.json"):
        if old.name != piece.file and _same_effort(old, effort):
            old.unlink(missing_ok=True)


def _same_effort(path: Path, effort: Effort) -> bool:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        arrivals = saved.get("arrivals", DRAWN)
        return Effort(quick=saved["quick"], seeds=saved["seeds"], arrivals=arrivals) == effort
    except (OSError, ValueError, TypeError, KeyError):
        return True


def _judged(
    system: str, paper: PaperFigure, effort: Effort, rows: list[list[Row]], errors: Sequence[str]
) -> Result:
    """A figure with its verdict, or with the reason why it failed."""
    found: list[Row] = []
    if not errors:
        try:
            found = paper.pieces.join(effort, rows) if paper.pieces else rows[0]
            return Result(system=system, figure=paper, rows=found, verdict=paper.judge(found))
        except (TradewindError, ArithmeticError, LookupError, ValueError) as error:
            errors = [f"judging the rows failed with {type(error).__name__}: {error}"]
    return Result(
        system=system, figure=paper, rows=found, verdict=Verdict(outcomes=()), error="; ".join(errors)
    )
