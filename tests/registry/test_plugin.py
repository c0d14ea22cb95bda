"""A small package of somebody else, installed into an environment of its own, adds a system to the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from textwrap import dedent

import pytest

PYPROJECT = """
    [build-system]
    requires = ["setuptools"]
    build-backend = "setuptools.build_meta"

    [project]
    name = "tradewind-idle"
    version = "1.0"

    [project.entry-points."tradewind.systems"]
    lazy = "tradewind_idle:SYSTEM"

    [project.entry-points."tradewind.workloads"]
    pairs = "tradewind_idle.jobs:PAIRS"

    [tool.setuptools]
    packages = ["tradewind_idle"]
"""
SYSTEM = """
    from tradewind.model.system import System

    SYSTEM = System(
        name="lazy", summary="starts nothing before noon", policies={"oldest": "tradewind_idle.policy:OLDEST"},
        remarks="tradewind_idle.policy:remarks",
    )
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with the plug-in; Tradewind and its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("plugin")
    package = folder / "src" / "tradewind_idle"
    package.mkdir(parents=True)
    (folder / "src" / "pyproject.toml").write_text(dedent(PYPROJECT))
    (package / "__init__.py").write_text(dedent(SYSTEM))
    run = [sys.executable, "-m", "tradewind.cli.main", "new"]
    subprocess.run([*run, "policy", "oldest", "-o", folder], check=True, capture_output=True)
    subprocess.run([*run, "workload", "pairs", "-o", folder], check=True, capture_output=True)
    text = (folder / "oldest.py").read_text().replace('name="oldest"', 'name="oldest", system="lazy"')
    (package / "policy.py").write_text(
        text + '\n\ndef remarks(scenario, run):\n    return ["a remark of the plug-in"]\n'
    )
    (package / "jobs.py").write_text((folder / "pairs.py").read_text())
    venv.create(folder / "venv")
    library = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    ours = sysconfig.get_path("purelib")
    # in front, because the setuptools that venv brings along cannot build wheels by itself
    (library / "ours.pth").write_text(
        f"import site, sys; site.addsitedir({ours!r}); sys.path.insert(0, {ours!r})\n"
    )
    python = folder / "venv" / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, "--no-build-isolation", str(folder / "src")], check=True, capture_output=True)
    return python


def _tradewind(python: Path, *arguments: str) -> str:
    command = [str(python), "-m", "tradewind.cli.main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_plug_in_is_listed_run_and_checked(environment: Path) -> None:
    listed = json.loads(_tradewind(environment, "policies", "--json"))
    assert {"oldest", "fifo"} <= {each["name"] for each in listed}
    assert "a remark of the plug-in" in _tradewind(environment, "run", "pairs", "--policy", "oldest")
    compared = json.loads(_tradewind(environment, "compare", "pairs", "--policies", "oldest,fifo", "--json"))
    assert [run["policy"] for run in compared["runs"]] == ["oldest", "fifo"]
    assert "checks passed" in _tradewind(environment, "check-policy", "oldest", "--seeds", "1")
