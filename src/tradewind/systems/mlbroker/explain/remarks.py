"""Remarks printed below a run: stream jobs that never trained."""

from __future__ import annotations

from typing import cast

from tradewind.model.job import Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.bound.slots import first_data_slot

NO_DATA = "it had no data while it was present, so nothing was deployed and nothing was spent"


def never_trained(scenario: Scenario, run: Run) -> list[int]:
    """Stream jobs that got no data while they were present, or until the end of the run, and were not refused."""
    begins, refused = first_data_slot(scenario), set(run.tables["verdicts"]["job"])
    jobs = [scenario.jobs[cast(int, index)] for index in run.tables["outcomes"]["job"]]
    waited = [job.index for job in jobs if isinstance(job.work, Stream) and job.index not in begins]
    return [index for index in waited if index not in refused]


def remarks(scenario: Scenario, run: Run) -> list[str]:
    """One sentence per job that never trained."""
    return [f"never trained: {scenario.jobs[index].id}: {NO_DATA}" for index in never_trained(scenario, run)]
