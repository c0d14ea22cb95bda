"""What the routes work with: configuration, tables, tokens, the engine; and the requests that change something."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from tradewind.registry import systems
from tradewind.service.clerk import Clerk
from tradewind.service.config import Config, price_hash
from tradewind.service.current import current_config, store_address
from tradewind.service.errors import ApiError
from tradewind.service.feed import Feed
from tradewind.service.periods_work import Source
from tradewind.service.process import EngineProcess
from tradewind.service.seal import Seal
from tradewind.service.submission import Reader, Submission, customer_of, sealed_text
from tradewind.service.tokens import Token, Tokens, note
from tradewind.store.board import Board, Row
from tradewind.store.desk import Desk, Once, Rejected, Writing

T = TypeVar("T")
CHANGE_S, SWITCH_S = 5.0, 60.0
"""How long a change of sites is waited for (one that changes nothing is never seen), and another policy or further sites."""
WANTED = {"cancel": "cancelled", "suspend": "suspended", "resume": "waiting"}
"""Request -> the status that its job is to have, for the audit log."""
NOBODY: Row = {"id": "", "tenant": "", "status": ""}
"""In place of a job, where a request concerns none."""


class Service:
    """A running service."""

    def __init__(self, config: Config, data: Path, engine: EngineProcess) -> None:
        self.config, self.data, self.engine = config, data, engine
        address = store_address(config, data)
        self.board, self.desk = Board(address), Desk(address)
        self.tokens = Tokens(self.board, self.desk, config.file.limits)
        self.reader, self._seal = Reader(config), Seal.of(data / "seal.key")
        self.feed, self.clerk, self.painter = (
            Feed(self.board, engine),
            Clerk(),
            Clerk("tradewind.service.charts"),
        )
        self._switching = asyncio.Lock()
        self.known: dict[str, Any] = {}  # what was looked up, for those who look it up again

    def close(self) -> None:
        """Write what was handed in, then close."""
        self.clerk.close()
        self.painter.close()
        self.desk.close()
        self.board.close()

    @property
    def source(self) -> Source:
        """The records, for the clerk."""
        return Source(store=store_address(self.config, self.data), slot_us=self.config.setup.slot_us)

    def factors(self) -> dict[tuple[int, int], float]:
        """(node, resource) -> factor on its tariff in force."""
        setup, rows = self.config.setup, self.board.rows("board_sites", most=100_000)
        return {
            (setup.node_index[row["node"]], setup.resource_index[row["resource"]]): row["price_factor"]
            for row in rows
        }

    def price_list(self, coming: Mapping[tuple[int, int], float] | None = None) -> str:
        """Hash of the price list in force; coming: (node, resource) -> factor that comes into force."""
        return price_hash(self.config.setup, {**self.factors(), **(coming or {})})

    @property
    def market(self) -> str:
        """How jobs are paid for."""
        spec, system = self.config.spec, systems().get(self.config.spec.system)
        if spec.pricer:
            return "auction" if spec.serial_quotes or spec.charges else "posted prices"
        return "brokerage" if system is not None and system.bills else "queue"

    # ------------------------------------------------------------------ who
    def token(self, header: str | None, scope: str, *roles: str) -> Token:
        """Who asks, if it may."""
        token = self.tokens.check(header)
        if token.scopes and scope not in token.scopes:
            raise ApiError(
                "forbidden", f"this token has the scopes {', '.join(token.scopes)}; {scope} is needed"
            )
        if scope == "write" and token.tenant and token.tenant not in self.config.file.tenants:
            raise ApiError("forbidden", f"{token.tenant} is no tenant of this service any more")
        if roles and token.role not in roles:
            raise ApiError(
                "forbidden", f"this needs the role {' or '.join(roles)}; the token's is {token.role}"
            )
        return token

    def tenant_of(self, token: Token, given: str | None) -> str:
        """The tenant for whom somebody acts: a tenant for itself, others for whom they name."""
        if token.role == "tenant":
            if given not in (None, token.tenant):
                raise ApiError("forbidden", f"this token acts for {token.tenant}; leave out tenant")
            return token.tenant
        if given is None or given not in self.config.file.tenants:
            known = ", ".join(self.config.file.tenants)
            raise ApiError(
                "invalid", f"name the tenant ({known}): --tenant, or ?tenant= over HTTP; found {given!r}"
            )
        return given

    async def job(self, token: Token, id_: str) -> Row:
        """The row of a job, if the token may see it; whether a job of others exists is not told."""
        row = await self.read(lambda: self.board.row("board_jobs", id=id_))
        if row is None or (token.role == "tenant" and row["tenant"] != token.tenant):
            raise ApiError(
                "not_found", f"there is no job {id_!r}; `tradewind jobs` (GET /v1/jobs) lists yours"
            )
        return row

    async def read(self, query: Callable[[], T]) -> T:
        """The result of a query, without blocking others."""
        return await run_in_threadpool(query)

    async def write(self, task: Callable[[Writing], T], once: Once | None = None) -> T:
        """The result of a task, once it is on disk."""
        try:
            return await asyncio.wrap_future(self.desk.do(task, once))
        except Rejected as error:
            raise ApiError(error.code, str(error), error.data) from None

    # ------------------------------------------------------------------ requests
    async def submit(self, found: Submission, kind: str, token: Token, key: str) -> dict[str, Any]:
        """Hand in a job, to be run (submit) or to be priced first (quote); the same key gives the same answer."""
        tenant, private = found.job.tenant, sealed_text(found.customer)
        body = json.dumps(found.document)
        digest = self._seal.digest(f"{kind}\n{body}\n{private}")
        sealed = None if private is None else self._seal.seal(private)
        limit = self.config.file.tenants[tenant].jobs
        if limit is not None:
            active = await self.read(lambda: self.board.count("board_jobs", tenant=tenant, is_over=False))
            if active >= limit:
                raise ApiError(
                    "too_many", f"{tenant} has {active} jobs that are not over; {limit} are allowed"
                )
        name = found.document.get("id") or "job"

        def task(writing: Writing) -> dict[str, Any]:
            now, id_ = time.time(), f"{str(name)[:40]}-{secrets.token_hex(8)}"
            number = writing.insert(
                "requests",
                kind=kind,
                job=id_,
                tenant=tenant,
                actor=token.actor,
                at_s=now,
                body=body,
                sealed=sealed,
            )
            row = {
                "number": number, "id": id_, "job": None, "tenant": tenant, "status": "submitted", "is_over": False,
                "submitted_s": now, "started_s": None, "ended_s": None, "price_usd": None, "reason": "",
                "places": "{}", "body": body,
            }  # fmt: skip
            writing.insert("board_jobs", **row)
            writing.insert("board_events", id=id_, tenant=tenant, at_s=now, kind="submitted", body="{}")
            note(writing, token.actor, tenant, f"job.{kind}", id_, None, {"status": "submitted"})
            return job_document(row)

        return await self.write(task, Once(tenant, key, digest) if key else None)

    async def ask(
        self, kind: str, row: Row, token: Token, body: dict[str, Any], key: str = ""
    ) -> dict[str, Any]:
        """Ask the engine for something that concerns a job, or (without a row) the sites."""

        def task(writing: Writing) -> dict[str, Any]:
            if row["id"]:
                after = {"status": WANTED[kind]} if kind in WANTED else body
                note(
                    writing,
                    token.actor,
                    row["tenant"],
                    f"job.{kind}",
                    row["id"],
                    {"status": row["status"]},
                    after,
                )
            return {"request": self.request(writing, kind, row, token, body)}

        return await self.write(task, self.once(kind, row, body, key))

    @staticmethod
    def request(writing: Writing, kind: str, row: Row, token: Token, body: dict[str, Any]) -> int:
        """Write what the engine is asked for; its number."""
        return writing.insert(
            "requests", kind=kind, job=row["id"], tenant=row["tenant"], actor=token.actor, at_s=time.time(),
            body=json.dumps(body), sealed=None,
        )  # fmt: skip

    def once(self, kind: str, row: Row, body: dict[str, Any], key: str) -> Once | None:
        """What tells a request with a key from others; private parts are in a digest alone."""
        digest = self._seal.digest(f"{kind}\n{row['id']}\n{json.dumps(body)}")
        return Once(row["tenant"], key, digest) if key else None

    async def repeats(self, kind: str, row: Row, body: dict[str, Any], key: str) -> bool:
        """Whether the same was asked for with this key before."""
        once = self.once(kind, row, body, key)
        if once is None:
            return False
        old = await self.read(lambda: self.board.row("replies", tenant=once.tenant, key=once.key))
        return old is not None and old["request"] == once.request

    async def handed_in(self, row: Row) -> Submission:
        """A job as its owner handed it in."""
        first = await self.read(lambda: self.board.row("requests", number=row["number"]))
        found = self.reader.read(json.loads(row["body"]), row["tenant"])
        sealed = None if first is None else first["sealed"]
        return found if sealed is None else found._replace(customer=customer_of(self._seal.open(sealed)))

    async def noted(self, token: Token, action: str, subject: str, before: Any, after: Any) -> None:
        """Add a line to the audit log."""
        await self.write(lambda writing: note(writing, token.actor, "", action, subject, before, after))

    async def change_sites(self, token: Token, body: dict[str, Any]) -> None:
        """Ask the engine to change sites or prices, and wait until it has."""
        shown = await self.read(lambda: self.board.rows("board_sites", most=100_000))
        await self.ask("sites", NOBODY, token, body)
        await self.until(
            lambda: True if self.board.rows("board_sites", most=100_000) != shown else None, CHANGE_S
        )

    async def switch(self, kind: str, token: Token, body: dict[str, Any]) -> bool:
        """Ask the engine for another policy or further sites, and wait until it has begun again; False: not yet."""
        async with self._switching:
            starts = self.engine.begins
            await self.ask(kind, NOBODY, token, body)
            done = await self.until(lambda: True if self.engine.begins > starts else None, SWITCH_S)
            await self.read(self.reload)
        return done is not None

    def seal(self, text: str) -> bytes:
        """Seal what is private."""
        return self._seal.seal(text)

    def reload(self) -> list[str]:
        """Read CONFIG again; what of it takes effect without a new start does. Returns what does not."""
        found = current_config(self.config.path, self.data)
        same = ("store", "fleet", "listen", "speed", "name", "quotes")
        kept = [name for name in same if getattr(found.file, name) != getattr(self.config.file, name)]
        self.config = found
        self.reader, self.tokens.limits = Reader(found), found.file.limits
        return kept

    async def until(self, found: Callable[[], T | None], timeout_s: float) -> T | None:
        """What `found` returns once it returns something; None if time is up."""
        end = time.monotonic() + timeout_s
        while True:
            told = self.engine.told
            if (result := await self.read(found)) is not None:
                return result
            left = end - time.monotonic()
            if left <= 0:
                return None
            try:
                await asyncio.wait_for(told.wait(), min(left, 1.0))
            except TimeoutError:
                continue


def job_document(row: Row) -> dict[str, Any]:
    """A job as people see it."""
    names = ("id", "tenant", "status", "submitted_s", "started_s", "ended_s", "price_usd", "reason")
    return {
        **{name: row[name] for name in names},
        "is_over": bool(row["is_over"]),
        "places": json.loads(row["places"]),
        "job": json.loads(row["body"]),
    }
