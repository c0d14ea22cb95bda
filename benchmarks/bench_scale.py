"""Simulation at the speed of its data: traces from file to run file, memory per job, ten million jobs, and plain simulators.

`python -m benchmarks.bench_scale` makes docs/lab/scale.md; it adds ten million jobs on 100,000 servers, the loop beside an
earlier commit and decisions at scale (scale_decisions.py), which `rows` leaves out. `--simulations` makes decisions from
what was measured; ladders without any point there stay as they are. `--page` also takes over ten million jobs and the loop
as the page has them. Times are CPU seconds. Each figure of a trace has a process of its own, whose libraries and kernels
are warm.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import tradewind as tw
from benchmarks import peers_plain, scale_decisions
from benchmarks.before import LOOP_BEFORE, loop_rows
from benchmarks.bench_cluster import folder
from benchmarks.scale_page import decisions
from tradewind.model.scenario import Scenario

PAGE = Path(__file__).parents[1] / "docs" / "lab" / "scale.md"
SERVERS = {"philly": 312, "google": 12_500}
LOOP = "## The loop (`tradewind run --loop`)"
PEER_JOBS = 3_000
"""Jobs for which plain simulators are run; their time grows faster than the number of jobs."""


def end_to_end(what: str, policy: str, servers: int) -> dict[str, float]:
    """CPU seconds and peak memory from a trace, or so many generated jobs, to the run file, in this process."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "small.csv"
        lines = [f"j{i},{7 * i % 9000},{60 + i % 500},{1 + i % 4}\n" for i in range(8_000)]
        path.write_text("id,arrive_s,duration_s,gpus\n" + "".join(lines))
        _whole(tw.generate("trace", file=str(path)), policy, Path(name))  # libraries and kernels
        before, begin = _peak_bytes(), process_time()
        if what in SERVERS:
            file = {"philly": "philly.csv", "google": "google2011_jobs.csv.gz"}[what]
            scenario = tw.generate("trace", file=str(folder() / file), format=what, servers=servers)
        else:
            scenario = tw.generate("cluster", jobs=int(what), servers=servers, load=0.9)
        _whole(scenario, policy, Path(name))
        spent, jobs = process_time() - begin, len(scenario.jobs)
        return {"jobs": jobs, "cpu_s": spent, "bytes": _peak_bytes() - before, "peak_bytes": _peak_bytes()}


def _whole(scenario: Scenario, policy: str, where: Path) -> None:
    tw.save(tw.run(scenario, policy, fast=True), where / "run.json")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(what: str, policy: str, servers: int) -> dict[str, float] | None:
    """`end_to_end` in a process of its own; None where the trace is not there."""
    if what in SERVERS and not (folder() / "philly.csv").exists():
        return None
    words = [sys.executable, "-m", "benchmarks.bench_scale", "--one", what, policy, str(servers)]
    found: dict[str, float] = json.loads(
        subprocess.run(words, check=True, capture_output=True, text=True).stdout
    )
    return found


def _row(
    name: str, value: float | None, unit: str, target: float | None, better: str = "higher"
) -> dict[str, Any]:
    return {"name": name, "measured": value, "unit": unit, "target": target, "better": better}


def traces() -> list[dict[str, Any]]:
    """Philly and Google from file to run file, a million generated jobs, and memory per further job."""
    found, pace, unit = [], "jobs per CPU second", {}
    for policy in ("fifo", "las"):
        one = unit[policy] = measured("philly", policy, SERVERS["philly"])
        value = None if one is None else one["jobs"] / one["cpu_s"]
        found.append(_row(f"Philly, file to run file, {policy}", value, pace, 30_000) | {"goal": 60_000})
    google = measured("google", "fifo", SERVERS["google"])
    found.append(
        _row(
            "Google, file to run file, fifo", None if google is None else google["cpu_s"], "s", 10.0, "lower"
        )
    )
    million = measured("1000000", "fifo", 10_000)
    assert million is not None
    found.append(_row("10^6 jobs on 10^4 servers, fifo", million["cpu_s"], "s", 12.0, "lower"))
    found.append(_row("memory per job of 10^6", million["bytes"] / million["jobs"], "B", 700.0, "lower"))
    philly = unit["fifo"]
    found.append(
        _row(
            "memory per job of Philly",
            None if philly is None else philly["bytes"] / philly["jobs"],
            "B",
            700.0,
            "lower",
        )
    )
    return found


