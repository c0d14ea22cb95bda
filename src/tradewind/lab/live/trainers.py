"""Several training jobs at once under the live loop, on a testbed that carries out the routes and rates of their plans.

The jobs are those of the figure `reservation`, run by `apsp` with `reserve=always` as real trainers: the loop plans, pins
paths, starts ranks, and measures their iterations. What a plan predicts counts no headers; they are added here.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tradewind.engine.instants import read_steps
from tradewind.engine.intervals import ints
from tradewind.lab.live.reservation import CLOSE, SCALE, UNIT_BYTES, scenario_of
from tradewind.lab.study import Effort, Judged, Row
from tradewind.lab.testbed.networks import network
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.job import Rounds
from tradewind.model.progress import comm_us
from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_S
from tradewind.registry import policies
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.wan import GOODPUT, Wan

SECONDS = 1.5
"""Planned time of a round; the sizes of models follow from it."""
ALWAYS = {"reserve": "always"}
BATCH, SAMPLES = 3, 48


def trainers(wan: Wan, seed: int, rounds: int) -> Scenario:
    """Jobs of so many rounds with a program; models are so large that a round is planned to take SECONDS."""
    given = scenario_of(wan, seed, 1)
    setup = replace(given.setup, slot_us=US_PER_S, horizon_us=600 * US_PER_S)
    run = simulate(given, policies.find("apsp"), ALWAYS)
    of_job = ints(run, "plans", "job")
    unit_us = {
        int(of_job[plan]): comm_us(setup, given.jobs[int(of_job[plan])], step)
        for plan, step in zip(ints(run, "steps", "plan"), read_steps(run.tables), strict=True)
    }
    jobs = []
    for job in given.jobs:
        size = round(SECONDS * US_PER_S / unit_us[job.index] * UNIT_BYTES)
        command = (
            sys.executable, "-m", "tradewind.train", "--mode", "ps", "--model", "mlp", "--size", str(size),
            "--batch", str(BATCH), "--samples", str(SAMPLES), "--iterations", str(rounds),
        )  # fmt: skip
        assert isinstance(job.work, Rounds)
        jobs.append(replace(job, work=replace(job.work, count=rounds), model_bytes=size, command=command))
    return replace(given, setup=setup, jobs=tuple(jobs))


def measured(wan: Wan, seed: int, rounds: int) -> list[Row]:
    """A row per job and site: mean seconds of its iterations beside the prediction."""
    given = trainers(wan, seed, rounds)
    name = own_name("study")
    try:
        testbed.up(wan, name)
        with tempfile.TemporaryDirectory(prefix="tradewind-trainers-") as folder:
            Path(folder).chmod(0o711)
            options = ExecutionOptions(networks=networks_of_testbed(name), testbed=name, as_root=True)
            request = LiveRequest(
                scenario=given, spec=policies.find("apsp"), params=ALWAYS, seed=1, state=Path(folder) / "state",
                options=options,
            )  # fmt: skip
            run = live(request)
    finally:
        testbed.down(name)
    if set(run.tables["outcomes"]["state"]) != {"finished"}:
        raise TradewindError(f"not all jobs finished: {', '.join(map(str, run.tables['alarms']['text']))}")
    table = run.tables["measurements"]
    names = ("job", "node", "iterations", "measured_s", "error_s", "predicted_s")
    found = (dict(zip(names, row, strict=True)) for row in zip(*(table[n] for n in names), strict=True))
    return [
        {
            "network": f"{wan.name}, {len(wan.sites)} sites", "draw": seed, "job": int(row["job"]),
            "site": wan.sites[int(row["node"])], "iterations": int(row["iterations"]),
            "predicted_s": float(row["predicted_s"]) / GOODPUT, "measured_s": float(row["measured_s"]),
            "error_s": float(row["error_s"]),
        }
        for row in found
    ]  # fmt: skip


def rows(effort: Effort) -> list[Row]:
    """A mesh of 4 sites; in full also one of 6 sites and all of B4."""
    if importlib.util.find_spec("torch") is None:
        raise InputError("this figure needs PyTorch, which is not installed; run: make install EXTRAS=train")
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    beds = [("mesh", 4), *effort.pick([], [("mesh", 6), ("b4", 0)])]
    return [
        row
        for topology, sites in beds
        for seed in range(effort.pick(1, 3))
        for row in measured(network(topology, scale=SCALE, sites=sites, seed=seed), seed, effort.pick(5, 20))
    ]


def judge(found: Sequence[Row], _policy: str) -> Judged:
    """Do iterations take the predicted time?"""
    texts, worst = [], 0.0
    for where in dict.fromkeys(str(row["network"]) for row in found):
        mine = [row for row in found if row["network"] == where]
        off = [float(row["measured_s"]) / float(row["predicted_s"]) - 1 for row in mine]
        worst = max(worst, *map(abs, off))
        texts.append(f"{where}: {100 * min(off):+.1f}% to {100 * max(off):+.1f}% in {len(mine)} means")
    return Judged(worst <= CLOSE, "; ".join(texts))
