"""Clients of a service: `Client`, and `AsyncClient` with the same calls.

with tradewind.Client() as client:                 # TRADEWIND_SERVER, TRADEWIND_TOKEN_FILE
    job = client.submit({"worker": {"gpu": 1}, "command": ["sleep", "1"]})
    client.wait(job.id).status                     # finished

What is rarer (tokens, sites, prices, the policy) is `client.do(call)` with a call of `tradewind.service.calls`.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from tradewind.service import calls
from tradewind.service.calls import Call, ServiceError
from tradewind.service.models import (
    BillPage,
    DryRun,
    Eta,
    EventAnswer,
    JobAnswer,
    JobPage,
    QuoteAnswer,
    Receipt,
    SiteAnswer,
    StatusAnswer,
    Why,
)

T = TypeVar("T")
TRIES, PAUSE_S, TIMEOUT_S, WAIT_S = 5, 0.2, 60.0, 30.0
"""A request is sent again if the connection breaks; every change has a key, so nothing happens twice."""
Job = Mapping[str, Any]


class _Tries:
    """How often a connection may break, one time after the other."""

    def __init__(self) -> None:
        self.left = TRIES

    def pause_s(self, address: object, error: Exception) -> float:
        """How long to wait before the next try; ServiceError after the last."""
        self.left -= 1
        if self.left <= 0:
            raise ServiceError(
                0, "unavailable", f"{address} cannot be reached ({error}); is the service running?"
            ) from None
        return PAUSE_S * (TRIES - self.left)


class _Log(_Tries):
    """What was read of a log so far, to go on there."""

    def __init__(self, rank: int, follow: bool) -> None:
        super().__init__()
        self._offset, self._rank, self._follow = 0, rank, follow
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def params(self) -> dict[str, Any]:
        """Of the request for the rest."""
        return {"rank": self._rank, "follow": self._follow, "offset": self._offset}

    def text(self, part: bytes) -> str:
        """The next piece, in whole characters."""
        self.left, self._offset = TRIES, self._offset + len(part)
        return self._decoder.decode(part)


class _Events(_Tries):
    """What was read of a stream of events so far, to go on there."""

    def __init__(self, id_: str | None, after: int) -> None:
        super().__init__()
        self.path, self._after, self._rest = (
            "/v1/events" if id_ is None else f"/v1/jobs/{id_}/events",
            after,
            "",
        )

    def headers(self) -> dict[str, str]:
        """Of the request for the rest."""
        self._rest = ""
        return {"Accept": "text/event-stream", "Last-Event-ID": str(self._after)}

    def messages(self, text: str) -> list[EventAnswer]:
        """The events that a piece completes."""
        self.left = TRIES
        *whole, self._rest = (self._rest + text).split("\n\n")
        lines = [line for part in whole for line in part.splitlines() if line.startswith("data: ")]
        found = [EventAnswer.model_validate_json(line.removeprefix("data: ")) for line in lines]
        self._after = found[-1].number if found else self._after
        return found


class Client:
    """Talks to a service. Address and token are given, or come from the environment."""

    def __init__(
        self, server: str | None = None, *, token: str | None = None, token_file: str | Path | None = None
    ) -> None:
        address, secret = calls.settings(server, token, token_file)
        self._http = httpx.Client(base_url=address, headers=calls.headers(secret), timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def do(self, call: Call[T]) -> T:
        """Send a request (`service.calls`) and read its answer; ServiceError says why not."""
        tries = _Tries()
        while True:
            try:
                answer = self._http.request(
                    call.method, call.path, params=call.params, headers=call.headers, json=call.body
                )
                return call.read(answer.status_code, answer.text)
            except httpx.TransportError as error:
                time.sleep(tries.pause_s(self._http.base_url, error))

    def submit(self, job: Job, *, tenant: str | None = None, key: str | None = None) -> JobAnswer:
        """Submit a job; it is durable when this returns."""
        return self.do(calls.submit(job, tenant, key))

    def dry_run(self, job: Job, *, tenant: str | None = None) -> DryRun:
        """Ask where, when and at what price a job would run; nothing changes."""
        return self.do(calls.dry_run(job, tenant))

    def quote(self, job: Job, *, tenant: str | None = None, key: str | None = None) -> QuoteAnswer:
        """Ask for a price."""
        return self.do(calls.quote(job, tenant, key))

    def quotes(self, *, status: str | None = None, limit: int = 100) -> list[QuoteAnswer]:
        """Quotes, newest first."""
        return self.do(calls.quotes(status, limit))

    def accept(self, quote: str, option: int = 0) -> Receipt:
        """Take an option of a quote."""
        return self.do(calls.accept(quote, option))

    def decline(self, quote: str) -> QuoteAnswer:
        """Take no option of a quote."""
        return self.do(calls.decline(quote))

    def jobs(self, *, status: str | None = None, before: int | None = None, limit: int = 100) -> JobPage:
        """A page of jobs, newest first."""
        return self.do(calls.jobs(status, None, before, limit))

    def job(self, id_: str) -> JobAnswer:
        """One job."""
        return self.do(calls.job(id_, 0))

    def wait(self, id_: str, timeout_s: float = float("inf")) -> JobAnswer:
        """The job once it is over, or as it is when time is up."""
        end = time.monotonic() + timeout_s
        while True:
            left = end - time.monotonic()
            found = self.do(calls.job(id_, max(0.0, min(WAIT_S, left))))
            if found.is_over or left <= 0:
                return found

    def cancel(self, id_: str) -> JobAnswer:
        """Cancel a job."""
        return self.do(calls.cancel(id_))

    def suspend(self, id_: str) -> JobAnswer:
        """Suspend a job: it writes its checkpoints and ends, until it is resumed."""
        return self.do(calls.act(id_, "suspend"))

    def resume(self, id_: str) -> JobAnswer:
        """Resume a suspended job."""
        return self.do(calls.act(id_, "resume"))

    def change(self, id_: str, **fields: Any) -> JobAnswer:
        """Change fields of a job that waits or is suspended: its bid, budget, workers or work."""
        return self.do(calls.act(id_, "change", fields))

    def why(self, id_: str) -> Why:
        """Why a job is where it is."""
        return self.do(calls.why(id_))

    def eta(self, id_: str) -> Eta:
        """When a job will start and finish, and how such forecasts were kept."""
        return self.do(calls.eta(id_))

    def bills(self, *, tenant: str | None = None, period: str | None = None) -> BillPage:
        """Bills of a period, by default of this month."""
        return self.do(calls.bills(tenant, period))

    def sites(self) -> list[SiteAnswer]:
        """Sites, their capacity, use and price."""
        return self.do(calls.sites())

    def status(self) -> StatusAnswer:
        """The service as a whole."""
        return self.do(calls.status())

    def logs(self, id_: str, *, rank: int = 0, follow: bool = False) -> Iterator[str]:
        """What a rank wrote, in pieces; follow: until the job is over. It goes on where a connection broke."""
        path, log = f"/v1/jobs/{id_}/logs", _Log(rank, follow)
        while True:
            try:
                with self._http.stream("GET", path, params=log.params) as answer:
                    if answer.status_code >= 400:
                        answer.read()
                        calls.check(answer.status_code, answer.text)
                    for part in answer.iter_bytes():
                        yield log.text(part)
                return
            except httpx.ReadTimeout:  # nothing was written for a while
                continue
            except httpx.TransportError as error:
                time.sleep(log.pause_s(self._http.base_url, error))

    def events(self, id_: str | None = None, *, after: int = 0) -> Iterator[EventAnswer]:
        """What happens to a job, or to all, as it happens, from `after` on; it goes on where a connection broke."""
        stream = _Events(id_, after)
        while True:
            try:
                with self._http.stream("GET", stream.path, headers=stream.headers()) as answer:
                    if answer.status_code >= 400:
                        answer.read()
                        calls.check(answer.status_code, answer.text)
                    for text in answer.iter_text():
                        yield from stream.messages(text)
            except httpx.TransportError as error:
                time.sleep(stream.pause_s(self._http.base_url, error))


class AsyncClient:
    """The same for programs with an event loop."""

    def __init__(
        self, server: str | None = None, *, token: str | None = None, token_file: str | Path | None = None
    ) -> None:
        address, secret = calls.settings(server, token, token_file)
        self._http = httpx.AsyncClient(base_url=address, headers=calls.headers(secret), timeout=TIMEOUT_S)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def do(self, call: Call[T]) -> T:
        """Send a request (`service.calls`) and read its answer; ServiceError says why not."""
        tries = _Tries()
        while True:
            try:
                answer = await self._http.request(
                    call.method, call.path, params=call.params, headers=call.headers, json=call.body
                )
                return call.read(answer.status_code, answer.text)
            except httpx.TransportError as error:
                await asyncio.sleep(tries.pause_s(self._http.base_url, error))

    async def submit(self, job: Job, *, tenant: str | None = None, key: str | None = None) -> JobAnswer:
        """Submit a job; it is durable when this returns."""
        return await self.do(calls.submit(job, tenant, key))

    async def dry_run(self, job: Job, *, tenant: str | None = None) -> DryRun:
        """Ask where, when and at what price a job would run; nothing changes."""
        return await self.do(calls.dry_run(job, tenant))

    async def quote(self, job: Job, *, tenant: str | None = None, key: str | None = None) -> QuoteAnswer:
        """Ask for a price."""
        return await self.do(calls.quote(job, tenant, key))

    async def quotes(self, *, status: str | None = None, limit: int = 100) -> list[QuoteAnswer]:
        """Quotes, newest first."""
        return await self.do(calls.quotes(status, limit))

    async def accept(self, quote: str, option: int = 0) -> Receipt:
        """Take an option of a quote."""
        return await self.do(calls.accept(quote, option))

    async def decline(self, quote: str) -> QuoteAnswer:
        """Take no option of a quote."""
        return await self.do(calls.decline(quote))

    async def jobs(
        self, *, status: str | None = None, before: int | None = None, limit: int = 100
    ) -> JobPage:
        """A page of jobs, newest first."""
        return await self.do(calls.jobs(status, None, before, limit))

    async def job(self, id_: str) -> JobAnswer:
        """One job."""
        return await self.do(calls.job(id_, 0))

    async def wait(self, id_: str, timeout_s: float = float("inf")) -> JobAnswer:
        """The job once it is over, or as it is when time is up."""
        end = time.monotonic() + timeout_s
        while True:
            left = end - time.monotonic()
            found = await self.do(calls.job(id_, max(0.0, min(WAIT_S, left))))
            if found.is_over or left <= 0:
                return found

    async def cancel(self, id_: str) -> JobAnswer:
        """Cancel a job."""
        return await self.do(calls.cancel(id_))

    async def suspend(self, id_: str) -> JobAnswer:
        """Suspend a job: it writes its checkpoints and ends, until it is resumed."""
        return await self.do(calls.act(id_, "suspend"))

    async def resume(self, id_: str) -> JobAnswer:
        """Resume a suspended job."""
        return await self.do(calls.act(id_, "resume"))

    async def change(self, id_: str, **fields: Any) -> JobAnswer:
        """Change fields of a job that waits or is suspended: its bid, budget, workers or work."""
        return await self.do(calls.act(id_, "change", fields))

    async def why(self, id_: str) -> Why:
        """Why a job is where it is."""
        return await self.do(calls.why(id_))

    async def eta(self, id_: str) -> Eta:
        """When a job will start and finish, and how such forecasts were kept."""
        return await self.do(calls.eta(id_))

    async def bills(self, *, tenant: str | None = None, period: str | None = None) -> BillPage:
        """Bills of a period, by default of this month."""
        return await self.do(calls.bills(tenant, period))

    async def sites(self) -> list[SiteAnswer]:
        """Sites, their capacity, use and price."""
        return await self.do(calls.sites())

    async def status(self) -> StatusAnswer:
        """The service as a whole."""
        return await self.do(calls.status())

    async def logs(self, id_: str, *, rank: int = 0, follow: bool = False) -> AsyncIterator[str]:
        """What a rank wrote, in pieces; follow: until the job is over. It goes on where a connection broke."""
        path, log = f"/v1/jobs/{id_}/logs", _Log(rank, follow)
        while True:
            try:
                async with self._http.stream("GET", path, params=log.params) as answer:
                    if answer.status_code >= 400:
                        await answer.aread()
                        calls.check(answer.status_code, answer.text)
                    async for part in answer.aiter_bytes():
                        yield log.text(part)
                return
            except httpx.ReadTimeout:  # nothing was written for a while
                continue
            except httpx.TransportError as error:
                await asyncio.sleep(log.pause_s(self._http.base_url, error))

    async def events(self, id_: str | None = None, *, after: int = 0) -> AsyncIterator[EventAnswer]:
        """What happens to a job, or to all, as it happens, from `after` on; it goes on where a connection broke."""
        stream = _Events(id_, after)
        while True:
            try:
                async with self._http.stream("GET", stream.path, headers=stream.headers()) as answer:
                    if answer.status_code >= 400:
                        await answer.aread()
                        calls.check(answer.status_code, answer.text)
                    async for text in answer.aiter_text():
                        for each in stream.messages(text):
                            yield each
            except httpx.TransportError as error:
                await asyncio.sleep(stream.pause_s(self._http.base_url, error))
