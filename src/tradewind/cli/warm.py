"""Compiles the kernels once, after installation, so that the first run is as quick as the second."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree

import tradewind
from tradewind.model.errors import TradewindError
from tradewind.registry import policies, systems, workloads
from tradewind.solvers.kernel import digest
from tradewind.tasks.pool import PoolTask, Where, run_tasks
from tradewind.worlds.simulate import simulate

SMALL = {
    "jobs": 20, "servers": 5, "slots": 6, "sites": 5, "jobs_per_slot": 5, "worker_types": 3, "server_types": 3,
}  # fmt: skip
"""Parameters that make a workload small; each takes those that it has."""


def main() -> None:
    """Compiles the kernels of all systems, several at once; numba keeps what it compiled beside the source."""
    tasks = [PoolTask(name=name, group=name, call=compile_system, args=(name,)) for name in systems()]
    for done in run_tasks(tasks, Where(jobs=os.cpu_count() or 1)):
        if done.error:
            raise TradewindError(f"compiling the kernels of {done.task.name} failed: {done.error}")
    for cached in Path(tradewind.__file__).parent.rglob("__pycache__"):
        clear_old(cached)


def compile_system(name: str) -> None:
    """Runs every policy of a system on a handful of jobs of its own workload."""
    workload = workloads.find(name)
    given = {key: value for key, value in SMALL.items() if key in workload.params}
    scenario = workloads.generate(name, given, 0)
    for policy in systems()[name].policies:
        simulate(scenario, policies.find(policy))


def clear_old(cached: Path) -> None:
    """Removes the kernels that an earlier text of a folder left in its `__pycache__`."""
    current = f"kernels-{digest(cached.parent)}"
    for folder in cached.glob("kernels-*"):
        if folder.name != current:
            rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
