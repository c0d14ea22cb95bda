"""The import rules of the architecture can fail: each is broken by a planted import and must be caught."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLANTED = [
    ("Imports point one way", "engine/ledger.py", "import tradewind.worlds.clock"),
    ("Imports point one way", "model/job.py", "import tradewind.audit"),
    ("Imports point one way", "worlds/clock.py", "import tradewind.systems.eris.policy"),
    ("Imports point one way", "report/html.py", "import tradewind.lab.study"),
    ("Imports point one way", "systems/eris/policy/posted.py", "import tradewind.files.atomic"),
    ("Systems do not import each other", "systems/eris/paper.py", "import tradewind.systems.dps.policy"),
    ("The core names no system", "files/atomic.py", "import tradewind.systems.gadget.policy"),
    ("The core names no system", "report/html.py", "import tradewind.systems.dps.bound"),
    ("Online code does not import the future", "systems/gadget/policy.py", "import tradewind.model.scenario"),
    ("Online code does not import the future", "systems/dps/policy.py", "import tradewind.systems.dps.bound"),
    (
        "Online code does not import the future",
        "systems/eris/kernels/slot.py",
        "import tradewind.systems.eris.workload",
    ),
    (
        "Online code does not import the future",
        "systems/mlbroker/rivals/oasis.py",
        "import tradewind.registry",
    ),
    (
        "Nothing of the product imports a study",
        "systems/eris/bound.py",
        "import tradewind.systems.eris.study.runs",
    ),
    ("Nothing of the product imports a study", "api.py", "import tradewind.systems.eris.study.runs"),
    ("The audit shares code with the model alone", "audit/work.py", "import tradewind.solvers.paths"),
    ("Only the trainer needs torch", "worlds/clock.py", "import torch"),
    ("The trainer is a program like any other", "train/report.py", "import tradewind.model.job"),
    ("Imports point one way", "store/chain.py", "import tradewind.worlds.clock"),
    ("Imports point one way", "engine/ledger.py", "import tradewind.store.chain"),
    ("Only the service needs a web framework", "worlds/clock.py", "import fastapi"),
    ("Databases stay in the store", "worlds/clock.py", "import sqlalchemy"),
    ("Pydantic stays in files", "engine/ledger.py", "import pydantic"),
    ("Pydantic stays in files", "systems/apsp/policy.py", "import matplotlib"),
]
ONLINE = {"policy", "paper", "rivals", "shared", "kernels"}
OFFLINE = {
    "bound",
    "compiled",
    "offline",
    "workload",
    "study",
    "explain",
    "bills",
    "decided",
    "plan",
    "front",
    "ranks",
    "__init__",
}


def _contracts(folder: Path) -> dict[str, str]:
    """Contract -> KEPT or BROKEN, as import-linter sees a tree."""
    tool = Path(sys.executable).with_name("lint-imports")
    command = [str(tool), "--no-cache", "--config", str(folder / "pyproject.toml")]
    environment = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?) (KEPT|BROKEN)", done.stdout, flags=re.MULTILINE)
    assert found, done.stdout + done.stderr
    return dict(found)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    return tmp_path


def test_every_rule_is_kept_by_the_tree_and_broken_by_a_planted_import(tree: Path) -> None:
    assert set(_contracts(tree).values()) == {"KEPT"}
    for rule in dict.fromkeys(rule for rule, _, _ in PLANTED):
        for _, file, line in (planted for planted in PLANTED if planted[0] == rule):
            path = tree / "src" / "tradewind" / file
            before = path.read_text()
            path.write_text(f"{before}\n{line}\n")
            broken = [name for name, state in _contracts(tree).items() if state == "BROKEN"]
            path.write_text(before)
            assert any(name.startswith(rule) for name in broken), (
                f"{line!r} in {file} was not caught: {broken}"
            )


def test_every_rule_has_a_planted_import() -> None:
    rules = re.findall(
        r'^name = "(.+)"$', (ROOT / "pyproject.toml").read_text().split("[tool.importlinter]")[1], re.M
    )
    assert [rule for rule in rules if not any(rule.startswith(planted) for planted, _, _ in PLANTED)] == []


def test_every_module_of_a_system_is_known_to_be_online_or_offline() -> None:
    """A file under a new name would escape the rule that online code cannot see the future."""
    for system in (ROOT / "src" / "tradewind" / "systems").iterdir():
        if system.is_dir() and system.name != "__pycache__":
            names = {path.stem for path in system.iterdir() if path.name != "__pycache__"}
            assert names <= ONLINE | OFFLINE, f"{system.name}: {names - ONLINE - OFFLINE}"
