"""Seals what is private before it is stored: whoever reads the database, a backup or a log does not see it.

The key is in a file of its own. A sealed text is a random nonce, the text XOR a keystream of HMAC-SHA256 in counter mode,
and an HMAC-SHA256 over both (encrypt, then authenticate), all from the standard library.
"""

from __future__ import annotations

import hmac
import os
import secrets
from hashlib import sha256
from pathlib import Path

from tradewind.model.errors import InputError

NONCE, TAG = 16, 32


class Seal:
    """Seals and opens texts with one key."""

    def __init__(self, key: bytes) -> None:
        purposes = b"cipher", b"proof", b"digest"
        self._cipher, self._proof, self._digest = (hmac.digest(key, each, sha256) for each in purposes)

    @classmethod
    def of(cls, path: Path) -> Seal:
        """The seal of a key file, which is made where there is none (mode 0600)."""
        try:
            return cls(path.read_bytes())
        except FileNotFoundError:
            write_secret(path, secrets.token_bytes(32))
            return cls(path.read_bytes())

    def digest(self, text: str) -> str:
        """A digest that does not let others try what the text was, such as all likely budgets."""
        return hmac.digest(self._digest, text.encode(), sha256).hex()

    def seal(self, text: str) -> bytes:
        """Seal a text."""
        nonce = secrets.token_bytes(NONCE)
        body = nonce + self._mixed(nonce, text.encode())
        return body + hmac.digest(self._proof, body, sha256)

    def open(self, sealed: bytes) -> str:
        """The text of a seal; InputError if it was changed or belongs to another key."""
        body, tag = sealed[:-TAG], sealed[-TAG:]
        if not hmac.compare_digest(tag, hmac.digest(self._proof, body, sha256)):
            raise InputError("a sealed limit does not fit the key; restore seal.key of this service")
        return self._mixed(body[:NONCE], body[NONCE:]).decode()

    def _mixed(self, nonce: bytes, data: bytes) -> bytes:
        blocks = -(-len(data) // 32)
        stream = b"".join(
            hmac.digest(self._cipher, nonce + number.to_bytes(8, "big"), sha256) for number in range(blocks)
        )
        return bytes(a ^ b for a, b in zip(data, stream, strict=False))


def write_secret(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
