"""Run files: complete, byte-for-byte reproducible, and protected against modification."""

from __future__ import annotations

import copy
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.files.generated import a_run
from tradewind.files import row_tables, run_tables
from tradewind.files.run_file import load_run, save
from tradewind.files.schemas import schema
from tradewind.model.errors import InputError, RunFileError
from tradewind.model.result import Timings
from tradewind.model.tables import TABLES

MANY = 15_000  # rows of two tables: too many for the header


@pytest.fixture
def header(tmp_path: Path) -> dict[str, Any]:
    save(a_run(), tmp_path / "run.json")
    raw: dict[str, Any] = json.loads((tmp_path / "run.json").read_text())
    return raw


def refused(folder: Path, raw: Any) -> str:
    (folder / "run.json").write_text(json.dumps(raw))
    with pytest.raises(RunFileError) as found:
        load_run(folder / "run.json")
    return str(found.value)


@pytest.mark.parametrize("name", ["run.json", "run.yaml"])
def test_a_small_run_comes_back_equal_and_inline(tmp_path: Path, name: str) -> None:
    save(a_run(), tmp_path / name)
    assert load_run(tmp_path / name) == a_run()
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_large_run_comes_back_equal_from_parquet(tmp_path: Path) -> None:
    run = a_run(MANY)
    save(run, tmp_path / "run.json")
    assert load_run(tmp_path / "run.json") == run
    assert {file.stem for file in (tmp_path / "run.d").glob("*/*.parquet")} == set(TABLES)
    assert (tmp_path / "run.json").stat().st_size < 20_000


@pytest.mark.parametrize("factor", [1, MANY])
def test_equal_runs_give_equal_bytes(tmp_path: Path, factor: int) -> None:
    contents = []
    for turn in ("one", "two"):
        folder = tmp_path / turn
        folder.mkdir()
        params = {"a": "x", "b": [1, 2.5]} if turn == "one" else {"b": (np.int64(1), 2.5), "a": "x"}
        clock = Timings(total=1.0 if turn == "one" else 2.0, decide_p50=0.1, decide_p99=0.2)
        save(a_run(factor, params=params, timings=clock), folder / f"{turn}.json")
        files = sorted(p for p in folder.rglob("*") if p.is_file() and "timings" not in p.name)
        contents.append([(p.name.replace(turn, "run"), p.read_bytes()) for p in files])
        assert str(tmp_path).encode() not in b"".join(data for _, data in contents[-1])
    assert contents[0] == contents[1]


def test_the_header_fits_its_published_schema(header: dict[str, Any], tmp_path: Path) -> None:
    jsonschema.validate(header, schema("run"))
    save(a_run(MANY, bound=None, metrics={"cost_usd": float("nan")}), tmp_path / "big.json")
    jsonschema.validate(json.loads((tmp_path / "big.json").read_text()), schema("run"))


def test_timings_are_stored_next_to_the_run_and_removed_with_it(tmp_path: Path) -> None:
    clock = Timings(total=1.5, decide_p50=0.001, decide_p99=0.002)
    save(a_run(timings=clock), tmp_path / "run.json")
    assert load_run(tmp_path / "run.json").timings == clock
    assert "1.5" not in (tmp_path / "run.json").read_text()
    save(a_run(), tmp_path / "run.json")
    assert load_run(tmp_path / "run.json").timings is None


def test_undefined_and_unbounded_metrics_are_preserved(tmp_path: Path) -> None:
    metrics = {"cost_usd": float("nan"), "up": float("inf"), "down": float("-inf")}
    save(a_run(metrics=metrics), tmp_path / "run.json")
    found = load_run(tmp_path / "run.json").metrics
    assert found["cost_usd"] != found["cost_usd"]
    assert (found["up"], found["down"]) == (float("inf"), float("-inf"))


def test_numpy_numbers_are_written_as_numbers(tmp_path: Path) -> None:
    run = a_run()
    tables: dict[str, Any] = dict(run.tables)
    tables["payments"] = {"job": np.array([3, 4]), "usd": [np.float64(0.1), 2]}
    save(a_run(tables=tables), tmp_path / "run.json")
    assert load_run(tmp_path / "run.json").tables["payments"] == {"job": [3, 4], "usd": [0.1, 2.0]}


