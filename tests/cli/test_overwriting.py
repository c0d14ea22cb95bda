"""What a command reads is not overwritten by what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_help import COMMANDS
from tests.command import tradewind
from tradewind.cli.overwriting import is_output

LIST = "# date: 2026-11-01\ncloud,region,machine,gpu,gpus,usd_per_hour\nours,berlin,node,H100,8,20\nours,paris,a,A100,8,9\n"
TRACE = "id,arrive_s,duration_s,gpus\na,0,10,1\n"
JOBS = "tradewind_jobs: 1\njobs:\n- {id: a, gpu: H100, gpu_hours: 10, gpus: 8}\n"
SCENARIO = """tradewind_scenario: 1
objective: jct_mean_s
slot_us: 5 min
horizon_us: 1 d
nodes: [{name: server, capacity: {gpu: 8}}]
jobs: [{id: a, worker: {gpu: 1}, work: {kind: fixed, runtime_us: 2 h}}]
"""
FILES = {"list.csv": LIST, "trace.csv": TRACE, "jobs.yaml": JOBS, "s.json": "", "s.yaml": SCENARIO}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run s.yaml --policy fifo -o ./s.yaml", "-o s.yaml: this file is read (SCENARIO)"),
        ("optimum s.yaml -o link.yaml", "-o link.yaml: this file is read (SCENARIO)"),
        ("plan jobs.yaml --prices list.csv --scenario jobs.yaml", "--scenario jobs.yaml: this file is read (JOBS)"),
        ("plan jobs.yaml --prices list.csv --scenario x.yaml -o x.yaml", "--scenario and -o both write x.yaml"),
        ("prices --prices list.csv --gpu H100 -o list.csv", "-o list.csv: this file is read (--prices)"),
        ("prices import list.csv -o list.csv", "-o list.csv: this file is read (FILE)"),
        ("generate trace --set file=trace.csv --set format=csv -o trace.csv", "-o trace.csv: this file is read (--set)"),
    ],
)  # fmt: skip
def test_an_output_that_is_an_input_or_another_output_is_refused_and_nothing_is_written(
    tmp_path: Path, words: str, said: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.yaml").symlink_to("s.yaml")
    done = tradewind(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {**FILES, "link.yaml": SCENARIO}


def test_a_result_is_replaced_by_a_newer_one(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    for policy in ("fifo", "las"):
        assert tradewind("run", "s.yaml", "--policy", policy, "-o", "run.json", cwd=tmp_path).returncode == 0
    assert '"las"' in (tmp_path / "run.json").read_text()


def test_the_folder_of_an_output_is_made_and_one_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path,
) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    made = tradewind("run", "s.yaml", "--policy", "fifo", "-o", "out/new/run.json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "out" / "new" / "run.json").exists()
    program = f"touch {tmp_path}/started; sleep 60"
    for output, why in (("s.yaml/run.json", "cannot be written ("), ("out", "is a folder")):
        done = tradewind("profile", "-o", output, "--", "sh", "-c", program, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"-o {output}: {why}" in done.stderr
    assert not (tmp_path / "started").exists()


def test_every_option_that_writes_a_file_is_known_as_an_output() -> None:
    outputs = [
        (name, param)
        for name, command in COMMANDS.items()
        for param in command.params
        if str(param.help).startswith(("Where to write", "Run file to write", "File to write"))
        or ("--output" in param.opts and param.metavar == "FILE" and "stem" not in param.help)
    ]
    assert len(outputs) > 12
    assert [name for name, param in outputs if not is_output(param)] == []
