"""Opens the depot of a live run, and checks beforehand that its data can be had."""

from __future__ import annotations

from pathlib import Path

from tradewind.model.errors import InputError
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.worlds.data.carriers import Carrier, Copier
from tradewind.worlds.data.depot import Depot
from tradewind.worlds.data.folders import DataFolders
from tradewind.worlds.data.sources import open_source
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, folder_name, uid_of
from tradewind.worlds.testbed.lanes import Lanes
from tradewind.worlds.testbed.network import find


def has_data(scenario: Scenario) -> bool:
    """Whether any job has data that is moved."""
    return any(job.data is not None for job in scenario.jobs)


def check_data(scenario: Scenario, scale: float) -> None:
    """Check that every source can be read."""
    if not 0 < scale < float("inf"):
        raise InputError(f"--data-scale is {scale}; it must be above 0")
    for job in scenario.jobs:
        if job.data is not None:
            if job.copies:
                raise InputError(
                    f"jobs[{job.id}] has data and copies of it from before it arrives, which no live run has; remove copies"
                )
            open_source(job)


def open_depot(state: Path, setup: Setup, options: ExecutionOptions, scale: float) -> Depot:
    """The depot of a run, on a testbed if that has all sites, else between directories."""

    def user(job: Job) -> tuple[str, int | None]:
        return folder_name(job), uid_of(options, job)

    if options.first_uid is not None and options.first_uid < len(setup.nodes) + 1:
        raise InputError(
            f"--first-uid is {options.first_uid}; the {len(setup.nodes)} numbers below it are the groups of sites, "
            "so it must be larger"
        )
    bed = find(options.testbed) if options.testbed else None
    lanes = None if bed is None else Lanes(bed, setup)
    carrier: Carrier = lanes if lanes is not None and lanes.has_all_sites else Copier()
    return Depot(DataFolders(state, setup, options.first_uid), setup, carrier, user, scale)