def test_the_checksum_can_be_computed_from_its_description(header: dict[str, Any]) -> None:
    table = header["tables"]["answers"]
    data = b""
    for name, kind in table["columns"].items():
        data += f"{name}:{kind}\n".encode()
        values = table["data"][name]
        if kind == "str":
            data += b"".join(struct.pack("<q", len(v.encode())) for v in values)
            data += b"".join(v.encode() for v in values)
        else:
            data += b"".join(struct.pack("<q" if kind == "int" else "<d", v) for v in values)
    assert table["sha256"] == sha256(data).hexdigest()


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(raw: dict[str, Any]) -> None:
        at: Any = raw
        *steps, last = path.split(".")
        for step in steps:
            at = at[int(step)] if isinstance(at, list) else at[step]
        at[int(last) if isinstance(at, list) else last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("tradewind_run", 2, "version 1"),
        ("seed", 1.5, "seed is 1.5"),
        ("polisy", "x", "Did you mean 'policy'"),
        ("objective.name", "cost", "objective.name is 'cost'"),
        ("objective.value", 7, "metrics.cost_usd is 1.25"),
        ("metrics.cost_usd", "x", "metrics.cost_usd is 'x'"),
        ("audit.ok", True, "contradict"),
        ("bound.sense", "up", "bound.sense is 'up'"),
        ("tables.events.sha256", "0" * 64, "tables.events.sha256 does not match"),
        ("tables.events.sha256", "xyz", "64 lower-case hexadecimal digits"),
        ("tables.events.rows", 2, "tables.events.rows is 2, but the table has 1"),
        ("tables.events.data.at_us", [5], "tables.events.sha256 does not match"),
        ("tables.events.data.at_us", [0.5], "tables.events.at_us[0] is 0.5"),
        ("tables.events.data.at_us", [True], "tables.events.at_us[0] is true"),
        ("tables.events.data.at_us", [2**70], "64 bits"),
        ("tables.events.data.at_us", [], "rows"),
        ("tables.events.data.kind", ["\ud800"], "Unicode"),
        ("tables.events.data.when", [0], "tables.events.when is not a known column"),
        ("tables.events.columns.at_us", "float", "tables.events.columns is at_us: float"),
        (
            "tables.evnets",
            {"rows": 0, "columns": {}, "sha256": "0" * 64, "data": {}},
            "Did you mean 'events'",
        ),
        ("tables.events.file", "x.parquet", "either data or file"),
        ("tables.events", {"rows": 0, "columns": {}, "sha256": "0" * 64, "file": "../x"}, "run's folder"),
        ("tables.events", {"rows": 0, "columns": {}, "sha256": "0" * 64, "file": "x"}, "no such file"),
    ],
)
def test_a_modified_header_is_rejected(
    header: dict[str, Any], tmp_path: Path, path: str, value: Any, part: str
) -> None:
    raw = copy.deepcopy(header)
    _set(path, value)(raw)
    assert part in refused(tmp_path, raw)


@pytest.mark.parametrize(
    ("table", "column", "value", "part"),
    [
        ("steps", "plan", 1, "tables.steps.plan[0] is 1; row numbers of plans are 0 to 0"),
        ("plans", "decision", -2, "row numbers of decisions are -1 to 0"),
        ("routes", "path", -1, "tables.routes.path[0] is -1, which is not in tables.paths"),
        ("paths", "path", -2, "must be in ascending order, from 0"),
        ("outcomes", "state", "lost", "tables.outcomes.state contains 'lost'"),
    ],
)
def test_row_references_must_be_valid(tmp_path: Path, table: str, column: str, value: Any, part: str) -> None:
    run = a_run()
    tables: dict[str, Any] = {name: dict(content) for name, content in run.tables.items()}
    tables[table][column] = [value]
    with pytest.raises(RunFileError, match="tables") as found:
        save(a_run(tables=tables), tmp_path / "run.json")
    assert part in str(found.value)
    assert not list(tmp_path.iterdir())


def test_a_route_without_links_stays_at_its_node(tmp_path: Path) -> None:
    tables: dict[str, Any] = {name: dict(content) for name, content in a_run().tables.items()}
    tables["routes"]["path"] = [7]
    save(a_run(tables=tables), tmp_path / "run.json")
    tables["routes"]["dst"] = [1]
    with pytest.raises(RunFileError, match="from a node to itself"):
        save(a_run(tables=tables), tmp_path / "run.json")


def test_the_words_of_a_column_are_those_of_its_description() -> None:
    for (table, column), words in run_tables.WORDS.items():
        for word in words:
            assert word in TABLES[table][column][1], (table, column, word)


