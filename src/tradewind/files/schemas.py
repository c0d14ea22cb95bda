"""JSON Schemas of the files, generated from the pydantic models that read them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tradewind.files.schemas_run import RunFile
from tradewind.files.schemas_scenario import ScenarioFile
from tradewind.model.errors import LookupFailed

_MODELS: dict[str, type[BaseModel]] = {"scenario": ScenarioFile, "run": RunFile}
_COLUMNS = {
    "type": "object",
    "description": "the same table as columns: field -> list, with null for omitted fields; a dot leads into an object",
    "additionalProperties": {"type": "array"},
}


def schema(which: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of the `scenario` file or of the header of a `run` file."""
    if which not in _MODELS:
        raise LookupFailed("schema", which, _MODELS)
    result = _MODELS[which].model_json_schema()
    result = {"$schema": "https://json-schema.org/draft/2020-12/schema", **result}
    result["title"] = f"Tradewind {which} file, version 1"
    if which == "scenario":
        for table in ("jobs", "changes", "links", "egress"):
            field = result["properties"][table]
            rows = {key: field.pop(key) for key in ("type", "items")}
            field["anyOf"] = [rows, _COLUMNS]
        volumes = result["properties"]["volumes"]
        rows = {"type": "array", "items": {"type": "object", "required": ["job", "slot", "node", "bytes"]}}
        volumes["anyOf"] = [{"$ref": volumes.pop("$ref")}, rows]
    return result
