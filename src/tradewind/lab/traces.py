"""`python -m tradewind.lab.traces philly=FILE google=FILE openb=FILE`: recorded traces through every cluster policy.

Writes docs/lab/traces.md: mean completion time, ratio to the certified bound, CPU time and memory. Every run is a process of
its own and is kept in the folder of the work, so an interruption loses only what was running.
`NAME=FILE,limit=1000,servers=20` changes parameters of the workload `trace`.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

from tradewind.engine.bounds import bound
from tradewind.files import atomic
from tradewind.lab.code_key import code_key
from tradewind.model.errors import InputError, LookupFailed
from tradewind.registry import policies, systems, workloads
from tradewind.report.progress import bar
from tradewind.tasks.pool import PoolTask, run_tasks
from tradewind.worlds.simulate import simulate

PAGE = Path("docs/lab/traces.md")
SETTINGS: dict[str, dict[str, Any]] = {
    "philly": {"servers": 52},
    "google": {"servers": 100},
    "openb": {"servers": 100, "vcpus_per_server": 96.0, "mem_gb_per_server": 400.0},
}
"""Parameters of each trace's cluster, beside eight GPUs per server; a job of Google's trace takes one."""
BOUND = "bound"
"""Stands for the bound among the policies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace with the parameters of its workload."""

    name: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One policy, or the bound, on one trace; CPU seconds without reading the trace, peak memory with it."""

    trace: str
    policy: str
    jobs: int
    left_out: int
    completed: int
    jct_mean_s: float
    cpu_s: float
    read_s: float
    memory_gb: float


def trace_of(text: str) -> Trace:
    """`NAME=FILE` or `NAME=FILE,PARAMETER=VALUE,…`."""
    name, _, rest = text.partition("=")
    file, *more = rest.split(",")
    if name not in SETTINGS:
        raise LookupFailed("trace", name, SETTINGS)
    if not file or not all("=" in pair for pair in more):
        raise InputError(f"found {text!r}; it must be NAME=FILE or NAME=FILE,limit=1000", where="traces")
    given = dict(pair.split("=", 1) for pair in more)
    return Trace(name=name, params={"file": file, "format": name, **SETTINGS[name], **given})


def measure(trace: Trace, policy: str) -> Measured:
    """Run one policy, or compute the bound; the peak memory is that of this process."""
    begin = process_time()
    scenario = workloads.generate("trace", trace.params)
    read_s, begin = process_time() - begin, process_time()
    if policy == BOUND:
        found = bound(scenario)
        mean_s, completed = (found.value if found else math.nan), len(scenario.jobs)
    else:
        metrics = simulate(scenario, policies.find(policy)).metrics
        mean_s, completed = metrics["jct_mean_s"], int(metrics["jobs_completed"])
    left_out = scenario.origin["rows_left_out"]
    assert isinstance(left_out, Mapping)
    return Measured(
        trace=trace.name,
        policy=policy,
        jobs=len(scenario.jobs),
        left_out=sum(left_out.values()),
        completed=completed,
        jct_mean_s=mean_s,
        cpu_s=process_time() - begin,
        read_s=read_s,
        memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    )


def every_policy() -> list[str]:
    """The bound and all cluster policies."""
    return [BOUND, *sorted(systems()["cluster"].policies)]


def measured(traces: Sequence[Trace], work: Path, names: Sequence[str]) -> list[Measured]:
    """All runs, traces and policies in order; those that are kept are not run again, those that fail are named on stderr."""
    work.mkdir(parents=True, exist_ok=True)
    runs = [(t, name) for t in traces for name in names]
    found = []
    with bar("running", len(runs), unit="runs") as update:
        for done, (trace, name) in enumerate(runs, 1):
            place = work / f"{trace.name}-{name}.{_key(trace, name)}.json"
            if not place.exists():
                task = PoolTask(name=name, group=trace.name, call=measure, args=(trace, name))
                result = next(iter(run_tasks([task], apart=True)))
                if result.error:
                    print(f"{trace.name}, {name}: {result.error}", file=sys.stderr)
                    continue
                atomic.write_text(place, json.dumps(asdict(result.value)))
            found.append(Measured(**json.loads(place.read_text(encoding="utf-8"))))
            if update is not None:
                update(0, done)
    return found


def _key(trace: Trace, policy: str) -> str:
    """Of the code and the parameters behind a run; of a trace's file its name and size count."""
    path = Path(trace.params["file"])
    params = {**trace.params, "file": path.name, "bytes": path.stat().st_size if path.exists() else 0}
    return code_key(measure, policy, json.dumps(params, sort_keys=True))[:16]


def page(traces: Sequence[Trace], found: Sequence[Measured]) -> str:
    """The page as Markdown."""
    given = " ".join(_given(t) for t in traces)
    lines = [
        "# Recorded traces through every cluster policy",
        "",
        f"Generated by `python -m tradewind.lab.traces {given}`; do not edit. The files are not part of this repository.",
        "CPU time is that of the audited run, without reading the trace; memory is the peak of its process, with the trace.",
        "The bound is certified: no schedule has a smaller mean completion time.",
    ]
    if missing := [name for name in SETTINGS if name not in {t.name for t in traces}]:
        lines.append(f"Not run, for want of a file: {', '.join(missing)}.")
    for trace in traces:
        mine = [m for m in found if m.trace == trace.name]
        if not mine:
            continue
        lines += ["", f"## {trace.name}", "", _cluster(trace, mine[0]), ""]
        lines += ["| | mean completion time, s | ratio to the bound | completed | CPU time, s | memory, GB |"]
        lines += ["|---|---|---|---|---|---|"]
        least = next((m.jct_mean_s for m in mine if m.policy == BOUND), math.nan)
        for m in mine:
            ratio = "" if m.policy == BOUND else f"{m.jct_mean_s / least:.3f}"
            done = "" if m.policy == BOUND else f"{m.completed:,}"
            cells = (m.policy, f"{m.jct_mean_s:,.1f}", ratio, done, f"{m.cpu_s:,.1f}", f"{m.memory_gb:.2f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _given(trace: Trace) -> str:
    """What was asked for on the command line, without the folder of the file."""
    plain: dict[str, Any] = {"format": trace.name, **SETTINGS[trace.name]}
    changed = [f"{k}={v}" for k, v in trace.params.items() if k != "file" and plain.get(k) != v]
    return ",".join((f"{trace.name}={Path(trace.params['file']).name}", *changed))


def _cluster(trace: Trace, any_run: Measured) -> str:
    limit = int(trace.params.get("limit", 0))
    which = f"The first {any_run.jobs:,} jobs by arrival" if limit else f"All {any_run.jobs:,} jobs that ran"
    servers = f"{trace.params['servers']} servers of {trace.params.get('gpus_per_server', 8)} GPUs"
    return f"{which} ({any_run.left_out:,} rows without work are left out) on {servers}, read in {any_run.read_s:.1f} s."


def main() -> None:
    """Print the page and write it to a file."""
    parser = argparse.ArgumentParser(prog="python -m tradewind.lab.traces", description=__doc__)
    parser.add_argument(
        "traces", nargs="+", help=f"NAME=FILE[,PARAMETER=VALUE…]; names: {', '.join(SETTINGS)}"
    )
    parser.add_argument("--work", type=Path, default=Path("out/traces"), help="folder of finished runs")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    traces = [trace_of(text) for text in given.traces]
    text = page(traces, measured(traces, given.work, every_policy()))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(given.output, text)
    print(text)


if __name__ == "__main__":
    main()