def test_a_modified_parquet_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    save(a_run(MANY), path)
    (file,) = (tmp_path / "run.d").glob("*/events.parquet")
    data = bytearray(file.read_bytes())
    other: dict[str, Any] = {"at_us": [1], "kind": ["arrived"], "job": [0], "value": [0]}
    for broken in (b"", bytes(data[:-20]), b"PAR1" + bytes(data[4:]) + b"x"):
        file.write_bytes(broken)
        with pytest.raises(RunFileError):
            load_run(path)
    run_tables.write_parquet("events", other, file)
    with pytest.raises(RunFileError, match=r"tables\.events"):
        load_run(path)
    file.unlink()
    with pytest.raises(RunFileError, match="no such file"):
        load_run(path)


def test_an_interrupted_save_leaves_no_new_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "run.json"
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save(a_run(MANY), path)
    assert not path.exists()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save(a_run(MANY + 1), path)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


SAVE_FOREVER = """
import sys
from tests.files.generated import a_run
from tradewind.files.run_file import save
print("ready", flush=True)
while True:
    for factor in (1, 15000, 2, 15001):
        save(a_run(factor), sys.argv[1])
"""
DIE_EVERYWHERE = """
import os, sys
from tests.files.generated import a_run
from tradewind.files import run_file
from tradewind.files.run_file import load_run, save
run_file.INLINE_ROWS = sum(map(run_file.rows, a_run(1).tables.values()))
path, before, after = sys.argv[1], a_run(int(sys.argv[2])), a_run(int(sys.argv[3]))
left = 1 << 60
def hook(event, args):
    global left
    if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.chmod"):
        left -= 1
        if left < 0:
            os._exit(9)
sys.addaudithook(hook)
save(after, path)
save(before, path)
for steps in range(0, 10_000, 4):
    child = os.fork()
    if not child:
        left = steps
        save(after, path)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = load_run(path)
    assert found in (before, after), steps
    if found == after:
        if not code:
            break
        save(before, path)
print(steps)
"""


def test_a_killed_process_leaves_the_old_run_or_the_new_one(tmp_path: Path) -> None:
    path, dice = tmp_path / "run.json", Random(1)
    root = Path(__file__).parents[2]
    save(a_run(3), path)
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", SAVE_FOREVER, str(path)], cwd=root, stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(0.1 + 0.4 * dice.random())
            writer.kill()
        assert load_run(path).policy == "fifo"


@pytest.mark.parametrize(("before", "after"), [(2, 3), (1, 2), (2, 1)])
def test_death_before_any_step_of_a_save_leaves_the_old_run_or_the_new_one(
    tmp_path: Path, before: int, after: int
) -> None:
    path, root = tmp_path / "run.json", Path(__file__).parents[2]
    words = [sys.executable, "-c", DIE_EVERYWHERE, str(path), str(before), str(after)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 8
    versions = {file.name for file in tmp_path.glob("run.d/*")}
    assert len(versions) == (0 if after == 1 else 1)
    assert {file.name for file in tmp_path.iterdir()} <= {"run.json", "run.d"}


def test_a_file_that_claims_many_rows_in_a_few_bytes_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    save(a_run(MANY), tmp_path / "run.json")
    (file,) = (tmp_path / "run.d").glob("*/payments.parquet")
    count = 3_000_000
    run_tables.write_parquet("payments", {"job": np.zeros(count, dtype=int), "usd": np.zeros(count)}, file)  # type: ignore[dict-item]
    assert file.stat().st_size < 100_000
    raw = json.loads((tmp_path / "run.json").read_text())
    raw["tables"]["payments"]["rows"] = count
    monkeypatch.setattr(pq, "read_table", None)
    raw["tables"] = {"payments": raw["tables"]["payments"]}
    assert "claims 3,000,000 rows" in refused(tmp_path, raw)
    with pytest.raises(InputError, match="claims 3,000,000 rows"):
        row_tables.read_parquet(file)


def test_an_unknown_table_is_rejected_when_saving(tmp_path: Path) -> None:
    tables: dict[str, Any] = dict(a_run().tables) | {"evnets": {"at_us": []}}
    with pytest.raises(RunFileError, match="Did you mean 'events'"):
        save(a_run(tables=tables), tmp_path / "run.json")


def test_saving_a_smaller_run_removes_the_tables_of_a_larger_one(tmp_path: Path) -> None:
    for factor in (MANY, MANY + 1, 1):
        save(a_run(factor), tmp_path / "run.json")
        assert load_run(tmp_path / "run.json") == a_run(factor)
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_run_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        save(a_run(), tmp_path / "missing" / "run.json")
    with pytest.raises(InputError, match="the file name ends in '"):
        save(a_run(), tmp_path / "run.txt")
