"""The same measurement with the code of an earlier commit: a tree of its own, whose kernels are compiled first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOOP = """
import inspect, json, sys
from time import process_time
from tradewind import api
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate
file, policy, servers = sys.argv[1], sys.argv[2], int(sys.argv[3])
slow = {"fast": False} if "fast" in inspect.signature(simulate).parameters else {}
spec = policies.find(policy)
simulate(api.generate("cluster", jobs=30), spec, **slow)
data = api.generate("trace", file=file, format="philly", servers=servers, gpus_per_server=8)
len(data.jobs)
begin = process_time()
simulate(data, spec, **slow)
print(json.dumps(len(data.jobs) / (process_time() - begin)))
"""
"""Jobs per CPU second of the audited loop on the Philly trace, whatever the commit."""
LOOP_BEFORE = "a590916"
"""The last commit before the loop was made faster."""


@contextmanager
def tree(commit: str) -> Iterator[Path]:
    """The files of a commit in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tradewind-before-") as name:
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", name], input=packed, check=True)
        yield Path(name)


def environment(source: Path) -> dict[str, str]:
    """Python with the package of a tree."""
    return {**os.environ, "PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}"}


def loop_pace(source: Path, file: Path, policy: str, servers: int) -> float:
    """Jobs per CPU second of the loop with the package of a tree; the first call compiles."""
    words = [sys.executable, "-c", LOOP, str(file.resolve()), policy, str(servers)]
    done = subprocess.run(
        words, cwd=source, env=environment(source), check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout))


def loop_rows(file: Path) -> list[dict[str, Any]]:
    """The loop now and at the commit before, one after the other."""
    found = []
    with tree(LOOP_BEFORE) as old:
        for policy, servers, target in (("fifo", 312, 30_000.0), ("las", 52, 12_000.0)):
            pace = {where: loop_pace(where, file, policy, servers) for where in (old, ROOT)}
            found.append(
                {
                    "name": f"loop, {policy} on {servers} servers, Philly",
                    "measured": pace[ROOT],
                    "before": pace[old],
                    "target": target,
                }
            )
    return found
