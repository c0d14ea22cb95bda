"""What reaches a terminal: text of scenarios, runs and programs is shown as it is, and can neither format nor control."""

from __future__ import annotations

import json
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from tradewind.model.text import shown

WIDTH = 140
"""Columns of tables where the output is no terminal."""


def say(text: object = "", file: TextIO | None = None) -> None:
    """Print text, escaped."""
    print(shown(text), file=file, flush=True)


def print_json(value: Any) -> None:
    """Print plain data as JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


class PlainConsole(Console):
    """A console on which strings, also those in tables, have no markup and no control characters."""

    def render_str(self, text: str, **more: Any) -> Text:
        """A string as text; formatting is for those who make a Text themselves."""
        return super().render_str(shown(text), **{**more, "markup": False, "emoji": False})


def open_console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr."""
    console = PlainConsole(stderr=stderr)
    return console if console.is_terminal else PlainConsole(stderr=stderr, width=WIDTH)
