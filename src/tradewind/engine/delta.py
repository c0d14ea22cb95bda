"""The state of a policy as the record of an instant holds it: whole, or as what changed since the state before.

A queue of 50,000 jobs is hundreds of kilobytes of state, of which an instant changes a few bytes.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

from tradewind.model.errors import RunFileError

WHOLE = 4096
"""States up to this size are written whole, bytes."""
PROBE, DEPTH, CHUNK = 48, 10, 1 << 16
"""Bytes that must be equal to look for more around them; how often the rest is divided; bytes compared at once."""
Piece = tuple[int, int] | bytes
"""Copy of the old state (from, length), or new bytes."""


def pack(old: bytes, new: bytes) -> Any:
    """A state as JSON data, given the one before it."""
    if len(new) > WHOLE:
        pieces: list[Piece] = []
        _compare(old, new, 0, len(old), pieces, DEPTH)
        if sum(len(piece) for piece in pieces if isinstance(piece, bytes)) < len(new) // 2:
            return [
                zlib.crc32(new),
                [_text(piece) if isinstance(piece, bytes) else list(piece) for piece in pieces],
            ]
    return _text(new)


def unpack(old: bytes, data: Any) -> bytes:
    """The state that `pack` was given, from its data and the same old state."""
    if isinstance(data, str):
        return zlib.decompress(base64.b64decode(data))
    check, pieces = data
    found = b"".join(
        zlib.decompress(base64.b64decode(piece))
        if isinstance(piece, str)
        else old[piece[0] : piece[0] + piece[1]]
        for piece in pieces
    )
    if zlib.crc32(found) != check:
        raise RunFileError(
            "the policy's state does not continue the one before it; the journal was altered or written by another "
            "version: start with a new --state"
        )
    return found


def _text(state: bytes) -> str:
    return base64.b64encode(zlib.compress(state)).decode()


def _compare(old: bytes, new: bytes, begin: int, end: int, pieces: list[Piece], depth: int) -> None:
    """Describe `new` by parts of old[begin:end]."""
    front = _same(old, new, begin, 0, min(end - begin, len(new)))
    if front:
        pieces.append((begin, front))
        begin, new = begin + front, new[front:]
    back = _same(old[begin:end][::-1], new[::-1], 0, 0, min(end - begin, len(new)))
    middle = new[: len(new) - back]
    if middle:
        _search(old, middle, begin, end - back, pieces, depth)
    if back:
        pieces.append((end - back, back))


def _search(old: bytes, new: bytes, begin: int, end: int, pieces: list[Piece], depth: int) -> None:
    """Find a part of `new` in old[begin:end], and describe what is before and after it."""
    half = len(new) // 2
    found = old.find(new[half : half + PROBE], begin, end) if depth and len(new) > 2 * PROBE else -1
    if found >= 0:
        left = _same(old[begin:found][::-1], new[:half][::-1], 0, 0, min(found - begin, half))
        right = _same(old, new, found, half, min(end - found, len(new) - half))
        if left < half:
            _search(old, new[: half - left], begin, found - left, pieces, depth - 1)
        pieces.append((found - left, left + right))
        if half + right < len(new):
            _search(old, new[half + right :], found + right, end, pieces, depth - 1)
    elif depth and len(new) > CHUNK:
        _search(old, new[:half], begin, end, pieces, depth - 1)
        _search(old, new[half:], begin, end, pieces, depth - 1)
    else:
        pieces.append(new)


def _same(old: bytes, new: bytes, at: int, here: int, most: int) -> int:
    """How many bytes are equal from old[at] and new[here] on."""
    count = 0
    while count < most:
        step = min(CHUNK, most - count)
        if old[at + count : at + count + step] != new[here + count : here + count + step]:
            low, high = 0, step  # the first difference is in [low, high)
            while high - low > 1:
                half = (low + high) // 2
                equal = (
                    old[at + count + low : at + count + half] == new[here + count + low : here + count + half]
                )
                low, high = (half, high) if equal else (low, half)
            return count + low
        count += step
    return count
