"""Thousands of damaged files: reading gives a valid object or an InputError with a message, never anything else.

The draws are derandomised, so a failure repeats. Each example carries a batch of damaged files.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.files.generated import a_run, scenarios
from tradewind.files.documents import json_text
from tradewind.files.run_file import load_run, save
from tradewind.files.scenario_file import dump, load, parse
from tradewind.files.scenario_write import document
from tradewind.model.errors import InputError, RunFileError, ScenarioError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario

BATCH = 40
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
fuzz = settings(
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**53, 2**53 + 1, 2**63, 10**400, -(10**30), 0.5, -0.0, 1e-320, 1e308, float("nan"),
    float("inf"), float("-inf"), "", " ", "x", "1", "5 min", "92 MB", "5 Gbit/s", "1e999 s", "*", "\ud800", "\x00",
    "é" * 300, "NaN", [], [[]], {}, [None], {"": None}, {"kind": "rounds"}, {"kind": []}, [1, 2, 3], "../x.csv",
    "jobs.csv", {"usd": [], "starts": []}, {"a": 1, "b": 2}, "node_down", "link_up", "a->b",
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        item = pending.pop()
        keys: Any = item if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            found.append((item, key))
            pending.append(item[key])
    return found


def damage(tree: Any, dice: Random) -> Any:
    """One to three structural changes of a copy."""
    tree = copy.deepcopy(tree)
    for _ in range(dice.randint(1, 3)):
        spots = places(tree)
        if not spots:
            return dice.choice(ODD)
        holder, key = dice.choice(spots)
        match dice.randrange(7):
            case 0:
                del holder[key]
            case 1 | 2:
                holder[key] = copy.deepcopy(dice.choice(ODD))
            case 3:
                other, name = dice.choice(spots)
                value = other[name] if name in other or isinstance(other, list) else None
                holder[key] = copy.deepcopy(value)
            case 4 if isinstance(holder, dict):
                holder[dice.choice(["kind", "bps", "ab_bps", "workers", "private", str(key) + "x", ""])] = (
                    holder[key]
                )
            case 5 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case _ if isinstance(holder[key], int | float):
                holder[key] = dice.choice([-holder[key], holder[key] * 1e30, str(holder[key]), [holder[key]]])
    return tree


def damage_bytes(data: bytes, dice: Random) -> bytes:
    """Flips, cuts, doubles or inserts bytes."""
    text = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text) + 1)
        match dice.randrange(5):
            case 0:
                del text[at:]
            case 1:
                del text[at : at + dice.randint(1, 9)]
            case 2:
                text[at:at] = text[at : at + dice.randint(1, 40)]
            case 3:
                text[at:at] = dice.choice(
                    [b"[", b"{", b'"', b":", b"-", b"&a ", b"*a", b"\xff", b"9" * 30, b"NaN", b"\n", b"<<: "]
                )
            case _ if at < len(text):
                text[at] ^= 1 << dice.randrange(8)
    return bytes(text)


def survives(read: Callable[[], object], kind: type, error: type[InputError]) -> bool:
    """Whether the file was read; an InputError with a message is fine, any other exception is not."""
    try:
        found = read()
    except error as refusal:
        message = str(refusal)
    else:
        assert isinstance(found, kind)
        return True
    assert 10 < len(message) < 2000, message
    return False


@given(scenarios(), st.integers(0, 2**32))
@fuzz
def test_a_scenario_with_a_damaged_structure_is_read_or_rejected(scenario: Scenario, seed: int) -> None:
    dice, tree = Random(seed), json.loads(json_text(document(scenario)))
    for _ in range(BATCH):
        damaged = damage(tree, dice)
        survives(partial(parse, damaged), Scenario, InputError)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_scenario_with_damaged_bytes_is_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, suffix: str
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    @given(scenarios(), st.integers(0, 2**32))
    @fuzz
    def check(scenario: Scenario, seed: int) -> None:
        dice, path = Random(seed), folder / f"s.{suffix}"
        dump(scenario, path)
        data = path.read_bytes()
        for _ in range(BATCH):
            path.write_bytes(damage_bytes(data, dice))
            survives(lambda: load(path), Scenario, ScenarioError)

    check()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_damaged_table_files_of_a_scenario_are_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, suffix: Any
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    @given(scenarios(), st.integers(0, 2**32))
    @settings(fuzz, max_examples=12)
    def check(scenario: Scenario, seed: int) -> None:
        dice, path = Random(seed), folder / "s.json"
        for old in folder.iterdir():
            old.unlink()
        dump(scenario, path, tables=suffix)
        for table in folder.glob(f"*.{suffix}"):
            data = table.read_bytes()
            for _ in range(BATCH):
                table.write_bytes(damage_bytes(data, dice))
                survives(lambda: load(path), Scenario, ScenarioError)
            table.write_bytes(data)

    check()


def test_damaged_yaml_values_are_read_or_rejected(tmp_path: Path) -> None:
    @given(scenarios(), st.integers(0, 2**32))
    @settings(fuzz, max_examples=8)
    def check(scenario: Scenario, seed: int) -> None:
        dice, path = Random(seed), tmp_path / "s.yml"
        tree = json.loads(json_text(document(scenario)))
        for _ in range(BATCH):
            try:
                text = yaml.dump(damage(tree, dice), Dumper=DUMPER).encode()
            except (UnicodeEncodeError, ValueError):
                continue
            path.write_bytes(text)
            survives(lambda: load(path), Scenario, ScenarioError)

    check()


def test_a_damaged_run_header_is_read_or_rejected(tmp_path: Path) -> None:
    path, dice = tmp_path / "run.json", Random(5)
    save(a_run(2), path)
    data, tree = path.read_bytes(), json.loads(path.read_bytes())
    read = 0
    for _ in range(1000):
        path.write_text(json.dumps(damage(tree, dice)))
        read += survives(lambda: load_run(path), Run, RunFileError)
        path.write_bytes(damage_bytes(data, dice))
        read += survives(lambda: load_run(path), Run, RunFileError)
    assert 0 < read < 1000, "most damage is noticed, some changes nothing that matters"


def test_damaged_parquet_tables_of_a_run_are_read_or_rejected(tmp_path: Path) -> None:
    path, dice = tmp_path / "run.json", Random(6)
    run = a_run(15_000)
    save(run, path)
    for table in ("events", "costs", "steps"):
        (file,) = (tmp_path / "run.d").glob(f"*/{table}.parquet")
        data = file.read_bytes()
        for _ in range(15):
            file.write_bytes(damage_bytes(data, dice))
            if survives(lambda: load_run(path), Run, RunFileError):
                assert load_run(path) == run, "a table that was read is the table that was written"
        file.write_bytes(data)
