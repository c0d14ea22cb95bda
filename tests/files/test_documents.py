"""Text that is no scenario: refused with its place in the file, quickly, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.files.test_scenario_file import small
from tradewind.files.scenario_file import dump, load, parse
from tradewind.model.errors import InputError, ScenarioError


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("a.json", b"", "empty"),
        ("a.yaml", b"  \n", "empty"),
        ("a.json", b"\xff\xfe\x00", "UTF-8"),
        ("a.json", b"{\n 'a': 1}", "line 2, column 2"),
        ("a.json", b'{"a": 1, "a": 2}', "'a' twice"),
        ("a.json", b'{"a": NaN}', "NaN"),
        ("a.json", b"[" * 100_000, "nested"),
        ("a.json", b'{"a": ' + b"9" * 10_000 + b"}", "digits"),
        ("a.json", b"[1, 2]", "a list of 2"),
        ("a.json", b"{}", "tradewind_scenario is missing"),
        ("a.yaml", b"a: 1\na: 2\n", "line 2, column 1: an object has the field 'a' twice"),
        ("a.yaml", b"a: [1, 2\nb: 3\n", "line 2"),
        ("a.yaml", b"a:\n\t- 1\n", "line 2, column 1: indented with a tab"),
        ("a.yaml", b"[" * 100_000, "nested"),
        ("a.yaml", b"a: !!python/object/apply:os.system [ls]", "tag"),
        ("a.yaml", b"a: &x [*x]", "refers to an anchor"),
        ("a.yaml", b"--- 1\n--- 2\n", "second document"),
        ("a.yaml", b"? [a]\n: 1\n", "must be text"),
        ("a.yaml", b"\x00\x01\x02", "YAML"),
        ("a.toml", b"a = 1", ".json, .yaml or .yml"),
        ("a.yaml", b"# nothing yet\n", "the file is empty"),
    ],
)
def test_invalid_text_is_rejected_with_its_position(
    tmp_path: Path, name: str, data: bytes, part: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ScenarioError) as found:
        load(tmp_path / name)
    assert part in str(found.value)
    assert str(found.value).startswith(str(tmp_path / name))


def test_a_yaml_bomb_is_rejected_quickly(tmp_path: Path) -> None:
    for merge in ("", "<<: "):
        lines = ["a0: &a0 {x: 1, y: 2}"]
        for i in range(1, 40):
            inner = ", ".join([f"*a{i - 1}"] * 9)
            lines.append(f"a{i}: &a{i} " + (f"{{{merge}[{inner}]}}" if merge else f"[{inner}]"))
        (tmp_path / "bomb.yaml").write_text("\n".join(lines))
        with pytest.raises(ScenarioError, match="aliases expand"):
            load(tmp_path / "bomb.yaml")


def test_yaml_aliases_and_merge_keys_work(tmp_path: Path) -> None:
    text = (
        "tradewind_scenario: 1\nobjective: jct_mean_s\nslot_us: 60 s\nhorizon_us: 1 d\n"
        "nodes:\n- {name: no, capacity: &c {gpu: 8}}\n- {name: 'on', capacity: *c}\n"
        "jobs:\n- &j {worker: {gpu: 1}, work: {runtime_us: 5 s}}\n- {<<: *j, workers: 2}\n"
    )
    (tmp_path / "s.yaml").write_text(text)
    scenario = load(tmp_path / "s.yaml")
    assert [node.name for node in scenario.setup.nodes] == ["no", "on"]
    assert [job.workers_max for job in scenario.jobs] == [1, 2]


def test_missing_files_folders_and_pipes_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name, part in (
        ("none.json", "no such file"),
        ("folder.json", "folder"),
        (".", "is a folder"),
        ("pipe.json", "regular file"),
    ):
        with pytest.raises(ScenarioError, match=part):
            load(tmp_path / name)
    with pytest.raises(InputError, match="is a folder"):
        dump(parse(small()), tmp_path)
    with pytest.raises(ScenarioError):
        load(tmp_path / "nul\x00.json")


def test_written_yaml_is_standard_yaml(tmp_path: Path) -> None:
    dump(parse(small()), tmp_path / "s.yaml")
    assert yaml.safe_load((tmp_path / "s.yaml").read_text())["nodes"][0]["name"] == "eu-west"
