"""All measured figures in their quick version, four at a time: less than two minutes on an idle machine with two cores."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tradewind.lab.live.figures import STUDY
from tradewind.worlds.testbed.network import unavailable

TARGET_S = 120.0
JOBS = 4
"""Processes: figures mostly wait for traffic."""


def rows() -> list[dict[str, Any]]:
    """Seconds by the clock of `tradewind reproduce live --quick --jobs 4`, and how many figures it made."""
    if reason := unavailable():
        return [{"name": "reproduce live --quick", "measured": None, "note": reason}]
    with tempfile.TemporaryDirectory(prefix="tradewind-live-") as folder:
        began = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "tradewind.cli.main",
            "reproduce",
            "live",
            "--quick",
            "--jobs",
            str(JOBS),
            "-o",
            folder,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        made = [
            figure.name for figure in STUDY.figures if (Path(folder) / "live" / f"{figure.name}.csv").exists()
        ]
    note = done.stderr.strip().splitlines()[-1] if done.returncode else ""
    return [
        {
            "name": "reproduce live --quick", "measured": seconds, "unit": "s", "target": TARGET_S, "better": "lower",
            "note": note,
        },
        {
            "name": "reproduce live --quick: figures", "measured": float(len(made)), "target": float(len(STUDY.figures)),
            "better": "higher",
        },
    ]  # fmt: skip
