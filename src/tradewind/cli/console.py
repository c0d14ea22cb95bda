"""A console that shows text as it is."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from tradewind.model.text import shown


class PlainConsole(Console):
    """A console on which strings, also those in tables, have no markup and no control characters."""

    def render_str(self, text: str, **more: Any) -> Text:
        """A string as text; formatting is for those who make a Text themselves."""
        return super().render_str(shown(text), **{**more, "markup": False, "emoji": False})
