"""Clients of a service: `Client`, and `AsyncClient` with the same calls.

with tradewind.Client() as client:                 # TRADEWIND_SERVER, TRADEWIND_TOKEN_FILE
    job = client.submit({"worker": {"gpu": 1}, "command": ["sleep", "1"]})
    client.wait(job.id).status                     # finished
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from tradewind.service import calls
from tradewind.service.calls import Call, ServiceError
from tradewind.service.models import JobAnswer, JobPage, QuoteAnswer, Receipt, StatusAnswer, Why

T = TypeVar("T")
TRIES, PAUSE_S, TIMEOUT_S, WAIT_S = 5, 0.2, 60.0, 30.0
"""A request is sent again if the connection breaks; every change has a key, so nothing happens twice."""


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
        for left in reversed(range(TRIES)):
            try:
                answer = self._http.request(
                    call.method, call.path, params=call.params, headers=call.headers, json=call.body
                )
                return call.read(answer.status_code, answer.text)
            except httpx.TransportError as error:
                if not left:
                    raise _unreachable(self._http.base_url, error) from None
                time.sleep(PAUSE_S * (TRIES - left))
        raise AssertionError("not reached")

    def submit(
        self, job: Mapping[str, Any], *, tenant: str | None = None, key: str | None = None
    ) -> JobAnswer:
        """Submit a job; it is durable when this returns."""
        return self.do(calls.submit(job, tenant, key))

    def quote(
        self, job: Mapping[str, Any], *, tenant: str | None = None, key: str | None = None
    ) -> QuoteAnswer:
        """Ask for a price."""
        return self.do(calls.quote(job, tenant, key))

    def accept(self, quote: str, option: int = 0) -> Receipt:
        """Take an option of a quote."""
        return self.do(calls.accept(quote, option))

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

    def why(self, id_: str) -> Why:
        """Why a job is where it is."""
        return self.do(calls.why(id_))

    def status(self) -> StatusAnswer:
        """The service as a whole."""
        return self.do(calls.status())

    def logs(self, id_: str, *, rank: int = 0, follow: bool = False) -> Iterator[str]:
        """What a rank wrote, in pieces; follow: until the job is over."""
        params: dict[str, Any] = {"rank": rank, "follow": follow}
        with self._http.stream("GET", f"/v1/jobs/{id_}/logs", params=params, timeout=None) as answer:
            if answer.status_code >= 400:
                answer.read()
                Call[None](method="", path="", answer=None).read(answer.status_code, answer.text)
            yield from answer.iter_text()


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
        try:
            answer = await self._http.request(
                call.method, call.path, params=call.params, headers=call.headers, json=call.body
            )
        except httpx.TransportError as error:
            raise _unreachable(self._http.base_url, error) from None
        return call.read(answer.status_code, answer.text)

    async def submit(
        self, job: Mapping[str, Any], *, tenant: str | None = None, key: str | None = None
    ) -> JobAnswer:
        """Submit a job; it is durable when this returns."""
        return await self.do(calls.submit(job, tenant, key))

    async def wait(self, id_: str) -> JobAnswer:
        """The job once it is over."""
        while not (found := await self.do(calls.job(id_, WAIT_S))).is_over:
            pass
        return found

    async def logs(self, id_: str, *, rank: int = 0, follow: bool = False) -> AsyncIterator[str]:
        """What a rank wrote, in pieces."""
        params: dict[str, Any] = {"rank": rank, "follow": follow}
        async with self._http.stream("GET", f"/v1/jobs/{id_}/logs", params=params, timeout=None) as answer:
            async for text in answer.aiter_text():
                yield text


def _unreachable(address: object, error: Exception) -> ServiceError:
    return ServiceError(0, "unavailable", f"{address} cannot be reached ({error}); is the service running?")
