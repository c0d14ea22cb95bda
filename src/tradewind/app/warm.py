"""Compiles the kernels once, after installation, so that the first run is as quick as the second."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree

from tradewind import policies, workloads
from tradewind.studies.simulate import simulate

SMALL = {
    "jobs": 20, "servers": 5, "slots": 6, "sites": 5, "jobs_per_slot": 5, "worker_types": 3, "server_types": 3,
}  # fmt: skip
"""Parameters that make a workload small; each takes those that it has."""


def main() -> None:
    """Runs every policy on a handful of jobs of its own workload; numba keeps what it compiled beside the source."""
    for name in policies.names():
        spec = policies.find(name)
        workload = workloads.find(spec.system or "cluster")
        given = {key: value for key, value in SMALL.items() if key in workload.params}
        simulate(workloads.generate(workload.name, given, 0), spec)
    if "NUMBA_CACHE_DIR" in os.environ:
        clear_old(Path(os.environ["NUMBA_CACHE_DIR"]))


def clear_old(current: Path) -> None:
    """Removes the folders of kernels that an earlier text of the project left beside the current one."""
    if current.name.startswith("kernels-"):
        for folder in current.parent.glob("kernels-*"):
            if folder != current:
                rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
