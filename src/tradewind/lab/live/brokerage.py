"""mlBroker's real experiment at a scale that fits one machine (Table 4, Table 5, Figures 15-17), on real processes.

Jobs of the paper's models get pictures at three zones of a testbed in every slot. Each policy runs them live: data moves as
planned, workers train on it and exchange parameters with their server over links of the testbed. Bills are those of the
plans. Instance hours are measured: the time that workers compute and wait for the server, where an hour is the time in which
a worker computes as much as it is planned to process in a slot; servers count as planned. Rent is paid for these hours. What
a busy machine did not train on in its slot would have taken hours, too: they count like those of the rest.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tradewind.engine.intervals import ints
from tradewind.engine.live import LiveSession
from tradewind.lab.live import instance
from tradewind.lab.study import Effort, Judged, Row
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.job import Data, Job, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario, Volumes
from tradewind.registry import policies
from tradewind.systems.mlbroker.study.real import instance_hours
from tradewind.systems.mlbroker.study.rows import PARTS
from tradewind.systems.mlbroker.workload.real import (
    INSTANCE_USD_PER_HOUR,
    RealSettings,
    real_experiment,
)
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.wan import full_mesh

POLICIES = ("mlbroker", "mlbroker-paper", "oasis", "central", "local")
BPS = 8_000_000
"""Rate of the links between zones."""
SCALE = 5e-5
"""Bytes of files, and of parameters, per byte of the experiment."""
SETTINGS = RealSettings(threshold_instances=5.0)
"""Discounts begin at fewer instances, because there are fewer jobs."""
SHARE = 0.4
"""Part of a slot in which a worker computes what it is planned to process; the rest is for starting and for waiting."""
RECORD = 145


def experiment(seed: int, jobs: int, slots: int, slot_s: float) -> Scenario:
    """The first jobs and slots of the experiment, with a program for every job."""
    whole = real_experiment(seed, SETTINGS)
    kept = [job for job in whole.jobs if job.arrive_us < slots * whole.setup.slot_us][:jobs]
    rows = whole.volumes
    mine = (rows.job < len(kept)) & (rows.slot < slots)
    return Scenario(
        name=f"mlbroker-real-{len(kept)}x{slots}",
        setup=replace(whole.setup, horizon_us=slots * whole.setup.slot_us),
        jobs=tuple(_with_program(job, slot_s) for job in kept),
        customers=whole.customers[: len(kept)],
        volumes=Volumes(
            job=rows.job[mine], slot=rows.slot[mine], node=rows.node[mine], bytes=rows.bytes[mine]
        ),
        origin={"workload": "mlbroker-real", "seed": seed, "jobs": jobs, "slots": slots},
    )


def _with_program(job: Job, slot_s: float) -> Job:
    """The job with a command: a worker exchanges all parameters as often in a slot as the experiment says."""
    work, exchanges = job.work, SETTINGS.exchanges_per_slot
    assert isinstance(work, Stream)
    batch = max(RECORD, round(work.bytes_per_worker_slot * SCALE / exchanges))
    least = 8 * 144 * instance.CLASSES
    values = {
        instance.MODEL: max(least, round(job.model_bytes * SCALE)), instance.BATCH: batch,
        instance.SECONDS: SHARE * slot_s / exchanges,
    }  # fmt: skip
    return replace(
        job,
        command=(sys.executable, "-m", "tradewind.lab.live.instance"),
        env=tuple((name, str(value)) for name, value in values.items()),
        data=Data(
            source="shapes", record_bytes=RECORD, shard_bytes=max(RECORD, batch // RECORD * RECORD * 4)
        ),
    )


def measured(scenario: Scenario, policy: str, slot_s: float, bed: testbed.Testbed) -> Row:
    """One live run: costs by part, measured hours, hours of waiting among them, discount rate, data that was missed."""
    worlds: list[FleetWorld] = []

    def watch(_: LiveSession, world: FleetWorld) -> None:
        worlds[:] = [world]

    with tempfile.TemporaryDirectory(prefix="tradewind-brokerage-") as folder:
        Path(folder).chmod(0o711)
        request = LiveRequest(
            scenario=scenario, spec=policies.find(policy), seed=1, state=Path(folder) / "state",
            slot_seconds=slot_s, data_scale=SCALE,
            options=ExecutionOptions(networks=networks_of_testbed(bed.name), testbed=bed.name, grace_s=2.0, as_root=True),
        )  # fmt: skip
        run = live(request, watch)
    if not worlds:
        raise TradewindError(f"the live run of {policy} ended before it began")
    return {"policy": policy, **outcome(scenario, run, worlds[0], slot_s)}


def outcome(scenario: Scenario, run: Run, world: FleetWorld, slot_s: float) -> dict[str, float]:
    """What a run cost and took; rent is for measured hours at the rate that the plans got."""
    planned, listed = instance_hours(scenario, run)
    rate = run.metrics["cost_rent_usd"] / listed
    busy_s = waited_s = 0.0
    for gang in world.gangs.values():
        for attempt in gang.attempts:
            workers = {n for n, rank in enumerate(attempt.launch.ranks) if rank.role == "worker"}
            spent = attempt.tally.spent_s(workers)
            busy_s, waited_s = busy_s + spent[0], waited_s + spent[1]
    hour_s = SHARE * slot_s * trained_share(run)
    waiting = waited_s / hour_s
    hours = busy_s / hour_s + _server_hours(run)
    rent = hours * INSTANCE_USD_PER_HOUR * rate
    parts = {part: run.metrics[f"cost_{part}_usd"] for part in PARTS if part != "rent"}
    missed = sum(violation.rule == "shards.processed" for violation in run.violations)
    return {
        "cost": rent + sum(parts.values()), "rent": rent, **parts, "hours": hours, "waiting": waiting,
        "planned hours": planned, "discount": rate, "missed": float(missed),
    }  # fmt: skip


def trained_share(run: Run) -> float:
    """The part of all data that was trained on in its slot."""
    shards = run.tables["shards"]
    rows = list(zip(ints(run, "shards", "bytes"), shards["processed_us"], strict=True))
    done = sum(int(size) for size, at_us in rows if at_us >= 0)
    if not done:
        raise TradewindError("no data was trained on in its slot: this machine is too busy to measure hours")
    return done / sum(int(size) for size, _ in rows)


def _server_hours(run: Run) -> float:
    """Slots of parameter servers, by the steps that ran."""
    plan_of, servers = run.tables["steps"]["plan"], run.tables["places"]
    first = {int(plan): 0.0 for plan in plan_of}
    for step, count in zip(servers["step"], servers["servers"], strict=True):
        first[int(plan_of[int(step)])] += int(count)
    return sum(first.values())


def rows(effort: Effort) -> list[Row]:
    """A row per policy and seed."""
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    jobs, slots, slot_s = effort.pick(2, 4), effort.pick(2, 6), effort.pick(3.0, 10.0)
    found: list[Row] = []
    name = own_name("study")
    for seed in range(effort.pick(1, 2)):
        scenario = experiment(seed, jobs, slots, slot_s)
        for policy in POLICIES:  # so that their kernels are compiled before time counts
            simulate(scenario, policies.find(policy))
        try:
            bed = testbed.up(full_mesh([node.name for node in scenario.setup.nodes], BPS), name)
            found += [{"seed": seed, **measured(scenario, policy, slot_s, bed)} for policy in POLICIES]
        finally:
            testbed.down(name)
    return found


def mean_of(found: Sequence[Row], policy: str, column: str) -> float:
    """Mean over seeds."""
    return float(np.mean([float(row[column]) for row in found if row["policy"] == policy]))


def least(column: str, *rivals: str) -> Callable[[Sequence[Row], str], Judged]:
    """Whether the judged policy (or, where none is, the first rival) has the smallest value of a column."""

    def judge(found: Sequence[Row], policy: str) -> Judged:
        mine, others = (policy, rivals) if policy else (rivals[0], rivals[1:])
        values = {name: mean_of(found, name, column) for name in (mine, *others)}
        texts = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        return Judged(all(values[mine] <= values[name] * (1 + 1e-9) for name in others), f"{column}: {texts}")

    return judge


def all_processed(found: Sequence[Row], policy: str) -> Judged:
    """Whether no shard was missed."""
    missed = {name: sum(float(r["missed"]) for r in found if r["policy"] == name) for name in POLICIES}
    mine = {name: count for name, count in missed.items() if not policy or name == policy}
    return Judged(
        not any(mine.values()), ", ".join(f"{name} missed {n:g} shards" for name, n in mine.items())
    )
