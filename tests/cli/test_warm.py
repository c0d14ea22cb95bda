"""Claims about what is compiled ahead and kept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tradewind.cli.warm import clear_old
from tradewind.solvers.kernel import digest
from tradewind.worlds.warm import warm_up

ROOT = Path(__file__).parents[2]


def test_folders_of_old_kernels_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1")
    current = f"kernels-{digest(tmp_path)}"
    for name in ("kernels-a", "other", current):
        (tmp_path / "__pycache__" / name).mkdir(parents=True)
        (tmp_path / "__pycache__" / name / "kernel.nbc").write_bytes(b"compiled")
    clear_old(tmp_path / "__pycache__")
    assert sorted(path.name for path in (tmp_path / "__pycache__").iterdir()) == [current, "other"]


def test_after_an_installation_a_fast_run_waits_for_no_kernel_either(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str, bool]] = []

    def record(scenario: Any, spec: Any, *, fast: bool = False) -> None:
        runs.append((spec.name, fast))

    monkeypatch.setattr("tradewind.worlds.warm.simulate", record)
    warm_up("cluster")
    assert {name for name, fast in runs if fast} == {"fifo", "fifo-backfill", "las", "srsf", "srtf"}
    runs.clear()
    warm_up("cluster", ["fifo"])  # as a live loop does, which has no use for it
    assert runs == [("fifo", False)]


def test_make_keeps_bytecode_also_where_the_environment_forbids_it() -> None:
    """The many processes of a run or a test would each compile all modules."""
    words = ["make", "-s", "--eval", "said:; @printenv PYTHONDONTWRITEBYTECODE", "said"]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"  # Python takes it as not set
