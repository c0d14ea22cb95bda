"""CPU time until the command line answers: help, the list of policies, and the import of the Python API."""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median
from typing import Any

REPEATS = 5
STARTS = {
    "tradewind --help": (("-m", "tradewind.cli.main", "--help"), 0.2),
    "tradewind policies": (("-m", "tradewind.cli.main", "policies"), 0.2),
    "import tradewind": (("-c", "import tradewind"), 0.1),
}


def cpu_s(arguments: tuple[str, ...]) -> float:
    """CPU seconds of a Python program, as of the second start on."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows() -> list[dict[str, Any]]:
    """Median of several starts each; the first one, which writes caches, is not counted."""
    found = []
    for name, (arguments, target) in STARTS.items():
        cpu_s(arguments)
        times = [cpu_s(arguments) for _ in range(REPEATS)]
        found.append(
            {
                "name": name,
                "measured": median(times),
                "spread": max(times) - min(times),
                "unit": "s CPU",
                "target": target,
                "better": "lower",
            }
        )
    return found
