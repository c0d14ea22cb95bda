"""Does changing the number of workers affect training? Measured with PyTorch on a testbed (Eris, Figure 6).

Ranks run in the namespaces of the sites where `eris` put them; gradients and parameters cross the links between them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tradewind.engine.instants import read_steps
from tradewind.engine.intervals import effective, end_us
from tradewind.lab.study import Effort, Judged, Row
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.params import resolve_params
from tradewind.registry import policies
from tradewind.report.figures.theme import Theme, axes_title, canvas, style_axes
from tradewind.systems.eris.workload import ERIS as WORKLOAD
from tradewind.train.local import LocalJob, environments, free_port, report_file
from tradewind.worlds.fleet import ranks_of
from tradewind.worlds.forkserver import ForkServer
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.wan import full_mesh

JOBS = {
    "pictures, CNN": ("--model", "cnn", "--size", "60KB", "--data", "shapes", "--rate", "0.03"),
    "points, MLP": ("--model", "mlp", "--size", "200KB", "--data", "synthetic", "--rate", "0.01"),
}
BATCH, SAMPLES = 64, 1024
FIXED = "2 workers all the time"
CHANGING = "workers and server as eris decides, slot by slot"
MARKET: dict[str, str | int | float] = {"size": "testbed", "sites": 4, "gpu": 2.0, "jobs": 12}
"""The market whose schedules are trained: four sites with two GPUs each, so that jobs wait for one another."""
SITES = tuple(f"site-{k}" for k in range(4))
BPS = 100_000_000
"""Rate of the links between sites, both ways."""
SEED = 1
TIMEOUT_S = 600.0
CLOSE = 0.01
"""Smaller differences in accuracy count as equal: 512 held-out samples cannot resolve them."""


Ranks = tuple[str, ...]
"""Sites of all ranks in a slot: the server, then the workers."""


def decided() -> list[Ranks]:
    """What `eris` gives, slot by slot, to the job of its market whose placement changes most often."""
    scenario = WORKLOAD.generate(resolve_params("eris", WORKLOAD.params, MARKET), SEED)
    run = simulate(scenario, policies.find("eris"), {}, seed=SEED)
    steps, intervals = read_steps(run.tables), effective(run, end_us(run))
    of_job: dict[int, list[Ranks]] = {}
    for job, step in zip(intervals.job.tolist(), intervals.step.tolist(), strict=True):
        names = tuple(scenario.setup.nodes[rank.node].name for rank in ranks_of(steps[step]))
        of_job.setdefault(job, []).append(names)
    return max(of_job.values(), key=lambda slots: (len(set(slots)), len(slots)))


def fixed_for(changing: Sequence[Ranks]) -> list[Ranks]:
    """Two workers for as many slots: one beside the server, one at the next site."""
    server = changing[0][0]
    following = SITES[(SITES.index(server) + 1) % len(SITES)]
    return [(server, server, following)] * len(changing)


def rows(effort: Effort) -> list[Row]:
    """Loss and accuracy over iterations, per job (quick: one) and schedule, with workers and megabytes of the slot."""
    if importlib.util.find_spec("torch") is None:
        raise InputError("this figure needs PyTorch, which is not installed; run: make install EXTRAS=train")
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    slot, changing, name = effort.pick(10, 40), decided(), own_name("study")
    found: list[Row] = []
    try:
        bed = testbed.up(full_mesh(SITES, BPS), name)
        with ForkServer(["tradewind.train.server"]) as fork_server:
            for job in list(JOBS)[: effort.pick(1, len(JOBS))]:
                for schedule, slots in ((FIXED, fixed_for(changing)), (CHANGING, changing)):
                    with tempfile.TemporaryDirectory(prefix="tradewind-workers-") as folder:
                        lines = _trained(bed, fork_server, Path(folder), job, slots, slot)
                        found += [{"job": job, "schedule": schedule, **line} for line in lines]
    finally:
        testbed.down(name)
    return found


def _trained(
    bed: testbed.Testbed, fork_server: ForkServer, folder: Path, job: str, slots: Sequence[Ranks], slot: int
) -> list[dict[str, float]]:
    """Train one job, restarted from its checkpoint in every slot; return a line per measured accuracy."""
    arguments = (
        *JOBS[job],
        "--batch",
        str(BATCH),
        "--samples",
        str(SAMPLES),
        "--evaluate-every",
        str(slot // 5),
    )
    lines: list[dict[str, float]] = []
    for number, sites in enumerate(slots):
        local = LocalJob(
            mode="ps",
            sites=sites,
            folder=folder,
            seed=1,
            stop_after=(number + 1) * slot,
        )
        log, before = folder / "log", sum(bed.sent_bytes().values())
        places = [bed.wan.index(site) for site in sites]
        own = {"MASTER_ADDR": bed.address(places[0]), "TRADEWIND_INTERFACE": testbed.INTERFACE}
        pids = [
            fork_server.start(
                "tradewind.train.__main__:rank",
                [*arguments, "--mode", "ps"],
                environment={"PATH": os.environ.get("PATH", ""), **environment, **own},
                namespace=bed.namespace(place),
                log=log,
            )
            for environment, place in zip(environments(local, free_port()), places, strict=True)
        ]
        codes = fork_server.wait_all(pids, TIMEOUT_S)
        if any(codes):
            output = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise TradewindError(
                f"training with {len(sites) - 1} workers failed: {output[-1] if output else codes}"
            )
        sent = {"sent_mb": (sum(bed.sent_bytes().values()) - before) / 1e6}
        report = report_file(local, 1)  # of the first worker, which measures accuracy
        lines += [
            _picked(line) | sent
            for line in map(json.loads, report.read_text().splitlines())
            if "accuracy" in line
        ]
        report.unlink()
    return lines


def _picked(line: dict[str, float]) -> dict[str, float]:
    return {key: float(line[key]) for key in ("iteration", "workers", "loss", "accuracy")}


def judge(found: Sequence[Row], _policy: str) -> Judged:
    """Are the curves with fixed and with changing workers the same?"""
    parts, same = [], True
    for job in dict.fromkeys(str(r["job"]) for r in found):
        fixed, changing = (
            [r for r in found if r["job"] == job and r["schedule"] == s] for s in (FIXED, CHANGING)
        )
        pairs = list(zip(fixed, changing, strict=True))
        apart = max(abs(float(a["accuracy"]) - float(b["accuracy"])) for a, b in pairs)
        loss = max(abs(float(a["loss"]) - float(b["loss"])) for a, b in pairs)
        same = same and apart <= CLOSE
        parts.append(
            f"{job}: accuracy {float(fixed[-1]['accuracy']):.3f} and {float(changing[-1]['accuracy']):.3f} after "
            f"{float(fixed[-1]['iteration']):.0f} iterations, at most {apart:.3f} apart; losses at most {loss:.1g} apart, "
            f"{_slots_mb(fixed):.1f} and {_slots_mb(changing):.1f} MB on links"
        )
    reason = (
        "; ".join(parts)
        + ". The global batch stays the same, so the sum of the workers' gradients does not depend on their number, up "
        "to rounding. A trainer whose batch grows with its workers would have to adapt its learning rate."
    )
    return Judged(same, reason)


def _slots_mb(lines: Sequence[Row]) -> float:
    """Megabytes on links in all slots; the lines of a slot have the same number."""
    return sum(
        float(a["sent_mb"]) for a, b in pairwise([*lines, {"sent_mb": -1.0}]) if a["sent_mb"] != b["sent_mb"]
    )


def paint(found: Sequence[Row], theme: Theme, width: float) -> Any:
    """Draw loss and accuracy side by side, the changing schedule over the fixed one."""
    figure = canvas(width, 340)
    figure.set_facecolor(theme.panel)
    for place, (what, title) in enumerate(
        (("loss", "loss of the batch"), ("accuracy", "accuracy on held-out data"))
    ):
        axes = figure.add_axes((0.06 + 0.5 * place, 0.28, 0.42, 0.6))
        style_axes(axes, theme)
        for number, job in enumerate(JOBS):
            for schedule, style in ((FIXED, "-"), (CHANGING, "o")):
                mine = [r for r in found if r["job"] == job and r["schedule"] == schedule]
                axes.plot(
                    [float(r["iteration"]) for r in mine], [float(r[what]) for r in mine], style, markersize=4,
                    markerfacecolor="none", color=theme.policy(number), label=f"{job}: {schedule}",
                )  # fmt: skip
        axes.set_xlabel("iteration")
        axes_title(axes, title, theme)
        if place == 0:
            figure.legend(
                *axes.get_legend_handles_labels(),
                loc="lower center",
                ncols=2,
                frameon=False,
                labelcolor=theme.ink,
            )
    return figure
