"""Snapshots of a session: compressed JSON with a version, for whoever continues it in another process or later.

{"format": "tradewind-snapshot", "version": 2, "setup": hash, "policy": name, "forgets": true,
 "ledger": {…}, "audit": {…}, "session": {…}}
"""

from __future__ import annotations

import base64
import gc
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tradewind.audit.saved import AuditState
from tradewind.engine.state import RunState
from tradewind.model.codec import plain, read
from tradewind.model.errors import InputError
from tradewind.model.hash import setup_hash
from tradewind.model.setup import Setup

FORMAT, VERSION = "tradewind-snapshot", 2
QUICK = 1
"""Level of compression: a snapshot is made while jobs wait."""


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile: half the time would go into looking for it among many new objects."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@without_collections()
def pack(state: RunState, policy: str, session: dict[str, Any]) -> bytes:
    """Ledger, audit and the session's own values as bytes."""
    data = {
        **_header(state, policy),
        "ledger": state.ledger.save(),
        "audit": plain(state.audit.save()),
        "session": session,
    }
    return zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), QUICK)


@without_collections()
def unpack(state: RunState, policy: str, data: bytes) -> dict[str, Any]:
    """Restore a new ledger and audit from a snapshot; return the session's own values."""
    if state.ledger.now_us or len(state.ledger.active):
        raise InputError("a snapshot can only be restored in a new session", where="snapshot")
    try:
        found = json.loads(zlib.decompress(data))
    except (zlib.error, ValueError) as error:
        raise InputError(f"is damaged or is none ({error}); use an older one", where="snapshot") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"is not a {FORMAT}", where="snapshot")
    for name, ours in _header(state, policy).items():
        if found.get(name) != ours:
            detail = f"found {found.get(name)!r}; this session has {ours!r}. Use a snapshot of a session like this one."
            raise InputError(detail, where=f"snapshot.{name}")
    try:
        jobs = state.ledger.restore(found["ledger"], "snapshot.ledger")
        state.audit.restore(read(AuditState, found["audit"], "snapshot.audit"), jobs)
        session: dict[str, Any] = found["session"]
    except (LookupError, AttributeError) as error:  # names a job, node or part that it does not have
        raise InputError(f"contradicts itself: {type(error).__name__} {error}", where="snapshot") from None
    return session


def _header(state: RunState, policy: str) -> dict[str, Any]:
    """What must be equal in the snapshot and in the session that continues from it."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "setup": setup_hash(state.ledger.setup),
        "policy": policy,
        "forgets": state.ledger.forgets,
    }


def under(data: bytes, policy: str, state: bytes, setup: Setup, before: Setup) -> bytes:
    """A snapshot of a session without jobs, as the beginning of a policy with this state.

    setup: as before, or with further nodes and links after those that there were; its new nodes are down.
    """
    found = json.loads(zlib.decompress(data))
    found["policy"], found["session"]["policy"], found["setup"] = policy, text(state), setup_hash(setup)
    for part in (found["ledger"]["state"], found["audit"]):
        part["limit"] = _grown(part["limit"], setup, before)
        part["down_nodes"] += range(len(before.nodes), len(setup.nodes))
    return zlib.compress(json.dumps(found, separators=(",", ":"), allow_nan=False).encode(), QUICK)


def _grown(limit: list[int], setup: Setup, before: Setup) -> list[int]:
    """Limits of nodes, of links while routes push and while they pull, and of what moves, with those that are new."""
    nodes = len(before.nodes) * len(before.resources)
    pulls = nodes + 2 * len(before.links)
    rooms = [milli for node in setup.nodes[len(before.nodes) :] for milli in node.capacity_milli]
    speeds = [bps for link in setup.links[len(before.links) :] for bps in (link.ab_bps, link.ba_bps)]
    return [*limit[:nodes], *rooms, *limit[nodes:pulls], *speeds, *limit[pulls:-1], *speeds, limit[-1]]


def text(state: bytes) -> str:
    """A policy's saved state as text."""
    return base64.b64encode(state).decode()


def state_of(text: str) -> bytes:
    """The state that `text` wrote."""
    return base64.b64decode(text)
