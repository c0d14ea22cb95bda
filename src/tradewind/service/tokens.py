"""Bearer tokens: 256 random bits, kept as SHA-256, with role, tenant, scopes, expiry and last use; and limits per token."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from tradewind.service.config import LimitsFile, Role
from tradewind.service.errors import ApiError
from tradewind.service.seal import write_secret
from tradewind.store.board import Board, Row
from tradewind.store.desk import Desk, Writing

FILE = "admin.token"
PREFIX = "tw_"
State = Literal["valid", "expired", "revoked"]
SCOPES = ("read", "write")
"""read: look; write: submit, answer, cancel, change. Without scopes a token has both."""
USED_S = 60.0
"""The last use of a token is written down this often, at most."""


@dataclass(slots=True, kw_only=True)
class Token:
    """Who asks. allowance: requests that it may send now; open: those that are not answered yet."""

    id: str
    role: Role
    tenant: str
    scopes: tuple[str, ...]
    name: str
    made_s: float
    expires_s: float | None
    used_s: float | None
    revoked_s: float | None
    allowance: float = 0.0
    counted: float = field(default_factory=time.monotonic)
    open: int = 0

    @property
    def actor(self) -> str:
        """For the audit log."""
        return f"{self.role}:{self.name or self.id}" if self.id else "service"

    @property
    def state(self) -> State:
        """Whether it is valid now, and why not."""
        if self.revoked_s is not None:
            return "revoked"
        return "expired" if self.expires_s is not None and self.expires_s <= time.time() else "valid"

    def document(self) -> dict[str, Any]:
        """What is kept of it and may be shown."""
        names = ("id", "role", "tenant", "name", "made_s", "expires_s", "used_s", "revoked_s")
        return {**{name: getattr(self, name) for name in names}, "scopes": list(self.scopes)}


def hash_of(secret: str) -> str:
    """What is kept of a token."""
    return sha256(secret.encode()).hexdigest()


class Tokens:
    """All tokens of a service; this process is the only one that changes them."""

    def __init__(self, board: Board, desk: Desk, limits: LimitsFile) -> None:
        self._desk, self.limits = desk, limits
        self._by_hash = {row["hash"]: _token(row) for row in board.rows("tokens", most=1_000_000)}

    def all(self) -> list[Token]:
        """Every token, oldest first."""
        return sorted(self._by_hash.values(), key=lambda token: (token.made_s, token.id))

    def make_admin(self, path: Path) -> None:
        """Write the first token of an admin, unless there is one."""
        if path.exists() and hash_of(path.read_text().strip()) in self._by_hash:
            return
        secret = self.make("admin", "", (), "first", None, "service")[0]
        write_secret(path, f"{secret}\n".encode())

    def make(
        self, role: Role, tenant: str, scopes: tuple[str, ...], name: str, expires_s: float | None, actor: str
    ) -> tuple[str, Token]:  # fmt: skip
        """A new token: the secret, which is not kept, and what is."""
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            id=f"t-{secrets.token_hex(6)}", role=role, tenant=tenant, scopes=scopes, name=name, made_s=time.time(),
            expires_s=expires_s, used_s=None, revoked_s=None, allowance=float(self.limits.burst),
        )  # fmt: skip

        def task(writing: Writing) -> None:
            shown = {**token.document(), "scopes": json.dumps(list(scopes))}
            writing.insert("tokens", hash=hash_of(secret), **shown)
            made = ("role", "tenant", "scopes", "name", "expires_s")
            after = {each: token.document()[each] for each in made}
            note(writing, actor, tenant, "token.make", token.id, None, after)

        self._desk.do(task).result()
        self._by_hash[hash_of(secret)] = token
        return secret, token

    def revoke(self, id_: str, actor: str) -> Token:
        """Let a token be valid no more."""
        token = next((each for each in self._by_hash.values() if each.id == id_), None)
        if token is None:
            raise ApiError("not_found", f"there is no token {id_!r}; GET /v1/tokens lists them")
        if token.revoked_s is None:
            token.revoked_s = time.time()

            def task(writing: Writing) -> None:
                writing.update("tokens", {"id": id_}, revoked_s=token.revoked_s)
                note(writing, actor, token.tenant, "token.revoke", id_, {"revoked": False}, {"revoked": True})

            self._desk.do(task).result()
        return token

    @contextmanager
    def opened(self, header: str | None) -> Iterator[None]:
        """Count a request among the open ones of its token; ApiError if there are too many."""
        token = self._find(header)
        if token is None:
            yield
            return
        if token.open >= self.limits.streams:
            raise ApiError(
                "too_many", f"{token.open} requests of this token are open; end a stream, or wait for answers"
            )
        token.open += 1
        try:
            yield
        finally:
            token.open -= 1

    def _find(self, header: str | None) -> Token | None:
        kind, _, secret = (header or "").partition(" ")
        return self._by_hash.get(hash_of(secret.strip())) if kind.lower() == "bearer" else None

    def check(self, header: str | None) -> Token:
        """The token of a request; ApiError if there is none or it is not valid, or sends too much."""
        if (header or "").partition(" ")[0].lower() != "bearer":
            raise ApiError("unauthenticated", "send a token: Authorization: Bearer TOKEN")
        token = self._find(header)
        now = time.time()
        if token is None or token.state == "revoked":
            raise ApiError("unauthenticated", "this token is not valid; ask an admin for one")
        if token.state == "expired":
            raise ApiError("unauthenticated", "this token has expired; ask an admin for a new one")
        self._count(token)
        if token.used_s is None or now - token.used_s > USED_S:
            token.used_s = now
            self._desk.do(lambda writing: writing.update("tokens", {"id": token.id}, used_s=now))
        return token

    def _count(self, token: Token) -> None:
        """Let a token send `requests_per_s` on average, and `burst` at once."""
        now = time.monotonic()
        fresh = (now - token.counted) * self.limits.requests_per_s
        token.allowance = min(float(self.limits.burst), token.allowance + fresh)
        token.counted = now
        if token.allowance < 1:
            raise ApiError(
                "too_many", f"more than {self.limits.requests_per_s:g} requests per second; send fewer"
            )
        token.allowance -= 1


def own_token() -> Token:
    """For what the service does by itself or on a signal; nobody can send it."""
    return Token(
        id="", role="admin", tenant="", scopes=(), name="", made_s=time.time(), expires_s=None, used_s=None, revoked_s=None
    )  # fmt: skip


def _token(row: Row) -> Token:
    values = {name: row[name] for name in row if name not in ("hash", "scopes")}
    return Token(**values, scopes=tuple(json.loads(row["scopes"])), allowance=1.0)


def note(
    writing: Writing, actor: str, tenant: str, action: str, subject: str, before: Any, after: Any
) -> None:  # fmt: skip
    """Add a line to the audit log."""
    writing.insert(
        "actions", at_s=time.time(), actor=actor, tenant=tenant, action=action, subject=subject,
        before=json.dumps(before), after=json.dumps(after),
    )  # fmt: skip
