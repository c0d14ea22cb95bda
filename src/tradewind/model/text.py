"""Text that people see, wherever it came from."""

from __future__ import annotations

_UNSHOWN = (
    *range(9),
    *range(11, 32),
    *range(0x7F, 0xA0),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
"""Control characters (tabs and ends of lines aside), other ends of lines, changes of the direction of writing, and halves of
characters, which names of files have that are not UTF-8."""
_SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _UNSHOWN}


def shown(text: object) -> str:
    """Text with characters that control, or cannot be printed, as escapes."""
    return str(text).translate(_SHOWN)
