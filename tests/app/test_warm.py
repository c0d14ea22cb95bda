"""Claims about compiling ahead: only folders of old kernels go, and nothing that a user chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.app.warm import clear_old


@pytest.mark.parametrize(
    ("current", "left"), [("kernels-b", ["kernels-b", "other"]), ("mine", ["kernels-a", "mine", "other"])]
)
def test_folders_of_old_kernels_are_removed_but_nothing_beside_a_users_own_folder(
    tmp_path: Path, current: str, left: list[str]
) -> None:
    for name in {"kernels-a", "other", current}:
        (tmp_path / name / "maths").mkdir(parents=True)
        (tmp_path / name / "maths" / "kernel.nbc").write_bytes(b"compiled")
    clear_old(tmp_path / current)
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert (tmp_path / current / "maths" / "kernel.nbc").exists()
