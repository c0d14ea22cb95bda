"""Compiles the kernels once, after installation, so that the first run is as quick as the second."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import tradewind
from tradewind.registry import policies, workloads
from tradewind.solvers.kernel import digest
from tradewind.worlds.simulate import simulate

SMALL = {
    "jobs": 20, "servers": 5, "slots": 6, "sites": 5, "jobs_per_slot": 5, "worker_types": 3, "server_types": 3,
}  # fmt: skip
"""Parameters that make a workload small; each takes those that it has."""


def main() -> None:
    """Runs every policy on a handful of jobs of its own workload; numba keeps what it compiled beside the source."""
    for name in policies.names():
        spec = policies.find(name)
        workload = workloads.find(spec.system)
        given = {key: value for key, value in SMALL.items() if key in workload.params}
        simulate(workloads.generate(workload.name, given, 0), spec)
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
