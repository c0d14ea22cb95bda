"""`tradewind manifests`: the pods of a slot of a run, and what a queue needs beside them, as they would be created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tradewind.engine.menu import check_slot
from tradewind.files import yaml_text
from tradewind.model.job import Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report.placements import Placement, joined, placements
from tradewind.worlds.fleets.engine import EngineGang, EngineTask
from tradewind.worlds.fleets.kubernetes.options import read_options
from tradewind.worlds.fleets.kubernetes.pods import Program, pod, pod_group
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, folder_name

COUNTED = ("cpu", "gpu", "memory_gb")
"""Resources that every cluster counts; others have names with a slash."""
Table = Mapping[str, Sequence[str]]


def command(scenario: Scenario, run: Run, slot: int, state: Path, table: Table) -> None:
    """Print what a slot needs as YAML documents."""
    options, grace_s = read_options(), ExecutionOptions().grace_s
    for gang, job in gangs(scenario, run, slot, state, table):
        program = Program(job.command or ("true",), dict(job.env), grace_s)
        if (group := pod_group(gang, options)) is not None:
            print(yaml_text.dump(group) + "---")
        for rank in range(len(gang.tasks)):
            print(yaml_text.dump(pod(gang, rank, program, options)) + "---")


def gangs(
    scenario: Scenario, run: Run, slot: int, state: Path, table: Table
) -> Iterator[tuple[EngineGang, Job]]:
    """The gangs that run in a slot, and their jobs. A job that moves within it has one gang per place."""
    jobs, launches = {job.id: job for job in scenario.jobs}, dict[str, int]()
    check_slot(scenario, slot)
    begin, end = slot * scenario.setup.slot_us, (slot + 1) * scenario.setup.slot_us
    for row in joined(placements(scenario, run)):
        number = launches[row.job] = launches.get(row.job, -1) + 1
        if row.from_us < end and row.until_us > begin and any(place.workers for place in row.places):
            yield gang_of(scenario, jobs[row.job], number, row, state, table), jobs[row.job]


def gang_of(
    scenario: Scenario, job: Job, number: int, row: Placement, state: Path, table: Table
) -> EngineGang:
    """The gang of a launch: parameter servers first, then workers in ring order; ranks of a node on its machines in turn."""
    where = [(place.node, job.server) for place in row.places for _ in range(place.servers)]
    where += [(place.node, job.worker) for place in row.places for _ in range(place.workers)]
    folder = state / "control" / f"{folder_name(job)}-{number}"
    names, tasks, dealt = scenario.setup.resources, list[EngineTask](), dict[str, int]()
    for rank, (node, demand) in enumerate(where):
        machines = table.get(node, (node,))
        local = dealt[node] = dealt.get(node, -1) + 1
        needs = tuple((names[r], milli) for r, milli in demand if names[r] in COUNTED or "/" in names[r])
        tasks.append(EngineTask(machines[local % len(machines)], (str(folder / f"{rank}-0"),), needs))
    return EngineGang(f"tw-run-{job.index}-{number}", tuple(tasks), str(folder), job.tenant)
