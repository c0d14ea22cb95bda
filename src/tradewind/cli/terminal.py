"""What reaches a terminal: text of scenarios, runs and programs is shown as it is, and can neither format nor control."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from tradewind.model.text import shown

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 140
"""Columns of tables where the output is no terminal."""


def say(text: object = "", file: TextIO | None = None) -> None:
    """Print text, escaped."""
    print(shown(text), file=file, flush=True)


def print_json(value: Any) -> None:
    """Print plain data as JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


def open_console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr."""
    from tradewind.cli.console import PlainConsole

    console = PlainConsole(stderr=stderr)
    return console if console.is_terminal else PlainConsole(stderr=stderr, width=WIDTH)
