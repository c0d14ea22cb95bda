"""Claims about compiled kernels: an edit recompiles the folder it is in, and those that import what was edited."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

import tradewind
from tradewind.solvers import kernel

SYSTEMS = Path(tradewind.__file__).parent / "systems"
LOOK = "import tradewind.systems.{0}.kernels.{1} as m; print(m.{2}.stats.cache_path)"


def _path(system: str, module: str, name: str, **environment: str) -> Path:
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment
    code = LOOK.format(system, module, name)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def test_kernels_are_kept_beside_the_system_they_belong_to(tmp_path: Path) -> None:
    for system, module, name in (("eris", "minplus", "minplus"), ("gadget", "pack", "rack_of")):
        folder = SYSTEMS / system / "kernels"
        assert _path(system, module, name).is_relative_to(kernel.cache_folder(folder))
        assert _path(system, module, name, NUMBA_CACHE_DIR=str(tmp_path)).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("systems/eris/kernels/slot.py", {"eris"}),
        ("systems/gadget/policy.py", set()),
        ("solvers/transport.py", {"mixed", "mlbroker"}),
        ("solvers/paths.py", {"apsp"}),
    ],
)
def test_an_edit_recompiles_only_what_depends_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str, changed: set[str]
) -> None:
    copy = tmp_path / "tradewind"
    copytree(Path(tradewind.__file__).parent, copy)
    monkeypatch.setattr(kernel, "SOLVERS", copy / "solvers")
    folders = sorted((copy / "systems").glob("*/kernels"))
    before = {folder.parent.name: kernel.digest(folder) for folder in folders}
    with (copy / edited).open("a") as file:
        file.write("# edited")
    after = {folder.parent.name: kernel.digest(folder) for folder in folders}
    assert {name for name in before if before[name] != after[name]} == changed


KERNEL = """
import numpy as np
from tradewind.registry import policies
from tradewind.solvers.transport import ship

ship(np.ones((1, 1)), np.ones(1), np.ones(1), np.zeros((1, 1)))
MINE = policies.find("fifo")
"""


def test_a_terminal_is_told_that_kernels_are_compiled_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(KERNEL)
    words = ("run", "cluster", "--policy", f"{tmp_path}/mine.py:MINE", "--given", "jobs=2")
    command = [sys.executable, "-m", "tradewind", *words]
    assert "compiling what tradewind." in _on_a_terminal(command, tmp_path)
    assert "compiling" not in _on_a_terminal(command, tmp_path)


def _on_a_terminal(command: list[str], cache: Path) -> str:
    """What a command writes to a terminal as its stderr."""
    reader, writer = os.openpty()
    process = subprocess.Popen(
        command, env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}, stdout=subprocess.DEVNULL, stderr=writer
    )
    os.close(writer)
    found = b""
    try:
        while part := os.read(reader, 65536):
            found += part
    except OSError:  # the terminal is closed
        pass
    os.close(reader)
    assert process.wait(300) == 0, found
    return found.decode()
