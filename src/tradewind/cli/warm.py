"""Compiles the kernels once, after installation, so that the first run is as quick as the second."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree

import tradewind
from tradewind.cli.listing import policy_rows, workload_rows
from tradewind.model.errors import TradewindError
from tradewind.registry import systems
from tradewind.solvers.kernel import digest
from tradewind.tasks.pool import PoolTask, Where, run_tasks
from tradewind.worlds.warm import warm_up


def main() -> None:
    """Compiles the kernels of all systems, several at once; numba keeps them beside the source. Keeps listings, too."""
    tasks = [PoolTask(name=name, group=name, call=warm_up, args=(name,)) for name in systems()]
    for done in run_tasks(tasks, Where(jobs=os.cpu_count() or 1)):
        if done.error:
            raise TradewindError(f"compiling the kernels of {done.task.name} failed: {done.error}")
    policy_rows()
    workload_rows()
    for cached in Path(tradewind.__file__).parent.rglob("__pycache__"):
        clear_old(cached)


def clear_old(cached: Path) -> None:
    """Removes the kernels that an earlier text of a folder left in its `__pycache__`."""
    current = f"kernels-{digest(cached.parent)}"
    for folder in cached.glob("kernels-*"):
        if folder.name != current:
            rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