def peers() -> list[dict[str, Any]]:
    """How many times as long plain simulators take for the same jobs as the audited compiled run, in one process."""
    scenario = tw.generate("cluster", jobs=PEER_JOBS, servers=20, load=1.1, seed=1)
    jobs = scenario.columns
    assert jobs is not None
    columns = (jobs.arrive_us / 1e6, jobs.runtime_us / 1e6, jobs.workers)
    data = list(zip(*(column.tolist() for column in columns), strict=True))
    found = []
    plain: dict[str, tuple[str, Callable[[peers_plain.Rows, int], float]]] = {
        "SimPy sketch": ("fifo", peers_plain.simpy_fifo),
        "Tiresias' rule in plain Python": ("las", peers_plain.tiresias_las),
        "Gavel's rounds in plain Python": ("las", peers_plain.gavel_rounds),
    }
    for name, (policy, simulate) in plain.items():
        try:
            theirs, mean = _timed(lambda run=simulate: run(data, 160))  # type: ignore[misc]
        except ImportError as error:
            found.append(_row(f"{name} / {policy}", None, "times", 1.0) | {"note": str(error)})
            continue
        tw.run(scenario, policy, fast=True)
        for way, fast in (("compiled", True), ("loop", False)):
            ours, result = _timed(lambda fast=fast, policy=policy: tw.run(scenario, policy, fast=fast))  # type: ignore[misc]
            row = _row(f"{name} / {policy}, {way}", theirs / ours, "times", None)
            note = f"mean completion {mean:,.0f} s there, {result.metrics['jct_mean_s']:,.0f} s here, audited"
            found.append(row | {"note": note})
    return found


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = process_time()
    value = call()
    return process_time() - begin, value


def rows() -> list[dict[str, Any]]:
    """All figures but ten million jobs."""
    return traces() + peers()


def peer_lines(page: str) -> list[str]:
    """Rows of plain simulators; those that are not installed here stay as they are on the page."""
    lines: list[str] = []
    for row in peers():
        old = [line for line in page.splitlines() if line.startswith(f"| {row['name']}, ")]
        new = f"| {row['name']} | {_shown(row)} | {row.get('note', '')} |"
        lines += old if old and row["measured"] is None else [new]
    return lines


def simulations(kept: str, page: str) -> list[str]:
    """The part of docs/lab/scale.md about simulations and peers; kept: a page with the figures that take minutes, or ""."""
    shown = [f"| {row['name']} | {_shown(row)} | {_limit(row)} |" for row in traces()]
    if kept:
        shown += [line for line in kept.splitlines() if line.startswith("| 10^7")]
        loop = kept[kept.index(LOOP) : kept.index("## Beside")].splitlines() if LOOP in kept else []
    else:
        huge, loop = measured("10000000", "fifo", 100_000), _loop()
        assert huge is not None
        for row in (
            _row("10^7 jobs on 10^5 servers, fifo", huge["cpu_s"], "s", 120.0, "lower"),
            _row("10^7 jobs on 10^5 servers, peak memory", huge["peak_bytes"] / 1e9, "GB", 6.0, "lower"),
        ):
            shown.append(f"| {row['name']} | {_shown(row)} | {_limit(row)} |")
    return [
        "## Simulation: from a trace, or generated jobs, to the run file (`tradewind run --fast`)",
        "",
        "| | measured | target |",
        "|---|---|---|",
        *shown,
        "",
        "Memory is the growth of the peak over a small run in the same process, divided by the number of jobs.",
        "",
        *loop,
        f"## Beside plain simulators ({PEER_JOBS:,} generated jobs on 160 GPUs, one process)",
        "",
        "How many times as long they take. They keep no records and check nothing; Gavel's rule is another one, in rounds.",
        "",
        "| | times | |",
        "|---|---|---|",
        *peer_lines(page),
        "",
    ]


def _loop() -> list[str]:
    """The audited loop beside the commit before it was made faster; nothing without the trace."""
    if not (folder() / "philly.csv").exists():
        return []
    lines = [
        f"{LOOP} beside commit {LOOP_BEFORE}, in one run",
        "",
        "Jobs per CPU second on the Philly trace, with audit and records.",
        "",
        "| | before | now | times | target |",
        "|---|---|---|---|---|",
    ]
    for row in loop_rows(folder() / "philly.csv"):
        shown = f"| {row['name']} | {row['before']:,.0f} | {row['measured']:,.0f} | {row['measured'] / row['before']:.2f} "
        lines.append(f"{shown}| {_limit(row | {'better': 'higher'})} |")
    return [*lines, ""]


def page(kept: str = "", loop: bool = True) -> str:
    """docs/lab/scale.md; kept: a page whose decisions are taken over where none was measured; not `loop`: its loop, too."""
    first = simulations("" if loop else kept, kept)
    if not kept:
        scale_decisions.measure()
    head = [
        "# Scale",
        "",
        "Made by `python -m benchmarks.bench_scale`. CPU seconds of one process; runs are audited.",
        "",
    ]
    return "\n".join([*head, *first, *decisions(kept)])


def _shown(row: dict[str, Any]) -> str:
    value = row["measured"]
    return (
        "not run"
        if value is None
        else f"{value:,.0f} {row['unit']}"
        if value >= 100
        else f"{value:.2f} {row['unit']}"
    )


def _limit(row: dict[str, Any]) -> str:
    sign = "at least" if row["better"] == "higher" else "at most"
    fine = row["measured"] is None or (row["measured"] >= row["target"]) == (row["better"] == "higher")
    return f"{sign} {row['target']:,.0f}" + ("" if fine else ", **missed**")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(end_to_end(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        kept = PAGE.read_text() if sys.argv[1:2] in (["--page"], ["--simulations"]) else ""
        PAGE.write_text(page(kept, loop=sys.argv[1:2] != ["--page"]), encoding="utf-8")
        print(PAGE)
