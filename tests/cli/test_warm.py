"""Claims about compiling ahead: only folders of old kernels go."""

from __future__ import annotations

from pathlib import Path

from tradewind.cli.warm import clear_old
from tradewind.solvers.kernel import digest


def test_folders_of_old_kernels_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1")
    current = f"kernels-{digest(tmp_path)}"
    for name in ("kernels-a", "other", current):
        (tmp_path / "__pycache__" / name).mkdir(parents=True)
        (tmp_path / "__pycache__" / name / "kernel.nbc").write_bytes(b"compiled")
    clear_old(tmp_path / "__pycache__")
    assert sorted(path.name for path in (tmp_path / "__pycache__").iterdir()) == [current, "other"]
