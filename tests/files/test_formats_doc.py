"""docs/formats.md explains every field, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from tradewind.files import format_tables, schemas_run, schemas_scenario
from tradewind.files.scenario_changes import NEEDS
from tradewind.files.scenario_file import load, parse
from tradewind.model.tables import TABLES

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
UNITS = (
    "microsecond", "seconds of", "bytes", "bit/s", "USD", "unit", "(a number)", "a number with", "number of",
    "chunk-epochs", "from 0", "its value", "GB of",
)  # fmt: skip


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_code(page: str) -> None:
    assert format_tables.renew(page) == page, "run: python -m tradewind.files.format_tables docs/formats.md"


def test_every_model_has_its_table_on_the_page(page: str) -> None:
    shown = {found[1] for found in format_tables.BLOCK.findall(page)}
    for module in (schemas_run, schemas_scenario):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, BaseModel) and value.model_fields:
                assert name in shown, name
    assert {"tables", "shapes"} <= shown


def test_every_field_and_column_is_on_the_page(page: str) -> None:
    for model in format_tables.MODELS:
        for name in model.model_fields:
            assert f"| `{name}` |" in page, (model.__name__, name)
    for table, columns in TABLES.items():
        section = page.partition(f"**{table}**")[2].partition("**")[0]
        for column, (kind, meaning) in columns.items():
            assert f"| `{column}` | {kind} | {meaning} |" in section, (table, column)


def test_every_number_is_described_with_its_unit() -> None:
    checked = 0
    for model in format_tables.MODELS:
        properties = model.model_json_schema()["properties"]
        for name, field in model.model_fields.items():
            kind = format_tables.kind_of(properties[name])
            if "integer" in kind or "number" in kind:
                checked += 1
                text = field.description or ""
                assert any(unit in text for unit in UNITS), f"{model.__name__}.{name}: {text!r}"
    assert checked > 40


def test_a_field_whose_name_ends_in_a_unit_is_described_in_that_unit() -> None:
    words = {"_us": "microsecond", "_bps": "bit/s", "_usd": "USD", "_bytes": "bytes"}
    for model in format_tables.MODELS:
        for name, field in model.model_fields.items():
            for ending, word in words.items():
                if name.endswith(ending):
                    assert word in (field.description or ""), f"{model.__name__}.{name}"


def test_every_kind_of_change_is_on_the_page(page: str) -> None:
    section = page.partition("### Changes")[2].partition("### Volumes")[0]
    for kind in get_args(schemas_scenario.ChangeKind):
        assert f"`{kind}`" in section
        assert kind in NEEDS


def test_the_examples_of_the_page_can_be_read(page: str, tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert examples
    for number, text in enumerate(examples):
        (tmp_path / f"{number}.yaml").write_text(text)
        assert load(tmp_path / f"{number}.yaml").jobs
    table = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)[0]
    raw: dict[str, Any] = yaml.safe_load(examples[0])
    del raw["jobs"]
    (tmp_path / "jobs.csv").write_text(table)
    jobs = parse(raw | {"jobs_file": "jobs.csv"}, folder=tmp_path).jobs
    assert [(job.id, job.arrive_us, job.workers_max) for job in jobs] == [("a", 0, 8), ("b", 120_000_000, 1)]
