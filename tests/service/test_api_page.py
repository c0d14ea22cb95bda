"""docs/api.md says what the server says of itself."""

from __future__ import annotations

from pathlib import Path

from tradewind.service.api_page import page

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_api_is_current() -> None:
    assert (ROOT / "docs" / "api.md").read_text() == page()
