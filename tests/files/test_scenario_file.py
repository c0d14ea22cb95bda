"""Scenario files: what is written comes back, and mistakes are explained."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from tests.files.generated import scenarios
from tradewind.files import row_tables
from tradewind.files.scenario_file import dump, load, parse, scenario_hash
from tradewind.files.schemas import schema
from tradewind.files.schemas_prices import Strict
from tradewind.model.errors import InputError, LookupFailed, ScenarioError
from tradewind.model.job import Fixed, Rounds
from tradewind.model.scenario import Scenario

quiet = settings(
    derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
quicker = settings(quiet, max_examples=25)


VALIDATOR = jsonschema.Draft202012Validator(schema("scenario"))


def small(**changes: Any) -> dict[str, Any]:
    """A scenario that a person would write."""
    base: dict[str, Any] = {
        "tradewind_scenario": 1,
        "objective": "cost_usd",
        "slot_us": "5 min",
        "horizon_us": "1 h",
        "nodes": [
            {"name": "eu-west", "capacity": {"gpu": 8}, "rent": {"gpu": 3.06}},
            {"name": "us-east", "capacity": {"gpu": 4, "vcpu": 0.5}},
        ],
        "links": [{"a": "eu-west", "b": "us-east", "bps": "5 Gbit/s"}],
        "jobs": [
            {
                "id": "job-7",
                "worker": {"gpu": 1},
                "work": {"kind": "rounds", "count": 5, "compute_us": "2 s"},
            },
            {"arrive_us": 5, "worker": {"gpu": 2}, "workers": 4, "work": {"runtime_us": "1 min"}},
        ],
    }
    return base | changes


def refused(raw: Any) -> str:
    """The message with which a document is refused."""
    with pytest.raises(InputError) as found:
        parse(raw)
    return str(found.value)


@given(scenarios())
@quiet
def test_json_gives_back_an_equal_scenario_with_the_same_hash(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario
) -> None:
    path = tmp_path_factory.mktemp("s") / "s.json"
    dump(scenario, path)
    again = load(path)
    assert again == scenario
    assert scenario_hash(again) == scenario_hash(scenario)
    VALIDATOR.validate(json.loads(path.read_text()))


@given(scenarios())
@quicker
def test_every_other_form_gives_back_an_equal_scenario(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario
) -> None:
    folder = tmp_path_factory.mktemp("s")
    forms: tuple[Any, ...] = (("a.yaml", ""), ("b.json", "csv"), ("c.yml", "parquet"))
    for name, tables in forms:
        dump(scenario, folder / name, tables=tables)
        assert load(folder / name) == scenario, name


@given(scenarios())
@quicker
def test_the_hash_ignores_only_origin_and_name(scenario: Scenario) -> None:
    base = scenario_hash(scenario)
    assert scenario_hash(dataclasses.replace(scenario, origin={"seed": 9}, name="other")) == base
    longer = dataclasses.replace(scenario.setup, horizon_us=scenario.setup.horizon_us + 1)
    assert scenario_hash(dataclasses.replace(scenario, setup=longer)) != base
    for i, job in enumerate(scenario.jobs):
        changed = dataclasses.replace(job, deploy_usd=job.deploy_usd + 1)
        jobs = (*scenario.jobs[:i], changed, *scenario.jobs[i + 1 :])
        assert scenario_hash(dataclasses.replace(scenario, jobs=jobs)) != base


def test_defaults_and_units_are_filled_in() -> None:
    scenario = parse(small(), name="from-the-file-name")
    first, second = scenario.jobs
    assert scenario.name == "from-the-file-name"
    assert scenario.setup.resources == ("gpu", "vcpu")
    assert scenario.setup.links[0].ab_bps == scenario.setup.links[0].ba_bps == 5 * 10**9
    assert first.work == Rounds(count=5, compute_us=2_000_000)
    assert (second.id, second.workers_min, second.workers_max) == ("job-1", 4, 4)
    assert second.work == Fixed(runtime_us=60_000_000)


def test_inline_columns_are_equivalent_to_rows() -> None:
    columns = {
        "id": ["job-7", None],
        "arrive_us": [None, 5],
        "worker.gpu": [1, 2],
        "workers": [None, 4],
        "work.kind": ["rounds", None],
        "work.count": [5, None],
        "work.compute_us": ["2 s", None],
        "work.runtime_us": [None, "1 min"],
    }
    assert parse(small(jobs=columns)) == parse(small())


def test_a_star_prices_all_pairs_without_an_entry_of_their_own() -> None:
    lines = [
        {"src": "*", "dst": "*", "tariff": 0.02},
        {"src": "us-east", "dst": "eu-west", "tariff": {"usd": [0.09, 0.05], "starts": [0, 10]}},
    ]
    egress = parse(small(egress=lines)).setup.egress
    assert egress[0, 1].usd == (0.02,)
    assert egress[1, 0].usd == (0.09, 0.05)


def test_changes_refer_to_links_by_name_direction_or_number() -> None:
    rows = [
        {"at_us": 0, "kind": "bandwidth", "link": "eu-west->us-east", "bps": 1},
        {"at_us": 0, "kind": "bandwidth", "link": "us-east->eu-west", "bps": 2},
        {"at_us": 0, "kind": "bandwidth", "link": "us-east-eu-west", "bps": 3},
        {"at_us": 0, "kind": "bandwidth", "link": 0, "direction": "ba", "bps": 4},
        {"at_us": 0, "kind": "link_down", "link": "eu-west-us-east"},
        {"at_us": 0, "kind": "capacity", "node": "us-east", "resource": "gpu", "amount": 1.5},
    ]
    found = [(c.a, c.b, c.value) for c in parse(small(changes=rows)).changes]
    assert found == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 1, 4), (0, 0, 0), (1, 0, 1500)]


def _with(path: str, value: Any) -> dict[str, Any]:
    """The small scenario with one place changed; the last part of the path may be new."""
    raw = copy.deepcopy(small())
    at: Any = raw
    *steps, last = path.split(".")
    for step in steps:
        at = at[int(step)] if isinstance(at, list) else at[step]
    at[int(last) if isinstance(at, list) else last] = value
    return raw


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        ("jobs.0.work.count", 0, ("jobs[job-7].work.count is 0", "from 1")),
        ("jobs.0.work.count", True, ("jobs[job-7].work.count is true", "whole number")),
        ("jobs.0.work.count", 10**30, ("jobs[job-7].work.count", "9007199254740992")),
        ("jobs.0.work.cuont", 3, ("jobs[job-7].work.cuont is not a known field", "Did you mean 'count'")),
        ("jobs.0.work.kind", "round", ("jobs[job-7].work.kind is 'round'", "'rounds'")),
        ("jobs.0.work.comm", "flows", ("jobs[job-7].work.pinned", "needs the sites")),
        ("jobs.0.worker", {"gpuu": 1}, ("jobs[job-7].worker refers to an unknown resource, 'gpuu'", "Did you mean 'gpu'")),
        ("jobs.0.worker", {"gpu": 0.0005}, ("jobs[job-7].worker.gpu is 0.0005", "three decimals")),
        ("jobs.0.nodes", ["eu-wst"], ("jobs[job-7].nodes refers to an unknown node, 'eu-wst'", "Did you mean 'eu-west'")),
        ("jobs.0.arrive_us", "5 minutes", ("jobs[job-7].arrive_us is '5 minutes'", "'5 min'")),
        ("jobs.0.arrive_us", "2 h", ("jobs[job-7].arrive_us", "Sort the jobs or move the horizon")),
        ("jobs.0.arrive_us", 7, ("jobs[job-1].arrive_us is 5", "listed by arrival")),
        ("jobs.0.id", "job-1", ("'job-1' twice", "Rename one")),
        ("jobs.0.id", 7, ("jobs[0].id is 7", "quotes")),
        ("jobs.0.workers", 0, ("jobs[job-7].workers is 0",)),
        ("jobs.0.workers", 400_000_000, ("jobs[job-7].workers is 400000000", "1 to 1000000")),
        ("jobs.0.servers", 400_000_000, ("jobs[job-7].servers is 400000000", "0 to 1000000")),
        ("jobs.0.utility", {"of": "progress", "shape": "log1p", "args": [1]}, ("jobs[job-7].utility", "needs 2")),
        ("jobs.0.private", {"budget_usd": float("nan")}, ("jobs[job-7].private.budget_usd is nan", "from 0 to")),
        ("jobs.0", [], ("jobs[0] is a list of 0", "object")),
        ("nodes.0.capacity.gpu", -1, ("nodes[eu-west].capacity.gpu is -1", "from 0")),
        ("nodes.0.capacity.gpu", float("inf"), ("nodes[eu-west].capacity.gpu is inf",)),
        ("nodes.0.capacity.gpu", "8", ("nodes[eu-west].capacity.gpu is '8'", "number")),
        ("nodes.0.parent", "mars", ("nodes[eu-west].parent refers to an unknown node, 'mars'", "Known: eu-west, us-east")),
        ("nodes.0.parent", "eu-west", ("nodes[eu-west].parent",)),
        ("nodes.0.name", "us-east", ("'us-east' twice",)),
        ("nodes.0.name", "*", ("nodes[0].name", "every site")),
        (
            "nodes.0.rent.gpu",
            {"usd": [3.06, 3.4], "starts": [0, 5]},
            ("nodes[eu-west].rent.gpu: tier 2 costs 3.4", "Swap"),
        ),
        ("nodes.0.rent.gpu", -1, ("nodes[eu-west].rent.gpu is -1", "dollars")),
        ("nodes.0.kind", "planet", ("nodes[eu-west].kind is 'planet'", "'site', 'rack', 'server' or 'switch'")),
        ("links.0.b", "eu-west", ("links[eu-west-eu-west]", "connects a node to itself")),
        ("links.0.b", "nowhere", ("links[eu-west-nowhere] refers to an unknown node, 'nowhere'",)),
        ("links.0.bps", "5 Gb", ("links[eu-west-us-east].bps is '5 Gb'", "Gbit/s")),
        ("links.0.ab_bps", 5, ("links[eu-west-us-east]", "give bps")),
        ("slot_us", 0, ("slot_us is 0", "from 1")),
        ("objective", "cost", ("objective is 'cost'", "'cost_usd'")),
        ("transport", "warp", ("transport is 'warp'", "cut-through")),
        ("horizen_us", 5, ("horizen_us is not a known field", "Did you mean 'horizon_us'")),
        ("tradewind_scenario", 2, ("tradewind_scenario is 2", "version 1")),
        ("tradewind_scenario", True, ("tradewind_scenario is true",)),
        ("nodes", [], ("resources is missing",)),
        ("nodes", None, ("nodes is null", "list")),
        ("resources", ["gpu"], ("nodes[us-east].capacity refers to an unknown resource, 'vcpu'", "Known: gpu")),
        ("volumes", {"job": ["job-7"], "slot": [0], "node": ["eu-west"], "bytes": [1]}, ("not a stream job",)),
        ("volumes", {"job": [0], "slot": [1.5], "node": [0], "bytes": [1]}, ("volumes.slot[0] is 1.5",)),
        ("volumes", {"job": [0], "slot": [], "node": [], "bytes": []}, ("volumes.slot", "same number")),
        ("jobs", {"id": ["a"], "worker.gpu": []}, ("jobs.worker.gpu has 0 entries", "same number")),
        ("changes", [{"at_us": 0, "kind": "node_down"}], ("changes[0].node is missing",)),
        ("changes", [{"at_us": 0, "kind": "node_down", "node": "eu-west", "bps": 1}], ("changes[0].bps", "drop")),
        ("changes", [{"at_us": 0, "kind": "link_up", "link": "a-b"}], ("changes[0].link refers to an unknown link, 'a-b'",)),
        ("changes", [{"at_us": 1, "kind": "price", "node": "eu-west", "resource": "gpu", "factor": 2}], ("slot",)),
        ("egress", [{"src": "eu-west", "dst": "us-east", "tariff": 1}] * 2, ("keep one",)),
        ("origin", {"a": float("inf")}, ("origin", "not finite")),
        ("jobs_file", "jobs.csv", ("both jobs and jobs_file",)),
    ],
)  # fmt: skip
def test_an_error_says_where_it_is_and_what_to_do(path: str, value: Any, parts: tuple[str, ...]) -> None:
    message = refused(_with(path, value))
    for part in parts:
        assert part in message, message


def test_a_missing_field_is_described() -> None:
    raw = small()
    del raw["slot_us"]
    assert "slot_us is missing; add it (length of a slot in microseconds" in refused(raw)


def test_a_misspelt_field_is_named_rather_than_the_one_that_is_missing() -> None:
    raw = small()
    raw["objektive"] = raw.pop("objective")
    assert "objektive is not a known field. Did you mean 'objective'?" in refused(raw)


def test_table_files_must_be_in_the_folder_of_the_scenario(tmp_path: Path) -> None:
    for name in ("/etc/passwd.csv", "../jobs.csv", "jobs.txt", "", 5, "nothing.csv"):
        raw = small(jobs_file=name)
        del raw["jobs"]
        (tmp_path / "s.json").write_text(json.dumps(raw))
        with pytest.raises(ScenarioError, match=r"jobs_file|no such file"):
            load(tmp_path / "s.json")


def test_a_csv_written_by_hand_is_read(tmp_path: Path) -> None:
    raw = small(jobs_file="jobs.csv")
    del raw["jobs"]
    (tmp_path / "s.json").write_text(json.dumps(raw))
    (tmp_path / "jobs.csv").write_text(
        "id,arrive_us,worker.gpu,worker.vcpu,workers,work.runtime_us,private.runtime_us,nodes,utility\n"
        '001,0,1,0,2,,1 min,"[""us-east""]",\n'
        '2,1e3,0.5,2,,60000000,,,"{""of"": ""payment"", ""shape"": ""budget"", ""args"": [1, 2]}"\n'
    )
    one, two = load(tmp_path / "s.json").jobs
    assert (one.id, one.worker, one.workers_max, one.nodes) == ("001", ((0, 1000),), 2, frozenset([1]))
    assert (two.id, two.arrive_us, two.worker) == ("2", 1000, ((0, 500), (1, 2000)))
    assert two.utility is not None


def test_volumes_refer_to_jobs_and_nodes_by_name_or_number(tmp_path: Path) -> None:
    stream = {"worker": {"gpu": 1}, "work": {"kind": "stream", "bytes_per_worker_slot": "1 GB"}}
    raw = small(jobs=[stream | {"id": "s", "private": {"runtime_us": "1 h"}}])
    by_name = {"job": ["s", "s"], "slot": [0, 1], "node": ["us-east", "eu-west"], "bytes": [5, 6]}
    by_number = {"job": [0, 0], "slot": [0, 1], "node": [1, 0], "bytes": [5, 6]}
    rows = [dict(zip(by_name, row, strict=True)) for row in zip(*by_name.values(), strict=True)]
    (tmp_path / "v.csv").write_text("job,slot,node,bytes\ns,0,1,5\n0,1,eu-west,6\n")
    expected = parse(raw | {"volumes": by_name}).volumes
    assert expected.node.tolist() == [1, 0]
    for form in ({"volumes": by_number}, {"volumes": rows}, {"volumes_file": "v.csv"}):
        assert parse(raw | form, folder=tmp_path).volumes == expected


def test_whole_numbers_in_the_id_column_of_a_parquet_file_are_names(tmp_path: Path) -> None:
    table = pa.table({"id": [12, 7], "worker.gpu": [1.0, 0.5], "work.runtime_us": [5, None], "workers": [2, None],
                      "private.runtime_us": [None, 9]})  # fmt: skip
    pq.write_table(table, tmp_path / "jobs.parquet")
    raw = small(jobs_file="jobs.parquet")
    del raw["jobs"]
    one, two = parse(raw, folder=tmp_path).jobs
    assert (one.id, one.workers_max, two.id, two.worker) == ("12", 2, "7", ((0, 500),))


def test_a_folder_that_does_not_exist_is_rejected_when_writing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        dump(parse(small()), tmp_path / "missing" / "s.json")


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.json"
    dump(parse(small()), path)
    before = path.read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dump(parse(small(name="new")), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s.json"]


def test_every_field_of_both_schemas_has_a_description() -> None:
    for which in ("scenario", "run"):
        whole = schema(which)
        jsonschema.Draft202012Validator.check_schema(whole)
        for title, part in [("", whole), *whole["$defs"].items()]:
            for name, field in part.get("properties", {}).items():
                assert field.get("description"), f"{which} {title}.{name}"
    with pytest.raises(LookupFailed):
        schema("scenery")


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    for path, value in (
        ("slot_us", 0),
        ("jobs.0.workers", "x"),
        ("nodes.0.colour", 1),
        ("objective", "cost"),
    ):
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(_with(path, value))
    VALIDATOR.validate(small())


def test_text_columns_of_a_csv_are_the_text_fields_of_the_models() -> None:
    """A new text field must be listed, or a CSV would turn its numbers into numbers."""
    from tradewind.files import schemas_scenario as files

    found = set()
    for prefix, model in (
        ("", files.JobFile), ("work.", files.FixedWork), ("work.", files.RoundsWork), ("work.", files.StreamWork),
        ("utility.", files.UtilityFile), ("private.valuation.", files.UtilityFile), ("", files.ChangeFile),
    ):  # fmt: skip
        found |= {prefix + name for name, field in model.model_fields.items() if _is_text(field.annotation)}
    assert issubclass(files.JobFile, Strict)
    assert found <= row_tables.TEXT


def _is_text(annotation: Any) -> bool:
    text = str(annotation)
    return (
        ("str" in text or "Literal" in text)
        and "dict" not in text
        and "list" not in text
        and "int" not in text
        and "Work" not in text
    )
