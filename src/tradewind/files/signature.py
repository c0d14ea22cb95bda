"""Signatures of run files: who has the key can tell that a run is as it was signed.

The message is the header in canonical form with a hash chain over the tables, whether they are inline or in Parquet files,
authenticated with HMAC-SHA256. The key is shared: whoever can verify a run can also sign one (docs/formats.md).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
from pathlib import Path
from typing import Any, Final

from tradewind.files import documents
from tradewind.files.run_file import header_of, in_order, load_run
from tradewind.files.run_tables import checksum
from tradewind.model.errors import InputError
from tradewind.model.result import Run

VERSION: Final = 1
METHOD: Final = "hmac-sha256"
SHORTEST_KEY: Final = 32
LONGEST_KEY: Final = 4096
LONGEST_SIGNATURE: Final = 10_000


def signature_path(path: Path) -> Path:
    """Path of the signature of a run file."""
    return path.with_name(f"{path.name}.sig.json")


def sign(path: Path, key_file: Path) -> Path:
    """Sign a run file; return the path of its signature."""
    code = _code(load_run(path), read_key(key_file))
    where = signature_path(path)
    documents.write(
        where, documents.json_text({"tradewind_signature": VERSION, "method": METHOD, "code": code})
    )
    return where


def is_signed(path: Path, key_file: Path) -> bool:
    """Whether a run file is as it was signed with this key; raises where there is no readable signature."""
    key, where = read_key(key_file), signature_path(path)
    documents.check_file(where, LONGEST_SIGNATURE)
    found = documents.read(where)
    fields = {"tradewind_signature", "method", "code"}
    if not isinstance(found, dict) or set(found) != fields or not isinstance(found["code"], str):
        raise InputError(
            f"is not a signature: it needs the fields {', '.join(sorted(fields))}", where=str(where)
        )
    if found["tradewind_signature"] != VERSION or found["method"] != METHOD:
        kind = f"version {found['tradewind_signature']}, {found['method']}"
        raise InputError(f"is a signature of {kind}; known is version {VERSION}, {METHOD}", where=str(where))
    return hmac.compare_digest(_code(load_run(path), key).encode(), found["code"].encode())


def read_key(path: Path) -> bytes:
    """The bytes of a key file, which nobody but its owner may read."""
    documents.check_file(path)
    info = path.stat()
    if info.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError("other users may read or change this key; run `chmod 600` on it", where=str(path))
    if not SHORTEST_KEY <= info.st_size <= LONGEST_KEY:
        raise InputError(
            f"has {info.st_size} bytes; a key has {SHORTEST_KEY} to {LONGEST_KEY}, drawn at random: "
            f"`(umask 077; head -c {SHORTEST_KEY} /dev/urandom > {path.name})`",
            where=str(path),
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path)) from None


def _code(run: Run, key: bytes) -> str:
    return hmac.new(key, message_of(run), hashlib.sha256).hexdigest()


def message_of(run: Run) -> bytes:
    """What is signed: JSON with sorted fields of the header and of the end of the chain over the tables.

    The chain: c = SHA-256 of the previous c (at first empty), the name of the table, a newline and its checksum.
    """
    chain = b""
    for name in in_order(run.tables):
        link = f"{name}\n{checksum(name, run.tables[name])}".encode()
        chain = hashlib.sha256(chain + link).digest()
    signed: dict[str, Any] = {"signature": VERSION, "header": header_of(run), "tables": chain.hex()}
    return json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
