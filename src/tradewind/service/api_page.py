"""Writes docs/api.md from the OpenAPI document: `python -m tradewind.service.api_page docs/api.md`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tradewind.service.app import API_VERSION, create_app

HEAD = f"""# The API of the service

Made from the OpenAPI document (`GET /v1/openapi.json`) by `python -m tradewind.service.api_page docs/api.md`.
Version {API_VERSION}. How the service is run: [service.md](service.md).

Every request but those of *health* has `Authorization: Bearer TOKEN`. Times are seconds since 1970, money is USD.
An error is `{{"error": {{"code": …, "message": …}}}}` with the codes invalid (422), unauthenticated (401), forbidden (403),
not_found (404), conflict and price_moved (409), too_large (413), too_many (429) and unavailable (503).
"""


def page() -> str:
    """The page."""
    document: dict[str, Any] = create_app().openapi()
    lines, tag = [HEAD], ""
    for path, methods in document["paths"].items():
        for method, each in methods.items():
            if each["tags"][0] != tag:
                tag = each["tags"][0]
                lines.append(f"## {tag.capitalize()}\n")
            lines.append(f"### {method.upper()} {path}\n\n{each['description']}\n")
            if rows := [
                _row(param) for param in each.get("parameters", ()) if param["name"] != "authorization"
            ]:
                lines.append("| parameter | in | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    lines.append("## Answers\n")
    for name, schema in sorted(document["components"]["schemas"].items()):
        if "properties" in schema and name not in ("HTTPValidationError", "ValidationError"):
            fields = ", ".join(f"`{each}`" for each in schema["properties"])
            lines.append(f"**{name}**: {schema.get('description', '')} Fields: {fields}.\n")
    return "\n".join(lines).rstrip() + "\n"


def _row(param: dict[str, Any]) -> str:
    text = param.get("description") or param["schema"].get("description", "")
    return f"| `{param['name']}` | {param['in']} | {text} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
