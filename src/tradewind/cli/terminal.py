"""What reaches a terminal: text of scenarios, runs and programs is shown as it is, and can neither format nor control."""

from __future__ import annotations

from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

_CONTROLS = [*range(9), *range(11, 32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}
WIDTH = 140
"""Columns of tables where the output is no terminal."""


def shown(text: object) -> str:
    """Text with control characters, also those that reverse the direction of writing, as escapes."""
    return str(text).translate(_SHOWN)


def say(text: object = "", file: TextIO | None = None) -> None:
    """Print text, escaped."""
    print(shown(text), file=file, flush=True)


class PlainConsole(Console):
    """A console on which strings, also those in tables, have no markup and no control characters."""

    def render_str(self, text: str, **more: Any) -> Text:
        """A string as text; formatting is for those who make a Text themselves."""
        return super().render_str(shown(text), **{**more, "markup": False, "emoji": False})


def open_console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr."""
    console = PlainConsole(stderr=stderr)
    return console if console.is_terminal else PlainConsole(stderr=stderr, width=WIDTH)
