"""The public surface: small, documented, and what the README shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tradewind.cli.show import as_object
from tradewind.model.errors import LookupFailed, RunFileError, Unsupported
from tradewind.report.bounds import Bounds, note

ROOT = Path(__file__).parents[2]


def test_the_public_surface_is_exactly_this() -> None:
    wanted = (
        "AsyncClient Client Comparison Optimum Run Scenario Where __version__ bound check compare dump explain generate "
        "load load_run optimum period replay run save whatif"
    )
    assert tw.__all__ == wanted.split()
    for name in tw.__all__:
        assert getattr(tw, name) is not None


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="generate"):
        _ = tw.simulat


def test_the_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]
    exec(compile(code, "README.md", "exec"), {})
    assert tw.load_run("run.json").policy == "srtf"


def test_the_sweep_of_the_start_page_runs() -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "start.md").read_text(), re.S)[0]
    names: dict[str, Any] = {}
    exec(compile(code, "start.md", "exec"), names)
    assert len(names["found"].frame()) == 9


def test_the_scenario_of_the_start_page_runs(tmp_path: Path) -> None:
    text = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "start.md").read_text(), re.S)[0]
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    run = tw.run(path, policy="fifo")
    # b needs all 16 GPUs and waits until a is done: (7200 + 7200 + 1800 - 10) / 2
    assert run.metrics["jct_mean_s"] == (7200 + 8990) / 2


def test_compare_runs_every_policy_on_the_same_data() -> None:
    found = tw.compare(tw.generate("cluster", jobs=40, seed=1), ["fifo", "srtf"], seeds=(0, 1), bound=True)
    assert [(r.policy, r.seed) for r in found.runs] == [("fifo", 0), ("fifo", 1), ("srtf", 0), ("srtf", 1)]
    assert len({r.scenario_hash for r in found.runs}) == 1
    assert all(r.bound is not None and r.bound.ratio >= 1 for r in found.runs)


def test_a_policy_that_needs_runtimes_refuses_private_ones() -> None:
    rows = "id,arrive_s,duration_s,gpus\na,0,10,1\n"
    path = Path("trace.csv")
    scenario = _trace(rows, path)
    with pytest.raises(Unsupported, match="runtime"):
        tw.run(scenario, policy="srtf")
    assert tw.run(scenario, policy="las").metrics["jct_mean_s"] == 10


def _trace(rows: str, path: Path) -> tw.Scenario:
    path.write_text(rows)
    try:
        return tw.generate(
            "trace", file=str(path), format="csv", servers=1, gpus_per_server=2, runtime="private", seed=0
        )
    finally:
        path.unlink()


def test_unknown_policies_are_refused_with_a_suggestion() -> None:
    with pytest.raises(LookupFailed, match="Did you mean 'las'"):
        tw.run(tw.generate("cluster", jobs=5), policy="lass")


def test_a_run_is_not_audited_against_another_scenario() -> None:
    run = tw.run(tw.generate("cluster", jobs=5, seed=1), policy="fifo")
    with pytest.raises(RunFileError, match="hash"):
        tw.check(tw.generate("cluster", jobs=5, seed=2), run)


def test_a_bound_from_below_is_not_held_against_a_run_that_turned_jobs_away() -> None:
    scenario = tw.generate("cluster", jobs=10, seed=1)
    run = tw.run(scenario, policy="fifo")
    assert Bounds(scenario).attach(run).bound is not None
    fewer = replace(run, metrics={**run.metrics, "jobs_refused": 1.0})
    assert Bounds(scenario).attach(fewer) == fewer
    assert note(scenario, fewer).startswith("no bound for all jobs: 1 of 10 jobs were rejected")


def test_compare_says_a_mismatch_before_the_first_run() -> None:
    told: list[str] = []
    with pytest.raises(Unsupported, match="dps"):
        tw.compare(
            tw.generate("cluster", jobs=5), ["fifo", "dps"], progress=lambda name, seed: told.append(name)
        )
    assert told == []


def test_every_key_of_the_json_output_is_documented() -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    part = page[page.index("## Output of `--json`") :]
    run = tw.run(tw.generate("cluster", jobs=5), policy="fifo", bound=True)
    for key, value in as_object(run).items():
        assert f"`{key}`" in part
        if key in ("scenario", "objective", "audit", "bound", "seconds"):
            assert all(f"`{inner}`" in part for inner in value)
