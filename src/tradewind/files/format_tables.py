"""Generates the field tables of docs/formats.md from the schemas.

`python -m tradewind.files.format_tables docs/formats.md` updates them in place.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tradewind.files import schemas_prices as prices
from tradewind.files import schemas_run as run
from tradewind.files import schemas_scenario as scenario
from tradewind.files.atomic import write_text
from tradewind.model.tables import TABLES
from tradewind.model.utility import ARGS

MODELS: tuple[type[BaseModel], ...] = (
    scenario.ScenarioFile, scenario.NodeFile, prices.MachineFile, prices.TariffFile, scenario.LinkFile, prices.EgressFile,
    prices.SpendCapFile, prices.PoolFile, prices.PairFile,
    scenario.JobFile, scenario.FixedWork, scenario.StreamWork, scenario.DatasetWork, scenario.RoundsWork,
    scenario.UtilityFile, scenario.DataFile, scenario.PrivateFile, scenario.ChangeFile, scenario.VolumesFile,
    run.RunFile, run.ObjectiveFile, run.AuditFile, run.ViolationFile, run.BoundFile, run.TableFile, run.TimingsFile,
)  # fmt: skip
_NAMES = {model.__name__: model for model in MODELS}
BLOCK = re.compile(r"(<!-- fields ([A-Za-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SHORT = {"integer": "integer", "number": "number", "string": "text", "boolean": "true/false", "null": "null"}


def kind_of(field: dict[str, Any]) -> str:
    """Short name of the type that a JSON Schema describes."""
    if "$ref" in field:
        return f"{_title(field['$ref'].rsplit('/', 1)[1])} object"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field or "oneOf" in field:
        parts = dict.fromkeys(kind_of(each) for each in field.get("anyOf") or field["oneOf"])
        if set(parts) - {"null"} == {"integer", "text"}:
            return "integer, or text with a unit"
        return " or ".join(part for part in parts if part != "null" or len(parts) == 1) or "null"
    kind = field.get("type")
    if kind == "array":
        return f"list of {kind_of(field.get('items', {}))}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object: name -> {kind_of(field['additionalProperties'])}"
    if isinstance(kind, list):
        return " or ".join(_SHORT[each] for each in kind)
    return _SHORT.get(str(kind), "object" if kind == "object" else "any")


def _title(name: str) -> str:
    return name.removesuffix("File").removesuffix("Work").lower()


def _default(model: type[BaseModel], name: str) -> str:
    field = model.model_fields[name]
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`".replace("``", "empty")


def field_table(model: type[BaseModel]) -> str:
    """A Markdown table of a model's fields: name, type, default, meaning with its unit."""
    properties = model.model_json_schema()["properties"]
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name in model.model_fields:
        meaning = str(model.model_fields[name].description).replace("|", "\\|")
        lines.append(f"| `{name}` | {kind_of(properties[name])} | {_default(model, name)} | {meaning} |")
    return "\n".join(lines) + "\n"


def run_tables() -> str:
    """Markdown tables of all tables of a run."""
    parts = []
    for table, columns in TABLES.items():
        parts += [f"**{table}**", "", "| column | type | meaning |", "|---|---|---|"]
        parts += [f"| `{name}` | {kind} | {meaning} |" for name, (kind, meaning) in columns.items()]
        parts.append("")
    return "\n".join(parts)


def utility_shapes() -> str:
    """Markdown table of the utility shapes and their parameters."""
    lines = ["| shape | args |", "|---|---|"]
    return "\n".join(lines + [f"| `{shape}` | {', '.join(args)} |" for shape, args in ARGS.items()]) + "\n"


def block(name: str) -> str:
    """The contents of the block with this name."""
    if name == "tables":
        return run_tables()
    return utility_shapes() if name == "shapes" else field_table(_NAMES[name])


def renew(page: str) -> str:
    """The page with every block between `<!-- fields NAME -->` and `<!-- end -->` regenerated."""
    return BLOCK.sub(lambda found: f"{found[1]}{block(found[2])}{found[3]}", page)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_text(path, renew(path.read_text(encoding="utf-8")))
